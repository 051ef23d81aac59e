//! Finds panes and launchers that belong to no team. A pane is closed only if a record names
//! exactly this pane or one of our launchers runs in it; a token alone proves nothing, because any
//! program can set the option (SD-05).

use super::finding::{Finding, Severity};
use super::surroundings::Servers;
use crate::ending::by_process::{self};
use crate::ending::lost_runs::is_orphan;
use crate::ending::stop;
use crate::hosts::stop_mode::StopMode;
use crate::members::launchers::{Launcher, launchers};
use crate::{Context, OpsError};
use backend::tmux::{Census, Resident};
use model::members::placement::{Placement, ProcessId};
use model::members::record::MemberRecord;
use store::TeamStore;

/// A member record and the team that holds it.
struct Known<'a> {
    team: &'a TeamStore,
    record: MemberRecord,
}

/// The owner of a pane that carries a token.
enum Owner<'a> {
    /// A run that is still active, or a run of another config root: not to be touched.
    Team,
    /// A recorded run that has ended.
    Over(&'a Known<'a>),
    /// One of our launchers that no record names.
    Orphan(&'a Launcher),
    /// Unknown: another program may have set the option.
    Stranger,
}

/// Reports panes with a token but no owner, and orphaned launchers outside of any pane. Unless
/// `everywhere`, only those that are proven to be of these teams.
pub(super) fn orphans(
    ctx: &Context,
    servers: &Servers,
    teams: &[TeamStore],
    everywhere: bool,
    fix: bool,
) -> Vec<Finding> {
    let mut running = launchers(&ctx.caller.exe);
    running.retain(|launcher| {
        everywhere || teams.iter().any(|team| by_process::is_of(launcher, team))
    });
    let mut known = Vec::new();
    for team in teams {
        let records = team.member_records().unwrap_or_default();
        known.extend(records.into_iter().map(|record| Known { team, record }));
    }
    let mut found = Vec::new();
    for census in &servers.census {
        for resident in &census.residents {
            let owner = owner(ctx, resident, census, (&known, &running));
            // Without proof it may be that of another team.
            if everywhere || !matches!(owner, Owner::Stranger) {
                found.extend(pane(ctx, resident, &owner, fix));
            }
        }
    }
    let in_pane = |launcher: &&Launcher| {
        let panes = servers.census.iter().flat_map(|census| &census.residents);
        panes.map(|resident| resident.pane.pane.pid).any(|pid| pid == launcher.process.pid)
    };
    let lost = running.iter().filter(|l| l.root == ctx.store.root()).filter(|l| !in_pane(l));
    found.extend(
        lost.filter(|launcher| is_orphan(ctx, launcher))
            .map(|launcher| process(ctx, launcher, fix)),
    );
    found
}

fn owner<'a>(
    ctx: &Context,
    resident: &Resident,
    census: &Census,
    (known, running): (&'a [Known<'a>], &'a [Launcher]),
) -> Owner<'a> {
    let same = |known: &&Known| match &known.record.placement {
        Some(Placement::Tmux(pane)) => {
            let is_it = pane.server == census.server && pane.pane_id == resident.pane.pane_id;
            is_it
                && [0, pane.pane.pid].contains(&resident.pane.pane.pid)
                && known.record.mark() == resident.token
        }
        Some(Placement::Iterm2(_) | Placement::Pty(_)) | None => false,
    };
    if let Some(known) = known.iter().find(same) {
        return if known.record.state.is_over() { Owner::Over(known) } else { Owner::Team };
    }
    // The pane's process must be a child of the tmux server: no other program can create one.
    let launcher = running.iter().find(|launcher| {
        is_process(launcher, resident.pane.pane) && launcher.parent == census.server.pid
    });
    match launcher {
        Some(launcher) if is_orphan(ctx, launcher) => Owner::Orphan(launcher),
        Some(_) => Owner::Team,
        None => Owner::Stranger,
    }
}

fn is_process(launcher: &Launcher, id: ProcessId) -> bool {
    launcher.process.pid == id.pid && launcher.process.start == id.start
}

/// Returns whether no team, in whichever config root, has this run on record.
fn pane(ctx: &Context, resident: &Resident, owner: &Owner, fix: bool) -> Option<Finding> {
    let place = Placement::Tmux(resident.pane.clone()).to_string();
    let tell = |id, what: String| Finding::new(id, Severity::Problem, what, place.clone());
    match owner {
        Owner::Team => None,
        Owner::Over(known) => {
            let (name, team) = (&known.record.name, known.team.name());
            let finding = tell(
                "left_pane",
                format!("`{name}` of team `{team}` has exited, but its pane is still open"),
            );
            Some(finding.mend(fix, || {
                stop::stop(ctx, known.team, &known.record, StopMode::Immediate)?;
                Ok(true)
            }))
        }
        Owner::Orphan(launcher) if launcher.root == ctx.store.root() => {
            let what = format!(
                "a launcher of team `{}` runs in it, but no team has it on record",
                launcher.team
            );
            Some(tell("orphan_pane", what).mend(fix, || close(ctx, resident, launcher)))
        }
        Owner::Orphan(launcher) => {
            let what =
                format!("a launcher of team `{}` of another config root runs in it", launcher.team);
            let root = launcher.root.to_string_lossy();
            let root = shlex::try_quote(&root).unwrap_or(root.clone());
            Some(tell("orphan_pane", what).advise(format!("phalanx --config-dir {root} doctor")))
        }
        Owner::Stranger => {
            let what = format!(
                "it carries a phalanx token, but nothing proves that process {} belongs to phalanx; it was left alone",
                resident.pane.pane.pid
            );
            Some(tell("unproven_pane", what).advise(by_hand(resident)))
        }
    }
}

fn by_hand(resident: &Resident) -> String {
    let words = ["tmux", "-S", &resident.pane.socket, "kill-pane", "-t", &resident.pane.pane_id];
    let line = shlex::try_join(words).unwrap_or_default();
    format!("check what runs there; to close it: {line}")
}

fn close(ctx: &Context, resident: &Resident, launcher: &Launcher) -> Result<bool, OpsError> {
    if is_orphan(ctx, launcher) { by_process::end_pane(ctx, launcher, resident) } else { Ok(false) }
}

fn process(ctx: &Context, launcher: &Launcher, fix: bool) -> Finding {
    let what = format!("a launcher of team `{}` runs, but no team has it on record", launcher.team);
    let place = format!("process {}", launcher.process.pid);
    Finding::new("orphan_process", Severity::Problem, what, place).mend(fix, || {
        Ok(is_orphan(ctx, launcher)
            && by_process::end_processes(std::slice::from_ref(launcher)).is_empty())
    })
}
