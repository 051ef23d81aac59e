//! `send` and `broadcast`.

pub(crate) mod handoff;
pub(crate) mod inbox;
pub(crate) mod scope;

use clap::Args;

use crate::fail::{Exit, Failure, VerbResult};
use crate::mail::scope::ScopeArgs;
use crate::read::stdin;
use crate::setup::Setup;
use ops::authority::Action;

/// Send a message to a member.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx send ada \"please look at #3\"\n  git diff | phalanx send ada --summary \"my changes\"\n  \
    phalanx send ada --urgent \"stop: the branch is wrong\""
)]
pub(crate) struct SendArgs {
    /// Recipient.
    pub(crate) to: String,
    /// The message; read from stdin if it is - or missing.
    pub(crate) text: Option<String>,
    /// Short summary.
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// Interrupt its program so that it reads this at once; not for Claude Code.
    #[arg(long)]
    pub(crate) urgent: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Send a message to all other members.
#[derive(Debug, Args)]
pub(crate) struct BroadcastArgs {
    /// The message; read from stdin if it is - or missing.
    pub(crate) text: Option<String>,
    /// Short summary.
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

pub(crate) fn send(setup: &Setup, args: &SendArgs) -> VerbResult {
    let (team, to) = setup.member(&args.to, Action::Talk)?;
    let text = text(args.text.as_deref())?;
    let (summary, scope) = (args.summary.as_deref(), args.scope.resolve(setup)?);
    let sent = ops::mail::send::send(&setup.ctx, &team, &to, &text, summary, args.urgent, &scope)?;
    setup.out.confirm(&sent, || sent.message.clone())?;
    Ok(Exit::DONE)
}

pub(crate) fn broadcast(setup: &Setup, args: &BroadcastArgs) -> VerbResult {
    let team = setup.team(Action::Talk)?;
    let text = text(args.text.as_deref())?;
    let (summary, scope) = (args.summary.as_deref(), args.scope.resolve(setup)?);
    let sent = ops::mail::send::broadcast(&setup.ctx, &team, &text, summary, &scope)?;
    setup.out.confirm(&sent, || match sent.recipients.as_slice() {
        [] if sent.skipped.is_empty() => "no other member reads mail".to_owned(),
        [] => format!("stored in no mailbox{}", skipped_words(&sent.skipped)),
        some => format!("{}: {}{}", sent.message, some.join(", "), skipped_words(&sent.skipped)),
    })?;
    Ok(Exit::DONE)
}

/// Names the members that the sender may not message, or that take no messages of this origin.
fn skipped_words(skipped: &[String]) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let why = "the routing rules or the access policy of the team exclude them";
    format!("; skipped, because {why}: {}", skipped.join(", "))
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
