//! Holds all faces of a team against each other, and against the model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::actions::{Key, Name, WORKERS, is_worker};
use super::model::{Model, News, State};
use super::play::{Team, begin};

/// The state and the owner of each task, by its id.
type Board = BTreeMap<String, (String, Option<String>)>;

/// What was seen at the end of the step before.
#[derive(Default)]
pub struct Seen {
    /// The lines of the log.
    lines: usize,
    /// Commands that were killed before they could log their end.
    killed: BTreeSet<String>,
    /// The number of messages that the lead had been shown when each task ended last.
    pub ended: BTreeMap<Key, usize>,
}

/// Why the faces differ.
type Differs = Result<(), String>;

/// Compares two values that two faces show.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Differs {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

impl Team {
    /// Waits until the team has settled and all faces agree. Workers claim tasks meanwhile: the
    /// model follows them.
    pub fn settle(&mut self, model: &mut Model, seen: &mut Seen, nth: usize) {
        let began = Instant::now();
        loop {
            let mut next = model.clone();
            match self.compare(&mut next, seen, nth) {
                Ok(()) => {
                    *model = next;
                    return;
                }
                Err(why) => assert!(
                    began.elapsed() < self.patience,
                    "the team has not settled within {:?}: {why}",
                    self.patience
                ),
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn compare(&mut self, model: &mut Model, seen: &mut Seen, nth: usize) -> Differs {
        // The tool that reads mail starts a lead, too.
        self.read_news(model.is_led && nth.is_multiple_of(2));
        let board = rows(&self.tools.call("TaskList", json!({"filter": "all"}))["tasks"]);
        self.follow(model, &board)?;
        self.compare_commands(model, seen)?;
        let status = self.stage.phalanx(&["--json", "status", "--all"]).expect(0).json();
        self.compare_members(model, &status)?;
        let listed = self.stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
        same("task list", &rows(&listed), &board)?;
        same("tasks of status", &rows(&status["task_list"]), &board)?;
        self.compare_waits(model, nth)?;
        self.compare_dashboard(model, &status)?;
        self.compare_news(model)?;
        // What this step was settled with is the beginning of the next one.
        let log = self.log();
        let running: Vec<String> = self.running().into_values().flatten().collect();
        seen.lines = log.len();
        for (key, pid) in log.iter().filter_map(|line| begin(line)) {
            if !log.contains(&format!("t{key} end {pid}")) && !running.contains(&pid.to_owned()) {
                seen.killed.insert(pid.to_owned());
            }
        }
        Ok(())
    }

    /// Lets the model's workers claim what the board shows that they have claimed, and compares the
    /// rest.
    fn follow(&self, model: &mut Model, board: &Board) -> Differs {
        let keys: Vec<Key> = model.tasks.keys().copied().collect();
        for key in &keys {
            let (state, owner) =
                board.get(&self.ids[key]).ok_or_else(|| format!("t{key} is missing: {board:?}"))?;
            if state == "in_progress" && model.state(*key) == State::Pending {
                let worker = WORKERS.into_iter().find(|name| owner.as_deref() == Some(name));
                let worker = worker.ok_or_else(|| format!("t{key} was begun by {owner:?}"))?;
                model.begin(*key, worker)?;
            }
        }
        for key in &keys {
            let (state, owner) = &board[&self.ids[key]];
            same(&format!("state of t{key}"), &&**state, &model.state(*key).word())?;
            if !model.state(*key).is_over() {
                let expected = model.tasks[key].owner;
                same(&format!("owner of t{key}"), &owner.as_deref(), &expected)?;
            }
        }
        same("number of tasks", &board.len(), &keys.len())?;
        for worker in WORKERS {
            if let Some(key) = model.next_for(worker) {
                return Err(format!("{worker} is free and has not claimed t{key}"));
            }
        }
        Ok(())
    }

    /// A command runs if and only if its task is in progress, once. It begins only after what its
    /// task waited for.
    fn compare_commands(&self, model: &Model, seen: &Seen) -> Differs {
        let running = self.running();
        for (key, pids) in &running {
            if model.runner(*key).is_none() || pids.len() != 1 {
                return Err(format!("the command of t{key} runs as {pids:?}"));
            }
        }
        for key in model.tasks.keys().filter(|key| model.runner(**key).is_some()) {
            if !running.contains_key(key) {
                return Err(format!("the command of t{key} does not run"));
            }
        }
        let log = self.log();
        let overlap = log.iter().find(|line| line.contains(" overlap "));
        assert_eq!(overlap, None, "two runs of one command: {log:?}");
        for (at, line) in log.iter().enumerate().skip(seen.lines) {
            let Some((key, _)) = begin(line) else { continue };
            // A task that was deleted in this step has begun in an earlier one.
            if !model.tasks.contains_key(&key) {
                return Err(format!("t{key} has begun, and is not on the board"));
            }
            assert!(model.is_free(key), "t{key} has begun while it was blocked: {log:?}");
            for blocker in model.blockers(key) {
                let last = log[..at].iter().rfind(|line| line.starts_with(&format!("t{blocker} ")));
                let pid = last.and_then(|line| begin(line)).map(|(_, pid)| pid);
                let is_left = pid.is_some_and(|pid| !seen.killed.contains(pid));
                assert!(!is_left, "t{key} has begun before the end of t{blocker}: {log:?}");
            }
        }
        Ok(())
    }

    fn compare_members(&mut self, model: &Model, status: &Value) -> Differs {
        let found = members(status);
        let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
        same("members", &names, &model.members.iter().copied().collect())?;
        same("lead", &status["lead"].is_object(), &model.is_led)?;
        same("open requests", &status["requests"], &json!(model.asks.len()))?;
        for name in &model.members {
            let (state, needs, task) = &found[*name];
            let expected = self.expected_activity(model, name);
            if !expected.iter().any(|(s, n)| s == state && n == needs) {
                return Err(format!("{name} is {state} {needs:?} instead of {expected:?}"));
            }
            let work = model.work_of(name).map(|key| self.ids[&key].clone());
            // Of several tasks of an agent, any.
            if task.is_some() != work.is_some() || is_worker(name) && *task != work {
                return Err(format!("{name} works on {task:?} instead of {work:?}"));
            }
        }
        same("members of the tool", &members(&self.tools.call("Status", json!({}))), &found)?;
        for name in &model.members {
            let explained = self.stage.phalanx(&["--json", "explain", name]).expect(0).json();
            let (state, needs, _) = &found[*name];
            let shown = (word(&explained["state"]), word(&explained["needs"]));
            same(&format!("explain {name}"), &shown, &(Some(state.clone()), needs.clone()))?;
        }
        Ok(())
    }

    /// Returns the states that a member may have, with what it needs.
    fn expected_activity(&self, model: &Model, name: Name) -> Vec<(String, Option<String>)> {
        let of = |state: &str| (state.to_owned(), None);
        if model.asks.contains_key(name) {
            return vec![("waiting".to_owned(), Some("permission".to_owned()))];
        }
        match is_worker(name) {
            true if model.work_of(name).is_some() => vec![of("working")],
            true => vec![of("idle")],
            // An agent counts as working for a while after it took its mail.
            false => vec![of("idle"), of("working")],
        }
    }

    /// `wait` for one task and one member, in turn.
    fn compare_waits(&self, model: &Model, nth: usize) -> Differs {
        let wait = |until: &str, names: &[&str]| {
            let args = [&["-q", "wait", "--until", until, "--timeout", "0"], names].concat();
            self.stage.phalanx(&args).code
        };
        if let Some(key) = model.tasks.keys().nth(nth % model.tasks.len().max(1)) {
            let code = match model.state(*key) {
                State::Completed => 0,
                State::Failed | State::Cancelled => 1,
                _ => 5,
            };
            same(
                &format!("wait for t{key}"),
                &wait(&format!("task={}", self.ids[key]), &[]),
                &code,
            )?;
        }
        let workers: Vec<Name> =
            WORKERS.into_iter().filter(|name| model.members.contains(name)).collect();
        if let Some(name) = workers.get(nth % workers.len().max(1)) {
            let code = if model.work_of(name).is_some() { 5 } else { 0 };
            same(&format!("wait for {name}"), &wait("idle", &[name]), &code)?;
        }
        Ok(())
    }

    fn compare_dashboard(&self, model: &Model, status: &Value) -> Differs {
        let frame = self.frame();
        let shows = |marks: &[&str], rest: &str| {
            marks.iter().any(|mark| frame.contains(&format!("{mark} {rest}")))
        };
        for (key, id) in self.ids.iter().filter(|(key, _)| model.tasks.contains_key(key)) {
            let state = model.state(*key);
            let asks = model.tasks[key].owner.is_some_and(|owner| model.asks.contains_key(owner));
            let mark = match state {
                State::Pending => "○",
                State::Blocked => "◌",
                // Its owner waits for an answer.
                State::InProgress if asks => "?",
                State::InProgress => "▶",
                State::InReview => "?",
                State::Completed => "✓",
                State::Failed => "✗",
                State::Cancelled => "-",
            };
            if !shows(&[mark], &format!("#{id} t{key} ")) {
                return Err(format!("the board shows no {mark} #{id} t{key}:\n{frame}"));
            }
        }
        for (name, (state, ..)) in members(status) {
            let mark = match state.as_str() {
                "working" => "▶",
                "idle" => "○",
                "waiting" => "?",
                other => return Err(format!("{name} is {other}")),
            };
            if !shows(&[mark], &format!("{name} ")) {
                return Err(format!("the dashboard shows no {mark} {name}:\n{frame}"));
            }
        }
        Ok(())
    }

    /// Waits until the last end of each task was reported, and checks that it was reported once.
    pub fn await_reports(&mut self, model: &Model, seen: &Seen) {
        let over: Vec<Key> =
            model.tasks.keys().copied().filter(|key| model.state(*key).is_over()).collect();
        let began = Instant::now();
        loop {
            self.read_news(false);
            let count = |key: &&Key| {
                let start = format!("\"t{key}\": ");
                let later = &self.shown[seen.ended[*key]..];
                later.iter().filter(|message| message.contains(&start)).count()
            };
            let twice = over.iter().find(|key| count(key) > 1);
            assert_eq!(twice, None, "reported twice: {:#?}", self.shown);
            let missing: Vec<&Key> = over.iter().filter(|key| count(key) == 0).collect();
            if missing.is_empty() {
                return;
            }
            assert!(
                began.elapsed() < self.patience,
                "the ends of {missing:?} were not reported: {:#?}",
                self.shown
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Each message is shown once. The report of ended tasks comes when no task is in progress.
    fn compare_news(&self, model: &Model) -> Differs {
        for (news, expected) in &model.news {
            let count = self.shown.iter().filter(|message| news.is_in(message)).count();
            assert!(count <= *expected, "{news:?} was shown {count} times: {:#?}", self.shown);
            // A lead that was killed at once may have reported no end; its successor does.
            if matches!(news, News::End(_)) && !model.is_led {
                continue;
            }
            same(&format!("messages about {news:?}"), &count, expected)?;
        }
        for (key, ends) in &model.ends {
            let start = format!("\"t{key}\": ");
            let count = self.shown.iter().filter(|message| message.contains(&start)).count();
            assert!(count <= *ends, "t{key} was reported {count} times: {:#?}", self.shown);
        }
        Ok(())
    }
}

fn rows(tasks: &Value) -> Board {
    let row = |task: &Value| {
        (
            word(&task["id"]).expect("an id"),
            (word(&task["state"]).expect("a state"), word(&task["owner"])),
        )
    };
    tasks.as_array().expect("tasks").iter().map(row).collect()
}

/// The state, what is needed, and the task of each member.
fn members(status: &Value) -> BTreeMap<String, (String, Option<String>, Option<String>)> {
    let row = |member: &Value| {
        let state = word(&member["state"]).expect("a state");
        (
            word(&member["name"]).expect("a name"),
            (state, word(&member["needs"]), word(&member["task"])),
        )
    };
    status["members"].as_array().expect("members").iter().map(row).collect()
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
