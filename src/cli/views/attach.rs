//! `attach` and `peek`: show the screens of members.

use std::ffi::OsString;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fail::{Exit, Failure, VerbResult};
use crate::setup::Setup;
use crate::views::relay;
use model::id::{HostName, MemberName};
use model::text;
use ops::authority::Action;
use ops::views::attach::AttachTarget;
use ops::{self, Kind};
use sys::env;
use sys::exec::{ExecCommand, become_program, run_in_foreground};

/// Attach this terminal to a member, or to the team's tmux window.
///
/// Detach from tmux with the prefix key and d, from a member on a PTY with Ctrl-].
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Member [default: the team's tmux window, else its first member on a PTY].
    pub(crate) name: Option<String>,
}

/// Print the last lines of members' screens.
#[derive(Debug, Args, Deserialize, JsonSchema)]
pub(crate) struct PeekArgs {
    /// Names of the members.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Number of lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = screen_lines())]
    #[serde(default = "screen_lines")]
    pub(crate) lines: usize,
}

fn screen_lines() -> usize {
    20
}

pub(crate) fn attach(setup: &Setup, args: &AttachArgs) -> VerbResult {
    let (team, names) = setup.members(args.name.as_slice(), Action::Attach)?;
    if !env::stdin_is_tty() || !env::stdout_is_tty() {
        return Err(Failure::usage(
            "attach needs a terminal",
            "look at members with `phalanx peek NAME`",
        ));
    }
    match ops::views::attach::attach(&setup.ctx, &team, names.first())? {
        AttachTarget::Program { program, args } => {
            Err(become_program(program.as_os_str(), &args).into())
        }
        AttachTarget::OnHost { name, host, program, args } => {
            through_ssh(&name, &host, program.into_os_string(), args)
        }
        AttachTarget::Own { name, socket } => relay::relay_terminal(&setup.out, &name, &socket),
    }
}

/// Runs ssh on this terminal until the person detaches, the member ends, or the connection is lost:
/// then the terminal is reset, since phalanx or tmux on the host cannot do so.
fn through_ssh(
    name: &MemberName,
    host: &HostName,
    program: OsString,
    args: Vec<OsString>,
) -> VerbResult {
    let command = ExecCommand { program, args, env: None, cwd: None, stdin: Vec::new() };
    let status = run_in_foreground(&command)?;
    match status.code() {
        // The exit code of ssh for its own failures, which phalanx never has.
        Some(255) => {
            relay::reset_terminal();
            let hint = format!(
                "come back with `phalanx attach {name}`; see whether the host is there with \
                 `phalanx host check {host}`"
            );
            let problem = format!("the connection to host `{host}` was lost");
            Err(Failure::new(Kind::Backend, problem, Some(hint)))
        }
        Some(code) => Ok(Exit::of_program(code)),
        None => Err(Failure::interrupted("ssh was ended by a signal", None)),
    }
}

pub(crate) fn peek(setup: &Setup, args: &PeekArgs) -> VerbResult {
    let (team, names) = setup.members(&args.names, Action::ReadOutput)?;
    let mut screens = Vec::new();
    for name in names {
        let screen = ops::members::output::peek(&setup.ctx, &team, &name, args.lines)?;
        screens.push((name, text::block(&screen)));
    }
    let document = |(name, screen): &(MemberName, String)| json!({ "name": name, "lines": screen.lines().collect::<Vec<_>>() });
    if let [one] = screens.as_slice() {
        setup.out.print(&document(one), || one.1.clone())?;
        return Ok(Exit::DONE);
    }
    let documents: Vec<Value> = screens.iter().map(document).collect();
    setup.out.print(&documents, || {
        let page = |(name, screen): &(MemberName, String)| format!("==> {name} <==\n{screen}");
        screens.iter().map(page).collect::<Vec<_>>().join("\n\n")
    })
}
