//! `send` and `broadcast`.

use super::fail::{Exit, Failure};
use super::setup::Setup;
use super::spawn::stdin;
use super::{Done, args, args_send};
use crate::ops;
use crate::ops::authority::Action;

pub(super) fn send(setup: &Setup, args: &args_send::Send) -> Done {
    let (team, to) = setup.member(&args.to, Action::Talk)?;
    let text = text(args.text.as_deref())?;
    let sent =
        ops::send::send(&setup.ctx, &team, &to, &text, args.summary.as_deref(), args.urgent)?;
    setup.out.confirm(&sent, || sent.message.clone())?;
    Ok(Exit::DONE)
}

pub(super) fn broadcast(setup: &Setup, args: &args::Broadcast) -> Done {
    let team = setup.team(Action::Talk)?;
    let text = text(args.text.as_deref())?;
    let sent = ops::send::broadcast(&setup.ctx, &team, &text, args.summary.as_deref())?;
    setup.out.confirm(&sent, || match sent.recipients.as_slice() {
        [] => "no other member reads mail".to_owned(),
        some => format!("{}: {}", sent.message, some.join(", ")),
    })?;
    Ok(Exit::DONE)
}

/// Returns the given text, or all of stdin without its final line break.
fn text(given: Option<&str>) -> Result<String, Failure> {
    let text = match given {
        Some(text) if text != "-" => text.to_owned(),
        Some(_) | None => {
            let piped = stdin()?;
            piped.strip_suffix('\n').unwrap_or(&piped).to_owned()
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "the message is empty",
            "give a text as an argument, or pipe one in",
        ));
    }
    Ok(text)
}
