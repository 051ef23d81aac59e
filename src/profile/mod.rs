//! How a given program is started, fed and read: data, not behaviour. Knows nothing of backends or of how a process
//! is started.

/// How a spawner knows that the program is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// It says so itself, in its record (ID-03).
    Hello,
    /// It is still there so many milliseconds after its start (SP-09).
    Settled { ms: u64 },
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// phalanx itself with this hidden subcommand.
    Own { subcommand: &'static str },
    /// The command line that was given.
    Given,
}

/// A program that phalanx can have as a teammate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) ready: Ready,
    /// Whether it reads its mailbox. One that does not cannot be written to, and is ended without being asked (MSG-16).
    pub(crate) reads_mail: bool,
}

/// A built-in teammate that claims tasks with a command, runs them and reports.
pub(crate) const WORKER: Profile = Profile {
    name: "worker",
    program: Program::Own { subcommand: "worker" },
    ready: Ready::Hello,
    reads_mail: true,
};

/// Any command line.
pub(crate) const SHELL: Profile =
    Profile { name: "shell", program: Program::Given, ready: Ready::Settled { ms: 700 }, reads_mail: false };

/// All profiles.
pub(crate) const ALL: [Profile; 2] = [WORKER, SHELL];

/// The profile of this name.
pub(crate) fn named(name: &str) -> Option<Profile> {
    ALL.into_iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_found_by_their_own_name() {
        for profile in ALL {
            assert_eq!(named(profile.name), Some(profile));
        }
        assert_eq!(named("Worker"), None);
    }
}
