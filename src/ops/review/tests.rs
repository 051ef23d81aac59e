//! Tests with worktrees of real repositories.

mod decisions;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::changes::{self, Followed, PatchOptions, Reviewed};
use super::landing::{LandRequest, land};
use super::overview::{Overlap, ReviewOverview, ReviewRow, WaitingWork, overview};
use crate::team::worktree::{WantedWorktree, obtain};
use crate::{Caller, Context, Store, TeamStore, team};
use model::id::{HostName, MemberName};
use model::team::settings::Settings;
use model::team::worktree::{LandingKind, RepositoryCopy, Rules, WorktreeRequest};
use sys::exec::{self, CancelToken, ExecCommand};
use sys::{env, fs};
use worktree::Repository;

/// A team in a repository with one commit, whose members have worktrees.
struct Stage {
    _dir: TempDir,
    ctx: Context,
    team: TeamStore,
}

fn name(name: &str) -> MemberName {
    MemberName::new(name).expect("a name")
}

impl Stage {
    fn new(members: &[&str]) -> Stage {
        let dir = tempfile::tempdir().expect("a directory");
        let top = fs::canonical(dir.path()).expect("it is there").join("repo");
        fs::private_dir(&top).expect("a directory");
        let home = dir.path().join("home").into_os_string();
        let env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), env::var("PATH").expect("PATH")),
            ("HOME".into(), home),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        let exe = env::current_exe().expect("our program");
        let ctx = Context {
            store: Store::at(&dir.path().join("root")),
            speaker: MemberName::lead(),
            caller: Caller { env, cwd: top, exe },
        };
        let team = team::create(&ctx, "demo", "", None, &Settings::by_hand(8), false);
        let stage = Stage { _dir: dir, ctx, team: team.expect("a team") };
        let script = "git init -q -b main; git config user.name t; git config user.email t@x; \
            seq 20 >a.txt; seq 20 >b.txt; git add .; git commit -qm first";
        stage.sh(&stage.top(), script);
        for member in members {
            stage.make_worktree(member);
        }
        stage
    }

    fn top(&self) -> PathBuf {
        self.ctx.caller.cwd.clone()
    }

    fn make_worktree(&self, member: &str) {
        let repository = Repository::find(&self.top(), &self.ctx.caller.env).expect("it is there");
        let path = self.path_of(member);
        let member = name(member);
        let wanted = WantedWorktree {
            name: &member,
            request: &WorktreeRequest::Own,
            origin: None,
            rules: &Rules::default(),
            base: None,
            path: &path,
        };
        obtain(&self.ctx, &self.team, &repository, &wanted).expect("a worktree");
    }

    fn path_of(&self, member: &str) -> PathBuf {
        self.top().join(".worktrees").join(format!("demo-{member}"))
    }

    fn sh(&self, dir: &Path, script: &str) -> String {
        let command = ExecCommand {
            program: "sh".into(),
            args: vec!["-ec".into(), script.into()],
            env: Some(self.ctx.caller.env.clone()),
            cwd: Some(dir.to_owned()),
            stdin: Vec::new(),
        };
        let output = exec::run(&command, Duration::from_secs(60)).expect("it ends");
        assert_eq!(output.code, Some(0), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Commands in a shell, in the worktree of a member.
    fn sh_of(&self, member: &str, script: &str) -> String {
        self.sh(&self.path_of(member), script)
    }

    fn reviewed(&self, member: &str) -> Reviewed {
        let cancel = CancelToken::default();
        changes::reviewed(&self.ctx, &self.team, &name(member), &cancel).expect("git answers")
    }

    fn overview(&self) -> ReviewOverview {
        overview(&self.ctx, &self.team).expect("git answers")
    }
}

/// Returns the work of a row, which must have some.
fn work(row: &ReviewRow) -> &WaitingWork {
    row.work.as_ref().expect("git answers")
}

#[test]
fn changes_of_a_member_are_shown_and_followed_between_snapshots() {
    let stage = Stage::new(&["ada"]);
    stage.sh_of("ada", "sed -i 10s/.*/ten/ a.txt; git commit -qam ten; git init -q inner");
    let committed = stage.reviewed("ada");
    let expected = Reviewed {
        name: name("ada"),
        from: "demo-ada".to_owned(),
        into: "main".to_owned(),
        base: stage.sh(&stage.top(), "git rev-parse HEAD"),
        head: stage.sh_of("ada", "git rev-parse HEAD"),
        snapshot: stage.sh_of("ada", "git rev-parse HEAD"),
        uncommitted: 0,
        nested: vec!["inner".to_owned()],
        unfiltered: Vec::new(),
    };
    assert_eq!(committed, expected);
    stage.sh_of("ada", "sed -i 1d a.txt; echo new >new.txt");
    let now = stage.reviewed("ada");
    assert_eq!((now.uncommitted, &now.head), (2, &committed.head));
    let cancel = CancelToken::default();
    let (ada, options) = (name("ada"), PatchOptions::default());
    let patch = |from: &str, cancel: &CancelToken| {
        changes::patch(&stage.ctx, &stage.team, &ada, from, &now.snapshot, &options, cancel)
    };
    let whole = String::from_utf8(patch(&now.base, &cancel).expect("a patch")).expect("text");
    assert!(whole.contains("+ten") && whole.contains("+new"), "{whole}");
    let since = String::from_utf8(patch(&committed.snapshot, &cancel).expect("a patch"));
    let since = since.expect("text");
    assert!(!since.contains("+ten") && since.contains("+new"), "{since}");
    let (from, to) = (committed.snapshot.as_str(), now.snapshot.as_str());
    let moves = changes::moved(&stage.ctx, &stage.team, &ada, from, to, "a.txt");
    let moves = moves.expect("git answers");
    assert_eq!(moves.follow(10, 10), Followed::Same { first: 9, last: 9 });
    let text = changes::diff(&stage.ctx, &stage.team, &ada).expect("git answers");
    assert!(text.contains("2 files changed") && text.ends_with(&whole), "{text}");
    cancel.cancel();
    assert!(patch(&now.base, &cancel).is_err());
    assert!(changes::reviewed(&stage.ctx, &stage.team, &ada, &cancel).is_err());
}

#[test]
fn overview_has_the_members_with_work_and_their_overlaps() {
    let stage = Stage::new(&["ada", "bob", "cyd", "dan", "eve", "fay"]);
    // `dan` has no work, `eve` has landed hers, and the worktree of `fay` is gone.
    stage.sh_of("ada", "sed -i 2s/.*/two/ a.txt; git commit -qam two; sed -i 19s/.*/x/ b.txt");
    stage.sh_of("bob", "sed -i 2s/.*/zwei/ a.txt; sed -i 2s/.*/zwei/ b.txt; git commit -qam zwei");
    stage.sh_of("cyd", "git mv b.txt c.txt; git commit -qm moved; printf '\\0' >binary");
    stage.sh_of("eve", "echo eve >eve.txt; git add .; git commit -qm eve");
    let request = LandRequest {
        kind: LandingKind::Squash,
        head: None,
        message: None,
        title: None,
        leaves_uncommitted: false,
        task: None,
    };
    land(&stage.ctx, &stage.team, &name("eve"), &request).expect("it lands");
    stage.sh(&stage.top(), "sed -i 19s/.*/main/ b.txt; git commit -qam main");
    stage.sh(&stage.top(), "rm -r .worktrees/demo-fay");
    let found = stage.overview();
    assert_eq!((found.into.as_str(), found.main.len()), ("main", 40));
    let names: Vec<&str> = found.work.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["ada", "bob", "cyd"]);
    let [ada, bob, cyd] = &found.work[..] else { panic!("{found:?}") };
    let (ada, bob, cyd) = (work(ada), work(bob), work(cyd));
    assert_eq!((ada.commits, ada.uncommitted, ada.files, ada.added, ada.removed), (1, 1, 2, 2, 2));
    assert_eq!(ada.conflicts, ["b.txt"], "what is not committed counts");
    assert_ne!(ada.snapshot, ada.head);
    assert_eq!((bob.snapshot == bob.head, bob.conflicts.len()), (true, 0));
    assert_eq!((cyd.commits, cyd.files, cyd.added, cyd.removed), (1, 2, 0, 0));
    let date = stage.sh_of("cyd", "git log -1 --format=%ct");
    assert_eq!((cyd.since.0 / 1000).to_string(), date);
    assert_eq!((ada.from.as_str(), &ada.host), ("demo-ada", &None));
    let overlap = |first: &str, second: &str, files: &[&str], conflicts: &[&str]| Overlap {
        first: name(first),
        second: name(second),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        conflicts: conflicts.iter().map(|file| (*file).to_owned()).collect(),
    };
    let expected = [
        overlap("ada", "bob", &["a.txt", "b.txt"], &["a.txt"]),
        overlap("ada", "cyd", &["b.txt"], &[]),
        overlap("bob", "cyd", &["b.txt"], &[]),
    ];
    assert_eq!(found.overlaps, expected);
    // What comes after a squash is new.
    stage.sh_of("eve", "echo more >>eve.txt");
    let eve = stage.overview().work.into_iter().find(|row| row.name == name("eve"));
    let eve = eve.expect("it has work");
    assert_eq!((work(&eve).commits, work(&eve).uncommitted, work(&eve).added), (0, 1, 1));
}

#[test]
fn overview_tells_what_it_cannot_read() {
    let stage = Stage::new(&["ada", "bob"]);
    assert_eq!(stage.overview().work, []);
    stage.sh_of("ada", "echo x >>a.txt; git commit -qam x");
    stage.sh(&stage.top(), "rm -r .worktrees/demo-ada");
    stage.sh_of("bob", "echo x >>a.txt; printf broken >\"$(git rev-parse --git-path index)\"");
    let found = stage.overview();
    let problem = |at: usize| found.work[at].work.clone().expect_err("a problem");
    assert!(problem(0).contains("is gone"), "{found:?}");
    assert!(problem(1).contains("index"), "{found:?}");
    let empty = Stage::new(&[]);
    assert_eq!(empty.overview(), ReviewOverview::default());
}

#[test]
fn host_that_cannot_be_reached_is_a_problem_of_its_members_only() {
    let stage = Stage::new(&["ada", "bob", "cyd"]);
    stage.sh_of("ada", "echo x >>a.txt");
    let move_away = |settings: &mut Settings| {
        for member in ["bob", "cyd"] {
            let copy = RepositoryCopy {
                host: HostName::new("h9").expect("a name"),
                path: "/no/such/copy".to_owned(),
            };
            settings.checkouts.get_mut(&name(member)).expect("a worktree").copy = Some(copy);
        }
    };
    stage.team.change_settings(move_away).expect("settings");
    let found = stage.overview();
    let problems: Vec<bool> = found.work.iter().map(|row| row.work.is_err()).collect();
    assert_eq!(problems, [false, true, true], "{found:?}");
}
