//! `inbox`: shows messages and marks them only afterwards, so that none is lost before it was
//! shown.

use std::collections::BTreeSet;
use std::time::Duration;

use super::args::{self, Format};
use super::fail::{Class, Exit, Failure};
use super::out::Out;
use super::setup::{Setup, since};
use super::{Done, interrupt};
use crate::model::envelope::Envelope;
use crate::model::id::MemberName;
use crate::model::protocol::render_for_agent;
use crate::model::text;
use crate::model::time::Timestamp;
use crate::ops::authority::Action;
use crate::ops::inbox::{Afterwards, look, settle};
use crate::ops::{self, OpsError, TeamStore};
use crate::sys::env;
use crate::ui;

/// Interval of the full re-read while following: a file notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);

/// A mailbox and how its messages are shown.
struct Reader {
    team: TeamStore,
    owner: MemberName,
    out: Out,
    format: Format,
    follow: bool,
    /// The messages to include that were read before.
    past: Past,
    afterwards: Afterwards,
}

/// The selection of messages that were read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    Unread,
    All,
    Since(Timestamp),
}

pub(super) fn inbox(setup: &Setup, args: &args::Inbox) -> Done {
    if setup.out.json && args.format.is_some_and(|format| format != Format::Json) {
        return Err(Failure::usage(
            "`--json` and `--format` name different forms",
            "leave one of them out",
        ));
    }
    let (team, owner) = setup
        .member(args.name.as_deref().unwrap_or(setup.ctx.speaker.as_str()), Action::ReadMail)?;
    let afterwards = afterwards(args, owner == setup.ctx.speaker);
    if (args.clear || afterwards == Afterwards::Remove) && owner != setup.ctx.speaker {
        may_be_emptied(&team, &owner)?;
    }
    let reader = Reader {
        team,
        owner,
        out: setup.out.clone(),
        format: args.format.unwrap_or(if setup.out.json { Format::Json } else { Format::Text }),
        follow: args.follow,
        past: past(args)?,
        afterwards,
    };
    match (args.clear, args.follow) {
        (true, _) => reader.clear(),
        (false, false) => reader.once(),
        (false, true) => interrupt::breakable(Failure::StreamEnded, move || reader.follow()),
    }
}

fn past(args: &args::Inbox) -> Result<Past, Failure> {
    match &args.since {
        Some(given) => Ok(Past::Since(since(given)?)),
        None if args.all => Ok(Past::All),
        None => Ok(Past::Unread),
    }
}

/// Returns what happens to messages after they were shown. Another member's mailbox is left alone
/// unless removal is requested.
fn afterwards(args: &args::Inbox, own: bool) -> Afterwards {
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
    if ops::inbox::is_read_by_us(team, owner)? {
        return Ok(());
    }
    let text = format!("{owner} reads its mailbox itself; only {owner} may empty it");
    Err(Failure::new(Class::Refused, text, Some(format!("speak as its owner: `--as {owner}`"))))
}

impl Reader {
    fn once(&self) -> Done {
        let messages = self.messages(self.past)?;
        self.show(&messages)?;
        self.settle(&messages)?;
        Ok(Exit::DONE)
    }

    fn messages(&self, past: Past) -> Result<Vec<Envelope>, OpsError> {
        let mut messages = look(&self.team, &self.owner, past != Past::Unread)?;
        if let Past::Since(at) = past {
            // A message without a valid timestamp may be recent, so it is included.
            messages.retain(|m| Timestamp::parse(&m.timestamp).is_none_or(|sent| sent >= at));
        }
        Ok(messages)
    }

    /// Shows messages as they arrive, until the team is gone.
    fn follow(&self) -> Done {
        let mut seen = BTreeSet::new();
        let changes = self.team.changes().map_err(OpsError::from)?;
        if changes.is_polling() {
            self.out.say(ops::events::POLLING);
        }
        let mut past = self.past;
        loop {
            let messages = match self.messages(past) {
                Err(_) if !self.team.exists() => {
                    self.out.say(&format!("team {} is gone", self.team.name()));
                    return Ok(Exit::DONE);
                }
                other => other?,
            };
            let fresh: Vec<Envelope> = messages
                .into_iter()
                .filter(|message| seen.insert(message.msg_id.clone()))
                .collect();
            self.show(&fresh)?;
            self.settle(&fresh)?;
            past = Past::Unread;
            changes.wait(SWEEP);
        }
    }

    fn clear(&self) -> Done {
        let messages = look(&self.team, &self.owner, true)?;
        let removed = settle(&self.team, &self.owner, messages, Afterwards::Remove)?;
        let entries: Vec<_> = removed.iter().map(Envelope::to_entry).collect();
        self.out.confirm(&entries, || match entries.len() {
            1 => format!("removed 1 message of {}", self.owner),
            many => format!("removed {many} messages of {}", self.owner),
        })?;
        Ok(Exit::DONE)
    }

    fn settle(&self, messages: &[Envelope]) -> Result<(), Failure> {
        // Messages that were read before need no second mark.
        let fresh = |m: &&Envelope| self.afterwards == Afterwards::Remove || !m.read;
        let shown: Vec<Envelope> = messages.iter().filter(fresh).cloned().collect();
        settle(&self.team, &self.owner, shown, self.afterwards)?;
        Ok(())
    }

    fn show(&self, messages: &[Envelope]) -> Result<(), Failure> {
        match self.format {
            Format::Json if self.follow => {
                messages.iter().try_for_each(|message| self.out.document(&message.to_entry()))
            }
            Format::Json => {
                let entries: Vec<_> = messages.iter().map(Envelope::to_entry).collect();
                self.out.document(&entries)
            }
            Format::Text => {
                let now = (!self.out.verbose).then(ops::now);
                self.blocks(messages.iter().map(|m| ui::letter(m, now, self.out.paint)).collect())
            }
            Format::Xml => self.blocks(messages.iter().map(as_xml).collect()),
        }
    }

    /// Returns the line for an empty result; it names the option that shows read messages.
    fn nothing(&self) -> String {
        let handled = look(&self.team, &self.owner, true).map_or(0, |all| all.len());
        let name = if self.owner.is_lead() { String::new() } else { format!(" {}", self.owner) };
        match (self.past, handled) {
            (Past::All, _) | (Past::Unread, 0) => "no messages".to_owned(),
            (Past::Since(_), _) => "no messages since then".to_owned(),
            (Past::Unread, 1) => {
                format!("no unread messages; 1 was read: `phalanx inbox{name} --all`")
            }
            (Past::Unread, some) => {
                format!(
                    "no unread messages; {some} were read: `phalanx inbox{name} --since 1h` or `--all`"
                )
            }
        }
    }

    /// Prints blocks separated by an empty line; a stream also ends with one.
    fn blocks(&self, blocks: Vec<String>) -> Result<(), Failure> {
        if blocks.is_empty() && !self.follow {
            self.out.say(&self.nothing());
        }
        let end = if self.follow && !blocks.is_empty() { "\n\n" } else { "" };
        self.out.data(&format!("{}{end}", blocks.join("\n\n")))
    }
}

/// Formats a message for an agent's prompt. A pipe gets it verbatim, a terminal without control
/// characters.
fn as_xml(message: &Envelope) -> String {
    let (color, summary) = (message.color.as_deref(), message.summary.as_deref());
    let whole = render_for_agent(&message.from, color, summary, &message.text);
    if env::stdout_is_tty() { text::block(&whole) } else { whole }
}
