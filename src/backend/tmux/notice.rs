//! Shows a notice about a pending request in the status line of a team's terminals, without moving
//! the focus. tmux format-expands the notice, so it holds only our own words and [`PlainWord`]
//! names (SEC-02).

use std::collections::BTreeSet;
use std::path::Path;

use super::command::{PaneId, PlainWord, Server, SessionId, Unit};
use super::row::{ClientRow, PaneRow, rows};
use super::verb;

/// A request that a member is waiting for.
#[derive(Debug, Clone, Copy)]
pub struct RequestNotice<'a> {
    pub team: &'a str,
    pub member: &'a str,
    /// The kind of the request; a word of ours, never a user's.
    pub kind: &'static str,
    /// The request was announced before.
    pub again: bool,
}

impl RequestNotice<'_> {
    fn text(&self) -> String {
        let (team, member) = (PlainWord::from_text(self.team), PlainWord::from_text(self.member));
        let asks = if self.again { "still asks" } else { "asks" };
        let (team, member) = (team.as_str(), member.as_str());
        format!("phalanx: {member} {asks} for a {} - phalanx requests -t {team}", self.kind)
    }
}

/// Shows the notice on every terminal attached to a session with a pane that carries one of these
/// tokens, or with the pane `lead`. Ignores errors.
pub fn show_notice(
    program: &Path,
    socket: &Path,
    tokens: &[String],
    lead: Option<&str>,
    notice: &RequestNotice<'_>,
) {
    let server = Server { program, socket: Some(socket) };
    let found = server.ask(&verb::panes().then(verb::clients())).lines;
    let lead = lead.and_then(PaneId::parse);
    let ours = |row: &PaneRow| Some(row.id) == lead || tokens.contains(&row.token);
    let sessions: BTreeSet<SessionId> =
        rows::<PaneRow>(&found).into_iter().filter(ours).map(|row| row.session).collect();
    let text = notice.text();
    let units: Vec<Unit> = rows::<ClientRow>(&found)
        .iter()
        // A client in control mode has no status line.
        .filter(|row| sessions.contains(&row.session) && !row.control)
        .map(|row| verb::show_message(&row.name, &text))
        .collect();
    server.run(&units);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_02_notice_contains_no_format_syntax() {
        let hostile = "#(touch x)#{pane_id}#[fg=red]%H\u{1b}[2J;";
        let notice = RequestNotice { team: hostile, member: hostile, kind: "plan", again: true };
        assert!(!notice.text().contains(['#', '%', '\u{1b}', ';', '{']), "{}", notice.text());
        let notice = RequestNotice { team: "alpha", member: "ada", again: false, ..notice };
        assert_eq!(notice.text(), "phalanx: ada asks for a plan - phalanx requests -t alpha");
    }
}
