//! The whole state of a team for a display that is kept up to date. A [`SnapshotReader`] reads
//! again only the parts whose files have changed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::decisions::requests::{self, Shown};
use crate::members::status::{self, MemberStatus, Status};
use crate::{Context, OpsError, now};
use model::board::Board;
use model::board::task::{Progress, Task, TaskState};
use model::decisions::user_question;
use model::id::{Incarnation, MemberName, TaskId, TeamName};
use model::mail::envelope::Envelope;
use model::members::assessment::Doing;
use model::members::need::Need;
use model::members::record::MemberRecord;
use model::team::event::{Event, EventKind};
use model::team::worktree::Checkout;
use model::time::Timestamp;
use model::topic::Topic;
use store::{JournalReader, TeamStore};
use sys::proc::Liveness;

/// Number of events that are kept.
const EVENTS: usize = 1_000;
/// Number of messages of one mailbox that are kept.
const MESSAGES: usize = 200;

/// Number of tasks above which the members are shown before the board is read.
const LARGE_BOARD: usize = 1_000;

/// The state of a team at one time.
#[derive(Debug, Clone)]
pub struct TeamSnapshot {
    /// The time at which ages were computed.
    pub read_at: Timestamp,
    /// Another program created the team, for example Claude Code.
    pub is_foreign: bool,
    /// The state without its task list, which is [`TeamSnapshot::tasks`].
    pub status: Status,
    /// Facts about members that are not in `status`, by name.
    pub details: BTreeMap<MemberName, MemberDetails>,
    pub tasks: Arc<Vec<TaskCard>>,
    /// False in the first state of a team with a large board: it has no tasks yet.
    pub is_board_read: bool,
    /// The open requests, oldest first.
    pub requests: Vec<Shown>,
    /// The latest messages of all mailboxes, oldest first.
    pub messages: Arc<Vec<SentMessage>>,
    /// The latest events, oldest first.
    pub events: Arc<VecDeque<Event>>,
}

/// Facts about a member for its row and for actions on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberDetails {
    /// Its run, once the program and the place of that are on record; `None` if phalanx did not
    /// start it.
    pub run: Option<Incarnation>,
    /// Time of its last change of state, if known.
    pub state_since: Option<Timestamp>,
    /// Number of messages in its mailbox that it has not taken.
    pub unread: usize,
    /// The working directory.
    pub cwd: Option<String>,
    pub worktree: Option<Checkout>,
    /// The command line of a program that takes no messages.
    pub command: Option<String>,
}

/// A task of the board.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCard {
    pub id: TaskId,
    pub key: Option<String>,
    pub subject: String,
    pub state: TaskState,
    pub owner: Option<String>,
    /// The open tasks that it waits for.
    pub blockers: Vec<TaskId>,
    pub progress: Option<Progress>,
    pub priority: i64,
    /// The start of the work, while it runs.
    pub running_since: Option<Timestamp>,
    /// The time since which it is failed or stale, if known.
    pub stuck_since: Option<Timestamp>,
    /// The reason why it has not started, or why it failed.
    pub reason: Option<String>,
    /// One line about its end, once it has ended.
    pub ending: Option<String>,
}

/// A message and the mailbox in which it is.
#[derive(Debug, Clone, PartialEq)]
pub struct SentMessage {
    pub to: MemberName,
    /// `None` if the sender wrote no valid time.
    pub at: Option<Timestamp>,
    pub envelope: Envelope,
}

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttentionItem {
    #[serde(skip)]
    pub cause: AttentionCause,
    /// The member that it is about; `None` for the lead and for tasks without an owner.
    pub member: Option<MemberName>,
    /// Text for people, which contains foreign text.
    pub why: String,
    /// The command that sees to it, and what it does.
    pub next: String,
    pub since: Timestamp,
}

/// The kind of an [`AttentionItem`], with what identifies it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttentionCause {
    Request(String),
    Member(MemberName),
    Task(TaskId),
    Lead,
}

impl AttentionItem {
    /// Returns the reason for a face that has keys: only a lead is seen to by a command.
    pub fn for_keys(&self) -> String {
        match self.cause {
            AttentionCause::Lead => format!("{}: {}", self.why, self.next),
            AttentionCause::Request(_) | AttentionCause::Member(_) | AttentionCause::Task(_) => {
                self.why.clone()
            }
        }
    }
}

impl TeamSnapshot {
    /// Returns the time after which the state of a member may change although nothing happens.
    pub fn lapses_in(&self) -> Option<Duration> {
        let next = self.status.members.iter().filter_map(|member| member.state.lapses_at).min()?;
        Some(Duration::from_millis(next.since(self.read_at)))
    }

    /// Returns what waits for a person, oldest first.
    pub fn attention(&self) -> Vec<AttentionItem> {
        let mut items: Vec<AttentionItem> = Vec::new();
        items.extend(self.requests.iter().filter(|one| one.kind != "shutdown").map(|one| {
            AttentionItem {
                cause: AttentionCause::Request(one.request_id.to_string()),
                member: Some(one.from.clone()),
                why: format!("asks: {}", one.summary),
                next: answer_of(one),
                since: self.read_at.minus_ms(one.age_ms),
            }
        }));
        items.extend(self.status.members.iter().filter_map(|member| self.stuck_member(member)));
        items.extend(self.status.left.iter().filter(|left| left.resumable).map(|left| {
            AttentionItem {
                cause: AttentionCause::Member(left.name.clone()),
                member: Some(left.name.clone()),
                why: left.state.describe(),
                next: format!("`phalanx resume {}` starts it again", left.name),
                since: self.read_at.minus_ms(left.age_ms),
            }
        }));
        items.extend(self.tasks.iter().filter_map(|task| self.stuck_task(task)));
        if let Some(lead) = &self.status.dead_lead {
            let has_left = self.status.left.iter().any(|left| left.resumable);
            let members = self.status.members.iter();
            let next = lead.succession(self.status.team.as_str(), members, has_left);
            let why = format!("lead {} has died", lead.pid);
            items.push(self.about_lead(why, format!("`{next}`")));
        }
        if let Some(lead) = self.status.lead.as_ref().filter(|lead| lead.state == "stopped") {
            let next = format!("`kill -CONT {}`", lead.pid);
            items.push(self.about_lead(format!("lead {} is stopped", lead.pid), next));
        }
        items.sort_by(|a, b| a.since.0.cmp(&b.since.0).then_with(|| a.cause.cmp(&b.cause)));
        items
    }

    fn about_lead(&self, why: String, next: String) -> AttentionItem {
        AttentionItem { cause: AttentionCause::Lead, member: None, why, next, since: self.read_at }
    }

    /// A member that waits for a person, does not respond, or runs no longer.
    fn stuck_member(&self, member: &MemberStatus) -> Option<AttentionItem> {
        // An open request has an entry of its own.
        let asks = |request: &Shown| request.from == member.name && request.kind != "shutdown";
        let is_listed = matches!(member.state.needs, Some(need) if need != Need::Limit)
            && self.requests.iter().any(asks);
        (member.state.doing.needs_attention() && !is_listed).then(|| AttentionItem {
            cause: AttentionCause::Member(member.name.clone()),
            member: Some(member.name.clone()),
            why: match (member.state.needs, &member.state.reason) {
                (Some(need), Some(reason)) => format!("{}: {reason}", need.words()),
                (Some(need), None) => need.words().to_owned(),
                (None, _) => member.state.describe(),
            },
            next: match member.state.doing {
                Doing::Waiting(need) => need.remedy(&member.name),
                _ => format!("`phalanx explain {}` shows the cause", member.name),
            },
            since: self
                .details
                .get(&member.name)
                .and_then(|d| d.state_since)
                .unwrap_or(self.read_at),
        })
    }

    /// Returns the time at which a task was submitted for approval, if that is among the events.
    fn submitted_at(&self, id: TaskId) -> Option<Timestamp> {
        let is_submission =
            |event: &&Event| event.event == EventKind::TaskSubmitted && event.task == Some(id);
        self.events.iter().rev().find(is_submission).map(|event| event.at)
    }

    /// A task that failed, is stale, or waits for approval.
    fn stuck_task(&self, task: &TaskCard) -> Option<AttentionItem> {
        let word = match task.state {
            TaskState::Failed => "failed",
            TaskState::Stale => "is stale",
            TaskState::InReview => "waits for approval",
            TaskState::Pending
            | TaskState::Blocked
            | TaskState::InProgress
            | TaskState::Stopping
            | TaskState::Completed
            | TaskState::Cancelled => return None,
        };
        // A task in review waits for its approval, not for its owner.
        let owner = task.owner.as_deref().filter(|_| task.state != TaskState::InReview);
        let owner = owner.and_then(|owner| MemberName::existing(owner).ok());
        let reason = task.reason.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
        Some(AttentionItem {
            cause: AttentionCause::Task(task.id),
            member: owner.filter(|owner| self.status.members.iter().any(|m| m.name == *owner)),
            why: format!("#{} {word}: {}{reason}", task.id, task.subject),
            next: format!("`phalanx task get {}` shows it", task.id),
            since: task.stuck_since.or_else(|| self.submitted_at(task.id)).unwrap_or(self.read_at),
        })
    }
}

/// Returns the command that answers a request.
fn answer_of(request: &Shown) -> String {
    let id = &request.request_id;
    match request.answered_by {
        Some("pane") => Need::Dialog.remedy(&request.from),
        Some(_) | None => {
            let yes = user_question::option_for(&request.user_questions());
            format!("`phalanx answer {id} {yes}`, or `--reject`")
        }
    }
}

/// Reads snapshots of one team.
pub struct SnapshotReader {
    ctx: Context,
    team: TeamStore,
    board: Board,
    tasks: Arc<Vec<TaskCard>>,
    journal: JournalReader,
    events: Arc<VecDeque<Event>>,
    mail: BTreeMap<MemberName, MailboxContent>,
    messages: Arc<Vec<SentMessage>>,
    /// Nothing was read yet, or the last read has failed half-way.
    is_stale: bool,
    /// A state was returned.
    has_read: bool,
    is_board_read: bool,
}

/// The messages of one mailbox that are kept.
#[derive(Default)]
struct MailboxContent {
    unread: usize,
    latest: Vec<SentMessage>,
}

impl SnapshotReader {
    /// Creates a reader that has read nothing yet.
    pub fn new(ctx: &Context, team: &TeamStore) -> SnapshotReader {
        SnapshotReader {
            ctx: ctx.clone(),
            team: team.clone(),
            board: Board::default(),
            tasks: Arc::default(),
            journal: team.journal(),
            events: Arc::default(),
            mail: BTreeMap::new(),
            messages: Arc::default(),
            is_stale: true,
            has_read: false,
            is_board_read: false,
        }
    }

    /// Returns true if the last state had no board: it is to be read now.
    pub fn must_read_on(&self) -> bool {
        self.has_read && !self.is_board_read
    }

    /// Reads the parts that these changes concern and returns the whole state. The first call, and
    /// one after an error, read everything. In a team with a large board the first call leaves that
    /// out, so that the members are seen early.
    ///
    /// # Errors
    /// Files of the team that cannot be read.
    pub fn read(&mut self, topics: &BTreeSet<Topic>) -> Result<TeamSnapshot, OpsError> {
        let everything = std::mem::replace(&mut self.is_stale, true)
            || self.must_read_on()
            || topics.contains(&Topic::Everything);
        let roster = self.team.team()?;
        let is_first_of_large = !self.has_read && self.team.task_ids()?.len() > LARGE_BOARD;
        if !is_first_of_large && (everything || topics.contains(&Topic::Tasks)) {
            self.board = self.team.board()?;
            // The longest part of a task, which no card shows.
            self.board.tasks.values_mut().for_each(|task| task.description = String::new());
            self.is_board_read = true;
        }
        self.read_events()?;
        let settings = self.team.settings()?;
        let is_foreign = settings.is_none();
        let records = self.team.member_records()?;
        let mut status =
            status::status_with(&self.team, &roster, &self.board, &records, settings.as_ref())?;
        self.read_mail(&status, topics, everything)?;
        // Processing the requests of a team that another program leads would take them away from
        // that program.
        let requests =
            if is_foreign { Vec::new() } else { requests::list(&self.ctx, &self.team, false)? };
        let list = std::mem::take(&mut status.task_list);
        // Why a task waits depends on the members, too.
        let is_about_tasks = |topic: &Topic| {
            matches!(
                topic,
                Topic::Tasks | Topic::Roster | Topic::Members | Topic::Member(_) | Topic::Settings
            )
        };
        if everything || topics.iter().any(is_about_tasks) {
            self.tasks = Arc::new(self.cards(&list));
        }
        let checkouts = settings.map(|settings| settings.checkouts).unwrap_or_default();
        let names = status.members.iter().map(|member| member.name.clone());
        let names: BTreeSet<MemberName> =
            names.chain(status.left.iter().map(|left| left.name.clone())).collect();
        let read_at = now();
        let details = names.into_iter().map(|name| {
            let record = records.iter().find(|record| record.name == name);
            let unread = self.mail.get(&name).map_or(0, |mail| mail.unread);
            let here = status.members.iter().map(|member| (&member.name, &member.state));
            let mut all = here.chain(status.left.iter().map(|left| (&left.name, &left.state)));
            let since = all.find(|(known, _)| **known == name).and_then(|(_, s)| s.state_ms);
            let since = since.map(|ms| read_at.minus_ms(ms));
            let details = details(record, since, unread, checkouts.get(&name).cloned());
            (name, details)
        });
        (self.is_stale, self.has_read) = (false, true);
        Ok(TeamSnapshot {
            read_at,
            is_foreign,
            details: details.collect(),
            status,
            tasks: Arc::clone(&self.tasks),
            is_board_read: self.is_board_read,
            requests,
            messages: Arc::clone(&self.messages),
            events: Arc::clone(&self.events),
        })
    }

    fn read_events(&mut self) -> Result<(), OpsError> {
        let new = self.journal.read()?;
        if !new.is_empty() {
            let events = Arc::make_mut(&mut self.events);
            events.extend(new);
            events.drain(..events.len().saturating_sub(EVENTS));
        }
        Ok(())
    }

    /// Reads the mailboxes that have changed, of the lead and of all members.
    fn read_mail(
        &mut self,
        status: &Status,
        topics: &BTreeSet<Topic>,
        everything: bool,
    ) -> Result<(), OpsError> {
        let members = status.members.iter().map(|member| member.name.clone());
        let owners: BTreeSet<MemberName> = members.chain([MemberName::lead()]).collect();
        let known = self.mail.len();
        self.mail.retain(|owner, _| owners.contains(owner));
        let mut is_changed = self.mail.len() != known;
        for owner in owners {
            let is_new = !self.mail.contains_key(&owner);
            if everything || is_new || topics.contains(&Topic::Mail(owner.file_stem())) {
                let content = read_mailbox(&self.team, &owner)?;
                self.mail.insert(owner, content);
                is_changed = true;
            }
        }
        if is_changed {
            let mut all: Vec<SentMessage> =
                self.mail.values().flat_map(|mail| mail.latest.iter().cloned()).collect();
            all.sort_by_key(|message| message.at.map_or(0, |at| at.0));
            self.messages = Arc::new(all);
        }
        Ok(())
    }

    /// Returns the cards of the tasks that members work on.
    fn cards(&self, list: &[status::TaskStatus]) -> Vec<TaskCard> {
        let card = |status: &status::TaskStatus| {
            let task = self.board.tasks.get(&status.id).filter(|task| !task.is_internal())?;
            Some(TaskCard {
                id: status.id,
                key: status.key.clone(),
                subject: status.subject.clone(),
                state: status.state,
                owner: status.owner.clone(),
                blockers: self.board.open_blockers(task),
                progress: task.extra.progress.clone().filter(|_| !task.state.is_over()),
                priority: task.extra.priority.unwrap_or(0),
                running_since: task.extra.claimed_at.filter(|_| task.state.is_running()),
                stuck_since: stuck_since(task),
                reason: status
                    .waits_for
                    .as_ref()
                    .map(|waits| waits.text.clone())
                    .or_else(|| task.extra.reason.clone())
                    .or_else(|| failure(task)),
                ending: task.ending().map(str::to_owned),
            })
        };
        list.iter().filter_map(card).collect()
    }
}

/// Returns why the command of a task failed.
fn failure(task: &Task) -> Option<String> {
    let outcome = task.extra.outcome.as_ref().filter(|_| task.state == TaskState::Failed)?;
    Some(match (outcome.exit_code, outcome.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it did not start".to_owned(),
    })
}

fn stuck_since(task: &Task) -> Option<Timestamp> {
    match task.state {
        TaskState::Failed => task.extra.ended_at,
        TaskState::Stale => task.extra.stalled_at,
        TaskState::Pending
        | TaskState::Blocked
        | TaskState::InProgress
        | TaskState::Stopping
        | TaskState::InReview
        | TaskState::Completed
        | TaskState::Cancelled => None,
    }
}

fn details(
    record: Option<&MemberRecord>,
    state_since: Option<Timestamp>,
    unread: usize,
    worktree: Option<Checkout>,
) -> MemberDetails {
    let started = record.and_then(|record| record.start.as_ref()).map(|start| start.cwd.clone());
    // Its launcher may record the start before the spawner records the place.
    let run = record.filter(|record| record.start.is_some() && record.placement.is_some());
    MemberDetails {
        run: run.map(|record| record.incarnation.clone()),
        state_since,
        unread,
        cwd: started.or_else(|| record.map(|record| record.request.cwd.clone())),
        worktree,
        command: record
            .filter(|record| !record.reads_mail())
            .map(|record| record.request.argv.join(" ")),
    }
}

fn read_mailbox(team: &TeamStore, owner: &MemberName) -> Result<MailboxContent, OpsError> {
    let mailbox = team.mailbox(owner);
    let unread = mailbox.unread()?.len();
    let mut all = mailbox.all()?;
    let latest = all.split_off(all.len().saturating_sub(MESSAGES)).into_iter();
    let latest = latest.map(|envelope| SentMessage {
        to: owner.clone(),
        at: Timestamp::parse(&envelope.timestamp),
        envelope,
    });
    Ok(MailboxContent { unread, latest: latest.collect() })
}

/// A team that a person can switch to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamChoice {
    pub name: TeamName,
    pub root: PathBuf,
    pub members: usize,
    pub working: usize,
    /// Open requests.
    pub requests: usize,
    /// The lead in words.
    pub lead: &'static str,
    pub is_foreign: bool,
    /// Why the team cannot be read.
    pub problem: Option<String>,
}

/// Returns all teams of this machine, those of the caller's config root first.
pub fn teams(ctx: &Context) -> Result<Vec<TeamChoice>, OpsError> {
    let found = crate::views::ps::ps_of_this_machine(ctx)?;
    Ok(found
        .into_iter()
        .map(|team| {
            let lead = match team.lead.as_ref().map(|lead| lead.alive) {
                Some(Liveness::Alive) => "led",
                Some(Liveness::Dead) => "lead died",
                Some(Liveness::Unknown) => "lead not visible",
                None => "no lead",
            };
            let store = ctx.store.under(&team.root);
            let settings = store.team(&team.team).and_then(|team| team.settings());
            TeamChoice {
                working: team
                    .members
                    .iter()
                    .filter(|m| matches!(m.status.state.doing, Doing::Working | Doing::Retrying))
                    .count(),
                members: team.members.len(),
                requests: team.requests,
                lead,
                is_foreign: settings.is_ok_and(|settings| settings.is_none()),
                name: team.team,
                root: team.root,
                problem: team.problem,
            }
        })
        .collect())
}

#[cfg(test)]
mod tests;
