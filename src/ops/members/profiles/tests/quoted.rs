//! The words of a dialog in the answer of an agent or in a draft, on recordings of real programs.

use super::*;
use profile::{ScreenState, builtin};

/// Programs, and the beginnings of the rows of an answer: of the first one, of the others.
const ANSWERS: [(&str, &str, &str); 7] = [
    ("claude", "● ", "  "),
    ("codex", "• ", "  "),
    ("gemini", "✦ ", "  "),
    ("opencode", "     ", "     "),
    ("aider", "", ""),
    ("qwen", "  ◆ ", "    "),
    ("copilot", " ● ", "   "),
];

/// Programs, the text in their recording `draft`, and the beginnings of the rows of a draft.
const DRAFTS: [(&str, &str, &str, &str); 6] = [
    ("claude", "half a line", "❯ ", "  "),
    ("codex", "say hello", "› ", "  "),
    ("gemini", "say hello", " > ", "   "),
    ("opencode", "say hello", "                       ┃  ", "                       ┃  "),
    ("qwen", "say hello", "> ", "  "),
    ("copilot", "say hello", "┃ ", "┃ "),
];

fn asks(state: &str) -> bool {
    state.starts_with("dialog:") || state == "needs_login"
}

/// Returns the recorded dialogs of all programs: the name of each, and its rows with text.
fn dialogs() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for program in RECORDED {
        for (name, wanted) in recordings(program) {
            if wanted.get("state").and_then(toml::Value::as_str).is_some_and(asks) {
                let mut rows = shown(&recording(program, &name), &wanted).rows;
                rows.retain(|row| !row.is_empty());
                found.push((format!("{program}/{name}"), rows));
            }
        }
    }
    assert!(found.len() > 30, "{}", found.len());
    found
}

fn written(rows: &[String], first: &str, others: &str) -> Vec<String> {
    let begun = rows.iter().enumerate().map(|(at, row)| {
        let begin = if at == 0 { first } else { others };
        format!("{begin}{row}")
    });
    begun.collect()
}

/// Returns the first row of the composer, a frame or a sign.
fn composer_row(program: &str, rows: &[String]) -> usize {
    let last = |sign: &str| rows.iter().rposition(|row| row.trim_start().starts_with(sign));
    let above = |sign: &str, rows: usize| last(sign).map(|at| at.saturating_sub(rows));
    let found = match program {
        "aider" => last(">"),
        "claude" => above("❯", 1),
        "codex" => last("›"),
        "gemini" => last("▄"),
        "opencode" => above("╹", 4),
        "qwen" => above(">", 1),
        _ => last("╻").or_else(|| above("❯", 1)),
    };
    found.expect("a composer")
}

#[test]
fn pm_17_dialog_in_an_answer_above_a_composer_is_none() {
    let dialogs = dialogs();
    let mut judged = 0;
    for (program, first, others) in ANSWERS {
        let profile = builtin(program).expect("built in");
        for (name, wanted) in recordings(program) {
            let look = shown(&recording(program, &name), &wanted);
            let before = judge(&profile, &look);
            if before.state == ScreenState::Unknown || before.composer == Composer::Unknown {
                continue;
            }
            let row = composer_row(program, &look.rows);
            if row == 0 {
                continue;
            }
            for (dialog, rows) in &dialogs {
                let mut look = look.clone();
                look.rows.splice(row..row, written(rows, first, others));
                let found = judge(&profile, &look);
                // An error or a limit is over once something stands below it.
                let stays = matches!(before.state, ScreenState::Idle | ScreenState::Working);
                let fits = found.state.takes_input() && (!stays || found.state == before.state);
                assert!(fits, "{program}/{name} with {dialog}: {} {}", found.state, found.rule);
                judged += 1;
            }
        }
    }
    assert!(judged > 1000, "{judged}");
}

#[test]
fn pm_17_dialog_in_a_draft_is_none() {
    for (program, typed, first, others) in DRAFTS {
        let profile = builtin(program).expect("built in");
        let look = shown(&recording(program, "draft"), &toml::Table::new());
        let row = look.rows.iter().rposition(|row| row.contains(typed)).expect("a draft");
        for (dialog, rows) in dialogs() {
            let mut look = look.clone();
            look.rows.splice(row..=row, written(&rows, first, others));
            let found = judge(&profile, &look);
            let holds = matches!(found.composer, Composer::Holds(_));
            let fits = found.state == ScreenState::Idle && holds;
            assert!(fits, "{program} with {dialog}: {} {}", found.state, found.rule);
        }
    }
}

/// The agent cannot change what a real dialog is about.
#[test]
fn sec_04_dialog_in_an_answer_above_a_dialog_changes_nothing() {
    let dialogs = dialogs();
    for (program, first, others) in ANSWERS {
        let profile = builtin(program).expect("built in");
        for (name, wanted) in recordings(program) {
            let look = shown(&recording(program, &name), &wanted);
            let before = judge(&profile, &look);
            let of_agent = ["dialog:permission", "dialog:menu", "dialog:model", "dialog:question"];
            if !of_agent.contains(&before.state.to_string().as_str()) {
                continue;
            }
            for (dialog, rows) in &dialogs {
                let mut look = look.clone();
                let answer = written(rows, first, others);
                look.rows.splice(0..0, answer.into_iter().chain([String::new()]));
                let found = judge(&profile, &look);
                let asked = (&found.rule, &found.asked);
                assert_eq!(asked, (&before.rule, &before.asked), "{program}/{name} with {dialog}");
            }
        }
    }
}

/// In tmux, the spinner of qwen is `.` or `..`. In a narrow pane, the hint is a row of its own.
/// Messages that wait for the end of the turn follow. Drawn as in its code.
#[test]
fn st_01_qwen_works_with_each_spinner_and_at_each_width() {
    let qwen = builtin("qwen").expect("built in");
    let working = shown(&recording("qwen", "working"), &toml::Table::new());
    let row = working.rows.iter().rposition(|row| row.contains("esc to cancel")).expect("a hint");
    for (state, rows) in [
        ("working", &["  .  Thinking (0s · esc to cancel)"][..]),
        ("working", &["  .. Thinking (1m 2s · ↓ 5 tokens · esc to cancel)"][..]),
        ("working", &["  .  Thinking", "  (3s · esc to cancel)"][..]),
        ("working", &["  ⠴ (3s · esc to cancel)", "", "  say hello", "  Press ↑ to edit"][..]),
        ("idle", &["  ◆ Thinking (3s · esc to cancel)", "    (3s · esc to cancel)"][..]),
    ] {
        let mut look = working.clone();
        look.rows.splice(row..=row, rows.iter().map(|row| (*row).to_owned()));
        assert_eq!(judge(&qwen, &look).state.to_string(), state, "{rows:?}");
    }
}

/// The questions of these agents are not recorded: they are drawn here as in the code of the
/// programs.
#[test]
fn pm_05_question_of_an_agent_waits_for_a_person() {
    let qwen = "  > ask\n  ? AskUserQuestion Ask ←\n\n     Format\n\n     Which one?\n\n     \
                ❯ 1. JSON\n          A text\n       2. Type something...\n\n\n     \
                ↑/↓: Navigate | Enter: Select | Esc: Cancel\n\n  \
                ⠏ Waiting for user confirmation...\n";
    let opencode = "     I ask.\n\n  ┃\n  ┃  Which one?\n  ┃\n  ┃  1. JSON\n  ┃     A text\n  \
                    ┃  2. Type your own answer\n  ┃\n  ┃  ↑↓ select  enter submit  esc dismiss\n  ┃\n";
    let gemini = "✦ I ask.\n╭───────────╮\n│ Answer Questions │\n│ Which one? │\n│ │\n\
                  │ ● 1. JSON │\n│   2. Enter a custom value │\n│ │\n\
                  │ Enter to select · ↑/↓ to navigate · Esc to cancel │\n╰───────────╯\n";
    for (program, screen, question) in [
        ("qwen", qwen, "Format Which one? ❯ 1. JSON A text 2. Type something..."),
        ("opencode", opencode, "Which one? 1. JSON A text 2. Type your own answer"),
        ("gemini", gemini, "Answer Questions Which one? ● 1. JSON 2. Enter a custom value"),
    ] {
        let found = judge(&builtin(program).expect("built in"), &Screenshot::of_text(screen));
        let asked = found.asked.map(|asked| asked.text);
        assert_eq!(found.state.to_string(), "dialog:question", "{program}: {}", found.rule);
        assert_eq!(asked.as_deref(), Some(question), "{program}");
    }
}
