//! Colours for text. The creator of a [`Paint`] decides whether the output supports them.

/// Colours text, or returns it unchanged if colours are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// Colours are on.
    pub on: bool,
}

/// The style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tint {
    #[default]
    Plain,
    Dim,
    Bold,
    Good,
    Bad,
    Warn,
    /// A member's colour, as the parameters of an SGR sequence.
    Member(&'static str),
}

impl Tint {
    /// Returns the style for a member's colour name in the team file.
    pub fn member(color: Option<&str>) -> Tint {
        let code = match color {
            Some("red") => "31",
            Some("green") => "32",
            Some("yellow") => "33",
            Some("blue") => "34",
            Some("purple") => "35",
            Some("cyan") => "36",
            Some("orange") => "38;5;208",
            Some("pink") => "38;5;205",
            Some(_) | None => return Tint::Bold,
        };
        Tint::Member(code)
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Tint::Plain => None,
            Tint::Dim => Some("2"),
            Tint::Bold => Some("1"),
            Tint::Good => Some("32"),
            Tint::Bad => Some("31"),
            Tint::Warn => Some("33"),
            Tint::Member(code) => Some(code),
        }
    }
}

impl Paint {
    pub fn put(self, tint: Tint, text: &str) -> String {
        match tint.code().filter(|_| self.on && !text.is_empty()) {
            Some(code) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::team::COLORS;

    #[test]
    fn every_member_colour_has_a_style_and_off_means_no_colour() {
        for color in COLORS {
            assert!(matches!(Tint::member(Some(color)), Tint::Member(_)), "{color}");
        }
        assert_eq!(Paint { on: true }.put(Tint::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Paint { on: false }.put(Tint::Bad, "x"), "x");
        assert_eq!(Paint { on: true }.put(Tint::Bad, ""), "");
    }
}
