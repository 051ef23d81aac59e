//! The table of tasks and the page about one task.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};
use crate::team::report::ids;
use crate::views::life::{span, task_mark, task_word};
use model::board::Board;
use model::board::task::{PREVIEW, Progress};
use model::id::{MemberName, TaskId};
use model::team::followup::TaskReminder;
use model::text;
use ops::board::task::{ScopeCount, TaskHistory};

/// Formats tasks as a table. With `details`, it says when and how ended tasks ended.
pub fn task_table(board: &Board, shown: &[TaskId], details: bool, paint: Paint) -> String {
    let mut table = Table::new(&[
        "ID",
        "KEY",
        "STATE",
        "PRIORITY",
        "OWNER",
        "SUBJECT",
        "WAITS FOR",
        "ENDED",
        "SUMMARY",
    ]);
    for task in shown.iter().filter_map(|id| board.tasks.get(id)) {
        table.row(vec![
            cell(task.id.to_string()),
            maybe(task.extra.key.as_deref()),
            tinted(task_mark(board.state(task)).1, task_word(board.state(task))),
            maybe(
                task.extra
                    .priority
                    .filter(|priority| *priority != 0)
                    .map(|priority| priority.to_string()),
            ),
            maybe(task.owner.as_deref()),
            cell(text::short(task.title(), 72)),
            cell(ids(&board.open_blockers(task))),
            maybe(task.extra.ended_at.filter(|_| details).map(|at| at.iso())),
            maybe(task.ending().filter(|_| details).map(|words| text::short(words, PREVIEW))),
        ]);
    }
    table.render(paint)
}

/// Formats scopes with the number of all and of open tasks.
pub fn scope_table(scopes: &[ScopeCount], paint: Paint) -> String {
    let mut table = Table::new(&["USER", "CHANNEL", "CHAT", "TASKS", "OPEN"]);
    for ScopeCount { scope, tasks, open } in scopes {
        table.row(vec![
            maybe(scope.user.as_deref()),
            maybe(scope.channel.as_deref()),
            maybe(scope.chat.as_deref()),
            cell(tasks.to_string()),
            cell(open.to_string()),
        ]);
    }
    table.render(paint)
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Formats the page about a task: its fields, description, result, comments and files.
pub fn task_page(history: &TaskHistory, paint: Paint) -> String {
    let task = &history.task;
    let extra = &task.extra;
    let outcome = extra.outcome.as_ref();
    let facts = [
        ("key", extra.key.clone()),
        ("state", Some(task_word(history.state).to_owned())),
        ("progress", extra.progress.as_ref().map(progress)),
        ("owner", task.owner.clone()),
        ("activity", task.active_form.clone().filter(|_| task.state.is_running())),
        ("after", Some(ids(&task.blocked_by))),
        ("blocks", Some(ids(&task.blocks))),
        ("runs", Some(extra.run.iter().map(|w| format!("{w:?}")).collect::<Vec<_>>().join(" "))),
        ("in", extra.cwd.clone()),
        ("env", Some(extra.env.keys().cloned().collect::<Vec<_>>().join(", "))),
        ("role", extra.role.clone()),
        ("files", Some(extra.files.join(", "))),
        ("type", extra.kind.clone()),
        ("labels", Some(extra.labels.join(", "))),
        ("reminder", extra.reminder.as_ref().map(reminder)),
        ("priority", extra.priority.map(|p| p.to_string())),
        ("scope", Some(extra.scope.to_string())),
        ("created", extra.created_at.map(|at| at.iso())),
        ("created by", extra.created_by.clone()),
        ("ended", extra.ended_at.map(|at| at.iso())),
        ("ended by", extra.ended_by.clone()),
        ("decided by", extra.decided_by.clone()),
        ("sent back", (extra.rounds > 0).then(|| times(extra.rounds))),
        ("reason", extra.reason.clone()),
        ("summary", extra.snapshot.as_ref().and_then(|snapshot| snapshot.summary.clone())),
        ("commit", extra.commit.clone()),
        ("exit code", outcome.and_then(|o| o.exit_code).map(|c| c.to_string())),
        ("took", outcome.map(|o| span(o.elapsed_ms))),
    ];
    let mut lines =
        vec![paint.put(Tint::Bold, &format!("#{} {}", task.id, text::line(&task.subject)))];
    for (name, value) in
        facts.iter().filter_map(|(n, v)| Some((n, v.as_ref().filter(|v| !v.is_empty())?)))
    {
        lines.push(format!(
            "  {}{}",
            paint.put(Tint::Dim, &format!("{name:<11}")),
            text::line(value)
        ));
    }
    let bodies = [
        ("", Some(task.description.as_str())),
        ("", outcome.map(|o| o.tail.as_str())),
        ("result", extra.result.as_deref()),
    ];
    for (head, body) in bodies {
        let Some(body) = body.filter(|body| !body.trim().is_empty()) else { continue };
        lines.push(String::new());
        if !head.is_empty() {
            lines.push(format!("  {}", paint.put(Tint::Dim, head)));
        }
        lines.extend(text::block(body.trim_end()).lines().map(|line| format!("  {line}")));
    }
    lines.extend(comments(history, paint));
    lines.extend(files(history, paint));
    lines.join("\n")
}

fn progress(progress: &Progress) -> String {
    let step = if progress.step.is_empty() { "" } else { ", " };
    format!("{} %{step}{}", progress.percent, progress.step)
}

/// Describes a reminder: `1 of 3 sent, every 30m00s, set by ada: Which licence?`
fn reminder(reminder: &TaskReminder) -> String {
    let TaskReminder { text, every_ms, max, by, sent, .. } = reminder;
    let escalated = if sent > max { " and escalated" } else { "" };
    let (sent, every) = (sent.min(max), span(*every_ms));
    format!("{sent} of {max} sent{escalated}, every {every}, set by {by}: {text}")
}

fn comments(history: &TaskHistory, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for comment in &history.comments {
        let by = comment.by.as_ref().map_or("?", MemberName::as_str);
        let head = format!("{by} at {}", comment.at.iso());
        lines.extend([String::new(), format!("  {}", paint.put(Tint::Dim, &head))]);
        lines.extend(text::block(comment.text.trim_end()).lines().map(|line| format!("  {line}")));
    }
    lines
}

/// Formats the attachments and the files in the workspace.
fn files(history: &TaskHistory, paint: Paint) -> Vec<String> {
    let attached = history.attachments.iter().map(|file| {
        let host = file.host.as_ref().map(|host| format!("{host}:")).unwrap_or_default();
        let gone = if file.gone { ", gone" } else { "" };
        format!("  {} ({} bytes{gone})", text::line(&(host + &file.path)), file.bytes)
    });
    let produced = history.files.iter().map(|file| {
        format!("  {} in the workspace ({} bytes)", text::line(&file.path), file.bytes)
    });
    let mut lines: Vec<String> = attached.chain(produced).collect();
    if !lines.is_empty() {
        lines.splice(0..0, [String::new(), format!("  {}", paint.put(Tint::Dim, "files"))]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::board::task::{Task, TaskState};

    #[test]
    fn task_is_formatted_as_page_and_table_row() {
        let mut task = Task::new(TaskId(2), "Test\u{1b}", "with care");
        task.blocked_by = vec![TaskId(1)];
        task.extra.run = vec!["cargo".to_owned(), "test".to_owned()];
        let history = TaskHistory {
            task: task.clone(),
            state: TaskState::Blocked,
            comments: Vec::new(),
            attachments: Vec::new(),
            files: Vec::new(),
            events: Vec::new(),
        };
        let page = task_page(&history, Paint { on: false });
        let rest =
            "  state      blocked\n  after      #1\n  runs       \"cargo\" \"test\"\n\n  with care";
        assert_eq!(page, format!("#2 Test\u{241b}\n{rest}"));
        let mut board = Board::default();
        board.tasks.insert(TaskId(1), Task::new(TaskId(1), "Build", ""));
        board.tasks.insert(TaskId(2), task);
        assert_eq!(
            task_table(&board, &[TaskId(2)], true, Paint { on: false }),
            "ID  STATE    SUBJECT  WAITS FOR\n2   blocked  Test\u{241b}    #1"
        );
    }
}
