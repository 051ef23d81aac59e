//! Checks of members' work: `[[check]]` in a manifest.

use crate::value::TableList;
use crate::{Faults, Place};
use model::team::check::TeamCheck;

/// Returns the checks of a file, and adds a fault for each with the name of an earlier one.
pub(crate) fn distinct_checks(checks: TableList<TeamCheck>, faults: &mut Faults) -> Vec<TeamCheck> {
    let checks = checks.0;
    for (at, check) in checks.iter().enumerate() {
        if checks[..at].iter().any(|known| known.name == check.name) {
            let place = [Place::Key("check"), Place::Index(at), Place::Key("name")];
            faults.add_at(&place, format!("two checks are named `{}`", check.name));
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use crate::manifest::Manifest;

    const ONE: &str =
        "[team]\nname = \"x\"\n[[check]]\nname = \"test\"\nrun = [\"make\", \"test\"]\n";

    #[test]
    fn checks_are_read_in_order_with_their_limits() {
        let text = format!("{ONE}[[check]]\nname = \"lint\"\nrun = [\"lint\"]\ntimeout = 5\n");
        let checks = Manifest::parse(&text).expect("a manifest").settings.checks;
        let found: Vec<_> = checks.iter().map(|c| (c.name.as_str(), c.limit().as_secs())).collect();
        assert_eq!(found, [("test", 600), ("lint", 5)]);
        assert_eq!(checks[0].run, ["make", "test"]);
    }

    #[test]
    fn faults_of_a_check_have_positions() {
        let table = [
            ("timeout = 0\n", "6:11: `timeout` in [[check]] must be at least 1"),
            ("[[check]]\nname = \"test\"\nrun = [\"x\"]\n", "7:8: two checks are named `test`"),
            ("[[check]]\nname = \"a b\"\nrun = [\"x\"]\n", "7:8: `name` in [[check]]"),
            ("[[check]]\nname = \"b\"\nrun = []\n", "8:7: `run` in [[check]]"),
            ("[[check]]\nname = \"b\"\n", "[[check]] has no `run`"),
        ];
        for (more, expected) in table {
            let fault = Manifest::parse(&format!("{ONE}{more}")).expect_err("a fault").to_string();
            assert!(fault.contains(expected), "{more}: {fault}");
        }
    }
}
