//! Usage and usage limits in members' records, on both stores.

use super::mail::wrapped;
use super::*;
use model::members::rate_limit::LimitHit;
use model::members::record::MemberRecord;
use model::members::usage::{MemberUsage, Usage};

fn record(team: &TeamStore) -> MemberRecord {
    team.member_record(&who("ann")).expect("readable").expect("a record")
}

fn used(output: u64) -> MemberUsage {
    let mut usage = MemberUsage::default();
    usage.models.insert("m".to_owned(), Usage { output, cost: Some(0.5), ..Usage::default() });
    usage
}

#[test]
fn usage_outlives_the_runs_of_a_member() {
    on_both_stores(|team| {
        wrapped(team, "ann", "claude");
        let run = record(team).incarnation;
        team.record_usage(&who("ann"), &run, &used(7)).expect("written");
        assert_eq!(record(team).usage, Some(used(7)));
        let next = "00000000-0000-4000-8000-000000000002";
        let next = Incarnation::parse(next).expect("uuid");
        let new = MemberRecord { incarnation: next.clone(), usage: None, ..record(team) };
        team.change_record(&who("ann"), &run, |record| {
            record.state = model::members::lifecycle::MemberState::Completed;
        })
        .expect("written");
        team.begin_record(&new).expect("a new run");
        assert_eq!((record(team).incarnation, record(team).usage), (next, Some(used(7))));
        team.record_usage(&who("ann"), &run, &used(9)).expect("no error");
        assert_eq!(record(team).usage, Some(used(7)), "the earlier run is over");
    });
}

#[test]
fn limits_are_recorded_and_journaled_until_the_program_answers() {
    on_both_stores(|team| {
        wrapped(team, "ann", "claude");
        let run = record(team).incarnation;
        let said = "You've hit your limit";
        let hit = LimitHit { said: said.to_owned(), until: Some(NOW.plus_ms(60_000)) };
        team.record_limit(&who("ann"), &run, None).expect("nothing to clear");
        team.record_limit(&who("ann"), &run, Some(&hit)).expect("written");
        let limit = record(team).limit().cloned().expect("a limit");
        assert_eq!((limit.said.as_str(), limit.until), (said, hit.until));
        team.change_record(&who("ann"), &run, |record| {
            record.rate_limit.as_mut().expect("a limit").attempts = 2;
        })
        .expect("written");
        team.record_limit(&who("ann"), &run, Some(&hit)).expect("written");
        assert_eq!(record(team).limit().map(|limit| limit.attempts), Some(2), "they add up");
        team.record_limit(&who("ann"), &run, None).expect("cleared");
        assert_eq!(record(team).rate_limit, None);
        let events = team.events().expect("events");
        let health = events.iter().filter(|event| event.event == EventKind::MemberHealth);
        let states: Vec<(&str, &str)> = health
            .map(|event| {
                let word = |key: &str| event.detail[key].as_str().expect("a word");
                (word("prev_state"), word("state"))
            })
            .collect();
        let expected = [("starting", "limited"), ("limited", "limited"), ("limited", "starting")];
        assert_eq!(states, expected);
    });
}
