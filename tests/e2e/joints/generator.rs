//! Sequences of actions from a seed. The same seed gives the same sequence on every machine: only
//! the model decides which action comes next.

use super::actions::{AGENTS, Action, Actor, Key, LEAD, Name, Verb, WORKERS};
use super::model::{Model, Outcome, State};

/// The number of actions in a walk.
const LENGTH: usize = 30;
/// Attempts to find an action that the program performs. The last one may be refused.
const ATTEMPTS: usize = 8;
const FILES: [&str; 2] = ["src/a", "src/b"];
const SETTINGS: [(&str, &str); 4] = [
    ("on_hang", "release"),
    ("on_hang", "report"),
    ("followup_interval_minutes", "60"),
    ("max_members", "12"),
];

/// Steps of a verb at which it is killed, in their order.
const STEPS: [&str; 4] = ["task.stopping", "task.ended", "task.told", "task.freed"];

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("small")
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.roll(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.roll(from.len())])
    }
}

struct Generator {
    dice: Dice,
    model: Model,
    /// The number of the next task, message or question.
    next: u32,
}

/// Returns the actions that make a team, and those of the walk.
pub fn sequence(seed: u64) -> Vec<Action> {
    let mut generator = Generator { dice: Dice(seed), model: Model::default(), next: 1 };
    let mut actions = vec![Action::StartLead, Action::Spawn(WORKERS[0]), Action::Spawn(AGENTS[0])];
    actions.iter().for_each(|action| {
        generator.model.apply(action);
    });
    while actions.len() < LENGTH {
        actions.push(generator.step());
    }
    actions
}

impl Generator {
    /// Returns the next action, performed on the model.
    fn step(&mut self) -> Action {
        let mut chosen = None;
        for _ in 0..ATTEMPTS {
            let Some(action) = self.propose() else { continue };
            let outcome = self.model.clone().apply(&action);
            if outcome != Outcome::Void {
                chosen = Some(action);
            }
            if outcome == Outcome::Done {
                break;
            }
        }
        let action = chosen.unwrap_or_else(|| self.create());
        self.model.apply(&action);
        self.next += 1;
        self.model.run_workers();
        action
    }

    fn propose(&mut self) -> Option<Action> {
        let word = self.next;
        match self.dice.roll(100) {
            0..17 => Some(self.create()),
            17..42 => self.act(),
            42..53 => {
                let runs = |key: &Key| self.model.runner(*key).is_some();
                let running: Vec<Key> = self.model.tasks.keys().copied().filter(runs).collect();
                let with_success = !self.dice.one_in(4);
                self.dice.pick(&running).map(|key| Action::EndCommand { key, with_success })
            }
            53..57 => {
                let to = self.name();
                let by = self.lead();
                self.task().map(|key| Action::Assign { by, key, to })
            }
            57..61 => Some(Action::Block { key: self.task()?, after: self.task()? }),
            61..64 => {
                let key = self.task()?;
                let after: Vec<Key> = self.model.blockers(key).iter().copied().collect();
                self.dice.pick(&after).map(|after| Action::Unblock { key, after })
            }
            64..71 => Some(Action::Spawn(self.name())),
            71..73 => Some(Action::Shutdown(self.name())),
            73 => Some(Action::Kill(self.name())),
            74 => Some(Action::Restart(self.name())),
            75..77 => Some(Action::Crash(self.name())),
            77..79 => Some(Action::CrashLauncher(self.name())),
            79..83 => {
                let verb = self.dice.pick(&[Verb::Cancel, Verb::Fail, Verb::Release])?;
                let step = self.dice.pick(&STEPS)?;
                self.task().map(|key| Action::CrashVerb { verb, key, step })
            }
            83..87 => Some(Action::CrashLead),
            87..91 => Some(Action::StartLead),
            91 => Some(Action::Report { from: self.agent(), word }),
            92 => Some(Action::Tell { to: self.name(), word }),
            93..95 => Some(Action::Ask { from: self.agent(), word }),
            95..98 => Some(Action::Answer { from: self.agent(), approve: self.dice.one_in(2) }),
            _ => self.dice.pick(&SETTINGS).map(|(key, value)| Action::Set { key, value }),
        }
    }

    fn create(&mut self) -> Action {
        let by = if self.dice.one_in(4) { Actor::Member(self.agent()) } else { self.lead() };
        let file = if self.dice.one_in(4) { self.dice.pick(&FILES) } else { None };
        let after = if self.dice.one_in(3) { self.task() } else { None };
        let is_given = self.dice.one_in(5) && by.name() == LEAD;
        let owner = if is_given { Some(self.name()) } else { None };
        let has_command = !self.dice.one_in(3);
        Action::Create { by, key: self.next, has_command, file, after, owner }
    }

    fn act(&mut self) -> Option<Action> {
        let key = self.task()?;
        let verb = self.dice.pick(&Verb::ALL)?;
        let by = match verb {
            Verb::Approve | Verb::Reject | Verb::RejectForGood => self.lead(),
            _ if self.dice.one_in(2) => Actor::Member(self.agent()),
            _ => self.lead(),
        };
        // Otherwise most of what is created would not be there for long.
        let is_rare = verb == Verb::Delete && self.model.state(key) != State::Completed;
        (!is_rare || self.dice.one_in(3)).then_some(Action::Act { by, verb, key })
    }

    fn task(&mut self) -> Option<Key> {
        let keys: Vec<Key> = self.model.tasks.keys().copied().collect();
        self.dice.pick(&keys)
    }

    fn lead(&mut self) -> Actor {
        if self.dice.one_in(2) { Actor::Person } else { Actor::Tools }
    }

    fn agent(&mut self) -> Name {
        AGENTS[self.dice.roll(AGENTS.len())]
    }

    fn name(&mut self) -> Name {
        let names = [WORKERS, AGENTS].concat();
        names[self.dice.roll(names.len())]
    }
}
