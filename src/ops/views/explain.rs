//! `explain`: what a member is doing, why, and the command that comes next; then the evidence, each
//! fact with its source. Read-only.

use std::path::Path;

use serde::Serialize;

use crate::decisions::decide;
use crate::members::assess::{self, TeamEvidence};
use crate::members::status::ShownState;
use crate::members::{backends, output};
use crate::{Context, OpsError, hosts, now};
use backend::Mark;
use model::decisions::question::Question;
use model::id::{MemberName, RequestId, TaskId, TeamName};
use model::members::assessment::Doing;
use model::members::launch::WELL_AFTER_MS;
use model::members::lifecycle::MemberState;
use model::members::need::Need;
use model::members::placement::{IN_PROCESS, Placement, ProcessId, Verdict};
use model::members::record::MemberRecord;
use model::members::usage::UsageTotal;
use model::team::event::{Event, EventKind};
use model::time::human as span;
use model::wire;
use store::TeamStore;
use sys::clock;
use sys::proc::{self, Liveness};

/// Number of placement verdicts that are shown.
const VERDICTS: usize = 3;
/// Number of the last lines of output that are shown of an ended run.
const LAST_LINES: usize = 10;

/// A fact about a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub what: &'static str,
    pub value: String,
    /// A file and a field in it, or the system that was queried.
    pub source: String,
}

/// The last message to or from a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    pub msg_id: String,
    pub from: String,
    pub to: String,
    /// `message`, or the type of a protocol message.
    pub kind: String,
    pub age_ms: u64,
    /// True if the recipient has received it.
    pub handed_over: bool,
    /// Path of the recipient's mailbox.
    pub source: String,
}

/// An event of the journal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Happened {
    pub event: String,
    pub age_ms: u64,
    pub detail: serde_json::Value,
}

/// The output of `explain`.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    pub team: TeamName,
    pub name: MemberName,
    #[serde(flatten)]
    pub state: ShownState,
    /// The command to type next, and what it does.
    pub advice: String,
    /// The last lines that an ended run has printed, as far as they were kept.
    pub last_lines: Vec<String>,
    pub facts: Vec<Fact>,
    pub last_event: Option<Happened>,
    pub last_delivery: Option<Delivery>,
    /// The last placement verdicts that a verb acted on, oldest first.
    pub verdicts: Vec<Happened>,
    /// Open requests to the member and from it: kind and id.
    pub requests: Vec<String>,
    /// The task that it works on: id and subject.
    pub task: Option<String>,
    /// Events that would change its recorded state.
    pub next: Vec<String>,
    /// The directory of most of the sources.
    pub dir: String,
    /// Path of the journal.
    pub journal: String,
}

/// Collects the evidence about one member.
pub fn explain(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<Explained, OpsError> {
    let is_led = decide::process_if_not_led(ctx, team)?;
    let roster = team.team()?;
    let records = team.member_records()?;
    let record = records.iter().find(|record| record.name.clashes_with(name.as_str()));
    let listed = roster.member(name).map(|member| &member.name);
    let Some(name) = listed.or(record.map(|record| &record.name)).cloned() else {
        return Err(OpsError::no_such_member(team, name, &roster.members));
    };
    let questions = team.questions()?;
    let evidence =
        TeamEvidence::gather(team, &roster, &team.board()?, &records, &questions, is_led);
    // A native program says less in its files than a wrapper records.
    let screen = record.filter(|r| r.is_native()).and_then(|r| assess::read_screen(ctx, team, r));
    let state = ShownState::from(evidence.assess(&name, record, screen.as_ref()));
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
    let asked: Vec<&Question> =
        questions.iter().filter(|q| q.is_open() && q.from == name).collect();
    let run = record.and_then(|record| launcher_elsewhere(ctx, team, record));
    // A host that did not answer is not asked again.
    let answers = run.as_ref().is_none_or(|run| run.answers);
    let verdict = record.filter(|_| answers).and_then(|r| verdict(ctx, team, r));
    let is_listed = listed.is_some();
    let request = asked.first().map(|q| &q.id);
    let advice = advice(&state, record, is_listed, &name, request, evidence.given_to(&name));
    let asked = asked.iter().map(|q| format!("{} {}", q.kind.as_str(), q.id));
    Ok(Explained {
        team: team.name().clone(),
        advice,
        last_lines: record.map(|record| last_lines(ctx, team, record)).unwrap_or_default(),
        facts: facts(team, &name, record, verdict, run)?
            .into_iter()
            .chain(restarts(team, &about))
            .chain(record.map(|record| used(team, record)).transpose()?.into_iter().flatten())
            .collect(),
        last_event: about.last().map(|event| happened(event)),
        last_delivery: last_delivery(team, &name, &events)?,
        verdicts: verdicts.into_iter().rev().collect(),
        requests: requests.map(|r| format!("shutdown {}", r.id)).chain(asked).collect(),
        task: task(team, &name)?,
        next: record.map(next).unwrap_or_default(),
        dir: shown(team.team_file().parent().unwrap_or(Path::new("/"))),
        journal: shown(&team.journal_file()),
        name,
        state,
    })
}

/// Returns the last lines of an ended run: those that were kept, or the one of its exit record.
fn last_lines(ctx: &Context, team: &TeamStore, record: &MemberRecord) -> Vec<String> {
    let kept = output::last_output(ctx, team, record, LAST_LINES);
    let text = kept.or_else(|| record.exit.as_ref()?.last_line.clone()).unwrap_or_default();
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
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

/// Queries the backend for the placement's verdict; returns it with the name of what was queried.
fn verdict(ctx: &Context, team: &TeamStore, record: &MemberRecord) -> Option<(String, String)> {
    let placement = record.placement.as_ref()?;
    let host = record.other_host().map(|host| format!(" on host {host}")).unwrap_or_default();
    let asked = match placement {
        Placement::Tmux(pane) => format!("tmux server at {}", pane.socket),
        Placement::Iterm2(_) => "iTerm2".to_owned(),
        Placement::Pty(_) => "process table".to_owned(),
    };
    let verdict = match backends::open_for(ctx, team, record, placement) {
        Ok(backend) => backend.verify(Mark::new(placement, record.mark())),
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
    let answers = hosts::ask_hosts(ctx, team, std::slice::from_ref(record), hosts::HOSTS_ANSWER);
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
    if let Some(dir) = &record.config_dir {
        add("account", dir.clone(), of("config_dir"));
    }
    for session in record.sessions() {
        let (name, is_last) = (&record.name, record.session.as_deref() == Some(session));
        let value = match is_last {
            true => session.to_owned(),
            false => format!("{session}, earlier: `phalanx resume {name} --session {session}`"),
        };
        add("session", value, of(if is_last { "session" } else { "earlier_sessions" }));
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
    let life = match proc::liveness(id.pid, id.start) {
        Liveness::Alive => "alive",
        Liveness::Dead => "dead",
        Liveness::Unknown => "the system cannot say whether it is running",
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

fn next(record: &MemberRecord) -> Vec<String> {
    let word = |to: MemberState| to.as_str().replace('_', " ");
    record
        .state
        .ways_on()
        .map(|(cause, to, _)| format!("{}: {}", in_words(cause), word(to)))
        .collect()
}

/// Returns the command to type next, and what it does.
fn advice(
    state: &ShownState,
    record: Option<&MemberRecord>,
    is_listed: bool,
    name: &MemberName,
    request: Option<&RequestId>,
    given: Option<TaskId>,
) -> String {
    let Some(record) = record else {
        return format!("`phalanx send {name} TEXT`; its own lead starts and ends it");
    };
    match &state.doing {
        Doing::Starting => format!("`phalanx wait {name} --until ready`"),
        Doing::Working | Doing::Retrying => format!(
            "`phalanx peek {name}` shows its screen, `phalanx wait {name} --until idle` waits"
        ),
        Doing::Waiting(Need::Login) if record.turn_error().is_some() => format!(
            "log in on its screen, with `phalanx attach {name}`, and ask it to continue with \
             `phalanx send {name} TEXT`"
        ),
        Doing::Waiting(Need::Error) if record.turn_error().is_some() => {
            format!("remove the cause; `phalanx send {name} TEXT` asks it to continue")
        }
        Doing::Waiting(need) => match request {
            Some(id) => format!("`phalanx answer {id} --approve`, or `--reject --reason TEXT`"),
            None => need.remedy(name),
        },
        Doing::Idle => match given {
            Some(task) => format!(
                "`phalanx send {name} TEXT` asks it to begin #{task}, `phalanx task complete \
                 {task}` closes it if the work is done"
            ),
            None => format!("`phalanx send {name} TEXT` gives it work"),
        },
        Doing::Running => {
            format!(
                "`phalanx peek {name}` and `phalanx logs {name}` show it, `phalanx type {name} \
                 TEXT --enter` types into it, `phalanx shutdown {name} --force` ends it"
            )
        }
        Doing::Unresponsive => format!("`phalanx peek {name}` shows its screen"),
        Doing::Stopping => {
            format!("`phalanx shutdown {name} --force` ends it without its approval")
        }
        Doing::Restarting(_) => format!("`phalanx logs {name}` shows its last output"),
        // Its lead removes it.
        Doing::Ended(_) if is_listed && !record.state.is_over() => {
            format!("`phalanx logs {name}` shows its last output; the lead takes it off the team")
        }
        Doing::Ended(MemberState::Failed | MemberState::Disappeared) => format!(
            "`phalanx logs {name}` shows its last output, `phalanx resume {name}` starts it again"
        ),
        Doing::Ended(_) => format!("`phalanx spawn {name}` starts a new run"),
    }
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
