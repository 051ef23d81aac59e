//! Tests against a script that records requests and gives prepared answers.
//! `tests/e2e/exec_backend.rs` covers whole life cycles.

use serde_json::{Value, json};

use super::*;
use crate::sys::exec::{self, ExecCommand};
use crate::sys::fs;

struct Bench {
    dir: tempfile::TempDir,
    external: External,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = dir.path().display();
        let script = format!(
            "#!/bin/sh\ncat >'{at}'/request.\"$1\"\ncode=$(cat '{at}'/code.\"$1\" 2>/dev/null)\ncat '{at}'/answer.\"$1\"\nexit ${{code:-0}}\n"
        );
        let program = dir.path().join("program");
        // The shell writes the script, so that no descriptor of this process makes its execution
        // fail with ETXTBSY.
        let words = ["-c", "printf '%s' \"$1\" >\"$2\" && chmod 700 \"$2\"", "sh", &script];
        let mut args: Vec<OsString> = words.map(OsString::from).to_vec();
        args.push(program.clone().into());
        let write = ExecCommand { program: "/bin/sh".into(), args, ..ExecCommand::default() };
        assert_eq!(exec::run(&write, Duration::from_secs(60)).expect("sh is there").code, Some(0));
        let external = External {
            program: program.to_string_lossy().into_owned(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            team: "alpha".to_owned(),
            layout: Layout::Windows,
        };
        Bench { dir, external }
    }

    fn set_answer(&self, verb: &str, answer: &Value) {
        fs::write_atomic(
            &self.dir.path().join(format!("answer.{verb}")),
            answer.to_string().as_bytes(),
        )
        .expect("writable");
    }

    fn set_exit_code(&self, verb: &str, code: i32) {
        fs::write_atomic(
            &self.dir.path().join(format!("code.{verb}")),
            code.to_string().as_bytes(),
        )
        .expect("writable");
    }

    /// Returns the last request for this verb; `None` if there was none.
    fn request(&self, verb: &str) -> Option<Value> {
        let bytes = fs::read(&self.dir.path().join(format!("request.{verb}")), 1 << 20)
            .expect("readable")?;
        Some(serde_json::from_slice(&bytes).expect("one document"))
    }

    fn place(&self, id: &str) -> Placement {
        let program = self.external.program.clone();
        Placement::Exec(ExecPlace { program, id: id.to_owned(), watch: None })
    }

    fn verdicts(&self, words: &[&str]) {
        self.set_answer("verify", &json!({"version": 1, "verdicts": words}));
    }
}

fn launch(member: &str, token: &str) -> PlacementRequest {
    let argv = ["/bin/phalanx", "exec", "/spec $(x)"].map(OsString::from).to_vec();
    let label = Label { name: member.to_owned(), ..Label::default() };
    PlacementRequest {
        member: MemberName::new(member).expect("a name"),
        token: token.to_owned(),
        argv,
        label,
    }
}

#[test]
fn place_sends_launches_and_keeps_ids_and_watch_text() {
    let bench = Bench::new();
    let words = "tab 3\u{1b}[1m";
    bench.set_answer(
        "place",
        &json!({"version": 1, "places": [{"id": "-x\n", "watch": words}, {"error": "full"}]}),
    );
    let placed = bench.external.place(&[launch("ada", "t1"), launch("bob", "t2")]);
    let argv = ["/bin/phalanx", "exec", "/spec $(x)"];
    assert_eq!(
        bench.request("place"),
        Some(json!({"version": 1, "team": "alpha", "layout": "windows", "launches": [
            {"member": "ada", "token": "t1", "argv": argv},
            {"member": "bob", "token": "t2", "argv": argv},
        ]}))
    );
    let Ok(Placement::Exec(ada)) = &placed[0] else { panic!("{placed:?}") };
    assert_eq!((ada.id.as_str(), ada.watch.as_deref()), ("-x\n", Some("tab 3\u{241b}[1m")));
    let problem = placed[1].as_ref().expect_err("full").to_string();
    assert!(problem.ends_with("program place` full"), "{problem}");
}

/// SD-06: closing one of two members in the same place would terminate both.
#[test]
fn sd_06_duplicate_place_id_is_refused() {
    let bench = Bench::new();
    bench.set_answer("place", &json!({"version": 1, "places": [{"id": "same"}, {"id": "same"}]}));
    let placed = bench.external.place(&[launch("ada", "t1"), launch("bob", "t2")]);
    assert!(placed[0].is_ok());
    assert!(placed[1].as_ref().expect_err("taken").to_string().contains("for two places"));
}

/// SD-05: only owned places are closed, and the results are in the order of the request.
#[test]
fn sd_05_only_owned_places_are_closed() {
    let bench = Bench::new();
    let elsewhere =
        Placement::Exec(ExecPlace { program: "/other".into(), id: "d".into(), watch: None });
    let places = [bench.place("a"), elsewhere, bench.place("b"), bench.place("c")];
    let marks: Vec<Mark<'_>> =
        places.iter().map(|placement| Mark { placement, token: "t" }).collect();
    bench.verdicts(&["foreign", "gone", "unknown"]);
    let closed = bench.external.close_all(&marks, &mut |_| true);
    assert_eq!(bench.request("close"), None);
    assert_eq!(
        bench.request("verify"),
        Some(json!({"version": 1, "places": [
            {"id": "a", "token": "t"}, {"id": "b", "token": "t"}, {"id": "c", "token": "t"},
        ]}))
    );
    let texts: Vec<String> = closed
        .into_iter()
        .zip(&places)
        .map(|(outcome, place)| outcome.into_verdict(place))
        .map(|closed| closed.map_or_else(|e| e.to_string(), |verdict| verdict.to_string()))
        .collect();
    assert!(texts[0].contains("was not touched: foreign"), "{texts:?}");
    assert!(texts[1].contains("does not belong to"), "{texts:?}");
    assert_eq!(texts[2], "gone");
    assert!(texts[3].contains("could not determine"), "{texts:?}");
}

/// SD-02: a close succeeds only once the place is gone; a failure quotes the program.
#[test]
fn sd_02_close_succeeds_only_once_the_place_is_gone() {
    let bench = Bench::new();
    bench.verdicts(&["owned"]);
    bench.set_answer("close", &json!({"version": 1}));
    let still = bench.external.close(&bench.place("a"), "t");
    assert!(
        matches!(still, CloseOutcome::Failed(BackendError::StillThere { .. })),
        "it stays: {still:?}"
    );
    assert_eq!(
        bench.request("close"),
        Some(json!({"version": 1, "places": [{"id": "a", "token": "t"}]}))
    );
    bench.set_exit_code("close", 7);
    let failed = bench.external.close(&bench.place("a"), "t").into_verdict(&bench.place("a"));
    let failed = failed.expect_err("it fails").to_string();
    assert!(failed.ends_with("program close` failed with exit code 7"), "{failed}");
}

#[test]
fn screen_requires_an_owned_place() {
    let bench = Bench::new();
    let place = bench.place("a");
    bench.verdicts(&["foreign"]);
    assert!(matches!(bench.external.screen(&place, "t", 3), Err(BackendError::NotOurs { .. })));
    assert_eq!(bench.request("screen"), None);
    bench.verdicts(&["owned"]);
    bench.set_answer(
        "screen",
        &json!({"version": 1, "text": "1\r\n2\n\u{1b}[31m3\u{1b}[0m\n4\n\n"}),
    );
    assert_eq!(bench.external.screen(&place, "t", 3).expect("text"), "2\n3\n4");
    assert_eq!(
        bench.request("screen"),
        Some(json!({"version": 1, "place": {"id": "a", "token": "t"}, "lines": 3}))
    );
    bench.set_exit_code("screen", 3);
    let gone = bench.external.screen(&place, "t", 3).expect_err("gone").to_string();
    assert!(gone.ends_with("was not touched: gone"), "{gone}");
}

#[test]
fn unsupported_verb_is_refused_by_name() {
    let bench = Bench::new();
    let (place, one) =
        (bench.place("a"), json!({"version": 1, "place": {"id": "a", "token": "t"}}));
    bench.verdicts(&["owned"]);
    for verb in ["focus", "hide", "show"] {
        let call = || match verb {
            "focus" => bench.external.focus(&place, "t").map(|()| place.clone()),
            "hide" => bench.external.hide(&place, "t"),
            _ => bench.external.show(&place, "t"),
        };
        bench.set_answer(verb, &json!({"version": 1}));
        assert_eq!(call().expect("it can"), place);
        assert_eq!(bench.request(verb).as_ref(), Some(&one));
        bench.set_answer(verb, &json!({"version": 1, "unsupported": true}));
        let refused = call().expect_err("it cannot").to_string();
        assert_eq!(refused, format!("the exec backend cannot {verb} a member"));
    }
}

#[test]
fn labels_are_sent_in_one_call() {
    let bench = Bench::new();
    let place = bench.place("a");
    let label = Label {
        name: "ada".to_owned(),
        role: None,
        state: "idle".to_owned(),
        color: Some("blue".to_owned()),
    };
    bench.external.label(&[(Mark { placement: &place, token: "t" }, label)]);
    assert_eq!(
        bench.request("label"),
        Some(json!({"version": 1, "labels": [
            {"id": "a", "token": "t", "name": "ada", "role": null, "state": "idle", "color": "blue"},
        ]}))
    );
}
