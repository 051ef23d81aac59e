//! Tests of budgets, prices and the policy for usage limits.

use crate::manifest::Manifest;
use model::members::budget::OnExceeded;
use model::team::settings::Settings;

fn read(keys: &str) -> Result<Settings, String> {
    let text = format!("[team]\nname = \"t\"\n{keys}");
    Manifest::parse(&text).map(|manifest| manifest.settings).map_err(|e| e.to_string())
}

#[test]
fn budgets_are_of_the_team_of_each_member_and_of_one_entry() {
    let settings = read(
        "budget = { cost = 5, on_exceeded = \"stop-spawns\" }\nresume_limited = { attempts = 0 }\n\
         [team.prices.\"m-1\"]\ninput = 1.5\noutput = 6\n\
         [defaults]\nbudget = { tokens = 1000 }\n\
         [[member]]\nname = \"dev\"\nscale = { max = 2 }\nbudget = { tokens = 7 }\n\
         [[member]]\nname = \"qa\"",
    )
    .expect("valid");
    assert_eq!(settings.budgets.team.cost, Some(5.0));
    assert_eq!(settings.budgets.team.on_exceeded, OnExceeded::StopSpawns);
    assert_eq!(settings.budgets.each.tokens, Some(1000));
    let members: Vec<(&str, Option<u64>)> =
        settings.budgets.members.iter().map(|(name, of)| (name.as_str(), of.tokens)).collect();
    assert_eq!(members, [("dev-1", Some(7)), ("dev-2", Some(7))]);
    assert_eq!(settings.resume_limited.attempts, 0);
    assert_eq!((settings.prices["m-1"].input, settings.prices["m-1"].output), (1.5, 6.0));
    assert_eq!(read("").expect("valid").resume_limited.attempts, 3);
}

#[test]
fn invalid_budgets_are_refused() {
    let table = [
        ("budget = { tokens = 0 }", "at least 1"),
        ("budget = { cost = -1 }", "at least 0"),
        ("budget = { cost = nan }", "at least 0"),
        ("budget = { cost = \"5\" }", "a number of dollars"),
        ("budget = { on_exceeded = \"stop\" }", "known: `warn`, `stop-spawns`, `end-members`"),
        ("resume_limited = { attempts = -1 }", "at least 0"),
        ("[team.prices.m]\ninput = 1", "output"),
    ];
    for (keys, said) in table {
        let problem = read(keys).expect_err(keys);
        assert!(problem.contains(said), "{keys}: {problem}");
    }
}
