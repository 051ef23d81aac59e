//! `watch`: the dashboard of a team.

pub(super) mod args;
#[cfg(test)]
mod command_line_tests;
mod commands;
mod driver;
pub(super) mod settings;
mod sources;

use std::ffi::OsStr;

use serde_json::json;

use self::args::{NotifyChoice, WatchArgs};
use self::driver::{Driver, WatchOptions};
use crate::args::Global;
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt::runtime;
use crate::setup::Setup;
use crate::terminal::theme::{can_draw, theme};
use sys::env;
use ui::DesktopNotification;
use ui::dashboard::Dashboard;

/// Opens the dashboard.
pub(super) fn watch(setup: Setup, global: &Global, args: &WatchArgs) -> VerbResult {
    let file = setup.ctx.store.watch_settings_file();
    if args.print_keys {
        let text = settings::defaults(&file);
        let document = json!({ "path": file, "text": text });
        setup.out.print(&document, || text.trim_end().to_owned())?;
        return Ok(Exit::DONE);
    }
    if !env::stdin_is_tty() || !env::stdout_is_tty() || global.json {
        return Err(Failure::usage(
            "the dashboard needs a terminal",
            "follow a team with `phalanx status --watch` or `phalanx events --follow --json`",
        ));
    }
    if !can_draw(&setup) {
        let term = setup.ctx.caller.var("TERM").unwrap_or_default().to_string_lossy();
        return Err(Failure::usage(
            format!("the dashboard cannot be drawn on this terminal: TERM is {term:?}"),
            "see the team with `phalanx status`, or set TERM to the name of your terminal, such \
             as `TERM=xterm-256color`",
        ));
    }
    let settings = settings::read(&file)?;
    let theme = theme(&setup, args.theme, args.ascii, settings.colors);
    let team = setup.team_to_watch(args.named.as_deref())?;
    let dashboard = match &team {
        Some(team) => Dashboard::new(team.name().as_str(), theme),
        None => Dashboard::choosing_a_team(theme),
    };
    let dashboard = dashboard.with_keymap(settings.keymap);
    let notification = match args.notify {
        NotifyChoice::Off => None,
        NotifyChoice::Bell => Some(DesktopNotification::Bell),
        NotifyChoice::Auto => {
            let term = setup.ctx.caller.var("TERM").and_then(OsStr::to_str);
            let vte = setup.ctx.caller.var("VTE_VERSION").is_some();
            Some(DesktopNotification::for_terminal(term, vte))
        }
    };
    let options = WatchOptions { global: global.clone(), notification };
    let runtime = runtime()?;
    let done =
        runtime.block_on(async { Driver::new(dashboard, setup, team, options)?.run().await });
    // Not waited for: commands in the background go on without the dashboard.
    runtime.shutdown_background();
    done
}
