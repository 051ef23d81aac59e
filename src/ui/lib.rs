//! Formats data for terminals: tables, reports and the progress of a team. It reads no files and
//! calls no other programs.

mod board;
pub mod dashboard;
mod decisions;
mod doctor;
mod hosts;
mod mail;
mod paint;
mod profiles;
mod redraw;
pub mod review;
mod table;
mod team;
#[cfg(test)]
mod testing;
mod views;

pub use board::graph::{GraphFormat, TaskGraph};
pub use board::search::found_tasks;
pub use board::task_files::{import_report, task_csv, task_list_json};
pub use board::tasks::{scope_table, task_page, task_table};
pub use board::workspace::{task_ids, workspace_table};
pub use board::worktrees::{WorktreeRow, worktree_table};
pub use decisions::request_page::request_page;
pub use decisions::requests::{requests, rules};
pub use doctor::{doctor, self_test};
pub use hosts::{host_reports, host_table};
pub use mail::handoffs::{handoff_page, handoff_table, handoff_type, handoff_types};
pub use mail::message;
pub use paint::Paint;
pub use profiles::{ProfileRow, RecordingRow, profile_table, recording_table};
pub use redraw::{Redraw, size};
pub use team::difference::difference;
pub use team::init::{Surroundings, purposes, surroundings};
pub use team::report::{ReportFormat, report};
pub use team::settings::{changed_settings, settings_table};
pub use team::templates::{TemplateRow, template_table};
pub use team::view::{DesktopNotification, Style, View};
pub use views::event_words::words as event_words;
pub use views::events::{EventFormat, event_lines};
pub use views::explain::explain;
pub use views::home::home;
pub use views::logs::log_line;
pub use views::ps::ps;
pub use views::review::{
    checked_work, dropped_work, review_comments, review_overview, review_page, sent_review,
    work_conflicts,
};
pub use views::status::{StatusFormat, ended_runs, shutdowns, status, team_lines, team_list};
pub use views::status_line::{StatusLineFormat, status_line};
