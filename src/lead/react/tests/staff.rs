//! Members that come and go with the work, and come again when they fail.

use super::*;
use crate::model::order::{Demand, Order, Scale, Template};

fn kind(name: &str, demand: Demand) -> Template {
    Template { order: Order { name: name.to_owned(), ..Order::default() }, demand }
}

/// A lead of a team with these templates, these members and so many free tasks.
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
    let orders = effects.iter().filter_map(|effect| match effect {
        Effect::Start { orders, .. } => Some(orders),
        _ => None,
    });
    orders.flatten().map(|order| order.name.clone()).collect()
}

fn asked(effects: &[Effect]) -> Vec<String> {
    let names = effects.iter().filter_map(|effect| match effect {
        Effect::AskShutdown { names, .. } => Some(names),
        _ => None,
    });
    names.flatten().map(MemberName::to_string).collect()
}

fn came_up(names: &[&str], failures: &[(&str, &str)]) -> Event {
    let names = names.iter().map(|name| who(name)).collect();
    let failures = failures.iter().map(|(name, why)| (who(name), (*why).to_owned())).collect();
    Event::Started { kind: 0, names, failures }
}

#[test]
fn as_many_are_started_as_there_is_work_for_and_each_once() {
    let scaled = Demand::Scaled(Scale { min: 0, max: 3 });
    let (mut state, effects) = staffed(vec![kind("dev", scaled)], &[record("ann", 1, "worker")], 2);
    assert_eq!(started(&effects), ["dev-1", "dev-2"]);
    assert_eq!(started(&react(&mut state, Event::Board(free(2)), NOW)), [""; 0], "they are on their way");
    assert_eq!(started(&react(&mut state, Event::Board(free(9)), NOW)), ["dev-3"], "and no more than three");
    assert_eq!(started(&react(&mut state, came_up(&["dev-1", "dev-2"], &[]), NOW)), ["dev-1", "dev-2"]);
}

#[test]
fn who_is_not_needed_is_asked_to_end_once_and_only_when_idle() {
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
fn a_member_that_waits_for_its_first_task_is_started_with_it() {
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
fn what_fails_is_started_again_with_growing_pauses_and_not_for_ever() {
    let (mut state, _) = staffed(vec![kind("ann", Demand::Standing)], &[record("ann", 1, "worker")], 0);
    let mut now = NOW;
    for failure in 1_u8..=5 {
        let mut gone = record("ann", failure, "worker");
        gone.start.as_mut().expect("a start").at = now;
        react(&mut state, Event::Members(vec![gone.clone()]), now);
        react(&mut state, Event::Exited(Box::new(gone)), now);
        let effects = react(&mut state, terminated("ann", failure, Ok(())), now);
        assert_eq!(started(&effects), [""; 0], "there is a pause first");
        if failure == 5 {
            assert_eq!(warns(&effects), 1);
            assert_eq!(state.next_tick(), None);
            assert_eq!(started(&react(&mut state, Event::Tick, now.plus_ms(1_000_000))), [""; 0]);
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
fn a_member_that_was_asked_to_end_or_ended_well_is_not_started_again() {
    for ending in ["asked", "well"] {
        let mut ann = record("ann", 1, "worker");
        let (mut state, _) = staffed(vec![kind("ann", Demand::Standing)], std::slice::from_ref(&ann), 0);
        if ending == "asked" {
            react(&mut state, Event::Requests(vec![request("ann", 1, true)]), NOW);
        } else {
            ann.exit =
                Some(ExitRecord { code: Some(0), signal: None, problem: None, no_terminal: false, at: NOW });
            react(&mut state, Event::Exited(Box::new(ann)), NOW);
        }
        assert_eq!(started(&react(&mut state, terminated("ann", 1, Ok(())), NOW)), [""; 0], "{ending}");
        assert_eq!(state.next_tick(), None);
    }
}

#[test]
fn a_failed_start_is_tried_again_later() {
    let (mut state, effects) = staffed(vec![kind("qa", Demand::WhenNeeded)], &[], 1);
    assert_eq!(started(&effects), ["qa"]);
    let effects = react(&mut state, came_up(&["qa"], &[("qa", "no such file")]), NOW);
    assert_eq!((warns(&effects), started(&effects).len()), (1, 0));
    assert_eq!(started(&react(&mut state, Event::Tick, NOW.plus_ms(1000))), ["qa"]);
}

#[test]
fn a_team_does_not_end_while_somebody_is_on_the_way() {
    let mut state = State::new(Goal::Lead(Finish::TasksDone), vec![kind("qa", Demand::WhenNeeded)]);
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Board(free(1)), NOW);
    assert_eq!(started(&react(&mut state, Event::Members(Vec::new()), NOW)), ["qa"]);
    assert_eq!(state.end(), None);
    react(&mut state, Event::Stop { force: false }, NOW);
    assert_eq!(state.end(), None, "who comes up now still has to be ended");
    react(&mut state, came_up(&["qa"], &[("qa", "interrupted")]), NOW);
    assert_eq!(state.end(), Some(End::Stopped));
}

#[test]
fn nobody_comes_in_the_place_of_one_that_a_person_asked_to_end() {
    let scaled = Demand::Scaled(Scale { min: 1, max: 3 });
    let (mut state, _) = staffed(vec![kind("dev", scaled)], &[record("dev-1", 1, "worker")], 1);
    assert_eq!(started(&react(&mut state, Event::Requests(vec![request("dev-1", 1, true)]), NOW)), [""; 0]);
    assert_eq!(started(&react(&mut state, terminated("dev-1", 1, Ok(())), NOW)), [""; 0]);
    assert_eq!(started(&react(&mut state, Event::Tick, NOW)), [""; 0]);
    assert_eq!(
        started(&react(&mut state, Event::Board(free(2)), NOW)),
        ["dev-1", "dev-2"],
        "new work opens it"
    );
}
