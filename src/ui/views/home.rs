//! The overview page of plain `phalanx`.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, tinted};
use model::text;
use ops::views::overview::{Overview, TeamGlance};
use sys::proc::Liveness;

const ABOUT: &str =
    "phalanx leads teams of command-line agents in tmux panes or its own terminals.";

/// Maximum length of a need, in characters.
const LONGEST: usize = 76;
/// Number of needs of a team that are shown.
const NEEDS: usize = 5;

/// Formats the page: a description of the program, the teams, and the next commands. `steps` has
/// each command and what it does.
pub fn home(overview: &Overview, steps: &[(String, &str)], paint: Paint) -> String {
    let mut blocks = vec![ABOUT.to_owned()];
    if !overview.teams.is_empty() {
        let mut table = Table::new(&["TEAM", "MEMBERS", "LEAD"]);
        for team in &overview.teams {
            let members =
                team.problem.as_ref().map_or_else(|| team.members.to_string(), |_| "?".to_owned());
            let name = tinted(Tint::Bold, team.name.as_str());
            table.row(vec![name, cell(members), cell(lead(team))]);
        }
        let more = match overview.more {
            0 => String::new(),
            more => format!("\nand {more} more: phalanx team list"),
        };
        blocks.push(table.render(paint) + &more);
    }
    blocks.extend(overview.teams.iter().filter_map(|team| stopped(team, paint)));
    blocks.extend(overview.teams.iter().filter_map(|team| needs(team, paint)));
    let width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    let line = |(command, what): &(String, &str)| {
        let gap = " ".repeat(width - command.chars().count() + 2);
        format!("  {}{gap}{what}", paint.put(Tint::Bold, command))
    };
    let steps = steps.iter().map(line).collect::<Vec<_>>().join("\n");
    let heading = paint.put(Tint::Dim, "Next:");
    blocks.push(format!("{heading}\n{steps}"));
    blocks.push("All commands: phalanx help --all".to_owned());
    blocks.join("\n\n")
}

/// Names the members that have ended as their lead has.
fn stopped(team: &TeamGlance, paint: Paint) -> Option<String> {
    let names: Vec<&str> = team.stopped.iter().map(|name| name.as_str()).collect();
    let words = format!("{} has ended without a request: {}", team.name, names.join(", "));
    (!names.is_empty()).then(|| paint.put(Tint::Warn, &text::line(&words)))
}

/// Lists what waits for a person in a team, each with the command that sees to it.
fn needs(team: &TeamGlance, paint: Paint) -> Option<String> {
    let shown = team.needs.iter().take(NEEDS).map(|need| {
        let who = need.member.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let why = paint.put(Tint::Warn, &text::short(&format!("{who}{}", need.why), LONGEST));
        format!("  {why}\n    {}", text::line(&need.next))
    });
    let more = team.needs.len().saturating_sub(NEEDS);
    let more = (more > 0).then(|| format!("  and {more} more: phalanx watch -t {}", team.name));
    let lines: Vec<String> = shown.chain(more).collect();
    let heading = paint.put(Tint::Dim, &format!("Needs you, in team {}:", team.name));
    (!lines.is_empty()).then(|| format!("{heading}\n{}", lines.join("\n")))
}

fn lead(team: &TeamGlance) -> String {
    match (&team.lead, &team.problem) {
        (_, Some(_)) => "cannot be read; see `phalanx doctor`".to_owned(),
        (None, None) => "none".to_owned(),
        (Some(lead), None) => {
            let state = match lead.alive {
                Liveness::Alive => "",
                Liveness::Dead => ", dead",
                Liveness::Unknown => ", not visible from here",
            };
            format!("{} (process {}){state}", lead.program, lead.pid)
        }
    }
}
