//! Services: what waits for them begins when they are ready, and never without them.

use super::*;
use model::board::task::TaskState;
use model::members::launch::{Demand, LaunchSpec, Template};
use model::members::lifecycle::Cause;
use model::members::readiness::{Readiness, ReadyCheck, readiness_key};

/// The state of the service `db`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Service {
    /// It runs, and its check has not passed.
    Starting,
    Ready,
    /// It has ended before its check passed.
    Gone,
}

fn board(state: TaskState) -> Board {
    let mut board = Board::default();
    let mut task = Task::new(TaskId(1), "db is ready", "");
    task.extra.key = Some(readiness_key("db"));
    (task.owner, task.state) = (Some("db".to_owned()), state);
    board.tasks.insert(task.id, task);
    board
}

fn db(service: Service) -> MemberRecord {
    let mut db = record("db", 1, "shell");
    db.request.ready = Some(ReadyCheck { line: Some("up".to_owned()), ..ReadyCheck::default() });
    if service == Service::Ready {
        db.readiness = Readiness { passed_at: Some(NOW), overdue: None };
    }
    db
}

/// The member `web`, which waits for `db`.
fn web(demand: Demand) -> Template {
    let after = vec![readiness_key("db")];
    Template { spec: LaunchSpec { name: "web".to_owned(), after, ..LaunchSpec::default() }, demand }
}

fn settled(effects: &[Effect]) -> bool {
    let is_it = |effect: &Effect| matches!(effect, Effect::SettleReadiness { task: TaskId(1), member } if *member == who("db"));
    effects.iter().any(is_it)
}

fn starts(effects: &[Effect], wanted: &str) -> bool {
    let names = effects.iter().filter_map(|effect| match effect {
        Effect::Start { specs, .. } => Some(specs),
        _ => None,
    });
    names.flatten().any(|spec| spec.name == wanted)
}

#[test]
fn sp_16_readiness_task_ends_when_its_member_is_ready_or_gone_for_good() {
    for service in [Service::Starting, Service::Ready, Service::Gone] {
        for restart in [None, Some(Demand::Standing), Some(Demand::Always)] {
            let spec = LaunchSpec { name: "db".to_owned(), ..LaunchSpec::default() };
            let kinds = restart.map(|demand| Template { spec, demand }).into_iter().collect();
            let mut state = State::new(Goal::Lead(Finish::TasksDone), kinds);
            react(&mut state, Event::Board(board(TaskState::Pending)), NOW);
            let mut effects = react(&mut state, Event::Members(vec![db(service)]), NOW);
            if service == Service::Gone {
                let mut gone = db(service);
                gone.exit = Some(ExitRecord { code: Some(1), at: NOW, ..ExitRecord::default() });
                react(&mut state, Event::Exited(Box::new(gone)), NOW);
                effects = react(&mut state, stopped("db", 1, Ok(())), NOW);
            }
            let expected = match service {
                Service::Starting => false,
                Service::Ready => true,
                Service::Gone => restart.is_none(),
            };
            assert_eq!(settled(&effects), expected, "{service:?} {restart:?}");
            let again = react(&mut state, Event::Tick, NOW);
            assert!(!settled(&again), "{service:?} {restart:?}: once for each read of the board");
        }
    }
}

/// The service in a later run, which begins some time after the failure of its task.
fn later_run(service: Service) -> MemberRecord {
    let mut again = MemberRecord { incarnation: run(2), ..db(service) };
    again.start.as_mut().expect("it has started").at = NOW.plus_ms(10);
    again
}

#[test]
fn sp_22_restarted_service_is_awaited_until_it_runs_again() {
    for comes_back in [true, false] {
        let mut state = State::new(Goal::Lead(Finish::TasksDone), Vec::new());
        react(&mut state, Event::Board(board(TaskState::Pending)), NOW);
        react(&mut state, Event::Members(vec![db(Service::Starting)]), NOW);
        let asked = ShutdownRequest { restarts: true, ..request("db", 1, false) };
        react(&mut state, Event::Requests(vec![asked]), NOW);
        let ended = react(&mut state, stopped("db", 1, Ok(())), NOW);
        assert!(!settled(&ended), "it is started again: {ended:?}");
        assert!(state.is_leading(), "nor is the work of the team over");
        if !comes_back {
            let late = NOW.plus_ms(60_000);
            assert!(state.next_tick().is_some_and(|at| at <= late), "{:?}", state.next_tick());
            assert!(settled(&react(&mut state, Event::Tick, late)), "whoever asked has ended");
            continue;
        }
        let again = react(&mut state, Event::Members(vec![later_run(Service::Starting)]), NOW);
        assert!(!settled(&again), "{again:?}");
        let ready = react(&mut state, Event::Members(vec![later_run(Service::Ready)]), NOW);
        assert!(settled(&ready), "{ready:?}");
    }
}

#[test]
fn sp_22_failed_readiness_opens_again_for_a_later_run_only() {
    let mut failed = board(TaskState::Failed);
    failed.tasks.get_mut(&TaskId(1)).expect("the task").extra.ended_at = Some(NOW);
    for (record, expected) in [(db(Service::Starting), false), (later_run(Service::Starting), true)]
    {
        let mut state = State::new(Goal::Lead(Finish::Manual), vec![web(Demand::Once)]);
        react(&mut state, Event::Board(failed.clone()), NOW);
        let effects = react(&mut state, Event::Members(vec![record.clone()]), NOW);
        assert_eq!(settled(&effects), expected, "{record:?}");
    }
}

#[test]
fn sp_16_member_starts_when_all_that_it_waits_for_is_ready() {
    for demand in [Demand::Once, Demand::Standing, Demand::Always, Demand::WhenNeeded] {
        let mut state = State::new(Goal::Lead(Finish::TasksDone), vec![web(demand)]);
        react(&mut state, Event::Members(vec![db(Service::Starting)]), NOW);
        let with_work = |state: TaskState| {
            let mut board = board(state);
            let task = Task::new(TaskId(2), "work", "");
            board.tasks.insert(task.id, task);
            board
        };
        let waits = react(&mut state, Event::Board(with_work(TaskState::Pending)), NOW);
        assert!(!starts(&waits, "web"), "{demand:?}");
        let ready = react(&mut state, Event::Board(with_work(TaskState::Completed)), NOW);
        assert!(starts(&ready, "web"), "{demand:?}");
    }
}

#[test]
fn sp_16_member_does_not_start_without_what_it_waits_for() {
    for task in [TaskState::Failed, TaskState::Pending] {
        let mut state = State::new(Goal::Lead(Finish::TasksDone), vec![web(Demand::Once)]);
        react(&mut state, Event::Board(board(task)), NOW);
        let effects = react(&mut state, Event::Members(Vec::new()), NOW);
        assert!(!starts(&effects, "web"), "{task:?}");
        assert_eq!(settled(&effects), task == TaskState::Pending, "nobody becomes ready");
    }
}

#[test]
fn member_that_waited_is_started_once() {
    let mut state = State::new(Goal::Lead(Finish::Manual), vec![web(Demand::Once)]);
    let mut ended = record("web", 2, "worker");
    ended.exit = Some(ExitRecord { code: Some(1), at: NOW, ..ExitRecord::default() });
    ended.state = ended.state.after(Cause::Ended { code: Some(1) }).expect("it lives");
    react(&mut state, Event::Board(board(TaskState::Completed)), NOW);
    let effects = react(&mut state, Event::Members(vec![ended]), NOW);
    assert!(!starts(&effects, "web"), "an earlier lead has started it");
}

#[test]
fn member_that_always_restarts_does_so_unless_it_was_asked_to_end() {
    let table = [(Demand::Once, 0, false), (Demand::Once, 1, false), (Demand::Standing, 0, false)];
    let more = [(Demand::Standing, 1, true), (Demand::Always, 0, true), (Demand::Always, 1, true)];
    for (demand, code, expected) in table.into_iter().chain(more) {
        let spec = LaunchSpec { name: "ann".to_owned(), ..LaunchSpec::default() };
        let mut state = State::new(Goal::Lead(Finish::Manual), vec![Template { spec, demand }]);
        react(&mut state, Event::Board(Board::default()), NOW);
        let mut ann = record("ann", 1, "worker");
        react(&mut state, Event::Members(vec![ann.clone()]), NOW);
        ann.exit = Some(ExitRecord { code: Some(code), at: NOW, ..ExitRecord::default() });
        react(&mut state, Event::Exited(Box::new(ann)), NOW);
        react(&mut state, stopped("ann", 1, Ok(())), NOW);
        let later = react(&mut state, Event::Tick, NOW.plus_ms(1000));
        assert_eq!(starts(&later, "ann"), expected, "{demand:?} {code}");
    }
    let spec = LaunchSpec { name: "ann".to_owned(), ..LaunchSpec::default() };
    let kinds = vec![Template { spec, demand: Demand::Always }];
    let mut state = State::new(Goal::Lead(Finish::Manual), kinds);
    react(&mut state, Event::Members(vec![record("ann", 1, "worker")]), NOW);
    react(&mut state, Event::Requests(vec![request("ann", 1, true)]), NOW);
    react(&mut state, stopped("ann", 1, Ok(())), NOW);
    assert!(!starts(&react(&mut state, Event::Tick, NOW.plus_ms(100_000)), "ann"));
}
