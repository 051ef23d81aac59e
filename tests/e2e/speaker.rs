//! Identity of callers, with the credentials of real teammates.

use serde_json::json;

use crate::harness::{Run, Stage, binary, wait_for};

/// The environment variables of a spawned teammate.
pub(crate) type Env = Vec<(String, String)>;

/// Runs phalanx with the variables of a teammate.
pub(crate) fn as_teammate(stage: &Stage, env: &[(String, String)], args: &[&str]) -> Run {
    let mut command = stage.command(binary());
    command.envs(env.iter().map(|(name, value)| (name, value))).args(args);
    Run::from(command.output().expect("phalanx runs"))
}

/// Spawns a teammate that writes its `PHALANX_` variables to a file, and returns them.
pub(crate) fn spawn(stage: &Stage, name: &str) -> Env {
    spawn_by(stage, &Env::new(), &[], name)
}

/// As [`spawn`], by a process with these variables and with these global options.
pub(crate) fn spawn_by(stage: &Stage, by: &Env, options: &[&str], name: &str) -> Env {
    let script =
        format!("env | grep ^PHALANX_ >{name}.new; mv {name}.new {name}.env; exec sleep 300");
    let verb = ["spawn", name, "--backend", "pty", "--", "sh", "-c", &script];
    as_teammate(stage, by, &[options, &verb].concat()).expect(0);
    let file = stage.at("work").join(format!("{name}.env"));
    let text = wait_for("its variables", || std::fs::read_to_string(&file).ok());
    std::fs::remove_file(&file).expect("removed");
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// SEC-04: a teammate cannot act as the lead or another member, however it names itself. The
/// attempt is refused without effect and journaled.
#[test]
fn sec_04_teammate_cannot_act_as_another() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let (ann, _bob) = (spawn(&stage, "ann"), spawn(&stage, "bob"));
    as_teammate(&stage, &ann, &["send", "team-lead", "mine"]).expect(0);
    for other in ["team-lead", "lead", "bob", "nobody"] {
        for verb in
            [&["send", "team-lead", "forged"][..], &["task", "create", "forged"], &["status"]]
        {
            let run = as_teammate(&stage, &ann, &[&["--as", other][..], verb].concat()).expect(4);
            assert!(run.stderr.contains("its token belongs to `ann`"), "{other} {verb:?}: {run:?}");
        }
        let named: Vec<_> = ann
            .iter()
            .map(|(name, value)| {
                let forged = if name == "PHALANX_AGENT_NAME" { other } else { value.as_str() };
                (name.clone(), forged.to_owned())
            })
            .collect();
        as_teammate(&stage, &named, &["send", "team-lead", "forged"]).expect(4);
    }
    let warned = stage.wait_event("alpha", "warning", "ann");
    assert_eq!(
        warned["detail"]["text"],
        json!("`ann` tried to act as `team-lead` and was refused")
    );
    let inbox = stage.phalanx(&["--json", "inbox", "--peek", "--all"]).expect(0).json();
    let texts: Vec<_> =
        inbox.as_array().expect("entries").iter().map(|entry| &entry["text"]).collect();
    assert_eq!(texts, [&json!("mine")]);
    assert_eq!(stage.phalanx(&["--json", "task", "list"]).expect(0).json(), json!([]));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ID-08: identity follows from the calling process and liveness from processes, whatever flags the
/// team file has.
#[test]
fn id_08_flags_in_the_team_file_do_not_change_identity() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let ann = spawn(&stage, "ann");
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    let file = stage.root().join("teams/alpha/config.json");
    for ann_is_active in [true, false] {
        let text = std::fs::read_to_string(&file).expect("team file");
        let mut team: serde_json::Value = serde_json::from_str(&text).expect("json");
        for member in team["members"].as_array_mut().expect("members") {
            let active = (member["name"] == "ann") == ann_is_active;
            member["isActive"] = json!(active);
        }
        team["activeMember"] = json!("ann");
        std::fs::write(&file, team.to_string()).expect("written");
        stage.phalanx(&["send", "bob", "who?"]).expect(0);
        as_teammate(&stage, &ann, &["send", "bob", "me"]).expect(0);
        let refused = stage.phalanx(&["team", "delete"]).expect(4);
        assert!(refused.stderr.contains("ann") && refused.stderr.contains("bob"), "{refused:?}");
    }
    let inbox = stage.phalanx(&["--json", "inbox", "bob", "--all"]).expect(0).json();
    let said: Vec<_> =
        inbox.as_array().expect("entries").iter().map(|e| (&e["from"], &e["text"])).collect();
    let (lead, ann) = ((&json!("team-lead"), &json!("who?")), (&json!("ann"), &json!("me")));
    assert_eq!(said, [lead, ann, lead, ann]);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// SEC-04, SD-10: the token of an earlier run with the same name is refused.
#[test]
fn sec_04_token_of_an_earlier_run_is_refused() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let earlier = spawn(&stage, "ann");
    stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
    let later = spawn(&stage, "ann");
    let run = as_teammate(&stage, &earlier, &["send", "team-lead", "late"]).expect(4);
    assert!(run.stderr.contains("a run that has ended"), "{run:?}");
    as_teammate(&stage, &later, &["send", "team-lead", "now"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// SEC-04: the identity of a teammate does not apply in another team; it can create and lead one if
/// its own team allows nesting.
#[test]
fn sec_04_teammate_can_lead_a_nested_team() {
    let stage = Stage::new();
    let nested = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\nmax_depth = 2\n\
                  [[member]]\nname = \"bob\"\n";
    stage.phalanx(&["up", &stage.file("alpha.toml", nested), "--detach"]).expect(0);
    let ann = spawn(&stage, "ann");
    as_teammate(&stage, &ann, &["team", "create", "beta"]).expect(0);
    as_teammate(&stage, &ann, &["--as", "team-lead", "-t", "beta", "task", "create", "x"])
        .expect(0);
    stage.phalanx(&["team", "delete", "-t", "beta"]).expect(0);
    stage.phalanx(&["down", "--force", "-t", "alpha"]).expect(0);
    stage.assert_clean();
}
