//! The actions of a walk.

pub type Name = &'static str;

/// The name under which a person, or the program with the tools, acts.
pub const LEAD: Name = "team-lead";
pub const WORKERS: [Name; 2] = ["ann", "bob"];
pub const AGENTS: [Name; 2] = ["ben", "cleo"];

pub fn is_worker(name: Name) -> bool {
    WORKERS.contains(&name)
}

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The lead, at a shell.
    Person,
    /// The lead, through the tools.
    Tools,
    Member(Name),
}

impl Actor {
    pub fn name(self) -> Name {
        match self {
            Actor::Person | Actor::Tools => LEAD,
            Actor::Member(name) => name,
        }
    }
}

/// An action on one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Claim,
    Complete,
    Fail,
    Review,
    Approve,
    Reject,
    /// `cancel` with a reason, under another name.
    RejectForGood,
    Cancel,
    Release,
    Retry,
    Delete,
}

impl Verb {
    pub const ALL: [Verb; 11] = [
        Verb::Claim,
        Verb::Complete,
        Verb::Fail,
        Verb::Review,
        Verb::Approve,
        Verb::Reject,
        Verb::RejectForGood,
        Verb::Cancel,
        Verb::Release,
        Verb::Retry,
        Verb::Delete,
    ];
}

/// A task is named by a key that stays the same if other actions are left out.
pub type Key = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Create {
        by: Actor,
        key: Key,
        has_command: bool,
        file: Option<&'static str>,
        after: Option<Key>,
        owner: Option<Name>,
    },
    Act {
        by: Actor,
        verb: Verb,
        key: Key,
    },
    Assign {
        by: Actor,
        key: Key,
        to: Name,
    },
    Block {
        key: Key,
        after: Key,
    },
    Unblock {
        key: Key,
        after: Key,
    },
    /// The command of a task exits by itself.
    EndCommand {
        key: Key,
        with_success: bool,
    },
    Spawn(Name),
    Shutdown(Name),
    Kill(Name),
    Restart(Name),
    /// The program of a member is killed by the kernel.
    Crash(Name),
    /// The launcher of a member is killed, and not its program.
    CrashLauncher(Name),
    /// A verb of a person is killed at a step of its work.
    CrashVerb {
        verb: Verb,
        key: Key,
        step: &'static str,
    },
    /// The loop of the lead is killed by the kernel.
    CrashLead,
    StartLead,
    /// A member writes to the lead.
    Report {
        from: Name,
        word: u32,
    },
    /// The lead writes to a member.
    Tell {
        to: Name,
        word: u32,
    },
    Ask {
        from: Name,
        word: u32,
    },
    Answer {
        from: Name,
        approve: bool,
    },
    Set {
        key: &'static str,
        value: &'static str,
    },
}

impl Action {
    /// Returns true if the action is performed at once, before the team has settled after the one
    /// before. Neither its result nor its effect depends on what the workers do meanwhile.
    pub fn is_hasty(&self) -> bool {
        matches!(
            self,
            Action::CrashLead
                | Action::StartLead
                | Action::Report { .. }
                | Action::Tell { .. }
                | Action::Ask { .. }
                | Action::Set { .. }
        )
    }
}
