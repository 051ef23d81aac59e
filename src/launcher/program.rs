//! Resolves the command of a spec to an executable program: directory, program file and
//! environment, or the reason why it cannot run (SP-09, EN-01 to EN-07).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::causes::innermost;
use model::members::spec::Terminal;
use sys::child::Program;
use sys::exec::ExecError;
use sys::{env, fs};

/// Variables taken from the pane; all others come from the spec.
const FROM_PANE: [&str; 3] = ["TMUX", "TMUX_PANE", "TERM"];
/// `TERM` for programs on a pty of our own; the log is read as output for this terminal type.
const OWN_TERM: &str = "xterm-256color";
/// `TERM` for programs without a terminal.
const NO_TERM: &str = "dumb";

/// Exit codes of shells for a missing program and for one that cannot be executed.
const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;

/// The command of a spec, in the operating system's string types.
#[derive(Debug)]
pub struct ProgramCommand {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    pub terminal: Terminal,
}

/// The reason why the program did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchProblem {
    /// Description for people, also stored in the exit record.
    pub(super) text: String,
    /// The launcher's exit code.
    pub(super) code: i32,
    /// Set if no pty could be opened.
    pub(super) no_terminal: bool,
}

impl LaunchProblem {
    fn new(code: i32, text: String) -> LaunchProblem {
        LaunchProblem { text, code, no_terminal: false }
    }

    pub(super) fn not_runnable(text: String) -> LaunchProblem {
        LaunchProblem::new(NOT_RUNNABLE, text)
    }

    pub(super) fn no_terminal(text: String) -> LaunchProblem {
        LaunchProblem { no_terminal: true, ..LaunchProblem::not_runnable(text) }
    }
}

/// Enters the directory, finds the program and composes its environment.
///
/// # Errors
///
/// The directory cannot be entered, the command line is empty, or the program is not found.
pub(super) fn resolve(command: &ProgramCommand) -> Result<Program, LaunchProblem> {
    // The launcher enters the directory too, so that its start record shows getcwd's result
    // (EN-06).
    env::enter_dir(&command.cwd).map_err(|e| cannot_enter(&command.cwd, &e))?;
    let environment = environment(&command.env, &command.terminal, env::var);
    let name = command
        .argv
        .first()
        .ok_or_else(|| LaunchProblem::not_runnable("the command line is empty".to_owned()))?;
    let search = value(&environment, "PATH");
    let found = env::find_program(name, search, &command.cwd)
        .ok_or_else(|| not_found(name, &command.cwd))?;
    // A relative PATH entry yields a relative path, which exec would search for again.
    let path = command.cwd.join(found);
    Ok(Program { path, argv: command.argv.clone(), cwd: command.cwd.clone(), env: environment })
}

/// Returns the path on which the programs of a command are searched.
pub(super) fn search_path(command: &ProgramCommand) -> Option<&OsStr> {
    value(&command.env, "PATH")
}

fn value<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    // The last entry of a duplicate name wins.
    environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Adds the terminal's variables to the ordered ones. Ordered variables take precedence.
fn environment(
    ordered: &[(OsString, OsString)],
    terminal: &Terminal,
    own: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let given: Vec<(&str, OsString)> = match terminal {
        Terminal::Pane => {
            FROM_PANE.into_iter().filter_map(|name| Some((name, own(name)?))).collect()
        }
        Terminal::Own { .. } => vec![("TERM", OWN_TERM.into())],
        Terminal::Once { .. } => vec![("TERM", NO_TERM.into())],
    };
    let missing = given.into_iter().filter(|(name, _)| value(ordered, name).is_none());
    ordered.iter().cloned().chain(missing.map(|(name, value)| (name.into(), value))).collect()
}

fn cannot_enter(dir: &Path, error: &fs::FsError) -> LaunchProblem {
    let dir_shown = dir.display();
    let text = if !fs::exists(dir) {
        format!("directory {dir_shown} does not exist")
    } else if !fs::is_dir(dir) {
        format!("{dir_shown} is not a directory")
    } else {
        format!("directory {dir_shown} cannot be entered: {}", innermost(error))
    };
    LaunchProblem::not_runnable(text)
}

fn not_found(name: &OsStr, cwd: &Path) -> LaunchProblem {
    let shown = name.to_string_lossy();
    if !shown.contains('/') {
        return LaunchProblem::new(
            NOT_FOUND,
            format!("program `{shown}` is not in the PATH of the environment"),
        );
    }
    let path = cwd.join(name);
    if fs::exists(&path) {
        return LaunchProblem::not_runnable(format!(
            "{} is not an executable file",
            path.display()
        ));
    }
    LaunchProblem::new(NOT_FOUND, format!("program {} does not exist", path.display()))
}

/// Describes an exec failure. Never includes the arguments, which may contain secrets.
pub(super) fn exec_problem(program: &Program, error: &ExecError) -> LaunchProblem {
    let path = program.path.display();
    match error {
        ExecError::NotFound { .. } => {
            LaunchProblem::new(NOT_FOUND, format!("program {path} does not exist"))
        }
        ExecError::NoInterpreter { needs, .. } => LaunchProblem::new(
            NOT_FOUND,
            format!("program {path} cannot be run: {needs} does not exist"),
        ),
        ExecError::Directory { cwd, source, .. } => LaunchProblem::not_runnable(format!(
            "directory {} cannot be entered: {source}",
            cwd.display()
        )),
        ExecError::Deadline { .. }
        | ExecError::TooMuchOutput { .. }
        | ExecError::Cancelled { .. }
        | ExecError::Io { .. } => LaunchProblem::not_runnable(format!(
            "program {path} cannot be run: {}",
            innermost(error)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect()
    }

    fn own_terminal() -> Terminal {
        Terminal::Own { rows: 50, cols: 200, log: String::new() }
    }

    /// The launcher's own environment: three variables of the pane and one that must not leak.
    fn own(name: &str) -> Option<OsString> {
        let known = [
            ("TMUX", "/s,1,0"),
            ("TMUX_PANE", "%3"),
            ("TERM", "tmux-256color"),
            ("CLAUDECODE", "1"),
        ];
        known.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
    }

    #[test]
    fn en_01_en_03_a_pane_adds_only_its_three_variables() {
        let ordered = vars(&[("PATH", "/bin"), ("KEY", "k")]);
        let mut expected = ordered.clone();
        expected.extend(vars(&[
            ("TMUX", "/s,1,0"),
            ("TMUX_PANE", "%3"),
            ("TERM", "tmux-256color"),
        ]));
        assert_eq!(environment(&ordered, &Terminal::Pane, own), expected);
        assert_eq!(environment(&ordered, &Terminal::Pane, |_| None), ordered);
    }

    #[test]
    fn own_terminal_sets_term_to_xterm_and_no_tmux_variables() {
        let expected = vars(&[("A", "1"), ("TERM", "xterm-256color")]);
        assert_eq!(environment(&vars(&[("A", "1")]), &own_terminal(), own), expected);
    }

    #[test]
    fn ordered_variables_take_precedence() {
        let ordered = vars(&[("TERM", "dumb"), ("TMUX", "")]);
        assert_eq!(environment(&ordered, &own_terminal(), own), ordered);
        let mut expected = ordered.clone();
        expected.extend(vars(&[("TMUX_PANE", "%3")]));
        assert_eq!(environment(&ordered, &Terminal::Pane, own), expected);
    }

    #[test]
    fn last_of_duplicate_variables_wins() {
        assert_eq!(value(&vars(&[("PATH", "/a"), ("PATH", "/b")]), "PATH"), Some(OsStr::new("/b")));
        assert_eq!(value(&[], "PATH"), None);
    }

    #[test]
    fn sp_09_missing_and_unexecutable_programs_differ() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let missing = not_found(OsStr::new("x"), dir.path());
        assert_eq!(
            missing,
            LaunchProblem::new(127, "program `x` is not in the PATH of the environment".into())
        );
        let gone = not_found(OsStr::new("/no/such"), dir.path());
        assert_eq!(gone, LaunchProblem::new(127, "program /no/such does not exist".into()));
        let plain = not_found(dir.path().as_os_str(), Path::new("/"));
        assert_eq!(
            (plain.code, plain.text.ends_with("is not an executable file")),
            (126, true),
            "{plain:?}"
        );
    }

    #[test]
    fn en_06_missing_directory_and_plain_file_differ() {
        let error = env::enter_dir(Path::new("/no/such")).expect_err("there is none");
        let gone = cannot_enter(Path::new("/no/such"), &error);
        assert_eq!(gone, LaunchProblem::new(126, "directory /no/such does not exist".into()));
        let file = std::path::Path::new("/dev/null");
        let error = env::enter_dir(file).expect_err("it is none");
        assert_eq!(cannot_enter(file, &error).text, "/dev/null is not a directory");
    }

    #[test]
    fn sec_06_exec_error_is_reported_without_arguments() {
        let program = Program {
            path: PathBuf::from("/bin/x"),
            argv: vec!["x".into(), "s3cret".into()],
            cwd: PathBuf::from("/"),
            env: Vec::new(),
        };
        let source = std::io::Error::other("argument list too long");
        let reported =
            exec_problem(&program, &ExecError::Io { argv: program.argv.clone(), source });
        assert_eq!(
            reported,
            LaunchProblem::new(126, "program /bin/x cannot be run: argument list too long".into())
        );
        let reported = exec_problem(&program, &ExecError::NotFound { program: "/bin/x".into() });
        assert_eq!(reported.code, 127);
    }
}
