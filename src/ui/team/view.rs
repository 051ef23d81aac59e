//! Shows a team at work on stderr: as a frame at the bottom of a terminal, as plain lines, or not
//! at all.

use std::io::{self, Write};

use crate::paint::Paint;
use crate::redraw;
use crate::team::live::LiveFrame;
use crate::team::progress::{ProgressFrame, TeamProgress};
use crate::views::event_words::is_waiting;
use crate::views::events::progress_line;
use model::id::MemberName;
use model::team::event::{Event, EventKind};
use model::text;
use model::time::Timestamp;
use ops::members::status::Status;

/// Maximum length of a notification's text, in characters.
const LONGEST_NOTICE: usize = 120;

/// The form in which a team is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A frame at the bottom of the terminal.
    Live,
    /// A line for each noteworthy event; with `all`, for every event.
    Plain {
        all: bool,
    },
    Silent,
}

/// The escape sequence for a desktop notification. Only one is sent, because terminals that support
/// both would show two notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesktopNotification {
    /// `OSC 9 ; TEXT`: iTerm2 and compatible terminals.
    Osc9,
    /// `OSC 777 ; notify ; TITLE ; TEXT`: rxvt, foot and terminals based on VTE.
    Osc777,
    /// The terminal supports neither.
    Bell,
}

impl DesktopNotification {
    /// Chooses the sequence by the variables that terminals set: `TERM`, and whether `VTE_VERSION`
    /// exists.
    pub fn for_terminal(term: Option<&str>, vte: bool) -> DesktopNotification {
        match term {
            None | Some("dumb") => DesktopNotification::Bell,
            Some(term) if vte || term.starts_with("rxvt") || term.starts_with("foot") => {
                DesktopNotification::Osc777
            }
            Some(_) => DesktopNotification::Osc9,
        }
    }

    /// Returns the bytes to send for a notification with this text.
    pub fn sequence(self, words: &str) -> String {
        let words = text::short(words, LONGEST_NOTICE);
        match self {
            DesktopNotification::Osc9 => format!("\x1b]9;{words}\x1b\\\x07"),
            DesktopNotification::Osc777 => format!("\x1b]777;notify;phalanx;{words}\x1b\\\x07"),
            DesktopNotification::Bell => "\x07".to_owned(),
        }
    }
}

pub struct View {
    style: Style,
    live: Option<LiveFrame>,
    progress: TeamProgress,
    started_at: Timestamp,
    /// The last lines of the frame: useful commands, most important first.
    hints: Vec<String>,
    paint: Paint,
}

/// Returns whether events of this kind are printed above the frame.
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
    /// Creates a view; times in plain lines count from `started_at`.
    pub fn new(style: Style, started_at: Timestamp, paint: Paint) -> View {
        let live = (style == Style::Live).then(LiveFrame::new);
        View {
            style,
            live,
            progress: TeamProgress::default(),
            started_at,
            hints: Vec::new(),
            paint,
        }
    }

    /// Adds events from before the view was created, without showing them.
    pub fn add_past(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.progress.apply(event));
    }

    /// Takes over the activities of the members.
    pub fn set_states(&mut self, status: &Status) {
        self.progress.set_states(status);
    }

    pub fn show_event(&mut self, event: &Event) {
        self.progress.apply(event);
        let all = match self.style {
            Style::Live if is_warning(event.event) || is_waiting(event) => false,
            Style::Plain { all } => all,
            Style::Live | Style::Silent => return,
        };
        let line = progress_line(event, self.started_at, &self.progress, all, self.paint);
        if let Some(line) = line {
            self.write_line(&line);
        }
    }

    pub fn set_color(&mut self, name: &MemberName, color: Option<&str>) {
        self.progress.set_color(name, color);
    }

    pub fn set_hints(&mut self, hints: Vec<String>) {
        self.hints = hints;
    }

    /// Draws the current frame, unless nothing is known about the team yet.
    pub fn draw(&mut self, now: Timestamp) {
        let Some(live) = &mut self.live else { return };
        if self.progress.is_empty() {
            return;
        }
        let (columns, rows) = redraw::size();
        let frame = self.progress.frame(&ProgressFrame {
            now,
            started_at: self.started_at,
            columns: columns.into(),
            // The last row is left to the cursor.
            rows: usize::from(rows).saturating_sub(1),
            hints: &self.hints,
            paint: self.paint,
        });
        live.draw(frame.join("\n"));
    }

    /// Keeps typed keys off the screen while a frame is shown.
    pub fn take_terminal(&mut self) {
        if let Some(live) = &mut self.live {
            live.take_terminal();
        }
    }

    /// Restores the terminal before the process is suspended.
    pub fn suspend(&mut self) {
        if let Some(live) = &mut self.live {
            live.suspend();
        }
    }

    /// Takes the terminal again after a suspension.
    pub fn resume(&mut self) {
        if let Some(live) = &mut self.live {
            live.resume();
        }
    }

    /// Prints a line that is not an event.
    pub fn print_line(&mut self, words: &str) {
        if self.style != Style::Silent {
            self.write_line(words);
        }
    }

    /// Alerts the person at the terminal with a notification and the bell, even if the window is
    /// hidden. Callers check that stderr is a terminal.
    pub fn notify(&self, words: &str, notification: DesktopNotification) {
        if self.style != Style::Silent {
            // A lost terminal must not stop the team.
            let _ = io::stderr().lock().write_all(notification.sequence(words).as_bytes());
        }
    }

    /// Returns a function that prints lines above the frame from any thread; `None` without a
    /// frame.
    pub fn line_printer(&self) -> Option<impl Fn(&str) + Send + Sync + 'static> {
        self.live.as_ref().map(LiveFrame::line_printer)
    }

    /// Returns whether there is a frame, which must be redrawn as time passes.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Removes the frame and restores the terminal.
    pub fn close(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.clear();
        }
    }

    fn write_line(&mut self, line: &str) {
        match &mut self.live {
            Some(live) => live.print_above(line),
            // A lost terminal must not stop the team.
            // At once: stderr has no buffer.
            None => drop(io::stderr().lock().write_all(format!("{line}\n").as_bytes())),
        }
    }
}

impl Drop for View {
    /// Restores the terminal on every exit path. After a panic the frame stays, because the message
    /// is below it.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-10: a member's text neither ends nor starts a sequence, and does not fill the screen.
    #[test]
    fn sec_10_notification_is_one_sequence_and_a_bell() {
        let hostile =
            format!("rm\u{1b}\\\u{7}\u{9c}\u{1b}]52;c;AAAA\u{7}\r\n{}", "x".repeat(10_000));
        for (notification, begins) in [
            (DesktopNotification::Osc9, "\u{1b}]9;rm"),
            (DesktopNotification::Osc777, "\u{1b}]777;notify;phalanx;rm"),
        ] {
            let sent = notification.sequence(&hostile);
            let inner = sent
                .strip_prefix("\u{1b}]")
                .and_then(|s| s.strip_suffix("\u{1b}\\\u{7}"))
                .expect("one sequence");
            assert!(sent.starts_with(begins) && !inner.contains(char::is_control), "{sent:?}");
            assert!(sent.chars().count() < 160, "{sent:?}");
        }
        assert_eq!(DesktopNotification::Bell.sequence(&hostile), "\u{7}");
    }

    #[test]
    fn notification_sequence_is_chosen_by_terminal() {
        let table = [
            (Some("xterm-256color"), false, DesktopNotification::Osc9),
            (Some("xterm-256color"), true, DesktopNotification::Osc777),
            (Some("rxvt-unicode-256color"), false, DesktopNotification::Osc777),
            (Some("foot"), false, DesktopNotification::Osc777),
            (Some("dumb"), true, DesktopNotification::Bell),
            (None, false, DesktopNotification::Bell),
        ];
        for (term, vte, notification) in table {
            assert_eq!(
                DesktopNotification::for_terminal(term, vte),
                notification,
                "{term:?} {vte}"
            );
        }
    }
}
