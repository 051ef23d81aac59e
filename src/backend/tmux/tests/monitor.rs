//! Screens that are followed live.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::super::Tmux;
use super::harness::{Lab, launch_of, pane, placed, traced, until};
use crate::{Backend, BackendError, Mark, PlacementRequest, ScreenImage, TmuxHome};
use model::members::placement::{Placement, Verdict};
use sys::output_watch::{OutputWatch, Stopper};

/// Time limit of a wait for an image.
const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats each line that is typed.
const ECHO: &str = "stty -echo; echo ready; while read -r line; do echo \"got $line\"; done";

/// A member in a pane, and the thread that follows its screen.
struct Followed {
    launch: PlacementRequest,
    placement: Placement,
    images: Receiver<ScreenImage>,
    stopper: Stopper,
    end: JoinHandle<Result<(), BackendError>>,
}

impl Followed {
    /// Starts a member that runs this script, and follows its screen.
    fn start(tmux: &Tmux, script: &str) -> Followed {
        let launch = launch_of("alice", &["/bin/sh", "-c", script]);
        let placement = placed(tmux, std::slice::from_ref(&launch)).remove(0);
        let (mut watch, stopper) = OutputWatch::new().expect("descriptors are left");
        let (sender, images) = channel();
        let (tmux, place, token) = (tmux.clone(), placement.clone(), launch.token.clone());
        let end = thread::spawn(move || {
            let mark = Mark::new(&place, &token);
            tmux.follow(mark, &mut watch, &mut |image| drop(sender.send(image)))
        });
        Followed { launch, placement, images, stopper, end }
    }

    fn id(&self) -> &str {
        &pane(&self.placement).pane_id
    }

    /// Waits for an image that contains this text.
    fn shows(&self, text: &str) -> ScreenImage {
        loop {
            let image = self.images.recv_timeout(PATIENCE).expect(text);
            if contents(&image).contains(text) {
                return image;
            }
        }
    }

    /// Types a line into [`ECHO`] and waits until its answer is shown.
    fn answers(&self, lab: &Lab, line: &str) {
        lab.tmux(&["send-keys", "-t", self.id(), line, "Enter"]);
        self.shows(&format!("got {line}"));
    }

    /// Waits for the end that an error caused, and returns the verdict.
    fn verdict(self) -> Verdict {
        match self.end.join().expect("no panic") {
            Err(BackendError::NotOurs { verdict, .. }) => verdict,
            other => panic!("another end: {other:?}"),
        }
    }
}

fn drawn(image: &ScreenImage) -> vt100::Parser {
    let mut terminal = vt100::Parser::new(image.rows, image.cols, 0);
    terminal.process(&image.bytes);
    terminal
}

fn contents(image: &ScreenImage) -> String {
    drawn(image).screen().contents()
}

#[test]
fn first_image_has_size_colours_and_cursor() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let script = "printf '\\033[?25l\\033[31mred\\nalso red\\033[m\\n\\033[5;8H'; exec sleep 300";
    let followed = Followed::start(&tmux, script);
    let image = followed.shows("also red");
    let size = lab.field(followed.id(), "#{pane_height} #{pane_width}");
    assert_eq!(format!("{} {}", image.rows, image.cols), size);
    let terminal = drawn(&image);
    let screen = terminal.screen();
    let color = |y, x| screen.cell(y, x).expect("on the screen").fgcolor();
    assert_eq!([color(0, 0), color(1, 7), color(2, 0)], {
        [vt100::Color::Idx(1), vt100::Color::Idx(1), vt100::Color::Default]
    });
    assert_eq!((screen.cursor_position(), screen.hide_cursor()), ((4, 7), true));
    drop(followed.stopper);
    assert!(followed.end.join().expect("no panic").is_ok(), "a stopped watch is no error");
}

#[test]
fn output_and_changes_of_size_are_followed() {
    let lab = Lab::wide();
    let tmux = Tmux::new(lab.home("demo"));
    let followed = Followed::start(&tmux, ECHO);
    followed.shows("ready");
    followed.answers(&lab, "one");
    let window = pane(&followed.placement).window_id.clone();
    lab.tmux(&["resize-window", "-t", &window, "-x", "60", "-y", "12"]);
    let size = || lab.field(followed.id(), "#{pane_width}");
    until("it is resized", || size() == "60");
    let resized = |image: &ScreenImage| image.cols == 60;
    while !resized(&followed.images.recv_timeout(PATIENCE).expect("an image of the new size")) {}
    followed.answers(&lab, "two");
}

#[test]
fn moved_pane_is_still_followed() {
    let lab = Lab::wide();
    let tmux = Tmux::new(lab.home_in("demo", "%0"));
    let followed = Followed::start(&tmux, ECHO);
    followed.shows("ready");
    let token = &followed.launch.token;
    let hidden = tmux.hide(Mark::new(&followed.placement, token)).expect("hidden");
    followed.answers(&lab, "hidden");
    tmux.show(Mark::new(&hidden, token)).expect("shown");
    followed.answers(&lab, "shown");
    lab.tmux(&["new-session", "-d", "-s", "far", "--", "env", "sleep", "300"]);
    lab.tmux(&["join-pane", "-d", "-s", followed.id(), "-t", "=far:"]);
    followed.answers(&lab, "joined");
    lab.tmux(&["break-pane", "-d", "-s", followed.id()]);
    followed.answers(&lab, "broken");
}

#[test]
fn sd_05_closed_or_foreign_pane_ends_the_following() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let followed = Followed::start(&tmux, ECHO);
    followed.shows("ready");
    lab.tmux(&["kill-pane", "-t", followed.id()]);
    assert_eq!(followed.verdict(), Verdict::Gone);

    let followed = Followed::start(&tmux, ECHO);
    followed.shows("ready");
    lab.tmux(&["set-option", "-p", "-t", followed.id(), "@phalanx_token", "another"]);
    lab.tmux(&["send-keys", "-t", followed.id(), "secret", "Enter"]);
    let images: Vec<ScreenImage> = followed.images.iter().collect();
    assert!(!images.iter().any(|image| contents(image).contains("secret")));
    assert!(matches!(followed.verdict(), Verdict::Foreign { .. }));

    let followed = Followed::start(&tmux, ECHO);
    followed.shows("ready");
    lab.tmux(&["kill-server"]);
    assert_eq!(followed.verdict(), Verdict::Gone);
}

#[test]
fn output_in_tmux_syntax_is_shown_as_text() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let lines = "phx-screen 1 1 0 0 1 0 /dev/null\n%begin 1 1 1\n%end 1 1 1\n%exit\nphx-server 1\n";
    let script = format!("printf '{}'; {ECHO}", lines.replace('%', "%%"));
    let followed = Followed::start(&tmux, &script);
    let image = followed.shows("ready");
    // From tmux 3.4 on, captured lines are filled up with spaces.
    let shown: String =
        contents(&image).lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert!(shown.starts_with(lines), "{shown}");
    assert_ne!((image.rows, image.cols), (1, 1));
    followed.answers(&lab, "%exit");
}

/// A client that attaches, also one in control mode, would send `ESC [ I` to such a program.
#[test]
fn followed_program_gets_no_focus_event_and_no_client_is_attached() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let script = "stty raw -echo; printf '\\033[?1004hready'; head -c 1 | od -An -c; sleep 300";
    let followed = Followed::start(&tmux, script);
    followed.shows("ready");
    assert_eq!(lab.tmux(&["list-clients"]), "");
    lab.tmux(&["send-keys", "-t", followed.id(), "-l", "x"]);
    let image = followed.shows("   ");
    assert!(contents(&image).contains('x'), "the first input: {}", contents(&image));
}

#[test]
fn neighbours_output_causes_no_capture() {
    let lab = Lab::wide();
    let tmux = Tmux::new(TmuxHome { program: traced(&lab), ..lab.home("demo") });
    let followed = Followed::start(&tmux, ECHO);
    followed.shows("ready");
    lab.tmux(&["split-window", "-d", "-t", followed.id(), "--", "env", "yes"]);
    // The split has changed the size of the pane.
    followed.images.recv_timeout(PATIENCE).expect("another size");
    let before = lab.calls();
    let quiet = followed.images.recv_timeout(Duration::from_secs(1));
    let calls = lab.calls() - before;
    assert!(quiet.is_err(), "its own screen has not changed");
    // Captures without output follow each other after 250 ms or more, those with output after 50.
    assert!(calls <= 5, "{calls} captures");
    followed.answers(&lab, "still there");
}
