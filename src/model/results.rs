//! Reports to the lead about ended tasks. Tasks that ended shortly after one another are reported
//! together.

use std::collections::{BTreeMap, BTreeSet};

use super::board::Board;
use super::id::TaskId;
use super::task::{Task, TaskState};
use super::text;
use super::time::{Timestamp, human};

/// Time to wait after the last task ended before reporting, so that tasks ending together share one
/// report. Milliseconds.
pub(crate) const TOGETHER_MS: u64 = 1000;
// Limits of the output quoted from a failed task: lines, and characters per line.
const TAIL_LINES: usize = 5;
const TAIL_CHARS: usize = 500;
/// Maximum number of tasks listed; further ones are only counted.
const MOST: usize = 100;

/// Returns the unreported ended tasks and the earliest time to report them; `None` while any task
/// is in progress. A stale task delays no report. Tasks that another program
/// ended have no `ended_at` and are not reported.
pub(crate) fn ended(
    board: &Board,
    reported: &BTreeSet<TaskId>,
) -> Option<(Timestamp, Vec<TaskId>)> {
    if board.work().any(|task| task.state == TaskState::InProgress) {
        return None;
    }
    let fresh = |task: &&Task| task.state.is_over() && !reported.contains(&task.id);
    let ended = board.work().filter(fresh).filter_map(|task| Some((task.id, task.extra.ended_at?)));
    let (ids, times): (Vec<TaskId>, Vec<Timestamp>) = ended.unzip();
    Some((times.into_iter().max()?.plus_ms(TOGETHER_MS), ids))
}

/// Returns the heading and the full text of a report about these tasks.
pub(crate) fn report(board: &Board, ids: &[TaskId]) -> (String, String) {
    let tasks: Vec<&Task> = ids.iter().filter_map(|id| board.tasks.get(id)).collect();
    let completed = tasks.iter().filter(|task| task.state == TaskState::Completed).count();
    let failed = tasks.iter().filter(|task| task.state == TaskState::Failed).count();
    let heading = match (tasks.len(), completed, failed) {
        (all, done, 0) if all == done => format!("{} completed", counted(all)),
        (all, 0, lost) if all == lost => format!("{} failed; none completed", counted(all)),
        (all, done, lost) => format!("{} ended: {done} completed, {lost} failed", counted(all)),
    };
    let mut parts = vec![format!("{heading}.")];
    let mut by_member: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in tasks.iter().take(MOST) {
        by_member.entry(task.extra.ended_by.as_deref().unwrap_or("?")).or_default().push(task);
    }
    parts.extend(by_member.iter().map(|(name, theirs)| {
        let lines: Vec<String> = theirs.iter().map(|task| line(task)).collect();
        format!("{}\n{}", text::short(name, 60), lines.join("\n"))
    }));
    if tasks.len() > MOST {
        parts.push(format!("… and {} more: `phalanx task list --all`", tasks.len() - MOST));
    }
    parts.push(next(board, &tasks));
    (heading, parts.join("\n\n"))
}

fn counted(tasks: usize) -> String {
    if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") }
}

fn line(task: &Task) -> String {
    let outcome = task.extra.outcome.as_ref();
    let span = task.extra.ended_at.zip(task.extra.claimed_at).map(|(end, begin)| end.since(begin));
    let after = outcome.map(|o| o.elapsed_ms).or(span).map(human);
    let after = after.map(|time| format!(" after {time}")).unwrap_or_default();
    let code = outcome.and_then(|o| o.exit_code).filter(|code| *code != 0);
    let code = code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let told = format!(
        "- #{} \"{}\": {}{after}{code}",
        task.id,
        text::short(&task.subject, 120),
        task.state.as_str()
    );
    let tail = outcome.filter(|_| task.state == TaskState::Failed).map(|o| text::block(&o.tail));
    let tail = tail.map(|tail| text::last_lines(&tail, TAIL_LINES)).unwrap_or_default();
    let tail: Vec<String> =
        tail.lines().map(|line| format!("\n    {}", text::short(line, TAIL_CHARS))).collect();
    told + &tail.concat()
}

fn next(board: &Board, tasks: &[&Task]) -> String {
    let failed: Vec<&&Task> = tasks.iter().filter(|task| task.state == TaskState::Failed).collect();
    let mut said = Vec::new();
    if let Some(first) = failed.first() {
        let id = if failed.len() == 1 { first.id.to_string() } else { "ID".to_owned() };
        said.push(format!(
            "`phalanx task get {id}` shows why a task failed; `phalanx task retry {id}` makes it pending again."
        ));
    }
    let pending = board.pending();
    let free = pending.iter().filter(|task| board.open_blockers(task).is_empty()).count();
    said.push(match (free, pending.len()) {
        (0, 0) => {
            "The board has no open tasks: add more work, or end the team with `phalanx down`."
                .to_owned()
        }
        (0, waiting) => {
            format!(
                "{} left, all blocked by unfinished tasks: `phalanx task list`.",
                counted(waiting)
            )
        }
        (free, _) => format!("{} ready to start: `phalanx task list`.", counted(free)),
    });
    format!("Next: {}", said.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::task::CommandOutcome;

    const NOW: Timestamp = Timestamp(100_000);

    fn task(id: u64, state: TaskState, by: &str) -> Task {
        let mut task = Task::new(TaskId(id), &format!("T{id}"), "");
        task.state = state;
        if state.is_over() {
            task.extra.ended_by = Some(by.to_owned());
            task.extra.ended_at = Some(NOW);
            task.extra.claimed_at = Some(Timestamp(98_500));
        }
        task
    }

    fn board(tasks: Vec<Task>) -> Board {
        Board { tasks: tasks.into_iter().map(|task| (task.id, task)).collect(), ..Board::default() }
    }

    #[test]
    fn tasks_ended_together_are_reported_once_none_is_in_progress() {
        let none = BTreeSet::new();
        let done = [task(1, TaskState::Completed, "ann"), task(2, TaskState::Failed, "bob")];
        let (all, later) = (board(done.to_vec()), NOW.plus_ms(TOGETHER_MS));
        assert_eq!(ended(&all, &none), Some((later, vec![TaskId(1), TaskId(2)])));
        assert_eq!(ended(&all, &[TaskId(1)].into()), Some((later, vec![TaskId(2)])));
        assert_eq!(ended(&all, &[TaskId(1), TaskId(2)].into()), None);
        let busy = board([&done[..], &[task(3, TaskState::InProgress, "")]].concat());
        assert_eq!(ended(&busy, &none), None, "a sibling is in work");
        let silent = board([&done[..], &[task(3, TaskState::Stale, "")]].concat());
        assert_eq!(ended(&silent, &none), Some((later, vec![TaskId(1), TaskId(2)])));
        let mut foreign = task(4, TaskState::Completed, "x");
        foreign.extra.ended_at = None;
        assert_eq!(ended(&board(vec![foreign]), &none), None);
    }

    #[test]
    fn report_groups_by_member_and_names_next_steps() {
        let mut failed = task(2, TaskState::Failed, "bob");
        let tail = "one\ntwo\n\u{1b}[31mthree\nfour\nfive\nsix\n".to_owned();
        failed.extra.outcome =
            Some(CommandOutcome { exit_code: Some(2), signal: None, tail, elapsed_ms: 700 });
        let mut behind = task(4, TaskState::Pending, "");
        behind.blocked_by = vec![TaskId(2)];
        let all = board(vec![
            task(1, TaskState::Completed, "ann"),
            failed,
            task(3, TaskState::Pending, ""),
            behind,
        ]);
        let (heading, text) = report(&all, &[TaskId(1), TaskId(2)]);
        assert_eq!(heading, "2 tasks ended: 1 completed, 1 failed");
        assert!(text.contains("ann\n- #1 \"T1\": completed after 1.5s"), "{text}");
        assert!(
            text.contains("bob\n- #2 \"T2\": failed after 0.7s, exit code 2\n    two\n"),
            "{text}"
        );
        assert!(
            !text.contains("one\n") && !text.contains('\u{1b}') && text.contains("    six"),
            "{text}"
        );
        assert!(
            text.contains("`phalanx task retry 2`") && text.contains("1 task ready to start"),
            "{text}"
        );
    }

    #[test]
    fn heading_says_when_all_tasks_failed_or_completed() {
        let lost =
            board(vec![task(1, TaskState::Failed, "ann"), task(2, TaskState::Failed, "ann")]);
        let (heading, text) = report(&lost, &[TaskId(1), TaskId(2)]);
        assert_eq!(heading, "2 tasks failed; none completed");
        assert!(text.contains("`phalanx task retry ID`"), "{text}");
        let (heading, text) =
            report(&board(vec![task(1, TaskState::Completed, "ann")]), &[TaskId(1)]);
        assert_eq!(heading, "1 task completed");
        assert!(text.contains("The board has no open tasks"), "{text}");
    }
}
