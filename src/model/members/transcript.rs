//! Reads the transcripts that agent programs write: the tokens of each response, whether the
//! program has reached the usage limit of its account, and the error of its last turn. A transcript
//! is a file of JSON lines, which is read from where the last read ended. Lines of other forms are
//! skipped.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::members::usage::{MemberUsage, Response, TranscriptState, TurnError, Usage};
use crate::text;
use crate::time::Timestamp;

/// Number of responses that are remembered per transcript. Claude Code repeats the usage of a
/// response on each line about it; responses of agents that work side by side alternate.
const RECENT: usize = 16;
/// Maximum length of an id or a model's name.
const LONGEST_WORD: usize = 100;
/// Maximum length of the text about a limit.
const LONGEST_TEXT: usize = 200;

/// The programs whose transcripts can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TranscriptForm {
    /// `projects/*/<session>.jsonl` in the config directory of Claude Code, and the files of its
    /// subagents (observed: 2.1.34, 2.1.330).
    Claude,
    /// `sessions/**/rollout-*-<session>.jsonl` in the home of codex (observed: 0.169.0).
    Codex,
}

impl TranscriptState {
    /// Reads one line, and adds its tokens to `member`.
    pub fn read_line(&mut self, form: TranscriptForm, line: &[u8], member: &mut MemberUsage) {
        let Ok(entry) = serde_json::from_slice::<Value>(line) else { return };
        match form {
            TranscriptForm::Claude => self.read_claude(&entry, member),
            TranscriptForm::Codex => self.read_codex(&entry, member),
        }
    }

    fn read_claude(&mut self, entry: &Value, member: &mut MemberUsage) {
        if entry["type"] == "user" {
            self.error = None;
        }
        if entry["type"] != "assistant" {
            return;
        }
        let message = &entry["message"];
        if entry["isApiErrorMessage"] == true {
            let said = message["content"][0]["text"].as_str();
            // Too many requests at a time cause the same error without a limit of the account.
            let is_plain =
                |said: &str| said.starts_with("API Error") && !said.contains("usage limit");
            if entry["error"] == "rate_limit" && !said.is_some_and(is_plain) {
                let said = said.unwrap_or("usage limit reached");
                self.limit = Some(text::short(said, LONGEST_TEXT));
                self.refused += 1;
            } else {
                let needs_login = entry["error"] == "authentication_failed";
                self.error = turn_error(entry, said.unwrap_or("API error"), needs_login);
            }
            return;
        }
        (self.limit, self.error) = (None, None);
        let (Some(id), Some(model)) = (word(&message["id"]), word(&message["model"])) else {
            return;
        };
        let tokens = |key: &str| message["usage"][key].as_u64().unwrap_or(0);
        let usage = Usage {
            input: tokens("input_tokens"),
            cached_input: tokens("cache_read_input_tokens"),
            cache_write: tokens("cache_creation_input_tokens"),
            output: tokens("output_tokens"),
            // Written by releases before 2.
            cost: entry["costUSD"].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0),
        };
        // The last line about a response has its final numbers.
        match self.recent.iter_mut().find(|response| response.id == id) {
            Some(known) => {
                member.add(Some(&model), &usage.since(&known.usage));
                known.usage = usage;
            }
            None => {
                member.add(Some(&model), &usage);
                if self.recent.len() == RECENT {
                    self.recent.remove(0);
                }
                self.recent.push(Response { id, usage });
            }
        }
    }

    fn read_codex(&mut self, entry: &Value, member: &mut MemberUsage) {
        let payload = &entry["payload"];
        match (entry["type"].as_str(), payload["type"].as_str()) {
            (Some("turn_context"), _) => self.model = word(&payload["model"]).or(self.model.take()),
            (Some("event_msg"), Some("token_count")) => {
                let total = &payload["info"]["total_token_usage"];
                let tokens = |key: &str| total[key].as_u64().unwrap_or(0);
                // Codex counts cached tokens as input, too.
                let (cached_input, cache_write) =
                    (tokens("cached_input_tokens"), tokens("cache_write_input_tokens"));
                let input = tokens("input_tokens");
                let total = Usage {
                    input: input.saturating_sub(cached_input).saturating_sub(cache_write),
                    cached_input,
                    cache_write,
                    output: tokens("output_tokens"),
                    cost: None,
                };
                member.add(self.model.as_deref(), &total.since(&self.counted));
                if total.tokens() >= self.counted.tokens() {
                    self.counted = total;
                }
            }
            (Some("event_msg"), Some("task_started")) => self.error = None,
            (Some("event_msg"), Some("task_complete")) => {
                let error = &payload["error"];
                let is_limit = error["codex_error_info"] == "usage_limit_exceeded";
                let said = error["message"].as_str();
                self.limit = said.filter(|_| is_limit).map(|said| text::short(said, LONGEST_TEXT));
                self.refused += u64::from(is_limit);
                let info = &error["codex_error_info"];
                let mut kinds = info.as_object().into_iter().flatten();
                let needs_login = info == "unauthorized"
                    || kinds.any(|(_, kind)| kind["http_status_code"] == 401);
                self.error = said
                    .filter(|_| !is_limit)
                    .and_then(|said| turn_error(entry, said, needs_login));
            }
            (_, _) => {}
        }
    }
}

/// Returns the error of a turn; `None` if the entry has no time.
fn turn_error(entry: &Value, said: &str, needs_login: bool) -> Option<TurnError> {
    let at = Timestamp::parse(entry["timestamp"].as_str()?)?;
    Some(TurnError { said: text::short(said, LONGEST_TEXT), needs_login, at })
}

/// Returns a text of limited length that is not empty.
fn word(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty())?;
    Some(text.chars().take(LONGEST_WORD).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::usage::{Prices, UsageTotal};

    /// Recorded from Claude Code 2.1.330 (texts shortened).
    const CLAUDE: &str = include_str!("../../../fixtures/transcripts/claude.jsonl");
    /// Recorded from codex 0.169.0 (texts shortened).
    const CODEX: &str = include_str!("../../../fixtures/transcripts/codex.jsonl");

    fn read(form: TranscriptForm, text: &str) -> (MemberUsage, TranscriptState) {
        let (mut member, mut state) = (MemberUsage::default(), TranscriptState::default());
        for line in text.lines() {
            state.read_line(form, line.as_bytes(), &mut member);
        }
        (member, state)
    }

    fn tokens(member: &MemberUsage) -> u64 {
        UsageTotal::of([member], &Prices::new()).map_or(0, |total| total.tokens)
    }

    fn response(id: &str, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"m","usage":{{"input_tokens":10,
            "cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":{output}}}}}}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn recorded_claude_transcript_is_counted_and_ends_at_the_limit() {
        let (member, state) = read(TranscriptForm::Claude, CLAUDE);
        assert_eq!(member.models["claude-opus-5-5"].tokens(), 15);
        assert_eq!(member.models.len(), 1, "synthetic messages have no tokens");
        assert_eq!(
            state.limit.as_deref(),
            Some("You've hit your 5-hour limit · resets 8:37am (UTC)")
        );
        assert_eq!(state.refused, 1);
    }

    #[test]
    fn recorded_codex_transcript_is_counted_by_its_totals() {
        let (member, state) = read(TranscriptForm::Codex, CODEX);
        let expected = Usage { input: 30, output: 15, ..Usage::default() };
        assert_eq!(member.models["canned"], expected);
        assert_eq!((state.limit, state.refused), (None, 1), "a later turn was answered");
        let until_limit: Vec<&str> = CODEX.lines().take(10).collect();
        let (_, state) = read(TranscriptForm::Codex, &until_limit.join("\n"));
        assert!(state.limit.is_some_and(|said| said.ends_with("try again at 8:35 AM.")));
    }

    #[test]
    fn response_is_counted_once_with_its_last_numbers() {
        let lines = [
            response("a", 1),
            response("a", 1),
            response("b", 7),
            response("a", 40),
            response("b", 7),
        ];
        let (member, _) = read(TranscriptForm::Claude, &lines.join("\n"));
        let usage = member.models["m"];
        assert_eq!(
            (usage.input, usage.cached_input, usage.cache_write, usage.output),
            (20, 200, 40, 47)
        );
    }

    /// PM-11: recorded from Claude Code 2.1.332 (fields shortened) and codex 0.169.0.
    #[test]
    fn pm_11_turn_that_ends_with_an_error_is_remembered_until_the_next_one() {
        let refused = |error: &str, said: &str| {
            format!(
                r#"{{"type":"assistant","timestamp":"2026-11-26T02:48:47.725Z","isApiErrorMessage":true,
                "error":"{error}","message":{{"model":"<synthetic>","content":[{{"type":"text","text":"{said}"}}]}}}}"#
            )
            .replace('\n', "")
        };
        let login = "Please run /login · API Error: 403 refused by the stand-in";
        let plain = "API Error: Request rejected (429) · This would exceed your rate limit.";
        let cases = [
            (refused("authentication_failed", login), Some((login, true))),
            (refused("invalid_request", "Prompt is too long"), Some(("Prompt is too long", false))),
            // The limit is one of its own.
            (refused("rate_limit", "You've hit your limit"), None),
            (refused("rate_limit", "API Error: Request rejected (429) · The usage limit …"), None),
            // ST-09: too many requests at a time.
            (refused("rate_limit", plain), Some((plain, false))),
        ];
        let user = r#"{"type":"user","message":{"role":"user","content":"go on"}}"#;
        for (line, expected) in cases {
            let (_, state) = read(TranscriptForm::Claude, &line);
            let found = state.error.as_ref().map(|e| (e.said.as_str(), e.needs_login));
            assert_eq!(found, expected);
            for next in [user.to_owned(), response("a", 1)] {
                let (_, state) = read(TranscriptForm::Claude, &format!("{line}\n{next}"));
                assert_eq!(state.error, None, "{next}");
            }
        }
        let (_, state) = read(TranscriptForm::Codex, CODEX);
        let error = state.error.expect("an error");
        assert_eq!(error.said, "exceeded retry limit, last status: 429 Too Many Requests");
        let next = r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t"}}"#;
        let (_, state) = read(TranscriptForm::Codex, &format!("{CODEX}{next}"));
        assert_eq!(state.error, None);
        for (status, needs_login) in [(401, true), (403, false)] {
            let line = format!(
                r#"{{"timestamp":"2026-11-26T07:39:04.191Z","type":"event_msg","payload":{{"type":"task_complete",
                "error":{{"message":"no","codex_error_info":{{"http_connection_failed":{{"http_status_code":{status}}}}}}}}}}}"#
            )
            .replace('\n', "");
            let (_, state) = read(TranscriptForm::Codex, &line);
            assert_eq!(state.error.map(|e| e.needs_login), Some(needs_login), "{status}");
        }
    }

    #[test]
    fn reading_in_two_parts_gives_the_same_sum() {
        for (form, text) in [(TranscriptForm::Claude, CLAUDE), (TranscriptForm::Codex, CODEX)] {
            let whole = read(form, text);
            let lines: Vec<&str> = text.lines().collect();
            for at in 0..=lines.len() {
                let (mut member, mut state) = read(form, &lines[..at].join("\n"));
                let stored = serde_json::to_string(&state).expect("json");
                state = serde_json::from_str(&stored).expect("json");
                for line in &lines[at..] {
                    state.read_line(form, line.as_bytes(), &mut member);
                }
                assert_eq!((&member, &state), (&whole.0, &whole.1), "{form:?} at {at}");
            }
        }
    }

    #[test]
    fn sec_08_hostile_lines_are_skipped() {
        let deep = "[".repeat(10_000);
        let hostile = [
            "",
            "null",
            "7",
            "{",
            "\u{0}",
            &deep,
            r#"{"type":"assistant","message":7}"#,
            r#"{"type":"assistant","message":{"id":"a","model":"m","usage":{"input_tokens":-5,"output_tokens":1e99}}}"#,
            r#"{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","message":{"content":7}}"#,
            r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":[]}}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_complete","error":"no"}}"#,
        ];
        for form in [TranscriptForm::Claude, TranscriptForm::Codex] {
            let (member, _) = read(form, &hostile.join("\n"));
            assert_eq!(tokens(&member), 0, "{form:?}");
        }
        let most = u64::MAX;
        let line = format!(
            r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{most},"output_tokens":{most}}}}}}}}}"#
        );
        let (member, _) = read(TranscriptForm::Codex, &format!("{line}\n{line}"));
        assert_eq!(tokens(&member), u64::MAX);
        let long = "x".repeat(10_000);
        let (member, state) = read(
            TranscriptForm::Claude,
            &response(&long, 1).replace("\"m\"", &format!("\"{long}\"")),
        );
        assert!(
            member
                .models
                .keys()
                .chain(state.recent.iter().map(|r| &r.id))
                .all(|word| word.len() == LONGEST_WORD)
        );
    }
}
