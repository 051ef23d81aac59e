//! The panel of the members.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::keys::KeyCommand;
use super::state::{Dashboard, MINUTE_MS};
use super::theme::Tone;
use super::words::{cut, draw_note, fit};
use model::members::assessment::Doing;
use model::time::Timestamp;
use ops::members::status::MemberStatus;

/// Width from which on one row is enough for a member.
const WIDE: u16 = 70;
/// Width from which on the state is shown in words, too.
const WORDY: u16 = 36;

/// Returns the number of rows for each member in a panel of this width, with its border.
pub(super) fn rows_per_member(width: u16) -> usize {
    if width >= WIDE { 1 } else { 2 }
}

/// Returns the index of the first member on display, so that the selected one is visible.
pub(super) fn first_shown(dashboard: &Dashboard, place: Rect) -> usize {
    let rows = usize::from(place.height.saturating_sub(2)) / rows_per_member(place.width);
    first_of(dashboard.member_index().unwrap_or(0), rows, dashboard.members.len())
}

/// Returns the first entry to show of `count`, in `rows` rows with entry `at` in the middle.
pub(super) fn first_of(at: usize, rows: usize, count: usize) -> usize {
    at.saturating_sub(rows / 2).min(count.saturating_sub(rows))
}

/// Draws the members into the inner area of a panel that has `place` with its border.
pub(super) fn draw(
    dashboard: &Dashboard,
    place: Rect,
    inner: Rect,
    buffer: &mut Buffer,
    now: Timestamp,
) {
    let theme = dashboard.theme;
    if dashboard.members.is_empty() {
        let words = if dashboard.snapshot.is_some() {
            let empty = dashboard.keymap.hint("no members", &[(KeyCommand::Spawn, "spawns one")]);
            dashboard.words_of_empty(empty, "no member matches")
        } else {
            "reading the team".to_owned()
        };
        return draw_note(&words, inner, buffer, theme);
    }
    let rows = rows_per_member(place.width);
    let first = first_shown(dashboard, place);
    let mut y = inner.y;
    for name in &dashboard.members[first..] {
        if usize::from(inner.bottom().saturating_sub(y)) < rows.min(inner.height.into()) {
            break;
        }
        let Some(member) = dashboard.member_status(name) else { continue };
        let is_selected = dashboard.member.as_ref() == Some(name);
        let lines = match rows {
            1 => vec![one_row(dashboard, member, inner.width, now)],
            _ => two_rows(dashboard, member, inner.width, now).to_vec(),
        };
        for line in lines {
            if y >= inner.bottom() {
                return;
            }
            buffer.set_line(inner.x, y, &line, inner.width);
            if is_selected && y < inner.bottom() {
                let row = Rect { y, height: 1, ..inner };
                buffer.set_style(row, theme.selected(dashboard.focus == super::Panel::Members));
            }
            y += 1;
        }
    }
}

fn two_rows(
    dashboard: &Dashboard,
    member: &MemberStatus,
    width: u16,
    now: Timestamp,
) -> [Line<'static>; 2] {
    let theme = dashboard.theme;
    let right = right_side(dashboard, member, width >= WORDY, now);
    let (symbol, tone) = theme.member_state(&member.state.doing);
    let room = usize::from(width).saturating_sub(right.width() + 3);
    let name = cut(member.name.as_str(), room);
    let role = member.role.as_deref().filter(|role| *role != "general-purpose").unwrap_or_default();
    let role_room = room.saturating_sub(Span::raw(name.as_str()).width() + 1);
    let role = if role_room >= 4 { cut(role, role_room) } else { String::new() };
    let used = Span::raw(format!("{name} {role}")).width();
    let mut spans = vec![
        Span::styled(format!("{symbol} "), theme.style(tone)),
        Span::styled(name, theme.member(member.color.as_deref())),
        Span::styled(format!(" {role}"), theme.style(Tone::Dim)),
        Span::raw(" ".repeat((room + 1).saturating_sub(used))),
    ];
    spans.extend(right.spans);
    let mut second = vec![Span::raw("  ")];
    second.extend(activity(dashboard, member, usize::from(width).saturating_sub(2)));
    [Line::from(spans), Line::from(second)]
}

fn one_row(
    dashboard: &Dashboard,
    member: &MemberStatus,
    width: u16,
    now: Timestamp,
) -> Line<'static> {
    let theme = dashboard.theme;
    let right = right_side(dashboard, member, true, now);
    let (symbol, tone) = theme.member_state(&member.state.doing);
    let role = member.role.as_deref().filter(|role| *role != "general-purpose").unwrap_or_default();
    let room = usize::from(width).saturating_sub(right.width() + 2 + 15 + 13 + 1);
    let mut spans = vec![
        Span::styled(format!("{symbol} "), theme.style(tone)),
        Span::styled(fit(member.name.as_str(), 14), theme.member(member.color.as_deref())),
        Span::styled(format!(" {}", fit(role, 12)), theme.style(Tone::Dim)),
        Span::raw(" "),
    ];
    let words = activity(dashboard, member, room);
    let used: usize = words.iter().map(Span::width).sum();
    spans.extend(words);
    spans.push(Span::raw(" ".repeat(room.saturating_sub(used) + 1)));
    spans.extend(right.spans);
    Line::from(spans)
}

/// Returns the state in words, if wanted, with its age and the number of unread messages.
fn right_side(
    dashboard: &Dashboard,
    member: &MemberStatus,
    in_words: bool,
    now: Timestamp,
) -> Line<'static> {
    let theme = dashboard.theme;
    let details = dashboard.member_details(&member.name);
    let task = member.task.and_then(|id| dashboard.task_card(id));
    let since = task
        .and_then(|task| task.running_since)
        .or_else(|| details.and_then(|details| details.state_since));
    let (_, tone) = theme.member_state(&member.state.doing);
    let word = match &member.state.doing {
        Doing::Working | Doing::Idle => String::new(),
        _ if !in_words => String::new(),
        Doing::Waiting(need) => format!("{} ", need.as_str()),
        doing => format!("{} ", doing.words()),
    };
    let mut spans = vec![Span::styled(word, theme.style(tone))];
    if let Some(since) = since {
        spans.push(Span::styled(age(now.since(since)), theme.style(Tone::Dim)));
    }
    let unread = details.map_or(0, |details| details.unread);
    if unread > 0 {
        let mail = format!(" {}{unread}", theme.either("✉", "@"));
        spans.push(Span::styled(mail, theme.style(Tone::Strong)));
    }
    Line::from(spans)
}

/// Formats an age in its largest units. From a minute on it changes only once a minute.
pub(super) fn age(ms: u64) -> String {
    let minutes = ms / MINUTE_MS;
    match minutes {
        0 => format!("{}s", ms / 1000),
        1..60 => format!("{minutes}m"),
        _ => format!("{}h{:02}m", minutes / 60, minutes % 60),
    }
}

/// Returns what the member does: its task with progress, why it is stuck, or its last words.
fn activity(dashboard: &Dashboard, member: &MemberStatus, width: usize) -> Vec<Span<'static>> {
    let theme = dashboard.theme;
    let is_waiting =
        dashboard.attention.iter().find(|item| item.member.as_ref() == Some(&member.name));
    if let Some(item) = is_waiting {
        return vec![Span::styled(cut(&item.why, width), theme.style(Tone::Waiting))];
    }
    if let Some(id) = member.task {
        let words = format!("#{id} {}", member.activity.as_deref().unwrap_or_default());
        let progress = dashboard.task_card(id).and_then(|task| task.progress.clone());
        let Some(progress) = progress else {
            return vec![Span::raw(cut(&words, width))];
        };
        let bar = match width {
            0..32 => format!(" {}%", progress.percent),
            _ => format!(" {} {}%", theme.bar(progress.percent, 5), progress.percent),
        };
        let room = width.saturating_sub(Span::raw(bar.as_str()).width());
        return vec![Span::raw(cut(&words, room)), Span::styled(bar, theme.style(Tone::Working))];
    }
    let details = dashboard.member_details(&member.name);
    let words = member
        .state
        .reason
        .as_ref()
        .or_else(|| dashboard.last_words.get(member.name.as_str()))
        .or_else(|| details?.command.as_ref());
    let style: Style = theme.style(Tone::Dim);
    words.map(|words| Span::styled(cut(words, width), style)).into_iter().collect()
}
