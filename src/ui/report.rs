//! The end of a team in words and tables. Pure.

use super::life::{member_tint, member_word, span, task_mark, task_word};
use super::paint::{Paint, Tint};
use super::table::{Table, cell, maybe, tinted};
use crate::model::deviation::Deviation;
use crate::model::id::TaskId;
use crate::model::report::{MemberReport, Report, TaskReport};
use crate::model::task::TaskState;
use crate::model::text;

/// How many lines of a failed task are shown.
const TAIL: usize = 20;

/// The whole report.
pub(crate) fn report(report: &Report, paint: Paint) -> String {
    let mut parts = vec![headline(report, paint)];
    if !report.members.is_empty() {
        parts.push(members(&report.members, paint));
    }
    if !report.tasks.is_empty() {
        parts.push(tasks(&report.tasks, paint));
    }
    parts.extend(deviations(&report.deviations, paint));
    parts.extend(report.tasks.iter().filter(|t| t.state == TaskState::Failed).map(|t| failure(t, paint)));
    parts.join("\n\n")
}

/// What did not go as it should; none if everything did.
pub(super) fn deviations(found: &[Deviation], paint: Paint) -> Option<String> {
    let line = |deviation: &Deviation| {
        let name = paint.put(Tint::Bold, deviation.name.as_str());
        format!("\n  {name}: {}", text::line(&deviation.text))
    };
    let lines: String = found.iter().map(line).collect();
    (!found.is_empty()).then(|| format!("{}{lines}", paint.put(Tint::Warn, "deviations:")))
}

fn headline(report: &Report, paint: Paint) -> String {
    let count = |state| report.tasks.iter().filter(|t| t.state == state).count();
    let counted = [
        (count(TaskState::Completed), "completed"),
        (count(TaskState::Failed), "failed"),
        (count(TaskState::Cancelled), "cancelled"),
        (count(TaskState::Pending), "not begun"),
        (count(TaskState::InProgress), "not finished"),
    ];
    let words =
        counted.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect::<Vec<_>>();
    let tasks = if words.is_empty() { "no tasks".to_owned() } else { format!("tasks: {}", words.join(", ")) };
    let tint = if report.success { Tint::Good } else { Tint::Bad };
    let team = paint.put(Tint::Bold, &format!("team {}", report.team));
    format!("{team}  {}  in {}", paint.put(tint, &tasks), span(report.elapsed_ms))
}

fn members(members: &[MemberReport], paint: Paint) -> String {
    let mut table =
        Table::new(&["MEMBER", "PROFILE", "BACKEND", "END", "SHUTDOWN", "EXIT", "TASKS", "REASON"]);
    for member in members {
        table.row(vec![
            tinted(Tint::Bold, member.name.as_str()),
            cell(&member.profile),
            cell(member.backend.as_str()),
            tinted(member_tint(member.state), member_word(member.state)),
            maybe(member.shutdown.map(|s| s.as_str())),
            maybe(member.exit_code.map(|c| c.to_string())),
            cell(member.tasks.to_string()),
            maybe(member.reason.as_deref().map(|r| text::short(r, 60))),
        ]);
    }
    table.render(paint)
}

fn tasks(tasks: &[TaskReport], paint: Paint) -> String {
    let mut table = Table::new(&["TASK", "SUBJECT", "OUTCOME", "BY", "EXIT", "TIME"]);
    for task in tasks {
        table.row(vec![
            cell(format!("#{}", task.id)),
            cell(text::short(&task.subject, 60)),
            tinted(task_mark(task.state).1, outcome(task)),
            maybe(task.by.as_deref()),
            maybe(task.exit_code.map(|c| c.to_string())),
            maybe(task.elapsed_ms.map(span)),
        ]);
    }
    table.render(paint)
}

fn outcome(task: &TaskReport) -> String {
    match task.state {
        TaskState::Pending if task.blocked_by.is_empty() => "not begun".to_owned(),
        TaskState::Pending => format!("not begun, blocked by {}", ids(&task.blocked_by)),
        TaskState::InProgress => "not finished".to_owned(),
        TaskState::Completed | TaskState::Failed | TaskState::Cancelled => task_word(task.state).to_owned(),
    }
}

/// Ids as a list for people.
pub(super) fn ids(list: &[TaskId]) -> String {
    list.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

fn failure(task: &TaskReport, paint: Paint) -> String {
    let code = task.exit_code.map(|c| format!(" with exit code {c}")).unwrap_or_default();
    let head = format!("#{} {} failed{code}", task.id, text::short(&task.subject, 60));
    let tail = task.tail.as_deref().map(|t| text::block(&text::last_lines(t, TAIL))).unwrap_or_default();
    let lines = tail.lines().map(|line| format!("\n  {line}")).collect::<String>();
    let ending = if lines.is_empty() { "" } else { "; its last lines:" };
    format!("{}{ending}{lines}", paint.put(Tint::Bad, &head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{MemberName, TeamName};
    use crate::model::lifecycle::MemberState;
    use crate::model::placement::BackendKind;
    use crate::model::request::{Parting, ShutdownOutcome};

    fn task(id: u64, state: TaskState) -> TaskReport {
        TaskReport {
            id: TaskId(id),
            key: None,
            subject: format!("do {id}"),
            state,
            by: None,
            exit_code: None,
            elapsed_ms: None,
            tail: None,
            blocked_by: Vec::new(),
        }
    }

    fn ada() -> MemberReport {
        MemberReport {
            name: MemberName::new("ada").expect("name"),
            profile: "worker".to_owned(),
            backend: BackendKind::Pty,
            state: MemberState::Completed,
            reason: None,
            shutdown: Some(ShutdownOutcome::Closed),
            parting: Parting::default(),
            exit_code: Some(0),
            tasks: 2,
        }
    }

    #[test]
    fn a_report_names_what_failed_and_what_never_ran() {
        let done = TaskReport {
            by: Some("ada".to_owned()),
            exit_code: Some(0),
            elapsed_ms: Some(2_100),
            ..task(1, TaskState::Completed)
        };
        let broken = TaskReport {
            exit_code: Some(7),
            tail: Some("a\nb\u{1b}[2J\n\n".to_owned()),
            ..task(2, TaskState::Failed)
        };
        let never = TaskReport { blocked_by: vec![TaskId(2)], ..task(3, TaskState::Pending) };
        let team = TeamName::new("checks").expect("name");
        let whole = Report {
            team,
            success: false,
            elapsed_ms: 12_300,
            members: vec![ada()],
            tasks: vec![done, broken, never],
            deviations: Vec::new(),
        };
        assert_eq!(
            report(&whole, Paint { on: false }),
            "team checks  tasks: 1 completed, 1 failed, 1 not begun  in 12.3s\n\n\
             MEMBER  PROFILE  BACKEND  END        SHUTDOWN  EXIT  TASKS\n\
             ada     worker   pty      completed  closed    0     2\n\n\
             TASK  SUBJECT  OUTCOME                   BY   EXIT  TIME\n\
             #1    do 1     completed                 ada  0     2.1s\n\
             #2    do 2     failed                         7\n\
             #3    do 3     not begun, blocked by #2\n\n\
             #2 do 2 failed with exit code 7; its last lines:\n  a\n  b\u{241b}[2J"
        );
    }
}
