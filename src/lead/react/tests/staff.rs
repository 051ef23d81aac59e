//! Members that scale with the work, and restarts of failed members.

use super::*;
use model::members::launch::{Demand, LaunchSpec, Scale, Template};

fn kind(name: &str, demand: Demand) -> Template {
    Template { spec: LaunchSpec { name: name.to_owned(), ..LaunchSpec::default() }, demand }
}

/// A lead with these templates, members and free tasks.
fn staffed(templates: Vec<Template>, members: &[MemberRecord], tasks: u64) -> (State, Vec<Effect>) {
    let mut state = State::new(Goal::Lead(Finish::Manual), templates);
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Board(free(tasks)), NOW);
    let effects = react(&mut state, Event::Members(members.to_vec()), NOW);
    (state, effects)
}

fn free(tasks: u64) -> Board {
    let mut board = Board::default();
    for id in (1..=tasks).map(TaskId) {
        board.tasks.insert(id, Task::new(id, "s", "d"));
    }
    board
}

fn started(effects: &[Effect]) -> Vec<String> {
    let specs = effects.iter().filter_map(|effect| match effect {
        Effect::Start { specs, .. } => Some(specs),
        _ => None,
    });
    specs.flatten().map(|spec| spec.name.clone()).collect()
}

fn asked(effects: &[Effect]) -> Vec<String> {
    let names = effects.iter().filter_map(|effect| match effect {
        Effect::AskShutdown { names, .. } => Some(names),
        _ => None,
    });
    names.flatten().map(MemberName::to_string).collect()
}

/// The journaled states of circuit breakers: consecutive failures, and the delay of the next start
/// in ms.
fn breakers(effects: &[Effect]) -> Vec<(u32, Option<u64>)> {
    let states = effects.iter().filter_map(|effect| match effect {
        Effect::JournalRestart { failures, delay_ms, .. } => Some((*failures, *delay_ms)),
        _ => None,
    });
    states.collect()
}

fn came_up(names: &[&str], failures: &[(&str, &str)]) -> Event {
    let names = names.iter().map(|name| who(name)).collect();
    let failures = failures.iter().map(|(name, why)| (who(name), (*why).to_owned())).collect();
    Event::Started { kind: 0, names, failures }
}

#[test]
fn members_are_started_once_and_up_to_the_amount_of_work() {
    let scaled = Demand::Scaled(Scale { min: 0, max: 3 });
    let (mut state, effects) = staffed(vec![kind("dev", scaled)], &[record("ann", 1, "worker")], 2);
    assert_eq!(started(&effects), ["dev-1", "dev-2"]);
    assert_eq!(
        started(&react(&mut state, Event::Board(free(2)), NOW)),
        [""; 0],
        "they are on their way"
    );
    assert_eq!(
        started(&react(&mut state, Event::Board(free(9)), NOW)),
        ["dev-3"],
        "and no more than three"
    );
    assert_eq!(
        started(&react(&mut state, came_up(&["dev-1", "dev-2"], &[]), NOW)),
        ["dev-1", "dev-2"]
    );
}

fn with_commands(tasks: u64) -> Board {
    let mut board = free(tasks);
    board.tasks.values_mut().for_each(|task| task.extra.run = vec!["true".to_owned()]);
    board
}

#[test]
fn start_is_deferred_for_a_task_that_an_idle_worker_can_take() {
    let scaled = Demand::Scaled(Scale { min: 0, max: 3 });
    let (mut state, _) = staffed(vec![kind("dev", scaled)], &[record("ann", 1, "worker")], 0);
    let effects = react(&mut state, Event::Board(with_commands(2)), NOW);
    assert_eq!(started(&effects), ["dev-1"], "ann takes the other task");
    assert_eq!(state.next_tick(), Some(NOW.plus_ms(2000)));
    react(&mut state, came_up(&["dev-1"], &[]), NOW);
    // Neither member has claimed a task in time.
    let members = [record("ann", 1, "worker"), record("dev-1", 2, "worker")];
    react(&mut state, Event::Members(members.to_vec()), NOW);
    assert_eq!(started(&react(&mut state, Event::Tick, NOW.plus_ms(1999))), [""; 0]);
    assert_eq!(started(&react(&mut state, Event::Tick, NOW.plus_ms(2000))), ["dev-2"]);
}

#[test]
fn worker_of_another_role_defers_no_start() {
    let scaled = Demand::Scaled(Scale { min: 0, max: 3 });
    let mut board = with_commands(1);
    board.tasks.values_mut().for_each(|task| task.extra.role = Some("coder".to_owned()));
    let mut dev = kind("dev", scaled);
    dev.spec.role = Some("coder".to_owned());
    let (mut state, _) = staffed(vec![dev], &[record("ann", 1, "worker")], 0);
    assert_eq!(started(&react(&mut state, Event::Board(board), NOW)), ["dev-1"]);
}

#[test]
fn surplus_members_are_asked_to_end_once_and_only_when_idle() {
    let scaled = Demand::Scaled(Scale { min: 1, max: 3 });
    let members = [1, 2, 3].map(|n| record(&format!("dev-{n}"), n, "worker"));
    let mut board = free(1);
    if let Some(task) = board.tasks.get_mut(&TaskId(1)) {
        (task.state, task.owner) = (TaskState::InProgress, Some("dev-3".to_owned()));
    }
    let (mut state, _) = staffed(vec![kind("dev", scaled)], &[], 9);
    react(&mut state, came_up(&["dev-1", "dev-2", "dev-3"], &[]), NOW);
    react(&mut state, Event::Board(board), NOW);
    let effects = react(&mut state, Event::Members(members.to_vec()), NOW);
    assert_eq!(asked(&effects), ["dev-2", "dev-1"], "the one at work stays");
    assert_eq!(asked(&react(&mut state, Event::Members(members.to_vec()), NOW)), [""; 0]);
}

#[test]
fn member_is_started_when_its_first_task_is_unblocked() {
    let (mut state, effects) = staffed(vec![kind("qa", Demand::WhenNeeded)], &[], 0);
    assert_eq!(started(&effects), [""; 0]);
    let mut waiting = free(2);
    if let Some(task) = waiting.tasks.get_mut(&TaskId(2)) {
        task.blocked_by = vec![TaskId(1)];
        task.owner = Some("qa".to_owned());
    }
    if let Some(task) = waiting.tasks.get_mut(&TaskId(1)) {
        task.owner = Some("ann".to_owned());
    }
    assert_eq!(started(&react(&mut state, Event::Board(waiting.clone()), NOW)), [""; 0]);
    if let Some(task) = waiting.tasks.get_mut(&TaskId(1)) {
        task.state = TaskState::Completed;
    }
    assert_eq!(started(&react(&mut state, Event::Board(waiting), NOW)), ["qa"]);
}

#[test]
fn failed_member_is_restarted_with_back_off_up_to_a_limit() {
    let (mut state, _) =
        staffed(vec![kind("ann", Demand::Standing)], &[record("ann", 1, "worker")], 0);
    let mut now = NOW;
    for failure in 1_u8..=5 {
        let mut gone = record("ann", failure, "worker");
        gone.start.as_mut().expect("a start").at = now;
        react(&mut state, Event::Members(vec![gone.clone()]), now);
        react(&mut state, Event::Exited(Box::new(gone)), now);
        let effects = react(&mut state, stopped("ann", failure, Ok(())), now);
        assert_eq!(started(&effects), [""; 0], "there is a pause first");
        if failure == 5 {
            assert_eq!(breakers(&effects), [(5, None)]);
            assert_eq!(state.next_tick(), None);
            assert_eq!(started(&react(&mut state, Event::Tick, now.plus_ms(1_000_000))), [""; 0]);
            // `resume` starts it manually.
            let effects = react(&mut state, Event::Members(vec![record("ann", 6, "worker")]), now);
            assert_eq!(breakers(&effects), [(0, None)]);
            let gone = record("ann", 6, "worker");
            react(&mut state, Event::Exited(Box::new(gone)), now);
            let effects = react(&mut state, stopped("ann", 6, Ok(())), now);
            assert_eq!(breakers(&effects), [(1, Some(1000))]);
            return;
        }
        let pause = 1000 << (failure - 1);
        assert_eq!(state.next_tick(), Some(now.plus_ms(pause)));
        assert_eq!(started(&react(&mut state, Event::Tick, now.plus_ms(pause - 1))), [""; 0]);
        now = now.plus_ms(pause);
        assert_eq!(started(&react(&mut state, Event::Tick, now)), ["ann"]);
        react(&mut state, came_up(&["ann"], &[]), now);
    }
}

#[test]
fn member_that_was_asked_to_end_or_succeeded_is_not_restarted() {
    for ending in ["asked", "well"] {
        let mut ann = record("ann", 1, "worker");
        let (mut state, _) =
            staffed(vec![kind("ann", Demand::Standing)], std::slice::from_ref(&ann), 0);
        if ending == "asked" {
            react(&mut state, Event::Requests(vec![request("ann", 1, true)]), NOW);
        } else {
            ann.exit = Some(ExitRecord { code: Some(0), at: NOW, ..ExitRecord::default() });
            react(&mut state, Event::Exited(Box::new(ann)), NOW);
        }
        assert_eq!(
            started(&react(&mut state, stopped("ann", 1, Ok(())), NOW)),
            [""; 0],
            "{ending}"
        );
        assert_eq!(state.next_tick(), None);
    }
}

#[test]
fn failed_start_is_retried_after_a_delay() {
    let (mut state, effects) = staffed(vec![kind("qa", Demand::WhenNeeded)], &[], 1);
    assert_eq!(started(&effects), ["qa"]);
    let effects = react(&mut state, came_up(&["qa"], &[("qa", "no such file")]), NOW);
    assert_eq!((warns(&effects), started(&effects).len()), (1, 0));
    assert_eq!(started(&react(&mut state, Event::Tick, NOW.plus_ms(1000))), ["qa"]);
}

#[test]
fn team_does_not_end_while_a_member_is_starting() {
    let mut state = State::new(Goal::Lead(Finish::TasksDone), vec![kind("qa", Demand::WhenNeeded)]);
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Board(free(1)), NOW);
    assert_eq!(started(&react(&mut state, Event::Members(Vec::new()), NOW)), ["qa"]);
    assert_eq!(state.end(), None);
    react(&mut state, Event::Stop { force: false }, NOW);
    assert_eq!(state.end(), None, "who comes up now still has to be ended");
    react(&mut state, came_up(&["qa"], &[("qa", "interrupted")]), NOW);
    assert_eq!(state.end(), Some(LeadEnd::Stopped));
}

#[test]
fn member_that_a_person_asked_to_end_is_not_replaced() {
    let scaled = Demand::Scaled(Scale { min: 1, max: 3 });
    let (mut state, _) = staffed(vec![kind("dev", scaled)], &[record("dev-1", 1, "worker")], 1);
    assert_eq!(
        started(&react(&mut state, Event::Requests(vec![request("dev-1", 1, true)]), NOW)),
        [""; 0]
    );
    assert_eq!(started(&react(&mut state, stopped("dev-1", 1, Ok(())), NOW)), [""; 0]);
    assert_eq!(started(&react(&mut state, Event::Tick, NOW)), [""; 0]);
    assert_eq!(
        started(&react(&mut state, Event::Board(free(2)), NOW)),
        ["dev-1", "dev-2"],
        "new work opens it"
    );
}

#[test]
fn member_forced_to_end_while_the_lead_was_suspended_is_not_replaced() {
    let scaled = Demand::Scaled(Scale { min: 1, max: 3 });
    let mut dev = record("dev-1", 1, "worker");
    let (mut state, _) = staffed(vec![kind("dev", scaled)], std::slice::from_ref(&dev), 1);
    dev.state = MemberState::Killed;
    assert_eq!(started(&react(&mut state, Event::Members(vec![dev]), NOW)), [""; 0]);
    assert_eq!(started(&react(&mut state, Event::Tick, NOW)), [""; 0]);
    let effects = react(&mut state, Event::Board(free(2)), NOW);
    assert_eq!(started(&effects), ["dev-1", "dev-2"], "a new task opens it");
}

/// A lead with a kind that has one run per task, two at once.
fn per_task(finish: Finish, tasks: u64) -> (State, Vec<Effect>) {
    let mut template = kind("dev", Demand::PerTask(Some(2)));
    template.spec.profile = Some("claude".to_owned());
    let mut state = State::new(Goal::Lead(finish), vec![template]);
    react(&mut state, Event::Members(Vec::new()), NOW);
    let effects = react(&mut state, Event::Board(free(tasks)), NOW);
    (state, effects)
}

fn of(name: &str, state: TaskState, tasks: u64) -> Board {
    let mut board = free(tasks);
    let task = board.tasks.get_mut(&TaskId(1)).expect("a task");
    (task.state, task.owner) = (state, Some(name.to_owned()));
    board
}

#[test]
fn tk_01_task_is_dispatched_once_across_board_reads() {
    let (mut state, effects) = per_task(Finish::Manual, 3);
    assert_eq!(started(&effects), ["dev-1", "dev-2"]);
    assert_eq!(
        started(&react(&mut state, Event::Board(free(3)), NOW)),
        [""; 0],
        "1 and 2 are underway, and no more"
    );
    react(&mut state, Event::Members(vec![record("dev-1", 1, "claude")]), NOW);
    react(&mut state, Event::Board(of("dev-1", TaskState::InProgress, 3)), NOW);
    let next = react(&mut state, came_up(&["dev-1", "dev-2"], &[]), NOW);
    let Some(Effect::Start { specs, .. }) = next.first() else { panic!("one more: {next:?}") };
    let tasks: Vec<_> = specs.iter().map(|spec| (spec.name.as_str(), spec.task)).collect();
    assert_eq!(
        tasks,
        [("dev-2", Some(TaskId(2)))],
        "whose claim was refused is tried by what the board says"
    );
}

/// MSG-18: however slowly the next run starts, its task is in the same report.
#[test]
fn msg_18_report_waits_for_the_runs_that_follow() {
    let (mut state, _) = per_task(Finish::Manual, 3);
    let board = |first, second, third| {
        let mut board = free(3);
        for (task, (at, state)) in
            board.tasks.values_mut().zip([(1, first), (2, second), (1, third)])
        {
            task.state = state;
            task.owner = (state != TaskState::Pending).then(|| format!("dev-{at}"));
            task.extra.ended_at = state.is_over().then_some(NOW);
        }
        Event::Board(board)
    };
    let reports = |effects: &[Effect]| {
        effects.iter().filter(|effect| matches!(effect, Effect::Report(_))).count()
    };
    use TaskState::{Completed, InProgress, Pending};
    let runs = |state| {
        ["dev-1", "dev-2"].map(|name| MemberRecord { state, ..record(name, 1, "claude") }).to_vec()
    };
    let late = NOW.plus_ms(60_000);
    react(&mut state, board(InProgress, InProgress, Pending), NOW);
    react(&mut state, Event::Members(runs(MemberState::Working)), NOW);
    react(&mut state, came_up(&["dev-1", "dev-2"], &[]), NOW);
    let both_over = react(&mut state, board(Completed, Completed, Pending), late);
    assert_eq!((started(&both_over), reports(&both_over)), (Vec::new(), 0), "both are ending");
    assert!(state.next_tick().is_none_or(|at| at > late), "nothing to do until a run has ended");
    let ended = react(&mut state, Event::Members(runs(MemberState::Completed)), late);
    assert_eq!((started(&ended), reports(&ended)), (vec!["dev-1".to_owned()], 0));
    let slow = react(&mut state, board(Completed, Completed, Pending), late);
    assert_eq!(reports(&slow), 0, "its run has not begun");
    react(&mut state, board(Completed, Completed, InProgress), late);
    react(&mut state, came_up(&["dev-1"], &[]), late);
    let all = react(&mut state, board(Completed, Completed, Completed), late);
    let one = Effect::Report(vec![TaskId(1), TaskId(2), TaskId(3)]);
    assert!(all.contains(&one), "{all:?}");
}

/// TK-15: a run that has ended keeps its name until its launcher has taken it off the team.
#[test]
fn tk_15_name_of_an_ended_run_is_used_once_the_run_has_left() {
    let (mut state, _) = per_task(Finish::Manual, 3);
    let roster = |names: &[&str]| {
        Event::Roster(
            names.iter().map(|name| (MemberName::existing(name).expect("a name"), None)).collect(),
        )
    };
    let runs = |state| {
        ["dev-1", "dev-2"].map(|name| MemberRecord { state, ..record(name, 1, "claude") }).to_vec()
    };
    react(&mut state, roster(&["team-lead", "dev-1", "dev-2"]), NOW);
    react(&mut state, Event::Members(runs(MemberState::Working)), NOW);
    react(&mut state, came_up(&["dev-1", "dev-2"], &[]), NOW);
    let ended = runs(MemberState::Completed);
    let over = react(&mut state, Event::Members(ended.clone()), NOW);
    assert_eq!(started(&over), [""; 0]);
    assert_eq!(started(&react(&mut state, roster(&["dev-1"]), NOW)), ["dev-2"]);
    // The launcher of the other one is killed before the run has left.
    let exited = react(&mut state, Event::Exited(Box::new(ended[0].clone())), NOW);
    let removed =
        |effect: &Effect| matches!(effect, Effect::Remove(of) if of[0].name == ended[0].name);
    assert!(exited.iter().any(removed), "{exited:?}");
}

/// A run that cannot be ended delays no report: no other one takes its place.
#[test]
fn report_does_not_wait_for_a_run_that_is_stuck() {
    let (mut state, _) = per_task(Finish::Manual, 3);
    let runs = ["dev-1", "dev-2"].map(|name| record(name, 1, "claude"));
    let names = ["dev-1", "dev-2"].map(|name| MemberName::existing(name).expect("a name"));
    react(&mut state, Event::Roster(names.map(|name| (name, None)).into()), NOW);
    react(&mut state, Event::Members(runs.to_vec()), NOW);
    react(&mut state, came_up(&["dev-1", "dev-2"], &[]), NOW);
    let mut board = of("dev-1", TaskState::Completed, 3);
    board.tasks.get_mut(&TaskId(1)).expect("a task").extra.ended_at = Some(NOW);
    let late = NOW.plus_ms(60_000);
    let reports = |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::Report(_)));
    assert!(!reports(&react(&mut state, Event::Board(board), late)), "both will leave");
    for run in runs {
        react(&mut state, Event::Exited(Box::new(run.clone())), late);
        let (name, incarnation) = (run.name, run.incarnation);
        let ended = StoppedRun { name, incarnation, result: Err("it stays".to_owned()) };
        let effects = react(&mut state, Event::RunsStopped(vec![ended]), late);
        assert_eq!(reports(&effects), state.members.values().all(|view| view.stuck));
    }
}

/// A run that cannot start delays no report.
#[test]
fn report_does_not_wait_for_runs_that_fail_to_start() {
    let (mut state, _) = per_task(Finish::Manual, 2);
    let mut board = of("dev-1", TaskState::Completed, 2);
    board.tasks.get_mut(&TaskId(1)).expect("a task").extra.ended_at = Some(NOW);
    let late = NOW.plus_ms(60_000);
    react(&mut state, Event::Board(board), late);
    let failed = react(&mut state, came_up(&["dev-1", "dev-2"], &[("dev-2", "no")]), late);
    assert!(failed.contains(&Effect::Report(vec![TaskId(1)])), "{failed:?}");
}

#[test]
fn run_whose_task_is_over_ends_by_itself() {
    let (mut state, _) = per_task(Finish::TasksDone, 1);
    let mut run = record("dev-1", 1, "claude");
    run.state = MemberState::Idle;
    react(&mut state, Event::Members(vec![run.clone()]), NOW);
    react(&mut state, Event::Board(of("dev-1", TaskState::InProgress, 1)), NOW);
    react(&mut state, came_up(&["dev-1"], &[]), NOW);
    let over = react(&mut state, Event::Board(of("dev-1", TaskState::Completed, 1)), NOW);
    assert_eq!((asked(&over), state.end()), (Vec::new(), None));
    run.state = MemberState::Completed;
    react(&mut state, Event::Members(vec![run]), NOW);
    assert_eq!(state.end(), Some(LeadEnd::TasksOver));
}

#[test]
fn failed_starts_end_the_team_and_a_finished_run_resets_the_count() {
    let (mut state, _) = per_task(Finish::TasksDone, 1);
    let mut at = NOW;
    for round in 1..=5 {
        assert_eq!(state.end(), None, "{round}");
        let failed = react(&mut state, came_up(&["dev-1"], &[("dev-1", "no")]), at);
        assert_eq!(started(&failed), [""; 0], "{round}");
        at = state.next_tick().unwrap_or(at);
        assert_eq!(
            started(&react(&mut state, Event::Tick, at)).len(),
            usize::from(round < 5),
            "{round}"
        );
    }
    assert_eq!(state.end(), Some(LeadEnd::TasksOver), "no member is left to do it");
    let (mut state, _) = per_task(Finish::Manual, 3);
    react(&mut state, came_up(&["dev-1", "dev-2"], &[("dev-1", "no")]), NOW);
    let mut run = record("dev-2", 1, "claude");
    react(&mut state, Event::Members(vec![run.clone()]), NOW);
    (run.state, run.exit) =
        (MemberState::Failed, Some(ExitRecord { code: Some(3), at: NOW, ..ExitRecord::default() }));
    let ended = react(&mut state, Event::Members(vec![run]), NOW);
    assert_eq!(started(&ended), ["dev-1", "dev-2"], "without a pause");
}

#[test]
fn expired_back_off_requires_no_further_tick() {
    let (mut state, _) = per_task(Finish::Manual, 1);
    react(&mut state, came_up(&["dev-1"], &[("dev-1", "no")]), NOW);
    let again = state.next_tick().expect("a pause");
    assert_eq!(started(&react(&mut state, Event::Tick, again)), ["dev-1"]);
    assert_eq!(state.next_tick(), None, "it is underway");
}
