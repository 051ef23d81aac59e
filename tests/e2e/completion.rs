//! Shell completion, tested by typing a line into a real shell and reading its screen.

use std::path::Path;

use crate::gear;
use crate::harness::{Stage, binary, wait_for, which};

/// Creates two teams with a member and tasks each; one task subject holds an escape sequence.
fn stage() -> Stage {
    let stage = Stage::new();
    for (team, member) in [("demo", "ada"), ("other", "zoe")] {
        stage.phalanx(&["team", "create", team]).expect(0);
        stage.phalanx(&["spawn", member, "-t", team, "--backend", "pty"]).expect(0);
    }
    stage.phalanx(&["task", "create", "Write \u{1b}[31mdocs", "-t", "demo"]).expect(0);
    stage.phalanx(&["task", "create", "Check links", "-t", "other"]).expect(0);
    stage.phalanx(&["task", "create", "Measure", "-t", "other"]).expect(0);
    stage
}

/// An interactive shell in a pane of this stage's own tmux server.
struct Terminal<'a> {
    stage: &'a Stage,
    name: &'a str,
}

impl<'a> Terminal<'a> {
    fn open(stage: &'a Stage, name: &'a str, shell: &str, setup: &[&str]) -> Terminal<'a> {
        let bin = Path::new(binary()).parent().expect("a directory").to_string_lossy().into_owned();
        let mut tmux = stage.command("tmux");
        tmux.env("PATH", format!("{bin}:{}", stage.path())).env("PHALANX_TEAM", "demo");
        let size = ["-x", "100", "-y", "30", "-s", name];
        let made =
            tmux.args(["-f", "/dev/null", "new-session", "-d"]).args(size).arg(shell).status();
        assert!(made.expect("tmux").success());
        let terminal = Terminal { stage, name };
        for line in setup {
            terminal.type_keys(&[line, "Enter"]);
        }
        terminal.type_keys(&["printf 'up-%s\\n' 23", "Enter"]);
        wait_for("the shell", || terminal.screen().contains("up-23").then_some(()));
        terminal
    }

    fn type_keys(&self, keys: &[&str]) {
        self.stage.tmux(&[&["send-keys", "-t", self.name], keys].concat()).expect("keys are typed");
    }

    fn screen(&self) -> String {
        self.stage.tmux(&["capture-pane", "-p", "-t", self.name]).unwrap_or_default()
    }

    /// Types a line, presses Tab `tabs` times, and waits until the screen contains `expected`.
    fn completes(&self, line: &str, tabs: usize, expected: &[&str]) {
        self.type_keys(&["-l", line]);
        (0..tabs).for_each(|_| self.type_keys(&["Tab"]));
        let mut last = String::new();
        wait_for(
            &format!("{}: {line} to become {expected:?}; the screen: {}", self.name, self.screen()),
            || {
                last = self.screen();
                expected.iter().all(|part| last.contains(part)).then_some(())
            },
        );
        assert!(!last.contains("error") && !last.contains("exec"), "{last}");
        // C-c would make the terminal discard input typed right before and after it.
        self.type_keys(&["C-e", "C-u", "clear", "Enter"]);
        wait_for("a clear screen", || (!self.screen().contains(line.trim())).then_some(()));
    }
}

/// Completes names of every kind in one shell. `shows_help`: the shell shows descriptions beside
/// the candidates.
fn walk(name: &str, shell: &str, setup: &[&str], shows_help: bool) {
    let stage = stage();
    if which(name, stage.path()).is_none() {
        gear::skip(&format!("{name} is missing"));
        stage.phalanx(&["down", "--force", "-t", "demo"]).expect(0);
        stage.phalanx(&["down", "--force", "-t", "other"]).expect(0);
        return;
    }
    let terminal = Terminal::open(&stage, name, shell, setup);
    terminal.completes("phalanx send a", 1, &["phalanx send ada"]);
    terminal.completes("phalanx shutdown ad", 1, &["phalanx shutdown ada"]);
    terminal.completes("phalanx send -t other z", 1, &["phalanx send -t other zoe"]);
    terminal.completes("phalanx status -t de", 1, &["phalanx status -t demo"]);
    terminal.completes("phalanx task complete ", 1, &["phalanx task complete 1"]);
    terminal.completes("phalanx spawn ben --profile cod", 1, &["--profile codex"]);
    terminal.completes("phalanx spawn ben --mode accept", 1, &["--mode acceptEdits"]);
    terminal.completes("phalanx spawn ben --backend ite", 1, &["--backend iterm2"]);
    terminal.completes("phalanx spawn ben --role archi", 1, &["--role architect"]);
    terminal.completes("phalanx up rev", 1, &["phalanx up review"]);
    terminal.completes("phalanx init --template feat", 1, &["--template feature"]);
    terminal.completes("phalanx team set max_mem", 1, &["team set max_members"]);
    let subjects: &[&str] = if shows_help { &["Check links", "Measure"] } else { &["1", "2"] };
    terminal.completes("phalanx -t other task retry ", 2, subjects);
    stage.phalanx(&["shutdown", "ada", "--no-wait", "-t", "demo"]).expect(0);
    stage.phalanx(&["down", "--force", "-t", "demo"]).expect(0);
    stage.phalanx(&["down", "--force", "-t", "other"]).expect(0);
    terminal.completes("phalanx send a", 1, &["phalanx send a"]);
}

#[test]
fn bash_completes_names_from_the_store() {
    walk("bash", "bash --norc --noprofile", &["source <(phalanx completions bash)"], false);
}

#[test]
fn zsh_completes_names_from_the_store() {
    let setup = ["autoload -U compinit && compinit -u -D", "source <(phalanx completions zsh)"];
    walk("zsh", "zsh -f", &setup, true);
}

#[test]
fn fish_completes_names_from_the_store() {
    walk("fish", "fish --no-config", &["phalanx completions fish | source"], true);
}

#[test]
fn every_shell_gets_a_script_and_no_hidden_verb_is_offered() {
    let stage = Stage::without_tmux();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stage.phalanx(&["completions", shell]).expect(0).stdout;
        assert!(
            script.contains("PHALANX_COMPLETE") && !script.contains(binary()),
            "{shell}: {script}"
        );
    }
    stage.phalanx(&["completions", "tcsh"]).expect(2);
    for (begun, completed) in
        [("doct", "doctor"), ("exe", ""), ("worke", ""), ("workt", "worktree")]
    {
        let mut command = stage.command(binary());
        let asked = command.env("PHALANX_COMPLETE", "fish").args(["--", "phalanx", begun]).output();
        let offered = String::from_utf8(asked.expect("phalanx").stdout).expect("UTF-8");
        let names: Vec<&str> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(names.join(" "), completed, "{begun}");
    }
}

#[test]
fn completion_is_silent_on_errors_and_skips_hostile_names() {
    let stage = Stage::without_tmux();
    let complete = |words: &[&str]| {
        let mut command = stage.command(binary());
        let asked = command
            .env("PHALANX_COMPLETE", "fish")
            .arg("--")
            .args(words)
            .output()
            .expect("phalanx");
        assert!(asked.status.success() && asked.stderr.is_empty(), "{asked:?}");
        String::from_utf8(asked.stdout).expect("UTF-8")
    };
    for words in [
        &["phalanx", "send", ""][..],
        &["phalanx", "-t", "no such/team", "send", ""],
        &["phalanx", "--config-dir", "/no/such/dir", "task", "get", ""],
    ] {
        assert!(complete(words).lines().all(|line| line.starts_with('-')), "{words:?}");
    }
    assert!(!complete(&["phalanx", "ex"]).contains("exec"));
    assert!(!stage.root().exists(), "nothing is made");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["good", "two words", "$(id)", "esc\u{1b}[31m"]);
    let offered = complete(&["phalanx", "send", ""]);
    let names: Vec<&str> = offered.lines().collect();
    assert_eq!(names, ["team-lead\tteam-lead", "good"], "{offered:?}");
}

#[test]
fn open_requests_are_completed_with_their_summary() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--backend", "pty", "--", "sleep", "1000"]).expect(0);
    let asked = stage.phalanx(&["--json", "shutdown", "ada", "--no-wait"]).expect(0).json();
    let id = asked[0]["request_id"].as_str().expect("an id").to_owned();
    let mut command = stage.command(binary());
    let words = ["--", "phalanx", "answer", ""];
    let offered = command.env("PHALANX_COMPLETE", "fish").args(words).output().expect("phalanx");
    let offered = String::from_utf8(offered.stdout).expect("UTF-8");
    let open = stage.phalanx(&["--json", "requests"]).expect(0).json().to_string().contains(&id);
    assert_eq!(offered.contains(&format!("{id}\tada is stopping")), open, "{offered}");
    stage.phalanx(&["down", "--force"]).expect(0);
}
