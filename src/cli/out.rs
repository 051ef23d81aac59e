//! Output: stdout is for data, stderr for messages.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

use crate::fail::{ErrorMessage, Exit, Failure, VerbResult};
use model::text;
use ops::Kind;
use sys::child::own_size;
use sys::env;
use ui::Paint;

/// Bytes of a document that are written at once.
const DOCUMENT_BUFFER: usize = 1 << 16;

/// Page width in columns if stdout is not a terminal: nothing is cut.
const UNLIMITED: usize = 100_000;

/// The policy for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// The output options of this run.
#[derive(Debug, Clone)]
pub(super) struct Out {
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    /// The policy that `paint` follows.
    pub(super) color: Color,
    pub(super) paint: Paint,
    /// Colours on stderr.
    pub(super) stderr_paint: Paint,
    /// Receives the output instead of stdout and stderr.
    capture: Option<Arc<Mutex<CapturedOutput>>>,
}

/// The output of a verb that another program calls, instead of a person.
#[derive(Debug, Default)]
pub(super) struct CapturedOutput {
    pub(super) stdout: Vec<u8>,
    /// The messages, without the error with which the verb ended.
    pub(super) messages: Vec<String>,
}

impl Out {
    pub(super) fn new(json: bool, quiet: bool, verbose: bool, color: Color) -> Out {
        let is_plain = env::var("NO_COLOR").is_some()
            || env::var("TERM").as_deref() == Some(OsStr::new("dumb"));
        let on = |tty: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => tty && !is_plain,
        };
        let paint = Paint { on: on(env::stdout_is_tty()) };
        let stderr_paint = Paint { on: on(env::stderr_is_tty()) };
        Out { json, quiet, verbose, color, paint, stderr_paint, capture: None }
    }

    /// Returns an output that prints JSON, and the place where it is collected.
    pub(super) fn captured() -> (Out, Arc<Mutex<CapturedOutput>>) {
        let captured = Arc::new(Mutex::new(CapturedOutput::default()));
        let out = Out::new(true, false, false, Color::Never);
        (Out { capture: Some(Arc::clone(&captured)), ..out }, captured)
    }

    /// Returns the line width of stdout in columns: that of its terminal, else `COLUMNS`, else no
    /// limit.
    pub(super) fn width(&self) -> usize {
        let given = || env::var("COLUMNS")?.to_str()?.parse().ok().filter(|columns| *columns > 0);
        let terminal = own_size().map(|(_, columns)| usize::from(columns));
        terminal.or_else(given).unwrap_or(UNLIMITED)
    }

    /// Rejects `--json` beside a `--format` that is another form.
    pub(super) fn check_format(&self, is_other: bool) -> Result<(), Failure> {
        if !self.json || !is_other {
            return Ok(());
        }
        Err(Failure::usage("`--json` and `--format` name different forms", "leave one of them out"))
    }

    /// Writes text to stdout and flushes it; adds a missing final line break.
    pub(super) fn print_text(&self, text: &str) -> Result<(), Failure> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.print_bytes(&[text.as_bytes(), end.as_bytes()].concat())
    }

    /// Writes bytes to stdout as they are.
    pub(super) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(capture) = &self.capture {
            let mut captured = capture.lock().unwrap_or_else(PoisonError::into_inner);
            captured.stdout.extend_from_slice(bytes);
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// Writes one JSON document to stdout, on one line. A terminal may show it, so control
    /// characters are escaped.
    pub(super) fn print_document(&self, item: &impl Serialize) -> Result<(), Failure> {
        if let Some(capture) = &self.capture {
            let mut captured = capture.lock().unwrap_or_else(PoisonError::into_inner);
            return write_document(&mut captured.stdout, item);
        }
        // Written while it is made: the whole text of a large board would be in memory otherwise.
        let mut stdout = BufWriter::with_capacity(DOCUMENT_BUFFER, io::stdout().lock());
        write_document(&mut stdout, item)?;
        stdout.flush()?;
        Ok(())
    }

    /// Writes the document with `--json`, else the text. Most verbs end with it, or with one of
    /// those below.
    pub(super) fn print(
        &self,
        item: &impl Serialize,
        words: impl FnOnce() -> String,
    ) -> VerbResult {
        if self.json {
            self.print_document(item)?
        } else {
            self.print_text(&words())?
        }
        Ok(Exit::DONE)
    }

    /// Writes a list: the document with `--json`, else the table; the message `none` replaces a
    /// table without rows.
    pub(super) fn print_list<T: Serialize>(
        &self,
        items: &[T],
        none: &str,
        table: impl FnOnce() -> String,
    ) -> VerbResult {
        if self.json || !items.is_empty() {
            return self.print(&items, table);
        }
        self.print_message(none);
        Ok(Exit::DONE)
    }

    /// Reports success: the document with `--json`, else the text unless `--quiet` is given.
    pub(super) fn confirm(
        &self,
        item: &impl Serialize,
        words: impl FnOnce() -> String,
    ) -> VerbResult {
        self.print_outcome(item, true, words)
    }

    /// Reports what was created. With `--quiet` the text is only its name or id, for scripts.
    pub(super) fn confirm_new(
        &self,
        item: &impl Serialize,
        id: impl Display,
        words: impl FnOnce() -> String,
    ) -> VerbResult {
        self.print(item, || if self.quiet { id.to_string() } else { words() })
    }

    /// Like [`Out::confirm`], for a verb that can fail in part: failures are shown even with
    /// `--quiet`.
    pub(super) fn print_outcome(
        &self,
        item: &impl Serialize,
        good: bool,
        words: impl FnOnce() -> String,
    ) -> VerbResult {
        if good && self.quiet && !self.json { Ok(Exit::DONE) } else { self.print(item, words) }
    }

    /// Writes a message to stderr, unless `--quiet` is given.
    pub(super) fn print_message(&self, words: &str) {
        if !self.quiet {
            self.write_stderr(words);
        }
    }

    /// Writes a question to stderr; the answer follows it on its line.
    pub(super) fn print_question(&self, words: &str) -> Result<(), Failure> {
        let mut stderr = io::stderr().lock();
        write!(stderr, "{words}")?;
        stderr.flush()?;
        Ok(())
    }

    /// Prints a notice about a wait: a message for a person who looks on.
    pub(super) fn print_notice(&self, words: &str) {
        if self.capture.is_none() {
            self.print_message(words);
        }
    }

    /// Reports a failure on stderr, and with `--json` on stdout too.
    pub(super) fn report_failure(&self, failure: &Failure) {
        if let Failure::Message(error) = failure {
            self.report_error(error);
            if self.json {
                // The reader may be gone; the exit code still reports the failure.
                let _ = self.print_document(&error.document());
            }
        }
    }

    /// Reports a failure on stderr only, when stdout already has its document.
    pub(super) fn report_error(&self, error: &ErrorMessage) {
        self.write_stderr(&error.text());
    }

    /// Writes a line to stderr and ignores failures to do so.
    fn write_stderr(&self, words: &str) {
        match &self.capture {
            Some(capture) => {
                let mut captured = capture.lock().unwrap_or_else(PoisonError::into_inner);
                captured.messages.push(words.to_owned());
            }
            // At once: stderr has no buffer.
            None => drop(io::stderr().lock().write_all(format!("{words}\n").as_bytes())),
        }
    }
}

/// Writes a document and a line break.
fn write_document(out: &mut impl Write, item: &impl Serialize) -> Result<(), Failure> {
    item.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, EscapedJson)).map_err(
        |e| match e.io_error_kind() {
            Some(_) => Failure::from(io::Error::from(e)),
            None => Failure::new(Kind::Internal, format!("cannot be written as JSON: {e}"), None),
        },
    )?;
    out.write_all(b"\n")?;
    Ok(())
}

/// A list whose items are made while it is written, once.
pub(super) struct InTurn<I>(pub(super) RefCell<I>);

impl<I: Iterator<Item: Serialize>> Serialize for InTurn<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}

/// Compact JSON in which the control characters that a terminal acts on are escaped.
struct EscapedJson;

impl Formatter for EscapedJson {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        out.write_all(text::json(fragment).as_bytes())
    }
}
