//! `profile learn`: runs a program for a person, who says at each stable screen what it does, and
//! derives a profile from the answers.
//!
//! The program is drawn from our model of its terminal, as tmux does. The last two rows of the
//! terminal are ours, so that the program and the question never overwrite each other.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::fail::{Exit, Failure, VerbResult};
use crate::members::recordings::table_of;
use crate::setup::Setup;
use crate::views::relay::RelayTerminal;
use model::text;
use ops::Kind;
use ops::members::profiles::{self, LearnedProgram, RecordedScreen, RecordedSession, SavedProfile};
use profile::{LabelledScreen, Screen, ScreenLabel, steady_text};
use sys::child::own_size;
use sys::clock::Deadline;
use sys::env;
use sys::signal::WINCH;
use sys::tty::TerminalInput;

/// Learn the profile of a program from its screens.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx profile learn mine -- mine --fast\n  \
    phalanx profile test mine --screen ~/.claude/phalanx/profiles/mine\n\n\
    The program runs on this terminal. At each stable screen the last row asks what the program does now: press Ctrl-] \
    and i (idle), w (working), a (asks), e (ended) or s (skip). Needed are an idle screen with nothing typed and a \
    working one; better are two idle ones, before and after a turn, and each kind of question. Ctrl-] q finishes, and so \
    does the end of the program, whose last keys are then learned too.\n\n\
    The profile is written to the folder of your profiles, the recorded screens to a folder beside it. The rules are \
    tested on them: if a screen is not recognised, the profile stays a draft in that folder, and the exit code is 1.")]
pub(crate) struct LearnArgs {
    /// Name of the new profile.
    pub(crate) name: String,
    /// Replace a profile of this name.
    #[arg(long)]
    pub(crate) force: bool,
    /// Command line of the program.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// Rows of the terminal that show the question.
const OWN_ROWS: u16 = 2;
/// Smallest terminal: rows, columns.
const SMALLEST: (u16, u16) = (10, 60);
/// Time without a change after which a screen is stable.
const STABLE: Duration = Duration::from_secs(2);
/// Time without output after which a screen is drawn: it may be half drawn before.
const DRAW_DELAY: Duration = Duration::from_millis(15);
/// Maximum time until it is drawn.
const REDRAW: Duration = Duration::from_millis(60);
/// Interval of looks at a screen without output.
const TICK: Duration = Duration::from_millis(200);
/// Limit for writing to a terminal that accepts no output.
const WRITE_LIMIT: Duration = Duration::from_secs(5);
/// Ctrl-], the key before an answer.
const ASK: u8 = 0x1d;

pub(crate) fn learn(setup: &Setup, args: &LearnArgs) -> VerbResult {
    profiles::check_unused(&setup.ctx, &args.name, args.force)?;
    if !env::stdin_is_tty() || !env::stdout_is_tty() {
        return Err(Failure::usage(
            "profile learn needs a terminal",
            "write a profile by hand: begin with `phalanx profile show codex`",
        ));
    }
    let session = record(setup, args)?;
    for label in [ScreenLabel::Idle, ScreenLabel::Working] {
        if !session.screens.iter().any(|one| one.screen.label == label) {
            let problem = format!("no screen was recorded as {}", label.as_str());
            let hint = "learn it again: at the first prompt press Ctrl-] i, then give it work and press Ctrl-] w";
            return Err(Failure::new(Kind::Failed, problem, Some(hint.to_owned())));
        }
    }
    let saved = profiles::save(&setup.ctx, &args.name, &args.command, &session)?;
    report(setup, &args.name, &saved)
}

fn report(setup: &Setup, name: &str, saved: &SavedProfile) -> VerbResult {
    let gaps: Vec<String> = saved.gaps.iter().map(ToString::to_string).collect();
    let document = json!({
        "profile": name, "file": saved.file, "recordings": saved.recordings, "complete": saved.is_complete,
        "gaps": gaps, "screens": saved.tested,
    });
    setup.out.print(&document, || table_of(setup, &saved.tested))?;
    for gap in &gaps {
        setup.out.print_message(&text::line(gap));
    }
    let (file, recordings) = (saved.file.display(), saved.recordings.display());
    if saved.is_complete {
        setup.out.print_message(&format!(
            "wrote {file}; read its comments, then try it: phalanx spawn NAME --profile {name}"
        ));
        return Ok(Exit::DONE);
    }
    let hint = format!(
        "edit it and move it to {recordings}.toml, then `phalanx profile test {name} --screen {recordings}`; \
         or learn it again with --force"
    );
    let problem = format!("the profile is not complete, and stays a draft: {file}");
    Err(Failure::new(Kind::Failed, problem, Some(hint)))
}

/// Runs the program until it ends or the person finishes.
fn record(setup: &Setup, args: &LearnArgs) -> Result<RecordedSession, Failure> {
    let size = terminal_size()?;
    let terminal = RelayTerminal::enter(&format!("phalanx learns {}", args.name))?;
    let program = LearnedProgram::start(&setup.ctx, &args.command, program_size(size))?;
    let mut session = LearningSession::new(&args.name, program, size);
    session.run(&terminal)?;
    let last = &session.typed[session.last_typed..];
    let quit = if session.ended { profiles::quit_keys(last) } else { Vec::new() };
    let typed = String::from_utf8_lossy(&session.typed).into_owned();
    Ok(RecordedSession { screens: session.screens, typed, quit })
}

/// Returns true if text was typed that no key has submitted yet. A lone letter or digit answers a
/// question.
fn is_begun(typed: &[u8]) -> bool {
    let line = typed.rsplit(u8::is_ascii_control).next().unwrap_or_default();
    match line {
        [] => false,
        [key] => !key.is_ascii_alphanumeric(),
        [_, _, ..] => true,
    }
}

fn terminal_size() -> Result<(u16, u16), Failure> {
    let size = own_size().unwrap_or(SMALLEST);
    if size.0 < SMALLEST.0 || size.1 < SMALLEST.1 {
        let problem = format!("this terminal has {} rows and {} columns", size.0, size.1);
        let hint = format!("profile learn needs {} and {}: enlarge it", SMALLEST.0, SMALLEST.1);
        return Err(Failure::usage(problem, &hint));
    }
    Ok(size)
}

fn program_size((rows, cols): (u16, u16)) -> (u16, u16) {
    (rows.saturating_sub(OWN_ROWS).max(2), cols.max(2))
}

/// The program on its terminal, and the answers so far.
struct LearningSession<'l> {
    name: &'l str,
    program: LearnedProgram,
    screen: Screen,
    /// Of our terminal.
    size: (u16, u16),
    /// Since the last output that is not drawn yet; `None` if all is drawn.
    undrawn: Option<Deadline>,
    /// The last drawn screen of the program, and the two rows below; `None`: draw all anew.
    drawn: Option<(vt100::Screen, [String; 2])>,
    /// The text of the screen without numbers and signs, and the time since it changed.
    steady: (String, Deadline),
    /// The texts of screens that were answered or skipped.
    answered: Vec<String>,
    /// The key before an answer was pressed. What the person sees stays as it is until the answer.
    asked: bool,
    /// The last answer.
    notice: String,
    screens: Vec<RecordedScreen>,
    /// All keys for the program.
    typed: Vec<u8>,
    /// The first key after the last answer, or after the last stable screen with no text typed.
    last_typed: usize,
    /// Since the last key.
    untouched: Deadline,
    /// The program has ended by itself.
    ended: bool,
}

impl<'l> LearningSession<'l> {
    fn new(name: &'l str, program: LearnedProgram, size: (u16, u16)) -> LearningSession<'l> {
        let (rows, cols) = program_size(size);
        LearningSession {
            name,
            program,
            screen: Screen::new(rows, cols),
            size,
            undrawn: None,
            drawn: None,
            steady: (String::new(), Deadline::after(STABLE)),
            answered: Vec::new(),
            asked: false,
            notice: String::new(),
            screens: Vec::new(),
            typed: Vec::new(),
            last_typed: 0,
            untouched: Deadline::after(STABLE),
            ended: false,
        }
    }

    fn run(&mut self, terminal: &RelayTerminal) -> Result<(), Failure> {
        // Never readable: output waits in the terminal of the program while the person answers.
        let (never, _writer) = io::pipe()?;
        let mut is_still = true;
        loop {
            self.draw(terminal, is_still)?;
            let limit = if self.undrawn.is_some() { DRAW_DELAY } else { TICK };
            let output = if self.asked { never.as_fd() } else { self.program.as_fd() };
            let input = terminal.raw.next_within(output, limit)?;
            is_still = input.is_none();
            match input {
                None => self.notice_change(),
                Some(TerminalInput::Other) => match self.program.read() {
                    Some(output) => self.print(&output),
                    None => {
                        self.ended = true;
                        return Ok(());
                    }
                },
                Some(TerminalInput::Keys(keys)) => {
                    if self.press(&keys) {
                        return Ok(());
                    }
                }
                Some(TerminalInput::Signal(WINCH)) => self.resize(),
                Some(TerminalInput::Signal(signal)) => {
                    let problem = format!("ended by signal {signal}; nothing was written");
                    return Err(Failure::interrupted(&problem, None));
                }
                Some(TerminalInput::Gone) => {
                    return Err(Failure::interrupted("the terminal is gone", None));
                }
            }
        }
    }

    fn print(&mut self, output: &[u8]) {
        let answers = self.screen.feed_and_answer(output);
        if !answers.is_empty() {
            self.program.type_in(answers);
        }
        self.undrawn.get_or_insert(Deadline::after(REDRAW));
    }

    fn resize(&mut self) {
        self.size = own_size().unwrap_or(self.size);
        let (rows, cols) = program_size(self.size);
        self.screen.resize(rows, cols);
        self.program.resize((rows, cols));
        self.drawn = None;
    }

    /// Notices whether the screen has changed.
    fn notice_change(&mut self) {
        let steady = steady_text(&self.screen.look(0));
        if steady != self.steady.0 {
            self.steady = (steady, Deadline::after(STABLE));
        }
        let is_pending = is_begun(&self.typed[self.last_typed..]);
        if self.steady.1.expired() && self.untouched.expired() && !is_pending {
            self.last_typed = self.typed.len();
        }
    }

    /// Returns true if the screen is stable and not answered yet.
    fn is_question(&self) -> bool {
        self.steady.1.expired()
            && !self.steady.0.trim().is_empty()
            && !self.answered.contains(&self.steady.0)
    }

    /// Passes keys to the program, or takes an answer. Returns true if the person finishes.
    fn press(&mut self, keys: &[u8]) -> bool {
        let mut rest = keys;
        while let Some(first) = rest.first().copied() {
            if !self.asked {
                let ask = rest.iter().position(|key| *key == ASK);
                let (typed, after) = rest.split_at(ask.unwrap_or(rest.len()));
                if !typed.is_empty() {
                    self.typed.extend(typed);
                    self.untouched = Deadline::after(STABLE);
                    self.program.type_in(typed.to_vec());
                }
                self.asked = ask.is_some();
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            self.asked = false;
            // The rest of an escape sequence belongs to its key.
            rest = if first == 0x1b { &[] } else { &rest[1..] };
            match first {
                b'i' => self.answer(ScreenLabel::Idle),
                b'w' => self.answer(ScreenLabel::Working),
                b'a' => self.answer(ScreenLabel::Asks),
                b'e' => self.answer(ScreenLabel::Ended),
                b's' => self.skip(),
                b'u' => self.undo(),
                b'q' => return true,
                ASK => self.program.type_in(vec![ASK]),
                _ => (),
            }
        }
        false
    }

    fn answer(&mut self, label: ScreenLabel) {
        let number = self.count(label) + 1;
        let name = format!("{}-{number}", label.as_str());
        self.notice = format!("recorded {name}");
        let look = self.screen.look(0);
        self.answered.push(steady_text(&look));
        self.last_typed = self.typed.len();
        self.screens.push(RecordedScreen {
            screen: LabelledScreen { name, label, look },
            recording: self.screen.recording(),
            size: program_size(self.size),
        });
    }

    fn skip(&mut self) {
        self.answered.push(steady_text(&self.screen.look(0)));
        "skipped".clone_into(&mut self.notice);
    }

    fn undo(&mut self) {
        self.notice = match self.screens.pop() {
            Some(RecordedScreen { screen, .. }) => {
                let steady = steady_text(&screen.look);
                self.answered.retain(|answered| *answered != steady);
                format!("removed {}", screen.name)
            }
            None => "nothing to undo".to_owned(),
        };
    }

    fn count(&self, label: ScreenLabel) -> usize {
        self.screens.iter().filter(|one| one.screen.label == label).count()
    }

    /// Draws what has changed. `is_still`: the program has printed nothing for a moment.
    fn draw(&mut self, terminal: &RelayTerminal, is_still: bool) -> io::Result<()> {
        let own = self.own_rows();
        let now = self.screen.terminal();
        let is_due = is_still || self.asked || self.undrawn.is_some_and(|since| since.expired());
        let is_new = self.drawn.is_none() || (is_due && self.undrawn.is_some());
        let mut output = match &self.drawn {
            None => now.state_formatted(),
            Some((shown, _)) if is_new => now.state_diff(shown),
            Some(_) => Vec::new(),
        };
        // Drawing all of the screen clears the rows below.
        if self.drawn.as_ref().is_none_or(|(_, shown)| *shown != own) {
            output.extend(self.draw_own(&own).bytes());
        }
        if is_new {
            self.undrawn = None;
            self.drawn = Some((now.clone(), own));
        } else if let Some((_, shown)) = &mut self.drawn {
            *shown = own;
        }
        let limit = Deadline::after(WRITE_LIMIT);
        terminal.display.show(&output, &|| limit.expired())
    }

    /// Draws our rows, and puts the cursor back.
    fn draw_own(&self, own: &[String; 2]) -> String {
        let (rows, cols) = (self.size.0, usize::from(self.size.1));
        let mut output = String::from("\x1b7");
        for (at, words) in (1..).zip(own) {
            let row = rows.saturating_sub(OWN_ROWS) + at;
            let words: String = words.chars().take(cols).collect();
            let style = if at == 2 && self.is_question() { "1;7" } else { "7" };
            output += &format!("\x1b[{row};1H\x1b[0;{style}m{words:cols$}\x1b[0m");
        }
        output + "\x1b8"
    }

    fn own_rows(&self) -> [String; 2] {
        if self.asked {
            return [
                " What does it do now?  i idle  w working  a asks  e ended  s skip".to_owned(),
                " u undo the last answer  q finish  Ctrl-] pass it on  other keys: go back"
                    .to_owned(),
            ];
        }
        let count = |label| self.count(label);
        let (idle, working) = (count(ScreenLabel::Idle), count(ScreenLabel::Working));
        let asks = count(ScreenLabel::Asks);
        let next = match (idle, working, asks) {
            (0, _, _) => "Ctrl-] i when it waits, with nothing typed",
            (_, 0, _) => "Give it work, and Ctrl-] w meanwhile",
            (1, _, _) => "Ctrl-] i when it waits again",
            (_, _, 0) => "Ctrl-] a when it asks you something",
            (_, _, _) => "End it by its own keys",
        };
        let help = if self.is_question() {
            " What does it do now?  Ctrl-] then i idle, w working, a asks, e ended, s skip"
                .to_owned()
        } else {
            let notice = if self.notice.is_empty() { "" } else { ". " };
            format!(" {}{notice}Ctrl-] says what it does now, Ctrl-] q finishes", self.notice)
        };
        [format!(" {}: idle {idle}, working {working}, asks {asks}. {next}", self.name), help]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_text_differs_from_an_answered_question() {
        for typed in ["", "go\r", "go\ry", "\x03", "\x1b"] {
            assert!(!is_begun(typed.as_bytes()), "{typed:?}");
        }
        for typed in ["/", "/ex", "go\r/", "go\r/exit"] {
            assert!(is_begun(typed.as_bytes()), "{typed:?}");
        }
    }
}
