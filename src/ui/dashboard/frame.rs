//! One frame of the dashboard: the lines at the top and the bottom, and the panels between them.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};
use strum::VariantArray;
use unicode_width::UnicodeWidthStr;

use super::dialog::{OpenDialog, PageKind, TextPage};
use super::keys::{BINDINGS, Binding, KeyCommand, KeyGroup};
use super::layout::{Panel, places};
use super::members::age;
use super::scroll::DrawnPart;
use super::state::Dashboard;
use super::theme::Tone;
use super::words::cut;
use super::{board, lists, members, overlay};
use model::board::task::TaskState;
use model::id::HostName;
use model::members::assessment::Doing;
use model::text;
use model::time::Timestamp;
use ops::views::snapshot::TaskCard;

const NOTHING_WAITS: &str = "nothing waits for you";
/// Cells between the names in the list of panels.
const GAP: u16 = 2;

impl Dashboard {
    /// The time at which the state on display was read.
    pub(super) fn read_at(&self) -> Timestamp {
        self.snapshot.as_ref().map_or(Timestamp(u64::MAX), |snapshot| snapshot.read_at)
    }

    /// Draws the dashboard.
    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Timestamp) {
        self.expire_notices(now);
        let area = frame.area();
        self.places = places(area, self.view());
        let buffer = frame.buffer_mut();
        if self.team.is_some() {
            self.draw_header(buffer, now);
            self.draw_tabs(buffer);
            for (panel, place) in self.places.panels.clone() {
                self.draw_panel(panel, place, buffer, now);
            }
        }
        self.draw_footer(buffer);
        let drawn = overlay::draw(self, area, buffer);
        if let (Some(dialog), Some(scrolled)) = (&mut self.dialog, drawn.scrolled) {
            dialog.set_scrolled(scrolled);
        }
        clean(buffer, self.theme.color);
        if let Some(position) = drawn.cursor {
            frame.set_cursor_position(position);
        }
    }

    /// Takes the lines by which a panel is scrolled on display, from where the next key continues.
    fn set_scrolled(&mut self, panel: Panel, scrolled: usize) {
        match panel {
            Panel::Screen => self.screen.set_below(scrolled),
            Panel::Members | Panel::Board | Panel::Requests | Panel::Messages | Panel::Events => {
                self.scrolled.insert(panel, scrolled);
            }
        }
    }

    fn draw_header(&self, buffer: &mut Buffer, now: Timestamp) {
        let place = self.places.header;
        if place.is_empty() {
            return;
        }
        let theme = self.theme;
        let right = self.counts();
        let room = usize::from(place.width).saturating_sub(right.width() + 1);
        let team = text::line(self.team.as_deref().unwrap_or_default());
        let left = format!("{team}{}", self.about_lead(now));
        let style = Style::default().add_modifier(Modifier::BOLD);
        buffer.set_line(place.x, place.y, &Line::styled(cut(&left, room), style), place.width);
        let x = place.right().saturating_sub(u16::try_from(right.width()).unwrap_or(0));
        buffer.set_line(x.max(place.x), place.y, &right, place.width);
        if place.height < 2 {
            return;
        }
        let row = place.y + 1;
        let answered = self.answered.as_ref().map(|answered| {
            // What waits for the person keeps half of the line.
            let most = if self.attention.is_empty() {
                usize::from(place.width).saturating_sub(NOTHING_WAITS.len() + 1)
            } else {
                usize::from(place.width / 2)
            };
            let words = cut(&answered.words, most);
            Line::styled(words, theme.style(answered.tone))
        });
        let answered_width = answered.as_ref().map_or(0, |line| line.width() + 1);
        let width = usize::from(place.width).saturating_sub(answered_width);
        let line = match (&self.problem, self.attention.split_first()) {
            (Some(problem), _) => Line::styled(cut(problem, width), theme.style(Tone::Bad)),
            (None, None) if self.snapshot.is_none() => {
                Line::styled("reading the team", theme.style(Tone::Dim))
            }
            (None, None) => Line::styled(NOTHING_WAITS, theme.style(Tone::Dim)),
            (None, Some((item, rest))) => {
                let who = item.member.as_ref().map(|name| format!("{name} "));
                let since = match now.since(item.since) {
                    0..1_000 => String::new(),
                    ms => format!(" ({})", age(ms)),
                };
                let more = match rest.len() {
                    0 => String::new(),
                    count => {
                        let words = format!("  and {count} more");
                        self.keymap.hint(&words, &[(KeyCommand::NextAttention, "")])
                    }
                };
                let mark = theme.either("▲", "!");
                let tail = format!("{since}{more}");
                let room = width.saturating_sub(tail.len() + 2);
                let words = format!("{}{}", who.unwrap_or_default(), item.for_keys());
                Line::from(vec![
                    Span::styled(
                        format!("{mark} {}", cut(&words, room)),
                        theme.style(Tone::Waiting),
                    ),
                    Span::styled(tail, theme.style(Tone::Dim)),
                ])
            }
        };
        buffer.set_line(place.x, row, &line, u16::try_from(width).unwrap_or(place.width));
        if let Some(answered) = answered {
            let x = place.right().saturating_sub(u16::try_from(answered.width()).unwrap_or(0));
            buffer.set_line(x.max(place.x), row, &answered, place.width);
        }
    }

    fn about_lead(&self, now: Timestamp) -> String {
        let Some(snapshot) = &self.snapshot else { return String::new() };
        let lead = match (&snapshot.status.lead, &snapshot.status.dead_lead) {
            (Some(lead), _) if lead.state == "stopped" => format!("lead {} is stopped", lead.pid),
            (Some(lead), _) => {
                let led = lead.age_ms + now.since(snapshot.read_at);
                format!("led for {}", model::time::human(led))
            }
            (None, Some(lead)) => format!("lead {} has died", lead.pid),
            (None, None) => "no lead".to_owned(),
        };
        let foreign = if snapshot.is_foreign { ", by another program" } else { "" };
        format!("  {lead}{foreign}")
    }

    /// Returns how many members work, what waits, and how many tasks are done.
    fn counts(&self) -> Line<'static> {
        let theme = self.theme;
        let Some(snapshot) = &self.snapshot else { return Line::default() };
        let count = |doing: Doing| {
            snapshot.status.members.iter().filter(|member| member.state.doing == doing).count()
        };
        let done = snapshot.tasks.iter().filter(|task| task.state == TaskState::Completed).count();
        let mut spans = Vec::new();
        let mut part = |tone: Tone, words: String| {
            if !spans.is_empty() {
                spans.push(Span::raw("  "));
            }
            spans.push(Span::styled(words, theme.style(tone)));
        };
        for doing in [Doing::Working, Doing::Retrying, Doing::Running, Doing::Idle] {
            let (symbol, tone) = theme.member_state(&doing);
            let number = count(doing.clone());
            if number > 0 || matches!(doing, Doing::Working | Doing::Idle) {
                part(tone, format!("{symbol} {number}"));
            }
        }
        if !self.attention.is_empty() {
            part(Tone::Waiting, format!("{} {}", theme.either("▲", "!"), self.attention.len()));
        }
        if !snapshot.tasks.is_empty() {
            let mark = theme.task_state(TaskState::Completed).0;
            part(Tone::Good, format!("{mark} {done}/{}", snapshot.tasks.len()));
        }
        Line::from(spans)
    }

    /// Returns the names in the list of panels, each with the column where it begins.
    fn tabs(&self) -> Vec<(Panel, u16, String)> {
        let mut x = 0;
        let mut found = Vec::new();
        for panel in Panel::VARIANTS {
            let count = match panel {
                Panel::Requests => self.requests().len(),
                Panel::Members | Panel::Screen | Panel::Board | Panel::Messages | Panel::Events => {
                    0
                }
            };
            let count = if count > 0 { format!(" ({count})") } else { String::new() };
            let key = self.keymap.key_of(KeyCommand::Show(*panel));
            let key = key.map(|key| text::line(&key) + " ").unwrap_or_default();
            let words = format!("{key}{}{count}", panel.title());
            let next = x + u16::try_from(words.width()).unwrap_or(0) + GAP;
            found.push((*panel, x, words));
            x = next;
        }
        found
    }

    /// Returns the panel whose name is at this column of the list of panels.
    pub(super) fn tab_at(&self, column: u16) -> Option<Panel> {
        let tabs = self.tabs();
        let is_there = |(_, x, words): &&(Panel, u16, String)| {
            usize::from(column) >= usize::from(*x)
                && usize::from(column) < usize::from(*x) + words.width()
        };
        tabs.iter().find(is_there).map(|(panel, ..)| *panel)
    }

    fn draw_tabs(&self, buffer: &mut Buffer) {
        let place = self.places.tabs;
        if place.is_empty() {
            return;
        }
        let theme = self.theme;
        for (panel, x, words) in self.tabs().into_iter().filter(|(_, x, _)| *x < place.width) {
            let style = if panel == self.focus {
                theme.style(Tone::Focus).add_modifier(Modifier::UNDERLINED)
            } else {
                theme.style(Tone::Dim)
            };
            let room = place.width - x;
            let words = cut(&words, room.into());
            buffer.set_line(place.x + x, place.y, &Line::styled(words, style), room);
        }
    }

    fn draw_panel(&mut self, panel: Panel, place: Rect, buffer: &mut Buffer, now: Timestamp) {
        let theme = self.theme;
        let is_focused = panel == self.focus;
        let style = theme.style(if is_focused { Tone::Focus } else { Tone::Dim });
        let block = Block::bordered().border_set(theme.border()).border_style(style);
        let inner = block.inner(place);
        let drawn = if inner.is_empty() {
            None
        } else {
            self.draw_content(panel, place, inner, buffer, now)
        };
        let position = match drawn {
            Some(part) => {
                self.set_scrolled(panel, part.scrolled);
                if is_focused && panel == Panel::Messages {
                    self.note_shown_mail(&part.begun);
                }
                part.position
            }
            None => self.position(panel, place, inner),
        };
        let position = position.map(|position| format!("  {position}")).unwrap_or_default();
        let room = usize::from(place.width.saturating_sub(4)).saturating_sub(position.len());
        let title = format!(" {}{position} ", cut(&self.title(panel), room));
        block.title(Line::styled(title, style)).render(place, buffer);
    }

    fn draw_content(
        &self,
        panel: Panel,
        place: Rect,
        inner: Rect,
        buffer: &mut Buffer,
        now: Timestamp,
    ) -> Option<DrawnPart> {
        let theme = self.theme;
        match panel {
            Panel::Members => members::draw(self, place, inner, buffer, now),
            Panel::Screen => return self.screen.draw(inner, buffer, theme, self.typing),
            Panel::Board => return board::draw(self, inner, buffer, now),
            Panel::Requests => lists::draw_requests(self, inner, buffer, now),
            Panel::Messages => return Some(lists::draw_messages(self, inner, buffer, now)),
            Panel::Events => return Some(lists::draw_events(self, inner, buffer, now)),
        }
        None
    }

    /// Returns the host of the selected member, if that is another one.
    fn other_host(&self) -> Option<&HostName> {
        let members = &self.snapshot.as_ref()?.status.members;
        let selected = members.iter().find(|member| Some(&member.name) == self.member.as_ref())?;
        selected.host.as_ref().filter(|_| selected.is_elsewhere)
    }

    fn title(&self, panel: Panel) -> String {
        let filter = match self.filter.as_str() {
            "" => String::new(),
            filter => format!(" /{filter}"),
        };
        let member = self.member.as_ref().map(ToString::to_string).unwrap_or_default();
        match panel {
            Panel::Members => {
                let order: &str = self.order.into();
                format!("Members by {order}{filter}")
            }
            Panel::Screen => {
                let typing = if self.typing { ": typing, Esc leaves" } else { "" };
                let state = if self.screen.is_scrolled() {
                    self.leave_hint(&self.screen.state(), "goes live")
                } else {
                    self.screen.state()
                };
                let gap = if state.is_empty() { "" } else { "  " };
                let host = self.other_host().map(|host| format!(" on {host}")).unwrap_or_default();
                let selected = self.member.as_ref().and_then(|name| self.member_status(name));
                let usage = selected.and_then(|member| member.usage);
                let used = usage.map(|usage| format!("  {}", usage.describe())).unwrap_or_default();
                format!("{member}{host}{typing}{gap}{state}{used}")
            }
            Panel::Board => {
                let tasks = self.snapshot.as_ref().map(|snapshot| snapshot.tasks.as_slice());
                let is_failed = |task: &&TaskCard| task.state == TaskState::Failed;
                let failed = tasks.unwrap_or_default().iter().filter(is_failed).count();
                let open = tasks.unwrap_or_default().iter().filter(|task| !task.state.is_over());
                let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
                format!("Board: {} open{failed}{filter}", open.count())
            }
            Panel::Requests => format!("Requests{filter}"),
            Panel::Messages if self.all_messages => format!("Messages of all{filter}"),
            Panel::Messages => format!("Messages of {member}{filter}"),
            Panel::Events => format!("Events{filter}"),
        }
    }

    fn draw_footer(&self, buffer: &mut Buffer) {
        let place = self.places.footer;
        if place.is_empty() {
            return;
        }
        let theme = self.theme;
        let line = match (&self.notice, self.running.last()) {
            (Some(notice), _) => {
                let words = cut(&notice.words, place.width.into());
                Line::styled(words, theme.style(notice.tone))
            }
            (None, Some(running)) => {
                let words = cut(&format!("runs: {}", running.text()), place.width.into());
                Line::styled(words, theme.style(Tone::Dim))
            }
            (None, None) if self.team.is_none() => {
                Line::styled("Enter: show this team   Esc: quit", theme.style(Tone::Dim))
            }
            (None, None) => self.hints(place.width),
        };
        buffer.set_line(place.x, place.y, &line, place.width);
    }

    /// Returns the important keys that have an object here, each with its name, as many as fit.
    fn hints(&self, width: u16) -> Line<'static> {
        let theme = self.theme;
        if let Some(member) = self.member.as_ref().filter(|_| self.typing) {
            let words = format!("keys go to {member}  Esc leaves  Ctrl-] sends Esc");
            return Line::styled(cut(&words, width.into()), theme.style(Tone::Dim));
        }
        let works_here = |binding: &&Binding| match &self.dialog {
            None => true,
            Some(OpenDialog::Page(TextPage { kind: PageKind::Request(_), .. })) => {
                binding.group == KeyGroup::Request
            }
            // Other dialogs name their keys.
            Some(_) => false,
        };
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut room = usize::from(width);
        let important = BINDINGS.iter().filter(|binding| binding.is_important);
        let mut shown: Vec<&Binding> = important.filter(works_here).collect();
        shown.sort_by_key(|binding| self.rank(binding));
        for binding in shown {
            let Ok(offer) = self.offer(binding.command) else { continue };
            let Some(key) = self.keymap.key_of(binding.command) else { continue };
            let key_width = Span::raw(key.as_str()).width() + 1;
            let is_first = spans.is_empty();
            let offer = if is_first {
                cut(&offer, room.saturating_sub(key_width))
            } else {
                text::line(&offer)
            };
            let next = key_width + Span::raw(offer.as_str()).width();
            if next > room {
                break;
            }
            room = room.saturating_sub(next + 2);
            spans.push(Span::styled(key, theme.style(Tone::Strong)));
            spans.push(Span::styled(format!(" {offer}  "), theme.style(Tone::Dim)));
        }
        Line::from(spans)
    }

    /// Returns the place of a key in the line at the bottom: answers, then the keys of the object
    /// that is highlighted, then the others.
    fn rank(&self, binding: &Binding) -> u8 {
        let has_ended = || self.target_member().is_ok_and(|name| self.has_ended(&name));
        match (binding.group, self.focus) {
            (KeyGroup::Request, _) => 0,
            (KeyGroup::Task, Panel::Board) => 1,
            (KeyGroup::Task, _) => 4,
            (KeyGroup::Member, _) if has_ended() => 1,
            (KeyGroup::Dashboard, _) => 2,
            (KeyGroup::Moving | KeyGroup::Member, _) => 3,
        }
    }
}

/// Makes what remains of control characters visible, wherever it came from.
fn clean(buffer: &mut Buffer, color: bool) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if !matches!(symbol.as_bytes(), [b' '..=b'~']) {
            let visible = text::line(symbol);
            if visible != symbol {
                // One character only, so that the cell keeps its width.
                let first: String = visible.chars().take(1).collect();
                cell.set_symbol(&first);
            }
        }
        if !color {
            cell.fg = Color::Reset;
            cell.bg = Color::Reset;
        }
    }
}
