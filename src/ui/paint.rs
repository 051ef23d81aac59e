//! Colours of text, when there are any. Knows no terminal; whoever makes a [`Paint`] has asked.

/// Puts colours on text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    pub(crate) on: bool,
}

/// What a piece of text shall look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tint {
    #[default]
    Plain,
    Dim,
    Bold,
    Good,
    Bad,
    Warn,
    /// A member's colour, by its code.
    Member(&'static str),
}

impl Tint {
    /// The look of a member whose colour has this name on the wire.
    pub(crate) fn member(color: Option<&str>) -> Tint {
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
    /// The text in this look.
    pub(crate) fn put(self, tint: Tint, text: &str) -> String {
        match tint.code().filter(|_| self.on && !text.is_empty()) {
            Some(code) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::team::COLORS;

    #[test]
    fn every_member_colour_has_a_look_and_none_is_put_on_when_off() {
        for color in COLORS {
            assert!(matches!(Tint::member(Some(color)), Tint::Member(_)), "{color}");
        }
        assert_eq!(Paint { on: true }.put(Tint::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Paint { on: false }.put(Tint::Bad, "x"), "x");
        assert_eq!(Paint { on: true }.put(Tint::Bad, ""), "");
    }
}
