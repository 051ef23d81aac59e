//! Watching a team work: a picture that changes on a terminal, plain lines elsewhere, or nothing. Writes to stderr
//! only.

use std::io::{self, Write};

use super::live::Live;
use super::paint::Paint;
use super::plain::progress_line;
use super::progress::Progress;
use crate::model::event::{Event, EventKind};
use crate::model::id::MemberName;
use crate::model::text;
use crate::model::time::Timestamp;

/// How a team is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A picture at the bottom of the terminal.
    Live,
    /// A line for each thing that happens; with `all`, for everything.
    Plain {
        all: bool,
    },
    Silent,
}

/// A team being watched.
pub(crate) struct View {
    style: Style,
    live: Option<Live>,
    progress: Progress,
    begun: Timestamp,
    paint: Paint,
}

/// What is said beside the picture.
fn is_warning(kind: EventKind) -> bool {
    use EventKind::{
        FileQuarantined, MemberFallback, MemberHealth, RequestFiled, TaskRewritten, TaskVanished, Warning,
    };
    matches!(
        kind,
        Warning
            | MemberFallback
            | MemberHealth
            | RequestFiled
            | FileQuarantined
            | TaskVanished
            | TaskRewritten
    )
}

impl View {
    /// `begun`: what the times in plain lines count from.
    pub(crate) fn new(style: Style, begun: Timestamp, paint: Paint) -> View {
        let live = (style == Style::Live).then(Live::new);
        View { style, live, progress: Progress::default(), begun, paint }
    }

    /// Takes in what happened before anybody watched.
    pub(crate) fn past(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.progress.take(event));
    }

    /// Shows what happened.
    pub(crate) fn event(&mut self, event: &Event) {
        self.progress.take(event);
        let (all, wanted) = match self.style {
            Style::Live => (false, is_warning(event.event)),
            Style::Plain { all } => (all, true),
            Style::Silent => return,
        };
        if let Some(line) =
            wanted.then(|| progress_line(event, self.begun, &self.progress, all, self.paint)).flatten()
        {
            self.put(&line);
        }
    }

    /// Says in which colour a member is shown.
    pub(crate) fn color(&mut self, name: &MemberName, color: Option<&str>) {
        self.progress.color(name, color);
    }

    /// Draws the picture as it is now, where there is one.
    pub(crate) fn draw(&mut self, now: Timestamp) {
        if let Some(live) = &mut self.live {
            live.draw(&self.progress.lines(now, Live::rows(), self.paint));
        }
    }

    /// Says something beside the events.
    pub(crate) fn say(&self, words: &str) {
        if self.style != Style::Silent {
            self.put(words);
        }
    }

    /// Calls whoever sits at the terminal, wherever it is out of sight: OSC 9, and the bell for those that know no
    /// better. Only where stderr is a terminal.
    pub(crate) fn call(&self, words: &str) {
        if self.style != Style::Silent {
            let _ = write!(io::stderr().lock(), "\x1b]9;{}\x1b\\\x07", text::short(words, 120));
        }
    }

    /// Whether there is a picture to be drawn again as time passes.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Takes the picture away.
    pub(crate) fn end(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.clear();
        }
    }

    fn put(&self, line: &str) {
        match &self.live {
            Some(live) => live.say(line),
            // Nobody may be there to read it; the team works on all the same.
            None => drop(writeln!(io::stderr().lock(), "{line}")),
        }
    }
}

impl Drop for View {
    /// Also when the program ends in a hurry: the terminal is left as it was.
    fn drop(&mut self) {
        self.end();
    }
}
