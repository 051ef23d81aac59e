//! Shows a team at work: a frame at the bottom of a terminal, plain lines elsewhere, or nothing.
//! Writes to stderr only.

use std::io::{self, Write};

use super::live::Live;
use super::paint::Paint;
use super::plain::progress_line;
use super::progress::{Frame, Progress};
use super::redraw;
use crate::model::event::{Event, EventKind};
use crate::model::id::MemberName;
use crate::model::text;
use crate::model::time::Timestamp;

/// How much of it a notification shows.
const LONGEST_NOTICE: usize = 120;

/// How a team is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A frame at the bottom of the terminal.
    Live,
    /// A line for each thing that happens; with `all`, for everything.
    Plain {
        all: bool,
    },
    Silent,
}

/// How a terminal is made to show a notification. It gets one form: those that know both would show two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// `OSC 9 ; TEXT`: iTerm2 and those that follow it.
    Osc9,
    /// `OSC 777 ; notify ; TITLE ; TEXT`: rxvt, foot and what is made with VTE.
    Osc777,
    /// It knows no sequences.
    Bell,
}

impl Notice {
    /// By the variables that terminals set.
    pub(crate) fn of(term: Option<&str>, vte: bool) -> Notice {
        match term {
            None | Some("dumb") => Notice::Bell,
            Some(term) if vte || term.starts_with("rxvt") || term.starts_with("foot") => {
                Notice::Osc777
            }
            Some(_) => Notice::Osc9,
        }
    }

    fn sequence(self, words: &str) -> String {
        let words = text::short(words, LONGEST_NOTICE);
        match self {
            Notice::Osc9 => format!("\x1b]9;{words}\x1b\\\x07"),
            Notice::Osc777 => format!("\x1b]777;notify;phalanx;{words}\x1b\\\x07"),
            Notice::Bell => "\x07".to_owned(),
        }
    }
}

/// A team being watched.
pub(crate) struct View {
    style: Style,
    live: Option<Live>,
    progress: Progress,
    begun: Timestamp,
    /// The last lines of the frame: what can be typed, most important first.
    hints: Vec<String>,
    paint: Paint,
}

/// Returns true if an event of this kind is printed above the frame.
fn is_warning(kind: EventKind) -> bool {
    use EventKind::{
        Escalated, FileQuarantined, MemberFallback, MemberHealth, MemberStartFailed, Reminded,
        RequestFiled, TaskFailed, TaskRewritten, TaskVanished, Warning,
    };
    matches!(
        kind,
        Warning
            | TaskFailed
            | MemberStartFailed
            | MemberFallback
            | MemberHealth
            | RequestFiled
            | Reminded
            | Escalated
            | FileQuarantined
            | TaskVanished
            | TaskRewritten
    )
}

impl View {
    /// `begun`: what the times in plain lines count from.
    pub(crate) fn new(style: Style, begun: Timestamp, paint: Paint) -> View {
        let live = (style == Style::Live).then(Live::new);
        View { style, live, progress: Progress::default(), begun, hints: Vec::new(), paint }
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
        if let Some(line) = wanted
            .then(|| progress_line(event, self.begun, &self.progress, all, self.paint))
            .flatten()
        {
            self.put(&line);
        }
    }

    /// Says in which colour a member is shown.
    pub(crate) fn color(&mut self, name: &MemberName, color: Option<&str>) {
        self.progress.color(name, color);
    }

    /// Replaces what the frame says can be typed.
    pub(crate) fn hint(&mut self, hints: Vec<String>) {
        self.hints = hints;
    }

    /// Draws the frame as it is now, unless nothing is known of the team yet.
    pub(crate) fn draw(&mut self, now: Timestamp) {
        let Some(live) = &mut self.live else { return };
        if self.progress.is_empty() {
            return;
        }
        let (columns, rows) = redraw::size();
        let frame = self.progress.frame(&Frame {
            now,
            begun: self.begun,
            columns: columns.into(),
            // The last row is the cursor's.
            rows: usize::from(rows).saturating_sub(1),
            hints: &self.hints,
            paint: self.paint,
        });
        live.draw(frame.join("\n"));
    }

    /// Keeps typed keys off the screen while there is a frame.
    pub(crate) fn take_terminal(&mut self) {
        if let Some(live) = &mut self.live {
            live.take_terminal();
        }
    }

    /// Gives the terminal back before the process is stopped.
    pub(crate) fn suspend(&mut self) {
        if let Some(live) = &mut self.live {
            live.suspend();
        }
    }

    /// Takes the terminal again after the process was stopped.
    pub(crate) fn resume(&mut self) {
        if let Some(live) = &mut self.live {
            live.resume();
        }
    }

    /// Says something beside the events.
    pub(crate) fn say(&mut self, words: &str) {
        if self.style != Style::Silent {
            self.put(words);
        }
    }

    /// Calls whoever sits at the terminal, wherever it is out of sight: by the notification that it knows, and by the bell.
    /// Only where stderr is a terminal.
    pub(crate) fn call(&self, words: &str, notice: Notice) {
        if self.style != Style::Silent {
            // Nobody may be there to hear it.
            let _ = io::stderr().lock().write_all(notice.sequence(words).as_bytes());
        }
    }

    /// Prints lines beside the frame from any thread; none where there is no frame.
    pub(crate) fn speaker(&self) -> Option<impl Fn(&str) + Send + Sync + 'static> {
        self.live.as_ref().map(Live::speaker)
    }

    /// Returns true if there is a frame to be drawn again as time passes.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Removes the frame and gives the terminal back.
    pub(crate) fn end(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.clear();
        }
    }

    fn put(&mut self, line: &str) {
        match &mut self.live {
            Some(live) => live.say(line),
            // Nobody may be there to read it; the team works on all the same.
            None => drop(writeln!(io::stderr().lock(), "{line}")),
        }
    }
}

impl Drop for View {
    /// Gives the terminal back on every way out. After a panic the frame stays, because the message
    /// stands below it.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-10: what a member writes ends no sequence and begins none, and does not fill the screen.
    #[test]
    fn sec_10_a_notification_is_one_sequence_and_a_bell() {
        let hostile =
            format!("rm\u{1b}\\\u{7}\u{9c}\u{1b}]52;c;AAAA\u{7}\r\n{}", "x".repeat(10_000));
        for (notice, begins) in
            [(Notice::Osc9, "\u{1b}]9;rm"), (Notice::Osc777, "\u{1b}]777;notify;phalanx;rm")]
        {
            let sent = notice.sequence(&hostile);
            let inner = sent
                .strip_prefix("\u{1b}]")
                .and_then(|s| s.strip_suffix("\u{1b}\\\u{7}"))
                .expect("one sequence");
            assert!(sent.starts_with(begins) && !inner.contains(char::is_control), "{sent:?}");
            assert!(sent.chars().count() < 160, "{sent:?}");
        }
        assert_eq!(Notice::Bell.sequence(&hostile), "\u{7}");
    }

    #[test]
    fn a_terminal_gets_the_notification_that_it_knows() {
        let table = [
            (Some("xterm-256color"), false, Notice::Osc9),
            (Some("xterm-256color"), true, Notice::Osc777),
            (Some("rxvt-unicode-256color"), false, Notice::Osc777),
            (Some("foot"), false, Notice::Osc777),
            (Some("dumb"), true, Notice::Bell),
            (None, false, Notice::Bell),
        ];
        for (term, vte, notice) in table {
            assert_eq!(Notice::of(term, vte), notice, "{term:?} {vte}");
        }
    }
}
