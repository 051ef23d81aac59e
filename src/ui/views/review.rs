//! Reviews as text: the comments on the work of a member.

use model::review::{CommentState, PlaceNow, PlacedComment, ReviewComment};
use model::team::worktree::short_commit;
use model::text;
use model::time::{self, Timestamp};
use ops::review::checks::{CheckedWork, WorkCheck};
use ops::review::conflicts::WorkConflicts;
use ops::review::decide::DropReport;
use ops::review::overview::{CommentCounts, ReviewOverview, ReviewRow};
use ops::review::page::ReviewPage;
use ops::review::send::ReviewReport;
use ops::review::tasks::TaskInReview;

use crate::paint::{Paint, Tint};
use crate::table::{Cell, Table, cell, maybe, tinted};

/// Characters of the subject of a task.
const SUBJECT: usize = 40;

/// Formats the work that waits for a review as a table, and what two members have both changed.
pub fn review_overview(overview: &ReviewOverview, now: Timestamp, paint: Paint) -> String {
    let heads =
        ["member", "task", "change", "not committed", "comments", "checks", "merge", "since"];
    let mut table = Table::new(&heads);
    for row in &overview.work {
        let task = row.task.as_ref().map(task_words);
        let comments = comment_words(row);
        let name = cell(row.name.as_str());
        let work = match &row.work {
            Ok(work) => work,
            Err(problem) => {
                let problem = tinted(Tint::Bad, text::line(problem));
                let none = || cell("");
                let comments = cell(comments);
                table.row(vec![
                    name,
                    maybe(task),
                    problem,
                    none(),
                    comments,
                    none(),
                    none(),
                    none(),
                ]);
                continue;
            }
        };
        let change = format!("+{} −{} in {} file(s)", work.added, work.removed, work.files);
        let is_new = row.seen.as_ref().is_none_or(|seen| *seen != work.snapshot);
        let merge = match work.conflicts.len() {
            0 => tinted(Tint::Good, "clean"),
            files => tinted(Tint::Bad, format!("conflicts in {files} file(s)")),
        };
        table.row(vec![
            name,
            maybe(task),
            tinted(if is_new { Tint::Bold } else { Tint::Plain }, change),
            maybe((work.uncommitted > 0).then(|| format!("{} file(s)", work.uncommitted))),
            cell(comments),
            check_cell(&row.checks),
            merge,
            cell(time::ago(now.since(work.since))),
        ]);
    }
    for task in &overview.tasks {
        let owner = cell(text::line(task.owner.as_deref().unwrap_or_default()));
        let none = || cell("");
        let mut row = vec![owner, cell(task_words(task))];
        row.resize_with(heads.len(), none);
        table.row(row);
    }
    let mut lines = vec![table.render(paint)];
    for overlap in &overview.overlaps {
        let (files, words) = match overlap.conflicts.as_slice() {
            [] => (&overlap.files, "both changed, without a conflict,"),
            _ => (&overlap.conflicts, "would conflict in"),
        };
        let files: Vec<String> = files.iter().map(|file| text::line(file)).collect();
        let pair = format!("{} and {}", overlap.first, overlap.second);
        lines.push(format!("{pair}: {words} {}", files.join(", ")));
    }
    lines.join("\n")
}

/// Returns the checks that have not passed; `passed` if all have.
fn check_cell(checks: &[WorkCheck]) -> Cell {
    let failed: Vec<&str> = checks
        .iter()
        .filter(|check| check.last.is_some() && !check.has_passed())
        .map(|check| check.name.as_str())
        .collect();
    if !failed.is_empty() {
        return tinted(Tint::Bad, format!("{} failed", failed.join(", ")));
    }
    let passed = checks.iter().filter(|check| check.has_passed()).count();
    match (passed, checks.len()) {
        (0, _) => cell(""),
        (passed, all) if passed == all => tinted(Tint::Good, "passed"),
        (passed, all) => cell(format!("{passed} of {all} passed")),
    }
}

fn task_words(task: &TaskInReview) -> String {
    format!("#{} {}", task.id, text::short(&task.subject, SUBJECT))
}

/// Returns the numbers of comments, and who has passed the work.
fn comment_words(row: &ReviewRow) -> String {
    let passed = row.passed_by.iter().map(|name| format!("passed by {name}"));
    let counts = Some(comment_counts(&row.comments)).filter(|counts| !counts.is_empty());
    counts.into_iter().chain(passed).collect::<Vec<_>>().join(", ")
}

/// Returns the numbers of comments: `2 drafts, 1 answered`.
fn comment_counts(counts: &CommentCounts) -> String {
    let all = [(counts.drafts, "drafted"), (counts.sent, "sent"), (counts.answered, "answered")];
    let some = all.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Formats what there is to review of a member, and the comments on it.
pub fn review_page(page: &ReviewPage, paint: Paint) -> String {
    let reviewed = &page.reviewed;
    let mut lines = vec![format!(
        "{} · {} · {} → {}, to be merged into {}",
        reviewed.name,
        text::line(&reviewed.from),
        short_commit(&reviewed.base),
        short_commit(&reviewed.head),
        text::line(&reviewed.into)
    )];
    if let Some(task) = &page.task {
        lines.push(format!("task #{} \"{}\" is in review", task.id, text::line(&task.subject)));
    }
    if let Some(request) = &page.pull_request {
        let state: &str = request.state.into();
        lines.push(format!("{} is {state}: {}", request.label(), text::line(&request.url)));
    }
    if reviewed.uncommitted > 0 {
        lines.push(format!("{} file(s) are not committed", reviewed.uncommitted));
    }
    lines.extend(page.checks.iter().map(|check| format!("check {}", check.words())));
    lines.extend(page.passed_by.iter().map(|name| format!("passed by {name}")));
    for nested in &reviewed.nested {
        lines.push(format!("{} is a repository of its own and is left out", text::line(nested)));
    }
    lines.extend(page.files.iter().map(|file| {
        let from = file.old_path.as_ref().map(|old| format!(", was {}", text::line(old)));
        let path = text::line(&file.path);
        format!("  {path}  +{} −{}{}", file.added, file.removed, from.unwrap_or_default())
    }));
    if page.files.is_empty() {
        lines.push("no changes".to_owned());
    }
    for PlacedComment { comment, now } in &page.comments {
        lines.push(String::new());
        lines.push(comment_text(comment, Some(*now), paint));
    }
    lines.join("\n")
}

/// Formats comments, each with its code and its answer.
pub fn review_comments(comments: &[ReviewComment], paint: Paint) -> String {
    let blocks = comments
        .iter()
        .map(|comment| format!("{}\n{}", comment.member, comment_text(comment, None, paint)));
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// Formats a review that was sent.
pub fn sent_review(report: &ReviewReport) -> String {
    let ids: Vec<String> = report.comments.iter().map(ToString::to_string).collect();
    let returned = report.returned.map(|task| format!("; task {task} is sent back"));
    format!("sent {} to {}{}", ids.join(", "), report.member, returned.unwrap_or_default())
}

/// Formats checks that have run, with the output of those that have failed.
pub fn checked_work(checked: &CheckedWork) -> String {
    let mut lines = Vec::new();
    for check in &checked.checks {
        let took = check.last.as_ref().map(|run| format!(" ({} ms)", run.took_ms));
        lines.push(format!("{}{}", check.words(), took.unwrap_or_default()));
        let failed = check.last.as_ref().filter(|run| !run.end.has_passed());
        let output = failed.map(|run| text::block(&run.output)).unwrap_or_default();
        lines.extend(output.lines().map(|line| format!("  {line}")));
    }
    if checked.changed {
        lines.push(format!(
            "the work of {} has changed meanwhile, so that the results do not count",
            checked.name
        ));
    }
    lines.join("\n")
}

/// Formats work that was dropped.
pub fn dropped_work(report: &DropReport) -> String {
    let task = report.task.map(|task| format!("task #{task} is cancelled; ")).unwrap_or_default();
    format!(
        "{task}the work of {} is off the list until it changes; its commits stay on {}",
        report.name,
        text::line(&report.from)
    )
}

/// Formats the conflicts of a member's work with the main branch, with their lines.
pub fn work_conflicts(found: &WorkConflicts) -> String {
    let (from, into) = (text::line(&found.from), text::line(&found.into));
    if found.files.is_empty() {
        return format!("{from} has no conflicts with {into}");
    }
    let mut lines = vec![format!("{from} conflicts with {into} in {} file(s)", found.files.len())];
    for file in &found.files {
        lines.push(String::new());
        lines.push(text::line(&file.path));
        if file.hunks.is_empty() {
            lines.push(format!("  {}", text::line(&file.reason)));
        }
        for (at, hunk) in file.hunks.iter().enumerate() {
            lines.extend((at > 0).then(|| "  ⋯".to_owned()));
            lines.extend(hunk.lines.iter().map(|line| format!("  {line}")));
        }
    }
    lines.join("\n")
}

fn comment_text(comment: &ReviewComment, now: Option<PlaceNow>, paint: Paint) -> String {
    let state = comment.state();
    let tint = match state {
        CommentState::Draft => Tint::Warn,
        CommentState::Sent => Tint::Plain,
        CommentState::Answered => Tint::Good,
        CommentState::Resolved => Tint::Dim,
    };
    let words = match now {
        Some(PlaceNow::Same { first, .. }) if moved(comment, first) => {
            format!(", now line {first}")
        }
        Some(PlaceNow::Changed { first, .. }) => format!(", changed since, now line {first}"),
        Some(PlaceNow::Gone) => ", no longer there".to_owned(),
        Some(PlaceNow::Same { .. } | PlaceNow::Fixed) | None => String::new(),
    };
    let kind: &str = comment.kind.into();
    let mut lines = vec![format!(
        "[{}] {kind} · {}{words} · {} · {}",
        comment.id,
        comment.place_words(),
        paint.put(tint, <&str>::from(state)),
        comment.by
    )];
    let quoted = comment.place.as_ref().and_then(|place| place.lines.as_ref());
    let quote = quoted.into_iter().flat_map(|lines| &lines.quote);
    lines.extend(quote.map(|line| format!("    {}", paint.put(Tint::Dim, &text::line(line)))));
    lines.extend(text::block(&comment.text).lines().map(|line| format!("  {line}")));
    if let Some(answer) = &comment.answer {
        let kind: &str = answer.kind.into();
        let separator = if answer.text.is_empty() { "" } else { ": " };
        let words = text::block(&answer.text);
        let mut answered = words.lines();
        let first = answered.next().unwrap_or_default();
        lines.push(format!("  → {} {kind}{separator}{first}", comment.member));
        lines.extend(answered.map(|line| format!("    {line}")));
    }
    lines.join("\n")
}

fn moved(comment: &ReviewComment, first: u32) -> bool {
    let lines = comment.place.as_ref().and_then(|place| place.lines.as_ref());
    lines.is_some_and(|lines| lines.first != first)
}
