//! `status`: the state of a team, from its files and from the processes themselves.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::members::assess::TeamEvidence;
use crate::members::lead::{self, LeadSeen};
use crate::members::presence;
use crate::{OpsError, now};
use model::board::Board;
use model::board::task::{Task, TaskState};
use model::board::waiting::{self, Ability, Candidate, WaitsFor};
use model::decisions::request::{ShutdownOutcome, ShutdownRequest};
use model::id::{HostName, MemberName, TaskId, TeamName};
use model::members::assessment::{Assessment, Doing};
use model::members::budget::{self, BudgetUse};
use model::members::launch::{Template, ability};
use model::members::lifecycle::MemberState;
use model::members::need::Need;
use model::members::placement::IN_PROCESS;
use model::members::record::MemberRecord;
use model::members::usage::{Prices, UsageTotal};
use model::team::Team;
use model::team::settings::Settings;
use model::time::Timestamp;
use store::{LeadRecord, TeamStore};
use sys::env;
use sys::proc::{self, Liveness, Process};

/// Time limit for a launcher that has finished its work to exit. One on a machine whose cores are
/// all in use took more than two seconds.
pub(crate) const EXIT_LIMIT: Duration = Duration::from_secs(10);

/// The lead of a team.
#[derive(Debug, Clone, Serialize)]
pub struct LeadStatus {
    pub pid: i32,
    pub host: String,
    /// True if that is another host, where its pid counts.
    #[serde(skip)]
    pub is_elsewhere: bool,
    /// Time since which it leads, ISO 8601.
    pub since: String,
    /// Milliseconds since `since`.
    pub age_ms: u64,
    /// `running`, or `stopped` by a signal: a stopped lead carries out nothing until it is
    /// continued.
    pub state: &'static str,
}

/// The activity of a member as shown in `--json`. The words are those of [`Doing`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownState {
    #[serde(rename = "state", serialize_with = "as_word")]
    pub doing: Doing,
    /// The thing that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Need>,
    /// The text about it: what is asked, the cause of an end, its work.
    pub reason: Option<String>,
    /// The evidence that decided.
    pub because: String,
    /// Milliseconds since it began, if known.
    pub state_ms: Option<u64>,
    /// The next time at which it may change although nothing happens.
    #[serde(skip)]
    pub lapses_at: Option<Timestamp>,
}

fn as_word<S: Serializer>(doing: &Doing, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(doing.as_str())
}

impl LeadSeen {
    /// Returns the command for a team whose lead has died: members that died, too, are started
    /// again, and led; without a member only files are left. `has_left` is true if a member that
    /// is no longer on the team can be started again.
    pub fn succession<'m>(
        &self,
        team: &str,
        mut members: impl Iterator<Item = &'m MemberStatus> + Clone,
        has_left: bool,
    ) -> String {
        let has_died = |member: &MemberStatus| match member.state.doing {
            Doing::Ended(state) => matches!(state, MemberState::Failed | MemberState::Disappeared),
            _ => false,
        };
        let is_over = |member: &MemberStatus| matches!(member.state.doing, Doing::Ended(_));
        if self.program == lead::PHALANX && (has_left || members.clone().any(has_died)) {
            format!("phalanx resume --all -t {team}")
        } else if members.any(|member| !is_over(member)) {
            format!("phalanx adopt -t {team}")
        } else {
            format!("phalanx down -t {team}")
        }
    }
}

impl ShownState {
    /// The word of `--json`.
    pub fn as_str(&self) -> &'static str {
        self.doing.as_str()
    }

    /// Describes it in a phrase: `waits for you: permission: Bash: rm -rf out`.
    pub fn describe(&self) -> String {
        let parts = [Some(self.doing.words().to_owned()), self.about()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    }

    /// Returns what belongs to it beside its word: `permission: Bash: rm -rf out`.
    pub fn about(&self) -> Option<String> {
        let needs = self.needs.filter(|need| *need != Need::Limit).map(|need| need.as_str());
        let parts: Vec<&str> = needs.into_iter().chain(self.reason.as_deref()).collect();
        (!parts.is_empty()).then(|| parts.join(": "))
    }
}

impl From<Assessment> for ShownState {
    fn from(assessment: Assessment) -> ShownState {
        let Assessment { doing, since, reason, because, lapses_at } = assessment;
        let needs = doing.need();
        let state_ms = since.map(|since| now().since(since));
        ShownState { doing, needs, reason, because, state_ms, lapses_at }
    }
}

/// A member of a team.
#[derive(Debug, Clone, Serialize)]
pub struct MemberStatus {
    pub name: MemberName,
    /// Its activity, flattened into `state`, `needs`, `reason`, `because` and `state_ms`.
    #[serde(flatten)]
    pub state: ShownState,
    pub role: Option<String>,
    pub profile: Option<String>,
    pub backend: Option<String>,
    /// The host that it runs on; `None` in a team of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// True if that is another host: its pane and pid are those of that host, and its liveness is
    /// unknown here.
    #[serde(skip)]
    pub is_elsewhere: bool,
    pub pane: Option<String>,
    pub pid: Option<i32>,
    pub color: Option<String>,
    /// The task in progress that it owns.
    pub task: Option<TaskId>,
    /// The title of that task: its active form, else its subject.
    pub activity: Option<String>,
    /// Milliseconds for which it has been idle.
    pub idle_ms: Option<u64>,
    /// The end of the usage limit that it has reached, ISO 8601, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<String>,
    /// The usage of all its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotal>,
}

/// A member that has left the roster and whose last run ended without a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftStatus {
    pub name: MemberName,
    /// The way in which it ended, or that the lead restarts it.
    #[serde(flatten)]
    pub state: ShownState,
    /// Milliseconds since its run ended.
    pub age_ms: u64,
    /// Failures in a row after which the lead does not start it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up_after: Option<u32>,
    /// True if `resume` restarts it by default: its run failed or disappeared, or was ended for a
    /// restart that was cut.
    pub resumable: bool,
}

/// A task of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskStatus {
    pub id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub subject: String,
    pub state: TaskState,
    pub owner: Option<String>,
    /// Milliseconds since its start, or its duration once it has ended.
    pub elapsed_ms: Option<u64>,
    /// The reason why it has not started.
    pub waits_for: Option<WaitsFor>,
}

/// The number of tasks in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskCounts {
    pub pending: usize,
    pub blocked: usize,
    pub in_progress: usize,
    pub in_review: usize,
    pub completed: usize,
    pub failed: usize,
    pub cancelled: usize,
    pub stale: usize,
}

/// The state of a team.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    pub team: TeamName,
    pub lead: Option<LeadStatus>,
    /// The last lead, if it died and none has followed.
    pub dead_lead: Option<LeadSeen>,
    pub members: Vec<MemberStatus>,
    /// Members that left without a request, latest first.
    pub left: Vec<LeftStatus>,
    pub tasks: TaskCounts,
    pub task_list: Vec<TaskStatus>,
    /// Number of requests that wait for an answer.
    pub requests: usize,
    /// Number of unread messages of the lead that are news; `None` if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
    /// The usage of all members, also those that left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotal>,
    /// The budgets of which something was used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetUse>,
}

/// Returns the members whose processes are alive, or may be.
pub fn live_members(team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    Ok(live_of(&team.member_records()?))
}

/// As [`live_members`], by these records.
pub(crate) fn live_of(records: &[MemberRecord]) -> Vec<MemberName> {
    let alive = |r: &MemberRecord| match presence::liveness(r) {
        Liveness::Alive => true,
        Liveness::Dead => false,
        Liveness::Unknown => !r.state.is_over() && r.placement.is_some(),
    };
    records.iter().filter(|record| alive(record)).map(|record| record.name.clone()).collect()
}

/// Waits for launchers whose program has ended, and which only have to exit.
pub fn see_off(team: &TeamStore) -> Result<(), OpsError> {
    for record in team.member_records()? {
        let has_ended = record.state.is_over() || record.exit.is_some();
        if let Some(launcher) = record.launcher().filter(|_| has_ended) {
            proc::wait_exit(Process { pid: launcher.pid, start: launcher.start }, EXIT_LIMIT);
        }
    }
    Ok(())
}

/// Reads the state of the team. Members that left without a request are listed separately until
/// their name runs again; others that left are omitted (LY-12).
pub fn status(team: &TeamStore) -> Result<Status, OpsError> {
    // The roster first, because a member has its record before it joins.
    let (roster, board) = (team.team()?, team.board()?);
    // Without records that cannot be read: one of them must not hide the other members.
    let records = team.member_records()?;
    status_with(team, &roster, &board, &records, team.settings()?.as_ref())
}

/// Like [`status`], with parts that were read before, the roster before the records.
pub(crate) fn status_with(
    team: &TeamStore,
    roster: &Team,
    board: &Board,
    records: &[MemberRecord],
    settings: Option<&Settings>,
) -> Result<Status, OpsError> {
    let none = Prices::new();
    let prices = settings.map_or(&none, |settings| &settings.prices);
    let found = team.read_lead()?;
    let lead = lead(team, found.current.as_ref())?;
    let questions = team.questions()?;
    let evidence = TeamEvidence::gather(team, roster, board, records, &questions, lead.is_some());
    let mut members = Vec::new();
    for member in roster.teammates() {
        let record = records.iter().find(|record| record.name == member.name);
        let task = evidence.task_of(&member.name).and_then(|id| board.tasks.get(&id));
        let state = ShownState::from(evidence.assess(&member.name, record, None));
        members.push(MemberStatus {
            name: member.name.clone(),
            role: member.agent_type.clone(),
            profile: record.map(|r| r.request.profile.clone()),
            backend: record.map(|r| r.backend.as_str().to_owned()).or(member.backend_type.clone()),
            host: record.and_then(|r| r.host.clone()),
            is_elsewhere: record.is_some_and(|r| r.is_elsewhere),
            pane: Some(member.pane_id.clone())
                .filter(|pane| !["", IN_PROCESS].contains(&pane.as_str())),
            pid: record.and_then(|r| r.start.as_ref()).map(|s| s.program.pid),
            color: member.color.clone(),
            task: task.map(|task| task.id),
            activity: task.map(|task| task.title().to_owned()),
            idle_ms: state.state_ms.filter(|_| state.doing == Doing::Idle),
            limited_until: record.and_then(|r| Some(r.limit()?.until?.iso())),
            usage: record.and_then(|r| UsageTotal::of(&r.usage, prices)),
            state,
        });
    }
    let mut tasks = TaskCounts::default();
    for task in board.work() {
        *match board.state(task) {
            TaskState::Pending => &mut tasks.pending,
            TaskState::Blocked => &mut tasks.blocked,
            TaskState::InProgress | TaskState::Stopping => &mut tasks.in_progress,
            TaskState::InReview => &mut tasks.in_review,
            TaskState::Completed => &mut tasks.completed,
            TaskState::Failed => &mut tasks.failed,
            TaskState::Cancelled => &mut tasks.cancelled,
            TaskState::Stale => &mut tasks.stale,
        } += 1;
    }
    let dead_lead = match lead {
        Some(_) => None,
        None => lead::find_lead_in(team, found)?.filter(|lead| lead.alive == Liveness::Dead),
    };
    let templates = settings.map(|settings| settings.templates.as_slice()).unwrap_or_default();
    let crew = crew(roster, records, templates);
    let is_led = lead.is_some();
    let task_list =
        board.tasks.values().map(|task| task_status(board, task, &crew, is_led)).collect();
    let shutdowns = team.requests()?;
    let left = left(&evidence, roster, records, &shutdowns);
    let asked = questions.iter().filter(|q| q.is_open()).count();
    let requests = asked + shutdowns.iter().filter(|r| r.is_open()).count();
    Ok(Status {
        team: team.name().clone(),
        lead,
        dead_lead,
        members,
        left,
        tasks,
        task_list,
        requests,
        unread: None,
        usage: UsageTotal::of(records.iter().filter_map(|r| r.usage.as_ref()), prices),
        budgets: settings
            .map(|settings| budget::uses(&settings.budgets, prices, records))
            .unwrap_or_default(),
    })
}

fn task_status(board: &Board, task: &Task, crew: &[Candidate], is_led: bool) -> TaskStatus {
    let running = task.extra.claimed_at.filter(|_| task.state.is_running());
    let ran = task.extra.outcome.as_ref().map(|outcome| outcome.elapsed_ms);
    TaskStatus {
        id: task.id,
        key: task.extra.key.clone(),
        subject: task.subject.clone(),
        state: board.state(task),
        owner: task.owner.clone(),
        elapsed_ms: running.map(|since| now().since(since)).or(ran),
        waits_for: waiting::why(board, task, crew, is_led, now()).map(WaitsFor::from),
    }
}

/// Returns the members that can be given tasks: those that run, and those that the lead starts on
/// demand.
fn crew(roster: &Team, records: &[MemberRecord], templates: &[Template]) -> Vec<Candidate> {
    let record =
        |name: &MemberName| records.iter().find(|record| record.name.clashes_with(name.as_str()));
    let lives = |name: &MemberName| {
        record(name).is_none_or(|record| presence::liveness(record) != Liveness::Dead)
    };
    let here = roster.teammates().filter(|member| lives(&member.name)).map(|member| Candidate {
        name: member.name.clone(),
        role: member.agent_type.clone(),
        ability: record(&member.name).map_or(Ability::Prompts, ability_of),
        is_here: true,
    });
    let mut crew: Vec<Candidate> = here.collect();
    for template in templates {
        for name in template.names().into_iter().filter(|name| roster.member(name).is_none()) {
            let role = template.spec.role.clone();
            let ability = if template.takes_commands() {
                Ability::Commands
            } else {
                ability(template.spec.profile.as_deref().unwrap_or_default())
            };
            crew.push(Candidate { name, role, ability, is_here: false });
        }
    }
    crew
}

fn ability_of(record: &MemberRecord) -> Ability {
    match ability(&record.request.profile) {
        Ability::Prompts if !record.reads_mail() && !record.is_native() => Ability::Nothing,
        ability => ability,
    }
}

/// Returns the members that have left and whose last run ended without a request, latest first. A
/// run for one task that it completed is omitted.
fn left(
    evidence: &TeamEvidence,
    roster: &Team,
    records: &[MemberRecord],
    requests: &[ShutdownRequest],
) -> Vec<LeftStatus> {
    let is_asked = |record: &MemberRecord| {
        let outcomes =
            requests.iter().filter(|r| record.is(&r.incarnation)).filter_map(|r| r.outcome);
        outcomes.into_iter().any(|o| matches!(o, ShutdownOutcome::Closed | ShutdownOutcome::Forced))
    };
    let is_done = |record: &MemberRecord| {
        record.request.task.is_some() && record.state == MemberState::Completed
    };
    let gone =
        |record: &&MemberRecord| record.state.is_over() && roster.member(&record.name).is_none();
    let is_left = |r: &&MemberRecord| r.restart.is_some() || !is_asked(r) && !is_done(r);
    // After a start that was cut, the run before it is the last one.
    let last = records.iter().filter_map(|record| match presence::is_cut(record) {
        true => record.before.as_deref(),
        false => Some(record),
    });
    let mut gone: Vec<&MemberRecord> = last.filter(gone).filter(is_left).collect();
    gone.sort_by_key(|record| std::cmp::Reverse(record.state_since));
    gone.into_iter().map(|record| left_status(evidence, record)).collect()
}

fn left_status(evidence: &TeamEvidence, record: &MemberRecord) -> LeftStatus {
    let unasked = matches!(record.state, MemberState::Failed | MemberState::Disappeared)
        || record.restart.is_some();
    let state = ShownState::from(evidence.assess(&record.name, Some(record), None));
    LeftStatus {
        name: record.name.clone(),
        age_ms: now().since(record.state_since),
        gave_up_after: record.gave_up_after,
        resumable: unasked && !matches!(state.doing, Doing::Restarting(_)),
        state,
    }
}

/// Returns the lead: a phalanx, else the program named in the team file unless it is proven dead.
fn lead(team: &TeamStore, ours: Option<&LeadRecord>) -> Result<Option<LeadStatus>, OpsError> {
    let status = |pid, host: String, since: Timestamp, is_stopped| LeadStatus {
        pid,
        is_elsewhere: host != env::hostname(),
        host,
        since: since.iso(),
        age_ms: now().since(since),
        state: if is_stopped { "stopped" } else { "running" },
    };
    if let Some(LeadRecord { process, host, since, .. }) = ours {
        return Ok(Some(status(
            process.pid,
            host.clone(),
            *since,
            proc::is_stopped(process.pid, process.start),
        )));
    }
    let stranger = lead::stranger(team)?.map(|stranger| stranger.lead);
    Ok(stranger.map(|lead| {
        let host = lead::host_of(&lead).to_owned();
        let process = lead::process(&lead);
        let is_stopped =
            process.is_some_and(|process| proc::is_stopped(process.pid, process.start));
        status(lead.pid, host, lead.claimed_at, is_stopped)
    }))
}
