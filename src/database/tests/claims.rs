//! Claims, compared with the rules of the board.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use super::*;
use crate::{LogKind, LogScope, StoredTask, TaskScope};
use model::board::task::{Task, TaskState};
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};

#[test]
fn each_task_is_claimed_once_by_many_claimers() {
    const TASKS: u64 = 1000;
    let Some(stage) = stage() else { return };
    let batch: Vec<_> =
        (1..=TASKS).map(|id| TaskWrite { has_command: false, ..new_task(id) }).collect();
    stage.db.put_tasks(TEAM, &batch, TASKS).unwrap().expect("new");
    let others: Vec<_> = (0..8).map(|_| connect(&stage.database)).collect();
    let claimed: Vec<u64> = thread::scope(|scope| {
        let claimers: Vec<_> = (0..64)
            .map(|at| {
                let db = &others[at % others.len()];
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    let who = format!("m{at}");
                    while let ClaimReply::Claimed(task) =
                        claim_as(db, &who, ClaimScope::Prompt, None, false)
                    {
                        ids.push(task.id);
                    }
                    ids
                })
            })
            .collect();
        claimers.into_iter().flat_map(|claimer| claimer.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), claimed.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(claimed.len() as u64, TASKS);
}

#[test]
fn claim_is_stored_and_a_repeated_one_returns_the_same_task() {
    let Some(stage) = stage() else { return };
    stage.db.put_tasks(TEAM, &[new_task(1), new_task(2)], 2).unwrap().expect("new");
    let arguments = json!({ "team": TEAM, "scope": "command", "by": "Ann", "at": 5, "event": "e1",
        "who": "ann", "role": null, "busy_check": false, "line": "\"by\":\"Ann\"" });
    let first = stage.raw("claim", &arguments);
    let StoredTask { version, claim, .. } =
        stage.db.tasks(TEAM, &TaskScope::All).unwrap().tasks.remove(0);
    let claim = claim.expect("claimed");
    assert_eq!((&*claim.by, claim.at, &*claim.event), ("Ann", 5, "e1"));
    // The task was completed before the claim is repeated.
    let done = TaskWrite { expected: Some(version), state: "completed", ..new_task(1) };
    stage.db.put_tasks(TEAM, &[done], 2).unwrap().expect("the version is right");
    assert_eq!(stage.raw("claim", &arguments), first);
    let all = stage.db.tasks(TEAM, &TaskScope::All).unwrap().tasks;
    assert!(all.iter().all(|task| task.claim.is_none()), "a write replaces the claim");
    let journal = stage.db.log(TEAM, LogKind::Journal, &LogScope::Task(1)).unwrap();
    let lines: Vec<_> = journal.iter().map(|line| &*line.body).collect();
    assert_eq!(lines, ["{\"by\":\"Ann\",\"task\":1}"], "journaled once");
}

#[test]
fn two_claims_of_one_member_do_not_both_pass_the_busy_check() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    for round in 0..20 {
        let ids = [2 * round + 1, 2 * round + 2];
        let batch = ids.map(|id| TaskWrite { has_command: round % 2 == 0, ..new_task(id) });
        stage.db.put_tasks(TEAM, &batch, ids[1]).unwrap().expect("new");
        let who = format!("m{round}");
        let scope = || if round % 2 == 0 { ClaimScope::Command } else { ClaimScope::Prompt };
        let replies = thread::scope(|threads| {
            let theirs = threads.spawn(|| claim_as(&other, &who, scope(), None, round % 2 == 1));
            [claim_as(&stage.db, &who, scope(), None, round % 2 == 1), theirs.join().unwrap()]
        });
        let claimed = replies.iter().filter(|r| matches!(r, ClaimReply::Claimed(_))).count();
        assert_eq!(claimed, 1, "{replies:?}");
        // The rest is for nobody.
        claim_as(&stage.db, "rest", ClaimScope::Task(ids[0]), None, false);
        claim_as(&stage.db, "rest", ClaimScope::Task(ids[1]), None, false);
    }
}

#[test]
fn overlapping_tasks_are_not_claimed_at_once() {
    let Some(stage) = stage() else { return };
    let others: Vec<_> = (0..4).map(|_| connect(&stage.database)).collect();
    for round in 0..20 {
        let dir = format!("d{round}/**");
        let ids = round * 4 + 1..=round * 4 + 4;
        let batch: Vec<_> =
            ids.map(|id| TaskWrite { files: vec![dir.clone()], ..new_task(id) }).collect();
        stage.db.put_tasks(TEAM, &batch, 0).unwrap().expect("new");
        let claimed: usize = thread::scope(|scope| {
            let claims = others.iter().enumerate().map(|(at, db)| {
                let who = format!("m{round}-{at}");
                scope.spawn(move || claim_as(db, &who, ClaimScope::Command, None, false))
            });
            let claims: Vec<_> = claims.collect();
            let replies = claims.into_iter().map(|claim| claim.join().unwrap());
            replies.filter(|reply| matches!(reply, ClaimReply::Claimed(_))).count()
        });
        assert_eq!(claimed, 1);
    }
}

#[test]
fn claim_is_turned_away_while_the_task_list_is_locked() {
    let Some(stage) = stage() else { return };
    stage.db.put_tasks(TEAM, &[new_task(1)], 1).unwrap().expect("new");
    let lock = stage.db.lock(TEAM, "task-list", PATIENCE).unwrap().expect("free");
    let claim = || claim_as(&stage.db, "ann", ClaimScope::Command, None, false);
    assert_eq!(claim(), ClaimReply::Locked);
    drop(lock);
    assert!(matches!(claim(), ClaimReply::Claimed(_)));
}

/// What a claim does by the rules of the board.
fn expected(
    board: &Board,
    scope: &ClaimScope,
    who: &MemberName,
    role: Option<&str>,
    busy: bool,
) -> ClaimedId {
    let next = |id: Option<TaskId>| id.map_or(ClaimedId::Nothing, |id| ClaimedId::Task(id.0));
    match scope {
        ClaimScope::Command => next(board.all_for_worker(who, role).next().map(|t| t.id)),
        ClaimScope::Prompt => match board.work_of(who).filter(|_| busy) {
            Some(with) => ClaimedId::Busy(with.0),
            None => next(board.all_for_agent(who, role).next().map(|t| t.id)),
        },
        ClaimScope::Task(id) => match board.may_claim(TaskId(*id), who, busy) {
            Ok(()) => ClaimedId::Task(*id),
            Err(Refusal::AgentBusy { with, .. }) => ClaimedId::Busy(with.0),
            Err(_) => ClaimedId::Nothing,
        },
    }
}

/// A reply without the content of the task.
#[derive(Debug, PartialEq, Eq)]
enum ClaimedId {
    Task(u64),
    Busy(u64),
    Nothing,
    Locked,
}

fn task_strategy(id: u64) -> impl Strategy<Value = Task> {
    use TaskState::{Cancelled, Completed, Failed, InProgress, InReview, Pending, Stale};
    let states = [Pending, InProgress, InReview, Completed, Failed, Cancelled, Stale];
    let state = prop_oneof![6 => Just(Pending), 4 => prop::sample::select(states.to_vec())];
    let owners = vec![None, None, None, Some("ann"), Some("Ann"), Some("bob")];
    let roles = vec![None, None, Some("Tester"), Some("writer")];
    let patterns =
        vec!["src/**", "src/a.rs", "src/b.rs", "docs/[ab].txt", "docs/a.txt", "s{r,x}c/a"];
    let files = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(prop::sample::select(patterns), 1..3)
    ];
    let blockers = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(1..10_u64, 1..3)];
    let fields = (
        state,
        prop::sample::select(owners),
        prop::sample::select(roles),
        files,
        blockers,
        prop::option::of(-1..3_i64),
        any::<bool>(),
        prop::bool::weighted(0.1),
    );
    fields.prop_map(move |(state, owner, role, files, blockers, priority, command, internal)| {
        let mut task = Task::new(TaskId(id), "s", "d");
        task.state = state;
        task.owner = owner.map(str::to_owned);
        task.blocked_by = blockers.into_iter().map(TaskId).collect();
        task.extra.role = role.map(str::to_owned);
        task.extra.files = files.into_iter().map(str::to_owned).collect();
        task.extra.priority = priority;
        if command {
            task.extra.run = vec!["true".to_owned()];
        }
        if internal {
            task.metadata.insert("_internal".to_owned(), true.into());
        }
        task
    })
}

fn board_strategy() -> impl Strategy<Value = Vec<Task>> {
    (1..9_u64, any::<u64>()).prop_flat_map(|(count, gap)| {
        // One id is missing, so that it does not block.
        (1..=count).filter(|id| *id != gap % 12).map(task_strategy).collect::<Vec<_>>()
    })
}

fn row_of(task: &Task) -> TaskWrite {
    TaskWrite {
        state: task.state.as_str(),
        owner: task.owner_member().map(|owner| owner.folded()),
        priority: task.extra.priority.unwrap_or(0),
        role: task.extra.role.as_ref().map(|role| role.to_ascii_lowercase()),
        internal: task.is_internal(),
        has_command: !task.extra.run.is_empty(),
        files: task.extra.files.clone(),
        blocked_by: task.blocked_by.iter().map(|id| id.0).collect(),
        ..new_task(task.id.0)
    }
}

#[test]
fn claims_follow_the_rules_of_the_board() {
    let Some(stage) = stage() else { return };
    let scope = prop_oneof![
        Just(ClaimScope::Command),
        Just(ClaimScope::Prompt),
        (1..10_u64).prop_map(ClaimScope::Task)
    ];
    let roles = prop::sample::select(vec![None, Some("tester"), Some("WRITER")]);
    let cases = (board_strategy(), prop::collection::vec((scope, roles, any::<bool>()), 1..5));
    let ann = MemberName::new("ann").expect("a name");
    let number = Cell::new(0);
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&cases, |(tasks, claims)| {
        number.set(number.get() + 1);
        let team = format!("team{}", number.get());
        stage.db.create_team(&team, &[]).unwrap();
        let rows: Vec<_> = tasks.iter().map(row_of).collect();
        stage.db.put_tasks(&team, &rows, 9).unwrap().expect("new");
        let mut board = Board::default();
        board.tasks.extend(tasks.into_iter().map(|task| (task.id, task)));
        for (scope, role, busy_check) in claims {
            let wanted = expected(&board, &scope, &ann, role, busy_check);
            // A worker is never asked for a busy check.
            let busy_check = busy_check && scope != ClaimScope::Command;
            let claim = StoredClaim { by: "Ann".to_owned(), at: 1, event: rand::uuid() };
            let role = role.map(str::to_ascii_lowercase);
            let who = ann.folded();
            let line = "\"id\":1".to_owned();
            let call = ClaimCall { scope, claim: &claim, who, role, busy_check, line };
            let got = match stage.db.claim(&team, &call).unwrap() {
                ClaimReply::Claimed(task) => ClaimedId::Task(task.id),
                ClaimReply::Busy(with) => ClaimedId::Busy(with),
                ClaimReply::Nothing => ClaimedId::Nothing,
                ClaimReply::Locked => ClaimedId::Locked,
            };
            prop_assert_eq!(&got, &wanted, "{:?} on {:#?}", call.scope, board.tasks);
            if let ClaimedId::Task(id) = got {
                let task = board.tasks.get_mut(&TaskId(id)).expect("on the board");
                task.state = TaskState::InProgress;
                task.owner = Some("ann".to_owned());
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
