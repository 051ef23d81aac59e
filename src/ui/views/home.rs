//! The overview page of plain `phalanx`.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, tinted};
use ops::members::lead::Life;
use ops::team::{Overview, TeamGlance};

const ABOUT: &str =
    "phalanx leads teams of command-line agents in tmux panes or its own terminals.";

/// Formats the page: a description of the program, the teams, and the next commands. `steps` has
/// each command and what it does.
pub fn home(overview: &Overview, steps: &[(String, &str)], paint: Paint) -> String {
    let mut blocks = vec![ABOUT.to_owned()];
    if !overview.teams.is_empty() {
        let mut table = Table::new(&["TEAM", "MEMBERS", "LEAD"]);
        for team in &overview.teams {
            let members =
                team.problem.as_ref().map_or_else(|| team.members.to_string(), |_| "?".to_owned());
            table.row(vec![
                tinted(Tint::Bold, team.name.as_str()),
                cell(members),
                cell(lead(team)),
            ]);
        }
        let more = match overview.more {
            0 => String::new(),
            more => format!("\nand {more} more: phalanx team list"),
        };
        blocks.push(table.render(paint) + &more);
    }
    let width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    let line = |(command, what): &(String, &str)| {
        let gap = " ".repeat(width - command.chars().count() + 2);
        format!("  {}{gap}{what}", paint.put(Tint::Bold, command))
    };
    let steps = steps.iter().map(line).collect::<Vec<_>>().join("\n");
    let heading = paint.put(Tint::Dim, "Next:");
    blocks.push(format!("{heading}\n{steps}"));
    blocks.push("All commands: phalanx --help".to_owned());
    blocks.join("\n\n")
}

fn lead(team: &TeamGlance) -> String {
    match (&team.lead, &team.problem) {
        (_, Some(_)) => "cannot be read; see `phalanx doctor`".to_owned(),
        (None, None) => "none".to_owned(),
        (Some(lead), None) => {
            let state = match lead.alive {
                Life::Alive => "",
                Life::Dead => ", dead",
                Life::Unknown => ", not visible from here",
            };
            format!("{} (process {}){state}", lead.program, lead.pid)
        }
    }
}
