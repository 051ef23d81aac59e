//! `attach` and `peek`: show the screens of members.

use serde_json::{Value, json};

use super::fail::{Exit, Failure};
use super::setup::Setup;
use super::{Done, args, view};
use crate::model::id::MemberName;
use crate::model::text;
use crate::ops;
use crate::ops::attach::AttachTarget;
use crate::ops::authority::Action;
use crate::sys::env;
use crate::sys::exec::become_program;

pub(super) fn attach(setup: &Setup, args: &args::Attach) -> Done {
    let (team, names) = setup.members(args.name.as_slice(), Action::Attach)?;
    if !env::stdin_is_tty() || !env::stdout_is_tty() {
        return Err(Failure::usage(
            "attach needs a terminal",
            "look at members with `phalanx peek NAME`",
        ));
    }
    match ops::attach::attach(&setup.ctx, &team, names.first())? {
        AttachTarget::Tmux { program, args } => {
            Err(become_program(program.as_os_str(), &args).into())
        }
        AttachTarget::Own { name, socket } => view::view(&setup.out, &name, &socket),
    }
}

pub(super) fn peek(setup: &Setup, args: &args::Peek) -> Done {
    let (team, names) = setup.members(&args.names, Action::ReadOutput)?;
    let mut screens = Vec::new();
    for name in names {
        let screen = ops::output::peek(&setup.ctx, &team, &name, args.lines)?;
        screens.push((name, text::block(&screen)));
    }
    let document = |(name, screen): &(MemberName, String)| json!({ "name": name, "lines": screen.lines().collect::<Vec<_>>() });
    if let [one] = screens.as_slice() {
        setup.out.give(&document(one), || one.1.clone())?;
        return Ok(Exit::DONE);
    }
    let documents: Vec<Value> = screens.iter().map(document).collect();
    setup.out.give(&documents, || {
        let page = |(name, screen): &(MemberName, String)| format!("==> {name} <==\n{screen}");
        screens.iter().map(page).collect::<Vec<_>>().join("\n\n")
    })?;
    Ok(Exit::DONE)
}
