//! Draws the list of works, with the details of the selected one beside or below it.

use diff::cells::{fill, put};
use diff::glyph::{cut, cut_start, safe};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::data::{ListedWork, SeenWork, WorkList};
use super::object::{files, short};
use super::paint::{border, rows_of, write};
use super::state::ReviewScreen;
use crate::dashboard::Tone;
use model::id::MemberName;
use ops::review::checks::WorkCheck;
use ops::review::overview::{CommentCounts, Overlap, WaitingWork};

/// From this width on, the details have a box beside the list.
const BOX_FROM: u16 = 110;
/// From this height on, the details have rows below the list.
const DETAILS_FROM: u16 = 12;
/// Rows of the details below the list.
const DETAILS: u16 = 5;
/// Columns of all cells but that of the task.
const FIXED: usize = 2 + 11 + 12 + 6 + 7 + 7 + 9 + 10;

pub(super) fn draw(screen: &mut ReviewScreen, area: Rect, buffer: &mut Buffer) {
    draw_title(screen, Rect { height: 1.min(area.height), ..area }, buffer);
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
    if area.height < 3 {
        return;
    }
    let Some(list) = screen.list.clone() else {
        let words = match &screen.list_problem {
            Some(problem) => format!("the works cannot be read: {problem} (R reads again)"),
            None => "reading the works…".to_owned(),
        };
        let style = screen.theme.style(Tone::Dim);
        for (y, row) in (body.top()..body.bottom()).zip(rows_of(&words, body.width.into())) {
            put(buffer, body.x + 1, y, body.width.into(), &row, style);
        }
        return;
    };
    let details = screen.position().map(|at| details(&list, &list.works[at]));
    let details = details.unwrap_or_default();
    let (rows, details_at) = if area.width >= BOX_FROM {
        let width = (area.width / 3).clamp(44, 70);
        let beside = Rect { x: body.right() - width, width, ..body };
        let title = screen.selected.as_ref().map_or("", |member| member.as_str());
        let inner = border(beside, title, screen.theme, buffer);
        (Rect { width: body.width - width, ..body }, inner)
    } else if area.height >= DETAILS_FROM {
        let height = DETAILS.min(body.height / 3) + 1;
        let below = Rect { y: body.bottom() - height, height, ..body };
        let rule = screen.theme.border().horizontal_top.repeat(below.width.into());
        put(buffer, below.x, below.y, below.width.into(), &rule, screen.theme.style(Tone::Dim));
        let inner =
            Rect { x: below.x + 1, y: below.y + 1, width: below.width - 1, height: height - 1 };
        (Rect { height: body.height - height, ..body }, inner)
    } else {
        (body, Rect { height: 0, ..body })
    };
    draw_works(screen, &list, rows, buffer);
    let wrapped = details.iter().flat_map(|(words, tone)| {
        rows_of(words, details_at.width.into()).into_iter().map(move |row| (row, *tone))
    });
    for (y, (row, tone)) in (details_at.top()..details_at.bottom()).zip(wrapped) {
        let style = screen.theme.style(tone);
        put(buffer, details_at.x, y, details_at.width.into(), &row, style);
    }
}

fn draw_title(screen: &ReviewScreen, area: Rect, buffer: &mut Buffer) {
    let style = screen.theme.style(Tone::Strong);
    let Some(list) = &screen.list else {
        write(buffer, area, &format!(" Review · team {}", screen.team), style);
        return;
    };
    let into = safe(list.into.as_bytes());
    let left = format!(" Review · team {} · into {into} {}", screen.team, short(&list.main));
    let in_review = list.works.iter().filter(|work| is_in_review(work)).count();
    let mut right = format!("{in_review} in review");
    let answered: usize = list.works.iter().map(|work| work.comments.answered).sum();
    if answered > 0 {
        right.push_str(&format!(" · {answered} answered"));
    }
    if !list.overlaps.is_empty() {
        let plural = if list.overlaps.len() == 1 { "" } else { "s" };
        right.push_str(&format!(" · {} overlap{plural}", list.overlaps.len()));
    }
    let room = usize::from(area.width);
    write(buffer, area, &cut(&left, room.saturating_sub(right.width() + 2)), style);
    if right.width() + 1 < room {
        let x = area.right() - 1 - u16::try_from(right.width()).unwrap_or(0);
        put(buffer, x, area.y, right.width(), &right, screen.theme.style(Tone::Plain));
    }
}

fn is_in_review(work: &ListedWork) -> bool {
    work.task.as_ref().is_some_and(|task| task.is_in_review)
}

fn draw_works(screen: &mut ReviewScreen, list: &WorkList, area: Rect, buffer: &mut Buffer) {
    let theme = screen.theme;
    let width = usize::from(area.width);
    let head =
        row_of(["member", "task", "change", "files", "commit", "seen", "comments", "into"], width);
    put(buffer, area.x, area.y, width, &head, theme.style(Tone::Dim));
    let rows = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if list.works.is_empty() {
        let words = match list.into.as_str() {
            "" => " no member has a worktree; `phalanx spawn NAME --worktree` gives one",
            _ => " nothing waits for a review",
        };
        write(buffer, Rect { height: 1.min(rows.height), ..rows }, words, theme.style(Tone::Dim));
        return;
    }
    let at = screen.position().unwrap_or(0);
    let height = usize::from(rows.height).max(1);
    screen.first = screen.first.min(at).max((at + 1).saturating_sub(height));
    screen.first = screen.first.min(list.works.len().saturating_sub(height));
    for (y, (number, work)) in
        (rows.top()..rows.bottom()).zip(list.works.iter().enumerate().skip(screen.first))
    {
        let row = Rect { y, height: 1, ..rows };
        let text = match &work.changes {
            Ok(changes) => work_row(list, work, changes, width),
            Err(problem) => {
                let member = cell(work.member.as_str(), 11);
                cut(&format!("  {member}cannot be read: {}", safe(problem.as_bytes())), width)
            }
        };
        let tone = match work.seen {
            _ if work.changes.is_err() => Tone::Bad,
            SeenWork::All => Tone::Dim,
            SeenWork::Never | SeenWork::Earlier => Tone::Plain,
        };
        let is_selected = number == at;
        let style = if is_selected { theme.selected(true) } else { theme.style(tone) };
        fill(buffer, row, &text, style);
        if is_selected {
            put(buffer, row.x, y, 1, "▶", style);
        }
    }
}

fn work_row(list: &WorkList, work: &ListedWork, changes: &WaitingWork, width: usize) -> String {
    let task = work.task.as_ref();
    let mark = |is_in_review| if is_in_review { "?" } else { "" };
    let task = task.map(|task| format!("{}#{} {}", mark(task.is_in_review), task.id, task.subject));
    let change = match (changes.added, changes.removed) {
        (0, 0) if changes.files == 0 => "–".to_owned(),
        (added, removed) => format!("+{added} −{removed}"),
    };
    let uncommitted = match changes.uncommitted {
        0 => String::new(),
        files => format!("+{files}"),
    };
    row_of(
        [
            work.member.as_str(),
            &task.unwrap_or_default(),
            &change,
            &changes.files.to_string(),
            &format!("{}{uncommitted}", changes.commits),
            match work.seen {
                SeenWork::Never => "○ none",
                SeenWork::Earlier => "● new",
                SeenWork::All => "✓ all",
            },
            &comment_counts(work.comments),
            &condition(list, work, changes),
        ],
        width,
    )
}

/// Returns a row with these cells. The task gets what the others leave; on a narrow screen, cells
/// at the right are cut.
fn row_of(cells: [&str; 8], width: usize) -> String {
    let [member, task, change, files, commits, seen, comments, into] = cells;
    let room = width.saturating_sub(FIXED);
    let task = if room < 8 { String::new() } else { cell(task, room) };
    let row = format!(
        "  {}{task}{}{}{}{}{}{}",
        cell(member, 11),
        cell(change, 12),
        cell(files, 6),
        cell(commits, 7),
        cell(seen, 7),
        cell(comments, 9),
        cell(into, 10),
    );
    cut(&row, width)
}

/// Returns a text of exactly `width` columns, the last of which is empty.
fn cell(text: &str, width: usize) -> String {
    let text = cut(&safe(text.as_bytes()), width - 1);
    let missing = width - text.width();
    text + &" ".repeat(missing)
}

fn comment_counts(counts: CommentCounts) -> String {
    let part = |count: usize, mark: &str| (count > 0).then(|| format!("{count}{mark}"));
    let parts = [part(counts.drafts, "✎"), part(counts.answered, "↩"), part(counts.sent, "→")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "–".to_owned() } else { parts.join(" ") }
}

fn overlaps<'l>(
    list: &'l WorkList,
    work: &'l ListedWork,
) -> impl Iterator<Item = (&'l str, &'l Overlap)> {
    list.overlaps.iter().filter_map(|overlap| {
        let other = if overlap.first == work.member {
            &overlap.second
        } else if overlap.second == work.member {
            &overlap.first
        } else {
            return None;
        };
        Some((other.as_str(), overlap))
    })
}

/// Returns the condition of a work in a few words: the worst comes first.
fn condition(list: &WorkList, work: &ListedWork, changes: &WaitingWork) -> String {
    if !changes.conflicts.is_empty() {
        return format!("✗ {}", files(changes.conflicts.len()));
    }
    if let Some((other, _)) = overlaps(list, work).find(|(_, o)| !o.conflicts.is_empty()) {
        return format!("⚠ {other}");
    }
    if changes.commits == 0 { "–".to_owned() } else { "clean".to_owned() }
}

/// Returns the details of a work.
fn details(list: &WorkList, work: &ListedWork) -> Vec<(String, Tone)> {
    let mut lines = Vec::new();
    let changes = match &work.changes {
        Ok(changes) => changes,
        Err(problem) => {
            lines.push((format!("{}: {problem}", work.from), Tone::Bad));
            return lines;
        }
    };
    let ids = format!("{} → {}", short(&changes.base), short(&changes.head));
    let from = cut_start(&safe(work.from.as_bytes()), 40);
    let host = work.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
    let uncommitted = match changes.uncommitted {
        0 => String::new(),
        count => format!(" + {} not committed", files(count)),
    };
    lines.push((format!("{from}{host} · {ids}{uncommitted}"), Tone::Strong));
    if let Some(task) = &work.task {
        let (state, tone) =
            if task.is_in_review { (" · in review", Tone::Waiting) } else { ("", Tone::Plain) };
        lines.push((format!("#{} {}{state}", task.id, task.subject), tone));
    }
    let CommentCounts { drafts, sent, answered } = work.comments;
    let drafts_word = if drafts == 1 { "draft" } else { "drafts" };
    let counts = [(drafts, drafts_word), (answered, "answered"), (sent, "not answered")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: String = counts.map(|(count, words)| format!(" · {count} {words}")).collect();
    let seen = match work.seen {
        SeenWork::Never => "you have not looked yet",
        SeenWork::Earlier => "changed since you looked",
        SeenWork::All => "you have seen all of it",
    };
    lines.push((format!("{seen}{counts}"), Tone::Plain));
    if !work.passed_by.is_empty() {
        let names: Vec<&str> = work.passed_by.iter().map(MemberName::as_str).collect();
        lines.push((format!("passed by {}", names.join(", ")), Tone::Good));
    }
    if !work.checks.is_empty() {
        let words: Vec<String> = work.checks.iter().map(WorkCheck::words).collect();
        let has_failed =
            work.checks.iter().any(|check| check.last.is_some() && !check.has_passed());
        let tone = if has_failed { Tone::Bad } else { Tone::Plain };
        lines.push((format!("checks: {}", words.join(", ")), tone));
    }
    if !changes.conflicts.is_empty() {
        let names = changes.conflicts.join(", ");
        lines.push((format!("conflicts with {}: {names}", list.into), Tone::Bad));
    }
    for (other, overlap) in overlaps(list, work) {
        lines.push(overlap_words(&format!("overlaps with {other}"), overlap));
    }
    lines
}

fn overlap_words(who: &str, overlap: &Overlap) -> (String, Tone) {
    if overlap.conflicts.is_empty() {
        (format!("{who}: {}", overlap.files.join(", ")), Tone::Plain)
    } else {
        (format!("{who}: conflict in {}", overlap.conflicts.join(", ")), Tone::Waiting)
    }
}
