//! Checks the workflows of a public host: each step is a script of this repository, so that it also
//! runs without the host, or an action that is pinned to a commit.

use std::fs;

use regex::Regex;

use crate::{entries, root};

/// A script and fixed options. Everything else, such as `|` for several lines, is shell syntax.
const SCRIPT: &str = r"^(scripts/[a-z0-9-]+)(?: --?[a-z-]+)*$";
const PINNED: &str = r"^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+$";

#[test]
fn each_step_of_the_workflows_is_a_script_of_the_repository() {
    let files = entries(&root().join(".github/workflows"));
    let texts: Vec<String> =
        files.iter().map(|path| fs::read_to_string(path).expect("a workflow")).collect();
    let text = texts.join("\n");
    assert!(text.matches("run: scripts/").count() > 4, "the workflows run scripts");
    assert_eq!(foreign_steps(&text), Vec::<String>::new());
}

#[test]
fn step_that_runs_no_script_is_caught() {
    let pin = "a".repeat(40);
    for step in [
        "- run: cargo test",
        "- run: scripts/gone",
        "- run: scripts/test --quick && true",
        "- run: scripts/test ${{ github.ref }}",
        "- run: |",
        "- { run: scripts/test }",
        "- \"run\": scripts/test",
        "- uses: actions/checkout@v5",
        "- uses: actions/checkout@main # v5.0.0",
    ] {
        assert_eq!(foreign_steps(&format!("steps:\n  {step}\n")).len(), 1, "{step}");
    }
    let good = format!("- run: scripts/test --quick\n  # run: it\n  uses: a/b@{pin} # v5.0.0\n");
    assert_eq!(foreign_steps(&good), Vec::<String>::new());
}

/// Returns the lines with a step that is neither a script that exists nor a pinned action.
fn foreign_steps(workflow: &str) -> Vec<String> {
    let pattern = |text| Regex::new(text).expect("a pattern");
    let (key, script, pinned) = (pattern(r#"\b(run|uses)"?:"#), pattern(SCRIPT), pattern(PINNED));
    let is_good = |line: &str| {
        if let Some(command) = line.strip_prefix("run: ") {
            script.captures(command).is_some_and(|found| root().join(&found[1]).is_file())
        } else {
            line.strip_prefix("uses: ").is_some_and(|action| pinned.is_match(action))
        }
    };
    let lines = workflow.lines().map(|line| line.trim().trim_start_matches("- "));
    lines
        .filter(|line| !line.starts_with('#') && key.is_match(line) && !is_good(line))
        .map(str::to_owned)
        .collect()
}
