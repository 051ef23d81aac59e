//! Tests of values of the wrong type.

use super::{fault, fault_in};

#[test]
fn section_of_wrong_type_is_refused() {
    assert_eq!(fault("team = 1\n"), "1:8: `team` must be a table, [team], not an integer");
    assert_eq!(
        fault("[team]\nname = 7\n"),
        "2:8: `name` in [team] must be a string, not an integer"
    );
    assert_eq!(
        fault("member = [1]\n[team]\nname = \"t\"\n"),
        "1:11: `member` must be a list of tables, [[member]], not an integer"
    );
    assert_eq!(
        fault_in("[member]\nname = \"a\"\n"),
        "3:1: `member` must be a list of tables, [[member]], not one table"
    );
    assert_eq!(
        fault("[[team]]\nname = \"t\"\n"),
        "1:1: `team` must be a table, [team], not a list"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nscale = [1, 2]\n"),
        "5:9: `member.scale` must be a table, [member.scale], not a list"
    );
    assert_eq!(
        fault_in("[rules]\nrole = 5\n"),
        "4:8: `rules.role` must be a table of tables, [rules.role.NAME], not an integer"
    );
}

#[test]
fn list_of_values_is_not_a_table() {
    for (text, message) in [
        (
            "hook = [[\"SubagentStop\", \"dev\", [\"x\"], 5]]",
            "1:9: `hook` must be a list of tables, [[hook]]",
        ),
        ("member = [[\"a\"]]", "1:11: `member` must be a list of tables, [[member]]"),
        ("task = [[\"a\", \"s\"]]", "1:9: `task` must be a list of tables, [[task]]"),
    ] {
        let text = format!("{text}\n[team]\nname = \"t\"\n");
        assert_eq!(fault(&text), format!("{message}, not a list of lists"));
    }
    assert_eq!(
        fault_in("[role]\na = [\"d\"]\n"),
        "4:5: `role.a` must be a table, [role.a], not a list"
    );
}

#[test]
fn value_of_wrong_type_is_refused() {
    assert_eq!(
        fault_in("max_members = 2.0\n"),
        "3:15: `max_members` in [team] must be a whole number, not a float"
    );
    assert_eq!(
        fault_in("max_members = 99999999999999999999\n"),
        "3:15: `max_members` in [team] is too large"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nplan = \"yes\"\n"),
        "5:8: `plan` in [[member]] must be true or false, not a string"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nrun = \"tail -f log\"\n"),
        "5:7: `run` in [[member]] must be a list of strings (program and arguments); it is not run by a shell"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nrun = [\"sleep\", 5]\n"),
        "5:17: `run` in [[member]] must be a list of strings, not an integer"
    );
    assert_eq!(
        fault_in("[defaults.env]\nN = 1\n"),
        "4:5: `N` in [defaults.env] must be a string, not an integer"
    );
    assert_eq!(
        fault_in("[[task]]\nkey = \"a\"\nsubject = \"s\"\nenv = []\n"),
        "6:7: `env` in [[task]] must be a table of strings, not a list"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\n[[member.env]]\nA = \"1\"\n"),
        "5:1: `env` in [[member]] must be a table of strings, not a list"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nrun = 5\n"),
        "5:7: `run` in [[member]] must be a list of strings, not an integer"
    );
    assert_eq!(
        fault_in("[env]\nallow = \"PATH\"\n"),
        "4:9: `allow` in [env] must be a list of strings, not a string"
    );
}
