//! The only path to tmux: selects the server, escapes separators, limits the size and the time of
//! each call, and keeps tmux's error message. The commands themselves are in `verb`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use crate::BackendError;
use model::members::environ;
use sys::{clock, env, exec};

/// Timeout of one tmux process (PF-05), unless the caller has less time.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Size limit of a call's words, in bytes. tmux refuses more than 16,310 (SP-03).
const CALL_BYTES: usize = 12_000;
/// Limit of a call's words. From 3.7 on, tmux refuses more than 999, with a separator counted as a
/// word (SP-03).
const CALL_WORDS: usize = 900;
/// What tmux says of a server that exited before it answered.
pub(super) const SERVER_EXITED: &str = "server exited unexpectedly";
/// Attempts to start a server at a socket whose last server is exiting, and the pause between them
/// (SP-19).
const START_ATTEMPTS: u32 = 20;
const START_PAUSE: Duration = Duration::from_millis(25);
/// Length limit of a command line quoted in an error, in characters.
const SHOWN_CHARS: usize = 300;

/// Defines the type of one kind of tmux id. It holds a number, so that only an id can become a
/// target: tmux would resolve an empty word, `%`, `%-1` or a name to whatever is active (SD-07).
macro_rules! tmux_id {
    ($name:ident, $sigil:literal, $what:literal) => {
        #[doc = $what]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) struct $name(u32);

        impl $name {
            /// Parses the form that tmux prints, and no other.
            pub(super) fn parse(text: &str) -> Option<Self> {
                number(text.strip_prefix($sigil)?).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $sigil, self.0)
            }
        }
    };
}

tmux_id!(PaneId, '%', "The id of a pane, `%1`: unique while its server lives.");
tmux_id!(WindowId, '@', "The id of a window, `@1`: unique while its server lives.");
tmux_id!(SessionId, '$', "The id of a session, `$1`: unique while its server lives.");

fn number(text: &str) -> Option<u32> {
    let plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// A word of ASCII letters, digits, `_` and `-`. It has no special meaning in tmux's formats,
/// styles, targets and command parser (SEC-02).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlainWord(String);

impl PlainWord {
    /// Returns the word if it is plain and has 1 to 200 characters.
    pub(super) fn parse(text: &str) -> Option<PlainWord> {
        let fits = (1..=200).contains(&text.len()) && text.chars().all(is_plain);
        fits.then(|| PlainWord(text.to_owned()))
    }

    /// Makes a plain word of any text, for people to read: replaces other characters by `_`.
    pub(super) fn from_text(text: &str) -> PlainWord {
        let word: String =
            text.chars().take(200).map(|c| if is_plain(c) { c } else { '_' }).collect();
        PlainWord(if word.is_empty() { "_".to_owned() } else { word })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// A command, or several that the size limit of a call must not separate.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    commands: Vec<Vec<OsString>>,
}

impl Unit {
    /// A unit of one command; tmux receives each word unchanged.
    pub(super) fn new(words: impl IntoIterator<Item = OsString>) -> Unit {
        Unit { commands: vec![words.into_iter().collect()] }
    }

    /// Appends `next`, which tmux runs only if the commands before it succeed.
    pub(super) fn then(mut self, next: Unit) -> Unit {
        self.commands.extend(next.commands);
        self
    }

    /// The unit as one argument of another command; tmux parses it into the same words.
    pub(super) fn text(&self) -> OsString {
        let command = |words: &Vec<OsString>| {
            words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(OsStr::new(" "))
        };
        self.commands.iter().map(command).collect::<Vec<_>>().join(OsStr::new(" ; "))
    }

    /// The unit as arguments of the `tmux` program.
    fn args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        for command in &self.commands {
            if !args.is_empty() {
                args.push(OsString::from(";"));
            }
            args.extend(command.iter().cloned().map(escaped));
        }
        args
    }

    /// Returns true if tmux starts a server for the unit where none runs.
    fn starts_server(&self) -> bool {
        let verb = self.commands.first().and_then(|words| words.first());
        verb.is_some_and(|verb| verb == "new-session" || verb == "start-server")
    }

    fn bytes(&self) -> usize {
        // Each word is followed by a NUL; the separator before the next unit takes two bytes.
        self.args().iter().map(|word| word.len() + 1).sum::<usize>() + 2
    }
}

/// Encloses a word in double quotes for tmux's own parser, where an unescaped `~` would expand to a
/// home directory.
fn quoted(word: &OsStr) -> OsString {
    let mut text = vec![b'"'];
    for byte in word.as_bytes() {
        match byte {
            b'"' | b'\\' | b'$' | b'~' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            control if control.is_ascii_control() => {
                text.extend(format!("\\{control:03o}").into_bytes())
            }
            plain => text.push(*plain),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}

/// Escapes a final `;`, which would end the command and let the next word begin another (SEC-01).
/// tmux removes exactly one backslash before a final `;`.
fn escaped(word: OsString) -> OsString {
    let mut bytes = word.into_vec();
    if bytes.last() == Some(&b';') {
        bytes.insert(bytes.len() - 1, b'\\');
    }
    OsString::from_vec(bytes)
}

#[derive(Debug)]
pub(super) struct ServerReply {
    /// The number of units in this call. The answers of a run cover its units in order.
    pub(super) units: usize,
    pub(super) lines: Vec<String>,
    /// Set if the call failed. The user's hooks run inside our call and may fail on their own;
    /// `lines` show which commands succeeded.
    pub(super) problem: Option<BackendError>,
}

impl ServerReply {
    fn failed(units: usize, problem: BackendError) -> ServerReply {
        ServerReply { units, lines: Vec::new(), problem: Some(problem) }
    }

    /// Returns the lines of a call that has not failed.
    pub(super) fn into_lines(self) -> Result<Vec<String>, BackendError> {
        self.problem.map_or(Ok(self.lines), Err)
    }
}

/// One tmux server, by its socket; without one, the user's default server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) program: &'a Path,
    pub(super) socket: Option<&'a Path>,
}

impl Server<'_> {
    /// Sends the units in as few processes as the size limit allows. Stops after a process that
    /// could not be run or timed out; the remaining units are then not sent.
    pub(super) fn run(&self, units: &[Unit]) -> Vec<ServerReply> {
        let mut answers = Vec::new();
        let mut rest = units;
        while !rest.is_empty() {
            let count = fitting(rest);
            let (now, later) = rest.split_at(count);
            let (answer, may_continue) = self.call(now, Vec::new(), ANSWER_WITHIN);
            answers.push(answer);
            rest = if may_continue { later } else { &[] };
        }
        answers
    }

    pub(super) fn ask(&self, unit: &Unit) -> ServerReply {
        self.ask_with(unit, Vec::new())
    }

    /// Sends one unit, with `stdin` as the input of its commands.
    pub(super) fn ask_with(&self, unit: &Unit, stdin: Vec<u8>) -> ServerReply {
        self.call(std::slice::from_ref(unit), stdin, ANSWER_WITHIN).0
    }

    /// Sends one unit, with a timeout of its own.
    pub(super) fn ask_within(&self, unit: &Unit, within: Duration) -> ServerReply {
        self.call(std::slice::from_ref(unit), Vec::new(), within).0
    }

    /// Sends one unit. If the server does not run, tmux starts it without the user's
    /// configuration.
    pub(super) fn ask_unconfigured(&self, unit: &Unit) -> ServerReply {
        let mut command = self.command(std::slice::from_ref(unit));
        command.args.splice(0..0, ["-f", "/dev/null"].map(OsString::from));
        start(&command, 1).0
    }

    fn call(&self, units: &[Unit], stdin: Vec<u8>, within: Duration) -> (ServerReply, bool) {
        let command = exec::ExecCommand { stdin, ..self.command(units) };
        if units.iter().map(Unit::bytes).sum::<usize>() > CALL_BYTES {
            let stderr = format!("the command is longer than {CALL_BYTES} bytes");
            let refused = BackendError::Refused { command: shown(&command.args), stderr };
            return (ServerReply::failed(units.len(), refused), true);
        }
        if units.first().is_some_and(Unit::starts_server) {
            return start(&command, units.len());
        }
        run(&command, units.len(), within)
    }

    /// Returns the arguments of a `tmux` program that sends one unit, for a process that becomes
    /// this program.
    pub(super) fn args(&self, unit: &Unit) -> Vec<OsString> {
        self.command(std::slice::from_ref(unit)).args
    }

    fn command(&self, units: &[Unit]) -> exec::ExecCommand {
        let mut args = vec![OsString::from("-u")];
        match self.socket {
            Some(path) => args.extend([OsString::from("-S"), path.as_os_str().to_owned()]),
            // Without `-L`, an inherited `TMUX` would select another server; TMUX_TMPDIR still
            // applies.
            None => args.extend(["-L", "default"].map(OsString::from)),
        }
        for (nth, unit) in units.iter().enumerate() {
            if nth > 0 {
                args.push(OsString::from(";"));
            }
            args.extend(unit.args());
        }
        let program = self.program.as_os_str().to_owned();
        exec::ExecCommand {
            program,
            args,
            env: Some(environment()),
            ..exec::ExecCommand::default()
        }
    }
}

/// Runs a tmux process that starts a server. One that connects to a server which is exiting fails,
/// and what it asked for has ended with that server: it is asked of the next one.
fn start(command: &exec::ExecCommand, units: usize) -> (ServerReply, bool) {
    let mut reply = run(command, units, ANSWER_WITHIN);
    for _ in 1..START_ATTEMPTS {
        if !reply.0.problem.as_ref().is_some_and(|problem| problem.says(SERVER_EXITED)) {
            break;
        }
        clock::sleep(START_PAUSE);
        reply = run(command, units, ANSWER_WITHIN);
    }
    reply
}

/// Runs a tmux process with so many units. Returns false with its reply if it could not be run or
/// timed out.
fn run(command: &exec::ExecCommand, units: usize, within: Duration) -> (ServerReply, bool) {
    let output = match exec::run(command, within) {
        Ok(output) => output,
        Err(error) => return (ServerReply::failed(units, error.into()), false),
    };
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let problem = (output.code != Some(0)).then(|| BackendError::Refused {
        command: shown(&command.args),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    });
    (ServerReply { units, lines, problem }, true)
}

/// Our environment without the variables that identify a member: a server started by this call
/// passes what it inherits to every pane that is opened later.
fn environment() -> Vec<(OsString, OsString)> {
    env::vars().into_iter().filter(|(name, _)| !environ::is_identity(name)).collect()
}

/// The number of units that fit into one call: at least one.
fn fitting(units: &[Unit]) -> usize {
    let (mut bytes, mut words) = (0, 0);
    let within = units.iter().take_while(|unit| {
        bytes += unit.bytes();
        words += unit.args().len() + 1;
        bytes <= CALL_BYTES && words <= CALL_WORDS
    });
    within.count().max(1)
}

/// Takes the error and leaves a copy, so that several results can report the same reason.
pub(super) fn share_error(reason: &mut Option<BackendError>) -> Option<BackendError> {
    let next = match reason {
        Some(BackendError::Refused { command, stderr }) => {
            Some(BackendError::Refused { command: command.clone(), stderr: stderr.clone() })
        }
        Some(other) => {
            Some(BackendError::Unavailable { program: "tmux", problem: other.to_string() })
        }
        None => None,
    };
    std::mem::replace(reason, next)
}

/// Joins the words for an error message; not quoted for a shell.
fn shown(words: &[OsString]) -> String {
    let line = words.join(OsStr::from_bytes(b" ")).to_string_lossy().into_owned();
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(words: &[&str]) -> Unit {
        Unit::new(words.iter().map(OsString::from))
    }

    #[test]
    fn sd_07_only_ids_are_targets() {
        for hostile in [
            "",
            " ",
            "%",
            "%-1",
            "% 1",
            "%1 ",
            "%01",
            "%+1",
            "last",
            "%1.2",
            "@1",
            "%4294967296",
            "=x",
        ] {
            assert_eq!(PaneId::parse(hostile), None, "{hostile:?}");
        }
        assert_eq!(PaneId::parse("%0").map(|id| id.to_string()).as_deref(), Some("%0"));
        assert_eq!(WindowId::parse("@17").map(|id| id.to_string()).as_deref(), Some("@17"));
        assert_eq!(SessionId::parse("$3").map(|id| id.to_string()).as_deref(), Some("$3"));
        assert_eq!(SessionId::parse("phalanx"), None);
    }

    #[test]
    fn sec_02_plain_words_mean_nothing_to_tmux() {
        for hostile in
            ["", "#(touch x)", "a b", "a;", "#{pane_id}", "a:b", "a.b", "ü", "a\n", "%1", "=x"]
        {
            assert_eq!(PlainWord::parse(hostile), None, "{hostile:?}");
            assert!(
                PlainWord::parse(PlainWord::from_text(hostile).as_str()).is_some(),
                "{hostile:?}"
            );
        }
        assert_eq!(PlainWord::from_text("Bob #(x)").as_str(), "Bob___x_");
    }

    #[test]
    fn sec_01_only_a_final_semicolon_is_escaped() {
        let table = [
            ("a;", "a\\;"),
            (";", "\\;"),
            ("a\\;", "a\\\\;"),
            (";;", ";\\;"),
            ("a;b", "a;b"),
            ("", ""),
        ];
        for (given, sent) in table {
            assert_eq!(escaped(OsString::from(given)), OsString::from(sent));
        }
    }

    #[test]
    fn sp_03_calls_stay_small_and_units_whole() {
        let long = "x".repeat(5_000);
        let units = vec![unit(&[&long]); 5];
        assert_eq!(fitting(&units), 2);
        let pair = unit(&[&long]).then(unit(&[&long]));
        assert_eq!(fitting(&[pair.clone(), pair]), 1);
        assert_eq!(fitting(&[unit(&[&"x".repeat(20_000)])]), 1);
    }

    #[test]
    fn sp_03_calls_have_fewer_words_than_tmux_accepts() {
        let units = vec![unit(&["kill-pane", "-t", "%1"]); 1_000];
        assert_eq!(fitting(&units), CALL_WORDS / 4);
    }

    #[test]
    fn sp_03_an_oversized_unit_never_reaches_tmux() {
        let server = Server { program: Path::new("/nonexistent/tmux"), socket: None };
        let answer = server.ask(&unit(&[&"x".repeat(20_000)]));
        assert!(matches!(answer.problem, Some(BackendError::Refused { .. })), "{answer:?}");
    }

    #[test]
    fn every_call_names_its_server() {
        let words = |socket| {
            let server = Server { program: Path::new("tmux"), socket };
            shown(&server.command(&[unit(&["a", "b;"]), unit(&["c"])]).args)
        };
        assert_eq!(words(None), "-u -L default a b\\; ; c");
        assert_eq!(words(Some(Path::new("/s"))), "-u -S /s a b\\; ; c");
    }
}
