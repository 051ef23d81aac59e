//! Panes of a tmux server. Acts only on panes that it has created and that carry the team's token.
//!
//! Each call is a tmux process of its own, and a batch is one call. A persistent client in control
//! mode was measured and rejected twice. For the calls, it saves a few milliseconds when sixteen
//! panes close and one or two per batch of labels, but it adds a client to the user's session and a
//! second quoting rule, and its replies cannot be counted, because commands run by `if-shell` reply
//! too. For live screens, it would report output, but attaching it sends input to the session's
//! active pane; `monitor` has the details and what is used instead.

mod arrange;
mod census;
mod close;
mod command;
mod identity;
mod input;
mod label;
mod monitor;
mod notice;
mod own_pane;
mod place;
mod popup;
mod private;
mod probe;
mod row;
mod survey;
mod verb;
mod view;

#[cfg(test)]
mod tests;

use super::{
    Backend, BackendError, BeforeClose, CloseOutcome, Label, Mark, PlacementRequest, ScreenImage,
    TmuxHome,
};
use crate::proof::{Observation, judge};
use identity::PaneClaim;
use input::Written;
use model::id::MemberName;
use model::members::input::Input;
use model::members::placement::{BackendKind, Placement, TmuxPane, Verdict};
use model::members::spec::Terminal;
use sys::output_watch::OutputWatch;

pub use census::{Census, Resident, census, has_pane};
pub use monitor::prompt_line;
pub use notice::{RequestNotice, show_notice};
pub use own_pane::OwnPane;
pub use popup::{PopupCaller, popup_args};
pub use private::PrivateServer;
pub use probe::probe;

#[derive(Debug, Clone)]
pub struct Tmux {
    home: TmuxHome,
}

impl Tmux {
    pub fn new(home: TmuxHome) -> Tmux {
        Tmux { home }
    }

    /// Returns the claim to a placement that is proven ours.
    fn owned<'p>(&self, mark: Mark<'p>) -> Result<PaneClaim<'p>, BackendError> {
        let claim = PaneClaim::parse(&mark).map_err(|verdict| mark.not_ours(verdict))?;
        match self.verify(mark) {
            Verdict::Owned => Ok(claim),
            verdict => Err(mark.not_ours(verdict)),
        }
    }
}

impl Backend for Tmux {
    fn kind(&self) -> BackendKind {
        BackendKind::Tmux
    }

    fn terminal(&self, _member: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        place::place(&self.home, launches)
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        identity::verify(&self.home.program, marks).0
    }

    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        close::close_all(&self.home.program, marks, before)
    }

    fn screen(&self, mark: Mark<'_>, lines: usize) -> Result<String, BackendError> {
        let claim = self.owned(mark)?;
        let answer = claim.server(&self.home.program).ask(&verb::capture_pane(claim.id, lines));
        Ok(last_lines(&answer.into_lines()?, lines))
    }

    fn how_to_watch(&self, placement: &Placement) -> String {
        match placement {
            Placement::Tmux(pane) => watch(&self.home, pane),
            Placement::Iterm2(_) | Placement::Pty(_) => "it has no tmux pane".to_owned(),
        }
    }

    fn focus(&self, mark: Mark<'_>) -> Result<(), BackendError> {
        view::focus(&self.home, &self.owned(mark)?)
    }

    fn hide(&self, mark: Mark<'_>) -> Result<Placement, BackendError> {
        view::hide(&self.home, &self.owned(mark)?)
    }

    fn show(&self, mark: Mark<'_>) -> Result<Placement, BackendError> {
        view::show(&self.home, &self.owned(mark)?)
    }

    fn write_input(&self, mark: Mark<'_>, input: &Input) -> Result<(), BackendError> {
        let claim = PaneClaim::parse(&mark).map_err(|verdict| mark.not_ours(verdict))?;
        match input::write(&self.home.program, &claim, input)? {
            Written::All => Ok(()),
            // Says what is wrong with the pane.
            Written::NotTheClaimed => {
                self.owned(mark)?;
                let changed = Observation::different("identity, which changed a moment ago");
                Err(mark.not_ours(judge(changed)))
            }
        }
    }

    fn follow(
        &self,
        mark: Mark<'_>,
        watch: &mut OutputWatch,
        on_screen: &mut dyn FnMut(ScreenImage),
    ) -> Result<(), BackendError> {
        let claim = self.owned(mark)?;
        let server = claim.server(&self.home.program);
        let verify = || self.owned(mark).map(drop);
        monitor::follow(&server, &claim, watch, &verify, on_screen)
    }

    fn label(&self, labels: &[(Mark<'_>, Label)]) {
        label::label(&self.home.program, labels);
    }
}

/// Joins the last `count` lines, ignoring blank rows below the text.
fn last_lines(lines: &[String], count: usize) -> String {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    lines[end.saturating_sub(count)..end].join("\n")
}

/// Returns where to watch a pane: a window of the caller's own session, or else a command that
/// attaches to the session.
fn watch(home: &TmuxHome, pane: &TmuxPane) -> String {
    let own = survey::team_name(&home.team);
    let detached = pane.session_name.strip_prefix(own.as_str()).is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix('-')
                .is_some_and(|nth| nth.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if home.inside.as_ref().is_some_and(|inside| inside.session == pane.session_id) {
        let TmuxPane { window_id, window_name, .. } = pane;
        return format!(
            "window `{window_name}` of this tmux session (`tmux select-window -t {window_id}`)"
        );
    }
    let target = if detached { format!("={}", pane.session_name) } else { pane.session_id.clone() };
    let mut words = vec!["tmux"];
    if home.socket.is_some() {
        words.extend(["-S", &pane.socket]);
    }
    words.extend(["attach", "-t", &target]);
    // Joining fails only for a NUL, which tmux does not print.
    shlex::try_join(words).unwrap_or_else(|_| format!("tmux session {target}"))
}
