//! Plain `phalanx`: lists the existing teams and suggests the next commands.

use serde_json::json;

use crate::args::Global;
use crate::ending::shutdown::{DownArgs, down};
use crate::fail::{Exit, Failure, VerbResult};
use crate::members::resume::resume_team;
use crate::members::start::START;
use crate::out::Out;
use crate::read::is_confirmed;
use crate::setup::Setup;
use crate::team::background::start_background_lead;
use crate::terminal::theme::can_draw;
use crate::watch::args::WatchArgs;
use crate::watch::watch;
use model::id::MemberName;
use ops::authority::Action;
use ops::views::overview::{Overview, TeamGlance, overview};
use sys::proc::Liveness;
use sys::{env, fs};

/// The default manifest, written by `init`.
pub(crate) const MANIFEST: &str = "team.toml";
/// Maximum number of teams that are read; further ones are only counted, to keep this page fast.
const SHOWN: usize = 10;

/// Opens the dashboard if this is a terminal that can draw it and there is a team that the caller
/// may watch, or several to choose from; else shows the page.
pub(crate) fn start(setup: Option<Setup>, global: &Global, out: &Out) -> VerbResult {
    let is_terminal = env::stdin_is_tty() && env::stdout_is_tty();
    match setup {
        Some(setup)
            if is_terminal
                && !global.json
                && !global.quiet
                && can_draw(&setup)
                && setup.team_to_watch(None).is_ok() =>
        {
            if !offer_to_go_on(&setup)? {
                return Ok(Exit::DONE);
            }
            watch(setup, global, &WatchArgs::default())
        }
        setup => home(setup.as_ref(), out),
    }
}

/// Offers to go on with a team whose lead has died: to start the members again that have died, too,
/// to lead those that live, or to delete a team without members. Returns false if that is done.
fn offer_to_go_on(setup: &Setup) -> Result<bool, Failure> {
    let Some(team) = setup.team_to_watch(None)? else { return Ok(true) };
    let name = team.name();
    let stopped = ops::starting::resume::stopped_with_lead(&team)?;
    let lead = ops::members::lead::find_lead(&team)?;
    let has_dead_lead = lead.is_some_and(|lead| lead.alive == Liveness::Dead);
    if !setup.ctx.speaker.is_lead() || (stopped.is_empty() && !has_dead_lead) {
        return Ok(true);
    }
    let later =
        |command: &str| setup.out.print_message(&format!("`{command} -t {name}` does it later"));
    if !stopped.is_empty() {
        let names: Vec<&str> = stopped.iter().map(MemberName::as_str).collect();
        let words = format!("{name} has ended without a request: {}", names.join(", "));
        setup.out.print_message(&words);
        if is_confirmed("start it again, with its conversations?")? {
            resume_team(setup, START)?;
        } else {
            later("phalanx resume --all");
        }
        return Ok(true);
    }
    let living = ops::members::status::live_members(&team)?;
    if !living.is_empty() {
        let names: Vec<&str> = living.iter().map(MemberName::as_str).collect();
        let words = format!("the lead of {name} has died; its members run: {}", names.join(", "));
        setup.out.print_message(&words);
        if is_confirmed("lead them in the background?")? {
            ops::team::lease::may_adopt(&setup.ctx, &team, false)?;
            start_background_lead(setup, &team, &["adopt"])?;
        } else {
            later("phalanx adopt --detach");
        }
        return Ok(true);
    }
    setup.out.print_message(&format!("the lead of {name} has died, and no member is left"));
    if is_confirmed("delete its files?")? {
        down(setup, &DownArgs { deadline: 0, ..DownArgs::default() })?;
        return Ok(false);
    }
    later("phalanx down");
    Ok(true)
}

/// Shows the page. Without a setup (no home directory) it is the page of a machine without teams.
fn home(setup: Option<&Setup>, out: &Out) -> VerbResult {
    if let Some(setup) = setup {
        ops::authority::enter_without_team(&setup.ctx, Action::ListTeams)?;
    }
    let overview = setup.map(|setup| overview(&setup.ctx, SHOWN)).unwrap_or_default();
    let has_manifest = setup.is_some_and(|setup| fs::exists(&setup.ctx.caller.cwd.join(MANIFEST)));
    let steps = steps(&overview, has_manifest);
    let commands: Vec<&str> = steps.iter().map(|step| step.0.as_str()).collect();
    let document = json!({ "teams": overview.teams, "more": overview.more, "next": commands });
    out.print(&document, || ui::home(&overview, &steps, out.paint))
}

/// Returns the suggested commands and the effect of each.
fn steps(overview: &Overview, has_manifest: bool) -> Vec<(String, &'static str)> {
    let step = |command: String, what: &'static str| (command, what);
    // Another program ends the teams that it leads.
    let readable = |team: &&TeamGlance| team.problem.is_none() && !team.is_foreign;
    let Some(team) = overview.teams.iter().find(readable) else {
        let manifest = if has_manifest {
            step(format!("phalanx up {MANIFEST}"), "run the team of this directory")
        } else {
            step("phalanx init".to_owned(), "write team.toml, a commented manifest that runs")
        };
        let second = if has_manifest {
            step("phalanx init FILE".to_owned(), "write another manifest")
        } else {
            step(format!("phalanx up {MANIFEST}"), "run a team from a manifest, to the end")
        };
        let third = step("phalanx team create NAME".to_owned(), "or build a team by hand");
        return vec![manifest, second, third];
    };
    let name = &team.name;
    let has_dead_lead = team.lead.as_ref().is_some_and(|lead| lead.alive == Liveness::Dead);
    if has_dead_lead && team.stopped.is_empty() && team.members == 0 {
        return vec![
            step(format!("phalanx down -t {name}"), "delete it: its lead has died, nobody is left"),
            step(format!("phalanx spawn NAME -t {name}"), "add a member"),
            step(format!("phalanx adopt -t {name}"), "lead it again"),
        ];
    }
    let first = if !team.stopped.is_empty() {
        step(format!("phalanx resume --all -t {name}"), "start it again, with its conversations")
    } else if has_dead_lead {
        step(format!("phalanx adopt -t {name}"), "take over the team, whose lead has died")
    } else {
        step(format!("phalanx status -t {name}"), "show its members and tasks")
    };
    let second = match team.members {
        _ if !team.stopped.is_empty() => {
            step(format!("phalanx status -t {name}"), "show its tasks")
        }
        0 => step(format!("phalanx spawn NAME -t {name}"), "add a member"),
        _ => step(format!("phalanx attach -t {name}"), "bring its screens to this terminal"),
    };
    let third = step(format!("phalanx down -t {name}"), "stop its members and delete it");
    vec![first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::{MemberName, TeamName};
    use ops::members::lead::LeadSeen;

    fn team(members: usize, lead: Option<Liveness>) -> TeamGlance {
        let lead =
            lead.map(|alive| LeadSeen { pid: 7, alive, program: "phalanx", since: String::new() });
        let name = TeamName::new("demo").expect("name");
        let (stopped, needs) = (Vec::new(), Vec::new());
        let is_foreign = false;
        TeamGlance { name, is_foreign, members, lead, stopped, needs, problem: None }
    }

    fn commands(teams: Vec<TeamGlance>, has_manifest: bool) -> Vec<String> {
        let steps = steps(&Overview { teams, more: 0 }, has_manifest);
        steps.into_iter().map(|(command, _)| command.replace("phalanx ", "")).collect()
    }

    #[test]
    fn suggested_commands_depend_on_teams_and_manifest() {
        assert_eq!(commands(vec![], false), ["init", "up team.toml", "team create NAME"]);
        assert_eq!(commands(vec![], true), ["up team.toml", "init FILE", "team create NAME"]);
        assert_eq!(
            commands(vec![team(0, None)], false),
            ["status -t demo", "spawn NAME -t demo", "down -t demo"]
        );
        let led = commands(vec![team(2, Some(Liveness::Alive))], true);
        assert_eq!(led, ["status -t demo", "attach -t demo", "down -t demo"]);
        assert_eq!(commands(vec![team(2, Some(Liveness::Dead))], false)[0], "adopt -t demo");
        assert_eq!(commands(vec![team(0, Some(Liveness::Dead))], false)[0], "down -t demo");
        let stopped = vec![MemberName::new("ann").expect("name")];
        let stopped = TeamGlance { stopped, ..team(2, Some(Liveness::Dead)) };
        assert_eq!(commands(vec![stopped], false)[0], "resume --all -t demo");
        let broken = TeamGlance { problem: Some("torn".to_owned()), ..team(0, None) };
        assert_eq!(commands(vec![broken], false)[0], "init");
        let foreign = TeamGlance { is_foreign: true, ..team(2, Some(Liveness::Alive)) };
        assert_eq!(commands(vec![foreign], false), ["init", "up team.toml", "team create NAME"]);
    }
}
