//! Properties of any sequence of reports, keys and sizes.

use acp::{AgentFailure, FailureKind};
use proptest::prelude::*;

use super::*;

/// Something that happens to a conversation.
#[derive(Debug, Clone)]
enum Happening {
    Text(String),
    SessionReport(SessionReport),
    Prompt(String),
    Mail(String, String),
    Decided(u64, String),
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Resize(u16, u16),
    Wait(u64),
    Frame,
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z `*_#>|\\-0-9.\n\t]{0,60}",
        "\\PC{0,30}",
        any::<String>(),
        Just("```\ncode\n```\n".to_owned()),
        Just("| a | b |\n|---|---|\n| 漢字 | ".to_owned()),
        Just("- a\n  - b\n\n    c\n".to_owned()),
    ]
}

fn call() -> impl Strategy<Value = AgentToolCall> {
    let status = prop_oneof![
        Just(ToolStatus::Pending),
        Just(ToolStatus::InProgress),
        Just(ToolStatus::Completed),
        Just(ToolStatus::Failed),
    ];
    (0..6u8, words(), status, words(), words()).prop_map(|(id, title, status, old, new)| {
        let mut call = tool(&id.to_string(), ToolKind::Edit, &title, status);
        call.input = json!({ "command": new });
        call.content = vec![
            ToolContent::Text(new.clone()),
            ToolContent::Diff(Diff { path: title, old: Some(old), new }),
        ];
        call
    })
}

fn report() -> impl Strategy<Value = SessionReport> {
    prop_oneof![
        Just(ready()),
        Just(SessionReport::Initialized(acp::AgentInfo::default())),
        words().prop_map(SessionReport::User),
        words().prop_map(SessionReport::Thought),
        words().prop_map(SessionReport::Notice),
        words().prop_map(SessionReport::Model),
        call().prop_map(SessionReport::Tool),
        (0..3u64, call()).prop_map(|(id, call)| SessionReport::Asked(question(id, call))),
        (0..3u64).prop_map(|id| SessionReport::Withdrawn { id: QuestionId(id) }),
        prop::collection::vec(words(), 0..9).prop_map(|texts| {
            SessionReport::Plan(
                texts.iter().map(|text| entry(text, PlanState::InProgress)).collect(),
            )
        }),
        prop::collection::vec(words(), 0..9).prop_map(|names| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            commands(&names)
        }),
        Just(ended(Outcome::Done)),
        words().prop_map(|said| {
            ended(Outcome::Failed(AgentFailure { kind: FailureKind::Other, said }))
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(used, size)| SessionReport::Context { used, size }),
    ]
}

/// Keys that send or delete nothing.
fn harmless_key() -> impl Strategy<Value = (KeyCode, KeyModifiers)> {
    let code = prop_oneof![
        any::<char>().prop_map(KeyCode::Char),
        "[a-z/0-9 ]".prop_map(|text| KeyCode::Char(text.chars().next().unwrap())),
        Just(KeyCode::Left),
        Just(KeyCode::Right),
        Just(KeyCode::Home),
        Just(KeyCode::End),
        Just(KeyCode::Up),
        Just(KeyCode::Down),
        Just(KeyCode::Esc),
    ];
    code.prop_map(|code| (code, KeyModifiers::NONE))
}

fn any_key() -> impl Strategy<Value = (KeyCode, KeyModifiers)> {
    let other = prop_oneof![
        Just((KeyCode::Enter, KeyModifiers::NONE)),
        Just((KeyCode::Enter, KeyModifiers::ALT)),
        Just((KeyCode::Tab, KeyModifiers::NONE)),
        Just((KeyCode::Backspace, KeyModifiers::NONE)),
        Just((KeyCode::Delete, KeyModifiers::NONE)),
        Just((KeyCode::Left, KeyModifiers::ALT)),
        Just((KeyCode::Right, KeyModifiers::CONTROL)),
        "[acekuwj]"
            .prop_map(|text| (KeyCode::Char(text.chars().next().unwrap()), KeyModifiers::CONTROL)),
    ];
    prop_oneof![harmless_key(), other]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => words().prop_map(Happening::Text),
        4 => report().prop_map(Happening::SessionReport),
        1 => words().prop_map(Happening::Prompt),
        1 => (words(), words()).prop_map(|(name, text)| Happening::Mail(name, text)),
        1 => (0..3u64, words()).prop_map(|(id, words)| Happening::Decided(id, words)),
        6 => any_key().prop_map(|(code, modifiers)| Happening::Key(code, modifiers)),
        1 => words().prop_map(Happening::Paste),
        2 => (1..130u16, 1..50u16).prop_map(|(cols, rows)| Happening::Resize(cols, rows)),
        1 => any::<u32>().prop_map(|millis| Happening::Wait(millis.into())),
        4 => Just(Happening::Frame),
    ]
}

/// Lets something happen. The frame is not drawn on the terminal, so its bytes are only checked.
fn apply(conversation: &mut Conversation, happening: Happening, now: &mut u64) {
    match happening {
        Happening::Text(text) => {
            conversation.report(&SessionReport::Text { message: None, text }, *now)
        }
        Happening::SessionReport(report) => conversation.report(&report, *now),
        Happening::Prompt(text) => conversation.prompt(Sender::Typed, &text, *now),
        Happening::Mail(name, text) => conversation.prompt(Sender::Mail(name), &text, *now),
        Happening::Decided(id, words) => conversation.decided(QuestionId(id), &words),
        Happening::Key(code, modifiers) => {
            conversation.input(&Event::Key(KeyEvent::new(code, modifiers)), *now);
        }
        Happening::Paste(text) => drop(conversation.input(&Event::Paste(text), *now)),
        Happening::Resize(cols, rows) => conversation.resize(TerminalSize { rows, cols }, *now),
        Happening::Wait(millis) => *now += millis,
        Happening::Frame => {
            check_sequences(&conversation.frame(*now));
            assert!(conversation.next_frame(*now).is_none_or(|next| next > *now));
            if conversation.settling(*now).is_some() {
                return;
            }
            let size = conversation.screen.size();
            let drawn = conversation.screen.drawn();
            assert!(drawn.rows.len() <= size.live_rows(), "{drawn:?}");
            assert!(drawn.rows.iter().all(|row| row.width() <= size.room()), "{drawn:?}");
            assert!(drawn.cursor_row < drawn.rows.len() && drawn.cursor_column < size.room());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_can_happen_without_a_panic(
        happenings in prop::collection::vec(happening(), 0..60),
    ) {
        let size = TerminalSize { rows: 24, cols: 80 };
        let mut conversation = Conversation::new(Options::default(), size);
        let mut now = 0;
        for happening in happenings {
            apply(&mut conversation, happening, &mut now);
        }
        check_sequences(&conversation.finish());
    }

    #[test]
    fn text_of_the_composer_is_not_lost(
        happenings in prop::collection::vec(
            prop_oneof![
                report().prop_map(Happening::SessionReport),
                harmless_key().prop_map(|(code, modifiers)| Happening::Key(code, modifiers)),
                words().prop_map(Happening::Paste),
                (1..130u16, 1..50u16).prop_map(|(cols, rows)| Happening::Resize(cols, rows)),
                Just(Happening::Frame),
            ],
            0..40,
        ),
    ) {
        let size = TerminalSize { rows: 24, cols: 80 };
        let mut conversation = Conversation::new(Options::default(), size);
        let mut now = 0;
        let mut typed = 0;
        for happening in happenings {
            let is_asked = !conversation.questions.is_empty();
            typed += match &happening {
                Happening::Paste(text) => {
                    model::text::line_breaks(text).chars().count()
                }
                Happening::Key(KeyCode::Char(_), _) if !is_asked => 1,
                Happening::Key(KeyCode::Char(_), _) => {
                    let before = conversation.editor.text().chars().count();
                    apply(&mut conversation, happening, &mut now);
                    typed += conversation.editor.text().chars().count() - before;
                    continue;
                }
                _ => 0,
            };
            apply(&mut conversation, happening, &mut now);
            prop_assert_eq!(conversation.editor.text().chars().count(), typed);
        }
    }

    #[test]
    fn streamed_words_are_all_printed(
        pieces in prop::collection::vec("[a-z \n]{0,12}", 0..80),
        cols in 8..100u16,
    ) {
        let mut stage = Stage::ready(cols, 10);
        for piece in &pieces {
            stage.text(piece);
        }
        let bytes = stage.conversation.finish();
        stage.feed(&bytes);
        let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
        prop_assert_eq!(letters(&stage.history().concat()), letters(&pieces.concat()));
    }

    #[test]
    fn resizes_never_leave_a_part_of_the_live_region(
        steps in prop::collection::vec((20..110u16, 24..40u16, "[a-z漢 ]{0,9}"), 1..12),
    ) {
        let mut stage = Stage::ready(80, 24);
        stage.prompt("go");
        let call = tool("1", ToolKind::Execute, &"make ".repeat(30), ToolStatus::InProgress);
        stage.report(SessionReport::Tool(call));
        for (cols, rows, text) in steps {
            stage.resize(cols, rows);
            stage.draw();
            stage.text(&text);
            stage.wait(1000);
            let all = stage.history();
            for begin in ["ada · ", ">", "• run make"] {
                let is_part = |row: &&String| row.starts_with(begin) && **row != "> go";
                prop_assert_eq!(all.iter().filter(is_part).count(), 1, "{}", all.join("\n"));
            }
        }
    }
}
