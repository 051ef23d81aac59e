//! Finds the launchers of this user on this machine in the process table, with the config root,
//! team and run that each serves.

use std::path::{Path, PathBuf};

use model::id::{Incarnation, TeamName};
use store::parse_spec_path;
use sys::env;
use sys::proc::{self, Process, RunningProcess};

/// A process that was started as `phalanx exec SPEC` and runs phalanx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    pub process: Process,
    pub parent: i32,
    pub root: PathBuf,
    pub team: TeamName,
    pub incarnation: Incarnation,
    /// Socket of the tmux server that has started it.
    pub socket: Option<PathBuf>,
}

/// Returns the launchers of every config root. `exe` is the running phalanx; a process whose
/// executable has another name is not taken for a launcher.
pub fn launchers(exe: &Path) -> Vec<Launcher> {
    let found = proc::of_this_user_with(|argv| argv.len() == 3 && argv[1] == "exec");
    found.iter().filter_map(|running| launcher(running, exe)).collect()
}

/// Returns true if the kernel reports that the process runs a file with the name of this program.
pub(crate) fn runs_phalanx(process: Process) -> bool {
    let own = env::current_exe().ok();
    own.zip(proc::exe(process)).is_some_and(|(own, runs)| {
        own.file_name().is_some_and(|own| env::original_exe(&runs).file_name() == Some(own))
    })
}

/// A command line alone proves nothing, since a process can overwrite its own. The kernel must
/// report that the process runs the file at the start of the command line, under the name of `exe`.
fn launcher(running: &RunningProcess, exe: &Path) -> Option<Launcher> {
    let [program, verb, spec] = running.argv.as_slice() else { return None };
    let runs = env::original_exe(&running.exe);
    if verb != "exec" || runs != Path::new(program) || runs.file_name() != exe.file_name() {
        return None;
    }
    let (root, team, incarnation) = parse_spec_path(Path::new(spec))?;
    let RunningProcess { process, parent, .. } = *running;
    Some(Launcher { process, parent, root, team, incarnation, socket: socket(running) })
}

/// Returns the socket of the tmux server that the environment names, `SOCKET,PID,SESSION`, if that
/// server is the parent.
fn socket(running: &RunningProcess) -> Option<PathBuf> {
    let inside = running.var("TMUX")?.into_string().ok()?;
    let [_, server, socket] = inside.rsplitn(3, ',').collect::<Vec<_>>().try_into().ok()?;
    (server.parse() == Ok(running.parent)).then(|| PathBuf::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "/r/teams/demo/phalanx/specs/00000000-0000-4000-8000-000000000000.json";

    fn seen(exe: &str, argv: &[&str]) -> bool {
        let running = RunningProcess {
            process: Process { pid: 7, start: 1 },
            parent: 1,
            argv: argv.iter().map(Into::into).collect(),
            exe: PathBuf::from(exe),
        };
        launcher(&running, Path::new("/bin/phalanx")).is_some()
    }

    #[test]
    fn sd_05_only_exact_launch_command_lines_count() {
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
