//! The arguments of `watch`.

use clap::{Args, ValueEnum};

/// Open the dashboard: members, screens, board, requests, messages.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "? lists the keys, unless watch.toml binds another one to it; --print-keys prints that file with the default keys.\n\n\
    Examples:\n  phalanx watch\n  phalanx watch site --theme light\n\n\
    Colours follow --color and NO_COLOR. A locale without UTF-8 is drawn in ASCII."
)]
pub(crate) struct WatchArgs {
    /// Team to show [default: that of --team; with several teams, a list to choose from].
    #[arg(value_name = "TEAM")]
    pub(crate) named: Option<String>,
    /// Background of the terminal.
    #[arg(long, value_enum, default_value_t, value_name = "THEME")]
    pub(crate) theme: ThemeChoice,
    /// Draw lines and symbols in ASCII.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// How to announce a new request.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub(crate) notify: NotifyChoice,
    /// Print the default keys and colours in the format of `watch.toml`.
    #[arg(long, conflicts_with_all = ["named", "theme", "ascii", "notify"])]
    pub(crate) print_keys: bool,
}

/// Backgrounds that a theme is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ThemeChoice {
    /// By $COLORFGBG; dark if it is not set.
    #[default]
    Auto,
    Dark,
    Light,
}

/// Ways to announce a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum NotifyChoice {
    /// A desktop notification if the terminal supports it, and the bell.
    #[default]
    Auto,
    Bell,
    Off,
}
