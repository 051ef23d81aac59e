//! Random events in a small world that carries effects out as the driver does. After each step an
//! oracle recomputes the state that the lead should have, and checks each effect against the events
//! before it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::event::AnswerSent;
use crate::state::{Pool, TrackedMember};
use model::decisions::question::{Question, QuestionKind};
use model::mail::protocol::news::is_for_loop;
use model::members::launch::{Demand, LaunchSpec, Scale, Template};

const NAMES: [&str; 4] = ["ann", "bob", "dev-1", "dev-2"];
type Run = (MemberName, Incarnation);

/// The simulated files, processes and people of a team, and the unfinished effects of the lead.
struct World {
    now: Timestamp,
    records: Vec<MemberRecord>,
    requests: Vec<ShutdownRequest>,
    mail: Vec<Envelope>,
    filed: Vec<Question>,
    board: Board,
    runs: u64,
    /// Runs whose programs have their grace.
    graceful: BTreeSet<Run>,
    /// Runs with an unfinished `StopRun`.
    due: Vec<Run>,
    /// Unfinished `Start` effects: the kind and its members.
    starting: Vec<(usize, Vec<MemberName>)>,
    watched: BTreeSet<Run>,
    removed: BTreeSet<Run>,
    reported: BTreeSet<TaskId>,
}

fn run_of(record: &MemberRecord) -> Run {
    (record.name.clone(), record.incarnation.clone())
}

impl World {
    fn new() -> World {
        World {
            now: NOW,
            records: Vec::new(),
            requests: Vec::new(),
            mail: Vec::new(),
            filed: Vec::new(),
            board: Board::default(),
            runs: 0,
            graceful: BTreeSet::new(),
            due: Vec::new(),
            starting: Vec::new(),
            watched: BTreeSet::new(),
            removed: BTreeSet::new(),
            reported: BTreeSet::new(),
        }
    }

    /// Starts a run, unless the name is taken.
    fn begin(&mut self, name: &MemberName, profile: &str) -> bool {
        if self.records.iter().any(|r| r.name == *name && !r.state.is_over()) {
            return false;
        }
        self.runs += 1;
        let mut fresh = record(name.as_str(), 1, profile);
        fresh.incarnation = sample::run(self.runs);
        (fresh.state, fresh.state_since, fresh.asked_at) =
            (MemberState::Starting, self.now, self.now);
        self.records.retain(|r| r.name != *name);
        self.records.push(fresh);
        true
    }

    fn record(&mut self, nth: u8) -> Option<&mut MemberRecord> {
        let name = NAMES[usize::from(nth) % NAMES.len()];
        self.records.iter_mut().find(|r| r.name.as_str() == name)
    }

    fn advance(&mut self, nth: u8, cause: Cause) {
        let now = self.now;
        if let Some(record) = self.record(nth)
            && let Some(next) = record.state.after(cause)
        {
            (record.state, record.state_since) = (next, now);
        }
    }

    fn ask(&mut self, name: &MemberName, force: bool, ms: u64) {
        let Some(run) = self.records.iter().find(|r| r.name == *name).map(run_of) else { return };
        let open = |r: &&mut ShutdownRequest| r.is_open() && r.incarnation == run.1;
        if let Some(earlier) = self.requests.iter_mut().find(open) {
            earlier.force |= force;
            return;
        }
        let mut asked = request(name.as_str(), 1, force);
        asked.id = RequestId::shutdown(self.now.0 + self.requests.len() as u64, name);
        (asked.incarnation, asked.asked_at, asked.deadline_at) =
            (run.1, self.now, self.now.plus_ms(ms));
        self.requests.push(asked);
    }

    fn post(&mut self, from: &str, text: &str) {
        let id = format!("m{}", self.mail.len());
        self.mail.push(Envelope::new(from, text, id, self.now));
    }

    /// Posts mail of any kind from authorized and unauthorized senders, about any request so far.
    fn speak(&mut self, nth: u8, what: u8, about: u8) {
        let from =
            ["ann", "bob", "dev-1", "dev-2", "team-lead", "system", "nobody"][usize::from(nth) % 7];
        let request = match self.requests.len() {
            0 => "shutdown-99@ann".to_owned(),
            all => self.requests[usize::from(about) % all].id.to_string(),
        };
        let text = match what % 9 {
            0 | 1 => approval(&request).to_text(),
            2 => rejection(&request).to_text(),
            3 | 4 => idle().to_text(),
            5 => {
                format!(
                    r##"{{"type":"plan_approval_request","requestId":"p{about}","planContent":"# x"}}"##
                )
            }
            6 => format!(
                r#"{{"type":"permission_request","request_id":"q{about}","tool_name":"Bash"}}"#
            ),
            7 => r#"{"type":"shutdown_approved","requestId":"#.to_owned(),
            _ => "hello".to_owned(),
        };
        self.post(from, &text);
    }

    /// Files a question, as `process_requests` does before the mail is read.
    fn file(&mut self, about: u8) {
        let Some(record) = self.record(about).cloned() else { return };
        self.filed.push(Question {
            format: FORMAT,
            id: RequestId::parse(&format!("f{about}")).expect("id"),
            kind: [QuestionKind::Plan, QuestionKind::Permission][usize::from(about) % 2],
            from: record.name.clone(),
            incarnation: Some(record.incarnation),
            msg_id: format!("f{about}"),
            asked_at: self.now,
            deadline_at: self.now.plus_ms(60_000),
            last_notification: None,
            message: String::new(),
            decision: None,
            event: "e".to_owned(),
        });
    }

    fn change_board(&mut self, nth: u8, what: u8) {
        let id = TaskId(u64::from(nth % 5) + 1);
        let task = self.board.tasks.entry(id).or_insert_with(|| Task::new(id, "s", "d"));
        match what % 6 {
            0 => task.owner = None,
            1 => task.owner = Some(NAMES[usize::from(what) % NAMES.len()].to_owned()),
            2 => task.state = TaskState::Pending,
            3 => task.state = TaskState::InProgress,
            4 => task.state = TaskState::Completed,
            _ => drop(self.board.tasks.remove(&id)),
        }
    }

    /// Performs one random action. The lead learns of most of them only with its next read.
    fn action(&mut self, (action, a, b): (u8, u8, u8)) -> Option<Event> {
        match action % 20 {
            0 => {
                self.begin(
                    &who(NAMES[usize::from(a) % 4]),
                    ["worker", "shell"][usize::from(b) % 2],
                );
            }
            1 | 2 => self.advance(a, Cause::Ready),
            3 => self.advance(a, [Cause::Work, Cause::Rest, Cause::PlanSent][usize::from(b) % 3]),
            4 => self.ask(&who(NAMES[usize::from(a) % 4]), b.is_multiple_of(4), u64::from(b) * 200),
            5 | 6 => self.speak(a, b, a ^ b),
            7 => self.change_board(a, b),
            8 => self.file(a),
            9 => self.filed.clear(),
            10 => return Some(Event::Members(self.records.clone())),
            11 => return Some(Event::Requests(self.requests.clone())),
            12 => {
                return Some(Event::Mail(
                    self.mail.iter().filter(|m| is_for_loop(m)).cloned().collect(),
                ));
            }
            13 => return Some(Event::Board(self.board.clone())),
            14 => return Some(Event::Filed(self.filed.clone())),
            15 => return self.record(a).cloned().map(|record| Event::Exited(Box::new(record))),
            16 | 17 => return Some(self.stop(a, b)),
            18 => return self.start(a, b),
            _ => return Some(self.other(a, b)),
        }
        None
    }

    /// Reports the end of a run that is being stopped, as success or failure; or an unexpected
    /// one.
    fn stop(&mut self, a: u8, b: u8) -> Event {
        let unasked = self.record(a).map(|r| run_of(r)).unwrap_or((who("ann"), sample::run(99)));
        let (name, incarnation) = match self.due.is_empty() {
            true => unasked,
            false => self.due.remove(usize::from(a) % self.due.len()),
        };
        let result = if b.is_multiple_of(8) { Err("foreign".to_owned()) } else { Ok(()) };
        Event::RunsStopped(vec![StoppedRun { name, incarnation, result }])
    }

    fn start(&mut self, a: u8, b: u8) -> Option<Event> {
        if self.starting.is_empty() {
            return None;
        }
        let (kind, names) = self.starting.remove(usize::from(a) % self.starting.len());
        let fails = |nth: usize| b & (1 << (nth % 8)) != 0;
        let mut failures = Vec::new();
        for (nth, name) in names.iter().enumerate() {
            if fails(nth) || !self.begin(name, "worker") {
                failures.push((name.clone(), "no".to_owned()));
            }
        }
        Some(Event::Started { kind, names, failures })
    }

    fn other(&mut self, a: u8, b: u8) -> Event {
        let member = who(NAMES[usize::from(a) % 4]);
        match b % 16 {
            0 => Event::Stop { force: a.is_multiple_of(2) },
            1 if a.is_multiple_of(8) => Event::End(LeadEnd::Left),
            2 if a.is_multiple_of(8) => Event::End(LeadEnd::TeamGone),
            3..6 => Event::Answers(vec![AnswerSent {
                member,
                from: "team-lead".to_owned(),
                request_id: format!("p{a}"),
            }]),
            _ => {
                self.now = self.now.plus_ms(u64::from(a) * u64::from(b) * 4);
                Event::Tick
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, ended: &[Run]) {
        match effect {
            Effect::WatchExit { name, incarnation, .. } => {
                assert!(self.watched.insert((name, incarnation)), "one run is watched twice");
            }
            Effect::Acknowledge { ids } => {
                self.mail
                    .iter_mut()
                    .filter(|m| ids.contains(&m.msg_id))
                    .for_each(|m| m.read = true);
            }
            Effect::AskShutdown { names, force, .. } => {
                names.iter().for_each(|name| self.ask(name, force, 30_000));
            }
            Effect::StopRun { name, incarnation, mode } => {
                let run = (name, incarnation);
                // Force cuts the grace of a program short.
                let is_due = self.due.contains(&run);
                let is_cut = self.graceful.remove(&run) && is_due && mode == StopMode::Immediate;
                assert!(is_cut || !is_due, "{run:?} is ended twice at a time");
                if matches!(mode, StopMode::Graceful(_)) {
                    self.graceful.insert(run.clone());
                }
                if !is_cut {
                    self.due.push(run);
                }
            }
            Effect::Start { kind, specs } => {
                let names = specs.iter().map(|spec| who(&spec.name)).collect();
                self.starting.push((kind, names));
            }
            Effect::Remove(removals) => {
                for one in removals {
                    let run = (one.name, one.incarnation);
                    assert!(ended.contains(&run), "{run:?} removes, and has not ended");
                    assert!(self.removed.insert(run.clone()), "{run:?} removes twice");
                    let of_run = self.records.iter_mut().find(|r| run_of(r) == run);
                    let record = of_run.expect("a run keeps its record until it is over");
                    record.state = record.state.after(one.cause).unwrap_or(record.state);
                }
            }
            Effect::Agree { request, .. } => {
                let of_id =
                    self.requests.iter_mut().find(|r| r.id == request).expect("it was asked");
                of_id.agreed_at = Some(self.now);
            }
            Effect::Resolve { request, outcome, .. } => {
                let of_id =
                    self.requests.iter_mut().find(|r| r.id == request).expect("it was asked");
                assert!(of_id.outcome.replace(outcome).is_none(), "{request} ends twice");
            }
            Effect::MoveOn { name, incarnation, cause, .. } => {
                let run = (name, incarnation);
                if let Some(record) = self.records.iter_mut().find(|r| run_of(r) == run)
                    && let Some(next) = record.state.after(cause)
                {
                    (record.state, record.state_since) = (next, self.now);
                }
            }
            Effect::Report(tasks) => {
                for task in tasks {
                    assert!(self.reported.insert(task), "#{task} is reported twice");
                }
            }
            Effect::Release(name) => {
                for task in self.board.tasks.values_mut().filter(|task| task.is_owned_by(&name)) {
                    (task.owner, task.state) = (None, TaskState::Pending);
                }
            }
            Effect::Label { .. }
            | Effect::FailLate(_)
            | Effect::ReleaseAbsent(_)
            | Effect::SettleReadiness { .. }
            | Effect::Deactivate(_)
            | Effect::JournalRestart { .. }
            | Effect::CheckActivity { .. }
            | Effect::Resume(_)
            | Effect::Health { .. }
            | Effect::CheckIdle { .. }
            | Effect::PutBack { .. }
            | Effect::Announce { .. }
            | Effect::Remind { .. }
            | Effect::Offer { .. }
            | Effect::ReportRefused(_)
            | Effect::ResetReminders { .. }
            | Effect::Hook(_)
            | Effect::JournalChange(_)
            | Effect::NotifyUnblocked(_)
            | Effect::Recover { .. }
            | Effect::SendReminder(_)
            | Effect::ReportBudget(_)
            | Effect::ResumeLimited { .. }
            | Effect::ReportLimit { .. }
            | Effect::AnnouncePrompt { .. }
            | Effect::Warn { .. } => {}
        }
    }

    /// Compares the lead's state with what follows from the events so far.
    fn compare(&self, state: &State) {
        let ending: BTreeSet<Run> =
            state.members.iter().filter(|(_, view)| view.ending.is_some()).map(run).collect();
        assert_eq!(ending, self.due.iter().cloned().collect(), "who is being ended");
        let starting: BTreeSet<&MemberName> =
            state.kinds.iter().flat_map(|kind| &kind.starting).collect();
        assert_eq!(
            starting,
            self.starting.iter().flat_map(|(_, names)| names).collect(),
            "who is started"
        );
        for (name, view) in
            state.members.iter().filter(|(_, view)| view.watched && view.ending.is_none())
        {
            let owes = state.seen.as_ref().is_some_and(|seen| owes(&seen.board, name, view));
            assert_eq!(view.owes_since.is_some(), owes, "{name}: {view:?}");
            assert!(view.answer_checks == 0 || owes, "{name}");
            if let Some(seen) = &state.seen {
                assert_eq!(seen.work_of(name), seen.board.work_of(name), "{name}");
            }
        }
        compare_derived(state);
        for (id, open) in &state.open {
            let filed = self.requests.iter().find(|r| r.id == *id).expect("a filed request");
            assert!(filed.is_open() && filed.incarnation == open.incarnation, "{id} has ended");
            let waits =
                state.members.get(&open.member).is_some_and(|v| v.ending.is_none() && !v.stuck);
            let wakes = state.next_tick().is_some_and(|at| at <= open.deadline_at);
            assert!(!waits || wakes, "no tick is due for {id}");
        }
    }

    /// After a read of the mail each tracked question is unread or filed.
    fn compare_questions(&self, state: &State) {
        for (id, question) in &state.questions {
            let posted = self.mail.iter().any(|m| !m.read && m.msg_id == *id);
            assert!(posted || state.filed.contains(&question.request_id), "{id}: {question:?}");
        }
    }
}

/// Compares incrementally updated values with values that are computed from scratch.
pub(super) fn compare_derived(state: &State) {
    let board = state.seen.as_ref().map(|seen| &seen.board);
    for (name, view) in &state.members {
        let makes = |kind: &&Pool| kind.names.iter().any(|ours| ours.clashes_with(name.as_str()));
        let maker = state.kinds.iter().find(makes).map(|kind| &kind.template.spec.name);
        assert_eq!(view.kind.map(|nth| &state.kinds[nth].template.spec.name), maker, "{name}");
        let begins = |board: &Board, id: &TaskId| {
            board.tasks[id].is_owned_by(name) && board.may_claim(*id, name, true).is_ok()
        };
        let given =
            board.and_then(|board| board.tasks.keys().copied().find(|id| begins(board, id)));
        assert_eq!(view.given, given, "{name}");
    }
    for kind in state.kinds.iter().filter(|kind| kind.template.demand != Demand::Standing) {
        assert_eq!(
            kind.asked_for,
            board.map(|board| kind.template.wanted(board)),
            "{:?}",
            kind.template
        );
    }
    assert_eq!(state.seen.as_ref().map(|seen| seen.can_move), board.map(Board::can_move));
}

fn run((name, view): (&MemberName, &TrackedMember)) -> Run {
    (name.clone(), view.incarnation.clone())
}

/// Returns whether the member was given a task that it could start now.
fn owes(board: &Board, name: &MemberName, view: &TrackedMember) -> bool {
    let mine = |task: &&Task| task.owner.as_deref() == Some(name.as_str());
    let busy = board.tasks.values().filter(mine).any(|task| task.state == TaskState::InProgress);
    let given = board.tasks.values().filter(mine).any(|task| task.state == TaskState::Pending);
    view.reads_mail && view.state == MemberState::Idle && given && !busy
}

fn rank(phase: Phase) -> (u8, bool) {
    match phase {
        Phase::Leading => (0, false),
        Phase::Stopping { force, .. } => (1, force),
        Phase::Done(_) => (2, true),
    }
}

fn templates() -> Vec<Template> {
    let template = |name: &str, demand| Template {
        spec: LaunchSpec { name: name.to_owned(), ..LaunchSpec::default() },
        demand,
    };
    vec![
        template("ann", Demand::Standing),
        template("bob", Demand::WhenNeeded),
        template("dev", Demand::Scaled(Scale { min: 0, max: 2 })),
    ]
}

fn live(finish: Finish, actions: Vec<(u8, u8, u8)>) {
    let (mut world, mut state) = (World::new(), State::new(Goal::Lead(finish), templates()));
    for action in actions {
        let Some(event) = world.action(action) else { continue };
        let ended: Vec<Run> = match &event {
            Event::RunsStopped(ended) => {
                let well = ended.iter().filter(|one| one.result.is_ok());
                well.map(|one| (one.name.clone(), one.incarnation.clone())).collect()
            }
            _ => Vec::new(),
        };
        let (before, reads) = (state.phase, matches!(event, Event::Mail(_)));
        let effects = react(&mut state, event, world.now);
        assert!(rank(state.phase) >= rank(before), "{before:?} → {:?}", state.phase);
        if let Phase::Done(_) = before {
            assert_eq!((&effects[..], state.phase), (&[][..], before), "it is over");
            continue;
        }
        effects.into_iter().for_each(|effect| world.carry_out(effect, &ended));
        if state.end().is_none() {
            world.compare(&state);
        }
        if state.end().is_none() && reads {
            world.compare_questions(&state);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// SD-10, SD-11, CR-01, MSG-03: no run is stopped twice at a time, removed before it has
    /// ended, or removed twice; no request is resolved twice or forgotten; nothing happens after
    /// the end.
    #[test]
    fn random_events_keep_the_state_consistent(
        manual in any::<bool>(),
        actions in proptest::collection::vec(any::<(u8, u8, u8)>(), 0..150),
    ) {
        live(if manual { Finish::Manual } else { Finish::TasksDone }, actions);
    }
}
