//! `popup`: shows the dashboard in a popup of tmux.

use crate::fail::VerbResult;
use crate::setup::Setup;
use sys::exec::become_program;

/// Becomes a tmux process, which exits with the dashboard's exit code once the popup is closed. The
/// team is looked up first, because an error inside the popup would disappear with it.
pub(crate) fn popup(setup: &Setup) -> VerbResult {
    let team = setup.team_to_watch(None)?;
    let command = ops::views::popup::popup(&setup.ctx, team.as_ref())?;
    Err(become_program(command.program.as_os_str(), &command.args).into())
}
