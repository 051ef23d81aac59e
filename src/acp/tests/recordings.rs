//! The recordings of the six real agents, played through sessions. The calls of the recorded client
//! become calls of the session, and the lines of the agent its input.

use std::collections::BTreeMap;

use serde_json::Value;

use super::agents::traits;
use super::fake::start;
use crate::{
    FailureKind, ModeChoice, Outcome, QuestionId, Session, SessionReport, SessionStart, TokenUsage,
};

/// The results of the sessions of one recording.
#[derive(Debug, Default, PartialEq)]
struct Played {
    prompts: usize,
    done: usize,
    cancelled: usize,
    failed: Vec<FailureKind>,
    /// Turns with tokens, and the sums of these: input and output.
    counted: (usize, u64, u64),
    questions: usize,
    plans: usize,
    /// Messages into a turn: taken, and refused.
    steered: (usize, usize),
    /// Sessions that were ready, and of these the continued ones.
    ready: (usize, usize),
}

struct Player {
    name: &'static str,
    session: Session,
    /// The session's ids of the requests in the recording.
    ids: BTreeMap<String, Value>,
    /// Methods and ids of the session's requests that have no line of the recording yet.
    requests: Vec<(String, Value)>,
    /// Replies of the session to requests of the agent, by their ids.
    replies: BTreeMap<String, Value>,
    questions: BTreeMap<String, QuestionId>,
    played: Played,
}

impl Player {
    /// Plays a whole recording.
    fn play(name: &'static str, recording: &str) -> Played {
        let entries = recording.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines: Vec<(bool, Value)> = entries
            .filter(|entry| entry.get("line").is_some())
            .map(|mut entry| (entry["from"] == "client", entry["line"].take()))
            .collect();
        let mut player: Option<Player> = None;
        for (number, (is_client, line)) in lines.iter().enumerate() {
            if line["method"] == "initialize" {
                // The process before was killed.
                let before = player.take().map(Player::end);
                player = Some(Player::new(name, before, &lines[number + 1..]));
            }
            let player = player.as_mut().expect("it begins with `initialize`");
            if *is_client { player.call(line) } else { player.feed(line) }
        }
        player.expect("a recording").end()
    }

    /// Begins the session that the next lines make or load.
    fn new(name: &'static str, before: Option<Played>, next: &[(bool, Value)]) -> Player {
        let opens = |line: &&Value| {
            let method = line["method"].as_str().unwrap_or_default();
            ["session/new", "session/load"].contains(&method)
        };
        let opened = next.iter().map(|(_, line)| line).find(opens).expect("a session");
        let load = opened["params"]["sessionId"].as_str().map(str::to_owned);
        let session = Session::new(SessionStart { traits: traits(name), load, ..start() });
        Player {
            name,
            session,
            ids: BTreeMap::new(),
            requests: Vec::new(),
            replies: BTreeMap::new(),
            questions: BTreeMap::new(),
            played: before.unwrap_or_default(),
        }
    }

    /// Does what a line of the client says.
    fn call(&mut self, line: &Value) {
        let params = &line["params"];
        let words = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let text = params["prompt"][0]["text"].as_str().unwrap_or_default();
        match line["method"].as_str() {
            None => return self.answer(line),
            Some("session/prompt") => {
                self.played.prompts += 1;
                assert!(self.session.prompt("tag", text), "{}: {line}", self.name);
            }
            Some("session/cancel") => drop(self.session.cancel()),
            Some("_session/steering") => drop(self.session.steer("steered", text)),
            Some("session/set_mode") => self.session.set_mode(&ModeChoice::Mode(words("modeId"))),
            Some("session/set_config_option") => {
                let (id, value) = (words("configId"), words("value"));
                self.session.set_mode(&ModeChoice::Option { id, value });
            }
            Some(_) => {}
        }
        self.take_output();
        // The session has no request for some calls, and sets a mode in the way that is offered.
        let method = line["method"].as_str().unwrap_or_default();
        let group = if method.starts_with("session/set_") { "session/set_" } else { method };
        let sent = self.requests.iter().position(|(method, _)| method.starts_with(group));
        if let (Some(id), Some(sent)) = (line.get("id"), sent) {
            self.ids.insert(id.to_string(), self.requests.remove(sent).1);
        }
    }

    /// Answers a request of the agent as the recorded client did.
    fn answer(&mut self, line: &Value) {
        let id = line["id"].to_string();
        let option = line["result"]["outcome"]["optionId"].as_str();
        if let (Some(option), Some(question)) = (option, self.questions.get(&id)) {
            assert!(self.session.answer(*question, Some(option)), "{}: {line}", self.name);
        }
        self.take_output();
        let reply = self.replies.remove(&id).unwrap_or_else(|| panic!("no reply to {id}: {line}"));
        let is_withdrawn = reply["error"]["code"] == -32800;
        let is_same =
            reply["result"] == line["result"] && reply["error"]["code"] == line["error"]["code"];
        assert!(is_same || is_withdrawn, "{}: {reply} for {line}", self.name);
    }

    /// Feeds a line of the agent. Its replies get the ids of the session's requests.
    fn feed(&mut self, line: &Value) {
        let mut line = line.clone();
        if line.get("method").is_none() {
            let Some(id) = self.ids.remove(&line["id"].to_string()) else { return };
            line["id"] = id;
        }
        let reports = self.session.receive(format!("{line}\n").as_bytes());
        for report in reports {
            if let SessionReport::Asked(question) = &report {
                self.questions.insert(line["id"].to_string(), question.id);
            }
            self.count(report);
        }
        self.take_output();
    }

    fn count(&mut self, report: SessionReport) {
        let played = &mut self.played;
        match report {
            SessionReport::Fault(text) => panic!("{}: {text}", self.name),
            SessionReport::Refused(failure) => panic!("{}: {failure:?}", self.name),
            SessionReport::Ready { is_loaded, .. } => {
                played.ready.0 += 1;
                played.ready.1 += usize::from(is_loaded);
            }
            SessionReport::Asked(question) => {
                played.questions += 1;
                played.plans += usize::from(question.plan.as_deref().is_some_and(is_the_plan));
                assert!(question.choose(true).is_some() && question.choose(false).is_some());
            }
            SessionReport::Steered { result: Ok(()), .. } => played.steered.0 += 1,
            SessionReport::Steered { result: Err(_), .. } => played.steered.1 += 1,
            SessionReport::Ended(end) => {
                match end.outcome {
                    Outcome::Done => played.done += 1,
                    Outcome::Cancelled => played.cancelled += 1,
                    Outcome::Stopped(reason) => panic!("{}: {reason}", self.name),
                    Outcome::Failed(failure) => played.failed.push(failure.kind),
                }
                let TokenUsage { input, output, .. } = end.usage.unwrap_or_default();
                played.counted.0 += usize::from(input > 0 && output > 0);
                played.counted.1 += input;
                played.counted.2 += output;
            }
            _ => {}
        }
    }

    fn take_output(&mut self) {
        let output = String::from_utf8(self.session.take_output()).unwrap();
        for line in output.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            match (message.get("method"), message.get("id")) {
                (Some(method), Some(id)) => {
                    self.requests.push((method.as_str().unwrap().to_owned(), id.clone()));
                }
                (None, Some(id)) => drop(self.replies.insert(id.to_string(), message)),
                _ => {}
            }
        }
    }

    /// Ends the session as the end of its process does.
    fn end(mut self) -> Played {
        self.session.end().into_iter().for_each(|report| self.count(report));
        assert_eq!(self.session.questions().count(), 0, "{}", self.name);
        self.played
    }
}

fn is_the_plan(plan: &str) -> bool {
    plan.starts_with("# The plan")
}

/// A recording with what its sessions come to.
type Row = (&'static str, &'static str, Played);

#[test]
fn recordings_of_real_agents_have_the_right_ends() {
    use FailureKind::{Limited, NeedsLogin, Other, TooLong};
    let ends = |[prompts, done, cancelled]: [usize; 3], failed: &[FailureKind]| Played {
        prompts,
        done,
        cancelled,
        failed: failed.to_vec(),
        ready: (2, 1),
        ..Played::default()
    };
    // The last prompt of the first process fails with its kill.
    let recordings: [Row; 6] = [
        (
            "claude",
            include_str!("../../../fixtures/acp/claude.jsonl"),
            Played {
                counted: (14, 250, 125),
                questions: 9,
                plans: 2,
                steered: (1, 0),
                ..ends([21, 12, 5], &[Limited, TooLong, Other, Other])
            },
        ),
        (
            "codex",
            include_str!("../../../fixtures/acp/codex.jsonl"),
            Played {
                counted: (13, 180, 90),
                questions: 8,
                plans: 1,
                steered: (1, 0),
                ..ends([20, 10, 4], &[NeedsLogin, Limited, Other, TooLong, Other, Other])
            },
        ),
        (
            "gemini",
            include_str!("../../../fixtures/acp/gemini.jsonl"),
            Played {
                counted: (11, 220, 110),
                questions: 8,
                plans: 2,
                ..ends([18, 11, 4], &[NeedsLogin, TooLong, Other])
            },
        ),
        (
            "opencode",
            include_str!("../../../fixtures/acp/opencode.jsonl"),
            Played {
                counted: (13, 130, 65),
                questions: 5,
                ..ends([21, 13, 4], &[NeedsLogin, TooLong, Other, Other])
            },
        ),
        (
            "qwen",
            include_str!("../../../fixtures/acp/qwen.jsonl"),
            Played {
                counted: (14, 210, 105),
                questions: 8,
                plans: 2,
                ..ends([20, 13, 4], &[NeedsLogin, TooLong, Other])
            },
        ),
        (
            "copilot",
            include_str!("../../../fixtures/acp/copilot.jsonl"),
            Played {
                counted: (12, 160, 80),
                questions: 5,
                ..ends([19, 11, 2], &[NeedsLogin, Limited, Other, TooLong, Other, Other])
            },
        ),
    ];
    for (name, recording, expected) in recordings {
        let played = Player::play(name, recording);
        let ended = played.done + played.cancelled + played.failed.len();
        assert_eq!(ended, played.prompts, "{name}: a prompt has no end");
        assert_eq!(played, expected, "{name}");
    }
}
