//! Actions and their objects.

use super::super::DiffRange;
use super::*;
use model::team::worktree::LandingKind;

fn action(effects: Vec<ReviewEffect>) -> ReviewAction {
    match effects.as_slice() {
        [ReviewEffect::Perform(action)] => action.clone(),
        other => panic!("no action: {other:?}"),
    }
}

#[test]
fn tk_18_actions_have_the_member_the_commit_and_the_task_on_the_screen() {
    let head = commit(&head("ada", 0));
    let land = |kind, completes| ReviewAction::Land {
        member: name("ada"),
        head: head.clone(),
        kind,
        completes,
    };
    for (keys, kind, completes) in [
        ("M y", LandingKind::Merge, None),
        ("M c", LandingKind::Merge, Some(TaskId(4))),
        ("M s", LandingKind::Squash, None),
        ("M r", LandingKind::Rebase, None),
    ] {
        assert_eq!(action(Stage::new(80, 24).press(keys)), land(kind, completes));
        assert_eq!(action(Stage::with_changes(80, 24).press(keys)), land(kind, completes));
    }
    let snapshot = commit(&snapshot("ada", 0));
    let approve = |landing| ReviewAction::Approve {
        member: name("ada"),
        task: TaskId(4),
        commit: snapshot.clone(),
        landing,
    };
    let forms = [
        ("y y", None),
        ("y m", Some(LandingKind::Merge)),
        ("y s", Some(LandingKind::Squash)),
        ("y r", Some(LandingKind::Rebase)),
    ];
    for (keys, landing) in forms {
        assert_eq!(action(Stage::new(80, 24).press(keys)), approve(landing));
        assert_eq!(action(Stage::with_changes(80, 24).press(keys)), approve(landing));
    }
    let dropped = ReviewAction::Drop { member: name("ada"), commit: snapshot.clone() };
    assert_eq!(action(Stage::new(80, 24).press("D y")), dropped);
    assert_eq!(action(Stage::with_changes(80, 24).press("D y")), dropped);
    let undo = ReviewAction::Undo { into: "main".to_owned(), main: commit("0d0d0d0") };
    assert_eq!(action(Stage::new(80, 24).press("u y")), undo);
    for refused in ["y n", "M Esc", "u q", "r Esc", "M x"] {
        assert_eq!(Stage::new(80, 24).press(refused), [], "{refused}");
    }
}

#[test]
fn checks_are_shown_with_their_output_and_run_by_a_key() {
    let mut stage = Stage::new(80, 24);
    assert_eq!(stage.press("T"), []);
    for words in ["lint failed with exit code 2", "auth.rs:41: unused", "test has not run", "y run"]
    {
        assert!(stage.picture().contains(words), "{words}: {}", stage.picture());
    }
    let check = ReviewAction::Check { member: name("ada"), commit: commit(&snapshot("ada", 0)) };
    assert_eq!(action(stage.press("y")), check);
    stage.done(check, Err("ada: lint failed with exit code 2\nlint failed\n  auth.rs:41: unused"));
    assert!(
        stage.last_row().contains("lint failed with exit code 2 (! all)"),
        "{}",
        stage.last_row()
    );
    assert_eq!(stage.press("j T"), []);
    assert!(stage.last_row().contains("the team has no checks"), "{}", stage.last_row());
}

#[test]
fn conflicts_are_read_and_offered_to_the_author() {
    let mut stage = Stage::new(80, 24);
    assert_eq!(stage.press("x"), [], "ada has none");
    let effects = stage.press("Esc jj x");
    let [ReviewEffect::ReadConflicts { number, member }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(*member, name("cyd"));
    let text = |words: &str| Ok(words.to_owned());
    stage.screen.apply(ReviewNews::Conflicts { number: number + 1, text: text("late") });
    stage.screen.apply(ReviewNews::Conflicts { number: *number, text: text("<<<<<<< main") });
    stage.draw();
    let shown = stage.picture();
    assert!(shown.contains("<<<<<<< main") && !shown.contains("late"), "{shown}");
    let commit = commit(&snapshot("cyd", 0));
    let give = ReviewAction::GiveConflicts { member: name("cyd"), commit };
    assert_eq!(action(stage.press("t")), give);
}

/// RV-22: an answer that arrives while the changes are open.
#[test]
fn rv_22_answer_appears_in_the_open_changes() {
    let mut stage = Stage::with_changes(80, 24);
    assert_eq!(stage.screen.apply(ReviewNews::List(Ok(list()))), []);
    let mut newer = list();
    newer.works[0].comments.answered += 1;
    let snapshot = commit(&snapshot("ada", 0));
    let read = ReviewEffect::ReadComments { member: name("ada"), snapshot };
    assert_eq!(stage.screen.apply(ReviewNews::List(Ok(newer))), [read]);
}

/// RV-28: the work has landed while its changes were open, so that the list is without it.
#[test]
fn rv_28_keys_act_on_the_marked_work_after_the_one_before_has_landed() {
    let mut stage = Stage::with_changes(80, 24);
    let mut newer = list();
    newer.works.remove(0);
    stage.screen.apply(ReviewNews::List(Ok(newer)));
    stage.press("q");
    assert!(stage.picture().contains("▶ bob"), "{}", stage.picture());
    stage.press("y");
    assert!(stage.picture().contains("Approve #5 Cache of bob"), "{}", stage.picture());
}

#[test]
fn message_is_sent_as_it_was_shown() {
    let mut stage = Stage::new(80, 24);
    let effects = stage.press("r");
    let [ReviewEffect::ReadMessage { number, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(stage.press("Enter"), [], "it is not on the screen yet");
    stage.screen.apply(ReviewNews::Message { number: number + 1, text: Ok("other".to_owned()) });
    stage.screen.apply(ReviewNews::Message { number: *number, text: Ok("Review".to_owned()) });
    stage.draw();
    let sent = ReviewAction::Send {
        member: name("ada"),
        commit: commit(&snapshot("ada", 0)),
        message: "Review".to_owned(),
    };
    assert_eq!(action(stage.press("Enter")), sent);
    assert_eq!(stage.press("j r"), [], "bob has no drafts");
}

/// RV-15: the list changes between the frame that a person has seen and the key.
#[test]
fn rv_15_key_does_not_act_on_a_work_that_was_not_seen() {
    for key in ["y", "M", "r"] {
        let mut stage = Stage::new(80, 24);
        let mut newer = list();
        newer.works[0] = work("ada", Some((4, "Validate tokens")), 1);
        stage.screen.apply(ReviewNews::List(Ok(newer.clone())));
        assert_eq!(stage.press(key), []);
        assert!(stage.last_row().contains("has just changed"), "{}", stage.last_row());
        stage.press(key);
        let shown = stage.picture();
        assert!(!stage.last_row().contains("has just changed"), "{shown}");
        newer.works.remove(0);
        let mut stage = Stage::new(80, 24);
        stage.screen.apply(ReviewNews::List(Ok(newer)));
        assert_eq!(stage.press(key), []);
        assert!(stage.last_row().contains("bob has just changed"), "{}", stage.last_row());
    }
}

/// RV-15: a question keeps its object when the list changes below it.
#[test]
fn rv_15_answer_acts_on_the_work_that_the_question_names() {
    let mut stage = Stage::new(80, 24);
    stage.press("M");
    let mut newer = list();
    newer.works[0] = work("ada", None, 1);
    newer.works.swap(0, 1);
    stage.screen.apply(ReviewNews::List(Ok(newer)));
    let head = commit(&head("ada", 0));
    let (member, kind, completes) = (name("ada"), LandingKind::Merge, None);
    let expected = ReviewAction::Land { member, head, kind, completes };
    assert!(stage.picture().contains(&super::head("ada", 0)[..7]));
    assert_eq!(action(stage.press("y")), expected);
}

/// RV-15: keys that were typed ahead do not answer a question that was not shown.
#[test]
fn rv_15_question_is_answered_only_after_it_was_drawn() {
    let mut stage = Stage::new(80, 24);
    for (code, expected) in [('M', false), ('y', false)] {
        let key = Event::Key(KeyEvent::new(KeyCode::Char(code), KeyModifiers::NONE));
        assert_eq!(!stage.screen.handle(&key, stage.size).is_empty(), expected);
    }
    stage.draw();
    action(stage.press("y"));
}

/// RV-16: changes that arrive late are of another member.
#[test]
fn rv_16_changes_that_arrive_after_another_request_are_dropped() {
    let mut stage = Stage::new(80, 24);
    let first = stage.press("Enter");
    assert_eq!(stage.press("Esc"), [ReviewEffect::Cancel]);
    let second = stage.press("j Enter");
    stage.open(&first, opened("ada", 0));
    assert!(stage.picture().contains("reading the changes of bob"), "{}", stage.picture());
    stage.open(&second, opened("bob", 0));
    stage.open(&first, opened("ada", 0));
    assert!(stage.picture().starts_with(" bob demo-bob"), "{}", stage.picture());
    let comments = Ok(comments());
    let snapshot = commit(&snapshot("ada", 0));
    stage.screen.apply(ReviewNews::Comments { member: name("ada"), snapshot, comments });
    assert!(!stage.picture().contains("R12"), "{}", stage.picture());
}

/// RV-17: a text is not lost if it cannot be saved, or if the screen is ended.
#[test]
fn rv_17_text_that_was_not_saved_comes_back() {
    let mut stage = Stage::with_changes(80, 24);
    let draft = action(stage.press("A loses_it Enter"));
    assert_eq!(stage.press("q").len(), 1);
    stage.done(draft, Err("the disk is full"));
    assert!(stage.picture().contains("the disk is full"), "{}", stage.picture());
    let again = action(stage.press("! C-s"));
    assert!(
        matches!(&again, ReviewAction::Draft { text, member, .. }
            if text == "loses_it!" && *member == name("ada")),
        "{again:?}"
    );
    let mut stage = Stage::with_changes(80, 24);
    stage.press("C more_text Esc");
    assert!(stage.picture().contains("Esc again drops the text"), "{}", stage.picture());
    let effects = stage.screen.hang_up();
    assert!(matches!(action(effects), ReviewAction::Draft { text, .. } if text == "more_text"));
    let mut stage = Stage::with_changes(80, 24);
    assert_eq!(stage.press("C more_text Esc Esc"), []);
    assert_eq!(stage.screen.hang_up(), []);
}

/// RV-17: the program does not end before the last text is saved.
#[test]
fn rv_17_quitting_waits_for_what_is_being_saved() {
    let mut stage = Stage::with_changes(80, 24);
    let draft = action(stage.press("A text Enter"));
    let look = action(stage.press("q"));
    assert_eq!(stage.press("q"), []);
    assert!(!stage.done(draft, Ok("R13 is a draft")).contains(&ReviewEffect::Quit));
    assert_eq!(stage.done(look, Ok("")), [ReviewEffect::Quit]);
}

#[test]
fn comment_is_edited_discarded_resolved_and_reopened() {
    let (member, id) = (name("ada"), CommentId(12));
    let mut stage = Stage::with_changes(80, 24);
    let revised = ReviewAction::Revise {
        member: member.clone(),
        id,
        kind: CommentKind::Question,
        text: "This still loses the name.!".to_owned(),
    };
    assert_eq!(action(stage.press("mm Enter Enter Tab ! Enter")), revised);
    let discard = ReviewAction::Discard { member: member.clone(), id };
    assert_eq!(action(stage.press("Enter x y")), discard);
    let id = CommentId(9);
    let resolve = ReviewAction::Resolve { member: member.clone(), id };
    assert_eq!(action(stage.press("m Enter =")), resolve);
    let reopen = ReviewAction::Reopen { member, id, text: "no".to_owned() };
    assert_eq!(action(stage.press("Enter - no Enter")), reopen);
    let effects = stage.done(reopen, Ok("R9 is open again"));
    let read =
        ReviewEffect::ReadComments { member: name("ada"), snapshot: commit(&snapshot("ada", 0)) };
    assert_eq!(effects, [ReviewEffect::ReadList, read]);
}

#[test]
fn draft_has_the_lines_and_the_commits_on_the_screen() {
    let mut stage = Stage::with_changes(80, 24);
    let made = action(stage.press("} k k k c note Enter"));
    let ReviewAction::Draft { place: Some(place), base, commit: at, kind, text, .. } = made else {
        panic!("{made:?}")
    };
    assert_eq!((base, at), (commit("1a2b3c4"), commit(&snapshot("ada", 0))));
    assert_eq!((kind, text.as_str()), (CommentKind::Must, "note"));
    let lines = place.lines.expect("lines");
    assert_eq!((place.path.as_str(), lines.first, lines.last), ("src/auth.rs", 42, 42));
    assert_eq!(lines.quote, ["    Ok(t)"]);
}

#[test]
fn range_since_the_last_look_stays_the_same_while_changes_are_open() {
    let mut stage = Stage::with_changes(80, 24);
    let effects = stage.press("s");
    let [ReviewEffect::Open(request)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((request.range, &request.look), (DiffRange::SinceLook, &Some(commit("7c6d5e4"))));
    let later = OpenedWork { look: Some(commit("ffffff0")), ..opened("ada", 1) };
    stage.open(&effects, later);
    assert!(stage.picture().contains("since look"), "{}", stage.picture());
    let effects = stage.press("s");
    let [ReviewEffect::Open(request)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((request.range, &request.look), (DiffRange::All, &Some(commit("7c6d5e4"))));
    stage.press("Esc");
    let effects = stage.press("b jj Enter");
    let [ReviewEffect::Open(request)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(request.range, DiffRange::All, "from the second of three choices");
}

#[test]
fn leaving_the_changes_keeps_drafts_and_records_the_look() {
    let mut stage = Stage::with_changes(80, 24);
    let look = ReviewAction::NoteLook { member: name("ada"), commit: commit(&snapshot("ada", 0)) };
    assert_eq!(action(stage.press("q")), look);
    assert!(stage.last_row().contains("1 draft stays, not sent"), "{}", stage.last_row());
    assert_eq!(stage.done(look, Ok("")), [ReviewEffect::ReadList]);
    let mut stage = Stage::new(80, 24);
    let effects = stage.press("Enter");
    stage.screen.loading.as_mut().expect("a request").range = DiffRange::Uncommitted;
    stage.open(&effects, opened("ada", 0));
    assert_eq!(stage.press("q"), [ReviewEffect::ReadList], "only a part was shown");
}

#[test]
fn viewed_file_is_viewed_until_its_content_changes() {
    let mut stage = Stage::with_changes(80, 24);
    let mark = ReviewAction::MarkViewed {
        member: name("ada"),
        path: "src/auth.rs".to_owned(),
        blob: "2222222".to_owned(),
        viewed: true,
    };
    assert_eq!(action(stage.press("V")), mark);
    let effects = stage.press("R");
    stage.open(&effects, opened("ada", 0));
    assert!(stage.picture().contains("✓ src/auth.rs"), "{}", stage.picture());
    let effects = stage.press("R");
    let mut newer = opened("ada", 1);
    newer.patch.files[0].new_blob = Some("4444444".to_owned());
    stage.open(&effects, newer);
    assert!(!stage.picture().contains("✓ src/auth.rs"), "{}", stage.picture());
}

#[test]
fn newer_work_is_named_while_older_changes_are_on_display() {
    let mut stage = Stage::with_changes(80, 24);
    let mut newer = list();
    newer.works[0] = work("ada", Some((4, "Validate tokens")), 1);
    stage.screen.apply(ReviewNews::List(Ok(newer)));
    assert!(stage.picture().contains("R: newer"), "{}", stage.picture());
    stage.press("y");
    assert!(stage.picture().contains("there are newer changes"), "{}", stage.picture());
}
