//! `inbox`: shows messages and marks them only afterwards, so that none is lost before it was
//! shown.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::out::Out;
use crate::setup::{Setup, since};
use crate::team::ended::ended_team;
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::news::is_news;
use model::mail::protocol::render_for_agent;
use model::text;
use model::time::Timestamp;
use ops::authority::Action;
use ops::decisions::mark_read::{Afterwards, mark_or_remove};
use ops::mail::inbox::{read_messages, read_news};
use ops::{self, Context, Kind, OpsError, TeamStore};
use sys::env;

/// Show unread messages and mark them as read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx inbox --follow")]
pub(crate) struct InboxArgs {
    /// Member whose mailbox is shown [default: the caller]; messages of other members are not
    /// marked.
    pub(crate) name: Option<String>,
    /// Include messages that were read before.
    #[arg(long)]
    pub(crate) all: bool,
    /// Show all messages since then, including read and handled ones: 90s, 10m, 2h, 1d, or a time.
    #[arg(long, value_name = "TIME", conflicts_with = "all")]
    pub(crate) since: Option<String>,
    /// Show the messages to the lead of the team of this name that ended last, or last before TIME;
    /// they are kept for 7 days.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "0s",
          conflicts_with_all = ["name", "since", "follow", "afterwards"])]
    pub(crate) ended: Option<String>,
    /// Do not mark them as read.
    #[arg(long, group = "afterwards")]
    pub(crate) peek: bool,
    /// Remove them after they were shown.
    #[arg(long, group = "afterwards")]
    pub(crate) consume: bool,
    /// Remove all messages without showing them.
    #[arg(long, group = "afterwards", conflicts_with_all = ["follow", "all", "since"])]
    pub(crate) clear: bool,
    /// Keep printing new messages.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Output format; xml is for the prompt of an agent.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<MessageFormat>,
}

/// The formats of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    Text,
    Json,
    Xml,
}

/// Interval of the full re-read while following: a file notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);
/// Interval of the full re-read of the lead's mailbox while no lead runs.
const UNLED: Duration = Duration::from_secs(1);
/// Pause after a failure of the shared store.
const RETRY: Duration = Duration::from_secs(1);

/// A mailbox and how its messages are shown.
struct MailboxReader {
    ctx: Context,
    team: TeamStore,
    owner: MemberName,
    out: Out,
    format: MessageFormat,
    follow: bool,
    /// The messages to include that were read before.
    past: ReadMessages,
    afterwards: Afterwards,
}

/// The selection of messages that were read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMessages {
    Unread,
    All,
    Since(Timestamp),
}

pub(crate) fn inbox(setup: &Setup, args: &InboxArgs) -> VerbResult {
    setup.out.check_format(args.format.is_some_and(|format| format != MessageFormat::Json))?;
    let format = args.format.unwrap_or(if setup.out.json {
        MessageFormat::Json
    } else {
        MessageFormat::Text
    });
    if let Some(before) = &args.ended {
        let (_, team) = ended_team(setup, &[], before, "inbox")?;
        let mut messages = team.messages().map_err(OpsError::from)?;
        messages.retain(|message| args.all || !message.read && is_news(message));
        return print_ended(&setup.out, format, &messages);
    }
    let (team, owner) = setup
        .member(args.name.as_deref().unwrap_or(setup.ctx.speaker.as_str()), Action::ReadMail)?;
    let afterwards = afterwards(args, owner == setup.ctx.speaker);
    if (args.clear || afterwards == Afterwards::Remove) && owner != setup.ctx.speaker {
        may_be_emptied(&team, &owner)?;
    }
    let reader = MailboxReader {
        ctx: setup.ctx.clone(),
        team,
        owner,
        out: setup.out.clone(),
        format,
        follow: args.follow,
        past: past(args)?,
        afterwards,
    };
    match (args.clear, args.follow) {
        (true, _) => reader.clear(),
        (false, false) => reader.print_once(),
        (false, true) => {
            interrupt::run_interruptible(Failure::StreamEnded, move || reader.follow())
        }
    }
}

fn past(args: &InboxArgs) -> Result<ReadMessages, Failure> {
    match &args.since {
        Some(given) => Ok(ReadMessages::Since(since(given)?)),
        None if args.all => Ok(ReadMessages::All),
        None => Ok(ReadMessages::Unread),
    }
}

/// Returns what happens to messages after they were shown. Another member's mailbox is left alone
/// unless removal is requested.
fn afterwards(args: &InboxArgs, own: bool) -> Afterwards {
    match (args.peek, args.consume) {
        (true, _) => Afterwards::Leave,
        (false, true) => Afterwards::Remove,
        (false, false) if own => Afterwards::Mark,
        (false, false) => Afterwards::Leave,
    }
}

/// Checks that phalanx reads this mailbox. A program's own mailbox may only be emptied by its
/// owner.
///
/// # Errors
/// Returns a refusal if the owner's program reads its mailbox itself.
fn may_be_emptied(team: &TeamStore, owner: &MemberName) -> Result<(), Failure> {
    if ops::mail::inbox::is_read_by_us(team, owner)? {
        return Ok(());
    }
    let text = format!("{owner} reads its mailbox itself; only {owner} may empty it");
    Err(Failure::new(Kind::Refused, text, Some(format!("speak as its owner: `--as {owner}`"))))
}

impl MailboxReader {
    fn print_once(&self) -> VerbResult {
        let messages = self.messages(self.past)?;
        self.print(&messages)?;
        self.mark_shown(&messages)?;
        Ok(Exit::DONE)
    }

    fn messages(&self, past: ReadMessages) -> Result<Vec<Envelope>, OpsError> {
        if self.owner.is_lead() && self.owner == self.ctx.speaker {
            // Without it the mailbox still has what was sent before.
            let _ = ops::starting::catch_up::catch_up(&self.ctx, &self.team);
        }
        let mut messages = match past {
            ReadMessages::Unread => read_news(&self.team, &self.owner)?,
            ReadMessages::All | ReadMessages::Since(_) => {
                read_messages(&self.team, &self.owner, true)?
            }
        };
        if let ReadMessages::Since(at) = past {
            // A message without a valid timestamp may be recent, so it is included.
            messages.retain(|m| Timestamp::parse(&m.timestamp).is_none_or(|sent| sent >= at));
        }
        Ok(messages)
    }

    /// Shows messages as they arrive, until the team is gone. While the shared store cannot be read
    /// or written, waits for it: another reader would show the messages again that this one could
    /// not mark.
    fn follow(&self) -> VerbResult {
        let (mut printed, mut unmarked) = (BTreeSet::new(), Vec::new());
        let changes = self.team.changes().map_err(OpsError::from)?;
        if let Some(reason) = changes.polling() {
            self.out.print_message(ops::views::events::polling_notice(reason));
        }
        let (mut past, mut reported) = (self.past, false);
        loop {
            let messages = match self.messages(past) {
                Err(_) if !self.team.exists() => {
                    self.out.print_message(&format!("team {} is gone", self.team.name()));
                    return Ok(Exit::DONE);
                }
                Err(e) if self.is_temporary(&e) => {
                    self.report_once(&e, &mut reported);
                    changes.wait(RETRY);
                    continue;
                }
                other => other?,
            };
            let fresh: Vec<Envelope> = messages
                .into_iter()
                .filter(|message| printed.insert(message.msg_id.clone()))
                .collect();
            self.print(&fresh)?;
            past = ReadMessages::Unread;
            unmarked.extend(fresh);
            match self.mark_shown(&unmarked) {
                Err(e) if self.is_temporary(&e) => {
                    self.report_once(&e, &mut reported);
                    changes.wait(RETRY);
                }
                marked => {
                    marked?;
                    unmarked.clear();
                    reported = false;
                    changes.wait(self.interval());
                }
            }
        }
    }

    /// Returns the time until the next full read.
    fn interval(&self) -> Duration {
        match ops::members::lead::is_led(&self.team) {
            // The death of a member changes no file if no lead sees it.
            Ok(false) if self.owner.is_lead() => UNLED,
            Ok(_) | Err(_) => SWEEP,
        }
    }

    /// Returns true for a failure of the shared store that can end by itself.
    fn is_temporary(&self, e: &OpsError) -> bool {
        self.team.is_shared() && matches!(e.kind(), Kind::Backend | Kind::Failed)
    }

    fn report_once(&self, e: &OpsError, reported: &mut bool) {
        if !std::mem::replace(reported, true) {
            self.out.print_message(&format!("{e}; waiting for it"));
        }
    }

    fn clear(&self) -> VerbResult {
        let messages = read_messages(&self.team, &self.owner, true)?;
        let removed =
            mark_or_remove(&self.ctx, &self.team, &self.owner, messages, Afterwards::Remove)?;
        let entries: Vec<_> = removed.iter().map(Envelope::to_entry).collect();
        self.out.confirm(&entries, || match entries.len() {
            1 => format!("removed 1 message of {}", self.owner),
            many => format!("removed {many} messages of {}", self.owner),
        })
    }

    fn mark_shown(&self, messages: &[Envelope]) -> Result<(), OpsError> {
        // Messages that were read before need no second mark.
        let fresh = |m: &&Envelope| self.afterwards == Afterwards::Remove || !m.read;
        let shown: Vec<Envelope> = messages.iter().filter(fresh).cloned().collect();
        mark_or_remove(&self.ctx, &self.team, &self.owner, shown, self.afterwards)?;
        Ok(())
    }

    fn print(&self, messages: &[Envelope]) -> Result<(), Failure> {
        match self.format {
            MessageFormat::Json if self.follow => {
                messages.iter().try_for_each(|message| self.out.print_document(&message.to_entry()))
            }
            MessageFormat::Json => print_entries(&self.out, messages),
            MessageFormat::Text => self.print_blocks(text_blocks(&self.out, messages)),
            MessageFormat::Xml => self.print_blocks(messages.iter().map(as_xml).collect()),
        }
    }

    /// Returns the line for an empty result; it names the option that shows read messages.
    fn empty_text(&self) -> String {
        let handled = read_messages(&self.team, &self.owner, true).map_or(0, |all| all.len());
        let name = if self.owner.is_lead() { String::new() } else { format!(" {}", self.owner) };
        match (self.past, handled) {
            (ReadMessages::All, _) | (ReadMessages::Unread, 0) => "no messages".to_owned(),
            (ReadMessages::Since(_), _) => "no messages since then".to_owned(),
            (ReadMessages::Unread, 1) => {
                format!("no unread messages; 1 was read: `phalanx inbox{name} --all`")
            }
            (ReadMessages::Unread, some) => {
                format!(
                    "no unread messages; {some} were read: `phalanx inbox{name} --since 1h` or `--all`"
                )
            }
        }
    }

    /// Prints blocks separated by an empty line; a stream also ends with one.
    fn print_blocks(&self, blocks: Vec<String>) -> Result<(), Failure> {
        if blocks.is_empty() && !self.follow {
            self.out.print_message(&self.empty_text());
        }
        let end = if self.follow && !blocks.is_empty() { "\n\n" } else { "" };
        self.out.print_text(&format!("{}{end}", blocks.join("\n\n")))
    }
}

/// Prints messages to the lead of a team that has ended.
fn print_ended(out: &Out, format: MessageFormat, messages: &[Envelope]) -> VerbResult {
    let blocks = match format {
        MessageFormat::Json => {
            print_entries(out, messages)?;
            return Ok(Exit::DONE);
        }
        MessageFormat::Text => text_blocks(out, messages),
        MessageFormat::Xml => messages.iter().map(as_xml).collect(),
    };
    if blocks.is_empty() {
        out.print_message("no unread messages; `--all` shows those that were read");
    }
    out.print_text(&blocks.join("\n\n"))?;
    Ok(Exit::DONE)
}

fn print_entries(out: &Out, messages: &[Envelope]) -> Result<(), Failure> {
    let entries: Vec<_> = messages.iter().map(Envelope::to_entry).collect();
    out.print_document(&entries)
}

fn text_blocks(out: &Out, messages: &[Envelope]) -> Vec<String> {
    let now = (!out.verbose).then(ops::now);
    messages.iter().map(|message| ui::message(message, now, out.paint)).collect()
}

/// Formats a message for an agent's prompt. A pipe gets it verbatim, a terminal without control
/// characters.
fn as_xml(message: &Envelope) -> String {
    let (color, summary) = (message.color.as_deref(), message.summary.as_deref());
    let whole = render_for_agent(None, &message.from, color, summary, &message.text);
    if env::stdout_is_tty() { text::block(&whole) } else { whole }
}
