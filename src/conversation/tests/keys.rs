//! Keys: the composer, the completion of commands, and answers to questions.

use super::*;
use ConversationAction::{Answer, Cancel, Leave, Send};

/// Presses keys named as in `"a b Left Ctrl-w Alt-Enter"`; `_` is a space.
fn press(stage: &mut Stage, keys: &str) -> Vec<ConversationAction> {
    let mut actions = Vec::new();
    for key in keys.split_whitespace() {
        let mut modifiers = KeyModifiers::NONE;
        let mut name = key;
        for (prefix, modifier) in [("Ctrl-", KeyModifiers::CONTROL), ("Alt-", KeyModifiers::ALT)] {
            if let Some(rest) = name.strip_prefix(prefix) {
                (name, modifiers) = (rest, modifiers | modifier);
            }
        }
        let code = match name {
            "Enter" => KeyCode::Enter,
            "Esc" => KeyCode::Esc,
            "Tab" => KeyCode::Tab,
            "Left" => KeyCode::Left,
            "Right" => KeyCode::Right,
            "Up" => KeyCode::Up,
            "Down" => KeyCode::Down,
            "Home" => KeyCode::Home,
            "End" => KeyCode::End,
            "Backspace" => KeyCode::Backspace,
            "Delete" => KeyCode::Delete,
            "_" => KeyCode::Char(' '),
            word if word.chars().count() > 1 => {
                word.chars().for_each(|c| drop(stage.key(KeyCode::Char(c))));
                continue;
            }
            c => KeyCode::Char(c.chars().next().unwrap()),
        };
        actions.extend(stage.press(code, modifiers));
    }
    actions
}

#[test]
fn editing_keys_change_the_text() {
    for (keys, expected) in [
        ("abc", "|abc"),
        ("abc Left Left x", "axbc"),
        ("abc Home x End y", "xabcy"),
        ("abc Ctrl-a x Ctrl-e y", "xabcy"),
        ("one _ two Ctrl-w", "one "),
        ("one _ two _ Ctrl-w", "one "),
        ("one _ two Alt-Backspace x", "one x"),
        ("one _ two Alt-b x", "one xtwo"),
        ("one _ two Ctrl-Left Ctrl-Left x", "xone two"),
        ("one _ two Home Alt-f x", "onex two"),
        ("one _ two Home Ctrl-Right Ctrl-Right x", "one twox"),
        ("abc Left Ctrl-u", "c"),
        ("abc Left Ctrl-k", "ab"),
        ("abc Left Backspace", "ac"),
        ("abc Ctrl-h", "ab"),
        ("abc Left Delete", "ab"),
        ("a Alt-Enter b", "a\nb"),
        ("a Ctrl-j b", "a\nb"),
        ("ab Alt-Enter cd Up x", "abx\ncd"),
        ("ab Alt-Enter cd Up Home Down x", "ab\nxcd"),
        ("ab Alt-Enter cd Ctrl-u", "ab\n"),
        ("ab Alt-Enter cd Ctrl-a Ctrl-k", "ab\n"),
        ("e \u{301} Left x", "xe\u{301}"),
        ("e \u{301} Backspace x", "x"),
        ("漢 字 Left x", "漢x字"),
        ("Ctrl-x Alt-x Esc Tab F", "F"),
    ] {
        let mut stage = Stage::ready(40, 20);
        assert_eq!(press(&mut stage, keys), [], "{keys}");
        assert_eq!(stage.conversation.editor.text(), expected.trim_start_matches('|'), "{keys}");
    }
}

#[test]
fn enter_sends_the_text_and_clears_the_composer() {
    let mut stage = Stage::ready(40, 20);
    assert_eq!(press(&mut stage, "Enter _ Enter"), []);
    assert_eq!(press(&mut stage, "hi Alt-Enter there Enter"), [Send(" hi\nthere".to_owned())]);
    assert_eq!(stage.bottom(1), ">");
}

#[test]
fn history_is_browsed_and_keeps_changes_until_a_text_is_sent() {
    let mut stage = Stage::ready(40, 20);
    press(&mut stage, "one Enter two Enter draft");
    for (keys, expected) in [
        ("Up", "two"),
        ("x Up", "one"),
        ("Up", "one"),
        ("Down", "twox"),
        ("Down", "draft"),
        ("Down", "draft"),
        ("Up", "twox"),
    ] {
        press(&mut stage, keys);
        assert_eq!(stage.conversation.editor.text(), expected, "{keys}");
    }
    assert_eq!(press(&mut stage, "Enter"), [Send("twox".to_owned())]);
    press(&mut stage, "Up Up");
    assert_eq!(stage.conversation.editor.text(), "two");
}

#[test]
fn paste_is_inserted_as_it_is_and_scrolls() {
    let mut stage = Stage::ready(40, 20);
    press(&mut stage, "a");
    let lines = (1..=9).map(|n| format!("line\t{n}\r\n")).collect::<String>();
    stage.input(Event::Paste(lines));
    assert_eq!(stage.bottom(4), "↑ line    6\n  line    7\n  line    8\n  line    9");
    press(&mut stage, "Up Up Up Up Up Up Up Up");
    assert_eq!(stage.bottom(5), "↑ line    2\n  line    3\n  line    4\n  line    5\n↓ line    6");
    let sent = press(&mut stage, "Enter");
    let expected = (1..=9).map(|n| format!("line\t{n}\n")).collect::<String>();
    assert_eq!(sent, [Send(format!("a{expected}"))]);
}

#[test]
fn long_line_wraps_and_arrows_follow_its_rows() {
    let mut stage = Stage::ready(13, 20);
    press(&mut stage, "abcdefghijklmno");
    assert_eq!(stage.bottom(2), "> abcdefghij\n  klmno");
    press(&mut stage, "Up x");
    assert_eq!(stage.conversation.editor.text(), "abcdexfghijklmno");
}

#[test]
fn commands_are_completed() {
    for (keys, text) in [
        ("/st Tab", "/status "),
        ("/st Enter", "/status "),
        ("/ Down Tab", "/stats "),
        ("/ Up Tab", "/compact "),
        ("/st Esc Tab", "/st"),
        ("/act Tab", "/compact "),
        ("x/st Tab", "x/st"),
        ("/st _ Tab", "/st "),
    ] {
        let mut stage = Stage::ready(40, 20);
        stage.report(commands(&["status", "stats", "compact"]));
        assert_eq!(press(&mut stage, keys), [], "{keys}");
        assert_eq!(stage.conversation.editor.text(), text, "{keys}");
    }
    let mut stage = Stage::ready(40, 20);
    stage.report(commands(&["status", "stats", "compact"]));
    assert_eq!(press(&mut stage, "/stats Enter"), [Send("/stats".to_owned())]);
    assert_eq!(press(&mut stage, "/nothing Enter"), [Send("/nothing".to_owned())]);
    assert_eq!(press(&mut stage, "/st Esc Enter"), [Send("/st".to_owned())]);
}

#[test]
fn list_of_commands_shows_five_around_the_chosen_one() {
    let mut stage = Stage::ready(30, 20);
    stage.report(commands(&["c1", "c2", "c3", "c4", "c5", "c6", "d"]));
    press(&mut stage, "/ c Down Down Down Down Down");
    let rows = stage.screen();
    let list: Vec<&str> =
        rows.iter().filter(|row| row.contains("about")).map(|r| r.trim()).collect();
    let expected =
        ["/c2  about c2", "/c3  about c3", "/c4  about c4", "/c5  about c5", "› /c6  about c6"];
    assert_eq!(list, expected);
    press(&mut stage, "Esc");
    assert_eq!(stage.screen(), ["ada · idle", "> /c"]);
}

#[test]
fn escape_cancels_only_a_running_turn() {
    let mut stage = Stage::ready(40, 20);
    stage.report(commands(&["status"]));
    assert_eq!(press(&mut stage, "Esc"), []);
    stage.prompt("go");
    assert_eq!(press(&mut stage, "/s Esc"), []);
    assert_eq!(press(&mut stage, "Esc"), [Cancel]);
    assert_eq!(stage.bottom(2), "ada · cancelling\n> /s");
}

#[test]
fn control_c_clears_then_leaves_if_pressed_twice_within_2_s() {
    let mut stage = Stage::ready(40, 20);
    assert_eq!(press(&mut stage, "text Ctrl-c"), []);
    assert_eq!(stage.screen(), ["ada · idle", ">"]);
    assert_eq!(press(&mut stage, "Ctrl-c"), []);
    assert_eq!(stage.screen(), ["Ctrl-C again leaves", ">"]);
    assert_eq!(stage.conversation.next_frame(stage.now), Some(2000));
    stage.wait(2000);
    assert_eq!(stage.screen(), ["ada · idle", ">"]);
    assert_eq!(press(&mut stage, "Ctrl-c"), []);
    stage.wait(1999);
    assert_eq!(press(&mut stage, "Ctrl-c"), [Leave]);
    press(&mut stage, "Up");
    assert_eq!(stage.conversation.editor.text(), "text");
}

#[test]
fn keys_answer_the_open_question() {
    for (key, option) in [("y", "once"), ("n", "no"), ("1", "always"), ("2", "once"), ("3", "no")] {
        let mut stage = Stage::ready(60, 20);
        stage.prompt("go");
        stage.report(SessionReport::Asked(touch(7)));
        let answer = Answer { id: QuestionId(7), option: option.to_owned() };
        assert_eq!(press(&mut stage, key), [answer], "{key}");
        assert_eq!(press(&mut stage, key), [], "the question is answered");
    }
}

#[test]
fn other_keys_are_text_while_a_question_is_open() {
    for keys in ["4", "0", "x", "Y", "x y", "x 1", "_ n"] {
        let mut stage = Stage::ready(60, 20);
        stage.report(SessionReport::Asked(touch(7)));
        assert_eq!(press(&mut stage, keys), [], "{keys}");
        assert!(!stage.conversation.editor.text().is_empty(), "{keys}");
    }
}

#[test]
fn y_does_not_choose_between_two_options_that_allow_once() {
    let mut stage = Stage::ready(60, 20);
    let mut asked = touch(7);
    asked.options[0].kind = OptionKind::AllowOnce;
    stage.report(SessionReport::Asked(asked));
    assert!(stage.screen().contains(&"  n reject  1–3".to_owned()), "{:?}", stage.screen());
    assert_eq!(press(&mut stage, "y"), []);
}

#[test]
fn resize_event_changes_the_size() {
    let mut stage = Stage::ready(60, 20);
    stage.input(Event::Resize(40, 10));
    assert_eq!(stage.conversation.screen.size(), TerminalSize { rows: 10, cols: 40 });
}
