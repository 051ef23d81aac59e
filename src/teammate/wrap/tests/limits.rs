//! Usage limits, and requests that the program repeats by itself.

use super::*;

/// The screen of a program whose account is at its limit until 00:20 UTC.
fn at_limit(composer: Composer, shown: bool) -> Event {
    let mut event = seen(ScreenState::Limited, composer, shown);
    if let Event::Judged { finding, .. } = &mut event {
        finding.until = Some("at 12:20 am (UTC)".to_owned());
    }
    event
}

#[test]
fn usage_limit_is_reported_and_mail_waits_for_its_end() {
    let mut stand = Stand::idle();
    stand.see(0, ScreenState::Working, Composer::Empty);
    stand.at(400, Event::Tick);
    assert_eq!(stand.at(0, at_limit(Composer::Empty, false)), []);
    stand.at(400, Event::Tick);
    let mut ops = Vec::new();
    for _ in 0..4 {
        let effects = stand.at(0, Event::Member(MemberEvent::Done(Ok(()))));
        ops.extend(op(&effects).cloned());
    }
    let until = Timestamp(20 * 60_000);
    let [OutboundOp::Limit(Some(hit)), OutboundOp::MoveOn(Cause::Rest, None), OutboundOp::Send(_)] =
        &ops[..]
    else {
        panic!("{ops:?}");
    };
    assert_eq!(hit.until, Some(until));
    assert_eq!(stand.at(0, mail(&["hi"])), [], "nothing is typed before the end");
    assert_eq!(stand.state.next_tick(stand.now), Some(until));
    stand.at(0, seen(ScreenState::Unknown, Composer::Unknown, false));
    stand.at(0, at_limit(Composer::Empty, false));
    let rest = until.since(stand.now);
    assert_eq!(stand.at(rest - 1, Event::Tick), []);
    assert_eq!(stand.at(1, Event::Tick), [Effect::Stage(vec![envelope("hi")])]);
}

/// ST-09: mail that waits is the try, soon and after each refusal later.
#[test]
fn st_09_limit_without_an_end_is_tried_after_growing_pauses() {
    let mut stand = Stand::idle();
    for (minutes, text) in [(1, "a"), (5, "b"), (15, "c"), (30, "d"), (30, "e")] {
        for shows in [ScreenState::Working, ScreenState::Limited] {
            stand.see(0, shows, Composer::Empty);
            let effects = stand.at(400, Event::Tick);
            complete(&mut stand, &effects);
        }
        assert_eq!(stand.at(0, mail(&[text])), [], "{text}");
        assert_eq!(stand.at(minutes * 60_000 - 401, Event::Tick), [], "{text}");
        assert_eq!(stand.at(1, Event::Tick), [Effect::Stage(vec![envelope(text)])]);
        (stand.state.turn, stand.state.waiting) = (None, Vec::new());
    }
}

/// The screen of a program that tries again by itself.
fn retrying(attempt: u8, until: &str) -> Event {
    let mut event = seen(ScreenState::Retrying, Composer::Empty, false);
    if let Event::Judged { finding, .. } = &mut event {
        finding.evidence = format!("529 · attempt {attempt}/10");
        finding.until = Some(until.to_owned());
    }
    event
}

/// ST-08: each attempt is reported once, with its time, as work.
#[test]
fn st_08_retries_are_reported_by_attempt_and_are_work() {
    let reason = |attempt: u8, at: &str| {
        let said = format!("retrying: 529 · attempt {attempt}/10 (next try at 00:{at})");
        OutboundOp::Remark(Some(said))
    };
    let works = OutboundOp::MoveOn(Cause::Work, None);
    let mut stand = Stand::idle();
    stand.at(0, retrying(1, "in 5s"));
    let effects = stand.at(400, Event::Tick);
    assert_eq!(complete(&mut stand, &effects), [works.clone(), reason(1, "16:45")]);
    assert_eq!(stand.at(1000, retrying(1, "in 4s")), [], "the same attempt");
    let effects = stand.at(1000, retrying(2, "in 9s"));
    assert_eq!(complete(&mut stand, &effects), [works, reason(2, "16:51")]);
    stand.see(0, ScreenState::Idle, Composer::Empty);
    let effects = stand.at(400, Event::Tick);
    let ops = complete(&mut stand, &effects);
    let rests = [OutboundOp::Remark(None), OutboundOp::MoveOn(Cause::Rest, None)];
    assert_eq!(ops[..2], rests);
    assert!(matches!(&ops[2..], [OutboundOp::Send(_)]), "its turn has ended: {ops:?}");
    let mut stand = Stand::submitted();
    assert_eq!(stand.at(10, retrying(1, "in 5s")), delivered(), "the message began the turn");
}

/// ST-08: a start can be accepted while the program tries again.
#[test]
fn st_08_retries_before_the_acceptance_are_reported_after_it() {
    let mut stand = Stand::idle();
    (stand.state.outbox.accepted, stand.state.outbox.reported) = (false, None);
    stand.state.outbox.up = false;
    stand.at(0, retrying(1, "in 5s"));
    let effects = stand.at(400, Event::Tick);
    assert_eq!(complete(&mut stand, &effects), [OutboundOp::Hello]);
    let effects = stand.at(0, Event::Member(MemberEvent::Accepted(MemberState::Idle)));
    let ops = complete(&mut stand, &effects);
    assert_eq!(ops[0], OutboundOp::MoveOn(Cause::Work, None));
    assert!(matches!(&ops[1..], [OutboundOp::Remark(Some(_))]), "{ops:?}");
    let effects = stand.at(0, Event::Member(MemberEvent::Accepted(MemberState::Working)));
    assert_eq!(effects, [], "once");
}

#[test]
fn limited_program_agrees_to_a_shutdown() {
    let mut stand = Stand::idle();
    stand.at(0, at_limit(Composer::Empty, false));
    stand.now = stand.now.plus_ms(400);
    let screen = stand.state.screen.as_ref().expect("a screen");
    assert!(screen.is_free(), "as an idle one");
}

#[test]
fn limit_is_over_once_a_turn_ends_without_it() {
    let mut stand = Stand::idle();
    stand.state.outbox.refusals = 1;
    stand.see(0, ScreenState::Working, Composer::Empty);
    let effects = stand.at(400, Event::Tick);
    assert_eq!(op(&effects), Some(&OutboundOp::MoveOn(Cause::Work, None)));
    stand.at(0, Event::Member(MemberEvent::Done(Ok(()))));
    stand.see(0, ScreenState::Idle, Composer::Empty);
    let effects = stand.at(400, Event::Tick);
    assert_eq!(op(&effects), Some(&OutboundOp::Limit(None)));
}
