//! The words of code, found by a process of their own: a grammar can loop, crash or use up memory
//! on what an agent writes, so that process has limits and is killed at a deadline.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use diff::CodeBlob;
use tokio::sync::mpsc::UnboundedSender;

use super::source::ReviewSource;
use crate::fail::{Exit, Failure, VerbResult};
use crate::read::bytes_from;
use model::code::{CodeLanguage, CodeTokens, LARGEST_CODE, colorable};
use model::id::MemberName;
use sys::contain::contain;
use sys::env;
use sys::exec::{self, CancelToken, ExecCommand, ExecLimits};
use sys::limits::limit_this_process;
use ui::review::ReviewNews;

/// CPU time for one text, at which the system ends the process even if phalanx was killed first.
const CPU: Duration = Duration::from_secs(1);
/// Time limit for one text. It is longer than the CPU time, because agents keep machines busy.
const DEADLINE: Duration = Duration::from_secs(3);
/// Address space of the process.
const MEMORY: u64 = 1 << 30;
/// Largest output. One word for each byte of the largest text fits.
const LARGEST_OUTPUT: usize = 32 << 20;
/// Contents whose words are kept.
const KEPT: usize = 64;

/// The internal verb: reads a text from stdin, and writes the words of its lines as JSON.
pub(crate) fn highlight(language: CodeLanguage) -> VerbResult {
    limit_this_process(CPU, MEMORY);
    let bytes = bytes_from(None, LARGEST_CODE as u64 + 1)?;
    let text = colorable(&bytes)
        .ok_or_else(|| Failure::usage("the text is too large or not UTF-8", "give another one"))?;
    let json = serde_json::to_vec(&syntax::tokens(language, text)).map_err(io::Error::from)?;
    io::stdout().lock().write_all(&json)?;
    Ok(Exit::DONE)
}

/// The program that finds words, and its time limit for one text.
pub(super) struct Highlighter {
    pub(super) program: OsString,
    /// Arguments before those of the verb.
    pub(super) args: Vec<OsString>,
    pub(super) deadline: Duration,
}

impl Highlighter {
    /// Returns this program.
    pub(super) fn own() -> Highlighter {
        let program = env::current_exe().map_or_else(|_| "phalanx".into(), OsString::from);
        Highlighter { program, args: Vec::new(), deadline: DEADLINE }
    }

    /// Returns the words of each line of a text. `None` if it gets no colours, or if the program
    /// fails, prints something else or is killed at the deadline.
    pub(super) fn run(
        &self,
        language: CodeLanguage,
        text: Vec<u8>,
        cancel: &CancelToken,
    ) -> Option<CodeTokens> {
        let lines = colorable(&text).filter(|text| !text.is_empty())?.split('\n').count();
        let language: &str = language.into();
        let verb = ["highlight", language].map(OsString::from);
        let command = ExecCommand {
            program: self.program.clone(),
            args: self.args.iter().cloned().chain(verb).collect(),
            stdin: text,
            ..ExecCommand::default()
        };
        let limits = ExecLimits {
            deadline: self.deadline,
            output: Some(LARGEST_OUTPUT),
            cancel: Some(cancel.clone()),
        };
        let output = exec::run_within(&command, &limits).ok()?;
        let stdout = output.stdout.as_slice();
        let tokens: CodeTokens = serde_json::from_slice(stdout).ok()?;
        (output.code == Some(0) && tokens.len() == lines).then_some(tokens)
    }
}

/// A request for the words of contents in the work of a member.
type ColorRequest = (MemberName, Vec<CodeBlob>);

/// The thread that finds words, one content after the other. A drop cancels it.
pub(super) struct ColorThread {
    requests: Sender<ColorRequest>,
    cancel: CancelToken,
}

impl ColorThread {
    pub(super) fn start(
        source: Arc<dyn ReviewSource>,
        news: UnboundedSender<ReviewNews>,
        highlighter: Highlighter,
    ) -> io::Result<ColorThread> {
        let (requests, asked) = channel();
        let cancel = CancelToken::default();
        let stop = cancel.clone();
        thread::Builder::new().name("colors".to_owned()).spawn(move || {
            let find = |member: &MemberName, code: &CodeBlob| {
                let text = source.content(member, &code.id, LARGEST_CODE, &stop).ok()?;
                highlighter.run(code.language, text, &stop).map(Arc::new)
            };
            serve(&asked, &news, &stop, find);
        })?;
        Ok(ColorThread { requests, cancel })
    }

    pub(super) fn ask(&self, member: MemberName, code: Vec<CodeBlob>) {
        let _ = self.requests.send((member, code));
    }
}

impl Drop for ColorThread {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Answers requests, the newest first: that is what is on the screen. Failures are kept too, so
/// that a text at which the program hangs costs its deadline once.
fn serve(
    asked: &Receiver<ColorRequest>,
    news: &UnboundedSender<ReviewNews>,
    stop: &CancelToken,
    find: impl Fn(&MemberName, &CodeBlob) -> Option<Arc<CodeTokens>>,
) {
    let mut waiting: VecDeque<(MemberName, CodeBlob)> = VecDeque::new();
    let mut known: HashMap<CodeBlob, Option<Arc<CodeTokens>>> = HashMap::new();
    loop {
        let next = if waiting.is_empty() { asked.recv().ok() } else { None };
        if waiting.is_empty() && next.is_none() {
            return;
        }
        for (member, code) in next.into_iter().chain(asked.try_iter()) {
            for code in code.into_iter().rev() {
                waiting.push_front((member.clone(), code));
            }
        }
        let Some((member, code)) = waiting.pop_front() else { continue };
        if known.len() >= KEPT && !known.contains_key(&code) {
            known.clear();
        }
        let tokens = known
            .entry(code.clone())
            .or_insert_with(|| contain(|| find(&member, &code)).flatten())
            .clone();
        if stop.is_cancelled() {
            return;
        }
        if let Some(tokens) = tokens
            && news.send(ReviewNews::Code { code, tokens }).is_err()
        {
            return;
        }
    }
}
