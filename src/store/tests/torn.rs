//! Files that another program writes in place, read during the write or after it was interrupted.

use super::*;

#[test]
fn torn_file_is_read_once_it_is_whole() {
    let (_dir, team) = fresh();
    let path = team.layout.inbox(&MemberName::lead());
    fs::write_atomic(&path, b"[{\"from\":").expect("write");
    thread::scope(|scope| {
        let reader = scope.spawn(|| team.mailbox(&MemberName::lead()).entries());
        // The reader retries every few milliseconds; the file becomes whole meanwhile.
        fs::write_atomic(&path, b"[]").expect("write");
        assert_eq!(reader.join().expect("thread").expect("entries"), []);
    });
}

/// Observed: Claude Code 2.1.34 writes its team file in place and may lose the processor in
/// between.
#[test]
fn reader_waits_for_an_interrupted_writer() {
    let (_dir, team) = fresh();
    let path = team.layout.team_file();
    let whole = raw(&path);
    for part in [0, whole.len() / 2] {
        fs::write_atomic(&path, &whole.as_bytes()[..part]).expect("write");
        thread::scope(|scope| {
            let reader = scope.spawn(|| team.team().map(|team| team.name.to_string()));
            // Simulates the writer's pause.
            clock::sleep(Duration::from_millis(50));
            fs::write_atomic(&path, whole.as_bytes()).expect("write");
            assert_eq!(reader.join().expect("thread").expect("the team"), "demo");
        });
    }
    assert_eq!(team.events().expect("events"), [], "nothing was wrong");
}

/// Observed: Claude Code 2.1.34 exits between truncating its team file and writing it.
#[test]
fn empty_team_file_is_read_as_its_last_content() {
    let (_dir, team) = fresh();
    join(&team, "ann");
    let file = team.layout.team_file();
    fs::write_atomic(&file, b"").expect("write");
    assert!(team.team().expect("as it was").member(&who("ann")).is_some());
    assert_eq!(raw(&file), "", "a read writes nothing");
    join(&team, "bob");
    assert_eq!(team.team().expect("whole").teammates().count(), 2);
    assert!(raw(&file).contains("bob"));
    let events = team.events().expect("events");
    assert_eq!(events.iter().map(|e| e.event).collect::<Vec<_>>(), [EventKind::FileQuarantined]);
}

/// Observed: two processes of Claude Code 2.1.34 write their team file in place at the same time.
/// Each truncates it; the longer content is written, and then the shorter one over its beginning.
#[test]
fn id_07_later_of_two_simultaneous_writes_counts() {
    let (_dir, team) = fresh();
    join(&team, "ann");
    let file = team.layout.team_file();
    let earlier = raw(&file);
    let mut later: Value = serde_json::from_str(&earlier).expect("json");
    later["members"][1].as_object_mut().expect("ann").shift_remove("prompt");
    later["theirs"] = json!(1);
    let later = serde_json::to_string_pretty(&later).expect("json");
    let torn = format!("{later}{}", &earlier[earlier.len() - 40..]);
    fs::write_atomic(&file, torn.as_bytes()).expect("write");
    assert!(team.team_file_now().expect("readable").team().is_none());
    assert!(team.team().expect("the later one").member(&who("ann")).is_some());
    assert_eq!(raw(&file), torn, "a read writes nothing");
    team.restore_team_file().expect("restored");
    assert_eq!(raw(&file), later);
    assert!(team.team_file_now().expect("readable").team().is_some());
    let events = team.events().expect("events");
    let kinds: Vec<EventKind> = events.iter().map(|e| e.event).collect();
    assert_eq!(kinds, [EventKind::FileQuarantined, EventKind::Repaired]);
}

/// Only states that an interrupted write can produce are repaired; other errors, such as a person's
/// typo, are reported.
#[test]
fn msg_07_otherwise_broken_team_file_is_left_unchanged() {
    let (_dir, team) = fresh();
    let file = team.layout.team_file();
    let broken = raw(&file).replacen(',', "", 1);
    fs::write_atomic(&file, broken.as_bytes()).expect("write");
    let read = team.team().map(drop);
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    let mended = team.restore_team_file();
    assert!(matches!(mended, Err(StoreError::Corrupt { .. })), "{mended:?}");
    assert_eq!(raw(&file), broken);
}

/// Content that another program wrote is restored as well, once phalanx has seen it whole.
#[test]
fn truncated_team_file_is_restored_as_last_seen() {
    let (_dir, team) = fresh();
    join(&team, "ann");
    let file = team.layout.team_file();
    let mut theirs: Value = serde_json::from_str(&raw(&file)).expect("json");
    theirs["theirs"] = json!(1);
    let theirs = serde_json::to_string_pretty(&theirs).expect("json");
    fs::write_atomic(&file, theirs.as_bytes()).expect("write");
    let seen = team.team_file_now().expect("readable");
    assert!(!seen.is_remembered && team.remember_team_file(&seen).expect("remembered"));
    assert!(team.team_file_now().expect("readable").is_remembered);
    for cut in [0, 1, theirs.len() / 2, theirs.len() - 1] {
        fs::write_atomic(&file, &theirs.as_bytes()[..cut]).expect("write");
        team.restore_team_file().expect("restored");
        assert_eq!(raw(&file), theirs, "cut after {cut} bytes");
    }
}

/// Observed: Claude Code 2.1.330 writes a shorter content over a longer one and truncates the rest
/// afterwards.
#[test]
fn reader_waits_between_overwrite_and_truncation() {
    let (_dir, team) = fresh();
    let file = team.layout.team_file();
    let whole = raw(&file);
    fs::write_atomic(&file, format!("{whole}\n  }}\n}}").as_bytes()).expect("write");
    thread::scope(|scope| {
        let reader = scope.spawn(|| team.team().map(|team| team.name.to_string()));
        // Simulates the writer's pause.
        clock::sleep(Duration::from_millis(200));
        fs::write_atomic(&file, whole.as_bytes()).expect("write");
        assert_eq!(reader.join().expect("thread").expect("the team"), "demo");
    });
    assert_eq!(team.events().expect("events"), [], "nothing was wrong");
    assert_eq!(fs::list(&team.layout.quarantine()).expect("list"), Vec::<String>::new());
}
