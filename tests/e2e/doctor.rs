//! `doctor` finds leftovers, repairs those that are proven ours, and leaves everything else alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::gear;
use crate::harness::{Run, Stage, binary, wait_for};

fn doctor(stage: &Stage, fix: bool) -> Run {
    stage.phalanx(if fix { &["--json", "doctor", "--fix"] } else { &["--json", "doctor"] })
}

fn found(run: &Run, id: &str) -> Vec<Value> {
    let findings = run.json()["findings"].as_array().cloned().expect("findings");
    findings.into_iter().filter(|finding| finding["id"] == id).collect()
}

fn make_old(path: &Path) {
    let file = fs::File::open(path).expect("there");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("own file");
}

fn panes(stage: &Stage) -> String {
    stage
        .tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{@phalanx_token}"])
        .expect("server")
}

/// SD-05: 20 foreign panes, one with a made-up token and one with the token of a live member.
#[test]
fn tmux_sd_05_doctor_fix_touches_no_bystander() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let made = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json();
    let ada = made["tmux_pane_id"].as_str().expect("pane").to_owned();
    let token =
        stage.tmux(&["display-message", "-p", "-t", &ada, "#{@phalanx_token}"]).expect("token");
    for n in 0..20 {
        // Its command line equals that of a launcher; only `/proc` shows that the executable is
        // `tee`.
        let spec = format!("00000000-0000-4000-8000-0000000000{n:02}.json");
        let spec = stage.root().join("teams/alpha/phalanx/specs").join(spec);
        let script = format!("exec -a {} tee exec {}", binary(), spec.display());
        let dir = stage.at("work").to_string_lossy().into_owned();
        let words = ["-d", "-P", "-F", "#{pane_id}", "-c", &dir, "bash", "-c", &script];
        // Beside our own pane while there is room, then in new windows.
        let beside = stage.tmux(&[&["split-window", "-t", &ada], &words[..]].concat());
        let pane =
            beside.or_else(|| stage.tmux(&[&["new-window"], &words[..]].concat())).expect("a pane");
        let forged = match n {
            0 => "made-up-token",
            1 => token.trim(),
            _ => continue,
        };
        stage
            .tmux(&["set-option", "-p", "-t", pane.trim(), "@phalanx_token", forged])
            .expect("option");
    }
    let before = panes(&stage);
    assert_eq!(before.lines().count(), 21);
    for fix in [false, true] {
        let run = doctor(&stage, fix);
        assert_eq!(run.code, 1, "{run:?}");
        let unproven = found(&run, "unproven_pane");
        assert_eq!(unproven.len(), 2, "{run:?}");
        assert!(
            unproven.iter().all(|f| f["fixed"] == false && f["severity"] == "problem"),
            "{run:?}"
        );
        assert_eq!(found(&run, "orphan_pane"), Vec::<Value>::new());
        assert_eq!(panes(&stage), before);
    }
    stage.phalanx(&["down"]).expect(0);
    assert_eq!(panes(&stage).lines().count(), 20, "down takes its own pane and no other");
}

/// SD-08: the team's files are gone and its member still runs in its pane.
#[test]
fn tmux_sd_08_proven_orphan_pane_is_found_and_closed() {
    let stage = Stage::new();
    stage.tmux(&["new-session", "-d", "-s", "mine", "sleep", "300"]).expect("session");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["team", "create", "other"]).expect(0);
    stage.phalanx(&["spawn", "bob", "-t", "other"]).expect(0);
    let made = stage
        .phalanx(&["--json", "spawn", "ada", "-t", "alpha", "--", "sleep", "600"])
        .expect(0)
        .json();
    let pane = made["tmux_pane_id"].as_str().expect("pane").to_owned();
    fs::remove_dir_all(stage.root().join("teams/alpha")).expect("removed by hand");
    let run = doctor(&stage, false).expect(1);
    let orphan = found(&run, "orphan_pane");
    assert!(
        orphan.len() == 1 && orphan[0]["where"].as_str().is_some_and(|w| w.contains(&pane)),
        "{run:?}"
    );
    assert_eq!(orphan[0]["fix"], json!("phalanx doctor --fix"));
    assert!(panes(&stage).contains(&format!("{pane} ")), "without --fix nothing is touched");
    let fixed = doctor(&stage, true).expect(0);
    assert_eq!(found(&fixed, "orphan_pane")[0]["fixed"], json!(true), "{fixed:?}");
    assert!(!panes(&stage).contains(&format!("{pane} ")));
    assert!(
        !stage.processes().iter().any(|line| line.contains("sleep 600")),
        "{:?}",
        stage.processes()
    );
    assert_eq!(panes(&stage).lines().count(), 2, "the user's pane and bob's are there");
    assert_eq!(found(&doctor(&stage, true).expect(0), "orphan_pane"), Vec::<Value>::new());
    stage.phalanx(&["down", "-t", "other"]).expect(0);
}

/// SD-02: the record says that the run is over, but the pane is still open.
#[test]
fn tmux_sd_02_pane_that_outlived_its_run_is_closed() {
    let stage = Stage::new();
    stage.tmux(&["new-session", "-d", "-s", "mine", "sleep", "300"]).expect("session");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--", "sleep", "600"]).expect(0);
    let path = stage.root().join("teams/alpha/phalanx/members/ada.json");
    let text = fs::read_to_string(&path).expect("record");
    fs::write(&path, text.replace(r#""state": "idle""#, r#""state": "completed""#))
        .expect("record");
    assert_eq!(found(&doctor(&stage, false).expect(1), "left_pane").len(), 1);
    assert_eq!(panes(&stage).lines().count(), 2);
    assert_eq!(found(&doctor(&stage, true).expect(0), "left_pane")[0]["fixed"], json!(true));
    assert_eq!(panes(&stage).lines().count(), 1);
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn sd_08_orphan_without_a_pane_is_found_and_ended() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let made = stage.phalanx(&["--json", "spawn", "ada", "--", "sleep", "600"]).expect(0).json();
    fs::remove_dir_all(stage.root().join("teams/alpha")).expect("removed by hand");
    assert_eq!(found(&doctor(&stage, false).expect(1), "orphan_process").len(), 1);
    assert!(Path::new(&format!("/proc/{}", made["pid"])).exists());
    assert_eq!(found(&doctor(&stage, true).expect(0), "orphan_process")[0]["fixed"], json!(true));
    assert!(
        !stage.processes().iter().any(|line| line.contains("sleep 600")),
        "{:?}",
        stage.processes()
    );
}

#[test]
fn tmux_pt_07_missing_and_dead_sockets_are_reported() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let socket =
        stage.tmux(&["display-message", "-p", "#{socket_path}"]).expect("path").trim().to_owned();
    let aside = format!("{socket}.aside");
    fs::rename(&socket, &aside).expect("moved");
    let run = doctor(&stage, false);
    assert_eq!(found(&run, "tmux_socket_missing")[0]["where"], json!(socket), "{run:?}");
    drop(UnixListener::bind(&socket).expect("bound"));
    let run = doctor(&stage, false);
    assert!(
        found(&run, "tmux_socket_dead")[0]["what"].as_str().is_some_and(|w| w.contains("refused")),
        "{run:?}"
    );
    fs::rename(&aside, &socket).expect("moved back");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// SP-14: risky server versions and options are reported; a tmux that is too old is a warning.
#[test]
fn tmux_sp_14_old_versions_and_risky_options_are_reported() {
    let mut stage = Stage::new();
    fs::write(stage.at("home/.tmux.conf"), "set -g exit-empty off\nset -g destroy-unattached on\n")
        .expect("conf");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let version = stage.tmux(&["display-message", "-p", "#{version}"]).expect("version");
    let run = doctor(&stage, false).expect(0);
    assert_eq!(found(&run, "tmux_exit_empty").len(), 1, "{run:?}");
    assert_eq!(found(&run, "tmux_destroy_unattached").len(), 1, "{run:?}");
    assert_eq!(
        found(&run, "tmux_version").len(),
        usize::from(version.starts_with("3.3")),
        "{run:?}"
    );
    stage.phalanx(&["down"]).expect(0);
    stage.tmux(&["kill-server"]);
    stage.shadow("tmux", "#!/bin/sh\necho tmux 2.9a\n");
    let run = doctor(&stage, false).expect(0);
    assert!(
        found(&run, "tmux_missing")[0]["what"].as_str().is_some_and(|w| w.contains("2.9a")),
        "{run:?}"
    );
}

/// CR-08, SEC-06, SEC-07: stale locks, dead sockets, leftover specs and open modes.
#[test]
fn leftovers_of_dead_processes_are_found_and_removed() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let team = stage.root().join("teams/alpha");
    let lock = team.join("inboxes/team-lead.json.lock");
    let young = team.join("config.json.lock");
    for dir in [&lock, &young] {
        fs::create_dir(dir).expect("lock");
    }
    make_old(&lock);
    let socket = team.join("phalanx/logs/dead.sock");
    drop(UnixListener::bind(&socket).expect("bound"));
    let alive = team.join("phalanx/logs/alive.sock");
    let _listener = UnixListener::bind(&alive).expect("bound");
    let spec = team.join("phalanx/specs/00000000-0000-4000-8000-000000000000.json");
    fs::write(&spec, "{}").expect("spec");
    [&socket, &alive].into_iter().for_each(|path| {
        let old =
            Command::new("touch").args(["-d", "1 hour ago"]).arg(path).status().expect("touch");
        assert!(old.success());
    });
    make_old(&spec);
    fs::write(team.join("phalanx/quarantine/x.json.1"), "{").expect("copy");
    fs::set_permissions(team.join("inboxes"), fs::Permissions::from_mode(0o755)).expect("mode");
    let ids = ["stale_lock", "dead_socket", "left_spec", "open_directory", "quarantined"];
    let run = doctor(&stage, false).expect(0);
    for id in ids {
        assert_eq!(found(&run, id).len(), 1, "{id}: {run:?}");
    }
    assert!(lock.exists() && socket.exists() && spec.exists(), "without --fix nothing is changed");
    fs::remove_dir(&young).expect("a lock that is not stale is left alone");
    let run = doctor(&stage, true).expect(0);
    for id in &ids[..4] {
        assert_eq!(found(&run, id)[0]["fixed"], json!(true), "{id}: {run:?}");
    }
    assert!(!lock.exists() && !socket.exists() && !spec.exists() && alive.exists());
    let mode = fs::metadata(team.join("inboxes")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(stage.journal("alpha").iter().filter(|e| e["event"] == "repaired").count(), 4);
    let left = doctor(&stage, true).expect(0).json();
    assert_eq!(
        left["findings"].as_array().map(|f| f.iter().filter(|f| f["id"] != "tmux_missing").count()),
        Some(1)
    );
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn sec_07_symlinked_directory_is_reported_and_left_in_place() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let (inboxes, elsewhere) = (stage.root().join("teams/alpha/inboxes"), stage.at("elsewhere"));
    fs::rename(&inboxes, &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, &inboxes).expect("link");
    let run = doctor(&stage, true).expect(1);
    assert_eq!(
        found(&run, "foreign_directory")[0]["where"],
        json!(inboxes.to_string_lossy()),
        "{run:?}"
    );
    assert!(inboxes.is_symlink());
}

#[test]
fn sd_08_dead_lead_and_dead_member_are_found() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let made = stage.phalanx(&["--json", "spawn", "bob", "--", "sleep", "600"]).expect(0).json();
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || {
        stage.journal("alpha").into_iter().find(|e| e["event"] == "lead_started")
    });
    lead.signal("KILL");
    drop(lead);
    let run = doctor(&stage, true).expect(1);
    assert!(
        found(&run, "lead_dead")[0]["fix"].as_str().is_some_and(|f| f.contains("phalanx lead")),
        "{run:?}"
    );
    let launcher = stage
        .processes()
        .into_iter()
        .find(|line| line.contains(" exec ") && line.contains("specs"));
    assert!(launcher.is_some());
    let record = fs::read_to_string(stage.root().join("teams/alpha/phalanx/members/bob.json"))
        .expect("record");
    let record: Value = serde_json::from_str(&record).expect("json");
    for pid in [&record["start"]["launcher"]["pid"], &made["pid"]] {
        assert!(
            Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill").success()
        );
    }
    wait_for("bob to be dead", || {
        (found(&doctor(&stage, false), "dead_member").len() == 1).then_some(())
    });
    let fixed = doctor(&stage, true);
    assert_eq!(found(&fixed, "dead_member")[0]["fixed"], json!(true), "{fixed:?}");
    let members = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(members["members"].as_array().map(Vec::len), Some(1), "{members}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// Fills a file system of its own, in a mount namespace. `$1` is phalanx, `$2` the directory, `$3`
/// what runs out.
const ON_FULL_DISK: &str = r#"
set -e
mount -t tmpfs -o size=16m,nr_inodes=2000 none "$2"
"$1" -q team create alpha >/dev/null
"$1" --json doctor >"$2/before.json" || true
case $3 in
    bytes) dd if=/dev/zero of="$2/fill" bs=1k 2>/dev/null || true ;;
    inodes) i=0; while (: >"$2/fill$i") 2>/dev/null; do i=$((i + 1)); done ;;
esac
cat "$2/before.json"
"$1" --json doctor
"#;

#[test]
fn full_file_system_is_a_problem() {
    let mounts = Command::new("unshare").args(["-rm", "true"]).status();
    if !mounts.is_ok_and(|status| status.success()) {
        return gear::skip_without("unshare with mount namespaces");
    }
    for what in ["bytes", "inodes"] {
        let stage = Stage::without_tmux();
        fs::create_dir_all(stage.root()).expect("root");
        let mut command = stage.command("unshare");
        command.env("PATH", std::env::var("PATH").expect("PATH"));
        command.args(["-rm", "bash", "-c", ON_FULL_DISK, "bash", binary()]);
        let out = command.arg(stage.root()).arg(what).output().expect("unshare runs");
        let reports = String::from_utf8_lossy(&out.stdout).into_owned();
        let full: Vec<bool> = reports.lines().map(|line| line.contains("full_disk")).collect();
        assert_eq!((full, out.status.code()), (vec![false, true], Some(1)), "{what}: {out:?}");
    }
}

/// Runs phalanx as a user who may not enter the team's directory.
#[test]
fn sec_07_team_of_another_user_is_denied_and_not_called_deleted() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let team = stage.root().join("teams/alpha");
    fs::set_permissions(&team, fs::Permissions::from_mode(0o000)).expect("own directory");
    // Root may enter it, but not in a namespace to which its files are foreign.
    let mut command = if fs::read_dir(&team).is_ok() {
        let mut command = stage.command("unshare");
        command.env("PATH", std::env::var("PATH").expect("PATH")).args(["-U", binary()]);
        command
    } else {
        stage.command(binary())
    };
    let out = command.args(["-t", "alpha", "status"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("permission denied") && !said.contains("deleted"), "{out:?}");
    fs::set_permissions(&team, fs::Permissions::from_mode(0o700)).expect("own directory");
}
