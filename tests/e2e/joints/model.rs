//! The state in which each action leaves a team: `docs/lifecycle.md` as a second program.

use std::collections::{BTreeMap, BTreeSet};

use super::actions::{Action, Actor, Key, LEAD, Name, Verb, WORKERS, is_worker};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Pending,
    Blocked,
    InProgress,
    InReview,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    /// The word of `--json`.
    pub fn word(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Blocked => "blocked",
            State::InProgress => "in_progress",
            State::InReview => "in_review",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled)
    }

    fn frees_dependants(self) -> bool {
        matches!(self, State::Completed | State::Cancelled)
    }
}

#[derive(Debug, Clone)]
pub struct Task {
    pub has_command: bool,
    /// Never [`State::Blocked`], which is computed.
    state: State,
    pub owner: Option<Name>,
    /// Another member than the owner has given it to the owner.
    is_assigned: bool,
    creator: Name,
    file: Option<&'static str>,
    after: BTreeSet<Key>,
    /// The member that ended it last.
    pub ended_by: Option<Name>,
}

/// The result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Refused,
    /// The action has no object, because an earlier one was left out: it is not performed.
    Void,
}

/// News of which the lead is shown one message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// What a member has written or asked.
    Word(u32),
    /// A run of this member has ended.
    End(Name),
    /// A worker has refused to shut down.
    Refusal(Name),
    /// A task waits for approval.
    Review(Key),
}

impl News {
    /// Returns true if a message is about this.
    pub fn is_in(&self, message: &str) -> bool {
        match self {
            News::Word(word) => message.contains(&format!("word-{word}.")),
            News::End(name) => ["has exited", "has shut down", "was killed"]
                .iter()
                .any(|how| message.contains(&format!("{name} {how}"))),
            News::Refusal(name) => {
                message.contains("shutdown_rejected") && message.contains(&format!("\"{name}\""))
            }
            News::Review(key) => message.contains(&format!("\"t{key}\" is finished")),
        }
    }
}

/// A team between two actions.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub tasks: BTreeMap<Key, Task>,
    pub members: BTreeSet<Name>,
    pub is_led: bool,
    /// The question of each member that waits for an answer.
    pub asks: BTreeMap<Name, u32>,
    pub news: BTreeMap<News, usize>,
    /// The number of times that each task ended.
    pub ends: BTreeMap<Key, usize>,
}

impl Model {
    pub fn state(&self, key: Key) -> State {
        match self.tasks[&key].state {
            State::Pending if !self.is_free(key) => State::Blocked,
            state => state,
        }
    }

    /// Returns true if no open task blocks this one. A deleted task blocks nothing.
    pub fn is_free(&self, key: Key) -> bool {
        let open =
            |after: &Key| self.tasks.get(after).is_some_and(|task| !task.state.frees_dependants());
        !self.tasks[&key].after.iter().any(open)
    }

    pub fn blockers(&self, key: Key) -> &BTreeSet<Key> {
        &self.tasks[&key].after
    }

    /// Returns true if a task in progress or in review may touch the file of this one.
    fn overlaps(&self, key: Key) -> bool {
        let file = self.tasks[&key].file;
        let in_use = |task: &Task| matches!(task.state, State::InProgress | State::InReview);
        let mut others = self.tasks.iter().filter(|(other, task)| **other != key && in_use(task));
        file.is_some() && others.any(|(_, task)| task.file == file)
    }

    /// Returns the worker that runs the command of a task.
    pub fn runner(&self, key: Key) -> Option<Name> {
        let task = self.tasks.get(&key)?;
        let is_run = task.has_command && task.state == State::InProgress;
        task.owner.filter(|owner| is_run && is_worker(owner) && self.members.contains(owner))
    }

    pub fn work_of(&self, name: Name) -> Option<Key> {
        let is_its = |task: &Task| task.state == State::InProgress && task.owner == Some(name);
        self.tasks.iter().find(|(_, task)| is_its(task)).map(|(key, _)| *key)
    }

    /// Returns the first task that a worker would claim.
    pub fn next_for(&self, worker: Name) -> Option<Key> {
        if !self.members.contains(worker) || self.work_of(worker).is_some() {
            return None;
        }
        let is_next = |key: Key, owner: Option<Name>| {
            let task = &self.tasks[&key];
            task.has_command
                && task.owner == owner
                && self.state(key) == State::Pending
                && !self.overlaps(key)
        };
        let find = |owner| self.tasks.keys().copied().find(|key| is_next(*key, owner));
        find(Some(worker)).or_else(|| find(None))
    }

    /// Begins a task of a worker, which may be any that the worker could claim.
    ///
    /// # Errors
    /// Why the worker may not run it.
    pub fn begin(&mut self, key: Key, worker: Name) -> Result<(), String> {
        let refused = |why: &str| Err(format!("t{key} is run by {worker}, {why}"));
        if !is_worker(worker) || !self.members.contains(worker) {
            return refused("which is no worker of the team");
        }
        let task = &self.tasks[&key];
        if !task.has_command || task.owner.is_some_and(|owner| owner != worker) {
            return refused("which may not claim it");
        }
        if self.state(key) != State::Pending {
            return refused(&format!("although it is {}", self.state(key).word()));
        }
        if self.overlaps(key) {
            return refused("although its file is in use");
        }
        if let Some(other) = self.work_of(worker) {
            return refused(&format!("which has t{other}, too"));
        }
        let task = self.tasks.get_mut(&key).expect("a task");
        (task.state, task.owner) = (State::InProgress, Some(worker));
        Ok(())
    }

    /// Lets all workers claim what they can, in the order of their names.
    pub fn run_workers(&mut self) {
        for worker in WORKERS {
            if let Some(key) = self.next_for(worker) {
                self.begin(key, worker).expect("it may");
            }
        }
    }

    fn expect_news(&mut self, news: News) {
        *self.news.entry(news).or_default() += 1;
    }

    /// Performs an action.
    pub fn apply(&mut self, action: &Action) -> Outcome {
        let outcome = self.apply_to_team(action);
        let by_tools = matches!(
            action,
            Action::Create { by: Actor::Tools, .. }
                | Action::Act { by: Actor::Tools, .. }
                | Action::Assign { by: Actor::Tools, .. }
        );
        // The server of the lead's tools starts a lead for members that have none.
        self.is_led |= by_tools && outcome != Outcome::Void && !self.members.is_empty();
        outcome
    }

    fn apply_to_team(&mut self, action: &Action) -> Outcome {
        match *action {
            Action::Create { by, key, has_command, file, after, owner } => {
                let is_there = |name: Option<Name>| name.is_none_or(|n| self.members.contains(n));
                let after: BTreeSet<Key> = after.into_iter().collect();
                if !self.can_act(by) || after.iter().any(|key| !self.tasks.contains_key(key)) {
                    return Outcome::Void;
                }
                if !is_there(owner) {
                    return Outcome::Refused;
                }
                let is_assigned = owner.is_some_and(|owner| owner != by.name());
                let (state, creator, ended_by) = (State::Pending, by.name(), None);
                let task =
                    Task { has_command, state, owner, is_assigned, creator, file, after, ended_by };
                self.tasks.insert(key, task);
                Outcome::Done
            }
            Action::Act { by, verb, key } => self.act(by, verb, key),
            Action::CrashVerb { verb, key, step } => {
                let is_run = self.runner(key).is_some();
                let mut after = self.clone();
                let outcome = after.act(Actor::Person, verb, key);
                if outcome == Outcome::Done && is_run && step == "task.stopping" {
                    // The worker has ended the command, and gives the task back.
                    let task = self.tasks.get_mut(&key).expect("a task");
                    (task.state, task.owner, task.is_assigned) = (State::Pending, None, false);
                } else {
                    *self = after;
                }
                outcome
            }
            Action::Assign { key, to, .. } => self.assign(key, to),
            Action::Block { key, after } => self.block(key, after),
            Action::Unblock { key, after } => {
                let Some(task) = self.tasks.get_mut(&key) else { return Outcome::Void };
                if !task.after.contains(&after) {
                    return Outcome::Void;
                }
                if task.state.is_over() {
                    return Outcome::Refused;
                }
                task.after.remove(&after);
                Outcome::Done
            }
            Action::EndCommand { key, with_success } => {
                let Some(worker) = self.runner(key) else { return Outcome::Void };
                self.end(key, if with_success { State::Completed } else { State::Failed }, worker);
                Outcome::Done
            }
            Action::StartLead if self.is_led => Outcome::Void,
            Action::CrashLead if !self.is_led => Outcome::Void,
            Action::StartLead | Action::CrashLead => {
                self.is_led = !self.is_led;
                Outcome::Done
            }
            Action::Set { .. } => Outcome::Done,
            _ => self.apply_to_member(action),
        }
    }

    fn apply_to_member(&mut self, action: &Action) -> Outcome {
        let (Action::Spawn(name)
        | Action::Shutdown(name)
        | Action::Kill(name)
        | Action::Restart(name)
        | Action::Crash(name)
        | Action::CrashLauncher(name)
        | Action::Report { from: name, .. }
        | Action::Tell { to: name, .. }
        | Action::Ask { from: name, .. }
        | Action::Answer { from: name, .. }) = *action
        else {
            unreachable!("the action has a member");
        };
        let is_there = self.members.contains(name);
        match *action {
            Action::Spawn(_) if is_there => return Outcome::Refused,
            Action::Spawn(_) => {
                self.members.insert(name);
            }
            _ if !is_there => return Outcome::Void,
            // A worker at work refuses, and tells the lead why.
            Action::Shutdown(_) if is_worker(name) && self.work_of(name).is_some() => {
                self.expect_news(News::Refusal(name));
                return Outcome::Refused;
            }
            Action::Shutdown(_) | Action::Kill(_) | Action::Crash(_) | Action::CrashLauncher(_) => {
                self.leave(name)
            }
            Action::Restart(_) => {
                self.leave(name);
                self.members.insert(name);
            }
            Action::Report { word, .. } => self.expect_news(News::Word(word)),
            Action::Ask { word, .. } => {
                if self.asks.contains_key(name) {
                    return Outcome::Void;
                }
                self.asks.insert(name, word);
                self.expect_news(News::Word(word));
            }
            Action::Answer { .. } if self.asks.remove(name).is_none() => return Outcome::Void,
            _ => {}
        }
        Outcome::Done
    }

    /// A run ends. Its tasks are free again, except work in review.
    fn leave(&mut self, name: Name) {
        self.members.remove(name);
        self.asks.remove(name);
        self.expect_news(News::End(name));
        let held = |task: &&mut Task| {
            let is_open = !task.state.is_over() && task.state != State::InReview;
            task.owner == Some(name) && is_open
        };
        for task in self.tasks.values_mut().filter(held) {
            (task.state, task.owner, task.is_assigned) = (State::Pending, None, false);
        }
    }

    /// Returns true if the actor is on the team.
    fn can_act(&self, by: Actor) -> bool {
        matches!(by, Actor::Person | Actor::Tools) || self.members.contains(by.name())
    }

    fn end(&mut self, key: Key, state: State, by: Name) {
        let task = self.tasks.get_mut(&key).expect("a task");
        let was_in_review = task.state == State::InReview;
        let worker = task.owner.filter(|_| was_in_review && by == LEAD);
        task.ended_by = Some(worker.unwrap_or(by));
        // A failed task that is cancelled had ended before.
        let has_ended = task.state.is_over();
        task.state = state;
        if !has_ended {
            *self.ends.entry(key).or_default() += 1;
        }
    }

    fn act(&mut self, by: Actor, verb: Verb, key: Key) -> Outcome {
        let who = by.name();
        let Some(task) = self.tasks.get(&key).filter(|_| self.can_act(by)) else {
            return Outcome::Void;
        };
        let state = task.state;
        let owns = task.owner == Some(who);
        let is_unowned = state == State::Pending && task.owner.is_none();
        let may = who == LEAD
            || match verb {
                Verb::Claim | Verb::Complete => owns || is_unowned,
                Verb::Fail | Verb::Review | Verb::Release | Verb::Retry => owns,
                Verb::Cancel | Verb::RejectForGood => {
                    owns || state == State::Pending && task.creator == who
                }
                Verb::Delete => {
                    let has_begun = matches!(state, State::InProgress | State::InReview);
                    owns || task.creator == who && !has_begun
                }
                Verb::Approve | Verb::Reject => false,
            };
        let fits = match verb {
            Verb::Claim => {
                let is_its = task.owner.is_none() || owns;
                state == State::Pending && is_its && !self.overlaps(key)
            }
            Verb::Complete => matches!(state, State::Pending | State::InProgress),
            Verb::Review => state == State::InProgress,
            Verb::Approve | Verb::Reject => state == State::InReview,
            Verb::Cancel | Verb::RejectForGood => !state.is_over() || state == State::Failed,
            Verb::Fail | Verb::Release => !state.is_over(),
            Verb::Retry => state.is_over(),
            Verb::Delete => true,
        };
        let needs_blockers_done =
            matches!(verb, Verb::Claim | Verb::Complete | Verb::Review | Verb::Approve);
        if !may || !fits || needs_blockers_done && !self.is_free(key) {
            return Outcome::Refused;
        }
        self.carry_out(who, verb, key);
        Outcome::Done
    }

    fn carry_out(&mut self, who: Name, verb: Verb, key: Key) {
        let there = self.members.clone();
        let task = self.tasks.get_mut(&key).expect("a task");
        match verb {
            Verb::Claim => (task.state, task.owner) = (State::InProgress, Some(who)),
            Verb::Complete => {
                task.owner = task.owner.or(Some(who));
                self.end(key, State::Completed, who);
            }
            Verb::Approve => self.end(key, State::Completed, who),
            Verb::Fail => self.end(key, State::Failed, who),
            Verb::Cancel | Verb::RejectForGood => self.end(key, State::Cancelled, who),
            Verb::Review => {
                task.state = State::InReview;
                if who != LEAD {
                    self.expect_news(News::Review(key));
                }
            }
            // A worker runs it again. The owner of work in review may have left.
            Verb::Reject if task.owner.is_some_and(|o| o != LEAD && !there.contains(o)) => {
                (task.state, task.owner, task.is_assigned) = (State::Pending, None, false);
            }
            Verb::Reject if task.has_command => task.state = State::Pending,
            Verb::Reject => task.state = State::InProgress,
            Verb::Release => {
                (task.state, task.owner, task.is_assigned) = (State::Pending, None, false);
            }
            Verb::Retry => {
                let keeps = task.is_assigned && task.owner.is_some_and(|o| there.contains(o));
                task.state = State::Pending;
                if !keeps {
                    (task.owner, task.is_assigned) = (None, false);
                }
            }
            Verb::Delete => {
                self.tasks.remove(&key);
                for task in self.tasks.values_mut() {
                    task.after.remove(&key);
                }
            }
        }
    }

    fn assign(&mut self, key: Key, to: Name) -> Outcome {
        let is_there = self.members.contains(to);
        let Some(task) = self.tasks.get_mut(&key) else { return Outcome::Void };
        if task.state.is_over() || !is_there {
            return Outcome::Refused;
        }
        if task.owner != Some(to) {
            (task.state, task.owner, task.is_assigned) = (State::Pending, Some(to), true);
        }
        Outcome::Done
    }

    fn block(&mut self, key: Key, after: Key) -> Outcome {
        if !self.tasks.contains_key(&key) || !self.tasks.contains_key(&after) {
            return Outcome::Void;
        }
        if self.tasks[&key].state.is_over() || self.waits_for(after, key) {
            return Outcome::Refused;
        }
        self.tasks.get_mut(&key).expect("a task").after.insert(after);
        Outcome::Done
    }

    /// Returns true if `key` is `other`, or waits for it, however indirectly.
    fn waits_for(&self, key: Key, other: Key) -> bool {
        key == other
            || self.tasks[&key]
                .after
                .iter()
                .any(|next| self.tasks.contains_key(next) && self.waits_for(*next, other))
    }
}
