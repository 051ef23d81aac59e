//! Makes of what was ordered what can be run: directory, program file, environment; or says why it cannot (SP-09,
//! EN-01 to EN-07).

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::run::Order;
use crate::model::spec::Terminal;
use crate::sys::child::Program;
use crate::sys::exec::ExecError;
use crate::sys::{env, fs};

/// What a pane gives to the program in it; everything else comes from the spec.
const FROM_PANE: [&str; 3] = ["TMUX", "TMUX_PANE", "TERM"];
/// What programs on a terminal of ours are told: the log is read as one of these.
const OWN_TERM: &str = "xterm-256color";
/// What a program without any is told.
const NO_TERM: &str = "dumb";

/// Exit codes of shells: nothing of that name, and something that cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;

/// Why the program never ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// For people; goes into the exit record.
    pub(super) text: String,
    /// The launcher's exit code.
    pub(super) code: i32,
    /// It has no terminal, and none could be made.
    pub(super) no_terminal: bool,
}

impl Problem {
    fn new(code: i32, text: String) -> Problem {
        Problem { text, code, no_terminal: false }
    }

    pub(super) fn not_runnable(text: String) -> Problem {
        Problem::new(NOT_RUNNABLE, text)
    }

    pub(super) fn no_terminal(text: String) -> Problem {
        Problem { no_terminal: true, ..Problem::not_runnable(text) }
    }
}

/// Enters the directory, finds the program and composes its environment.
pub(super) fn of(order: &Order) -> Result<Program, Problem> {
    // We enter it as well: the start record is to say what getcwd says (EN-06).
    env::enter_dir(&order.cwd).map_err(|e| cannot_enter(&order.cwd, &e))?;
    let environment = environment(&order.env, &order.terminal, env::var);
    let name = order
        .argv
        .first()
        .ok_or_else(|| Problem::not_runnable("the command line is empty".to_owned()))?;
    let search = value(&environment, "PATH");
    let found =
        env::find_program(name, search, &order.cwd).ok_or_else(|| not_found(name, &order.cwd))?;
    // A relative entry of PATH gives a relative file, which exec would search once more.
    let path = order.cwd.join(found);
    Ok(Program { path, argv: order.argv.clone(), cwd: order.cwd.clone(), env: environment })
}

fn value<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    // As in any environment made from a list: the last one counts.
    environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Adds what the terminal gives to what was ordered; what was ordered stays.
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

fn cannot_enter(dir: &Path, error: &fs::FsError) -> Problem {
    let dir_shown = dir.display();
    let text = if !fs::exists(dir) {
        format!("directory {dir_shown} does not exist")
    } else if !fs::is_dir(dir) {
        format!("{dir_shown} is not a directory")
    } else {
        format!("directory {dir_shown} cannot be entered: {}", cause(error))
    };
    Problem::not_runnable(text)
}

fn not_found(name: &OsStr, cwd: &Path) -> Problem {
    let shown = name.to_string_lossy();
    if !shown.contains('/') {
        return Problem::new(
            NOT_FOUND,
            format!("program `{shown}` is not in the PATH of the environment"),
        );
    }
    let path = cwd.join(name);
    if fs::exists(&path) {
        return Problem::not_runnable(format!("{} is not an executable file", path.display()));
    }
    Problem::new(NOT_FOUND, format!("program {} does not exist", path.display()))
}

/// What the system said when the program was to be executed. Never the arguments: they may hold what is secret.
pub(super) fn refused(program: &Program, error: &ExecError) -> Problem {
    let path = program.path.display();
    match error {
        ExecError::NotFound { .. } => Problem::new(
            NOT_FOUND,
            format!("program {path} cannot be run: it, or its interpreter, does not exist"),
        ),
        ExecError::Directory { cwd, source, .. } => Problem::not_runnable(format!(
            "directory {} cannot be entered: {source}",
            cwd.display()
        )),
        ExecError::Deadline { .. } | ExecError::Io { .. } => {
            Problem::not_runnable(format!("program {path} cannot be run: {}", cause(error)))
        }
    }
}

/// The innermost reason.
fn cause(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn vars(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect()
    }

    fn own_terminal() -> Terminal {
        Terminal::Own { rows: 50, cols: 200, log: String::new() }
    }

    /// The launcher's own variables: a pane's three and what must not leak.
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
    fn en_01_en_03_a_pane_adds_its_own_three_and_nothing_else() {
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
    fn an_own_terminal_is_an_xterm_and_no_tmux() {
        let expected = vars(&[("A", "1"), ("TERM", "xterm-256color")]);
        assert_eq!(environment(&vars(&[("A", "1")]), &own_terminal(), own), expected);
    }

    #[test]
    fn what_was_ordered_stays() {
        let ordered = vars(&[("TERM", "dumb"), ("TMUX", "")]);
        assert_eq!(environment(&ordered, &own_terminal(), own), ordered);
        let mut expected = ordered.clone();
        expected.extend(vars(&[("TMUX_PANE", "%3")]));
        assert_eq!(environment(&ordered, &Terminal::Pane, own), expected);
    }

    #[test]
    fn the_last_of_two_values_counts() {
        assert_eq!(value(&vars(&[("PATH", "/a"), ("PATH", "/b")]), "PATH"), Some(OsStr::new("/b")));
        assert_eq!(value(&[], "PATH"), None);
    }

    #[test]
    fn sp_09_missing_programs_are_told_apart() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let missing = not_found(OsStr::new("x"), dir.path());
        assert_eq!(
            missing,
            Problem::new(127, "program `x` is not in the PATH of the environment".into())
        );
        let gone = not_found(OsStr::new("/no/such"), dir.path());
        assert_eq!(gone, Problem::new(127, "program /no/such does not exist".into()));
        let plain = not_found(dir.path().as_os_str(), Path::new("/"));
        assert_eq!(
            (plain.code, plain.text.ends_with("is not an executable file")),
            (126, true),
            "{plain:?}"
        );
    }

    #[test]
    fn en_06_missing_directories_are_told_apart() {
        let error = env::enter_dir(Path::new("/no/such")).expect_err("there is none");
        let gone = cannot_enter(Path::new("/no/such"), &error);
        assert_eq!(gone, Problem::new(126, "directory /no/such does not exist".into()));
        let file = std::path::Path::new("/dev/null");
        let error = env::enter_dir(file).expect_err("it is none");
        assert_eq!(cannot_enter(file, &error).text, "/dev/null is not a directory");
    }

    #[test]
    fn sec_06_the_systems_no_is_given_without_the_arguments() {
        let program = Program {
            path: PathBuf::from("/bin/x"),
            argv: vec!["x".into(), "s3cret".into()],
            cwd: PathBuf::from("/"),
            env: Vec::new(),
        };
        let source = std::io::Error::other("argument list too long");
        let told = refused(&program, &ExecError::Io { argv: program.argv.clone(), source });
        assert_eq!(
            told,
            Problem::new(126, "program /bin/x cannot be run: argument list too long".into())
        );
        let told = refused(&program, &ExecError::NotFound { program: "/bin/x".into() });
        assert_eq!(told.code, 127);
    }
}
