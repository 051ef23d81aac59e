//! The panels of requests, messages and events.

use std::collections::{BTreeSet, VecDeque};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Panel;
use super::keys::KeyCommand;
use super::members::{age, first_of};
use super::scroll::{DrawnPart, bounded};
use super::state::Dashboard;
use super::theme::{Theme, Tone};
use super::words::{draw_note, fit, painted, wrap};
use crate::decisions::request_page::request_text;
use crate::views::events::{EventFormat, event_lines};
use crate::{Paint, message};
use model::mail::envelope::Envelope;
use model::team::event::{Event, EventKind};
use model::text;
use model::time::Timestamp;
use ops::decisions::requests::Shown;
use ops::views::snapshot::SentMessage;

/// Draws the open requests, and below them the selected one in full as far as it fits.
pub(super) fn draw_requests(
    dashboard: &Dashboard,
    area: Rect,
    buffer: &mut Buffer,
    now: Timestamp,
) {
    let theme = dashboard.theme;
    let requests = dashboard.requests();
    if requests.is_empty() {
        let words = dashboard.words_of_empty("no open requests".to_owned(), "no request matches");
        return draw_note(&words, area, buffer, theme);
    }
    let selected = dashboard.shown_request();
    let rows = request_rows(requests.len(), area.height);
    let first = first_request(dashboard, rows);
    let mut y = area.y;
    for one in requests.iter().skip(first).take(rows) {
        let since = one.age_ms + now.since(dashboard.read_at());
        buffer.set_line(area.x, y, &request_line(one, since, area.width, theme), area.width);
        if selected.is_some_and(|selected| selected.request_id == one.request_id) {
            let row = Rect { y, height: 1, ..area };
            buffer.set_style(row, theme.selected(dashboard.focus == Panel::Requests));
        }
        y += 1;
    }
    let rest = usize::from(area.bottom().saturating_sub(y));
    if rest < 3 {
        return;
    }
    let rule = theme.either("─", "-").repeat(area.width.into());
    buffer.set_line(area.x, y, &Line::styled(rule, theme.style(Tone::Dim)), area.width);
    y += 1;
    let Some(selected) = selected else {
        let member = dashboard.member.as_ref().map(ToString::to_string).unwrap_or_default();
        let below = Rect { y, height: 1, ..area };
        return draw_note(&format!("{member} has no open request"), below, buffer, theme);
    };
    let lines = request_details(selected, area.width, theme);
    let room = rest - 1;
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    for line in &lines[..shown] {
        buffer.set_line(area.x, y, line, area.width);
        y += 1;
    }
    if shown < lines.len() {
        let words = format!("{} more lines", lines.len() - shown);
        let words = dashboard.keymap.hint(&words, &[(KeyCommand::Open, "")]);
        buffer.set_line(area.x, y, &Line::styled(words, theme.style(Tone::Dim)), area.width);
    }
}

/// Returns the number of rows of the list of requests; their details are below it.
pub(super) fn request_rows(count: usize, height: u16) -> usize {
    match usize::from(height) {
        height @ 0..6 => height,
        height => count.min(height / 3),
    }
}

/// Returns the index of the first request in the list, so that the selected one is visible.
fn first_request(dashboard: &Dashboard, rows: usize) -> usize {
    let at = dashboard.shown_request_index().unwrap_or(0);
    first_of(at, rows, dashboard.requests().len())
}

/// Returns the request in a line of the panel that has `place` with its border.
pub(super) fn request_at(dashboard: &Dashboard, place: Rect, line: usize) -> Option<&Shown> {
    let requests = dashboard.requests();
    let rows = request_rows(requests.len(), place.height.saturating_sub(2));
    let at = first_request(dashboard, rows) + Some(line).filter(|line| *line < rows)?;
    requests.get(at).copied()
}

/// Returns true if the panel that has `place` with its border shows all of the selected request.
pub(super) fn shows_all_of(dashboard: &Dashboard, request: &Shown, place: Rect) -> bool {
    let (width, height) = (place.width.saturating_sub(2), place.height.saturating_sub(2));
    let rows = request_rows(dashboard.requests().len(), height);
    let rest = usize::from(height).saturating_sub(rows);
    rest >= 3 && request_details(request, width, dashboard.theme).len() < rest
}

/// Returns the page of a request without what the list shows: id, kind, member and state.
fn request_details(request: &Shown, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let page = request_text(request, Paint { on: theme.color });
    let lines = page.lines().skip(4).skip_while(|line| line.is_empty());
    lines.flat_map(|line| wrap(painted(line, theme), width.into())).collect()
}

fn request_line(one: &Shown, age_ms: u64, width: u16, theme: Theme) -> Line<'static> {
    let age = age(age_ms);
    let head = format!("{} {}: ", text::line(one.from.as_str()), one.kind);
    let room = usize::from(width).saturating_sub(Span::raw(head.as_str()).width() + age.len() + 1);
    Line::from(vec![
        Span::styled(head, theme.style(Tone::Waiting)),
        Span::raw(fit(&one.summary, room)),
        Span::styled(format!(" {age}"), theme.style(Tone::Dim)),
    ])
}

/// Returns the messages from and to the selected member, or of all members, from the latest on.
fn messages(dashboard: &Dashboard) -> Vec<&SentMessage> {
    let is_shown = |one: &&SentMessage| {
        let (from, to) = (one.envelope.from.as_str(), one.to.as_str());
        let about = dashboard.member.as_ref().is_none_or(|member| {
            dashboard.all_messages || member.as_str() == from || member.as_str() == to
        });
        about && dashboard.passes([from, to, &one.envelope.text])
    };
    let all = dashboard.snapshot.iter().flat_map(|snapshot| snapshot.messages.iter().rev());
    all.filter(is_shown).collect()
}

impl Dashboard {
    /// Notes the lead's unread messages whose beginnings the focused panel shows; `begun` are their
    /// places in [`messages`].
    pub(super) fn note_shown_mail(&mut self, begun: &[usize]) {
        let messages = messages(self);
        let shown = begun.iter().filter_map(|nth| messages.get(*nth));
        let is_unread = |one: &&&SentMessage| one.to.is_lead() && !one.envelope.read;
        let unread: Vec<Envelope> =
            shown.filter(is_unread).map(|one| one.envelope.clone()).collect();
        for envelope in unread {
            if self.shown_mail.insert(envelope.msg_id.clone()) {
                self.unmarked_mail.push(envelope);
            }
        }
    }
}

/// Draws the messages from and to the selected member, or of all members; the latest is last.
pub(super) fn draw_messages(
    dashboard: &Dashboard,
    area: Rect,
    buffer: &mut Buffer,
    now: Timestamp,
) -> DrawnPart {
    let theme = dashboard.theme;
    let shown = messages(dashboard);
    if shown.is_empty() {
        let empty = dashboard.keymap.hint("no messages", &[(KeyCommand::Message, "writes one")]);
        let words = dashboard.words_of_empty(empty, "no message matches");
        draw_note(&words, area, buffer, theme);
    }
    let lines = |one: &&SentMessage| {
        let page = message(&one.envelope, Some(now), Paint { on: theme.color });
        let mut lines = Vec::new();
        for (nth, line) in page.lines().enumerate() {
            let mut line = painted(line, theme);
            if nth == 0 {
                let to = format!(" {} {}", theme.either("→", ">"), text::line(one.to.as_str()));
                line.spans
                    .insert(1.min(line.spans.len()), Span::styled(to, theme.style(Tone::Dim)));
            }
            lines.extend(wrap(line, area.width.into()));
        }
        lines
    };
    let below = dashboard.scrolled.get(&Panel::Messages).copied().unwrap_or(0);
    draw_from_the_end(shown.iter().map(lines), below, area, buffer)
}

/// Draws the events; the latest is last.
pub(super) fn draw_events(
    dashboard: &Dashboard,
    area: Rect,
    buffer: &mut Buffer,
    now: Timestamp,
) -> DrawnPart {
    let theme = dashboard.theme;
    let Some(snapshot) = &dashboard.snapshot else { return DrawnPart::default() };
    let events: &VecDeque<Event> = &snapshot.events;
    let format = EventFormat {
        now,
        absolute: false,
        width: Some(area.width.into()),
        paint: Paint { on: theme.color },
    };
    // Of the progress of a task only the latest report is shown.
    let mut reported = BTreeSet::new();
    let text = |event: &Event| event_lines(std::slice::from_ref(event), format);
    let mut is_shown = |event: &&Event| {
        (event.event != EventKind::TaskProgress || reported.insert(event.task))
            && (dashboard.filter.is_empty() || dashboard.passes([&text(event)]))
    };
    let shown: Vec<&Event> = events.iter().rev().filter(|event| is_shown(event)).collect();
    if shown.is_empty() {
        let words = dashboard.words_of_empty("no events".to_owned(), "no event matches");
        draw_note(&words, area, buffer, theme);
    }
    let lines = shown.iter().map(|event| vec![painted(&text(event), theme)]);
    let below = dashboard.scrolled.get(&Panel::Events).copied().unwrap_or(0);
    draw_from_the_end(lines, below, area, buffer)
}

/// Draws entries that are given from the last to the first, so that at most `below` lines are below
/// the area.
fn draw_from_the_end(
    entries: impl ExactSizeIterator<Item = Vec<Line<'static>>>,
    below: usize,
    area: Rect,
    buffer: &mut Buffer,
) -> DrawnPart {
    let height = usize::from(area.height);
    let count = entries.len();
    // From the last line to the first, each with the number of its entry, counted from the end; no
    // more than can be seen.
    let mut lines: Vec<(usize, Line<'static>)> = Vec::new();
    let mut is_cut = false;
    for (nth, entry) in entries.enumerate() {
        if lines.len() >= below.saturating_add(height) {
            is_cut = true;
            break;
        }
        lines.extend(entry.into_iter().rev().map(|line| (nth, line)));
    }
    let below = bounded(below, height, lines.len());
    is_cut |= lines.len() > height;
    let shown = lines.get(below..).unwrap_or_default();
    let shown = &shown[..shown.len().min(height)];
    for (y, (_, line)) in (area.y..area.bottom()).zip(shown.iter().rev()) {
        buffer.set_line(area.x, y, line, area.width);
    }
    let last = shown.first().filter(|_| is_cut).map(|(nth, _)| format!("{}/{count}", count - nth));
    // The first line of an entry is the last one that was collected of it.
    let is_first = |at: usize| lines.get(at + 1).is_none_or(|(nth, _)| *nth != lines[at].0);
    let begun = (below..below + shown.len()).filter(|at| is_first(*at));
    let begun = begun.map(|at| lines[at].0).collect();
    DrawnPart { position: last, scrolled: below, begun }
}
