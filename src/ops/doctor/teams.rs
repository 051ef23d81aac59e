//! Checks one team: its lead, its members and its files.

use std::time::Duration;

use super::finding::{Finding, Severity};
use crate::ending::remove;
use crate::error::{self, quoted};
use crate::hosts::{self, HostAnswer};
use crate::members::{lead, presence};
use crate::team::{broken, hooks};
use crate::views::events;
use crate::{Context, OpsError};
use model::id::MemberName;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use model::time;
use store::{Broken, Leftover, LeftoverKind, TeamStore};
use sys::proc::Liveness;
use sys::watch::PollingReason;

/// Upper bound for the time until a launcher has read its spec.
const SPEC_TAKEN: Duration = Duration::from_secs(600);
/// A spawner writes the record before the spec. A spec of this age without a record has no spawner
/// any longer.
const SPEC_WRITTEN: Duration = Duration::from_secs(10);

/// Checks everything about one team. Problems behind unreadable files appear only after those files
/// have been set aside.
pub(super) fn team(ctx: &Context, team: &TeamStore, fix: bool) -> Result<Vec<Finding>, OpsError> {
    let mut found: Vec<Finding> =
        team.broken().iter().map(|broken| unusable(ctx, team, broken, fix)).collect();
    match state(ctx, team, fix) {
        Ok(state) => found.extend(state),
        Err(_) if found.iter().any(Finding::is_open) => {}
        Err(e) => return Err(e),
    }
    Ok(found)
}

/// Describes a file of the team that cannot be used; with `fix`, sets it aside.
fn unusable(ctx: &Context, team: &TeamStore, broken: &Broken, fix: bool) -> Finding {
    let place = broken.path.to_string_lossy().into_owned();
    let finding = Finding::new("unreadable", Severity::Problem, broken.problem.as_str(), place);
    if broken.is_vital && !broken.is_denied {
        return finding.advise(format!("phalanx down --force -t {}", team.name()));
    }
    finding.mend(fix, || {
        broken::set_aside(ctx, team, std::slice::from_ref(broken))?;
        Ok(true)
    })
}

/// Checks the lead, the members, the leftover files and the journal.
fn state(ctx: &Context, team: &TeamStore, fix: bool) -> Result<Vec<Finding>, OpsError> {
    let records = team.member_records()?;
    let answers = hosts::ask_hosts(ctx, team, &records, hosts::HOSTS_ANSWER);
    let mut found = lead(team, &records, fix)?;
    found.extend(answers.iter().filter_map(|answer| silent_host(team, answer)));
    found.extend(members(ctx, team, &records, &answers, fix)?);
    let lost = |left: &&Leftover| match &left.kind {
        LeftoverKind::Spec { incarnation, age } => {
            let awaited = records.iter().any(|r| r.is(incarnation) && !r.state.is_over());
            *age > if awaited { SPEC_TAKEN } else { SPEC_WRITTEN }
        }
        LeftoverKind::Lock { .. }
        | LeftoverKind::Batch { .. }
        | LeftoverKind::Socket
        | LeftoverKind::Quarantined
        | LeftoverKind::Open { .. }
        | LeftoverKind::NotOurs { .. } => true,
    };
    let clear = |left: &Leftover| {
        let cleared = team.clear(left)?;
        if cleared {
            repaired(team, "leftover", &left.path.to_string_lossy())?;
        }
        Ok(cleared)
    };
    let ours = team.is_ours();
    found
        .extend(team.leftovers()?.iter().filter(lost).map(|left| leftover(left, fix, ours, clear)));
    let torn = team.torn_lines()?;
    if torn > 0 {
        let what =
            format!("{torn} lines of the journal are not JSON: writes of them were cut short");
        let place = team.journal_file().to_string_lossy().into_owned();
        found.push(Finding::new("torn_journal", Severity::Note, what, place));
    }
    if ours && let Ok(changes) = team.changes() {
        found.extend(changes.polling().map(|reason| polled(team, reason)));
    }
    found.extend(hooks(ctx, team));
    Ok(found)
}

fn polled(team: &TeamStore, reason: PollingReason) -> Finding {
    let place = team.team_file().to_string_lossy().into_owned();
    let what = events::polling_notice(reason);
    match reason {
        PollingReason::NetworkFiles => Finding::new("network_files", Severity::Note, what, place),
        PollingReason::LimitReached => {
            let fix = "raise it: on Linux `sysctl fs.inotify.max_user_instances` and `fs.inotify.max_user_watches`";
            Finding::new("watch_limit", Severity::Warning, what, place).advise(fix)
        }
    }
}

/// Lists the configured hooks, and warns of those that cannot run.
fn hooks(ctx: &Context, team: &TeamStore) -> Vec<Finding> {
    let hooks = hooks::load_hooks(ctx, team);
    let place = team.team_file().to_string_lossy().into_owned();
    let known =
        hooks.listed().map(|(what, source)| Finding::new("hook", Severity::Note, what, source));
    let not = hooks.warnings.iter();
    let not = not
        .map(|text| Finding::new("hook_not_run", Severity::Warning, text.as_str(), place.as_str()));
    known.chain(not).collect()
}

/// Describes a team whose files cannot be read.
pub(super) fn unreadable(team: &TeamStore, error: &OpsError) -> Finding {
    let place = team.team_file().to_string_lossy().into_owned();
    let fix = format!("phalanx down --force -t {}", team.name());
    Finding::new("unreadable", Severity::Problem, error.to_string(), place).advise(fix)
}

/// Describes a team directory without a team file: no other command lists it.
pub(super) fn without_file(team: &TeamStore) -> Finding {
    let place = team.team_file().to_string_lossy().into_owned();
    let fix = format!("phalanx down --force -t {}", team.name());
    Finding::new("no_team_file", Severity::Problem, "the team file is missing", place).advise(fix)
}

fn repaired(team: &TeamStore, what: &str, place: &str) -> Result<(), OpsError> {
    team.record(Note::of(EventKind::Repaired).with("what", what).with("where", place))?;
    Ok(())
}

/// Reports a stopped lead; a dead lead with the members it left running, or only its stale lease.
fn lead(team: &TeamStore, records: &[MemberRecord], fix: bool) -> Result<Vec<Finding>, OpsError> {
    if let Some(pid) = lead::stopped(team)? {
        let what = format!(
            "the lead of team `{}` is stopped (SIGSTOP, Ctrl-Z): it carries out nothing",
            team.name()
        );
        let finding =
            Finding::new("lead_stopped", Severity::Problem, what, format!("process {pid}"));
        return Ok(vec![finding.advise(format!("kill -CONT {pid}"))]);
    }
    let Some(lead) = lead::find_lead(team)?.filter(|lead| lead.alive == Liveness::Dead) else {
        return Ok(Vec::new());
    };
    let (name, place) = (team.name(), format!("process {}", lead.pid));
    let live = records.iter().filter(|r| presence::liveness(r) == Liveness::Alive).count();
    if live > 0 {
        let what = format!("the lead of team `{name}` has died; {live} of its members are running");
        let fix = format!("phalanx lead --detach -t {name}");
        return Ok(vec![Finding::new("lead_dead", Severity::Problem, what, place).advise(fix)]);
    }
    if lead.program != "phalanx" {
        return Ok(Vec::new());
    }
    let what = format!("the lead of team `{name}` died and left its lease behind");
    let finding = Finding::new("lead_entry", Severity::Warning, what, place.clone());
    Ok(vec![finding.mend(fix, || {
        let gone = team.forget_dead_lead()?;
        repaired(team, "lead_entry", &place)?;
        Ok(gone)
    })])
}

/// Reports another host that has members and cannot be asked about them.
fn silent_host(team: &TeamStore, answer: &HostAnswer) -> Option<Finding> {
    let problem = answer.problem.as_ref()?;
    let names: Vec<MemberName> = answer.runs.iter().map(|run| run.name.clone()).collect();
    let what = format!(
        "host `{}` cannot be asked about {} of team `{}`: {problem}",
        answer.host,
        error::names(&names),
        team.name()
    );
    let fix = format!(
        "phalanx host check {0}; if it will not come back: phalanx host lost {0} -t {1}",
        answer.host,
        team.name()
    );
    let place = format!("host {}", answer.host);
    Some(Finding::new("silent_host", Severity::Problem, what, place).advise(fix))
}

/// Reports members on the roster whose processes are gone. A live lead removes them itself.
fn members(
    ctx: &Context,
    team: &TeamStore,
    records: &[MemberRecord],
    answers: &[HostAnswer],
    fix: bool,
) -> Result<Vec<Finding>, OpsError> {
    let roster = team.team()?;
    let led = team.current_lead()?.is_some();
    let on_team = |record: &&MemberRecord| roster.member(&record.name).is_some();
    let is_dead_elsewhere = |record: &MemberRecord| {
        let mut runs = answers.iter().flat_map(|answer| &answer.runs);
        runs.any(|run| record.is(&run.incarnation) && run.liveness == Liveness::Dead)
    };
    let dead = |record: &&MemberRecord| {
        presence::liveness(record) == Liveness::Dead || is_dead_elsewhere(record)
    };
    let finding = |record: &MemberRecord| {
        let what = format!(
            "`{}` is a member of team `{}`, but its processes are gone",
            record.name,
            team.name()
        );
        let place = record.placement.as_ref().map(ToString::to_string).unwrap_or_default();
        let place = match record.other_host() {
            Some(host) => format!("{place}, on host {host}"),
            None => place,
        };
        let finding = Finding::new("dead_member", Severity::Warning, what, place);
        if led {
            finding.advise("no action needed: the lead removes it")
        } else {
            finding.mend(fix, || take_off(ctx, team, record))
        }
    };
    Ok(records.iter().filter(on_team).filter(dead).map(finding).collect())
}

/// Removes a dead member from the roster, as a lead would.
fn take_off(ctx: &Context, team: &TeamStore, record: &MemberRecord) -> Result<bool, OpsError> {
    remove::stop_and_remove(ctx, team, record)?;
    repaired(team, "dead_member", record.name.as_str())?;
    Ok(true)
}

/// Describes a leftover file. If `ours` is false, another program created it and an open mode is
/// only reported.
pub(super) fn leftover(
    left: &Leftover,
    fix: bool,
    ours: bool,
    clear: impl Fn(&Leftover) -> Result<bool, OpsError>,
) -> Finding {
    let place = left.path.to_string_lossy().into_owned();
    let ago = |age: &Duration| time::human(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let tell = |id, severity, what: String| Finding::new(id, severity, what, place.clone());
    let finding = match &left.kind {
        LeftoverKind::Lock { age } => {
            let what = format!("a stale lock, not refreshed for {}: its holder died", ago(age));
            tell("stale_lock", Severity::Warning, what)
        }
        LeftoverKind::Batch { is_committed: true, tasks } => {
            let what = format!("a killed process has not finished its change of {tasks} tasks");
            tell("unfinished_tasks", Severity::Warning, what)
        }
        LeftoverKind::Batch { is_committed: false, tasks } => {
            let what = format!(
                "a process was killed before it changed the board: files of {tasks} tasks, unused"
            );
            tell("unfinished_tasks", Severity::Warning, what)
        }
        LeftoverKind::Socket => {
            tell("dead_socket", Severity::Warning, "a socket that no process listens on".to_owned())
        }
        LeftoverKind::Spec { age, .. } => {
            let what = format!(
                "a launch spec that no launcher read, {} old; it contains environment variables",
                ago(age)
            );
            tell("left_spec", Severity::Warning, what)
        }
        LeftoverKind::Open { mode } => {
            let what = format!("other users can enter this directory (mode {mode:04o})");
            let finding = tell("open_directory", Severity::Warning, what);
            if !ours {
                return finding.advise(format!("chmod 700 {}", quoted(&place)));
            }
            finding
        }
        LeftoverKind::Quarantined => {
            let what = "a copy of a file that could not be parsed".to_owned();
            let fix = "inspect it, repair the original file, then remove the copy";
            return tell("quarantined", Severity::Warning, what).advise(fix);
        }
        LeftoverKind::NotOurs { uid, is_link } => return foreign(&place, *uid, *is_link),
    };
    finding.mend(fix, || clear(left))
}

fn foreign(place: &str, uid: u32, is_link: bool) -> Finding {
    let what = if is_link {
        "a symbolic link is in place of a phalanx directory".to_owned()
    } else {
        format!("it belongs to user {uid}")
    };
    let finding = Finding::new("foreign_directory", Severity::Problem, what, place);
    finding.advise("find out who made it, then move it away")
}
