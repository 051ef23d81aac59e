//! Urgent messages: interrupts the current turn with the profile's key, once per message. Only a
//! working program gets the key, since a dialog would take it as an answer.

use super::effect::Effect;
use super::event::Keyed;
use super::state::{BELIEF_MS, State, TYPING_MS};
use model::mail::envelope::Envelope;
use model::team::event::EventKind;

/// The urgent messages without an interrupt so far.
fn not_interrupted(state: &State) -> impl Iterator<Item = &Envelope> {
    state.waiting.iter().filter(|mail| mail.urgent && !state.interrupted.contains(&mail.msg_id))
}

/// Interrupts the turn if an urgent message waits and no person is typing.
pub(super) fn advance(state: &mut State) {
    let working = |screen: &super::state::ScreenSnapshot| {
        screen.works() && state.now.since(screen.since) >= BELIEF_MS
    };
    let alone = state.typed_at.is_none_or(|at| state.now.since(at) >= TYPING_MS);
    let free =
        state.outbox.accepted && state.turn.is_none() && !state.interrupting && !state.agreed;
    if alone
        && free
        && state.screen.as_ref().is_some_and(working)
        && not_interrupted(state).next().is_some()
    {
        state.interrupting = true;
        state.effects.push(Effect::Interrupt);
    }
}

/// Handles the result of typing the interrupt key.
pub(super) fn handle_interrupted(state: &mut State, keyed: Keyed) {
    state.interrupting = false;
    match keyed {
        Keyed::Typed => {
            let ids: Vec<String> = not_interrupted(state).map(|mail| mail.msg_id.clone()).collect();
            state.interrupted.extend(ids.iter().cloned());
            state.effects.push(Effect::Journal {
                kind: EventKind::TurnInterrupted,
                ids,
                reason: None,
            });
        }
        Keyed::PersonTyping => state.typed_at = Some(state.now),
        // The screen has changed; the next judgement shows to what.
        Keyed::Gone => state.screen = None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::event::MemberEvent;
    use super::super::super::state::Me;
    use super::super::event::Event;
    use super::super::react::react;
    use super::*;
    use model::id::{Incarnation, MemberName, TeamName};
    use model::members::lifecycle::MemberState;
    use model::time::Timestamp;
    use profile::{Composer, Paste, ScreenFinding, ScreenState};

    const START: Timestamp = Timestamp(1_000_000);

    fn seen(state: ScreenState) -> Event {
        let composer = if state == ScreenState::Idle { Composer::Empty } else { Composer::Unknown };
        let (rule, evidence) = ("r".to_owned(), "e".to_owned());
        Event::Judged {
            finding: ScreenFinding { state, rule, evidence, composer, until: None, asked: None },
            shown: false,
        }
    }

    /// An accepted wrapper whose program shows `shows`, with one waiting message.
    fn stand(shows: ScreenState, urgent: bool) -> State {
        let me = Me {
            name: MemberName::new("ann").expect("name"),
            incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000001").expect("uuid"),
            team: TeamName::new("alpha").expect("name"),
            pane: None,
            backend: "tmux",
        };
        let paste = Paste { bracketed: true, gap_ms: 0, settle_ms: 100, most_bytes: 4096 };
        let mut state = State::new(me, paste);
        react(&mut state, Event::Member(MemberEvent::Accepted(MemberState::Idle)), START);
        react(&mut state, seen(shows), START);
        let message = Envelope { urgent, ..Envelope::new("bob", "stop", "m".to_owned(), START) };
        react(
            &mut state,
            Event::Member(MemberEvent::Mail { mail: vec![message], requests: [].into() }),
            START,
        );
        state
    }

    fn interrupts(state: &mut State, event: Event, at: Timestamp) -> bool {
        react(state, event, at).contains(&Effect::Interrupt)
    }

    #[test]
    fn msg_13_an_urgent_message_interrupts_a_turn_once() {
        let mut state = stand(ScreenState::Working, true);
        assert!(
            !interrupts(&mut state, Event::Tick, START.plus_ms(299)),
            "a flicker is not believed"
        );
        assert!(interrupts(&mut state, Event::Tick, START.plus_ms(300)));
        assert!(!interrupts(&mut state, Event::Tick, START.plus_ms(301)), "under way");
        let journaled = react(&mut state, Event::Interrupted(Keyed::Typed), START.plus_ms(310));
        let note = Effect::Journal {
            kind: EventKind::TurnInterrupted,
            ids: vec!["m".to_owned()],
            reason: None,
        };
        assert!(journaled.contains(&note), "{journaled:?}");
        assert!(!interrupts(&mut state, Event::Tick, START.plus_ms(60_000)), "once");
        let staged = [seen(ScreenState::Idle), Event::Tick]
            .map(|event| react(&mut state, event, START.plus_ms(60_100)));
        let staged = staged.into_iter().flatten().chain(react(
            &mut state,
            Event::Tick,
            START.plus_ms(60_300),
        ));
        assert!(
            staged.into_iter().any(|effect| matches!(effect, Effect::Stage(_))),
            "then it goes in"
        );
    }

    #[test]
    fn pm_01_only_a_working_program_is_interrupted_if_no_person_types() {
        let dialog = ScreenState::Dialog("permission".to_owned());
        for shows in [ScreenState::Idle, ScreenState::Unknown, dialog, ScreenState::NeedsLogin] {
            let mut state = stand(shows.clone(), true);
            assert!(!interrupts(&mut state, Event::Tick, START.plus_ms(5000)), "{shows}");
        }
        assert!(
            !interrupts(&mut stand(ScreenState::Working, false), Event::Tick, START.plus_ms(5000)),
            "not urgent"
        );
        // ST-08: its retries can last.
        let mut retries = stand(ScreenState::Retrying, true);
        assert!(interrupts(&mut retries, Event::Tick, START.plus_ms(5000)));
        let mut state = stand(ScreenState::Working, true);
        react(&mut state, Event::PersonTyped, START.plus_ms(1));
        assert!(!interrupts(&mut state, Event::Tick, START.plus_ms(2000)));
        assert!(interrupts(&mut state, Event::Tick, START.plus_ms(2001)));
        // After a dialog in between, the interrupt is retried once the program works again.
        assert!(
            !interrupts(&mut state, Event::Interrupted(Keyed::Gone), START.plus_ms(2002)),
            "the screen is judged first"
        );
        assert!(!interrupts(&mut state, seen(ScreenState::Working), START.plus_ms(2003)));
        assert!(interrupts(&mut state, Event::Tick, START.plus_ms(2303)));
    }
}
