//! Reports to the lead about ended tasks. Tasks that ended shortly after one another are reported
//! together.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::board::task::{Task, TaskState};
use crate::id::{LEAD, TaskId};
use crate::text;
use crate::time::{Timestamp, human};

/// Time to wait after the last task ended before reporting, so that tasks ending together share one
/// report. Milliseconds.
pub(crate) const TOGETHER_MS: u64 = 1000;
/// Maximum number of lines of output that are quoted.
pub const TAIL_LINES: usize = 5;
/// Maximum length of such a line, in characters.
const TAIL_CHARS: usize = 500;
/// Maximum number of tasks listed; further ones are only counted.
const MOST: usize = 100;
/// Maximum number of tasks that a sentence names.
const MOST_NAMED: usize = 5;
/// Maximum number of files that are named for a task.
const MOST_FILES: usize = 10;
/// Characters of a result or a reason.
const MAX_RESULT: usize = 2000;
/// Characters of all results of a report; the results beyond it are only referred to.
const MAX_DETAILS: usize = 20_000;

/// Returns the unreported ended tasks and the earliest time to report them; `None` while any task
/// is in progress. A stale task delays no report. Tasks that another program
/// ended have no `ended_at` and are not reported.
pub fn ended(board: &Board, reported: &BTreeSet<TaskId>) -> Option<(Timestamp, Vec<TaskId>)> {
    if board.work().any(|task| task.state == TaskState::InProgress) {
        return None;
    }
    let ended = unreported(board, reported).into_iter();
    let ended = ended.filter_map(|task| Some((task.id, task.extra.ended_at?)));
    let (ids, times): (Vec<TaskId>, Vec<Timestamp>) = ended.unzip();
    Some((times.into_iter().max()?.plus_ms(TOGETHER_MS), ids))
}

/// Returns the ended tasks without a report. Those that the lead has ended itself are
/// among them only together with others.
pub fn unreported<'b>(board: &'b Board, reported: &BTreeSet<TaskId>) -> Vec<&'b Task> {
    let is_fresh = |task: &&Task| {
        task.state.is_over() && task.extra.ended_at.is_some() && !reported.contains(&task.id)
    };
    let fresh: Vec<&Task> = board.work().filter(is_fresh).collect();
    let is_by_lead = |task: &&Task| {
        let decided = task.extra.decided_by.as_deref();
        let by = decided.filter(|_| task.state == TaskState::Cancelled);
        by.or(task.extra.ended_by.as_deref()) == Some(LEAD)
    };
    if fresh.iter().all(is_by_lead) { Vec::new() } else { fresh }
}

/// Returns the heading and the full text of a report about these tasks. `files` has the files of
/// the workspace that were written for each task.
pub fn report(
    board: &Board,
    ids: &[TaskId],
    files: &BTreeMap<TaskId, Vec<String>>,
) -> (String, String) {
    let tasks: Vec<&Task> = ids.iter().filter_map(|id| board.tasks.get(id)).collect();
    let heading = heading(&tasks);
    let mut parts = vec![format!("{heading}.")];
    let mut by_member: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in tasks.iter().take(MOST) {
        let ended_by = task.extra.ended_by.as_deref().or(task.owner_name());
        by_member.entry(ended_by.unwrap_or("no owner")).or_default().push(task);
    }
    let mut left = MAX_DETAILS;
    for (name, theirs) in by_member {
        let mut part = text::short(name, 60);
        for task in theirs {
            part.push_str(&format!("\n{}", line(task)));
            let details = details(task, files.get(&task.id).map_or(&[], Vec::as_slice));
            let details = match details.chars().count() {
                long if long > left => {
                    format!("its result: `phalanx task get {} --full`", task.id)
                }
                _ => details,
            };
            left = left.saturating_sub(details.chars().count());
            part.extend(details.lines().map(|line| format!("\n    {line}")));
        }
        parts.push(part);
    }
    if tasks.len() > MOST {
        parts.push(format!("… and {} more: `phalanx task list --all`", tasks.len() - MOST));
    }
    parts.push(format!("Next: {}", next_steps(board, &tasks).join(" ")));
    (heading, parts.join("\n\n"))
}

fn heading(tasks: &[&Task]) -> String {
    let ended = [
        (TaskState::Completed, "completed"),
        (TaskState::Failed, "failed"),
        (TaskState::Cancelled, "cancelled"),
    ];
    let count = |state| tasks.iter().filter(|task| task.state == state).count();
    let counts: Vec<(usize, &str)> = ended
        .iter()
        .map(|(state, word)| (count(*state), *word))
        .filter(|(count, _)| *count > 0)
        .collect();
    match counts.as_slice() {
        [(all, word)] if *word == "failed" => format!("{} failed; none completed", counted(*all)),
        [(all, word)] => format!("{} {word}", counted(*all)),
        several => {
            let words: Vec<String> =
                several.iter().map(|(count, word)| format!("{count} {word}")).collect();
            format!("{} ended: {}", counted(tasks.len()), words.join(", "))
        }
    }
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
    let origin = match task.extra.scope.is_empty() {
        true => String::new(),
        false => format!(" for {}", text::short(&task.extra.scope.to_string(), 120)),
    };
    format!(
        "- #{} \"{}\"{origin}: {}{after}{code}",
        task.id,
        text::short(&task.subject, 120),
        task.state.as_str()
    )
}

/// Returns the result or the reason of a task, its commit and its files, each from a new line.
fn details(task: &Task, files: &[String]) -> String {
    let extra = &task.extra;
    let mut said = Vec::new();
    said.extend(extra.reason.as_ref().map(|reason| format!("reason: {}", cut(reason, task.id))));
    let summary = extra.snapshot.as_ref().and_then(|snapshot| snapshot.summary.as_ref());
    said.extend(extra.result.as_ref().or(summary).map(|result| cut(result, task.id)));
    if let Some(shown) = task.shown_output(TAIL_LINES) {
        let lines = shown.lines().map(|line| text::short(line, TAIL_CHARS));
        said.push(cut(&lines.collect::<Vec<_>>().join("\n"), task.id));
    }
    said.extend(extra.commit.as_ref().map(|commit| format!("commit: {}", text::short(commit, 80))));
    if !files.is_empty() {
        let mut names: Vec<String> =
            files.iter().take(MOST_FILES).map(|file| text::short(file, 200)).collect();
        if files.len() > MOST_FILES {
            names.push(format!("{} more", files.len() - MOST_FILES));
        }
        said.push(format!("files: {}", names.join(", ")));
    }
    said.join("\n")
}

/// Returns the text, or its first [`MAX_RESULT`] characters and the command that shows the rest.
pub fn cut(text: &str, id: TaskId) -> String {
    let text = text::block(text);
    match text.char_indices().nth(MAX_RESULT) {
        Some((end, _)) => {
            format!("{}… (all of it: `phalanx task get {id} --full`)", &text[..end])
        }
        None => text,
    }
}

/// Returns what the lead can do now, one sentence or two for each kind of task that needs it.
fn next_steps(board: &Board, ended: &[&Task]) -> Vec<String> {
    let mut steps = Vec::new();
    let failed: Vec<&Task> =
        ended.iter().copied().filter(|task| task.state == TaskState::Failed).collect();
    if let Some(first) = failed.first() {
        let id = first.id;
        steps.push(format!(
            "{} failed: tell the person before you retry. `phalanx task retry {id}` makes it \
             pending again, and `phalanx task update {id} --owner NAME` then gives it to a member.",
            named(&failed)
        ));
    }
    let in_state = |state| board.work().filter(|task| task.state == state).collect::<Vec<_>>();
    for task in in_state(TaskState::InReview).into_iter().take(MOST_NAMED) {
        let by = task.owner_name().map(|owner| format!(" of {}", text::short(owner, 60)));
        steps.push(format!(
            "#{0}{1} waits for your review: `phalanx task get {0}` shows it, `phalanx task approve {0}` \
             or `phalanx task reject {0} --reason TEXT` decides.",
            task.id,
            by.unwrap_or_default()
        ));
    }
    let stale = in_state(TaskState::Stale);
    if !stale.is_empty() {
        steps.push(format!("{} had no update for long: `phalanx status`.", named(&stale)));
    }
    let pending = board.pending();
    let free = pending.iter().filter(|task| board.open_blockers(task).is_empty()).count();
    match (free, pending.len()) {
        (0, 0) => {}
        (0, waiting) => steps.push(format!(
            "{} left, all blocked by unfinished tasks: `phalanx task list`.",
            counted(waiting)
        )),
        (free, _) => steps.push(format!("{} ready to start: `phalanx task list`.", counted(free))),
    }
    let is_open = |task: &Task| !task.state.is_over();
    if !board.work().any(is_open) {
        let all = if steps.is_empty() { "All tasks have ended" } else { "No other task is open" };
        steps.push(format!("{all}: add more work, or end the team with `phalanx down`."));
    }
    steps
}

/// Returns the ids of the tasks, as many as fit into a sentence.
fn named(tasks: &[&Task]) -> String {
    let mut ids: Vec<String> =
        tasks.iter().take(MOST_NAMED).map(|task| format!("#{}", task.id)).collect();
    if tasks.len() > MOST_NAMED {
        ids.push(format!("{} more", tasks.len() - MOST_NAMED));
    }
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::task::CommandOutcome;
    use crate::mail::scope::Scope;

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
        let by_lead = task(5, TaskState::Completed, LEAD);
        assert_eq!(ended(&board(vec![by_lead.clone()]), &none), None, "the lead's own");
        let mut rejected = task(6, TaskState::Cancelled, "ann");
        rejected.extra.decided_by = Some(LEAD.to_owned());
        assert_eq!(ended(&board(vec![rejected]), &none), None, "the lead has cancelled it");
        let both = board([&done[..1], &[by_lead]].concat());
        assert_eq!(ended(&both, &none), Some((later, vec![TaskId(1), TaskId(5)])));
        let mut foreign = task(4, TaskState::Completed, "x");
        foreign.extra.ended_at = None;
        assert_eq!(ended(&board(vec![foreign]), &none), None);
    }

    #[test]
    fn report_groups_by_member_and_names_next_steps() {
        let mut failed = task(2, TaskState::Failed, "bob");
        let tail = "one\ntwo\n\u{1b}[31mthree\nfour\nfive\nsix\n".to_owned();
        failed.extra.run = vec!["make".to_owned()];
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
        let (heading, text) = report(&all, &[TaskId(1), TaskId(2)], &BTreeMap::new());
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
        let (heading, text) = report(&lost, &[TaskId(1), TaskId(2)], &BTreeMap::new());
        assert_eq!(heading, "2 tasks failed; none completed");
        assert!(text.contains("#1, #2 failed: tell the person before you retry."), "{text}");
        assert!(text.contains("No other task is open: add more work"), "{text}");
        let (heading, text) = report(
            &board(vec![task(1, TaskState::Completed, "ann")]),
            &[TaskId(1)],
            &BTreeMap::new(),
        );
        assert_eq!(heading, "1 task completed");
        assert!(
            text.ends_with(
                "Next: All tasks have ended: add more work, or end the team with `phalanx down`."
            ),
            "{text}"
        );
    }

    /// MSG-18: results, reasons, commits and files are in the report, each cut to its limit.
    #[test]
    fn msg_18_report_has_results_reasons_commits_and_files() {
        let mut found = task(1, TaskState::Completed, "ann");
        found.extra.result = Some("Found 3 bugs:\nin \u{1b}[31ma".to_owned());
        found.extra.commit = Some("abc123".to_owned());
        let mut long = task(2, TaskState::Completed, "ann");
        long.extra.result = Some("x".repeat(MAX_RESULT + 1));
        let mut failed = task(3, TaskState::Failed, "bob");
        failed.extra.reason = Some("no network".to_owned());
        let mut answered = task(4, TaskState::Completed, "cyd");
        let tail = "the answer is 42\n".to_owned();
        answered.extra.outcome =
            Some(CommandOutcome { exit_code: Some(0), signal: None, tail, elapsed_ms: 700 });
        let mut dropped = task(5, TaskState::Cancelled, "ann");
        dropped.extra.scope = Scope::parse("user=u,channel=web").expect("a scope");
        (dropped.extra.ended_by, dropped.extra.reason) = (None, Some("not needed".to_owned()));
        let all = board(vec![found, long, failed, answered, dropped]);
        let ids: Vec<TaskId> = (1..=5).map(TaskId).collect();
        let files = BTreeMap::from([(TaskId(1), vec!["notes/a.md".to_owned()])]);
        let (heading, text) = report(&all, &ids, &files);
        assert_eq!(heading, "5 tasks ended: 3 completed, 1 failed, 1 cancelled");
        for part in [
            "\"T1\": completed after 1.5s\n    Found 3 bugs:\n    in ␛[31ma\n    commit: abc123\n    \
             files: notes/a.md\n",
            "xxx… (all of it: `phalanx task get 2 --full`)\n",
            "\"T3\": failed after 1.5s\n    reason: no network\n",
            "\"T4\": completed after 0.7s\n    the answer is 42\n",
            "no owner\n- #5 \"T5\" for user=u,channel=web: cancelled after 1.5s\n    reason: not needed\n",
        ] {
            assert!(text.contains(part), "{part}\n--\n{text}");
        }
    }

    #[test]
    fn msg_18_report_is_bounded() {
        let mut tasks: Vec<Task> =
            (1..=150).map(|id| task(id, TaskState::Completed, "ann")).collect();
        tasks.iter_mut().for_each(|task| task.extra.result = Some("x".repeat(MAX_RESULT)));
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        let (_, text) = report(&board(tasks), &ids, &BTreeMap::new());
        assert!(text.len() < 2 * MAX_DETAILS, "{}", text.len());
        assert!(text.contains("its result: `phalanx task get 100 --full`"), "{text}");
        assert!(text.contains("… and 50 more: `phalanx task list --all`"), "{text}");
    }

    /// MSG-18: a team with work in review is not ready to end.
    #[test]
    fn msg_18_next_step_fits_the_rest_of_the_board() {
        let mut submitted = task(2, TaskState::InReview, "");
        submitted.owner = Some("ann".to_owned());
        let all = board(vec![
            task(1, TaskState::Completed, "ann"),
            submitted,
            task(3, TaskState::Stale, ""),
        ]);
        let (_, text) = report(&all, &[TaskId(1)], &BTreeMap::new());
        assert!(text.contains("#2 of ann waits for your review"), "{text}");
        assert!(text.contains("#3 had no update for long"), "{text}");
        assert!(!text.contains("phalanx down"), "{text}");
    }
}
