//! Composes the live region: what is unfinished, the line of status, the commands to complete, and
//! the composer.

use crate::conversation::{Conversation, RunningTool};
use crate::line::{Look, StyledLine};
use crate::screen::LiveRegion;
use crate::status::{self, AgentActivity};
use crate::transcript::EntryKind;
use crate::{plan, question, tool, words};

/// Rows of the composer.
const COMPOSER_ROWS: usize = 5;
/// A terminal with fewer rows has no empty rows in its live region.
const ROOMY: usize = 12;
/// Running tool calls to show.
const TOOLS: usize = 6;

/// The rows above the status, with empty rows between different kinds.
struct Body {
    rows: Vec<StyledLine>,
    last: Option<EntryKind>,
    is_roomy: bool,
}

impl Body {
    /// Adds rows. Before the first ones, `needs_gap` says whether an empty row comes.
    fn add(&mut self, kind: EntryKind, needs_gap: bool, rows: Vec<StyledLine>) {
        let Some(first) = rows.first() else { return };
        let is_gap = !first.is_empty() && self.last.map_or(needs_gap, |last| last != kind);
        if is_gap && self.is_roomy {
            self.rows.push(StyledLine::default());
        }
        self.rows.extend(rows);
        self.last = Some(kind);
    }
}

impl Conversation {
    /// Returns the time when the frame changes although nothing happens.
    pub fn next_frame(&self, now: u64) -> Option<u64> {
        let is_counting = self.questions.is_empty() || self.shown_tools().next().is_some();
        let turn = self.turn.filter(|turn| is_counting && !turn.is_cancelled);
        let tick = turn.map(|turn| {
            let elapsed = now.saturating_sub(turn.since);
            turn.since + (elapsed / 1000 + 1) * 1000
        });
        let hint = self.leave_until.filter(|until| *until > now);
        tick.into_iter().chain(hint).chain(self.settling(now)).min()
    }

    pub(crate) fn live_region(&mut self, now: u64) -> LiveRegion {
        let room = self.room();
        let most = self.screen.size().live_rows();
        let is_roomy = most + 1 >= ROOMY;

        let editor = self.editor.view(room, COMPOSER_ROWS.min(most.div_ceil(3)));
        let mut left = most - editor.rows.len();
        let mut below = Vec::new();
        if left > 0 {
            below.push(self.status_line(now, room));
            left -= 1;
        }
        let mut commands = self.commands.rows(self.editor.text(), room);
        commands.truncate(left);
        left -= commands.len();
        below.extend(commands);

        let mut rows = self.body(now, room, most, is_roomy);
        if !rows.is_empty() && is_roomy {
            rows.push(StyledLine::default());
        }
        // On the narrowest terminals, the bar of a code line leaves no room for a wide character.
        let rows = last_rows(rows, left, room).into_iter().map(|row| row.cut(room));
        let mut rows: Vec<StyledLine> = rows.collect();
        // On a tall screen the status keeps its distance from what is printed.
        if rows.is_empty() && is_roomy && left > 0 && self.transcript.has_entries() {
            rows.push(StyledLine::default());
        }
        rows.extend(below);
        let cursor_row = rows.len() + editor.cursor_row;
        rows.extend(editor.rows);
        LiveRegion { rows, cursor_row, cursor_column: editor.cursor_column }
    }

    fn body(&mut self, now: u64, room: usize, most: usize, is_roomy: bool) -> Vec<StyledLine> {
        let mut body = Body { rows: Vec::new(), last: None, is_roomy };
        if self.transcript.is_replay() {
            return body.rows;
        }
        let transcript = &self.transcript;
        let text = last_rows(self.text.tail(room), (most / 2).max(3), room);
        body.add(EntryKind::Text, transcript.needs_gap(EntryKind::Text), text);

        let needs_gap = transcript.needs_gap(EntryKind::Work);
        if let Some(thought) = &self.thought {
            let line = StyledLine::new(Look::DIM, "thinking: ");
            let line = line.with(Look::DIM, thought.line.trim()).cut(room);
            body.add(EntryKind::Work, needs_gap, vec![line]);
        }
        let count = self.shown_tools().count();
        let hidden = count.saturating_sub(TOOLS);
        if hidden > 0 {
            let more = format!("  … {} more", words::count(hidden, "tool call"));
            body.add(EntryKind::Work, needs_gap, vec![StyledLine::new(Look::DIM, &more)]);
        }
        let cwd = &self.options.cwd;
        let tools = self.shown_tools().skip(hidden).map(|tool| {
            let millis = tool.ended.unwrap_or(now).saturating_sub(tool.since);
            tool::running(&tool.call, millis, cwd, room)
        });
        body.add(EntryKind::Work, needs_gap, tools.collect());

        let others = self.questions.len().saturating_sub(1);
        if self.questions.is_empty() && self.turn.is_some() {
            let rows = plan::live(&self.plan, room);
            body.add(EntryKind::Plan, transcript.needs_gap(EntryKind::Plan), rows);
        }
        if let Some(pending) = self.questions.front_mut() {
            if pending.drawn.as_ref().is_none_or(|(r, o, _)| (*r, *o) != (room, others)) {
                let rows = question::draw(&pending.question, others, cwd, room);
                pending.drawn = Some((room, others, rows));
            }
            let mut rows =
                pending.drawn.as_ref().map_or_else(Vec::new, |(_, _, rows)| rows.clone());
            if pending.is_answered {
                rows.pop();
                rows.push(StyledLine::new(Look::DIM, "  answered").cut(room));
            }
            body.add(EntryKind::Prompt, transcript.has_entries(), rows);
        }
        body.rows
    }

    /// Returns the tool calls that are not printed yet, without the one of the open question.
    fn shown_tools(&self) -> impl Iterator<Item = &RunningTool> {
        let asked = self.questions.front().map(|pending| pending.question.tool.id.as_str());
        self.tools.iter().filter(move |tool| Some(tool.call.id.as_str()) != asked)
    }

    fn status_line(&self, now: u64, room: usize) -> StyledLine {
        if self.leave_until.is_some_and(|until| now < until) {
            return StyledLine::new(Look::YELLOW, "Ctrl-C again leaves").cut(room);
        }
        let facts = status::SessionFacts { queued: self.status.queued, ..self.facts.clone() };
        status::draw(&self.options.name, &self.state(now), &facts, room)
    }

    fn state(&self, now: u64) -> AgentActivity {
        let is_asked = self.questions.front().is_some_and(|pending| !pending.is_answered);
        match (&self.turn, self.status.silent_since) {
            _ if is_asked => AgentActivity::Waiting,
            (Some(turn), _) if turn.is_cancelled => AgentActivity::Cancelling,
            // A tool call that takes long explains the silence.
            (Some(_), Some(since)) if self.tools.is_empty() => {
                AgentActivity::Silent { millis: now.saturating_sub(since) }
            }
            (Some(turn), _) => AgentActivity::Working { millis: now.saturating_sub(turn.since) },
            (None, _) => match &self.failure {
                Some(words) => AgentActivity::Failed(words.clone()),
                None if self.is_ready() => AgentActivity::Idle,
                None => AgentActivity::Starting,
            },
        }
    }
}

/// Keeps the last rows; the first one then says how many are missing.
fn last_rows(mut rows: Vec<StyledLine>, most: usize, room: usize) -> Vec<StyledLine> {
    if rows.len() <= most {
        return rows;
    }
    let Some(kept) = most.checked_sub(1) else { return Vec::new() };
    let hidden = rows.len() - kept;
    let words = format!("… {hidden} more lines");
    rows.splice(..hidden, [StyledLine::new(Look::DIM, &words).cut(room)]);
    rows
}
