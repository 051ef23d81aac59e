//! A terminal for tests, and the reports of a scripted conversation.

mod hostile;
mod keys;
mod markdown;
mod properties;
mod resize;
mod screens;
mod turns;

use acp::{
    AgentCommand, AgentQuestion, AgentToolCall, Diff, EndedTurn, OptionKind, Outcome, PlanEntry,
    PlanState, QuestionId, QuestionOption, SessionMode, SessionReport, TokenUsage, ToolContent,
    ToolKind, ToolStatus,
};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;
use unicode_width::UnicodeWidthChar;

use crate::{Conversation, ConversationAction, Options, Sender, TerminalSize};

/// Sequences that a frame may contain, apart from cursor movements.
const SEQUENCES: [&str; 13] = [
    "[?2026h", "[?2026l", "[?25l", "[?25h", "[J", "[K", "[0m", "[1m", "[2m", "[31m", "[32m",
    "[33m", "[36m",
];

/// A conversation on a terminal that wraps its lines again when its width changes, as tmux does.
pub(super) struct Stage {
    pub(super) conversation: Conversation,
    parser: vt100::Parser,
    size: TerminalSize,
    pub(super) now: u64,
}

impl Stage {
    pub(super) fn new(cols: u16, rows: u16) -> Stage {
        let size = TerminalSize { rows, cols };
        let options = Options { name: "ada".to_owned(), color: true, cwd: "/w".to_owned() };
        let conversation = Conversation::new(options, size);
        let parser = vt100::Parser::new(rows, cols, 100_000);
        Stage { conversation, parser, size, now: 0 }
    }

    /// Returns a stage whose session is ready.
    pub(super) fn ready(cols: u16, rows: u16) -> Stage {
        let mut stage = Stage::new(cols, rows);
        stage.report(ready());
        stage
    }

    pub(super) fn report(&mut self, report: SessionReport) {
        self.conversation.report(&report, self.now);
        self.draw();
    }

    pub(super) fn prompt(&mut self, text: &str) {
        self.conversation.prompt(Sender::Typed, text, self.now);
        self.draw();
    }

    pub(super) fn text(&mut self, text: &str) {
        self.report(SessionReport::Text { message: None, text: text.to_owned() });
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.draw();
    }

    pub(super) fn draw(&mut self) {
        let bytes = self.conversation.frame(self.now);
        self.feed(&bytes);
        let rows = self.conversation.screen.drawn().rows.len();
        assert!(rows <= self.size.live_rows(), "{rows} rows of {:?}", self.size);
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        check_sequences(bytes);
        self.parser.process(bytes);
    }

    pub(super) fn input(&mut self, event: Event) -> Vec<ConversationAction> {
        let actions = self.conversation.input(&event, self.now);
        self.draw();
        actions
    }

    pub(super) fn press(
        &mut self,
        code: KeyCode,
        modifiers: KeyModifiers,
    ) -> Vec<ConversationAction> {
        self.input(Event::Key(KeyEvent::new(code, modifiers)))
    }

    pub(super) fn key(&mut self, code: KeyCode) -> Vec<ConversationAction> {
        self.press(code, KeyModifiers::NONE)
    }

    pub(super) fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
    }

    /// The rows of the screen, without the empty ones at its end.
    pub(super) fn screen(&self) -> Vec<String> {
        trimmed(self.parser.screen().rows(0, self.size.cols))
    }

    /// The last rows of the screen as one text.
    pub(super) fn bottom(&self, count: usize) -> String {
        let rows = self.screen();
        rows[rows.len().saturating_sub(count)..].join("\n")
    }

    /// All rows, with those of the scrollback.
    pub(super) fn history(&mut self) -> Vec<String> {
        trimmed(self.all_rows().into_iter().map(|(row, _)| row))
    }

    pub(super) fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    /// Returns all rows, each with whether the terminal has wrapped it.
    fn all_rows(&mut self) -> Vec<(String, bool)> {
        let cols = self.size.cols;
        let screen = self.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut rows = Vec::new();
        for offset in (1..=above).rev() {
            screen.set_scrollback(offset);
            let row = screen.rows(0, cols).next().unwrap();
            rows.push((row, screen.row_wrapped(0)));
        }
        screen.set_scrollback(0);
        let visible = screen.rows(0, cols).enumerate();
        rows.extend(visible.map(|(at, row)| (row, screen.row_wrapped(at as u16))));
        rows
    }

    /// Changes the size of the terminal and of the conversation, and lets it settle.
    pub(super) fn resize(&mut self, cols: u16, rows: u16) {
        self.resize_terminal(cols, rows);
        self.conversation.resize(self.size, self.now);
        self.now += 300;
    }

    /// Changes the size of the terminal, which the conversation does not know yet.
    pub(super) fn resize_terminal(&mut self, cols: u16, rows: u16) {
        let all = self.all_rows();
        let (row, column) = self.cursor();
        let cursor_row = all.len() - usize::from(self.size.rows) + usize::from(row);
        let (mut lines, mut cursor) = (vec![String::new()], (0, 0));
        for (at, (text, is_wrapped)) in all.iter().enumerate() {
            if at == cursor_row {
                let before = width(lines.last().unwrap());
                cursor = (lines.len() - 1, before + usize::from(column));
            }
            lines.last_mut().unwrap().push_str(text);
            if !is_wrapped {
                lines.push(String::new());
            }
        }
        while lines.len() > cursor.0 + 1 && lines.last().unwrap().is_empty() {
            lines.pop();
        }
        self.size = TerminalSize { rows, cols };
        self.parser = vt100::Parser::new(rows, cols, 100_000);
        self.parser.process(lines.join("\r\n").as_bytes());
        let below: usize = lines[cursor.0 + 1..].iter().map(|line| wrapped(line, cols).0).sum();
        let before: String = up_to(&lines[cursor.0], cursor.1);
        let (line_rows, _) = wrapped(&lines[cursor.0], cols);
        let (before_rows, column) = wrapped(&before, cols);
        let up = below + line_rows - before_rows;
        if up > 0 {
            self.parser.process(format!("\u{1b}[{up}A").as_bytes());
        }
        self.parser.process(format!("\r\u{1b}[{column}C").as_bytes());
    }
}

fn trimmed(rows: impl Iterator<Item = String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

fn up_to(text: &str, columns: usize) -> String {
    let mut used = 0;
    let taken = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= columns
    });
    taken.collect()
}

/// Returns the rows that a terminal makes of a line, and the columns of the last one.
fn wrapped(line: &str, cols: u16) -> (usize, usize) {
    let (mut rows, mut used) = (1, 0);
    for width in line.chars().map(|c| c.width().unwrap_or(0)) {
        if used + width > usize::from(cols) {
            rows += 1;
            used = 0;
        }
        used += width;
    }
    (rows, used)
}

/// Asserts that the output has only sequences of the conversation.
pub(super) fn check_sequences(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    // tmux moves a screen that is cleared from its first row on into the scrollback.
    assert!(text.matches("\u{1b}[J").count() == text.matches("\u{1b}[1B\u{1b}[J").count());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control()) {
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\r') {
            rest = after.strip_prefix('\n').unwrap_or(after);
            continue;
        }
        let sequence = rest.strip_prefix('\u{1b}').unwrap_or_else(|| panic!("{rest:?}"));
        let known = SEQUENCES.iter().find_map(|known| sequence.strip_prefix(known));
        let moved = || {
            let digits =
                sequence.strip_prefix('[')?.trim_start_matches(|c: char| c.is_ascii_digit());
            digits.strip_prefix(['A', 'B', 'C'])
        };
        rest = known.or_else(moved).unwrap_or_else(|| panic!("unknown sequence {sequence:.20?}"));
    }
    let is_bidi = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(is_bidi), "{text:?}");
}

pub(super) fn ready() -> SessionReport {
    SessionReport::Ready { session: "s".to_owned(), is_loaded: false, found: Vec::new() }
}

pub(super) fn tool(id: &str, kind: ToolKind, title: &str, status: ToolStatus) -> AgentToolCall {
    AgentToolCall {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        status,
        input: json!({}),
        content: Vec::new(),
        locations: Vec::new(),
    }
}

pub(super) fn edit(id: &str, status: ToolStatus) -> AgentToolCall {
    let old =
        "//! Parses ports.\n\npub fn port(text: &str) -> u16 {\n    text.parse().unwrap()\n}\n";
    let new = "//! Parses ports.\n\n/// Returns the port, or an error that names the text.\npub fn port(text: &str) -> Result<u16, PortError> {\n    text.trim().parse().map_err(|_| PortError::new(text))\n}\n";
    let diff = Diff {
        path: "/w/src/net/port.rs".to_owned(),
        old: Some(old.to_owned()),
        new: new.to_owned(),
    };
    let mut call = tool(id, ToolKind::Edit, "Edit /w/src/net/port.rs", status);
    call.content = vec![ToolContent::Diff(diff)];
    call
}

pub(super) fn option(id: &str, name: &str, kind: OptionKind) -> QuestionOption {
    QuestionOption { id: id.to_owned(), name: name.to_owned(), kind }
}

pub(super) fn question(id: u64, tool: AgentToolCall) -> AgentQuestion {
    AgentQuestion {
        id: QuestionId(id),
        tool,
        options: vec![
            option("always", "Always allow", OptionKind::AllowAlways),
            option("once", "Allow once", OptionKind::AllowOnce),
            option("no", "Reject", OptionKind::RejectOnce),
        ],
        plan: None,
    }
}

/// A question about the command `touch made.txt`.
pub(super) fn touch(id: u64) -> AgentQuestion {
    let mut call = tool("touch", ToolKind::Execute, "`touch made.txt`", ToolStatus::Pending);
    call.input = json!({ "command": "touch made.txt" });
    question(id, call)
}

pub(super) fn commands(names: &[&str]) -> SessionReport {
    let command =
        |name: &&str| AgentCommand { name: (*name).to_owned(), about: format!("about {name}") };
    SessionReport::Commands(names.iter().map(command).collect())
}

pub(super) fn entry(text: &str, state: PlanState) -> PlanEntry {
    PlanEntry { text: text.to_owned(), state }
}

pub(super) fn ended(outcome: Outcome) -> SessionReport {
    let usage = TokenUsage {
        input: 1000,
        cached_input: 200,
        cache_write: 34,
        output: 345,
        cost: Some(0.02),
    };
    SessionReport::Ended(EndedTurn { tag: "t".to_owned(), outcome, usage: Some(usage) })
}

/// Plays a turn up to a question about a change of a file.
pub(super) fn play_to_question(stage: &mut Stage) {
    stage.report(SessionReport::Mode {
        current: "default".to_owned(),
        available: vec![SessionMode { id: "default".to_owned(), name: "Default".to_owned() }],
    });
    stage.report(SessionReport::Model("sonnet-4.5".to_owned()));
    stage.report(SessionReport::Context { used: 84_000, size: 200_000 });
    stage.prompt("`port` panics on \"80 \". Return an error instead, please.");
    stage.report(SessionReport::Thought(
        "The function unwraps.\nI should look for its callers".to_owned(),
    ));
    stage.wait(3200);
    let answer = "I'll look at **port.rs** and its callers first.\n\n\
        - `net::listen` passes what the *user* wrote, so the text can have spaces\n\
        - the tests expect a panic in `tests/port.rs`, see [the issue](https://example.org/7)\n\n\
        ```rust\nfn main() {\n    let port = net::port(\"80 \")?;\n}\n```\n\n\
        Now I change the function";
    for piece in answer.split_inclusive(' ') {
        stage.text(piece);
    }
    stage.report(SessionReport::Tool(tool(
        "r",
        ToolKind::Read,
        "Read /w/src/net/port.rs",
        ToolStatus::InProgress,
    )));
    stage.wait(400);
    stage.report(SessionReport::Tool(tool(
        "r",
        ToolKind::Read,
        "Read /w/src/net/port.rs",
        ToolStatus::Completed,
    )));
    let mut test = tool("c", ToolKind::Execute, "`cargo test port`", ToolStatus::Failed);
    test.content = vec![ToolContent::Text(
        "running 3 tests\ntest port::spaces ... FAILED\nerror: 1 test failed".to_owned(),
    )];
    stage.report(SessionReport::Tool(test));
    stage.report(SessionReport::Plan(vec![
        entry("Find the callers", PlanState::Completed),
        entry("Return an error", PlanState::InProgress),
        entry("Adapt the tests", PlanState::Pending),
    ]));
    stage.report(SessionReport::Tool(edit("e", ToolStatus::Pending)));
    stage.wait(9000);
    stage.report(SessionReport::Asked(question(1, edit("e", ToolStatus::Pending))));
}
