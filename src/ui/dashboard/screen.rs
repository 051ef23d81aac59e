//! The screen of the selected member: live, or scrolled back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;
use tui_term::widget::{Cursor, PseudoTerminal, Screen};
use unicode_width::UnicodeWidthChar;

use super::scroll::{DrawnPart, bounded};
use super::search::ScreenSearch;
use super::theme::Theme;
use super::words::{cut, draw_note};
use model::id::{Incarnation, MemberName};
use model::text;
use ops::views::screen::ScreenUpdate;
use sys::contain::contain;

/// Largest size of a terminal that is drawn.
const MOST: (u16, u16) = (500, 1000);

/// The emulated terminal of a member, and how it is shown.
#[derive(Default)]
pub(super) struct ScreenView {
    /// The member that is followed.
    pub(super) member: Option<MemberName>,
    /// The run that it had when it was followed.
    run: Option<Incarnation>,
    terminal: Option<vt100::Parser>,
    /// The reason why the updates have ended.
    ended: Option<String>,
    /// Earlier lines, while a person scrolls back or searches.
    history: Option<ScreenHistory>,
    search: Option<ScreenSearch>,
}

struct ScreenHistory {
    lines: Vec<String>,
    /// Number of lines below the visible part.
    below: usize,
}

impl ScreenView {
    /// Starts with an empty screen of this run of a member.
    pub(super) fn follow(&mut self, member: Option<MemberName>, run: Option<Incarnation>) {
        *self = ScreenView { member, run, ..ScreenView::default() };
    }

    /// Returns true if this run of the member is followed.
    pub(super) fn is_of(&self, member: Option<&MemberName>, run: Option<&Incarnation>) -> bool {
        self.member.as_ref() == member && self.run.as_ref() == run
    }

    pub(super) fn update(&mut self, update: ScreenUpdate) {
        match update {
            ScreenUpdate::Whole { rows, cols, bytes } => {
                self.ended = None;
                let size = (rows.clamp(1, MOST.0), cols.clamp(2, MOST.1));
                self.terminal = Some(vt100::Parser::new(size.0, size.1, 0));
                self.process(&bytes);
            }
            ScreenUpdate::Output(bytes) => self.process(&bytes),
            ScreenUpdate::Ended(reason) => self.ended = Some(reason),
        }
    }

    /// Draws output. Hostile output that the emulator cannot process empties the screen.
    fn process(&mut self, bytes: &[u8]) {
        let Some(terminal) = &mut self.terminal else { return };
        if contain(|| terminal.process(bytes)).is_none() {
            let (rows, cols) = terminal.screen().size();
            self.terminal = Some(vt100::Parser::new(rows, cols, 0));
        }
    }

    /// Returns true if earlier lines are shown, or are about to be searched.
    pub(super) fn is_scrolled(&self) -> bool {
        self.history.is_some() || self.search.is_some()
    }

    /// Shows earlier lines: those with the last match of a search, or else one page above the end.
    pub(super) fn show_history(&mut self, text: &str, page: usize) {
        let lines: Vec<String> = text.lines().map(text::line).collect();
        let below = page.min(lines.len().saturating_sub(page));
        if let Some(search) = &mut self.search {
            search.find(&lines);
            self.history = Some(ScreenHistory { lines, below: 0 });
            self.show_match(page);
        } else {
            // Without earlier lines the live screen has everything.
            self.history = (below > 0).then_some(ScreenHistory { lines, below });
        }
    }

    /// Returns the text that is searched for.
    pub(super) fn query(&self) -> Option<&str> {
        self.search.as_ref().map(|search| search.query.as_str())
    }

    /// Searches the lines for a text, also those that arrive later.
    pub(super) fn search(&mut self, query: &str, page: usize) {
        let mut search = ScreenSearch { query: query.to_owned(), ..ScreenSearch::default() };
        if let Some(history) = &self.history {
            search.find(&history.lines);
        }
        self.search = Some(search);
        self.show_match(page);
    }

    /// Shows the match `step` places further.
    pub(super) fn go_to_match(&mut self, step: isize, page: usize) {
        if let Some(search) = &mut self.search {
            search.go_by(step);
            self.show_match(page);
        }
    }

    /// Scrolls so that the current match is in the middle.
    fn show_match(&mut self, page: usize) {
        let current = self.search.as_ref().and_then(ScreenSearch::current);
        if let (Some(history), Some(found)) = (&mut self.history, current) {
            history.below = history.lines.len().saturating_sub(found.line + page / 2 + 1);
        }
    }

    /// Scrolls by lines, upwards if positive; below the end it is live again.
    pub(super) fn scroll(&mut self, lines: isize) {
        let Some(history) = &mut self.history else { return };
        match history.below.checked_add_signed(lines) {
            Some(below) if below > 0 => history.below = below,
            Some(_) | None => self.leave_history(),
        }
    }

    /// Takes the number of lines that a frame has left below its part.
    pub(super) fn set_below(&mut self, below: usize) {
        if let Some(history) = &mut self.history {
            history.below = below;
        }
    }

    /// Shows the live screen again.
    pub(super) fn leave_history(&mut self) {
        self.history = None;
        self.search = None;
    }

    /// Returns what the title of the panel says besides the member's name.
    pub(super) fn state(&self) -> String {
        if let Some(search) = &self.search {
            return search.words();
        }
        match (&self.history, &self.ended, &self.terminal) {
            (Some(history), _, _) => format!("{} lines below", history.below),
            (None, Some(reason), _) => reason.clone(),
            (None, None, Some(terminal)) => {
                let (rows, cols) = terminal.screen().size();
                format!("{cols}x{rows}")
            }
            (None, None, None) => String::new(),
        }
    }

    /// Draws the part of the screen that fits, with the cursor in it. Returns the part of earlier
    /// lines that was drawn.
    pub(super) fn draw(
        &self,
        area: Rect,
        buffer: &mut Buffer,
        theme: Theme,
        typing: bool,
    ) -> Option<DrawnPart> {
        if area.is_empty() {
            return None;
        }
        if let Some(history) = &self.history {
            return Some(draw_history(history, self.search.as_ref(), area, buffer, theme));
        }
        let Some(terminal) = &self.terminal else {
            let words = match (&self.member, &self.ended) {
                (None, _) => "no member is selected",
                (Some(_), Some(_)) => "there is no screen to show",
                (Some(_), None) => "connecting",
            };
            draw_note(words, area, buffer, theme);
            return None;
        };
        let screen = terminal.screen();
        let part = ScreenPart { screen, top: top(screen, area.height), left: 0 };
        let part = ScreenPart { left: left(screen, area.width, typing), ..part };
        let cursor = Cursor::default().symbol(theme.either("█", "_"));
        PseudoTerminal::new(&part).cursor(cursor.visibility(typing)).render(area, buffer);
        None
    }
}

/// Returns the first row to show: the last rows with text, and the cursor among them.
fn top(screen: &vt100::Screen, height: u16) -> u16 {
    let (rows, cols) = screen.size();
    let is_blank = |row: u16| {
        (0..cols).all(|col| screen.cell(row, col).is_none_or(|cell| !cell.has_contents()))
    };
    let text_end = (0..rows).rev().find(|row| !is_blank(*row)).map_or(0, |row| row + 1);
    let cursor_end = if screen.hide_cursor() { 0 } else { screen.cursor_position().0 + 1 };
    text_end.max(cursor_end).min(rows).saturating_sub(height)
}

/// Returns the first column to show: the first one, unless the cursor is further to the right while
/// a person types.
fn left(screen: &vt100::Screen, width: u16, typing: bool) -> u16 {
    let (_, column) = screen.cursor_position();
    if typing { (column + 1).saturating_sub(width) } else { 0 }
}

fn draw_history(
    history: &ScreenHistory,
    search: Option<&ScreenSearch>,
    area: Rect,
    buffer: &mut Buffer,
    theme: Theme,
) -> DrawnPart {
    let below = bounded(history.below, area.height.into(), history.lines.len());
    let end = history.lines.len() - below;
    let start = end.saturating_sub(area.height.into());
    let width = usize::from(area.width);
    let current = search.and_then(ScreenSearch::current);
    // Lines are shifted only as far as the current match needs.
    let left = current.map_or(0, |found| (found.column + found.width).saturating_sub(width));
    for (row, line) in (area.y..area.bottom()).zip(&history.lines[start..end]) {
        let line = Line::from(cut(without_cells(line, left), width));
        buffer.set_line(area.x, row, &line, area.width);
    }
    let matches = search.map(|search| search.matches.as_slice()).unwrap_or_default();
    for found in matches.iter().filter(|found| (start..end).contains(&found.line)) {
        let cell = |column: usize| u16::try_from(column.saturating_sub(left).min(width));
        let (Ok(row), Ok(from), Ok(to)) = (
            u16::try_from(found.line - start),
            cell(found.column),
            cell(found.column + found.width),
        ) else {
            continue;
        };
        let place = Rect { x: area.x + from, y: area.y + row, width: to - from, height: 1 };
        buffer.set_style(place.intersection(area), theme.selected(current == Some(*found)));
    }
    // The title counts the lines.
    DrawnPart { scrolled: below, ..DrawnPart::default() }
}

/// Returns a line without its first cells; half of a wide character is left out as a whole.
fn without_cells(line: &str, cells: usize) -> &str {
    let mut used = 0;
    let mut chars = line.chars();
    while used < cells {
        let Some(c) = chars.next() else { break };
        used += c.width().unwrap_or(0);
    }
    chars.as_str()
}

/// The part of a screen from this row and column on.
struct ScreenPart<'s> {
    screen: &'s vt100::Screen,
    top: u16,
    left: u16,
}

impl Screen for ScreenPart<'_> {
    type C = vt100::Cell;

    fn cell(&self, row: u16, col: u16) -> Option<&vt100::Cell> {
        self.screen.cell(row.checked_add(self.top)?, col.checked_add(self.left)?)
    }

    fn hide_cursor(&self) -> bool {
        let (row, col) = self.screen.cursor_position();
        self.screen.hide_cursor() || row < self.top || col < self.left
    }

    fn cursor_position(&self) -> (u16, u16) {
        let (row, col) = self.screen.cursor_position();
        (row.saturating_sub(self.top), col.saturating_sub(self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::super::theme::ThemeColors;
    use super::*;

    const THEME: Theme =
        Theme { color: true, light: false, ascii: false, colors: ThemeColors::DEFAULT };

    fn drawn(view: &mut ScreenView, width: u16, height: u16, typing: bool) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        if let Some(part) = view.draw(area, &mut buffer, THEME, typing) {
            view.set_below(part.scrolled);
        }
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    fn whole(text: &str) -> ScreenUpdate {
        ScreenUpdate::Whole { rows: 6, cols: 20, bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn last_rows_with_text_are_shown() {
        let mut view = ScreenView::default();
        view.update(whole("a\r\nb\r\nc\r\nd"));
        assert_eq!(drawn(&mut view, 5, 2, false), ["c", "d"]);
        assert_eq!(drawn(&mut view, 5, 6, false), ["a", "b", "c", "d", "", ""]);
        view.update(ScreenUpdate::Output(b"\r\ne".to_vec()));
        assert_eq!(drawn(&mut view, 5, 2, false), ["d", "e"]);
    }

    #[test]
    fn cursor_stays_visible_while_typing() {
        let mut view = ScreenView::default();
        view.update(whole("0123456789"));
        assert_eq!(drawn(&mut view, 5, 1, false), ["01234"]);
        assert_eq!(drawn(&mut view, 5, 1, true), ["6789█"]);
    }

    #[test]
    fn history_scrolls_and_returns_to_the_live_screen() {
        let mut view = ScreenView::default();
        view.update(whole("live"));
        let text: Vec<String> = (0..10).map(|n| format!("line {n}")).collect();
        view.show_history(&text.join("\n"), 3);
        assert_eq!(drawn(&mut view, 9, 3, false), ["line 4", "line 5", "line 6"]);
        view.scroll(99);
        assert_eq!(drawn(&mut view, 9, 3, false), ["line 0", "line 1", "line 2"]);
        view.scroll(-99);
        assert!(!view.is_scrolled());
        assert_eq!(drawn(&mut view, 9, 1, false), ["live"]);
    }

    #[test]
    fn search_shows_its_match_and_scrolls_to_the_others() {
        let mut view = ScreenView::default();
        view.update(whole("live"));
        view.search("even", 3);
        assert!(view.is_scrolled(), "the lines are yet to come");
        let number = |n| format!("line {n} {}", if n % 2 == 0 { "EVEN" } else { "odd" });
        let text: Vec<String> = (0..10).map(number).collect();
        view.show_history(&text.join("\n"), 3);
        assert_eq!(view.state(), "match 5/5 of even");
        assert_eq!(drawn(&mut view, 20, 3, false), ["line 7 odd", "line 8 EVEN", "line 9 odd"]);
        view.go_to_match(-1, 3);
        assert_eq!(drawn(&mut view, 20, 3, false), ["line 5 odd", "line 6 EVEN", "line 7 odd"]);
        // A narrow panel is shifted to the match.
        assert_eq!(drawn(&mut view, 6, 3, false), ["5 odd", "6 EVEN", "7 odd"]);
        view.search("nothing", 3);
        assert_eq!(view.state(), "no match for nothing");
        assert_eq!(drawn(&mut view, 20, 3, false)[1], "line 6 EVEN", "it stays");
        view.leave_history();
        assert_eq!(drawn(&mut view, 9, 1, false), ["live"]);
    }

    #[test]
    fn matches_are_highlighted_in_their_cells() {
        let mut view = ScreenView::default();
        view.search("本", 2);
        view.show_history("日本本\n本", 2);
        let area = Rect::new(0, 0, 8, 2);
        let mut buffer = Buffer::empty(area);
        view.draw(area, &mut buffer, THEME, false);
        let styles = |y| (0..8).map(|x| buffer[(x, y)].style()).collect::<Vec<_>>();
        let (plain, other) = (styles(0)[0], styles(0)[2]);
        let current = styles(1)[0];
        assert!(plain != other && other != current && plain != current);
        assert_eq!(styles(0)[..6], [plain, plain, other, other, other, other]);
        assert_eq!(styles(1)[..3], [current, current, plain]);
    }

    #[test]
    fn hostile_output_is_drawn_without_a_panic() {
        let mut view = ScreenView::default();
        view.update(ScreenUpdate::Whole { rows: 0, cols: 0, bytes: Vec::new() });
        view.update(ScreenUpdate::Whole {
            rows: 3,
            cols: 2,
            bytes: b"\x1b[9;9H\xe4\xb8\xad".to_vec(),
        });
        view.update(ScreenUpdate::Output(b"\x1b[99999S\x1b[99999T\xff\x1b[1;1r".to_vec()));
        assert_eq!(drawn(&mut view, 1, 1, true).len(), 1);
        view.update(ScreenUpdate::Ended("exit code 3".to_owned()));
        assert_eq!(view.state(), "exit code 3");
    }
}
