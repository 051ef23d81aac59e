//! `docs/guide.md`: every command of a `console` block runs, and prints what the page shows.
//!
//! A block `LANGUAGE FILE` is a file, and each `console` block a shell session in the directory
//! that the last one was in. Output may differ in numbers, times and the space between columns;
//! `...` stands for any lines, `[..]` for the rest of one. `# exit code N` ends the output of a
//! command that fails.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use snapbox::{Assert, Data, IntoData};

use crate::harness::{Run, Stage, binary};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide.md");

/// A fenced block of the page.
struct Block {
    /// The words after the fence.
    info: String,
    line: usize,
    text: String,
}

/// A command of a console block and what it prints.
struct Step {
    command: String,
    output: String,
    exit: i32,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (nth, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let (info, line) = (info.to_owned(), nth + 1);
                open = Some(Block { info, line, text: String::new() });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), output: String::new(), exit: 0 });
            continue;
        }
        let step = steps.last_mut();
        let step = step.unwrap_or_else(|| panic!("line {}: no command", block.line));
        match (line.strip_prefix("> "), line.strip_prefix("# exit code ")) {
            (Some(more), _) if step.output.is_empty() => step.command += &format!("\n{more}"),
            (_, Some(code)) => step.exit = code.parse().expect("a number"),
            _ => step.output += &format!("{line}\n"),
        }
    }
    steps
}

/// Replaces what differs from run to run.
fn comparable(text: &str, root: &Path) -> String {
    let text = text.replace(&*root.to_string_lossy(), "/home/ann");
    let patterns = [
        // Times, sizes, ids and numbers of processes.
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\b[0-9a-f]{7,40}\b", "ID"),
        (r"\b\d+(\.\d+)?\s?(ms|s|h|min)\b", "TIME"),
        (r"\d+", "N"),
        // Either worker can be the first.
        (r"\b(ann|ben)\b", "WORKER"),
        (r"[ \t]+", " "),
        (r"(?m) $", ""),
    ];
    patterns.iter().fold(text, |text, (pattern, with)| {
        Regex::new(pattern).expect("valid").replace_all(&text, *with).into_owned()
    })
}

/// The shell of the page.
struct Session {
    stage: Stage,
    cwd: PathBuf,
    /// The last request that was printed.
    request: String,
}

impl Session {
    fn new() -> Session {
        let stage = Stage::new();
        std::os::unix::fs::symlink(binary(), stage.at("bin/phalanx")).expect("a link");
        let cwd = stage.at("work");
        Session { stage, cwd, request: String::new() }
    }

    /// Runs a command line, and keeps the directory that it changes to. The id of a request on the
    /// page stands for the last one that was printed.
    fn run(&mut self, line: &str) -> Run {
        let request = Regex::new(r"perm-\d+-[0-9a-f]+").expect("valid");
        let line = request.replace_all(line, &self.request);
        let path =
            format!("{}:{}", self.stage.at("bin").display(), std::env::var("PATH").expect("PATH"));
        let script = format!("exec 2>&1\n{line}\ncode=$?; pwd >\"$HOME/cwd\"; exit $code\n");
        let mut command = self.stage.command("sh");
        for (name, value) in [("NAME", "Ann"), ("EMAIL", "ann@example.com")] {
            command.env(format!("GIT_AUTHOR_{name}"), value);
            command.env(format!("GIT_COMMITTER_{name}"), value);
        }
        command.env("PATH", path).current_dir(&self.cwd).args(["-c", &script]);
        let run = Run::from(command.output().expect("sh runs"));
        let cwd = fs::read_to_string(self.stage.at("home/cwd")).expect("a directory");
        self.cwd = PathBuf::from(cwd.trim_end());
        if let Some(found) = request.find(&run.stdout) {
            found.as_str().clone_into(&mut self.request);
        }
        run
    }
}

#[test]
fn tmux_commands_of_the_guide_print_what_it_shows() {
    let mut session = Session::new();
    let root = session.cwd.parent().expect("a directory").to_owned();
    let page = fs::read_to_string(PAGE).expect("the page");
    let mut count = 0;
    for block in blocks(&page) {
        let words: Vec<&str> = block.info.split(' ').collect();
        match words[..] {
            ["console"] => {}
            [_, file] => {
                fs::write(session.cwd.join(file), &block.text).expect("a file");
                continue;
            }
            // Needs an account, a Mac or other machines, as the page states.
            _ => continue,
        }
        for step in steps(&block) {
            let run = session.run(&step.command);
            let shown = format!("line {}: {}", block.line, step.command);
            assert_eq!(run.code, step.exit, "{shown}\n{}", run.stdout);
            let expected = comparable(&step.output, &root).into_data();
            let printed: Data = comparable(&run.stdout, &root).into_data();
            let result = Assert::new().try_eq(Some(&shown), printed, expected);
            result.unwrap_or_else(|e| panic!("{shown}\n{e}\nprinted:\n{}", run.stdout));
            count += 1;
        }
    }
    assert!(count > 30, "{count} commands");
}
