//! Walks over the joints of the program: sequences of actions of a person, an agent lead, workers,
//! fake agents and crashes on a real team. After each action all faces of the team must name the
//! same state, and the one that the model expects.
//!
//! `PHALANX_JOINTS=SEED` plays one walk. A walk that fails is played again with fewer actions, and
//! its shortest form is printed as a list of commands.

mod actions;
mod faces;
mod generator;
mod model;
mod play;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actions::{Action, Actor, Key, Verb};
use faces::Seen;
use model::{Model, Outcome};
use play::{Script, Team};

use crate::gear;
use crate::harness::PATIENCE;

/// The number of walks of a test, of 30 actions each, in the default gear and in the full one. A walk
/// beside other tests takes more than a minute on two cores.
const DEFAULT: u64 = 1;
const FULL: u64 = 3;
/// The time within which a failed walk is played again with fewer actions, and the limit of each
/// wait meanwhile.
const SHRINKING: Duration = Duration::from_secs(240);
const IMPATIENCE: Duration = Duration::from_secs(20);

/// A walk that failed.
struct Failure {
    message: String,
    /// The number of actions up to the failure.
    length: usize,
    script: Vec<String>,
}

/// Plays the actions on a new team.
///
/// # Errors
/// The failure, with the commands up to it.
fn walk(backend: &'static str, actions: &[Action], patience: Duration) -> Result<usize, Failure> {
    let script: Script = Arc::new(Mutex::new(Vec::new()));
    let begun = Cell::new(0);
    let played =
        catch_unwind(AssertUnwindSafe(|| play(backend, actions, patience, &script, &begun)));
    played.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let script = script.lock().unwrap_or_else(|held| held.into_inner()).clone();
        Failure {
            message: text.unwrap_or_else(|| "a panic".to_owned()),
            length: begun.get(),
            script,
        }
    })
}

/// Returns the number of steps. `begun` counts the actions of the sequence.
fn play(
    backend: &'static str,
    actions: &[Action],
    patience: Duration,
    script: &Script,
    begun: &Cell<usize>,
) -> usize {
    let mut team = Team::new(backend, patience, Arc::clone(script));
    let (mut model, mut seen) = (Model::default(), Seen::default());
    let mut steps = 0;
    let mut step =
        |team: &mut Team, model: &mut Model, seen: &mut Seen, action: &Action, settles: bool| {
            let before = model.clone();
            let shown = team.shown.len();
            let outcome = model.apply(action);
            if outcome != Outcome::Void {
                let has_ended = |key: &&Key| model.ends.get(*key) != before.ends.get(*key);
                let ended = model.ends.keys().filter(has_ended);
                seen.ended.extend(ended.map(|key| (*key, shown)));
                team.play(action, outcome, &before);
                steps += 1;
            }
            if settles {
                team.settle(model, seen, steps);
            }
        };
    for (action, nth) in actions.iter().zip(1..) {
        begun.set(nth);
        let settles = !actions.get(nth).is_some_and(Action::is_hasty);
        step(&mut team, &mut model, &mut seen, action, settles);
    }
    // The last work, after which each end was reported once.
    while let Some(action) = Team::last_action(&model) {
        step(&mut team, &mut model, &mut seen, &action, true);
    }
    let (key, by) = (0, Actor::Person);
    let (has_command, file, after, owner) = (false, None, None, None);
    let finish = [
        Action::StartLead,
        Action::Spawn("ben"),
        Action::Create { by, key, has_command, file, after, owner },
        Action::Act { by: Actor::Member("ben"), verb: Verb::Complete, key },
    ];
    for action in &finish {
        step(&mut team, &mut model, &mut seen, action, true);
    }
    team.await_reports(&model, &seen);
    team.end();
    steps
}

/// Leaves out actions, eight, four, two and one at a time, as long as the walk fails and time is
/// left.
fn shrink(backend: &'static str, mut actions: Vec<Action>, mut failure: Failure) -> Failure {
    let began = Instant::now();
    actions.truncate(failure.length);
    for count in [8, 4, 2, 1] {
        let mut end = actions.len();
        while end > 0 && began.elapsed() < SHRINKING {
            let start = end.saturating_sub(count);
            let mut fewer = actions.clone();
            fewer.drain(start..end);
            if let Err(again) = walk(backend, &fewer, IMPATIENCE) {
                fewer.truncate(again.length);
                (actions, failure) = (fewer, again);
            }
            end = start.min(actions.len());
        }
    }
    failure
}

/// Plays the walks with these seeds. Panics with the shortest form of one that fails.
fn walks(backend: &'static str, first: u64, count: u64) {
    let chosen: Option<u64> =
        std::env::var("PHALANX_JOINTS").ok().map(|seed| seed.parse().expect("a number"));
    let began = Instant::now();
    let seeds = chosen.map_or(first..first + count, |seed| seed..seed + 1);
    let (count, mut steps) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        match walk(backend, &generator::sequence(seed), PATIENCE) {
            Ok(played) => steps += played,
            Err(failure) => {
                let found = failure.message.clone();
                let shortest = shrink(backend, generator::sequence(seed), failure);
                panic!(
                    "seed {seed} fails ({backend}): {found}\n\nits shortest form, {} actions, \
                     fails: {}\n\n{}\n\nTo play it again: PHALANX_GEAR=full PHALANX_JOINTS={seed} cargo test --test e2e {}",
                    shortest.length,
                    shortest.message,
                    shortest.script.join("\n"),
                    std::thread::current().name().unwrap_or("joints"),
                );
            }
        }
    }
    println!("joints ({backend}): {count} walks, {steps} steps, {} s", began.elapsed().as_secs());
}

#[test]
fn tmux_walks_over_the_joints_keep_all_faces_the_same() {
    walks("pty", 1, gear::sized(DEFAULT, FULL));
}

#[test]
fn tmux_walks_over_the_joints_in_panes_keep_all_faces_the_same() {
    if !gear::is_full() {
        return gear::skip("walks in panes run with --full");
    }
    walks("tmux", 1_000_000, FULL);
}
