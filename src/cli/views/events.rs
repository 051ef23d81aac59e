//! `events`: prints the journal of a team.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::out::Out;
use crate::setup::{Setup, since};
use crate::team::ended::ended_team;
use model::id::MemberName;
use model::team::event::{Event, EventKind};
use ops::authority::Action;
use ops::{self, OpsError};
use sys::env;

/// Show the events of a team.
#[derive(Debug, Default, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx events ann --since 10m\n  phalanx events -f -n 20\n\n\
    The end of a program is one line; `-v` and `--json` show all events about it."
)]
pub(crate) struct EventsArgs {
    /// Show only events about these members.
    #[arg(value_name = "NAME")]
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Keep printing new events until the team is deleted.
    #[arg(short, long)]
    #[serde(skip)]
    pub(crate) follow: bool,
    /// Show events since then: 90s, 10m, 2h, 1d, or a time.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Show the journal of the team of this name that ended last, or last before TIME; it is kept
    /// for 7 days.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "0s", conflicts_with = "follow")]
    #[serde(skip)]
    pub(crate) ended: Option<String>,
    /// Of the earlier events, show only the last N.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<usize>,
}

/// Interval of the full re-read while following: a file notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);

/// Number of events that are read before the last N: the end of a program is one line, however many
/// events follow from it.
const CONTEXT: usize = 500;

pub(crate) fn events(setup: &Setup, args: &EventsArgs) -> VerbResult {
    let since = args.since.as_deref().map(since).transpose()?;
    let first = move |events: Vec<Event>| {
        let is_new = |event: &Event| since.is_none_or(|since| event.at >= since);
        events.into_iter().filter(is_new).collect::<Vec<_>>()
    };
    let (lines, follow) = (args.lines, args.follow);
    let stream = |names| EventStream { out: setup.out.clone(), names, ended: BTreeSet::new() };
    if let Some(before) = &args.ended {
        let (names, team) = ended_team(setup, &args.names, before, "events")?;
        stream(names).show(first(team.events()?), lines)?;
        return Ok(Exit::DONE);
    }
    let (team, names) = setup.members(&args.names, Action::Look)?;
    let mut stream = stream(names);
    if !follow {
        let events = match (since, lines) {
            (Some(then), _) => team.events_since(then)?,
            (None, Some(lines)) => {
                let wanted = lines.saturating_add(CONTEXT);
                team.last_events(|events| stream.count(events) >= wanted)?
            }
            (None, None) => team.events()?,
        };
        stream.show(first(events), lines)?;
        return Ok(Exit::DONE);
    }
    interrupt::run_interruptible(Failure::StreamEnded, move || {
        let changes = team.changes().map_err(OpsError::from)?;
        if let Some(reason) = changes.polling() {
            stream.out.print_message(ops::views::events::polling_notice(reason));
        }
        let mut journal = team.journal();
        let mut lines = lines;
        loop {
            let events = journal.read()?;
            let is_end = events.iter().any(|event| event.event == EventKind::TeamDeleted);
            stream.show(first(events), lines.take())?;
            if is_end || !team.exists() {
                return Ok(Exit::DONE);
            }
            changes.wait(SWEEP);
        }
    })
}

/// The events that are shown, in order.
struct EventStream {
    out: Out,
    /// The members that the events are about; empty for all events.
    names: Vec<MemberName>,
    /// Members whose program has ended.
    ended: BTreeSet<MemberName>,
}

impl EventStream {
    /// Shows the events, or only the last `lines` of them.
    fn show(&mut self, events: Vec<Event>, lines: Option<usize>) -> Result<(), Failure> {
        let mut shown: Vec<Event> =
            events.into_iter().filter(|event| self.is_shown(event)).collect();
        shown.drain(..shown.len().saturating_sub(lines.unwrap_or(shown.len())));
        let out = &self.out;
        if out.json {
            return shown.iter().try_for_each(|event| out.print_document(event));
        }
        let width = (env::stdout_is_tty() && !out.verbose).then(|| out.width());
        let format =
            ui::EventFormat { now: ops::now(), absolute: out.verbose, width, paint: out.paint };
        out.print_text(&ui::event_lines(&shown, format))
    }

    /// Returns the number of events that would be shown.
    fn count(&self, events: &[Event]) -> usize {
        let (out, names) = (self.out.clone(), self.names.clone());
        let mut fresh = EventStream { out, names, ended: BTreeSet::new() };
        events.iter().filter(|event| fresh.is_shown(event)).count()
    }

    fn is_shown(&mut self, event: &Event) -> bool {
        let is_wanted = self.names.is_empty()
            || event.member.as_ref().is_some_and(|name| self.names.contains(name));
        is_wanted && (!self.repeats_end(event) || self.out.json || self.out.verbose)
    }

    /// Returns true for an event that follows from the end of a program, which was shown.
    fn repeats_end(&mut self, event: &Event) -> bool {
        let Some(name) = &event.member else { return false };
        if event.event == EventKind::MemberExited {
            self.ended.insert(name.clone());
        } else if event.event == EventKind::MemberAsked {
            self.ended.remove(name);
        }
        let follows = matches!(
            event.event,
            EventKind::MemberState | EventKind::PlacementVerdict | EventKind::MemberLeft
        );
        follows && self.ended.contains(name)
    }
}
