//! The turn of a prompt, and what its end means. A stop reason alone does not say that a turn has
//! succeeded: codex marks failures in updates, copilot only in its text.

use crate::failure::{REQUEST_CANCELLED, prefix};
use crate::report::{AgentFailure, Outcome};
use crate::wire::{CodexMeta, PromptReply, RpcError, parse_or_default};

/// The length of a text that is kept to find out why a turn has failed, in bytes.
const KEPT_TEXT: usize = 1200;

/// A turn that runs.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) tag: String,
    /// The id of the request.
    pub(crate) request: u64,
    pub(crate) is_received: bool,
    pub(crate) is_cancelled: bool,
    text: LastText,
    /// The error that codex has reported.
    failure: Option<AgentFailure>,
    is_system_error: bool,
    warning: Option<String>,
}

impl Turn {
    pub(crate) fn new(tag: &str, request: u64) -> Self {
        Self { tag: tag.to_owned(), request, ..Self::default() }
    }

    pub(crate) fn add_text(&mut self, message: Option<&str>, text: &str) {
        self.text.add(message, text);
    }

    /// Notes that the turn went on with something other than a text.
    pub(crate) fn end_text(&mut self) {
        self.text = LastText::default();
    }

    /// Returns what codex says about a request that it repeats by itself.
    pub(crate) fn add_codex_meta(&mut self, meta: CodexMeta) -> Option<String> {
        let mut retries = None;
        if let Some(error) = meta.error
            && !error.message.is_empty()
        {
            if error.will_retry {
                self.warning = Some(prefix(&error.message, KEPT_TEXT).to_owned());
                let details = error.additional_details.map(|details| format!(" · {details}"));
                let said = error.message + details.as_deref().unwrap_or_default();
                retries = Some(prefix(&said, KEPT_TEXT).to_owned());
            } else {
                let class = &error.codex_error_info;
                self.failure = Some(AgentFailure::from_text_and_class(&error.message, class));
            }
        }
        match meta.thread_status.kind.as_str() {
            "systemError" => self.is_system_error = true,
            "active" => self.is_system_error = false,
            _ => {}
        }
        retries
    }

    /// Returns the result of a turn that was answered.
    pub(crate) fn outcome(&self, reply: &PromptReply, failure_prefix: Option<&str>) -> Outcome {
        if self.is_cancelled {
            // opencode says `end_turn` here.
            return Outcome::Cancelled;
        }
        match reply.stop_reason.as_deref() {
            Some("cancelled") => Outcome::Cancelled,
            Some("end_turn") => {
                self.failure_at_end(failure_prefix).map_or(Outcome::Done, Outcome::Failed)
            }
            Some(reason) => Outcome::Stopped(reason.to_owned()),
            None => Outcome::Failed(AgentFailure::other("the agent's reply has no stop reason")),
        }
    }

    /// Returns the result of a turn that was answered with an error.
    pub(crate) fn outcome_of_error(&self, error: &serde_json::value::RawValue) -> Outcome {
        let error: RpcError = parse_or_default(Some(error));
        if self.is_cancelled || error.code == REQUEST_CANCELLED {
            // qwen answers a cancelled turn with an internal error.
            Outcome::Cancelled
        } else {
            Outcome::Failed(AgentFailure::from_error(&error))
        }
    }

    fn failure_at_end(&self, failure_prefix: Option<&str>) -> Option<AgentFailure> {
        if self.failure.is_some() {
            return self.failure.clone();
        }
        if self.is_system_error {
            let said = self.warning.as_deref().unwrap_or_else(|| self.text.line.trim());
            let said = if said.is_empty() { "the agent reports a system error" } else { said };
            return Some(AgentFailure::from_text(said));
        }
        let text = self.text.starting_with(failure_prefix?)?;
        Some(AgentFailure::from_text(text))
    }
}

/// The last line and the last piece of the text of a turn, cut to a length.
#[derive(Debug, Default)]
struct LastText {
    message: Option<String>,
    /// The last line that is not blank, or the current one.
    line: String,
    is_line_over: bool,
    /// The last piece that is not blank, if it began a line.
    piece: String,
}

impl LastText {
    fn add(&mut self, message: Option<&str>, text: &str) {
        if self.message.as_deref() != message {
            *self = Self { message: message.map(str::to_owned), ..Self::default() };
        }
        if text.trim().is_empty() {
            self.is_line_over |= text.contains('\n');
            return;
        }
        let begins_line =
            self.is_line_over || self.line.trim().is_empty() || self.is_glued(message, text);
        self.piece = if begins_line { prefix(text, KEPT_TEXT).to_owned() } else { String::new() };
        for line in text.split_inclusive('\n') {
            if line.trim().is_empty() {
                self.is_line_over |= line.ends_with('\n');
                continue;
            }
            if self.is_line_over {
                self.line.clear();
            }
            let room = KEPT_TEXT.saturating_sub(self.line.len());
            self.line.push_str(prefix(line, room));
            self.is_line_over = line.ends_with('\n');
        }
    }

    /// Returns whether a piece without an id follows a word or a sentence without a space. It is
    /// then a message of its own: the pieces of one message have their spaces.
    fn is_glued(&self, message: Option<&str>, piece: &str) -> bool {
        let ends_word = |c: char| c.is_alphanumeric() || ".…!?)".contains(c);
        message.is_none()
            && self.line.ends_with(ends_word)
            && piece.starts_with(|c: char| c.is_alphanumeric())
    }

    /// Returns the end of the text that starts with a mark: its last piece or its last line.
    fn starting_with(&self, mark: &str) -> Option<&str> {
        let ends = [&self.piece, &self.line].into_iter().map(|text| text.trim());
        // A mark may end with a space.
        let mark = mark.trim_start();
        ends.into_iter().find(|text| text.starts_with(mark) || *text == mark.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(pieces: &[(&str, &str)]) -> Option<String> {
        let mut turn = Turn::new("t", 1);
        for (message, piece) in pieces {
            turn.add_text((!message.is_empty()).then_some(message), piece);
        }
        turn.failure_at_end(Some("Error: ")).map(|failure| failure.said)
    }

    #[test]
    fn text_that_ends_with_an_error_line_is_a_failure() {
        type Pieces = &'static [(&'static str, &'static str)];
        let cases: [(Pieces, Option<&str>); 14] = [
            (&[("", "Error: 429")], Some("Error: 429")),
            (&[("", "Err"), ("", "or: "), ("", "quota")], Some("Error: quota")),
            (&[("", "Info: Retrying…\n"), ("", "Error: a\nb")], Some("Error: a b")),
            (&[("a", "Info: Retrying…"), ("b", "Error: a")], Some("Error: a")),
            (&[("", "Fine.\n\nError: a\n"), ("", "\n")], Some("Error: a")),
            (&[("", "Info: Retrying…"), ("", "Error: a")], Some("Error: a")),
            (&[("", "The log has "), ("", "Error: a")], None),
            (&[("", "The log has"), ("", " Error: a")], None),
            (&[("", "Error: a\n"), ("", "was the text I looked for")], None),
            (&[("", "Error: a"), ("b", "Fixed it.")], None),
            (&[("", "error: a")], None),
            (&[("", "")], None),
            (&[("", "No Error: here")], None),
            (&[], None),
        ];
        for (pieces, expected) in cases {
            assert_eq!(failed(pieces).as_deref(), expected, "{pieces:?}");
        }
    }

    #[test]
    fn kept_text_is_bounded() {
        let mut turn = Turn::new("t", 1);
        for _ in 0..1000 {
            turn.add_text(None, &"é".repeat(1000));
        }
        assert!(turn.text.line.len() + turn.text.piece.len() <= 2 * KEPT_TEXT);
    }
}
