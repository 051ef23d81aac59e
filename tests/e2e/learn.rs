//! `profile learn`: a person at a tmux terminal shows `fixtures/fake-tui`, and a member runs with
//! the profile that was learned.

use std::fs;

use crate::harness::{FAKE_TUI, Stage, binary, wait_for};

/// A person at a tmux terminal of 80x24 who runs `profile learn`.
struct Learner {
    stage: Stage,
}

impl Learner {
    fn start(arguments: &str) -> Learner {
        let stage = Stage::new();
        let exit = stage.at("exit");
        let line = format!(
            "{} profile learn {arguments}; echo $? >{}; exec sleep 1000",
            binary(),
            exit.display()
        );
        let words = ["new-session", "-d", "-s", "person", "-x", "80", "-y", "24", line.as_str()];
        let learner = Learner { stage };
        learner.tmux(&words);
        learner
    }

    fn tmux(&self, words: &[&str]) -> String {
        self.stage.tmux(&[&["-L", "person"], words].concat()).expect("a terminal")
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "person"])
    }

    fn wait_for(&self, shown: &str) {
        wait_for(shown, || self.screen().contains(shown).then_some(()));
    }

    fn type_in(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "person", "-l", "--", text]);
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "person"], keys].concat());
    }

    /// Answers what the program does now.
    fn answer(&self, key: &str, recorded: &str) {
        self.press(&["C-]", key]);
        self.wait_for(&format!("recorded {recorded}"));
    }

    /// Waits for the end; returns the exit code.
    fn exit(&self) -> String {
        let exit =
            || fs::read_to_string(self.stage.at("exit")).ok().filter(|code| !code.is_empty());
        wait_for("the end of `profile learn`", exit).trim().to_owned()
    }

    fn end(self) {
        self.tmux(&["kill-server"]);
        self.stage.assert_clean();
    }
}

#[test]
fn tmux_learned_profile_delivers_messages_and_ends_its_member() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let log = log.path().to_string_lossy().into_owned();
    let person = Learner::start(&format!("own -- {FAKE_TUI} {log}"));
    person.wait_for("= idle");
    person.wait_for("What does it do now?");
    person.answer("i", "idle-1");
    person.type_in("think hard\r");
    person.wait_for("* think hard");
    person.answer("w", "working-1");
    assert!(person.screen().contains("* think hard"), "{}", person.screen());
    person.press(&["C-x"]);
    person.wait_for("= idle");
    person.answer("i", "idle-2");
    person.type_in("run touch x;\r");
    person.wait_for("May I use Shell?");
    person.answer("a", "asks-1");
    person.type_in("n");
    person.wait_for("= idle");
    person.wait_for("What does it do now?");
    person.press(&["C-c", "C-c"]);
    assert_eq!(person.exit(), "0", "{}", person.screen());
    let screen = person.screen();
    assert!(screen.contains("working-1") && !screen.contains("NO"), "{screen}");

    let stage = &person.stage;
    let profile = stage.phalanx(&["profile", "show", "own"]).expect(0).stdout;
    assert!(profile.contains(r#"quit = ["\u0003", "\u0003"]"#), "{profile}");
    let recordings = stage.root().join("phalanx/profiles/own");
    let recordings = recordings.to_string_lossy();
    stage.phalanx(&["profile", "test", "own", "--screen", &recordings]).expect(0);
    stage.phalanx(&["profile", "test", "codex", "--screen", &recordings]).expect(1);

    fs::write(&log, "").expect("written");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "own", "--backend", "pty"]).expect(0);
    stage.phalanx(&["send", "ada", "read the map"]).expect(0);
    let has_message = || fs::read_to_string(&log).is_ok_and(|turns| turns.contains("read the map"));
    wait_for("the message", || has_message().then_some(()));
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    person.end();
}

#[test]
fn tmux_learning_without_a_working_screen_writes_nothing() {
    let person = Learner::start(&format!("own -- {FAKE_TUI} /dev/null"));
    person.wait_for("What does it do now?");
    person.press(&["C-]"]);
    person.wait_for("q finish");
    // Any other key goes back; the program does not get it.
    person.press(&["x"]);
    person.wait_for("Ctrl-] then i idle");
    assert!(!person.screen().contains("> x"), "{}", person.screen());
    person.answer("i", "idle-1");
    person.press(&["C-]", "u"]);
    person.wait_for("idle 0, working 0");
    person.answer("i", "idle-1");
    person.press(&["C-]", "q"]);
    assert_eq!(person.exit(), "1", "{}", person.screen());
    person.wait_for("error: no screen was recorded as working");
    assert!(!person.stage.root().join("phalanx/profiles").exists());
    person.end();
}

#[test]
fn learning_is_refused_without_a_terminal_and_for_a_name_that_is_taken() {
    let stage = Stage::without_tmux();
    let run = stage.phalanx(&["profile", "learn", "own", "--", "true"]).expect(2);
    assert!(run.stderr.contains("error: profile learn needs a terminal"), "{run:?}");
    let run = stage.phalanx(&["profile", "learn", "codex", "--", "true"]).expect(2);
    assert!(run.stderr.contains("hint: take another name, or replace it with --force"), "{run:?}");
}
