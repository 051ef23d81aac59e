//! Labels in the borders of panes: name, role and state in the member's colour. Users' texts are
//! reduced to [`PlainWord`]s, because tmux expands formats in a border (SEC-02).

use std::collections::BTreeMap;
use std::path::Path;

use super::command::{PaneId, PlainWord, Unit};
use super::identity::PaneClaim;
use super::verb;
use crate::{Label, Mark};

const COLORS: [(&str, &str); 8] = [
    ("blue", "blue"),
    ("green", "green"),
    ("yellow", "yellow"),
    ("purple", "magenta"),
    ("orange", "colour208"),
    ("pink", "colour212"),
    ("cyan", "cyan"),
    ("red", "red"),
];

/// Labels the panes that are ours, with one tmux process per server. The server checks each pane's
/// identity in the same step. Answers are ignored, because nothing depends on a label.
pub(super) fn label(program: &Path, labels: &[(Mark<'_>, Label)]) {
    let mut servers: BTreeMap<&str, (PaneClaim<'_>, Vec<Unit>)> = BTreeMap::new();
    for (mark, label) in labels {
        let Ok(claim) = PaneClaim::parse(mark) else { continue };
        let unit = claim.guarded(&unit(claim.id, label));
        servers.entry(&claim.recorded.socket).or_insert_with(|| (claim, Vec::new())).1.push(unit);
    }
    for (claim, units) in servers.values() {
        claim.server(program).run(units);
    }
}

/// Builds the command that sets the label of a pane.
pub(super) fn unit(pane: PaneId, label: &Label) -> Unit {
    let plain = |text: &str| {
        if text.is_empty() { String::new() } else { PlainWord::from_text(text).as_str().to_owned() }
    };
    let color = label
        .color
        .as_deref()
        .and_then(|requested| COLORS.iter().find(|(name, _)| *name == requested));
    verb::label(
        pane,
        &PlainWord::from_text(&label.name),
        &plain(label.role.as_deref().unwrap_or_default()),
        &plain(&label.state),
        color.map_or("", |(_, color)| *color),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::team;

    #[test]
    fn every_colour_of_the_team_file_has_one_in_tmux() {
        assert_eq!(COLORS.map(|(name, _)| name), team::COLORS);
    }
}
