//! Texts of an agent, of mail and of files cannot act on the terminal.

use acp::{AgentFailure, FailureKind};

use super::*;

const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[31mred\rb\u{8}\u{9b}5A\u{202e}c\u{61c}\
    \u{2028}d\u{0}\u{7f}\te\u{1b}P+q\u{1b}\\&#27;[9A";

#[test]
fn hostile_text_only_becomes_visible_marks() {
    // Each frame is checked by the stage.
    let mut stage = Stage::ready(40, 20);
    let text = HOSTILE.to_owned();
    stage.conversation.prompt(Sender::Mail(text.clone()), HOSTILE, 0);
    stage.conversation.notice(HOSTILE);
    stage.draw();
    stage.report(SessionReport::User(text.clone()));
    stage.report(SessionReport::Model(text.clone()));
    stage.report(SessionReport::Thought(text.clone()));
    stage.report(SessionReport::Plan(vec![entry(HOSTILE, PlanState::InProgress)]));
    for source in [
        HOSTILE.to_owned(),
        format!(
            "# {HOSTILE}\n```{HOSTILE}\n{HOSTILE}\n```\n\n| {HOSTILE} |\n|--|\n| `{HOSTILE}` |\n\n[{HOSTILE}](<{HOSTILE}>)\n"
        ),
    ] {
        stage.text(&source);
    }
    let mut call = tool("1", ToolKind::Execute, HOSTILE, ToolStatus::Pending);
    call.input = json!({ "command": HOSTILE });
    call.content = vec![
        ToolContent::Text(text.clone()),
        ToolContent::Diff(Diff {
            path: text.clone(),
            old: Some("x".to_owned()),
            new: text.clone(),
        }),
    ];
    stage.report(SessionReport::Tool(call.clone()));
    let mut asked = question(1, call.clone());
    asked.options[0].name = text.clone();
    asked.plan = Some(text.clone());
    stage.report(SessionReport::Asked(asked));
    stage.conversation.decided(QuestionId(1), &format!("{HOSTILE} by {HOSTILE}"));
    call.status = ToolStatus::Failed;
    stage.report(SessionReport::Tool(call.clone()));
    (call.id, call.status) = ("2".to_owned(), ToolStatus::Completed);
    stage.report(SessionReport::Tool(call));
    stage.report(commands(&[HOSTILE, "x"]));
    stage.type_text("/");
    stage.input(Event::Paste(text.clone()));
    let failure = AgentFailure { kind: FailureKind::Other, said: text.clone() };
    stage.report(ended(Outcome::Failed(failure)));
    stage.report(ended(Outcome::Stopped(text)));
    let rows = stage.history().join("\n");
    assert!(rows.contains("a␛[2J␛]0;title␇␛[31mred"), "{rows}");
}

#[test]
fn emoji_selectors_and_joiners_are_left_out() {
    let mut stage = Stage::ready(40, 20);
    stage.text("❤\u{fe0f} 👩\u{200d}💻 e\u{301} نا\u{200c}ما");
    assert_eq!(stage.screen()[0], "❤ 👩💻 e\u{301} نا\u{200c}ما");
}

#[test]
fn text_without_colour_has_no_attributes() {
    let size = TerminalSize { rows: 20, cols: 40 };
    let mut conversation = Conversation::new(Options::default(), size);
    conversation.report(&ready(), 0);
    conversation.prompt(Sender::Typed, "go", 0);
    let frame = String::from_utf8(conversation.frame(0)).unwrap();
    assert!(frame.contains("> go") && !frame.contains('m'), "{frame:?}");
}
