//! The theme of the screens, and the terminals that can show them.

use std::ffi::OsStr;

use crate::fail::Failure;
use crate::locale;
use crate::setup::Setup;
use crate::watch::args::ThemeChoice;
use crate::watch::settings;
use ui::dashboard::{Theme, ThemeColors};

/// Returns true if the terminal can move its cursor, which one without a name or with the name
/// `dumb` cannot.
pub(crate) fn can_draw(setup: &Setup) -> bool {
    setup.ctx.caller.var("TERM").is_some_and(|term| term != "dumb")
}

/// Returns the theme of this terminal with the configured colours.
///
/// # Errors
/// The settings cannot be read.
pub(crate) fn configured_theme(setup: &Setup) -> Result<Theme, Failure> {
    let colors = settings::read(&setup.ctx.store.watch_settings_file())?.colors;
    Ok(theme(setup, ThemeChoice::Auto, false, colors))
}

/// Returns the theme of this terminal.
pub(crate) fn theme(setup: &Setup, choice: ThemeChoice, ascii: bool, colors: ThemeColors) -> Theme {
    let light = match choice {
        ThemeChoice::Dark => false,
        ThemeChoice::Light => true,
        ThemeChoice::Auto => {
            let colors = setup.ctx.caller.var("COLORFGBG").and_then(OsStr::to_str);
            colors.is_some_and(has_light_background)
        }
    };
    let ascii = ascii || !locale::uses_utf8(|name| setup.ctx.caller.var(name));
    Theme { color: setup.out.paint.on, light, ascii, colors }
}

/// Reads `$COLORFGBG`, which ends with the number of the background colour.
fn has_light_background(colors: &str) -> bool {
    matches!(colors.rsplit(';').next(), Some("7" | "15"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_is_read_from_colorfgbg() {
        for (colors, light) in [("0;15", true), ("0;default;7", true), ("15;0", false), ("", false)]
        {
            assert_eq!(has_light_background(colors), light, "{colors}");
        }
    }
}
