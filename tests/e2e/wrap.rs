//! Delivery to wrapped programs: `fixtures/fake-tui` plays an agent and logs the turns that it
//! received.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gear;
use crate::harness::{FAKE_TUI, Run, Stage, binary, wait_for, wait_within};

/// A team with one wrapped member, `ada`.
struct Cast {
    stage: Stage,
    log: PathBuf,
    switches: Vec<String>,
    backend: &'static str,
}

impl Cast {
    fn new(backend: &'static str, switches: &[&str]) -> Cast {
        let stage = Stage::new();
        stage.fake_tui(|sheet| sheet);
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        let log = stage.at("log");
        let switches = switches.iter().map(|s| (*s).to_owned()).collect();
        let cast = Cast { stage, log, switches, backend };
        cast.spawn(&[]);
        cast
    }

    /// Spawns `ada` with these options.
    fn spawn(&self, options: &[&str]) {
        let log = self.log.to_string_lossy().into_owned();
        let head = ["spawn", "ada", "--profile", "fake", "--backend", self.backend];
        let tail = ["--", FAKE_TUI, log.as_str()];
        let switches = self.switches.iter().map(String::as_str);
        let words: Vec<&str> =
            head.iter().chain(options).chain(&tail).copied().chain(switches).collect();
        self.stage.phalanx(&words).expect(0);
    }

    /// Sends a message whose text is passed on stdin.
    fn send(&self, text: &str) {
        let mut command = self.stage.command(binary());
        command
            .args(["send", "ada", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("phalanx starts");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("written");
        Run::from(child.wait_with_output().expect("it ends")).expect(0);
    }

    fn record(&self) -> Value {
        let file = self.stage.root().join("teams/alpha/phalanx/members/ada.json");
        serde_json::from_slice(&fs::read(file).expect("a record")).expect("json")
    }

    /// The turns that the program was given, in order.
    fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn unread(&self) -> usize {
        let shown = self.stage.phalanx(&["--json", "inbox", "ada", "--peek"]).expect(0).json();
        shown.as_array().expect("messages").len()
    }

    /// The bodies of the messages that the program was given, in order. A pointer to a spilled body
    /// is replaced by the content of its file.
    fn bodies(&self) -> Vec<String> {
        let gap = if self.switches.iter().any(|s| s == "plain") { " " } else { "\n" };
        bodies(&self.log(), gap)
    }

    fn end(self) {
        self.stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
        self.stage.phalanx(&["down"]).expect(0);
        self.stage.assert_clean();
    }
}

/// Extracts the message bodies from turns; `gap` separates an envelope from its text.
fn bodies(turns: &[Value], gap: &str) -> Vec<String> {
    let head = format!("<teammate-message teammate_id=\"team-lead\">{gap}");
    let mut bodies = Vec::new();
    for turn in turns {
        let turn = turn.as_str().expect("a turn");
        assert!(turn.starts_with(&head), "somebody else's text: {turn:?}");
        for part in turn.split(head.as_str()).skip(1) {
            let (body, _) =
                part.rsplit_once(&format!("{gap}</teammate-message>")).expect("an envelope");
            bodies.push(match body.split_once(" bytes long. Read it from the file ") {
                Some((_, file)) => fs::read_to_string(file).expect("the pointer leads somewhere"),
                None => body.to_owned(),
            });
        }
    }
    bodies
}

/// A pseudo-random generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Any character, including control characters.
    fn character(&mut self) -> char {
        let limit = [0x80, 0x3000, 0x11_0000][usize::try_from(self.roll(3)).expect("below 3")];
        u32::try_from(self.roll(limit)).ok().and_then(char::from_u32).unwrap_or('?')
    }
}

/// Returns a text of 1 B to 64 KB with arbitrary characters; it starts with its number.
fn text(n: usize) -> String {
    const SIZES: [usize; 8] = [1, 9, 60, 300, 1200, 40, 4500, 65_000];
    const ALPHABET: [&str; 12] = [
        "a",
        "Zürich ",
        "\n",
        "日本",
        "🦀",
        "\"'$(x)`;",
        "\t",
        "<b>&amp;",
        "e\u{301}",
        " ",
        "#{x}",
        "-- ",
    ];
    let mut text = format!("{n}:");
    let mut dice = Dice(n as u64);
    for i in 0.. {
        if text.len() >= SIZES[n % SIZES.len()] {
            break;
        }
        match n % 5 {
            3 => text.push(Some(dice.character()).filter(|c| !c.is_control()).unwrap_or('?')),
            4 => text.push(dice.character()),
            _ => text.push_str(ALPHABET[(n * 7 + i * 5) % ALPHABET.len()]),
        }
    }
    // The screen check looks for the end of the text, so the end uses characters that every Python
    // and terminal know.
    text.push_str(if n % 5 == 3 { " and so ends the message." } else { "." });
    text
}

/// Sends `count` messages and waits until all were observed. Returns the counts of sent, observed,
/// duplicated and lost messages.
fn deliver(switches: &[&str], count: usize) -> [usize; 4] {
    let cast = Cast::new("pty", switches);
    let sent: Vec<String> = (0..count).map(text).collect();
    sent.iter().for_each(|text| cast.send(text));
    let patience = Duration::from_secs(60 + count as u64);
    wait_within(patience, &format!("all is observed with {switches:?}"), || {
        (cast.unread() == 0).then_some(())
    });
    let got = cast.bodies();
    let times = |text: &String| got.iter().filter(|body| *body == text).count();
    let counts = [
        sent.len(),
        sent.iter().filter(|text| times(text) > 0).count(),
        sent.iter().filter(|text| times(text) > 1).count(),
        sent.iter().filter(|text| times(text) == 0).count(),
    ];
    println!(
        "{switches:?}: sent, observed, duplicated, lost = {counts:?}, {} turns",
        cast.log().len()
    );
    assert_eq!(got, sent, "{switches:?}: byte for byte, in order");
    cast.end();
    counts
}

/// The multiplier for long runs: `PHALANX_LONG=1` sends 100 messages with each set of switches,
/// `PHALANX_LONG=10` sends 1000.
fn long() -> Option<usize> {
    std::env::var("PHALANX_LONG").ok().map(|times| times.parse().unwrap_or(1))
}

/// MSG-02, MSG-03, MSG-04, MSG-08, MSG-09, MSG-15: each message is observed exactly once, byte for
/// byte and in order, whatever the input quirks of the program.
macro_rules! matrix {
    ($($name:ident: $switches:expr;)*) => {
        $(#[test]
        fn $name() {
            let count = long().map_or(gear::sized(8, 24), |times| 100 * times);
            assert_eq!(deliver(&$switches, count), [count, count, 0, 0]);
        })*
    };
}

matrix! {
    wrap_msg_03_a_polite_program: [];
    wrap_msg_08_a_slow_start_that_flushes_input: ["slow", "flush"];
    wrap_msg_08_a_paste_burst_rule: ["burst", "plain"];
    wrap_msg_08_a_slow_digestion: ["digest"];
    wrap_msg_08_a_swallowed_first_enter: ["swallow"];
    wrap_msg_01_a_busy_program: ["busy"];
    wrap_msg_09_no_bracketed_paste: ["plain"];
    wrap_msg_04_the_alternate_screen: ["alt"];
    wrap_sec_03_hostile_escapes: ["hostile"];
    wrap_msg_08_all_at_once: ["slow", "flush", "digest", "swallow", "busy", "alt", "hostile"];
}

/// PM-01, PM-02: nothing is typed into a dialog, and the dialog is reported. Mail is delivered once
/// a user has answered it.
#[test]
fn wrap_tmux_pm_01_nothing_is_typed_into_a_dialog() {
    let cast = Cast::new("tmux", &["modal"]);
    let reason = wait_for("the reason", || cast.record()["reason"].as_str().map(str::to_owned));
    assert_eq!(reason, "blocked: dialog:trust (rule trust: Trust this folder?)");
    cast.send("hello");
    assert_eq!((cast.log(), cast.unread()), (Vec::new(), 1), "the dialog was left alone");
    cast.type_in_pane("y");
    wait_for("the message after the dialog", || (cast.unread() == 0).then_some(()));
    assert_eq!(cast.log()[0], json!({ "modal": "y" }), "only the person's key");
    assert_eq!(cast.log().len(), 2);
    wait_for("the reason to go", || cast.record()["reason"].is_null().then_some(()));
    cast.end();
}

/// SD-21: a program at a dialog or in a long turn keeps no end waiting, and gets no keys.
#[test]
fn wrap_tmux_sd_21_program_that_is_not_idle_is_ended_at_the_deadline() {
    for switches in [&["modal"][..], &[]] {
        let cast = Cast::new("tmux", switches);
        let state = if switches.is_empty() { "working" } else { "waiting" };
        if switches.is_empty() {
            cast.send("think");
            wait_for("the turn", || (!cast.log().is_empty()).then_some(()));
        }
        cast.stage.phalanx(&["wait", "ada", "--until", state]).expect(0);
        let before = cast.log();
        let ended = cast.stage.phalanx(&["--json", "down", "--deadline", "1"]).expect(5).json();
        assert_eq!(ended[0]["outcome"], "timed_out", "{ended}");
        assert_eq!(cast.log(), before);
        cast.stage.assert_clean();
    }
}

/// MSG-11: a draft of the user is never changed or submitted; mail waits for it.
#[test]
fn wrap_tmux_msg_11_draft_of_the_user_is_left_alone() {
    let cast = Cast::new("tmux", &[]);
    let shows = |text: &str| {
        cast.stage.phalanx(&["peek", "ada"]).expect(0).stdout.contains(text).then_some(())
    };
    for round in 0..3 {
        cast.type_in_pane("my draft");
        // Keys that arrive after the message follow it; this test is about those before it.
        wait_for("the draft", || shows("> my draft"));
        cast.send(&format!("message {round}"));
        cast.type_in_pane(" goes on");
        wait_for("the draft to be left alone", || {
            shows("> my draft goes on").filter(|()| cast.record()["state"] == "idle")
        });
        assert_eq!((cast.log().len(), cast.unread()), (2 * round, 1), "nothing was submitted");
        cast.type_in_pane("\r");
        wait_for("the message", || (cast.unread() == 0).then_some(()));
    }
    let log = cast.log();
    assert_eq!(log.iter().filter(|turn| **turn == "my draft goes on").count(), 3, "{log:?}");
    assert_eq!(log.len(), 6);
    cast.end();
}

/// MSG-02, MSG-03: killing the wrapper between staging and observation ends the program too. Its
/// mail stays unread, and the next run gets each message once.
#[test]
fn wrap_msg_02_killed_wrapper_loses_no_mail() {
    let cast = Cast::new("pty", &["digest", "swallow"]);
    cast.send("once");
    cast.stage.wait_event("alpha", "message_submitted", "ada");
    let wrapper = cast.record()["start"]["program"]["pid"].to_string();
    let killed = cast.stage.command("kill").args(["-9", &wrapper]).status().expect("kill");
    assert!(killed.success());
    wait_for("the run to be over", || cast.record()["exit"].is_object().then_some(()));
    assert_eq!(cast.log(), Vec::<Value>::new());
    cast.stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    cast.spawn(&[]);
    wait_for("the message in the next run", || (cast.unread() == 0).then_some(()));
    assert_eq!(cast.bodies(), ["once"]);
    cast.end();
}

/// MSG-02, MSG-03: the wrapper dies at each step of a delivery. The next run gets once every
/// message that was not marked as read, which includes one that the program took just before it
/// died with the wrapper.
#[cfg(debug_assertions)]
#[test]
fn wrap_msg_03_wrapper_killed_at_any_step_loses_no_mail() {
    for (point, next) in [
        ("wrap.typed", 1),
        ("wrap.staged", 1),
        ("wrap.submitted", 1),
        ("wrap.observed", 1),
        ("wrap.acknowledged", 0),
    ] {
        let cast = Cast::new("pty", &[]);
        cast.stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
        cast.spawn(&["--env", &format!("MEMBER_FAILPOINT={point}")]);
        cast.send("once");
        wait_for(&format!("{point}: the run to be over"), || {
            cast.record()["exit"].is_object().then_some(())
        });
        let before = cast.bodies();
        match point {
            "wrap.typed" | "wrap.staged" => assert!(before.is_empty(), "{point}: {before:?}"),
            "wrap.submitted" => {
                assert!(before.is_empty() || before == ["once"], "{point}: {before:?}")
            }
            _ => assert_eq!(before, ["once"], "{point}"),
        }
        cast.stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
        cast.spawn(&[]);
        cast.send("last");
        wait_for(&format!("{point}: the mail in the next run"), || {
            (cast.unread() == 0).then_some(())
        });
        let after = &cast.bodies()[before.len()..];
        assert_eq!(after, &["once", "last"][1 - next..], "{point}");
        cast.end();
    }
}

/// MSG-03: the terminal wraps this text right before the final `>` of its envelope. A line with
/// only `>` looks like an empty composer, so the text was once typed again.
#[test]
fn wrap_msg_03_text_wrapped_by_the_terminal_is_typed_once() {
    let cast = Cast::new("pty", &[]);
    let text = format!("{}日本", "x".repeat(180));
    cast.send(&text);
    wait_for("the message", || (cast.unread() == 0).then_some(()));
    cast.send("next");
    wait_for("the next", || (cast.unread() == 0).then_some(()));
    assert_eq!(cast.bodies(), [text, "next".to_owned()]);
    cast.end();
}

/// MSG-09, SEC-03: a body that is longer than 4 KB or holds control characters is written to a
/// file, and the program gets its path.
#[test]
fn wrap_msg_09_long_or_unsafe_body_is_passed_as_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let cast = Cast::new("pty", &[]);
    let texts = ["x".repeat(4096), "y".repeat(4097), "\u{1b}[2J\u{3}\r\0 all keys".to_owned()];
    for text in &texts {
        cast.send(text);
    }
    wait_for("the messages", || (cast.unread() == 0).then_some(()));
    assert_eq!(cast.bodies(), texts);
    let typed: String = cast.log().iter().map(|turn| turn.as_str().expect("a turn")).collect();
    assert!(
        typed.contains(&texts[0]) && !typed.contains("yyy") && !typed.contains('\u{1b}'),
        "{typed}"
    );
    let letters =
        fs::read_dir(cast.stage.root().join("teams/alpha/phalanx/letters/ada")).expect("letters");
    let modes = letters
        .map(|file| file.expect("a file").metadata().expect("there").permissions().mode() & 0o777);
    assert_eq!(modes.collect::<Vec<_>>(), [0o600, 0o600]);
    cast.end();
}

/// MSG-11: a user types lines at random times while mail arrives. Each line is submitted only by
/// the user and without mail in it; messages share a turn only with messages.
#[test]
fn wrap_tmux_msg_11_user_lines_and_mail_are_never_mixed() {
    let cast = Cast::new("tmux", &[]);
    let (count, lines) = if long().is_some() { (100, 20) } else { (20, 4) };
    let sent: Vec<String> = (0..count).map(|n| format!("message {n} of {count}")).collect();
    let mut dice = Dice(7);
    for (line, some) in sent.chunks(count / lines).enumerate() {
        let words = [format!("line {line}"), " goes on".to_owned(), " and ends".to_owned()];
        some.iter().zip(0..).for_each(|(text, nth)| {
            cast.send(text);
            if let Some(word) = words.get(nth) {
                cast.type_in_pane(word);
                pause(dice.roll(2600));
            }
        });
        cast.type_in_pane("\r");
        pause(dice.roll(3000));
    }
    wait_for("the messages", || (cast.unread() == 0).then_some(()));
    let (ours, theirs): (Vec<Value>, Vec<Value>) = cast
        .log()
        .into_iter()
        .partition(|turn| turn.as_str().is_some_and(|text| text.starts_with("<teammate-message")));
    let lines: Vec<Value> =
        (0..lines).map(|n| json!(format!("line {n} goes on and ends"))).collect();
    assert_eq!(theirs, lines);
    assert_eq!(bodies(&ours, "\n"), sent);
    cast.end();
}

/// Simulates the typing pauses of a user; not a wait for an event.
fn pause(ms: u64) {
    let began = Instant::now();
    wait_for("the end of a pause", || (began.elapsed() >= Duration::from_millis(ms)).then_some(()));
}

/// MSG-08, MSG-14: a message that cannot be submitted is reported and stays unread.
#[test]
fn wrap_msg_08_unsubmitted_message_is_reported_and_stays_unread() {
    let cast = Cast::new("pty", &["deaf"]);
    cast.send("hello");
    let said = cast.stage.wait_event("alpha", "message_undelivered", "ada");
    assert_eq!(said["detail"]["reason"], "the submit key had no effect");
    let tries =
        cast.stage.journal("alpha").iter().filter(|e| e["event"] == "message_submitted").count();
    assert_eq!((tries, cast.unread(), cast.log().len()), (3, 1, 0));
    let reason = wait_for("the reason", || cast.record()["reason"].as_str().map(str::to_owned));
    assert_eq!(reason, "blocked: undelivered: the submit key had no effect");
    cast.end();
}

/// MSG-14, SD-02: an idle wrapped program agrees to a shutdown and is ended by its own quit keys.
#[test]
fn wrap_sd_02_idle_program_agrees_to_shut_down() {
    let cast = Cast::new("pty", &[]);
    let closed = cast.stage.phalanx(&["--json", "shutdown", "ada"]).expect(0).json();
    assert_eq!(closed[0]["outcome"], "closed");
    cast.stage.phalanx(&["down"]).expect(0);
    cast.stage.assert_clean();
}

impl Cast {
    /// Types into the tmux pane of the member, as a user would.
    fn type_in_pane(&self, keys: &str) {
        let pane = self.record()["placement"]["tmux"]["pane_id"].as_str().map(str::to_owned);
        let pane = pane.unwrap_or_else(|| panic!("no pane: {}", self.record()["placement"]));
        let sent = match keys {
            "\r" => self.stage.tmux(&["-S", &self.socket(), "send-keys", "-t", &pane, "Enter"]),
            keys => {
                self.stage.tmux(&["-S", &self.socket(), "send-keys", "-t", &pane, "-l", "--", keys])
            }
        };
        sent.expect("tmux takes keys");
    }

    fn socket(&self) -> String {
        self.record()["placement"]["tmux"]["socket"].as_str().expect("a socket").to_owned()
    }
}

/// SP-21: a program that runs is not ended because no rule matches its screen. Its mail goes into
/// its empty composer after a while (MSG-21).
#[test]
fn wrap_sp_21_program_with_an_unrecognised_screen_runs_on() {
    let stage = Stage::new();
    stage.fake_tui(|sheet| sheet.replace("'^= idle'", "'^= another version'"));
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log").display().to_string();
    let words = ["spawn", "ada", "--profile", "fake", "--backend", "pty", "--deadline", "3"];
    let words = [&words[..], &["--prompt", "begin", "--", FAKE_TUI, &log]].concat();
    let run = stage.phalanx(&words).expect(0);
    let warning = "warning: `ada`: running, its screen is not recognised; see `phalanx peek ada`";
    assert!(run.stderr.contains(warning) && run.stderr.contains("\n= idle\n>"), "{run:?}");
    let turn =
        wait_for("the prompt", || fs::read_to_string(&log).ok().filter(|log| !log.is_empty()));
    assert!(turn.contains("begin"), "{turn}");
    let explained = wait_for("the state", || {
        let said = stage.phalanx(&["explain", "ada"]).expect(0).stdout;
        said.contains("running: its screen is not recognised").then_some(said)
    });
    assert!(explained.contains("phalanx type ada TEXT --enter"), "{explained}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// With `mail = "tools"` the wrapper types one line, and the program's tool reads the messages.
#[test]
fn program_with_tools_reads_its_mail_itself() {
    let stage = Stage::new();
    stage.fake_tui(|sheet| format!("mail = \"tools\"\n{sheet}"));
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log");
    let cast = Cast { stage, log, switches: Vec::new(), backend: "pty" };
    cast.spawn(&[]);
    cast.send("read me");
    let turn = wait_for("the line", || cast.log().first().cloned());
    assert_eq!(turn, "phalanx: 1 message waits for you. Read with the tool ReadInbox.");
    assert_eq!(cast.unread(), 1);
    cast.end();
}
