//! Compares the task board with an in-memory model: dependencies, claims, ends, releases, and files
//! that another program deletes.

use std::collections::BTreeMap;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use testing::TaskRow;

use super::{MEMBERS, Place, cases};

/// The blockers of a new task: among those on the board, and among the earlier ones of its batch.
type Wanted = (Vec<Index>, Vec<Index>);

#[derive(Debug, Clone)]
enum Act {
    Create(Vec<Wanted>),
    /// Blocked by a task that does not exist.
    CreateDangling,
    Claim(Index, usize),
    ClaimNext(usize),
    Complete(Index, usize),
    Fail(Index, usize),
    Review(Index, usize),
    Approve(Index, usize),
    Cancel(Index, usize),
    Retry(Index, usize),
    Release(usize),
    /// Another program deletes the file of the newest task, or of any.
    Vanish(Index, bool),
}

/// An index of a member; one past the last is the lead, who may end tasks too.
fn who() -> impl Strategy<Value = usize> {
    0..=MEMBERS.len()
}

fn name(who: usize) -> &'static str {
    MEMBERS.get(who).copied().unwrap_or("team-lead")
}

fn act() -> impl Strategy<Value = Act> {
    let wanted = (vec(any::<Index>(), 0..3), vec(any::<Index>(), 0..2));
    let any_task = any::<Index>;
    prop_oneof![
        4 => vec(wanted, 1..4).prop_map(Act::Create),
        1 => Just(Act::CreateDangling),
        5 => (any_task(), who()).prop_map(|(at, who)| Act::Claim(at, who)),
        5 => who().prop_map(Act::ClaimNext),
        5 => (any_task(), who()).prop_map(|(at, who)| Act::Complete(at, who)),
        2 => (any_task(), who()).prop_map(|(at, who)| Act::Fail(at, who)),
        2 => (any_task(), who()).prop_map(|(at, who)| Act::Review(at, who)),
        2 => (any_task(), who()).prop_map(|(at, who)| Act::Approve(at, who)),
        1 => (any_task(), who()).prop_map(|(at, who)| Act::Cancel(at, who)),
        2 => (any_task(), who()).prop_map(|(at, who)| Act::Retry(at, who)),
        1 => who().prop_map(Act::Release),
        1 => (any_task(), any::<bool>()).prop_map(|(at, newest)| Act::Vanish(at, newest)),
    ]
}

#[derive(Debug, Clone, Default)]
struct Known {
    state: &'static str,
    owner: Option<&'static str>,
    after: Vec<u64>,
}

#[derive(Default)]
struct Model {
    tasks: BTreeMap<u64, Known>,
    last_id: u64,
}

impl Model {
    /// A blocker that vanished no longer blocks.
    fn is_blocked(&self, id: u64) -> bool {
        let open = |blocker: &u64| {
            let ends = |task: &Known| matches!(task.state, "completed" | "cancelled");
            self.tasks.get(blocker).is_some_and(|task| !ends(task))
        };
        self.tasks[&id].after.iter().any(open)
    }

    fn claim(&self, id: u64, who: &str) -> Result<(), &'static str> {
        let Some(task) = self.tasks.get(&id) else { return Err("task_not_found") };
        match (task.state, task.owner) {
            ("pending" | "in_progress" | "in_review", Some(owner)) if owner != who => {
                Err("already_claimed")
            }
            ("in_progress" | "in_review", _) => Err("already_claimed"),
            ("pending", _) if self.is_blocked(id) => Err("blocked"),
            ("pending", _) => Ok(()),
            _ => Err("already_resolved"),
        }
    }

    fn next(&self, who: &str) -> Option<u64> {
        if self.tasks.values().any(|task| task.state == "in_progress" && task.owner == Some(who)) {
            return None;
        }
        let free = |owner: Option<&str>| {
            let mut ids =
                self.tasks.iter().filter(|(_, task)| task.owner == owner).map(|(id, _)| *id);
            ids.find(|id| self.claim(*id, who).is_ok())
        };
        free(Some(who)).or_else(|| free(None))
    }

    fn may(&self, id: u64, who: &str, action: &str) -> bool {
        let Some(task) = self.tasks.get(&id) else { return false };
        let state = task.state;
        let is_free = state == "pending" && task.owner.is_none();
        let owns = who == "team-lead" || task.owner == Some(who);
        let open = matches!(state, "pending" | "in_progress" | "in_review");
        match action {
            "complete" => {
                let works = matches!(state, "pending" | "in_progress");
                (owns || is_free) && works && !self.is_blocked(id)
            }
            "review" => owns && state == "in_progress" && !self.is_blocked(id),
            "approve" => who == "team-lead" && state == "in_review" && !self.is_blocked(id),
            // The lead has created all tasks.
            "cancel" => owns && (open || state == "failed"),
            "fail" => owns && open,
            "retry" => owns && !matches!(state, "pending" | "in_progress" | "in_review"),
            other => panic!("{other}"),
        }
    }

    fn can_move(&self) -> bool {
        let moves = |(id, task): (&u64, &Known)| match task.state {
            "in_progress" | "in_review" => true,
            "pending" => !self.is_blocked(*id),
            _ => false,
        };
        self.tasks.iter().any(moves)
    }

    fn set(&mut self, id: u64, state: &'static str, owner: Option<&'static str>) {
        let task = self.tasks.get_mut(&id).expect("the model knows it");
        (task.state, task.owner) = (state, owner);
    }
}

struct Run {
    place: Place,
    model: Model,
}

impl Run {
    /// Returns the id of any task ever created, existing or not; 1 before the first.
    fn task(&self, at: Index) -> u64 {
        at.index(usize::try_from(self.model.last_id.max(1)).expect("few tasks")) as u64 + 1
    }

    fn act(&mut self, act: &Act) {
        let team = &self.place.team;
        match act {
            Act::Create(batch) => self.create(batch),
            Act::CreateDangling => {
                let missing = self.model.last_id + 50;
                let refused = team.create_tasks(&[(vec![], vec![]), (vec![missing], vec![])]);
                assert_eq!(refused, Err("task_not_found".to_owned()));
            }
            Act::Claim(at, who) => {
                let (id, who) = (self.task(*at), name(*who));
                let expected = self.model.claim(id, who);
                let claimed = team.claim(id, who);
                assert_eq!(claimed, expected.map_err(str::to_owned), "{id} by {who}");
                if expected.is_ok() {
                    self.model.set(id, "in_progress", Some(who));
                }
            }
            Act::ClaimNext(who) => {
                let expected = self.model.next(name(*who));
                assert_eq!(team.claim_next(name(*who)), Ok(expected), "by {}", name(*who));
                expected
                    .into_iter()
                    .for_each(|id| self.model.set(id, "in_progress", Some(name(*who))));
            }
            Act::Complete(at, who) => self.step(*at, name(*who), "complete", "completed"),
            Act::Fail(at, who) => self.step(*at, name(*who), "fail", "failed"),
            Act::Review(at, who) => self.step(*at, name(*who), "review", "in_review"),
            Act::Approve(at, who) => self.step(*at, name(*who), "approve", "completed"),
            Act::Cancel(at, who) => self.step(*at, name(*who), "cancel", "cancelled"),
            Act::Retry(at, who) => self.step(*at, name(*who), "retry", "pending"),
            Act::Release(who) => self.release(name(*who)),
            Act::Vanish(at, newest) => self.vanish(*at, *newest),
        }
    }

    fn create(&mut self, batch: &[Wanted]) {
        let there: Vec<u64> = self.model.tasks.keys().copied().collect();
        let pick = |at: &Index| at.index(there.len());
        let on_board = |wanted: &Wanted| {
            let mut ids: Vec<u64> =
                wanted.0.iter().filter(|_| !there.is_empty()).map(|at| there[pick(at)]).collect();
            ids.dedup();
            ids
        };
        let before = |place: usize, wanted: &Wanted| {
            let mut places: Vec<usize> =
                wanted.1.iter().filter(|_| place > 0).map(|at| at.index(place)).collect();
            places.dedup();
            places
        };
        let asked: Vec<_> = batch
            .iter()
            .enumerate()
            .map(|(place, wanted)| (on_board(wanted), before(place, wanted)))
            .collect();
        let ids = self.place.team.create_tasks(&asked).expect("all blockers are there");
        for (id, (on_board, before)) in ids.iter().zip(&asked) {
            assert!(*id > self.model.last_id, "id {id} was given out before");
            self.model.last_id = *id;
            let after =
                on_board.iter().copied().chain(before.iter().map(|place| ids[*place])).collect();
            self.model.tasks.insert(*id, Known { state: "pending", owner: None, after });
        }
    }

    fn step(&mut self, at: Index, who: &'static str, action: &str, next: &'static str) {
        let id = self.task(at);
        let expected = self.model.may(id, who, action);
        let done = self.place.team.act(id, who, action);
        assert_eq!(done.is_ok(), expected, "{action} {id} by {who}: {done:?}");
        if expected {
            let claims = action == "complete";
            let owner = self.model.tasks[&id].owner.or(claims.then_some(who));
            self.model.set(id, next, owner);
        }
    }

    fn release(&mut self, who: &'static str) {
        let held = |task: &Known| {
            task.owner == Some(who) && matches!(task.state, "pending" | "in_progress")
        };
        let expected: Vec<u64> =
            self.model.tasks.iter().filter(|(_, task)| held(task)).map(|(id, _)| *id).collect();
        assert_eq!(self.place.team.release(who), Ok(expected.clone()));
        expected.into_iter().for_each(|id| self.model.set(id, "pending", None));
    }

    fn vanish(&mut self, at: Index, newest: bool) {
        let id = if newest { self.model.last_id } else { self.task(at) };
        if self.model.tasks.remove(&id).is_some() {
            fs::remove_file(self.place.task(id)).expect("it is there");
        }
    }

    fn check(&self) {
        let (rows, can_move) = self.place.team.board().expect("readable");
        assert_eq!(can_move, self.model.can_move(), "{rows:?}");
        let short = |row: &TaskRow| (row.0, row.1, row.2.clone(), row.4.clone());
        let known = |(id, task): (&u64, &Known)| {
            (*id, task.state, task.owner.map(str::to_owned), task.after.clone())
        };
        let (found, expected): (Vec<_>, Vec<_>) =
            (rows.iter().map(short).collect(), self.model.tasks.iter().map(known).collect());
        assert_eq!(found, expected);
        self.check_edges(&rows);
    }

    /// Asserts that both ends record a dependency, as far as they exist.
    fn check_edges(&self, rows: &[TaskRow]) {
        let rows: BTreeMap<u64, &TaskRow> = rows.iter().map(|row| (row.0, row)).collect();
        for (id, row) in &rows {
            let forth =
                row.3.iter().filter_map(|other| rows.get(other)).all(|other| other.4.contains(id));
            let back =
                row.4.iter().filter_map(|other| rows.get(other)).all(|other| other.3.contains(id));
            assert!(forth && back, "an edge of {id} has one end only: {rows:?}");
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn board_matches_its_model(acts in vec(act(), 1..25)) {
        let mut run = Run { place: Place::new(), model: Model::default() };
        for act in &acts {
            run.act(act);
            run.check();
        }
    }
}
