//! Runs a program on a pty of our own and reports what its profile detects on the screen over time.
//! Sends no input except replies to terminal queries.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::{Context, OpsError};
use model::members::environ::{self, EnvRules};
use model::text;
use profile::{self, Placeholder, Profile, Screen, ScreenFinding, Values, judge};
use sys::child::{self, Program, PtyMaster};
use sys::clock::Deadline;
use sys::env::find_program;
use sys::{fs, proc, rand};

/// Silence after which a screen is judged: before that it may be half drawn.
const SETTLE_TIME: Duration = Duration::from_millis(40);
/// Interval of judgements while a program prints without a pause.
const JUDGE_INTERVAL: Duration = Duration::from_millis(400);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// The parameters of a trial run.
#[derive(Debug, Clone)]
pub struct Trial {
    pub profile: Profile,
    /// The command line for a profile that requires one; otherwise empty.
    pub command: Vec<String>,
    /// Time limit of the run.
    pub length: Duration,
    /// Rows and columns.
    pub size: (u16, u16),
}

/// A change of the detected state.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// Milliseconds since the start.
    pub at_ms: u64,
    pub finding: ScreenFinding,
}

/// Starts the program in an empty directory, reports each change of the detected state, and ends
/// the program. Returns true if the program exited by itself.
///
/// # Errors
///
/// The program cannot be found or started, its terminal cannot be read, or the scratch directory
/// cannot be created or removed.
pub fn watch(
    ctx: &Context,
    trial: &Trial,
    seen: &mut dyn FnMut(Sighting),
) -> Result<bool, OpsError> {
    let place = ctx.caller.var("TMPDIR").map_or(PathBuf::from("/tmp"), PathBuf::from);
    let scratch = place.join(format!("phalanx-trial-{}", rand::uuid()));
    fs::private_dir(&scratch)?;
    let ended = run(ctx, trial, &scratch, seen);
    fs::remove_dir_all(&scratch)?;
    ended
}

fn run(
    ctx: &Context,
    trial: &Trial,
    scratch: &Path,
    seen: &mut dyn FnMut(Sighting),
) -> Result<bool, OpsError> {
    let failed = |problem: String| OpsError::Failed { problem };
    let program = program(ctx, trial, scratch)?;
    let (process, master) = child::spawn_on_pty(&program, trial.size.0, trial.size.1)
        .map_err(|e| failed(format!("{} cannot be started: {e}", program.path.display())))?;
    let output = master.reader().map(listen);
    let ended = output.map(|output| follow(trial, &master, &output, seen));
    proc::end_tree(process, true, GRACE);
    child::wait(process);
    ended.map_err(|e| failed(format!("its terminal cannot be read: {e}")))
}

fn program(ctx: &Context, trial: &Trial, scratch: &Path) -> Result<Program, OpsError> {
    let mut values =
        Values::from([(Placeholder::Phalanx, vec![ctx.caller.exe.to_string_lossy().into_owned()])]);
    if !trial.command.is_empty() {
        values.insert(Placeholder::Command, trial.command.clone());
    }
    let argv = profile::fill(&trial.profile.launch.argv, &values);
    let Some(_) = argv.first() else {
        let problem = format!("profile `{}` needs a command line", trial.profile.name);
        return Err(OpsError::Usage { problem, hint: Some("put it after `--`".to_owned()) });
    };
    on_own_terminal(ctx, &argv, scratch)
}

/// Returns the program of a command line, to be started in `dir` on a terminal of ours.
///
/// # Errors
/// It cannot be found.
pub(super) fn on_own_terminal(
    ctx: &Context,
    argv: &[String],
    dir: &Path,
) -> Result<Program, OpsError> {
    let name = argv.first().map_or("", String::as_str);
    let mut env = environ::compose(&ctx.caller.env, &EnvRules::default(), &[], &[]);
    env.push(("TERM".into(), "xterm-256color".into()));
    env.push(("PWD".into(), dir.into()));
    let path = find_program(OsStr::new(name), ctx.caller.var("PATH"), dir).ok_or_else(|| {
        OpsError::Usage {
            problem: format!("cannot find the program {}", text::line(name)),
            hint: Some("install it, or set PATH".to_owned()),
        }
    })?;
    Ok(Program { path, argv: argv.iter().map(OsString::from).collect(), cwd: dir.to_owned(), env })
}

fn listen(mut reader: Box<dyn Read + Send>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::sync_channel(64);
    // Ends with the terminal, or when the receiver has been dropped.
    thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = reader.read(&mut buffer) {
            if sender.send(buffer[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Feeds the screen until the time limit. Returns true if the program closed its terminal before.
fn follow(
    trial: &Trial,
    master: &PtyMaster,
    output: &Receiver<Vec<u8>>,
    seen: &mut dyn FnMut(Sighting),
) -> bool {
    let whole = Deadline::after(trial.length);
    let mut screen = Screen::new(trial.size.0, trial.size.1);
    let (mut quiet, mut judged) = (Deadline::after(trial.length), Deadline::after(trial.length));
    let mut last = None;
    while !whole.expired() {
        let got = output.recv_timeout(SETTLE_TIME.min(whole.remaining()));
        if let Ok(bytes) = &got {
            let answers = screen.feed_and_answer(bytes);
            quiet = Deadline::after(trial.length);
            // Best effort: a program that does not read its input does not wait for the replies.
            let _ = master.write_all(&answers);
        }
        let due = got.is_err() || judged.elapsed() >= JUDGE_INTERVAL;
        if due {
            judged = Deadline::after(trial.length);
            let finding = judge(&trial.profile, &screen.look(ms(quiet.elapsed())));
            if last.as_ref() != Some(&finding) {
                seen(Sighting { at_ms: ms(whole.elapsed()), finding: finding.clone() });
                last = Some(finding);
            }
        }
        if got == Err(RecvTimeoutError::Disconnected) {
            return true;
        }
    }
    false
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
