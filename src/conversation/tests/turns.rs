//! Prompts, tool calls, thoughts, plans, questions and the ends of turns.

use acp::{AgentFailure, FailureKind};

use super::*;

fn failed(kind: FailureKind, said: &str) -> SessionReport {
    ended(Outcome::Failed(AgentFailure { kind, said: said.to_owned() }))
}

#[test]
fn prompt_shows_its_sender_and_folds_a_long_text() {
    let mut stage = Stage::ready(40, 30);
    let long = (1..=20).map(|n| format!("line {n}\n")).collect::<String>();
    stage.conversation.prompt(Sender::Mail("team-lead".to_owned()), &long, 0);
    stage.prompt("thanks");
    let rows = stage.history();
    assert_eq!(rows[..2], ["✉ team-lead", "  line 1"]);
    assert_eq!(rows[12..16], ["  line 12", "  … 8 more lines", "", "> thanks"]);
}

#[test]
fn running_tool_counts_and_is_printed_once_when_it_ends() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("go");
    let call = |status| SessionReport::Tool(tool("1", ToolKind::Execute, "`make`", status));
    stage.report(call(ToolStatus::Pending));
    assert_eq!(stage.conversation.next_frame(stage.now), Some(1000));
    stage.wait(2500);
    assert!(stage.screen().contains(&"• run make  2 s".to_owned()), "{:?}", stage.screen());
    stage.report(call(ToolStatus::Completed));
    stage.report(call(ToolStatus::Completed));
    let rows = stage.history();
    let shown: Vec<&String> = rows.iter().filter(|row| row.contains("make")).collect();
    assert_eq!(shown, ["✓ run make  2.5 s"]);
}

#[test]
fn tool_that_ends_inside_a_paragraph_does_not_divide_it() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("go");
    stage.report(SessionReport::Tool(tool("1", ToolKind::Read, "Read a", ToolStatus::Pending)));
    stage.text("One senten");
    stage.report(SessionReport::Tool(tool("1", ToolKind::Read, "Read a", ToolStatus::Completed)));
    stage.text("ce.\n\nNext.");
    stage.report(ended(Outcome::Done));
    let rows = stage.history();
    assert_eq!(rows[2..7], ["One sentence.", "", "✓ Read a", "", "Next."]);
}

#[test]
fn failed_tool_shows_the_end_of_its_text() {
    let mut stage = Stage::ready(40, 20);
    let mut call = tool("1", ToolKind::Fetch, "", ToolStatus::Failed);
    call.content = vec![ToolContent::Text("1\n2\n3\n```\n4\n```\n\n".to_owned())];
    stage.report(SessionReport::Tool(call));
    assert_eq!(stage.history()[..4], ["✗ fetch", "  2", "  3", "  4"]);
}

#[test]
fn long_change_shows_twelve_lines_and_counts_all() {
    let mut stage = Stage::ready(40, 30);
    let mut call = tool("1", ToolKind::Edit, "write", ToolStatus::Completed);
    let new = (1..=30).map(|n| format!("{n}\n")).collect::<String>();
    call.content = vec![ToolContent::Diff(Diff { path: "/w/a.txt".to_owned(), old: None, new })];
    stage.report(SessionReport::Tool(call));
    let rows = stage.history();
    assert_eq!(rows[..3], ["✓ edit write", "  a.txt  +30 −0", "  + 1"]);
    assert_eq!(rows[13..15], ["  + 12", "    … 18 more changed lines"]);
}

#[test]
fn distant_changes_are_separated_and_near_ones_share_context() {
    let mut stage = Stage::ready(40, 30);
    let text = |lines: &[usize]| {
        let line =
            |n: usize| if lines.contains(&n) { "new\n".to_owned() } else { format!("{n}\n") };
        (1..=30).map(line).collect::<String>()
    };
    let mut call = tool("1", ToolKind::Edit, "edit a", ToolStatus::Completed);
    let diff = Diff { path: "a".to_owned(), old: Some(text(&[])), new: text(&[3, 5, 20]) };
    call.content = vec![ToolContent::Diff(diff)];
    stage.report(SessionReport::Tool(call));
    let expected = [
        "✓ edit a  +3 −3",
        "    2",
        "  - 3",
        "  + new",
        "    4",
        "  - 5",
        "  + new",
        "    6",
        "    ⋯",
        "    19",
        "  - 20",
        "  + new",
        "    21",
    ];
    assert_eq!(stage.history()[..13], expected);
}

#[test]
fn thought_is_folded_to_one_line() {
    let mut stage = Stage::ready(40, 20);
    stage.prompt("go");
    stage.report(SessionReport::Thought("first\nsecond li".to_owned()));
    stage.report(SessionReport::Thought("ne".to_owned()));
    assert!(stage.screen().contains(&"thinking: second line".to_owned()), "{:?}", stage.screen());
    stage.wait(61_000);
    stage.text("Answer");
    let rows = stage.history();
    assert_eq!(rows[2..5], ["thought for 1 min 01 s", "", "Answer"]);
    assert!(!rows.iter().any(|row| row.contains("second")), "{rows:?}");
}

#[test]
fn plan_is_printed_once_at_the_end_of_the_turn() {
    let mut stage = Stage::ready(40, 20);
    let plan: Vec<PlanEntry> = (0..9)
        .map(|n| {
            let states = [PlanState::Completed, PlanState::InProgress, PlanState::Pending];
            entry(&format!("step {n}"), states[(n + 1) / 5])
        })
        .collect();
    stage.prompt("go");
    stage.report(SessionReport::Plan(plan.clone()));
    let shown: Vec<String> =
        stage.screen().into_iter().filter(|row| row.contains("step")).collect();
    assert_eq!(shown.len(), 6);
    assert!(shown.contains(&"[>] step 4".to_owned()), "{shown:?}");
    stage.report(ended(Outcome::Done));
    stage.prompt("again");
    stage.report(SessionReport::Plan(plan));
    stage.report(ended(Outcome::Done));
    let count = stage.history().iter().filter(|row| row.contains("step 0")).count();
    assert_eq!(count, 1);
}

#[test]
fn question_shows_command_and_options_until_it_is_decided() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("go");
    stage.report(SessionReport::Asked(touch(7)));
    let expected = "? run a command\n  $ touch made.txt\n  1 Always allow  2 Allow once  \
        3 Reject\n  y allow  n reject  1–3\n\nada · waits for your answer\n>";
    assert_eq!(stage.bottom(7), expected);
    assert_eq!(stage.conversation.next_frame(stage.now), None);
    stage.conversation.decided(QuestionId(7), "allowed by team-lead");
    stage.conversation.decided(QuestionId(7), "allowed by team-lead");
    stage.draw();
    let expected = "\n✓ allowed: touch made.txt (by team-lead)\n\nada · working 0 s\n>";
    assert_eq!(stage.bottom(5), expected);
}

#[test]
fn question_without_a_command_shows_its_input() {
    let mut stage = Stage::ready(40, 20);
    let mut call = tool("m", ToolKind::Other, "team_echo", ToolStatus::Pending);
    call.input = json!({ "text": "hello", "times": 2 });
    stage.report(SessionReport::Asked(question(1, call)));
    assert_eq!(stage.screen()[..3], ["? tool team_echo", "  text: hello", "  times: 2"]);
}

#[test]
fn several_questions_are_asked_one_after_the_other() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("go");
    stage.report(SessionReport::Asked(touch(1)));
    stage.report(SessionReport::Asked(question(2, edit("e", ToolStatus::Pending))));
    assert!(stage.screen().contains(&"? run a command  (1 more waits)".to_owned()));
    stage.report(SessionReport::Withdrawn { id: QuestionId(1) });
    let rows = stage.screen();
    assert!(rows.contains(&"question withdrawn: touch made.txt".to_owned()), "{rows:?}");
    assert!(rows.contains(&"? Edit src/net/port.rs  +3 −2".to_owned()), "{rows:?}");
}

#[test]
fn plan_of_a_question_is_printed_whole() {
    let mut stage = Stage::ready(40, 12);
    let mut asked =
        question(1, tool("p", ToolKind::SwitchMode, "Approve Plan", ToolStatus::Pending));
    asked.plan = Some((1..=40).map(|n| format!("{n}. step\n")).collect());
    stage.report(SessionReport::Asked(asked));
    let rows = stage.history();
    assert_eq!(rows.iter().filter(|row| row.ends_with(". step")).count(), 40);
    assert!(rows.contains(&"? mode Approve Plan".to_owned()), "{rows:?}");
}

#[test]
fn end_of_a_turn_says_what_has_happened() {
    for (report, line, state) in [
        (ended(Outcome::Done), "done in 12 s · 1.2k tokens in, 345 out · $0.02", "idle"),
        (ended(Outcome::Cancelled), "cancelled after 12 s · 1.2k", "idle"),
        (ended(Outcome::Stopped("max_tokens".to_owned())), "stopped: max tokens after", "idle"),
        (failed(FailureKind::Other, "HTTP 500"), "failed: HTTP 500 after", "failed: HTTP 500"),
        (failed(FailureKind::Limited, "try at 5"), "limit reached: try at 5", "limit reached"),
        (failed(FailureKind::NeedsLogin, "no key"), "needs login: no key", "needs login: no key"),
        (
            failed(FailureKind::TooLong, "413"),
            "conversation too long: 413",
            "conversation too long",
        ),
    ] {
        let mut stage = Stage::ready(80, 24);
        stage.prompt("go");
        stage.wait(12_000);
        stage.report(report);
        let rows = stage.screen();
        assert!(rows.iter().any(|row| row.starts_with(line)), "{line}: {rows:?}");
        assert!(rows.contains(&format!("ada · {state} · $0.02")), "{state}: {rows:?}");
        assert_eq!(stage.conversation.next_frame(stage.now), None);
    }
}

#[test]
fn status_leaves_out_parts_from_the_right() {
    for (cols, line) in [
        (120, "ada · working 0 s · Default · sonnet · context 42% · 2 messages wait"),
        (60, "ada · working 0 s · Default · sonnet · context 42%"),
        (40, "ada · working 0 s · Default · sonnet"),
        (17, "ada · working 0 s"),
        (12, "working 0 s"),
    ] {
        let mut stage = Stage::ready(cols, 20);
        stage.prompt("go");
        let default = SessionMode { id: "d".to_owned(), name: "Default".to_owned() };
        stage.report(SessionReport::Mode { current: "d".to_owned(), available: vec![default] });
        stage.report(SessionReport::Model("sonnet".to_owned()));
        stage.report(SessionReport::Context { used: 42, size: 100 });
        stage
            .conversation
            .set_status(crate::ConversationStatus { queued: 2, ..Default::default() });
        stage.draw();
        assert_eq!(stage.bottom(2), format!("{line}\n>"));
    }
}

#[test]
fn silence_is_shown_unless_a_tool_runs() {
    let mut stage = Stage::ready(80, 20);
    stage.prompt("go");
    let status = crate::ConversationStatus { silent_since: Some(1000), ..Default::default() };
    stage.conversation.set_status(status);
    stage.wait(31_000);
    assert_eq!(stage.bottom(2), "ada · retrying, silent for 30 s\n>");
    stage.report(SessionReport::Tool(tool("1", ToolKind::Execute, "make", ToolStatus::InProgress)));
    assert_eq!(stage.bottom(2), "ada · working 31 s\n>");
}

#[test]
fn replay_prints_only_its_last_lines() {
    let mut stage = Stage::new(60, 20);
    for n in 0..300 {
        stage.report(SessionReport::User(format!("question {n}")));
        stage.text(&format!("answer {n}"));
    }
    assert_eq!(stage.bottom(2), "ada · starting\n>");
    stage.report(ready());
    let rows = stage.history();
    assert_eq!(rows[0], "… earlier conversation not shown");
    assert_eq!(rows.iter().filter(|row| row.starts_with("> question")).count(), 50);
    assert_eq!(rows.iter().filter(|row| **row == "answer 299").count(), 1);
    assert_eq!(stage.bottom(2), "ada · idle\n>");
}

#[test]
fn notice_during_a_replay_is_printed_at_once() {
    let mut stage = Stage::new(60, 20);
    stage.report(SessionReport::User("earlier".to_owned()));
    stage.conversation.notice("starts the agent");
    stage.draw();
    assert_eq!(stage.screen(), ["starts the agent", "", "ada · starting", ">"]);
}

#[test]
fn second_replay_is_not_printed() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("one");
    stage.report(SessionReport::Initialized(acp::AgentInfo::default()));
    stage.report(SessionReport::User("one".to_owned()));
    stage.report(ready());
    assert_eq!(stage.history().iter().filter(|row| **row == "> one").count(), 1);
}

#[test]
fn finish_leaves_only_printed_lines() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("go");
    stage.text("unfinished");
    stage.report(SessionReport::Tool(tool("1", ToolKind::Execute, "make", ToolStatus::InProgress)));
    let bytes = stage.conversation.finish();
    stage.feed(&bytes);
    assert_eq!(stage.history(), ["> go", "", "unfinished", "", "• run make"]);
    assert_eq!(stage.cursor(), (5, 0));
}

#[test]
fn frame_is_empty_if_nothing_has_changed() {
    let mut stage = Stage::ready(60, 20);
    stage.prompt("go");
    assert!(stage.conversation.frame(stage.now).is_empty());
    assert!(stage.conversation.frame(stage.now + 999).is_empty());
    assert!(!stage.conversation.frame(stage.now + 1000).is_empty());
}
