//! Budgets: reports, refused starts and shutdowns.

use std::collections::BTreeSet;

use super::*;
use model::members::budget::{Budget, Budgets, OnExceeded};
use model::members::launch::{Demand, LaunchSpec, Template};
use model::members::usage::{MemberUsage, Usage};
use model::team::settings::Settings;

/// No report.
const NONE: [u64; 0] = [];

/// The record of a member that has used this number of tokens.
fn used(name: &str, n: u8, output: u64) -> MemberRecord {
    let mut usage = MemberUsage::default();
    usage.models.insert("m".to_owned(), Usage { output, ..Usage::default() });
    MemberRecord { usage: Some(usage), ..record(name, n, "codex") }
}

fn settings(on_exceeded: OnExceeded) -> Settings {
    let team = Budget { tokens: Some(1000), cost: None, on_exceeded };
    let budgets = Budgets { team, ..Budgets::default() };
    Settings { budgets, templates: vec![template()], ..Settings::by_hand(8) }
}

fn template() -> Template {
    let spec = LaunchSpec { name: "dev".to_owned(), ..LaunchSpec::default() };
    Template { spec, demand: Demand::WhenNeeded }
}

/// A lead of a team with a budget of 1000 tokens and a template for `dev`.
fn budgeted(on_exceeded: OnExceeded, reported: BTreeSet<String>) -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), vec![template()]);
    let settings = settings(on_exceeded);
    (state.budget.budgets, state.budget.prices) = (settings.budgets, settings.prices);
    state.budget.reported = reported;
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(vec![used("ann", 1, 1)]), NOW);
    state
}

fn see(state: &mut State, record: MemberRecord) -> Vec<Effect> {
    react(state, Event::Members(vec![record]), NOW)
}

fn reports(effects: &[Effect]) -> Vec<u64> {
    let percent = effects.iter().filter_map(|effect| match effect {
        Effect::ReportBudget(of) => Some(of.percent),
        _ => None,
    });
    percent.collect()
}

fn asked(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::AskShutdown { .. })).count()
}

fn started(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Start { .. })).count()
}

fn one_task() -> Event {
    let task = Task::new(TaskId(1), "s", "d");
    Event::Board(Board { tasks: [(TaskId(1), task)].into(), ..Board::default() })
}

#[test]
fn each_share_of_a_budget_is_reported_once_across_leads() {
    let mut state = budgeted(OnExceeded::Warn, BTreeSet::new());
    assert_eq!(reports(&see(&mut state, used("ann", 1, 799))), NONE);
    assert_eq!(reports(&see(&mut state, used("ann", 1, 800))), [80]);
    assert_eq!(reports(&see(&mut state, used("ann", 1, 900))), NONE);
    assert_eq!(reports(&see(&mut state, used("ann", 1, 1200))), [120]);
    assert_eq!(reports(&see(&mut state, used("ann", 1, 5000))), NONE);
    assert_eq!(started(&react(&mut state, one_task(), NOW)), 1, "a warning stops no start");
    let mut next = budgeted(OnExceeded::Warn, state.budget.reported.clone());
    assert_eq!(reports(&see(&mut next, used("ann", 1, 5000))), NONE);
    let raised = Settings {
        budgets: Budgets {
            team: Budget { tokens: Some(6000), ..Budget::default() },
            ..Budgets::default()
        },
        ..settings(OnExceeded::Warn)
    };
    let before = Box::new(settings(OnExceeded::Warn));
    react(&mut next, Event::Settings { before, now: Box::new(raised) }, NOW);
    assert_eq!(reports(&see(&mut next, used("ann", 1, 5000))), [83], "another limit counts anew");
}

#[test]
fn used_up_budget_stops_starts() {
    let mut state = budgeted(OnExceeded::StopSpawns, BTreeSet::new());
    assert_eq!(asked(&see(&mut state, used("ann", 1, 1000))), 0);
    assert_eq!(started(&react(&mut state, one_task(), NOW)), 0);
    assert_eq!(state.next_tick(), None, "nothing is retried");
    let before = Box::new(settings(OnExceeded::StopSpawns));
    let raised = Settings { budgets: Budgets::default(), ..settings(OnExceeded::StopSpawns) };
    react(&mut state, Event::Settings { before, now: Box::new(raised) }, NOW);
    assert_eq!(started(&see(&mut state, used("ann", 1, 1000))), 1);
}

#[test]
fn members_of_a_used_up_budget_are_asked_to_shut_down() {
    let mut state = budgeted(OnExceeded::EndMembers, BTreeSet::new());
    let working = |since| MemberRecord {
        state: MemberState::Working,
        state_since: since,
        ..used("ann", 1, 1000)
    };
    assert_eq!(asked(&see(&mut state, working(NOW))), 1);
    assert_eq!(asked(&see(&mut state, working(NOW))), 0, "once while its state stays");
    let later = NOW.plus_ms(1000);
    let rests = MemberRecord { state: MemberState::Idle, ..working(later) };
    assert_eq!(asked(&see(&mut state, rests.clone())), 1, "it has rejected the first request");
    let requested = MemberRecord { state: MemberState::ShutdownRequested, ..rests };
    assert_eq!(asked(&see(&mut state, requested)), 0);
}
