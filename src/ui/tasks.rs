//! The table of tasks and the page about one task.

use super::life::{span, task_mark, task_word};
use super::paint::{Paint, Tint};
use super::report::ids;
use super::table::{Table, cell, maybe, tinted};
use crate::model::board::Board;
use crate::model::id::TaskId;
use crate::model::task::{Task, TaskState};
use crate::model::text;
use crate::ops::task::ScopeCount;

pub(crate) fn task_table(board: &Board, shown: &[TaskId], paint: Paint) -> String {
    let mut table = Table::new(&["ID", "STATE", "PRIORITY", "OWNER", "SUBJECT", "WAITS FOR"]);
    for task in shown.iter().filter_map(|id| board.tasks.get(id)) {
        table.row(vec![
            cell(task.id.to_string()),
            tinted(task_mark(task.state).1, task_word(task.state)),
            maybe(
                task.extra
                    .priority
                    .filter(|priority| *priority != 0)
                    .map(|priority| priority.to_string()),
            ),
            maybe(task.owner.as_deref()),
            cell(text::short(task.title(), 72)),
            cell(ids(&board.open_blockers(task))),
        ]);
    }
    table.render(paint)
}

/// Formats scopes with the number of all and of open tasks.
pub(crate) fn scope_table(scopes: &[ScopeCount], paint: Paint) -> String {
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

pub(crate) fn task_page(task: &Task, paint: Paint) -> String {
    let extra = &task.extra;
    let outcome = extra.outcome.as_ref();
    let facts = [
        ("state", Some(task_word(task.state).to_owned())),
        ("owner", task.owner.clone()),
        ("activity", task.active_form.clone().filter(|_| task.state == TaskState::InProgress)),
        ("after", Some(ids(&task.blocked_by))),
        ("blocks", Some(ids(&task.blocks))),
        ("runs", Some(extra.run.iter().map(|w| format!("{w:?}")).collect::<Vec<_>>().join(" "))),
        ("in", extra.cwd.clone()),
        ("env", Some(extra.env.keys().cloned().collect::<Vec<_>>().join(", "))),
        ("role", extra.role.clone()),
        ("files", Some(extra.files.join(", "))),
        ("priority", extra.priority.map(|p| p.to_string())),
        ("scope", Some(extra.scope.to_string())),
        ("created", extra.created_at.map(|at| at.iso())),
        ("ended by", extra.ended_by.clone()),
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
    let bodies = [Some(task.description.as_str()), outcome.map(|o| o.tail.as_str())];
    for body in bodies.into_iter().flatten().filter(|b| !b.trim().is_empty()) {
        lines.push(String::new());
        lines.extend(text::block(body.trim_end()).lines().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_formatted_as_page_and_table_row() {
        let mut task = Task::new(TaskId(2), "Test\u{1b}", "with care");
        task.blocked_by = vec![TaskId(1)];
        task.extra.run = vec!["cargo".to_owned(), "test".to_owned()];
        let page = task_page(&task, Paint { on: false });
        let rest =
            "  state      pending\n  after      #1\n  runs       \"cargo\" \"test\"\n\n  with care";
        assert_eq!(page, format!("#2 Test\u{241b}\n{rest}"));
        let mut board = Board::default();
        board.tasks.insert(TaskId(1), Task::new(TaskId(1), "Build", ""));
        board.tasks.insert(TaskId(2), task);
        assert_eq!(
            task_table(&board, &[TaskId(2)], Paint { on: false }),
            "ID  STATE    SUBJECT  WAITS FOR\n2   pending  Test\u{241b}    #1"
        );
    }
}
