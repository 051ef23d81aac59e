//! Formats data for terminals: tables, reports and the progress of a team. It reads no files and
//! calls no other programs.

mod doctor;
mod event_words;
mod events;
mod explain;
mod home;
mod life;
mod live;
mod logs;
mod mail;
mod paint;
mod profiles;
mod progress;
mod ps;
mod redraw;
mod report;
mod request_page;
mod requests;
mod settings;
mod status;
mod table;
mod task_files;
mod tasks;
mod view;
mod worktrees;

pub(crate) use doctor::{doctor, self_test};
pub(crate) use events::{EventFormat, event_lines};
pub(crate) use explain::explain;
pub(crate) use home::home;
pub(crate) use logs::log_line;
pub(crate) use mail::message;
pub(crate) use paint::Paint;
pub(crate) use profiles::{ProfileRow, profile_table};
pub(crate) use ps::ps;
pub(crate) use redraw::{Redraw, size};
pub(crate) use report::{ReportFormat, report};
pub(crate) use request_page::request_page;
pub(crate) use requests::{requests, rules};
pub(crate) use settings::{changed_settings, settings_table};
pub(crate) use status::{StatusFormat, shutdowns, status, team_lines, team_list};
pub(crate) use task_files::{import_report, task_csv, task_list_json};
pub(crate) use tasks::{task_page, task_table};
pub(crate) use view::{DesktopNotification, Style, View};
pub(crate) use worktrees::{WorktreeRow, worktree_table};
