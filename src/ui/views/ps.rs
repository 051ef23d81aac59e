//! The table of every team on this machine.

use std::collections::BTreeMap;
use std::path::Path;

use crate::paint::{Paint, Tint};
use crate::table::{Cell, Table, cell, maybe, tinted};
use crate::views::life::state_cell;
use crate::views::status::dead_lead_text;
use model::text;
use ops::members::lead::LeadSeen;
use ops::views::ps::TeamOnMachine;
use sys::proc::Liveness;

/// Maximum length of names, in characters.
const NAME: usize = 20;

/// Formats all teams with one line for each member; then dead leads, tmux servers and config roots,
/// each with its teams. `root` is the caller's own config root.
pub fn ps(teams: &[TeamOnMachine], root: &Path, width: usize, paint: Paint) -> String {
    if teams.is_empty() {
        return format!("no teams under {}", text::line(&root.to_string_lossy()));
    }
    let mut table =
        Table::new(&["TEAM", "LEAD", "MEMBER", "STATE", "TASK", "BACKEND", "HOST", "PANE", "PID"]);
    for team in teams {
        rows(team, &mut table);
    }
    let spare = ["PID", "PANE", "BACKEND", "HOST"];
    let mut lines = vec![table.render_within(width, &spare, &["MEMBER", "TEAM", "LEAD"], paint)];
    for team in teams {
        let words = [team.problem.as_deref().map(text::line), dead_lead(team, root)];
        let named = |words| {
            paint.put(Tint::Bad, &format!("team {}: {words}", text::line(team.team.as_str())))
        };
        lines.extend(words.into_iter().flatten().map(named));
        let silent = team.silent_hosts.iter().map(|silent| {
            let words = format!("host {}: {}", silent.host, text::line(&silent.problem));
            paint.put(Tint::Warn, &words)
        });
        let new: Vec<String> = silent.filter(|words| !lines.contains(words)).collect();
        lines.extend(new);
    }
    let servers = group(teams, |team| team.sockets.iter().cloned().collect());
    lines.extend(
        servers.iter().map(|(socket, names)| footer("tmux server", socket, names, width, paint)),
    );
    let mut roots = group(teams, |team| vec![team.root.to_string_lossy().into_owned()]);
    roots.entry(root.to_string_lossy().into_owned()).or_insert_with(|| vec!["no teams".to_owned()]);
    lines
        .extend(roots.iter().map(|(root, names)| footer("config root", root, names, width, paint)));
    lines.join("\n")
}

fn dead_lead(team: &TeamOnMachine, root: &Path) -> Option<String> {
    let lead = team.lead.as_ref().filter(|lead| lead.alive == Liveness::Dead)?;
    let words = dead_lead_text(
        lead,
        &text::line(team.team.as_str()),
        team.members.iter().map(|member| &member.status),
        false,
    );
    if team.root == root {
        return Some(words);
    }
    Some(format!("{words}, with `--config-dir {}`", text::line(&team.root.to_string_lossy())))
}

/// Adds the rows of a team; the first one names the lead. A team without members has one row.
fn rows(team: &TeamOnMachine, table: &mut Table) {
    let mut first =
        [tinted(Tint::Bold, text::short(team.team.as_str(), NAME)), lead(team.lead.as_ref())];
    if team.members.is_empty() {
        let [name, lead] = first;
        table.row([vec![name, lead], vec![cell(""); 7]].concat());
        return;
    }
    for member in &team.members {
        let [name, lead] = std::mem::replace(&mut first, [cell(""), cell("")]);
        let status = &member.status;
        table.row(vec![
            name,
            lead,
            tinted(Tint::member(status.color.as_deref()), text::short(status.name.as_str(), NAME)),
            state_cell(&status.state.doing),
            maybe(status.task.map(|id| format!("#{id}"))),
            maybe(status.backend.as_deref().map(|b| text::short(b, NAME))),
            maybe(status.host.as_ref().map(|host| text::short(host.as_str(), NAME))),
            maybe(status.pane.as_deref().map(|p| text::short(p, NAME))),
            pid(status.pid, member.alive),
        ]);
    }
}

fn lead(lead: Option<&LeadSeen>) -> Cell {
    let Some(lead) = lead else { return tinted(Tint::Dim, "none") };
    let who = match lead.program {
        "phalanx" => lead.pid.to_string(),
        other => format!("{other} {}", lead.pid),
    };
    match lead.alive {
        Liveness::Alive => cell(who),
        Liveness::Dead => tinted(Tint::Bad, format!("{who} died")),
        Liveness::Unknown => tinted(Tint::Warn, format!("{who}?")),
    }
}

fn pid(pid: Option<i32>, alive: Option<Liveness>) -> Cell {
    match (pid, alive) {
        (Some(pid), Some(Liveness::Dead)) => tinted(Tint::Bad, format!("{pid} dead")),
        (Some(pid), Some(Liveness::Unknown)) => tinted(Tint::Warn, format!("{pid}?")),
        (Some(pid), Some(Liveness::Alive) | None) => cell(pid.to_string()),
        (None, _) => cell(""),
    }
}

fn group(
    teams: &[TeamOnMachine],
    keys: impl Fn(&TeamOnMachine) -> Vec<String>,
) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for team in teams {
        for key in keys(team) {
            groups.entry(key).or_default().push(text::line(team.team.as_str()));
        }
    }
    groups
}

/// Formats a path with its teams; their names are cut to the rest of the line.
fn footer(what: &str, which: &str, names: &[String], width: usize, paint: Paint) -> String {
    let head = format!("{what} {}: ", text::line(which));
    let room = width.saturating_sub(head.chars().count()).max(NAME);
    paint.put(Tint::Dim, &(head + &text::short(&names.join(", "), room)))
}
