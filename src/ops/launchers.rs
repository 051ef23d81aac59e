//! The launchers that run on this machine for this user, by what the system says of them: which config root, team and
//! run each one serves. Refuses to end any.

use std::path::{Path, PathBuf};

use crate::model::id::{Incarnation, TeamName};
use crate::store::spec_of;
use crate::sys::proc::{self, Process, Running};

/// What the kernel puts behind the name of a program whose file was replaced.
const REPLACED: &str = " (deleted)";

/// A process that was started as `phalanx exec SPEC` and runs phalanx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launcher {
    pub(super) process: Process,
    pub(super) parent: i32,
    pub(super) root: PathBuf,
    pub(super) team: TeamName,
    pub(super) incarnation: Incarnation,
}

/// All of them, of every config root. `exe` is our own program: one of another name is not taken for ours.
pub(super) fn launchers(exe: &Path) -> Vec<Launcher> {
    proc::of_this_user().iter().filter_map(|running| launcher(running, exe)).collect()
}

/// Its command line alone would prove nothing, a process may write what it likes there: the kernel has to say that it
/// runs the file that the command line begins with, under our program's name.
fn launcher(running: &Running, exe: &Path) -> Option<Launcher> {
    let [program, verb, spec] = running.argv.as_slice() else { return None };
    let runs = running.exe.to_str()?;
    let runs = Path::new(runs.strip_suffix(REPLACED).unwrap_or(runs));
    if verb != "exec" || runs != Path::new(program) || runs.file_name() != exe.file_name() {
        return None;
    }
    let (root, team, incarnation) = spec_of(Path::new(spec))?;
    Some(Launcher { process: running.process, parent: running.parent, root, team, incarnation })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "/r/teams/demo/phalanx/specs/00000000-0000-4000-8000-000000000000.json";

    fn seen(exe: &str, argv: &[&str]) -> bool {
        let running = Running {
            process: Process { pid: 7, start: 1 },
            parent: 1,
            argv: argv.iter().map(Into::into).collect(),
            exe: PathBuf::from(exe),
        };
        launcher(&running, Path::new("/bin/phalanx")).is_some()
    }

    #[test]
    fn sd_05_only_the_very_form_of_a_launch_counts() {
        assert!(seen("/bin/phalanx", &["/bin/phalanx", "exec", SPEC]));
        assert!(seen("/old/phalanx (deleted)", &["/old/phalanx", "exec", SPEC]));
        for (exe, argv) in [
            ("/bin/sleep", &["/bin/phalanx", "exec", SPEC][..]),
            ("/bin/phalanx", &["/bin/phalanx", "exec", SPEC, "more"]),
            ("/bin/phalanx", &["/bin/phalanx", "worker", SPEC]),
            ("/bin/phalanx", &["phalanx", "exec", SPEC]),
            ("/bin/phalanx", &["/bin/phalanx", "exec", "/r/spec.json"]),
            ("/bin/other", &["/bin/other", "exec", SPEC]),
            ("/bin/phalanx", &[]),
        ] {
            assert!(!seen(exe, argv), "{exe} {argv:?}");
        }
    }
}
