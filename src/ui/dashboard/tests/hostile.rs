//! Names, messages and screens of other programs cannot send anything to the terminal (SEC-10).

use std::sync::Arc;

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde_json::json;

use super::super::layout::Panel;
use super::{Dashboard, NOW, THEME, Theme, dashboard, message, press, sample};
use ops::views::screen::ScreenUpdate;
use strum::VariantArray;

const ATTACK: &str =
    "a\u{1b}]0;title\u{7}b\u{1b}[2J\u{9b}3J\u{202e}c\u{1b}P1$r\u{1b}\\\u{1b}[?1049l\r\n\u{200f}d";

/// A team whose texts are all attacks.
fn attacked(theme: Theme) -> Dashboard {
    let mut snapshot = sample();
    for member in &mut snapshot.status.members {
        member.state.reason = Some(ATTACK.to_owned());
        member.role = Some(ATTACK.to_owned());
        member.activity = Some(ATTACK.to_owned());
        member.color = Some(ATTACK.to_owned());
    }
    let mut tasks = (*snapshot.tasks).clone();
    for task in &mut tasks {
        task.subject = ATTACK.to_owned();
        task.owner = Some(ATTACK.to_owned());
        task.reason = Some(ATTACK.to_owned());
    }
    snapshot.tasks = Arc::new(tasks);
    let request = &mut snapshot.requests[0];
    request.summary = ATTACK.to_owned();
    request.body = json!({"type": "permission_request", "request_id": "perm-1", "tool_name": ATTACK,
        "description": ATTACK, "input": {"command": ATTACK, ATTACK: ATTACK}});
    snapshot.messages = Arc::new(vec![message(ATTACK, "ada", ATTACK, 5_000)]);
    let mut events = (*snapshot.events).clone();
    for event in &mut events {
        event.detail =
            json!({"subject": ATTACK, "text": ATTACK}).as_object().cloned().expect("an object");
    }
    snapshot.events = Arc::new(events);
    let mut dashboard = dashboard(theme);
    dashboard.set_snapshot(snapshot);
    let member = dashboard.member.clone().expect("a member");
    let bytes = ATTACK.repeat(30).into_bytes();
    dashboard.set_screen(&member, ScreenUpdate::Whole { rows: 5, cols: 30, bytes });
    dashboard
}

#[test]
fn sec_10_no_cell_holds_a_control_character() {
    for panel in Panel::VARIANTS {
        for keys in ["", "K", "Enter", "e", "v", "y"] {
            let mut dashboard = attacked(THEME);
            dashboard.show(*panel);
            press(&mut dashboard, keys);
            let area = Rect::new(0, 0, 120, 40);
            let buffer = drawn(&mut dashboard, area);
            for cell in &buffer.content {
                let symbol = cell.symbol();
                let is_bad = |c: char| {
                    c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{200f}'
                };
                assert!(!symbol.chars().any(is_bad), "{panel:?} {keys}: {symbol:?}");
            }
        }
    }
}

fn drawn(dashboard: &mut Dashboard, area: Rect) -> Buffer {
    let backend = ratatui::backend::TestBackend::new(area.width, area.height);
    let mut terminal = Terminal::new(backend).expect("memory");
    terminal.draw(|frame| dashboard.draw(frame, NOW)).expect("memory");
    terminal.backend().buffer().clone()
}

#[test]
fn sec_10_bytes_for_the_terminal_contain_only_our_sequences() {
    let mut dashboard = attacked(THEME);
    let mut bytes = Vec::new();
    {
        let viewport = Viewport::Fixed(Rect::new(0, 0, 100, 30));
        let backend = CrosstermBackend::new(&mut bytes);
        let mut terminal =
            Terminal::with_options(backend, TerminalOptions { viewport }).expect("memory");
        terminal.draw(|frame| dashboard.draw(frame, NOW)).expect("memory");
        terminal.backend_mut().flush().expect("memory");
    }
    let text = String::from_utf8(bytes).expect("UTF-8");
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once('\u{1b}') {
        let sequence = after.strip_prefix('[').unwrap_or_else(|| panic!("ESC {after:.20?}"));
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).expect("an end");
        let is_ours = matches!(&sequence[end..=end], "m" | "H")
            || ["?25l", "?25h"].contains(&&sequence[..=end]);
        assert!(is_ours, "ESC [ {}", &sequence[..=end]);
        rest = &sequence[end + 1..];
    }
    assert!(!text.contains(['\u{7}', '\u{9b}', '\u{202e}', '\r', '\n']));
}

#[test]
fn no_color_draws_no_colour_even_from_a_members_screen() {
    let mut dashboard = attacked(Theme { color: false, ..THEME });
    let member = dashboard.member.clone().expect("a member");
    let bytes = b"\x1b[31;44mred on blue".to_vec();
    dashboard.set_screen(&member, ScreenUpdate::Whole { rows: 5, cols: 30, bytes });
    let buffer = drawn(&mut dashboard, Rect::new(0, 0, 120, 40));
    let reset = ratatui::style::Color::Reset;
    assert!(buffer.content.iter().all(|cell| cell.fg == reset && cell.bg == reset));
}
