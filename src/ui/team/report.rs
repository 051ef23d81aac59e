//! The final report of a team.

use crate::paint::{Paint, Tint};
use crate::table::{Cell, Table, cell, maybe, tinted};
use crate::views::life::{count_list, reason_cell, span, state_cell, task_mark, task_word};
use model::board::task::TaskState;
use model::decisions::request::{ShutdownFinding, ShutdownOutcome};
use model::id::TaskId;
use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use model::members::usage::{self, UsageTotal};
use model::text;
use ops::views::report::{BranchReport, MemberReport, Report, TaskReport};

/// Maximum number of output lines shown of a failed member or task.
const TAIL: usize = 20;
/// Maximum number of completed tasks in the table; further ones are only counted.
const COMPLETED: usize = 10;
/// Maximum length of subjects, in characters.
const SUBJECT: usize = 60;

/// The size of a report and the hint at its end.
pub struct ReportFormat {
    pub paint: Paint,
    /// The width of the terminal; `None` if the report goes elsewhere.
    pub width: Option<usize>,
    /// The command that shows more, if there is more.
    pub more: Option<String>,
}

/// Formats the report: counts, members that did not end as agreed, tasks with failures first, the
/// output of failed members and tasks, the results of the others, and the command that shows more.
pub fn report(report: &Report, format: &ReportFormat) -> String {
    let paint = format.paint;
    let mut parts = vec![headline(report, format)];
    let mut ended_badly = report.members.iter().filter(|member| is_odd(member)).peekable();
    if ended_badly.peek().is_some() {
        parts.push(members(ended_badly, format));
    }
    parts.extend(quiet_members(report, format));
    if !report.tasks.is_empty() {
        parts.push(tasks(&report.tasks, format));
    }
    parts.extend(branches(&report.branches, format));
    parts.extend(usage(report, format));
    parts.extend(deviations(&report.deviations, paint));
    parts.extend(report.members.iter().filter_map(|member| {
        let tail = member.tail.as_deref()?;
        Some(with_last_lines(&format!("{} failed", member.name), Some(tail), paint))
    }));
    let (failed, others): (Vec<&TaskReport>, Vec<&TaskReport>) =
        report.tasks.iter().partition(|task| task.state == TaskState::Failed);
    parts.extend(failed.into_iter().map(|task| failure(task, paint)));
    let found: Vec<String> = others.into_iter().filter_map(|task| found(task, format)).collect();
    let hidden = found.len().saturating_sub(COMPLETED);
    parts.extend(found.into_iter().take(COMPLETED));
    if hidden > 0 {
        parts.push(paint.put(Tint::Dim, &format!("… and the results of {hidden} more")));
    }
    parts.extend(format.more.as_ref().map(|more| paint.put(Tint::Dim, more)));
    parts.join("\n\n")
}

/// Returns true for a member that has not ended, or ended other than by an agreed shutdown or a
/// successful exit.
fn is_odd(member: &MemberReport) -> bool {
    member.state.doing != Doing::Ended(MemberState::Completed)
        || !matches!(member.shutdown, None | Some(ShutdownOutcome::Closed))
        || member.exit_code.is_some_and(|code| code != 0)
}

/// Names the members that ended well in one line: those that left on their own and, in a report
/// without tasks, those that agreed to end.
fn quiet_members(report: &Report, format: &ReportFormat) -> Option<String> {
    let named = |what: &str, is_meant: &dyn Fn(&MemberReport) -> bool| {
        let meant = report.members.iter().filter(|member| !is_odd(member) && is_meant(member));
        let names: Vec<&str> = meant.map(|member| member.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
    };
    let alone = named("left on their own", &|member| member.shutdown.is_none());
    let agreed =
        named("ended as agreed", &|member| report.tasks.is_empty() && member.shutdown.is_some());
    let parts: Vec<String> = alone.into_iter().chain(agreed).collect();
    let line = text::short(&parts.join("; "), format.width.unwrap_or(usize::MAX - 1));
    (!parts.is_empty()).then(|| format.paint.put(Tint::Dim, &line))
}

/// Formats the work that is not merged, with the command that merges each branch.
fn branches(branches: &[BranchReport], format: &ReportFormat) -> Option<String> {
    let first = branches.first()?;
    let mut table = Table::new(&["NOT MERGED", "COMMITS", "SIZE", "MERGE IT WITH"]);
    for branch in branches {
        let merge = match (branch.commits, branch.conflicts.as_slice()) {
            (0, _) => String::new(),
            (_, []) => format!("git merge {}", branch.from),
            (_, files) => format!("git merge {}  (conflicts: {})", branch.from, files.join(", ")),
        };
        let files = if branch.uncommitted == 1 { "file" } else { "files" };
        let open = format!("{} {files} not committed", branch.uncommitted);
        let open = (branch.uncommitted > 0).then_some(open);
        let size = [Some(branch.size.clone()), open].into_iter().flatten();
        let size: Vec<String> = size.filter(|part| !part.is_empty()).collect();
        table.row(vec![
            tinted(Tint::Bold, branch.name.as_str()),
            cell(branch.commits.to_string()),
            cell(size.join("; ")),
            cell(merge),
        ]);
    }
    let width = format.width.unwrap_or(usize::MAX);
    let table = table.render_within(width, &[], &["SIZE", "MERGE IT WITH"], format.paint);
    let review = format!("to review one first: git diff {}...{}", first.into, first.from);
    Some(format!("{table}\n{}", format.paint.put(Tint::Dim, &text::line(&review))))
}

/// Formats what the members have used, if their programs report it.
fn usage(report: &Report, format: &ReportFormat) -> Option<String> {
    let total = report.usage?;
    let mut table = Table::new(&["USAGE", "TOKENS", "CACHED", "COST"]);
    let mut row = |name: Cell, usage: UsageTotal| {
        table.row(vec![
            name,
            cell(usage::count(usage.tokens)),
            cell(usage::count(usage.usage.cached_input)),
            maybe(usage.cost_word()),
        ]);
    };
    let used = report.members.iter().filter_map(|member| Some((member, member.usage?)));
    used.for_each(|(member, usage)| row(tinted(Tint::Bold, member.name.as_str()), usage));
    row(cell("total"), total);
    Some(table.render_within(format.width.unwrap_or(usize::MAX), &["CACHED"], &[], format.paint))
}

/// Formats the findings about the shutdown; returns `None` if there are none.
pub(crate) fn deviations(found: &[ShutdownFinding], paint: Paint) -> Option<String> {
    let line = |deviation: &ShutdownFinding| {
        let name = paint.put(Tint::Bold, deviation.name.as_str());
        format!("\n  {name}: {}", text::line(&deviation.text))
    };
    let lines: String = found.iter().map(line).collect();
    (!found.is_empty()).then(|| format!("{}{lines}", paint.put(Tint::Warn, "not as agreed:")))
}

fn headline(report: &Report, format: &ReportFormat) -> String {
    let paint = format.paint;
    let count = |state| report.tasks.iter().filter(|t| t.state == state).count();
    let counted = [
        (count(TaskState::Completed), "completed"),
        (count(TaskState::Failed), "failed"),
        (count(TaskState::Cancelled), "cancelled"),
        (count(TaskState::Pending) + count(TaskState::Blocked), "not begun"),
        (
            count(TaskState::InProgress) + count(TaskState::Stopping) + count(TaskState::Stale),
            "not finished",
        ),
        (count(TaskState::InReview), "in review"),
    ];
    let counts = count_list(&counted);
    let tasks = if counts.is_empty() { "no tasks".to_owned() } else { counts };
    let (team, took) = (report.team.to_string(), format!("in {}", span(report.elapsed_ms)));
    let used = team.chars().count() + tasks.len() + took.len() + 4;
    let gap = if format.width.is_some_and(|width| used > width) { "\n" } else { "  " };
    let tint = if report.success { Tint::Good } else { Tint::Bad };
    format!("{}  {}{gap}{took}", paint.put(Tint::Bold, &team), paint.put(tint, &tasks))
}

fn members<'a>(members: impl Iterator<Item = &'a MemberReport>, format: &ReportFormat) -> String {
    let mut table = Table::new(&[
        "MEMBER", "STATE", "PROFILE", "BACKEND", "SHUTDOWN", "EXIT", "TASKS", "REASON",
    ]);
    for member in members {
        table.row(vec![
            tinted(Tint::Bold, member.name.as_str()),
            state_cell(&member.state.doing),
            cell(&member.profile),
            cell(member.backend.as_str()),
            maybe(member.shutdown.map(|s| s.as_str())),
            maybe(member.exit_code.map(|c| c.to_string())),
            cell(member.tasks.to_string()),
            reason_cell(&member.state),
        ]);
    }
    let spare = ["PROFILE", "BACKEND", "TASKS", "SHUTDOWN", "EXIT"];
    table.render_within(format.width.unwrap_or(usize::MAX), &spare, &["REASON"], format.paint)
}

fn tasks(tasks: &[TaskReport], format: &ReportFormat) -> String {
    let mut table = Table::new(&["TASK", "SUBJECT", "OUTCOME", "BY", "TIME"]);
    let mut sorted: Vec<&TaskReport> = tasks.iter().collect();
    sorted.sort_by_key(|task| rank(task.state));
    let completed = tasks.iter().filter(|task| task.state == TaskState::Completed).count();
    let hidden = completed.saturating_sub(COMPLETED);
    for task in sorted.iter().take(sorted.len() - hidden) {
        table.row(vec![
            cell(format!("#{}", task.id)),
            cell(text::short(&task.subject, SUBJECT)),
            tinted(task_mark(task.state).1, outcome(task)),
            maybe(task.by.as_deref()),
            maybe(task.elapsed_ms.map(span)),
        ]);
    }
    let more = match hidden {
        0 => String::new(),
        hidden => format.paint.put(Tint::Dim, &format!("\n… and {hidden} more completed")),
    };
    let width = format.width.unwrap_or(usize::MAX);
    table.render_within(width, &["BY", "TIME"], &["SUBJECT"], format.paint) + &more
}

/// Sort key of tasks: failures first, completed tasks last.
fn rank(state: TaskState) -> u8 {
    match state {
        TaskState::Failed => 0,
        TaskState::InProgress | TaskState::Stopping | TaskState::InReview | TaskState::Stale => 1,
        TaskState::Pending | TaskState::Blocked => 2,
        TaskState::Cancelled => 3,
        TaskState::Completed => 4,
    }
}

fn outcome(task: &TaskReport) -> String {
    match (task.state, task.exit_code) {
        (TaskState::Pending, _) if task.reason.is_some() => "given back".to_owned(),
        (TaskState::Pending, _) => "not begun".to_owned(),
        (TaskState::Blocked, _) => format!("blocked by {}", ids(&task.blocked_by)),
        (TaskState::InProgress | TaskState::Stopping | TaskState::Stale, _) => {
            "not finished".to_owned()
        }
        (TaskState::Failed, Some(code)) => format!("failed, exit {code}"),
        (
            TaskState::InReview | TaskState::Completed | TaskState::Failed | TaskState::Cancelled,
            _,
        ) => task_word(task.state).to_owned(),
    }
}

pub(crate) fn ids(list: &[TaskId]) -> String {
    list.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

fn failure(task: &TaskReport, paint: Paint) -> String {
    let code = task.exit_code.map(|c| format!(" with exit code {c}")).unwrap_or_default();
    let reason = task.reason.as_ref().map(|why| format!(": {}", text::line(why)));
    let (id, subject) = (task.id, text::short(&task.subject, SUBJECT));
    let head = format!("#{id} {subject} failed{code}{}", reason.unwrap_or_default());
    with_last_lines(&head, task.tail.as_deref(), paint)
}

/// Formats a failure with the last lines of output, if there are any.
fn with_last_lines(head: &str, tail: Option<&str>, paint: Paint) -> String {
    let tail = tail.map(|t| text::block(&text::last_lines(t, TAIL))).unwrap_or_default();
    let lines = tail.lines().map(|line| format!("\n  {line}")).collect::<String>();
    let ending = if lines.is_empty() { "" } else { "; its last lines:" };
    format!("{}{ending}{lines}", paint.put(Tint::Bad, head))
}

/// Formats the result of a task, and its output.
fn found(task: &TaskReport, format: &ReportFormat) -> Option<String> {
    let parts = [task.result.as_deref(), task.tail.as_deref()].into_iter().flatten();
    let printed = parts.collect::<Vec<_>>().join("\n");
    if printed.trim().is_empty() {
        return None;
    }
    let head = format!("#{} {}", task.id, text::short(&task.subject, SUBJECT));
    let head = format.paint.put(Tint::Bold, &head);
    let room = format.width.map_or(usize::MAX - 1, |width| width.saturating_sub(2));
    let lines = text::block(&printed);
    let lines =
        lines.lines().map(|line| format!("\n  {}", text::short(line, room))).collect::<String>();
    Some(format!("{head}{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shown_state;
    use model::decisions::request::WorkLeft;
    use model::id::{MemberName, TeamName};
    use model::members::need::Need;
    use model::members::placement::BackendKind;
    use ops::members::status::ShownState;

    fn task(id: u64, state: TaskState) -> TaskReport {
        TaskReport {
            id: TaskId(id),
            key: None,
            subject: format!("do {id}"),
            state,
            by: None,
            exit_code: None,
            elapsed_ms: None,
            reason: None,
            result: None,
            tail: None,
            blocked_by: Vec::new(),
        }
    }

    fn whole(members: Vec<MemberReport>, tasks: Vec<TaskReport>) -> Report {
        let team = TeamName::new("checks").expect("name");
        Report {
            team,
            success: false,
            elapsed_ms: 12_300,
            members,
            tasks,
            deviations: Vec::new(),
            branches: Vec::new(),
            usage: None,
        }
    }

    fn format(width: Option<usize>) -> ReportFormat {
        ReportFormat {
            paint: Paint { on: false },
            width,
            more: Some("see more: phalanx task get 2".to_owned()),
        }
    }

    fn ended(state: MemberState, reason: Option<&str>) -> ShownState {
        shown_state(Doing::Ended(state), reason)
    }

    fn ada() -> MemberReport {
        MemberReport {
            name: MemberName::new("ada").expect("name"),
            profile: "worker".to_owned(),
            backend: BackendKind::Pty,
            state: ended(MemberState::Completed, None),
            shutdown: Some(ShutdownOutcome::Closed),
            work_left: WorkLeft::default(),
            exit_code: Some(0),
            tail: None,
            tasks: 2,
            usage: None,
        }
    }

    #[test]
    fn report_lists_failed_and_unstarted_tasks() {
        let done = TaskReport {
            by: Some("ada".to_owned()),
            exit_code: Some(0),
            elapsed_ms: Some(2_100),
            ..task(1, TaskState::Completed)
        };
        let broken = TaskReport {
            exit_code: Some(7),
            reason: None,
            tail: Some("a\nb\u{1b}[2J\n\n".to_owned()),
            ..task(2, TaskState::Failed)
        };
        let never = TaskReport { blocked_by: vec![TaskId(2)], ..task(3, TaskState::Blocked) };
        let whole = whole(vec![ada()], vec![done, broken, never]);
        assert_eq!(
            report(&whole, &format(None)),
            "checks  1 completed, 1 failed, 1 not begun  in 12.3s\n\n\
             TASK  SUBJECT  OUTCOME         BY   TIME\n\
             #2    do 2     failed, exit 7\n\
             #3    do 3     blocked by #2\n\
             #1    do 1     completed       ada  2.1s\n\n\
             #2 do 2 failed with exit code 7; its last lines:\n  a\n  b\u{241b}[2J\n\n\
             see more: phalanx task get 2"
        );
    }

    #[test]
    fn members_are_listed_with_their_assessment_if_they_did_not_end_well() {
        let named = |name: &str| MemberName::new(name).expect("name");
        let killed = ended(MemberState::Killed, Some("it was killed"));
        let killed = MemberReport { name: named("ben"), state: killed, exit_code: None, ..ada() };
        let asks = shown_state(Doing::Waiting(Need::Permission), Some("Bash: ls"));
        let asks = MemberReport { name: named("cleo"), state: asks, exit_code: None, ..ada() };
        let alone = MemberReport { name: named("dan"), shutdown: None, ..ada() };
        let members = vec![ada(), killed, asks, alone];
        let text =
            report(&whole(members.clone(), vec![task(1, TaskState::Pending)]), &format(None));
        let parts: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(
            parts[1],
            "MEMBER  STATE          PROFILE  BACKEND  SHUTDOWN  TASKS  REASON\n\
             ben     killed         worker   pty      closed    2      it was killed\n\
             cleo    waits for you  worker   pty      closed    2      permission: Bash: ls"
        );
        assert_eq!(parts[2], "left on their own: dan");
        // A report without tasks names all members.
        let text = report(&whole(members, Vec::new()), &format(None));
        assert!(text.contains("\n\nleft on their own: dan; ended as agreed: ada\n\n"), "{text}");
        let many = (0..30).map(|n| MemberReport { name: named(&format!("m-{n}")), ..ada() });
        let text = report(&whole(many.collect(), Vec::new()), &format(Some(40)));
        assert!(text.contains("\n\nended as agreed: m-0, m-1, m-2, m-3, m-…\n"), "{text}");
    }

    #[test]
    fn last_lines_of_a_failed_member_are_shown() {
        let failed = MemberReport {
            state: ended(MemberState::Failed, Some("exited with code 7 after 50 ms: b\u{1b}[2J")),
            shutdown: None,
            exit_code: Some(7),
            tail: Some("a\nb\u{1b}[2J\n".to_owned()),
            ..ada()
        };
        let text = report(&whole(vec![failed], Vec::new()), &format(None));
        assert!(text.contains("failed  worker   pty      7     2      exited with"), "{text}");
        assert!(
            text.contains("\n\nada failed; its last lines:\n  a\n  b\u{241b}[2J\n\n"),
            "{text}"
        );
    }

    #[test]
    fn output_of_a_task_with_show_output_is_included() {
        let shown = TaskReport {
            reason: None,
            tail: Some("A 1\nB \u{1b}2\n".to_owned()),
            ..task(1, TaskState::Completed)
        };
        let text = report(
            &whole(vec![ada()], vec![shown.clone()]),
            &ReportFormat { more: None, ..format(None) },
        );
        assert!(text.ends_with("\n\n#1 do 1\n  A 1\n  B \u{241b}2"), "{text}");
        let narrow = report(&whole(vec![ada()], vec![shown]), &format(Some(4)));
        assert!(narrow.contains("\n  A…\n  B…\n"), "{narrow}");
    }

    #[test]
    fn many_completed_tasks_are_counted_and_lines_fit() {
        let tasks = (1..=30).map(|id| TaskReport {
            subject: "Many words that a narrow terminal has no room for".to_owned(),
            by: Some("ada".to_owned()),
            elapsed_ms: Some(2_100),
            ..task(id, if id == 30 { TaskState::Failed } else { TaskState::Completed })
        });
        let whole = whole(vec![ada()], tasks.collect());
        let text = report(&whole, &ReportFormat { more: None, ..format(Some(40)) });
        assert!(text.starts_with("checks  29 completed, 1 failed  in 12.3s\n\n"), "{text}");
        let table = text.split("\n\n").nth(1).expect("a table");
        assert_eq!(table.lines().count(), 1 + 1 + COMPLETED + 1, "{table}");
        assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("#30")), "{table}");
        assert!(table.ends_with("\n… and 19 more completed"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 40), "{table}");
    }
}
