//! Compares the store with in-memory models under random operations of members and of foreign
//! writers.

mod board;
mod mailbox;
mod round_trip;

use std::path::PathBuf;

use proptest::test_runner::Config;
use testing::TestTeam;

/// A team of ann, bob and cid in its own root.
struct Place {
    dir: tempfile::TempDir,
    team: TestTeam,
}

const MEMBERS: [&str; 3] = ["ann", "bob", "cid"];

impl Place {
    fn new() -> Place {
        // In memory if possible: the tests are not about durability.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let dir = dir.expect("a temporary directory");
        let team = TestTeam::create(&dir.path().join("root"), "model").expect("a new team");
        MEMBERS.iter().for_each(|name| team.join(name).expect("a new member"));
        Place { dir, team }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn inbox(&self, name: &str) -> PathBuf {
        self.root().join(format!("teams/model/inboxes/{name}.json"))
    }

    fn team_file(&self) -> PathBuf {
        self.root().join("teams/model/config.json")
    }

    fn task(&self, id: u64) -> PathBuf {
        self.root().join(format!("tasks/model/{id}.json"))
    }
}

/// Configures `cases` cases from a fixed seed, unless PROPTEST_RNG_SEED is set, without a failure
/// file.
fn cases(cases: u32) -> Config {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(20_261_121);
    Config {
        cases,
        failure_persistence: None,
        rng_seed,
        max_shrink_iters: 200,
        ..Config::default()
    }
}
