//! `send` and `broadcast`.

pub(crate) mod handoff;
pub(crate) mod inbox;
pub(crate) mod scope;

use std::time::Duration;

use clap::Args;

use crate::args::seconds;
use crate::fail::{Failure, VerbResult};
use crate::interrupt;
use crate::mail::scope::ScopeArgs;
use crate::notice::WaitNotice;
use crate::read::stdin;
use crate::setup::Setup;
use model::id::MemberName;
use model::text;
use model::time::Timestamp;
use ops::authority::Action;
use ops::{self, TeamStore};

/// Send a message to a member.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx send ada \"please look at #3\"\n  git diff | phalanx send ada --summary \"my changes\"\n  \
    phalanx send ada --urgent \"stop: the branch is wrong\"\n  \
    phalanx send ada --wait \"is the build green?\""
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
    /// Wait for the answer of the agent and print it.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Seconds to wait, then exit with 5 [default: no limit].
    #[arg(long, value_parser = seconds, value_name = "S", requires = "wait")]
    pub(crate) timeout: Option<Duration>,
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
    if args.wait {
        ops::views::answer::must_answer(&team, &to)?;
    }
    let sent_at = ops::now();
    let sent = ops::mail::send::send(&setup.ctx, &team, &to, &text, summary, args.urgent, &scope)?;
    if args.wait {
        return print_answer(setup, team, to, sent_at, args.timeout);
    }
    setup.out.confirm(&sent, || sent.message.clone())
}

/// Waits for the answer of a member and prints it, which counts as read then.
fn print_answer(
    setup: &Setup,
    team: TeamStore,
    from: MemberName,
    since: Timestamp,
    limit: Option<Duration>,
) -> VerbResult {
    let owner = setup.ctx.speaker.clone();
    let _notice = WaitNotice::fixed(&setup.out, format!("waiting for {from} to answer"));
    let hint = Some(format!(
        "the message was sent; the answer will be in `phalanx inbox -t {}`",
        team.name()
    ));
    let interrupted = Failure::interrupted("interrupted while waiting for the answer", hint);
    let ctx = setup.ctx.clone();
    let answer = interrupt::run_interruptible(interrupted, move || {
        let answer = ops::views::answer::await_answer(&ctx, &team, &owner, &from, since, limit)?;
        ops::mail::inbox::acknowledge(&team, &owner, std::slice::from_ref(&answer.msg_id))?;
        Ok(answer)
    })?;
    setup.out.print(&answer.to_entry(), || text::block(&answer.text))
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
    })
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
