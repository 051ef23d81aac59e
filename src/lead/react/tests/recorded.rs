//! Replays the journal of a real run through the step, which must make the same decisions again.
//! The journal was recorded from the binary with `fixtures/fake-agent`;
//! `docs/dev/measurements.md` lists what it does not contain.

use serde_json::Value;

use super::replay::compare_derived;
use super::*;
use model::decisions::question::{Question, QuestionKind};
use model::team::event::{Event as Noted, EventKind};
use model::wire;

const DAY: &str = include_str!("../../../../fixtures/journals/day.jsonl");

/// The team as the lead saw it, rebuilt from the journal.
struct Recorded {
    state: State,
    now: Timestamp,
    records: Vec<MemberRecord>,
    requests: Vec<ShutdownRequest>,
    mail: Vec<Envelope>,
    filed: Vec<Question>,
    board: Board,
    /// The decisions of the step: `due` runs to stop, `removed` runs with reasons, `resolved`
    /// requests with outcomes.
    due: Vec<Incarnation>,
    removed: Vec<(Incarnation, String)>,
    resolved: Vec<(String, &'static str)>,
}

fn detail(event: &Noted, key: &str) -> String {
    wire::text(&event.detail, key).unwrap_or_else(|| panic!("{key} of {event:?}"))
}

impl Recorded {
    fn begin() -> Recorded {
        let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
        react(&mut state, Event::Requests(Vec::new()), NOW);
        Recorded {
            state,
            now: NOW,
            records: Vec::new(),
            requests: Vec::new(),
            mail: Vec::new(),
            filed: Vec::new(),
            board: Board::default(),
            due: Vec::new(),
            removed: Vec::new(),
            resolved: Vec::new(),
        }
    }

    fn step(&mut self, event: Event) {
        for effect in react(&mut self.state, event, self.now) {
            match effect {
                Effect::StopRun { incarnation, .. } => self.due.push(incarnation),
                Effect::Remove(of) => {
                    self.removed.extend(of.into_iter().map(|one| (one.incarnation, one.reason)));
                }
                Effect::Resolve { request: id, outcome, .. } => {
                    let asked =
                        self.requests.iter_mut().find(|r| r.id == id).expect("it was asked");
                    assert!(asked.outcome.replace(outcome).is_none(), "{id} ends twice");
                    self.resolved.push((id.to_string(), outcome.as_str()));
                }
                Effect::Acknowledge { ids } => {
                    self.mail
                        .iter_mut()
                        .filter(|m| ids.contains(&m.msg_id))
                        .for_each(|m| m.read = true);
                }
                _ => {}
            }
        }
        compare_derived(&self.state);
    }

    fn record(&mut self, event: &Noted) -> &mut MemberRecord {
        let found = self.records.iter_mut().find(|r| Some(&r.name) == event.member.as_ref());
        found.unwrap_or_else(|| panic!("no record for: {event:?}"))
    }

    fn read_records(&mut self) {
        self.step(Event::Members(self.records.clone()));
    }

    fn apply(&mut self, event: &Noted) {
        // Timers that expired before this event ran before it.
        while let Some(due) = self.state.next_tick().filter(|due| *due <= event.at) {
            self.now = due;
            // As the driver does.
            self.step(Event::Mail(self.mail.clone()));
            self.step(Event::Tick);
        }
        self.now = event.at;
        match event.event {
            EventKind::MemberAsked => self.ask_for(event),
            EventKind::MemberReady => {
                let record = self.record(event);
                record.state = record.state.after(Cause::Ready).unwrap_or(record.state);
                self.read_records();
            }
            EventKind::MemberState => self.move_on(event),
            EventKind::MemberLeft => self.leave(event),
            EventKind::MessageSent => self.post(event),
            EventKind::ShutdownRequested => self.request(event),
            EventKind::ShutdownEnded => self.end_request(event),
            EventKind::RequestFiled | EventKind::RequestDecided => self.file(event),
            EventKind::TaskCreated => self.change_task(event, TaskState::Pending),
            EventKind::TaskClaimed => self.change_task(event, TaskState::InProgress),
            EventKind::TaskCompleted => self.change_task(event, TaskState::Completed),
            EventKind::TaskFailed => self.change_task(event, TaskState::Failed),
            EventKind::TaskReleased | EventKind::TaskRetried => {
                self.change_task(event, TaskState::Pending)
            }
            _ => {}
        }
    }

    fn ask_for(&mut self, event: &Noted) {
        let name = event.member.clone().expect("whom");
        let profile = detail(event, "profile");
        let mut fresh = record(name.as_str(), 1, &profile);
        fresh.incarnation = Incarnation::parse(&detail(event, "incarnation")).expect("a run");
        fresh.request.reads_mail = Some(profile != "shell");
        (fresh.state, fresh.state_since, fresh.asked_at) =
            (MemberState::Starting, event.at, event.at);
        self.records.retain(|r| r.name != name);
        self.records.push(fresh);
        self.read_records();
    }

    fn move_on(&mut self, event: &Noted) {
        let word = detail(event, "state");
        let state: MemberState = serde_json::from_value(Value::from(word)).expect("a state");
        // A run was stopped before its final state was journaled.
        if state.is_over() {
            self.end(event);
        }
        let record = self.record(event);
        (record.state, record.state_since) = (state, event.at);
        self.read_records();
    }

    /// The journal does not record when a process was found gone; the reason follows when the run
    /// is removed.
    fn end(&mut self, event: &Noted) {
        let record = self.record(event).clone();
        if self.removed.iter().any(|(run, _)| *run == record.incarnation) {
            return;
        }
        if !self.due.contains(&record.incarnation) {
            let reason = wire::text(&event.detail, "reason").unwrap_or_default();
            let number = |text: &str| reason.strip_prefix(text).and_then(|n| n.parse().ok());
            let (code, signal) = (number("exit code "), number("signal "));
            let exit = ExitRecord { code, signal, at: event.at, ..ExitRecord::default() };
            let exit = Some(exit).filter(|exit| exit.code.is_some() || exit.signal.is_some());
            self.step(Event::Exited(Box::new(MemberRecord { exit, ..record.clone() })));
        }
        assert!(
            self.due.contains(&record.incarnation),
            "it was ended, and here it is not: {event:?}"
        );
        let MemberRecord { name, incarnation, .. } = record;
        self.step(Event::RunsStopped(vec![StoppedRun { name, incarnation, result: Ok(()) }]));
    }

    fn leave(&mut self, event: &Noted) {
        self.end(event);
        let left = (self.record(event).incarnation.clone(), detail(event, "reason"));
        assert!(self.removed.contains(&left), "{event:?}: {:?}", self.removed);
    }

    fn post(&mut self, event: &Noted) {
        if event.member.as_ref().is_none_or(|member| !member.is_lead()) {
            return;
        }
        let request = wire::text(&event.detail, "request_id");
        let text = match (detail(event, "kind").as_str(), request) {
            ("message", _) => "hello".to_owned(),
            ("idle_notification", _) => idle().to_text(),
            ("shutdown_approved", Some(id)) => approval(&id).to_text(),
            ("shutdown_rejected", Some(id)) => rejection(&id).to_text(),
            (kind, _) => format!(r#"{{"type":"{kind}"}}"#),
        };
        let (from, id) = (detail(event, "from"), detail(event, "msg_id"));
        self.mail.push(Envelope::new(&from, &text, id, event.at));
        self.step(Event::Mail(self.mail.iter().filter(|m| !m.read).cloned().collect()));
    }

    fn request(&mut self, event: &Noted) {
        let (id, run) = (detail(event, "request_id"), self.record(event).incarnation.clone());
        let force = wire::flag(&event.detail, "force").expect("a flag");
        let seconds = event.detail["deadline_seconds"].as_u64().expect("seconds");
        let id = RequestId::parse(&id).expect("an id");
        match self.requests.iter_mut().find(|r| r.id == id) {
            Some(request) => request.force |= force,
            None => {
                let name = event.member.clone().expect("whom");
                let (asked_at, deadline_at) = (event.at, event.at.plus_ms(seconds * 1000));
                let asked = request(name.as_str(), 1, force);
                let asked =
                    ShutdownRequest { id, incarnation: run, asked_at, deadline_at, ..asked };
                self.requests.push(asked);
            }
        }
        self.step(Event::Requests(self.requests.clone()));
    }

    fn end_request(&mut self, event: &Noted) {
        let (id, outcome) = (detail(event, "request_id"), detail(event, "outcome"));
        let decided = self.resolved.iter().any(|(of, how)| *of == id && *how == outcome);
        assert!(decided, "{event:?}: {:?}", self.resolved);
        self.step(Event::Requests(self.requests.clone()));
    }

    fn file(&mut self, event: &Noted) {
        let id = RequestId::parse(&detail(event, "request_id")).expect("an id");
        self.filed.retain(|filed| filed.id != id);
        if event.event == EventKind::RequestFiled && detail(event, "state") == "pending" {
            let record = self.record(event).clone();
            self.filed.push(Question {
                format: FORMAT,
                msg_id: format!("filed-{id}"),
                id,
                kind: QuestionKind::Permission,
                from: record.name,
                incarnation: Some(record.incarnation),
                asked_at: event.at,
                deadline_at: event.at.plus_ms(600_000),
                message: String::new(),
                decision: None,
                last_notification: None,
                event: event.id.clone(),
            });
        }
        self.step(Event::Filed(self.filed.clone()));
    }

    fn change_task(&mut self, event: &Noted, to: TaskState) {
        let id = event.task.expect("a task");
        let task = self.board.tasks.entry(id).or_insert_with(|| Task::new(id, "s", "d"));
        task.state = to;
        if to == TaskState::InProgress {
            task.owner = event.member.as_ref().map(MemberName::to_string);
        }
        self.step(Event::Board(self.board.clone()));
    }
}

fn journal() -> Vec<Noted> {
    DAY.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

/// SD-01, SD-02, SD-10, CR-01: members that consent, reject, send garbage, keep silent, consent
/// twice, crash and fail.
#[test]
fn replayed_journal_leads_to_the_same_decisions() {
    let journal = journal();
    let mut recorded = Recorded::begin();
    journal.iter().for_each(|event| recorded.apply(event));
    let said = |kind: EventKind| journal.iter().filter(move |event| event.event == kind);
    let mut ended: Vec<(String, String)> = said(EventKind::ShutdownEnded)
        .map(|event| (detail(event, "request_id"), detail(event, "outcome")))
        .collect();
    let mut decided: Vec<(String, String)> =
        recorded.resolved.into_iter().map(|(id, outcome)| (id, outcome.to_owned())).collect();
    ended.sort();
    decided.sort();
    assert_eq!(decided, ended);
    assert_eq!(recorded.removed.len(), said(EventKind::MemberLeft).count());
    assert_eq!(recorded.due.len(), recorded.removed.len(), "nobody is ended twice");
    assert!(
        recorded.state.members.is_empty() && recorded.state.open.is_empty(),
        "{:?}",
        recorded.state
    );
}

/// Guards the value of the recording: it contains every way to end.
#[test]
fn recorded_run_contains_every_way_to_end() {
    let journal = journal();
    let said = |kind: EventKind, key: &str| -> Vec<String> {
        let of = journal.iter().filter(|event| event.event == kind);
        of.filter_map(|event| wire::text(&event.detail, key)).collect()
    };
    let outcomes = said(EventKind::ShutdownEnded, "outcome");
    for outcome in ["closed", "rejected", "timed_out", "forced", "gone"] {
        assert!(outcomes.iter().any(|said| said == outcome), "{outcome}: {outcomes:?}");
    }
    let reasons = said(EventKind::MemberLeft, "reason");
    for reason in ["exit code 3", "signal 9", "as agreed", "did not answer in time"] {
        assert!(reasons.iter().any(|said| said == reason), "{reason}: {reasons:?}");
    }
    assert!(
        !DAY.contains("/tmp") && !DAY.contains("/home") && !DAY.contains("/root"),
        "a machine's path"
    );
}
