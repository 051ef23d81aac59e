//! The one-shot run, the last tier of the fallback cascade: what the program printed goes to the lead as a message from
//! the member, and then the member leaves the team. Does nothing for programs that have a terminal.

use std::path::Path;

use super::super::retire::{self, Retirement};
use super::super::run::Tail;
use super::super::send;
use super::run::Run;
use crate::model::id::MemberName;
use crate::model::lifecycle::Cause;
use crate::model::protocol::Message;
use crate::model::record::ExitRecord;
use crate::model::spec::Terminal;
use crate::sys::fs;

/// So much of the end of the log is looked at, bytes.
const TAIL: u64 = 64 * 1024;

/// Sends the lead how it ended and what it printed last.
pub(super) fn give(run: &Run, exit: &ExitRecord) {
    let Terminal::Once { log } = &run.order.terminal else { return };
    if !run.team.exists() {
        return;
    }
    let mut tail = Tail::default();
    tail.push(&fs::read_tail(Path::new(log), TAIL).unwrap_or_default());
    let message = Message::Text(words(run.member.as_str(), exit, tail.text().trim_end(), log));
    if let Err(e) = send::report(&run.team, &run.member, &message) {
        run.say(&format!("the answer did not reach the lead: {e}"));
    }
}

fn words(member: &str, exit: &ExitRecord, printed: &str, log: &str) -> String {
    let how = format!("{member} ran once, without a terminal, and has ended: {}.", exit.describe());
    match printed {
        "" => format!("{how} It printed nothing."),
        printed => format!("{how} The end of what it printed (all of it: {log}):\n\n{printed}"),
    }
}

/// Takes the member off the team: there is nobody behind the name any more.
pub(super) fn leave(run: &Run, exit: &ExitRecord) {
    if !matches!(run.order.terminal, Terminal::Once { .. }) || !run.team.exists() {
        return;
    }
    let retirement = Retirement {
        name: MemberName::clone(&run.member),
        incarnation: run.incarnation.clone(),
        cause: Cause::Ended { code: exit.code },
        reason: exit.describe(),
    };
    if let Err(e) = retire::retire(&run.team, &[retirement]) {
        run.say(&format!("it could not leave the team: {e}"));
    }
}
