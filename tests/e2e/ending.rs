//! Teams that end although their files cannot be used: `down --force`, `team delete --force` and
//! `kill` end what runs by what the system shows (SD-14).

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use testing::TestDatabase;

use crate::harness::{Background, Run, Stage, binary, wait_for, which};

/// Time within which `down --force` ends a team, whatever is broken.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// A way in which the files of a team can be broken.
struct Break {
    name: &'static str,
    /// Breaks the files of the team in this directory.
    inflict: fn(&Path),
    /// Exit code of `down --force`: 6 if the files stay.
    code: i32,
}

/// All breaks that need no file system of their own.
const BREAKS: &[Break] = &[
    Break { name: "nothing", inflict: |_| {}, code: 0 },
    Break { name: "lead.json is missing", inflict: |team| remove(&lead(team)), code: 0 },
    Break { name: "lead.json is garbage", inflict: |team| write(&lead(team), "{{{"), code: 0 },
    Break { name: "lead.json is empty", inflict: |team| write(&lead(team), ""), code: 0 },
    Break {
        name: "lead.json is a directory",
        inflict: |team| replace(team, |p| fs::create_dir(p)),
        code: 0,
    },
    Break {
        name: "lead.json is a FIFO",
        inflict: |team| replace(team, |p| make(&["mkfifo"], p)),
        code: 0,
    },
    Break {
        name: "lead.json is a link",
        inflict: |team| replace(team, |p| symlink("/etc/hostname", p)),
        code: 0,
    },
    Break {
        name: "lead.json is a socket",
        inflict: |team| replace(team, |p| UnixListener::bind(p).map(drop)),
        code: 0,
    },
    Break {
        name: "lead.json has 70 MB",
        inflict: |team| {
            let file = fs::File::create(lead(team)).expect("file");
            file.set_len(70 << 20).expect("long");
        },
        code: 0,
    },
    Break {
        name: "config.json is missing",
        inflict: |team| remove(&team.join("config.json")),
        code: 0,
    },
    Break {
        name: "the gates are gone",
        inflict: |team| remove_all(&team.join("phalanx/gates")),
        code: 0,
    },
    Break {
        name: "the records are gone",
        inflict: |team| remove_all(&team.join("phalanx/members")),
        code: 0,
    },
    Break { name: "the directory is gone", inflict: remove_all, code: 0 },
    Break {
        name: "the directory is a link",
        inflict: |team| {
            let real = team.with_file_name(".real");
            fs::rename(team, &real).expect("moved");
            symlink(real, team).expect("linked");
        },
        code: 6,
    },
    Break {
        name: "the directory of all teams is a link",
        inflict: |team| {
            let (teams, real) = (team.parent().expect("teams"), team.with_file_name("../.real"));
            fs::rename(teams, &real).expect("moved");
            symlink(real, teams).expect("linked");
        },
        code: 0,
    },
];

fn lead(team: &Path) -> PathBuf {
    team.join("phalanx/lead.json")
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Removes a directory in which a living lead may write meanwhile.
fn remove_all(path: &Path) {
    wait_for("the directory to be gone", || {
        let _ = fs::remove_dir_all(path);
        (!path.exists()).then_some(())
    });
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
}

fn replace(team: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) {
    remove(&lead(team));
    make(&lead(team)).expect("made");
}

fn make(program: &[&str], path: &Path) -> std::io::Result<()> {
    let found = which(program[0], &std::env::var("PATH").expect("PATH")).expect("program");
    let status = Command::new(found).args(&program[1..]).arg(path).status()?;
    assert!(status.success());
    Ok(())
}

/// Starts team `alpha` with two members, and a lead in the background.
fn start(stage: &Stage, backend: &str, is_led: bool) {
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    if is_led {
        stage.phalanx(&["lead", "--detach"]).expect(0);
    }
    stage.phalanx(&["spawn", "ada", "bob", "--backend", backend, "--", "sleep", "600"]).expect(0);
}

/// Ends the team with this command line and checks that nothing runs or is shown any longer.
fn end(stage: &Stage, verb: &[&str], code: i32, what: &str) -> Run {
    let begun = Instant::now();
    let run = stage.phalanx(verb);
    assert_eq!(run.code, code, "{what}: {run:?}");
    assert!(begun.elapsed() < ENDS_WITHIN, "{what}: {:?}", begun.elapsed());
    stage.await_end(what);
    assert_eq!(stage.panes(), Vec::<String>::new(), "{what}");
    run
}

fn every_break_ends(backend: &str) {
    for case in BREAKS {
        for is_led in [true, false] {
            let stage = if backend == "tmux" { Stage::new() } else { Stage::without_tmux() };
            start(&stage, backend, is_led);
            (case.inflict)(&stage.root().join("teams/alpha"));
            let what = format!("{}, {backend}, led: {is_led}", case.name);
            end(&stage, &["down", "--force"], case.code, &what);
        }
    }
}

#[test]
fn sd_14_team_ends_whatever_is_broken() {
    every_break_ends("pty");
}

#[test]
fn tmux_sd_14_team_ends_whatever_is_broken() {
    every_break_ends("tmux");
}

#[test]
fn sd_14_team_delete_and_kill_end_a_team_without_its_files() {
    let stage = Stage::without_tmux();
    start(&stage, "pty", false);
    remove(&stage.root().join("teams/alpha/config.json"));
    let run = stage.phalanx(&["kill", "ada"]).expect(6);
    assert!(run.stdout.contains("ada") && !run.stdout.contains("bob"), "{run:?}");
    let sleeps = || stage.processes().iter().filter(|line| line.ends_with("sleep 600 ")).count();
    assert_eq!(sleeps(), 1, "bob runs on: {:?}", stage.processes());
    end(&stage, &["-t", "alpha", "team", "delete", "--force"], 0, "team delete");
    stage.assert_clean();
}

#[test]
fn sd_14_killed_member_with_an_unreadable_record_ends() {
    let stage = Stage::without_tmux();
    start(&stage, "pty", false);
    for name in ["ada", "bob"] {
        write(
            &stage.root().join(format!("teams/alpha/phalanx/members/{name}.json")),
            "{\"bad\": 1}",
        );
    }
    let run = stage.phalanx(&["kill", "ada"]);
    assert!(matches!(run.code, 0 | 6), "{run:?}");
    wait_for("ada to end", || (stage.processes().len() == 2).then_some(()));
    end(&stage, &["down", "--force"], 0, "down");
}

/// SD-11: by process, too, only the team and the members that are named are ended.
#[test]
fn sd_14_kill_without_files_ends_no_member_of_another_team() {
    let stage = Stage::without_tmux();
    start(&stage, "pty", false);
    remove(&stage.root().join("teams/alpha/config.json"));
    stage.phalanx(&["kill", "ada@beta"]).expect(3);
    stage.phalanx(&["-t", "beta", "down", "--force"]).expect(3);
    stage.phalanx(&["kill", "a/b@alpha"]).expect(2);
    let sleeps = || stage.processes().iter().filter(|line| line.ends_with("sleep 600 ")).count();
    assert_eq!(sleeps(), 2, "{:?}", stage.processes());
    end(&stage, &["down", "--force"], 0, "down");
}

/// SD-05: a team file that names the lead of another team does not get that lead killed.
#[test]
fn sd_14_lead_of_another_team_is_spared() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "beta"]).expect(0);
    stage.phalanx(&["-t", "beta", "lead", "--detach"]).expect(0);
    let read = |team: &str| {
        fs::read_to_string(stage.root().join(format!("teams/{team}/config.json"))).expect("read")
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    wait_for("the lead to be named", || json(&read("beta")).get("leadProcess").map(drop));
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage
        .phalanx(&["-t", "alpha", "spawn", "ada", "--backend", "pty", "--", "sleep", "600"])
        .expect(0);
    let mut claim = json(&read("alpha"));
    claim["leadProcess"] = json(&read("beta"))["leadProcess"].clone();
    write(&stage.root().join("teams/alpha/config.json"), &claim.to_string());
    stage.phalanx(&["-t", "alpha", "down", "--force"]);
    let leads = || stage.processes().iter().filter(|line| line.contains(" lead ")).count();
    assert_eq!(leads(), 1, "beta is led on: {:?}", stage.processes());
    stage.phalanx(&["-t", "beta", "down", "--force"]).expect(0);
}

#[test]
fn sd_14_launchers_that_were_killed_leave_nothing() {
    let stage = Stage::without_tmux();
    start(&stage, "pty", false);
    remove_all(&stage.root().join("teams/alpha/phalanx/members"));
    for line in stage.processes().iter().filter(|line| line.contains(" exec ")) {
        let pid = line.split(' ').next().expect("pid");
        Command::new("kill").args(["-9", pid]).status().expect("kill");
    }
    end(&stage, &["down", "--force"], 0, "launchers killed");
}

#[test]
fn sd_14_member_cannot_end_a_team_by_its_processes() {
    let mut stage = Stage::without_tmux();
    start(&stage, "pty", false);
    remove(&stage.root().join("teams/alpha/config.json"));
    stage.set_env("PHALANX_TOKEN", "made-up");
    let run = stage.phalanx(&["-t", "alpha", "down", "--force"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(stage.processes().iter().any(|line| line.ends_with("sleep 600 ")), "{run:?}");
    stage.set_env("PHALANX_TOKEN", "");
    let mut command = stage.command(binary());
    command.env_remove("PHALANX_TOKEN").args(["-t", "alpha", "down", "--force"]);
    assert!(command.status().expect("phalanx runs").success());
}

/// Breaks a file system of its own, in a mount namespace, and ends the team in it. `$1` is phalanx,
/// `$2` the directory, `$3` the way to break it, `$4` whether the team is led.
const ON_BROKEN_DISK: &str = r#"
set -e
mount -t tmpfs -o size=600k,nr_inodes=2000 none "$2"
cd /
"$1" -q team create alpha >/dev/null
[ "$4" = no ] || "$1" -q lead --detach
"$1" -q spawn ada bob --backend pty -- sleep 600 >/dev/null
case $3 in
    full) dd if=/dev/zero of="$2/fill" bs=1k 2>/dev/null || true ;;
    inodes) i=0; while (: >"$2/fill$i") 2>/dev/null; do i=$((i + 1)); done ;;
    readonly) mount --bind "$2" "$2"; mount -o remount,bind,ro "$2"; cd / ;;
esac
exec "$1" down --force
"#;

#[test]
fn sd_14_team_ends_on_a_full_and_on_a_read_only_disk() {
    if which("unshare", &std::env::var("PATH").expect("PATH")).is_none()
        || !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|s| s.success())
    {
        eprintln!("skipped: mount namespaces are not permitted here");
        return;
    }
    for (broken, code) in [("full", 0), ("inodes", 0), ("readonly", 6)] {
        for is_led in ["yes", "no"] {
            let stage = Stage::new();
            let root = stage.root();
            fs::create_dir_all(&root).expect("root");
            let mut command = stage.command("unshare");
            command.args(["-rm", "bash", "-c", ON_BROKEN_DISK, "bash", binary()]);
            command.arg(&root).args([broken, is_led]);
            let out = command.output().expect("unshare runs");
            let what = format!("{broken}, led: {is_led}: {out:?}");
            assert_eq!(out.status.code(), Some(code), "{what}");
            let said = String::from_utf8_lossy(&out.stderr);
            let reason = if broken == "readonly" { "read-only" } else { "no space left" };
            assert!(said.contains(reason), "{what}");
            wait_for(&format!("{what}: all processes to end"), || {
                stage.processes().is_empty().then_some(())
            });
        }
    }
}

/// A lead that starts failed members again loses against `down --force`, whenever that comes.
#[test]
fn sd_14_end_wins_against_restarts() {
    let stage = Stage::without_tmux();
    let member = |name: &str| {
        format!(
            "[[member]]\nname = \"{name}\"\nrestart = \"on-failure\"\nrun = [\"sleep\", \"600\"]\n"
        )
    };
    let head = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n";
    let manifest =
        stage.file("team.toml", &(head.to_owned() + &["ada", "bob", "cat"].map(member).concat()));
    for delay_ms in [0, 500, 900, 950, 1000, 1050, 1100, 1500] {
        stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
        for line in stage.processes().iter().filter(|line| line.ends_with("sleep 600 ")) {
            let pid = line.split(' ').next().expect("pid");
            Command::new("kill").args(["-9", pid]).status().expect("kill");
        }
        // The delay is the subject: the lead starts them again after about 1 s.
        std::thread::sleep(Duration::from_millis(delay_ms));
        end(&stage, &["down", "--force"], 0, &format!("after {delay_ms} ms"));
        stage.assert_clean();
    }
}

/// A member that has failed is killed while it waits for its restart: it is not started again.
#[test]
fn sd_14_kill_wins_against_a_planned_restart() {
    let stage = Stage::without_tmux();
    let head = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n";
    let member = |name: &str| {
        format!(
            "[[member]]\nname = \"{name}\"\nrestart = \"on-failure\"\nrun = [\"sleep\", \"600\"]\n"
        )
    };
    let manifest = stage.file("team.toml", &(head.to_owned() + &member("ada") + &member("bob")));
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    for line in stage.processes().iter().filter(|line| line.ends_with("sleep 600 ")) {
        let pid = line.split(' ').next().expect("pid");
        Command::new("kill").args(["-9", pid]).status().expect("kill");
    }
    for name in ["ada", "bob"] {
        stage.wait_event("alpha", "restart_delayed", name);
    }
    stage.phalanx(&["kill", "ada"]).expect(0);
    // Its restart was due at the same time.
    let starts = |name: &str| {
        let ready = |e: &serde_json::Value| e["event"] == "member_ready" && e["member"] == name;
        stage.journal("alpha").into_iter().filter(ready).count()
    };
    wait_for("the restart of bob", || (starts("bob") == 2).then_some(()));
    let status = stage.phalanx(&["--json", "status"]).expect(0).stdout;
    assert!(!status.contains("restarting"), "{status}");
    assert_eq!(starts("ada"), 1);
    end(&stage, &["down", "--force"], 0, "after a kill");
    stage.assert_clean();
}

/// Returns the state of a process, such as `T` for a stopped one; none if there is no such process.
fn state_of(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The spawner was killed before it recorded a process, and the launcher starts its program while
/// the team is being deleted.
#[test]
fn sd_14_launcher_that_starts_during_the_deletion_ends() {
    let mut stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.set_env("MEMBER_STOPPOINT", "launch.taken");
    let spawn = stage.start(&["spawn", "ada", "--backend", "pty", "--", "sleep", "600"]);
    let launcher = wait_for("the launcher to stop", || {
        let launchers = stage.processes().into_iter().filter(|line| line.contains(" exec "));
        let pids = launchers.filter_map(|line| Some(line.split(' ').next()?.to_owned()));
        pids.into_iter().find(|pid| state_of(pid) == Some('T'))
    });
    spawn.signal("KILL");
    spawn.end();
    let mut command = stage.command(binary());
    command.env("PHALANX_STOPPOINT", "delete.checked").args(["down", "--force"]);
    let down = Background::start(command);
    wait_for("the deletion, or its end", || {
        matches!(state_of(&down.pid()), Some('T' | 'Z')).then_some(())
    });
    let _ = Command::new("kill").args(["-CONT", &launcher]).status().expect("kill");
    if down.is_stopped() {
        let record = stage.root().join("teams/alpha/phalanx/members/ada.json");
        wait_for("the launcher to record its start, or to end", || {
            let is_recorded =
                fs::read_to_string(&record).is_ok_and(|record| record.contains("\"launcher\""));
            (is_recorded || matches!(state_of(&launcher), None | Some('Z'))).then_some(())
        });
        down.signal("CONT");
    }
    down.end().expect(0);
    stage.await_end("a launcher that starts late");
    stage.assert_clean();
}

/// The member has ended for `wait` and `ps`, while its launcher still ends what the program left.
#[test]
fn sd_04_team_whose_member_is_gone_can_be_deleted_at_once() {
    let mut stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.set_env("MEMBER_STOPPOINT", "launch.ended");
    let program = "until [ -e go ]; do sleep 0.05; done";
    stage.phalanx(&["spawn", "ada", "--backend", "pty", "--", "sh", "-c", program]).expect(0);
    fs::write(stage.at("work/go"), "").expect("go");
    stage.phalanx(&["wait", "ada", "--until", "gone", "--timeout", "60"]).expect(0);
    let record = stage.root().join("teams/alpha/phalanx/members/ada.json");
    let record = fs::read_to_string(record).expect("record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let launcher = record["start"]["launcher"]["pid"].to_string();
    wait_for("the launcher to stop", || (state_of(&launcher) == Some('T')).then_some(()));
    let delete = stage.start(&["team", "delete"]);
    let fds = format!("/proc/{}/fd", delete.pid());
    wait_for("the deletion to wait for the launcher, or to end", || {
        let fds = fs::read_dir(&fds).into_iter().flatten().flatten();
        let mut targets = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        let waits = targets.any(|target| target.to_string_lossy().contains("pidfd"));
        (waits || matches!(state_of(&delete.pid()), None | Some('Z'))).then_some(())
    });
    let _ = Command::new("kill").args(["-CONT", &launcher]).status().expect("kill");
    delete.end().expect(0);
    stage.await_end("a deletion that waits");
    stage.assert_clean();
}

/// The shared store cannot be reached: members of this machine end within seconds, not after the
/// 30 s for which other commands wait.
#[test]
fn sd_14_members_end_while_their_store_is_gone() {
    let Some(database) = TestDatabase::create() else { return };
    let stage = Stage::without_tmux();
    let create = |stage: &Stage| {
        let mut command = stage.command(binary());
        command.env("PHALANX_STORE", database.url()).args(["team", "create", "alpha"]);
        assert!(command.status().expect("phalanx runs").success());
    };
    create(&stage);
    // Joins the team, so that its address is on this machine.
    let mut spawn = stage.command(binary());
    spawn.env("PHALANX_STORE", database.url());
    spawn.args(["spawn", "ada", "bob", "--backend", "pty", "--", "sleep", "600"]);
    assert!(spawn.status().expect("phalanx runs").success());
    let gone = |stage: &Stage, verb: &[&str]| {
        let mut command = stage.command(binary());
        // Port 1 refuses connections.
        command.env("PHALANX_STORE", "postgres://nobody@127.0.0.1:1/none").args(["-t", "alpha"]);
        let begun = Instant::now();
        let run = Run::from(command.args(verb).output().expect("phalanx runs"));
        assert_eq!(run.code, 6, "{run:?}");
        assert!(begun.elapsed() < ENDS_WITHIN, "{:?}", begun.elapsed());
        run
    };
    let sleeps = || stage.processes().iter().filter(|line| line.ends_with("sleep 600 ")).count();
    assert!(gone(&stage, &["kill", "ada"]).stdout.contains("ada"));
    assert_eq!(sleeps(), 1, "bob runs on");
    let run = gone(&stage, &["down", "--force"]);
    assert!(run.stderr.contains("its files stay"), "{run:?}");
    assert_eq!(sleeps(), 0);
}

/// SD-09: a launcher that is killed between the record of its program's end and that of the rest.
#[test]
fn sd_09_shutdown_ends_what_a_launcher_left_that_had_recorded_the_exit() {
    let mut stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let script =
        "(setsid sleep 307 >/dev/null 2>&1 &) ; touch up; until [ -e go ]; do sleep 0.1; done";
    stage.set_env("MEMBER_FAILPOINT", "launch.ended");
    stage.phalanx(&["spawn", "bob", "--backend", "pty", "--", "sh", "-c", script]).expect(0);
    let stray = || stage.processes().into_iter().any(|line| line.contains("sleep 307"));
    wait_for("all to be up", || (stage.at("work/up").exists() && stray()).then_some(()));
    fs::write(stage.at("work/go"), "").expect("go");
    let record = stage.root().join("teams/alpha/phalanx/members/bob.json");
    wait_for("the launcher to end", || {
        let record = fs::read_to_string(&record).expect("a record");
        let launcher = stage.processes().iter().any(|line| line.contains(" exec "));
        (record.contains("\"exit\"") && !launcher).then_some(())
    });
    assert!(stray(), "the test is worth something only if it outlives the launcher");
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    assert_eq!(stage.processes(), Vec::<String>::new());
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}
