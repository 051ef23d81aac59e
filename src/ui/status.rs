//! Teams, their members and how shutdowns ended, as tables. Pure.

use super::life::span;
use super::paint::{Paint, Tint};
use super::report::deviations;
use super::table::{Table, cell, maybe, tinted};
use crate::model::team::Team;
use crate::model::text;
use crate::ops::shutdown::Ended;
use crate::ops::status::{MemberStatus, Status, TaskCounts};
use crate::ops::team::Listed;

/// How a team stands.
pub(crate) fn status(status: &Status, paint: Paint) -> String {
    let lead = match &status.lead {
        Some(lead) => format!("led by process {} since {}", lead.pid, lead.since),
        None => "led by nobody".to_owned(),
    };
    let team = paint.put(Tint::Bold, &format!("team {}", status.team));
    let requests = match status.requests {
        0 => String::new(),
        some => format!("  open requests: {some}"),
    };
    let head = format!("{team}  {}\n{}{requests}", paint.put(Tint::Dim, &lead), counts(&status.tasks));
    if status.members.is_empty() { head } else { format!("{head}\n\n{}", members(status, paint)) }
}

fn counts(tasks: &TaskCounts) -> String {
    let counted = [
        (tasks.pending, "pending"),
        (tasks.in_progress, "in progress"),
        (tasks.completed, "completed"),
        (tasks.failed, "failed"),
        (tasks.cancelled, "cancelled"),
    ];
    let words =
        counted.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect::<Vec<_>>();
    if words.is_empty() { "no tasks".to_owned() } else { format!("tasks: {}", words.join(", ")) }
}

fn members(status: &Status, paint: Paint) -> String {
    let heads = ["NAME", "STATE", "TASK", "IDLE", "ROLE", "PROFILE", "BACKEND", "PANE", "PID", "REASON"];
    let mut table = Table::new(&heads);
    for member in &status.members {
        table.row(vec![
            tinted(Tint::member(member.color.as_deref()), member.name.as_str()),
            tinted(state_tint(&member.state), member.state.replace('_', " ")),
            maybe(member.task.map(|id| format!("#{id} {}", text::short(activity(member), 40)))),
            maybe(member.idle_ms.map(span)),
            maybe(member.role.as_deref().filter(|role| *role != "general-purpose")),
            maybe(member.profile.as_deref()),
            maybe(member.backend.as_deref()),
            maybe(member.pane.as_deref()),
            maybe(member.pid.map(|pid| pid.to_string())),
            maybe(member.reason.as_deref().map(|reason| text::short(reason, 60))),
        ]);
    }
    table.render(paint)
}

fn activity(member: &MemberStatus) -> &str {
    member.activity.as_deref().unwrap_or_default()
}

pub(super) fn state_tint(word: &str) -> Tint {
    match word {
        "working" => Tint::Good,
        "shutdown_requested" | "unresponsive" => Tint::Warn,
        "failed" | "killed" | "disappeared" => Tint::Bad,
        _ => Tint::Plain,
    }
}

/// All teams, a line each.
pub(crate) fn team_list(teams: &[Listed], paint: Paint) -> String {
    let mut table = Table::new(&["TEAM", "MEMBERS", "LEAD", "DESCRIPTION"]);
    for team in teams {
        table.row(vec![
            tinted(Tint::Bold, team.name.as_str()),
            cell(text::short(&team.members.join(", "), 60)),
            maybe(team.lead_pid.map(|pid| pid.to_string())),
            maybe(team.description.as_deref().map(|d| text::short(d, 60))),
        ]);
    }
    table.render(paint)
}

/// One team and who is on it.
pub(crate) fn team_lines(team: &Team, paint: Paint) -> String {
    let mut table = Table::new(&["NAME", "TYPE", "MODEL", "BACKEND", "PANE", "DIRECTORY"]);
    for member in &team.members {
        table.row(vec![
            tinted(Tint::member(member.color.as_deref()), member.name.as_str()),
            maybe(member.agent_type.as_deref()),
            maybe(member.model.as_deref()),
            maybe(member.backend_type.as_deref()),
            cell(&member.pane_id),
            cell(&member.cwd),
        ]);
    }
    let name = paint.put(Tint::Bold, &format!("team {}", text::line(&team.name)));
    let what = team.description.as_deref().filter(|d| !d.is_empty());
    let what = what.map(|d| format!("  {}", text::line(d))).unwrap_or_default();
    format!("{name}{what}\n\n{}", table.render(paint))
}

/// How shutdowns ended, a line each.
pub(crate) fn shutdowns(ended: &[Ended], paint: Paint) -> String {
    let mut table = Table::new(&["NAME", "OUTCOME", "TOOK", "REASON"]);
    for one in ended {
        table.row(vec![
            tinted(Tint::Bold, one.name.as_str()),
            cell(one.outcome.replace('_', " ")),
            maybe(one.elapsed_ms.map(span)),
            maybe(one.reason.as_deref().map(|r| text::short(r, 80))),
        ]);
    }
    let all: Vec<_> = ended.iter().flat_map(|one| one.deviations.clone()).collect();
    let told = deviations(&all, paint).map(|lines| format!("\n\n{lines}"));
    table.render(paint) + &told.unwrap_or_default()
}
