//! `focus`, `hide` and `show`: control the pane of a member.

use crate::args::MemberArg;
use crate::fail::VerbResult;
use crate::setup::Setup;
use model::text;
use ops::authority::Action;
use ops::views::focus::{FocusedPane, Visibility};

pub(crate) fn focus(setup: &Setup, args: &MemberArg) -> VerbResult {
    let (team, name) = setup.member(&args.name, Action::MovePane)?;
    let focused = ops::views::focus::focus(&setup.ctx, &team, &name)?;
    setup.out.confirm(&focused, || {
        let FocusedPane { name, pane, host } = &focused;
        text::line(&match host {
            Some(host) => format!(
                "{name} is in front on host {host}: pane {pane}; see it here with `phalanx attach {name}`"
            ),
            None => format!("{name} is in front: pane {pane}"),
        })
    })
}

pub(crate) fn hide(setup: &Setup, args: &MemberArg) -> VerbResult {
    set_visibility(setup, args, Visibility::Hidden)
}

pub(crate) fn show(setup: &Setup, args: &MemberArg) -> VerbResult {
    set_visibility(setup, args, Visibility::Shown)
}

fn set_visibility(setup: &Setup, args: &MemberArg, visibility: Visibility) -> VerbResult {
    let (team, name) = setup.member(&args.name, Action::MovePane)?;
    let pane = ops::views::focus::set_visibility(&setup.ctx, &team, &name, visibility)?;
    setup.out.confirm(&pane, || {
        let state = if pane.hidden { "hidden" } else { "shown" };
        let already = if pane.changed { "" } else { " already" };
        text::line(&format!("{} is {state}{already}: pane {}", pane.name, pane.pane))
    })
}
