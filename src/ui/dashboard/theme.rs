//! Colours and symbols of the dashboard. Meaning is never in a colour alone: each state has a
//! symbol of its own.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use strum::EnumCount;

use model::board::task::TaskState;
use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use model::members::need::Need;

/// The appearance of the dashboard, by the abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    /// Colours are on.
    pub color: bool,
    /// The background is light.
    pub light: bool,
    /// Only ASCII is drawn for lines and symbols.
    pub ascii: bool,
    pub colors: ThemeColors,
}

/// The meaning of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Dim,
    Strong,
    /// Done or in order.
    Good,
    /// At work.
    Working,
    /// Waits for a person.
    Waiting,
    /// Failed.
    Bad,
    /// The panel or entry with the focus.
    Focus,
}

/// A meaning whose colour can be set.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    strum::EnumCount,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum ColorRole {
    Good,
    Working,
    Waiting,
    Bad,
    Focus,
    /// The background of the selected row of a panel without the focus.
    Selection,
}

/// A colour for a dark and a light background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shade {
    pub dark: Color,
    pub light: Color,
}

/// The colours of the meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThemeColors([Shade; ColorRole::COUNT]);

impl ThemeColors {
    /// The default colours, in the order of [`ColorRole`]. They follow the palette of Okabe and
    /// Ito, which people with any colour vision can tell apart.
    pub const DEFAULT: ThemeColors = ThemeColors([
        indexed(36, 29),
        indexed(75, 25),
        indexed(214, 130),
        indexed(203, 124),
        indexed(117, 26),
        indexed(237, 254),
    ]);

    pub fn shade(&self, role: ColorRole) -> Shade {
        self.0[role as usize]
    }

    pub fn set(&mut self, role: ColorRole, shade: Shade) {
        self.0[role as usize] = shade;
    }
}

impl Default for ThemeColors {
    fn default() -> ThemeColors {
        ThemeColors::DEFAULT
    }
}

/// Returns a shade of two of the 256 colours of terminals.
const fn indexed(dark: u8, light: u8) -> Shade {
    Shade { dark: Color::Indexed(dark), light: Color::Indexed(light) }
}

const ASCII_BORDER: border::Set = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

impl Theme {
    /// Returns the style of text with this meaning.
    pub(crate) fn style(self, tone: Tone) -> Style {
        let style = Style::default();
        let (role, modifier) = match tone {
            Tone::Plain => return style,
            Tone::Dim => return style.add_modifier(Modifier::DIM),
            Tone::Strong => return style.add_modifier(Modifier::BOLD),
            Tone::Good => (ColorRole::Good, Modifier::empty()),
            Tone::Working => (ColorRole::Working, Modifier::empty()),
            Tone::Waiting => (ColorRole::Waiting, Modifier::BOLD),
            Tone::Bad => (ColorRole::Bad, Modifier::BOLD),
            Tone::Focus => (ColorRole::Focus, Modifier::BOLD),
        };
        let style = style.add_modifier(modifier);
        if self.color { style.fg(self.pick(self.colors.shade(role))) } else { style }
    }

    /// Returns the style of a selected row; `focused` is true in the panel with the focus. Without
    /// colours, the row of another panel is underlined.
    pub(crate) fn selected(self, focused: bool) -> Style {
        let style = Style::default();
        match (focused, self.color) {
            (true, _) => style.fg(Color::Reset).add_modifier(Modifier::REVERSED),
            (false, true) => style.bg(self.pick(self.colors.shade(ColorRole::Selection))),
            (false, false) => style.add_modifier(Modifier::UNDERLINED),
        }
    }

    /// Returns the style for a member's colour name in the team file.
    pub(super) fn member(self, color: Option<&str>) -> Style {
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let shade = match color {
            Some("red") => indexed(203, 124),
            Some("green") => indexed(71, 28),
            Some("yellow") => indexed(185, 94),
            Some("blue") => indexed(75, 25),
            Some("purple") => indexed(141, 91),
            Some("cyan") => indexed(80, 30),
            Some("orange") => indexed(208, 130),
            Some("pink") => indexed(211, 162),
            Some(_) | None => return bold,
        };
        if self.color { bold.fg(self.pick(shade)) } else { bold }
    }

    fn pick(self, shade: Shade) -> Color {
        if self.light { shade.light } else { shade.dark }
    }

    pub(crate) fn border(self) -> border::Set<'static> {
        if self.ascii { ASCII_BORDER } else { border::PLAIN }
    }

    /// Returns the symbol and meaning of what a member is doing.
    pub(super) fn member_state(self, doing: &Doing) -> (&'static str, Tone) {
        let (symbol, ascii, tone) = match doing {
            Doing::Working => ("▶", ">", Tone::Working),
            Doing::Retrying => ("⋯", "-", Tone::Waiting),
            Doing::Running => ("▷", "r", Tone::Working),
            Doing::Idle => ("○", "o", Tone::Plain),
            Doing::Starting => ("◌", ".", Tone::Dim),
            Doing::Restarting(_) => ("↻", "*", Tone::Waiting),
            Doing::Waiting(Need::Limit) => ("◷", "z", Tone::Waiting),
            Doing::Waiting(_) => ("?", "?", Tone::Waiting),
            Doing::Stopping => ("◐", "~", Tone::Waiting),
            Doing::Unresponsive => ("!", "!", Tone::Bad),
            Doing::Ended(MemberState::Completed) => ("✓", "v", Tone::Good),
            Doing::Ended(_) => ("✗", "x", Tone::Bad),
        };
        (if self.ascii { ascii } else { symbol }, tone)
    }

    /// Returns the symbol and meaning of a task's state.
    pub(super) fn task_state(self, state: TaskState) -> (&'static str, Tone) {
        let (symbol, ascii, tone) = match state {
            TaskState::Pending => ("○", "o", Tone::Plain),
            TaskState::Blocked => ("◌", ".", Tone::Dim),
            TaskState::InProgress => ("▶", ">", Tone::Working),
            TaskState::Stopping => ("■", "#", Tone::Waiting),
            TaskState::InReview => ("?", "?", Tone::Waiting),
            TaskState::Stale => ("!", "!", Tone::Waiting),
            TaskState::Completed => ("✓", "v", Tone::Good),
            TaskState::Failed => ("✗", "x", Tone::Bad),
            TaskState::Cancelled => ("-", "-", Tone::Dim),
        };
        (if self.ascii { ascii } else { symbol }, tone)
    }

    /// Returns `unicode`, or its replacement in ASCII.
    pub(super) fn either(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }

    /// Returns a bar of `width` cells for a percentage.
    pub(super) fn bar(self, percent: u8, width: usize) -> String {
        let full = (usize::from(percent.min(100)) * width + 50) / 100;
        let (on, off) = (self.either("▰", "#"), self.either("▱", "."));
        on.repeat(full) + &off.repeat(width - full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::members::record::PlannedRestart;
    use model::team::COLORS;
    use model::time::Timestamp;
    use strum::VariantArray;

    const DARK: Theme =
        Theme { color: true, light: false, ascii: false, colors: ThemeColors::DEFAULT };

    #[test]
    fn states_differ_by_symbol_within_each_set() {
        for theme in [DARK, Theme { ascii: true, ..DARK }] {
            let tasks: std::collections::BTreeSet<&str> =
                TaskState::VARIANTS.iter().map(|state| theme.task_state(*state).0).collect();
            assert_eq!(tasks.len(), TaskState::VARIANTS.len(), "{tasks:?}");
            let restart = PlannedRestart { failures: 1, at: Timestamp(0) };
            let states = [
                Doing::Working,
                Doing::Retrying,
                Doing::Running,
                Doing::Idle,
                Doing::Starting,
                Doing::Restarting(restart),
                Doing::Waiting(Need::Permission),
                Doing::Waiting(Need::Limit),
                Doing::Stopping,
                Doing::Unresponsive,
                Doing::Ended(MemberState::Completed),
                Doing::Ended(MemberState::Failed),
            ];
            let members: std::collections::BTreeSet<&str> =
                states.iter().map(|doing| theme.member_state(doing).0).collect();
            assert_eq!(members.len(), states.len(), "{members:?}");
            let is_ascii = members.iter().chain(&tasks).all(|symbol| symbol.is_ascii());
            assert_eq!(is_ascii, theme.ascii);
        }
    }

    #[test]
    fn colours_are_off_on_request_and_differ_by_background() {
        let plain = Theme { color: false, ..DARK };
        for tone in [Tone::Good, Tone::Bad, Tone::Working, Tone::Waiting, Tone::Focus] {
            assert_eq!(plain.style(tone).fg, None);
            assert_ne!(DARK.style(tone).fg, Theme { light: true, ..DARK }.style(tone).fg);
        }
        for color in COLORS {
            assert!(DARK.member(Some(color)).fg.is_some(), "{color}");
            assert_eq!(plain.member(Some(color)).fg, None);
        }
    }

    #[test]
    fn bar_has_a_fixed_width() {
        assert_eq!(DARK.bar(0, 4), "▱▱▱▱");
        assert_eq!(DARK.bar(40, 5), "▰▰▱▱▱");
        assert_eq!(Theme { ascii: true, ..DARK }.bar(255, 3), "###");
    }
}
