//! `explain`: the evidence for a member's state, each fact with its source, and what would change
//! the state. Read-only; states are computed by the same code as in the other verbs.

use std::path::Path;

use serde::Serialize;

use super::backends;
use super::context::{Context, now};
use super::error::OpsError;
use super::lease::Life;
use super::remote;
use super::status::{self, MemberStatus};
use crate::model::event::{Event, EventKind};
use crate::model::id::{MemberName, TeamName};
use crate::model::launch::WELL_AFTER_MS;
use crate::model::lifecycle::MemberState;
use crate::model::placement::{IN_PROCESS, Placement, ProcessId, Verdict};
use crate::model::record::MemberRecord;
use crate::model::time::human as span;
use crate::model::usage::UsageTotal;
use crate::model::wire;
use crate::store::{StoreError, TeamStore};
use crate::sys::clock;
use crate::sys::proc::{self, Liveness};

/// Number of placement verdicts that are shown.
const VERDICTS: usize = 3;

/// A fact about a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fact {
    pub(crate) what: &'static str,
    pub(crate) value: String,
    /// A file and a field in it, or the system that was queried.
    pub(crate) source: String,
}

/// The last message to or from a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Delivery {
    pub(crate) msg_id: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// `message`, or the type of a protocol message.
    pub(crate) kind: String,
    pub(crate) age_ms: u64,
    /// True if the recipient has received it.
    pub(crate) handed_over: bool,
    /// Path of the recipient's mailbox.
    pub(crate) source: String,
}

/// An event of the journal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Happened {
    pub(crate) event: String,
    pub(crate) age_ms: u64,
    pub(crate) detail: serde_json::Value,
}

/// The output of `explain`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Explained {
    pub(crate) team: TeamName,
    pub(crate) name: MemberName,
    pub(crate) state: String,
    /// The state in a sentence.
    pub(crate) because: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) last_event: Option<Happened>,
    pub(crate) last_delivery: Option<Delivery>,
    /// The last placement verdicts that a verb acted on, oldest first.
    pub(crate) verdicts: Vec<Happened>,
    /// Open requests to the member and from it: kind and id.
    pub(crate) requests: Vec<String>,
    /// The task that it works on: id and subject.
    pub(crate) task: Option<String>,
    /// Events that would change its state, and commands that do.
    pub(crate) next: Vec<String>,
    /// The directory of most of the sources.
    pub(crate) dir: String,
    /// Path of the journal.
    pub(crate) journal: String,
}

/// Collects the evidence about one member.
pub(crate) fn explain(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<Explained, OpsError> {
    let all = status::status(team)?;
    let record = team.member_record(name)?;
    let found = all.members.into_iter().find(|m| m.name.clashes_with(name.as_str()));
    let Some((name, state)) = name_and_state(found.as_ref(), record.as_ref()) else {
        let known = team.team()?.members.into_iter().map(|m| m.name).collect();
        return Err(StoreError::NoSuchMember {
            team: team.name().clone(),
            name: name.clone(),
            known,
        }
        .into());
    };
    let events = team.events()?;
    let about: Vec<&Event> = events.iter().filter(|e| e.member.as_ref() == Some(&name)).collect();
    let verdicts: Vec<Happened> = about
        .iter()
        .rev()
        .filter(|e| e.event == EventKind::PlacementVerdict)
        .take(VERDICTS)
        .map(|e| happened(e))
        .collect();
    let requests = team.requests()?.into_iter().filter(|r| r.is_open() && r.member == name);
    let asked = team.questions()?.into_iter().filter(|q| q.is_open() && q.from == name);
    let asked: Vec<String> = asked.map(|q| format!("{} {}", q.kind.as_str(), q.id)).collect();
    let run = record.as_ref().and_then(|record| launcher_elsewhere(ctx, team, record));
    // A host that did not answer is not asked again.
    let answers = run.as_ref().is_none_or(|run| run.answers);
    let verdict = record.as_ref().filter(|_| answers).and_then(|r| verdict(ctx, team, r));
    Ok(Explained {
        team: team.name().clone(),
        because: because(&state, record.as_ref()),
        facts: facts(team, &name, record.as_ref(), verdict, run)?
            .into_iter()
            .chain(restarts(team, &about))
            .chain(
                record.as_ref().map(|record| used(team, record)).transpose()?.into_iter().flatten(),
            )
            .collect(),
        last_event: about.last().map(|event| happened(event)),
        last_delivery: last_delivery(team, &name, &events)?,
        verdicts: verdicts.into_iter().rev().collect(),
        requests: requests.map(|r| format!("shutdown {}", r.id)).chain(asked).collect(),
        task: task(team, &name)?,
        next: next(&state, record.as_ref(), &name, team.name()),
        dir: shown(team.team_file().parent().unwrap_or(Path::new("/"))),
        journal: shown(&team.journal_file()),
        name,
        state,
    })
}

/// Falls back to the record of a member that has left, since that is when people ask.
fn name_and_state(
    found: Option<&MemberStatus>,
    record: Option<&MemberRecord>,
) -> Option<(MemberName, String)> {
    match (found, record) {
        (Some(member), _) => Some((member.name.clone(), member.state.clone())),
        (None, Some(record)) => Some((record.name.clone(), record.state.as_str().to_owned())),
        (None, None) => None,
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn happened(event: &Event) -> Happened {
    Happened {
        event: event.event.as_str().to_owned(),
        age_ms: now().since(event.at),
        detail: serde_json::Value::Object(event.detail.clone()),
    }
}

fn because(state: &str, record: Option<&MemberRecord>) -> String {
    let Some(record) = record else {
        return "phalanx did not start it; only the team file describes it".to_owned();
    };
    if let Some(limit) = record.limit().filter(|_| state == "limited") {
        let end = limit.describe(&clock::local_zone());
        return format!("its account has reached its usage limit {end}: {}", limit.said);
    }
    let recorded = record.state.as_str();
    if state != recorded {
        return format!("its launcher is gone, though its record still says `{recorded}`");
    }
    let reason = record.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let words = match record.state {
        MemberState::Pending => "its start was requested; no placement exists yet",
        MemberState::Starting => "its placement exists; its program has not started yet",
        MemberState::Working => "it reported that it is working",
        MemberState::Idle => "running, no task assigned",
        MemberState::AwaitingPlan => "it sent a plan and is waiting for an answer",
        MemberState::AwaitingPermission => "it requested a permission and is waiting for an answer",
        MemberState::ShutdownRequested => "it was asked to shut down and has not answered",
        MemberState::Completed => "it shut down on request, or exited with code 0",
        MemberState::Failed => "its program exited with a failure",
        MemberState::Killed => "phalanx terminated it without its approval",
        MemberState::Disappeared => "its processes disappeared without a shutdown request",
    };
    format!("{words}{reason}")
}

/// Queries the backend for the placement's verdict; returns it with the name of what was queried.
fn verdict(ctx: &Context, team: &TeamStore, record: &MemberRecord) -> Option<(String, String)> {
    let placement = record.placement.as_ref()?;
    let host = record.other_host().map(|host| format!(" on host {host}")).unwrap_or_default();
    let asked = match placement {
        Placement::Tmux(pane) => format!("tmux server at {}", pane.socket),
        Placement::Iterm2(_) => "iTerm2".to_owned(),
        Placement::Pty(_) => "process table".to_owned(),
        Placement::Exec(place) => place.program.clone(),
    };
    let verdict = match backends::open_for(ctx, team, record, placement) {
        Ok(backend) => backend.verify(placement, record.mark()),
        Err(e) => Verdict::Unknown { reason: e.to_string() },
    };
    Some((verdict.to_string(), format!("{asked}{host}, asked now")))
}

/// The answer of another host about the launcher of a run.
struct LauncherElsewhere {
    life: String,
    source: String,
    answers: bool,
}

/// Asks the host of a run on another host about its launcher.
fn launcher_elsewhere(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
) -> Option<LauncherElsewhere> {
    let answers =
        remote::ask_hosts(ctx, team, std::slice::from_ref(record), super::ps::HOSTS_ANSWER);
    let answer = answers.into_iter().next()?;
    let source = format!("host {}, asked now", answer.host);
    let is_answer = answer.problem.is_none();
    let life = match (answer.problem, answer.runs.first().map(|run| run.liveness)) {
        (Some(problem), _) => format!("unknown: {problem}"),
        (None, Some(Liveness::Alive)) => "alive".to_owned(),
        (None, Some(Liveness::Dead)) => "dead".to_owned(),
        (None, Some(Liveness::Unknown) | None) => "unknown: the host cannot say".to_owned(),
    };
    Some(LauncherElsewhere { life, source, answers: is_answer })
}

fn facts(
    team: &TeamStore,
    name: &MemberName,
    record: Option<&MemberRecord>,
    verdict: Option<(String, String)>,
    run: Option<LauncherElsewhere>,
) -> Result<Vec<Fact>, OpsError> {
    let mut facts = on_roster(team, name)?;
    let Some(record) = record else { return Ok(facts) };
    let mut add = |what, value: String, source: String| facts.push(Fact { what, value, source });
    let path = shown(&team.member_file(name));
    let of = |key: &str| format!("{path}: {key}");
    let ago = |at| span(now().since(at));
    add("state", format!("{} for {}", record.state.as_str(), ago(record.state_since)), of("state"));
    add("run", record.incarnation.to_string(), of("incarnation"));
    if let Some(host) = &record.host {
        let side = if record.is_elsewhere { "another host" } else { "this host" };
        add("host", format!("{host}, {side}"), of("host"));
    }
    if let Some(placement) = &record.placement {
        add("place", placement.to_string(), of("placement"));
    }
    if let Some((verdict, asked)) = verdict {
        add("verdict", verdict, asked);
    }
    if let Some(launcher) = record.launcher() {
        add("launcher", process(launcher), stat(launcher));
    }
    if let Some(LauncherElsewhere { life, source, .. }) = run {
        add("launcher", life, source);
    }
    if let Some(start) = record.start.as_ref() {
        match record.other_host() {
            Some(host) => {
                let process = format!("process {} of host {host}", start.program.pid);
                add("program", process, of("start"));
            }
            None => add("program", process(start.program), stat(start.program)),
        }
        add("started", format!("{} ago in {}", ago(start.at), start.cwd), of("start"));
    }
    if let Some(at) = record.ready_at {
        add("ready", format!("said so {} ago", ago(at)), of("ready_at"));
    }
    if let Some(exit) = &record.exit {
        add("end", format!("{}, {} ago", exit.describe(), ago(exit.at)), of("exit"));
    }
    Ok(facts)
}

/// Returns what the member has used, and its usage limit.
fn used(team: &TeamStore, record: &MemberRecord) -> Result<Vec<Fact>, OpsError> {
    let path = shown(&team.member_file(&record.name));
    let fact = |what, value, key: &str| Fact { what, value, source: format!("{path}: {key}") };
    let prices = team.settings()?.map(|settings| settings.prices).unwrap_or_default();
    let usage = UsageTotal::of(&record.usage, &prices);
    let limit = record.limit().map(|limit| {
        let tries = match limit.attempts {
            0 => String::new(),
            tries => format!(", asked to continue: {tries}"),
        };
        let end = limit.describe(&clock::local_zone());
        fact("limit", format!("{end}{tries}: {}", limit.said), "rate_limit")
    });
    let usage = usage.map(|usage| fact("usage", usage.describe(), "usage"));
    Ok(usage.into_iter().chain(limit).collect())
}

/// Returns the failure count of the circuit breaker, for a member that the lead restarts; `None`
/// while there are no failures, and once the member has been up long enough.
fn restarts(team: &TeamStore, about: &[&Event]) -> Option<Fact> {
    let last = about.iter().rposition(|event| event.event == EventKind::RestartDelayed)?;
    let ready = about[last..].iter().find(|event| event.event == EventKind::MemberReady);
    if ready.is_some_and(|event| now().since(event.at) >= WELL_AFTER_MS) {
        return None;
    }
    let number = |key| wire::number(&about[last].detail, key);
    let failures = number("failures").filter(|failures| *failures > 0)?;
    let value = match number("delay_ms") {
        Some(delay) => {
            format!(
                "consecutive failures: {failures}; the pause before the next start is {}",
                span(delay)
            )
        }
        None => {
            format!("consecutive failures: {failures}; not started again before `phalanx resume`")
        }
    };
    Some(Fact {
        what: "restarts",
        value,
        source: format!("{}: restart_delayed", shown(&team.journal_file())),
    })
}

/// Returns the facts from the team file.
fn on_roster(team: &TeamStore, name: &MemberName) -> Result<Vec<Fact>, OpsError> {
    let (file, roster) = (shown(&team.team_file()), team.team()?);
    let fact = |what, value: &str, key| Fact {
        what,
        value: value.to_owned(),
        source: format!("{file}: {key}"),
    };
    let Some(member) = roster.member(name) else {
        return Ok(vec![fact("roster", "no longer on the roster", "members")]);
    };
    let pane = match member.pane_id.as_str() {
        "" | IN_PROCESS => "no pane",
        id => id,
    };
    let mut facts = vec![fact("roster", &format!("on the team, {pane}"), "members")];
    if roster.hidden_pane_ids.contains(&member.pane_id) {
        facts.push(fact("hidden", "its pane is hidden", "hiddenPaneIds"));
    }
    Ok(facts)
}

fn process(id: ProcessId) -> String {
    let life = match Life::from(proc::liveness(id.pid, id.start)) {
        Life::Alive => "alive",
        Life::Dead => "dead",
        Life::Unknown => "the system cannot say whether it is running",
    };
    format!("process {}: {life}", id.pid)
}

fn stat(id: ProcessId) -> String {
    format!("process table: pid {}, start time {}", id.pid, id.start)
}

/// Finds the latest message to or from the member in the journal. The mailbox tells if it was
/// received.
fn last_delivery(
    team: &TeamStore,
    name: &MemberName,
    events: &[Event],
) -> Result<Option<Delivery>, OpsError> {
    let text = |event: &Event, key: &str| wire::text(&event.detail, key).unwrap_or_default();
    let concerns = |event: &&Event| {
        let to = event.member.as_ref() == Some(name);
        event.event == EventKind::MessageSent && (to || text(event, "from") == name.as_str())
    };
    let Some(event) = events.iter().rev().find(concerns) else { return Ok(None) };
    let Some(to) = event.member.clone() else { return Ok(None) };
    let msg_id = text(event, "msg_id");
    let waits = team.mailbox(&to).unread()?.iter().any(|e| e.msg_id == msg_id);
    Ok(Some(Delivery {
        from: text(event, "from"),
        kind: text(event, "kind"),
        age_ms: now().since(event.at),
        handed_over: !waits,
        source: shown(&team.inbox_file(&to)),
        to: to.to_string(),
        msg_id,
    }))
}

fn task(team: &TeamStore, name: &MemberName) -> Result<Option<String>, OpsError> {
    let board = team.board()?;
    let task = board.work_of(name).and_then(|id| board.tasks.get(&id));
    Ok(task.map(|task| format!("#{} {}", task.id, task.subject)))
}

/// Phrases a cause of the lifecycle table as a clause about the member.
fn in_words(cause: &str) -> &str {
    match cause {
        "placed" => "it gets its terminal",
        "ready" => "it reports that it is ready",
        "work" => "it starts to work",
        "rest" => "it has nothing left to do",
        "plan sent" => "it submits a plan",
        "permission asked" => "it asks for a permission",
        "answered" => "its request is answered",
        "asked" => "it is asked to shut down",
        "refused" => "it rejects the shutdown",
        "released" => "it agrees to the shutdown",
        "ended with 0" => "its program exits with 0",
        "ended otherwise" => "its program fails",
        "forced" => "it is killed by phalanx",
        "vanished" => "its process disappears",
        other => other,
    }
}

fn next(
    state: &str,
    record: Option<&MemberRecord>,
    name: &MemberName,
    team: &TeamName,
) -> Vec<String> {
    let Some(record) = record else {
        return vec!["changes that its own lead writes to the team file".to_owned()];
    };
    let gone = state != record.state.as_str() && state != "limited";
    let mut next: Vec<String> = match gone {
        true => vec!["the lead removes it from the roster on its next check".to_owned()],
        false => record
            .state
            .ways_on()
            .map(|(cause, to, _)| format!("{}: {}", in_words(cause), to.as_str().replace('_', " ")))
            .collect(),
    };
    next.push(match record.state.is_over() || gone {
        true => format!("`phalanx spawn {name} -t {team}` starts a new run"),
        false => format!("`phalanx shutdown {name} -t {team}` asks it to shut down"),
    });
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_of_a_running_member_has_words() {
        for state in [
            MemberState::Pending,
            MemberState::Starting,
            MemberState::Working,
            MemberState::Idle,
            MemberState::AwaitingPlan,
            MemberState::AwaitingPermission,
            MemberState::ShutdownRequested,
        ] {
            for (cause, _, _) in state.ways_on() {
                assert!(in_words(cause).starts_with("it"), "{cause}");
            }
        }
    }
}
