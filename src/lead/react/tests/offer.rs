//! Offers of free tasks to idle members, on a simulated clock.

use super::*;
use model::board::policy::Pull;
use model::mail::scope::Scope;

type Change = fn(&mut Task);

/// Longer than a member and a task must be free before an offer.
const SOON: Timestamp = Timestamp(NOW.0 + 10_000);

/// A lead of `ann` and `ben`, of whom `ben` has been idle for longer.
fn leading_two(change: fn(&mut Settings, &mut [MemberRecord; 2])) -> State {
    let mut settings = Settings::by_hand(8);
    let mut members = [record("ann", 1, "codex"), record("ben", 2, "codex")];
    members[0].state_since = NOW.plus_ms(1);
    change(&mut settings, &mut members);
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    state.settings = Some(settings);
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(members.to_vec()), NOW);
    state
}

/// A board with these free tasks; each has the id as its position, and a priority.
fn board(tasks: &[(u8, Change)]) -> Event {
    let mut board = Board::default();
    for (nth, (priority, change)) in (1..).zip(tasks) {
        let mut task = Task::new(TaskId(nth), "s", "d");
        task.extra.priority = Some(i64::from(*priority));
        change(&mut task);
        board.tasks.insert(task.id, task);
    }
    Event::Board(board)
}

fn plain(_: &mut Task) {}

/// The offers among the effects, as `TASK MEMBER`.
fn offers(effects: &[Effect]) -> Vec<String> {
    let offers = effects.iter().filter_map(|effect| match effect {
        Effect::Offer { task, name, .. } => Some(format!("{task} {name}")),
        _ => None,
    });
    offers.collect()
}

fn tick(state: &mut State, now: Timestamp) -> Vec<String> {
    offers(&react(state, Event::Tick, now))
}

/// TK-13: the most urgent task goes to the member that has been idle for the longest time.
#[test]
fn tk_13_free_tasks_are_offered_by_priority_and_idleness() {
    let mut state = leading_two(|_, _| {});
    assert_eq!(
        offers(&react(&mut state, board(&[(1, plain), (5, plain), (0, plain)]), NOW)),
        [""; 0]
    );
    let due = state.next_tick().expect("an offer is due");
    assert!(NOW < due && due < SOON, "{due:?}");
    assert_eq!(tick(&mut state, SOON), ["2 ben", "1 ann"]);
    assert_eq!(tick(&mut state, SOON), [""; 0], "both have an offer, and are not asked again");
}

/// TK-13: a member that has had a turn, has begun another task, or lets the time pass has refused.
#[test]
fn tk_13_task_is_offered_again_after_a_refusal_or_a_timeout() {
    type Answer = fn(&mut MemberRecord);
    let as_it_is: Answer = |_| {};
    let has_had_a_turn: Answer = |ben| ben.state_since = SOON.plus_ms(1_000);
    let works: Answer = |ben| ben.state = MemberState::Working;
    let later = SOON.plus_ms(2_000);
    let much_later = SOON.plus_ms(120_000);
    let table: [(&str, Answer, Timestamp, &[&str]); 4] = [
        ("waits", as_it_is, later, &[]),
        ("has refused", has_had_a_turn, later, &["1 ann"]),
        ("considers it", works, later, &[]),
        ("is too slow", works, much_later, &["1 ann"]),
    ];
    for (what, answer, at, expected) in table {
        let mut members = [record("ann", 1, "codex"), record("ben", 2, "codex")];
        members[0].state_since = NOW.plus_ms(1);
        let mut state = leading_two(|_, _| {});
        react(&mut state, board(&[(0, plain)]), NOW);
        assert_eq!(tick(&mut state, SOON), ["1 ben"]);
        answer(&mut members[1]);
        let effects = react(&mut state, Event::Members(members.to_vec()), at);
        assert_eq!(offers(&effects), expected, "{what}");
        // No member is notified twice of one task.
        let effects = tick(&mut state, much_later.plus_ms(500_000));
        assert!(!effects.contains(&"1 ben".to_owned()), "{what}: {effects:?}");
    }
}

/// TK-13: a member that was never seen to work refuses by reporting that it is idle.
#[test]
fn tk_13_report_of_idleness_is_a_refusal() {
    for (sent, expected) in [(SOON.minus_ms(1), &[][..]), (SOON.plus_ms(1), &["1 ann"])] {
        let mut state = leading_two(|_, _| {});
        react(&mut state, board(&[(0, plain)]), NOW);
        assert_eq!(tick(&mut state, SOON), ["1 ben"]);
        let report = Envelope::new("ben", &idle().to_text(), "m1".to_owned(), sent);
        let effects = react(&mut state, Event::Mail(vec![report]), SOON.plus_ms(2));
        assert_eq!(offers(&effects), expected, "{sent:?}");
    }
}

/// TK-13: a task that was given back is offered to others, and to the same member only if the task
/// or the member has changed.
#[test]
fn tk_13_task_that_was_given_back_is_offered_to_others_or_once_changed() {
    let claimed: Change =
        |task| (task.owner, task.state) = (Some("ben".to_owned()), TaskState::InProgress);
    let changed: Change = |task| task.description = "smaller".to_owned();
    let begin = || {
        let mut state = leading_two(|_, members| members[0].state = MemberState::Working);
        react(&mut state, board(&[(0, plain)]), NOW);
        assert_eq!(tick(&mut state, SOON), ["1 ben"]);
        react(&mut state, board(&[(0, claimed)]), SOON);
        assert_eq!(offers(&react(&mut state, board(&[(0, plain)]), SOON)), [""; 0]);
        assert_eq!(tick(&mut state, SOON.plus_ms(600_000)), [""; 0], "it is not asked again");
        state
    };
    let later = SOON.plus_ms(700_000);
    let mut state = begin();
    react(&mut state, board(&[(0, claimed)]), later);
    react(&mut state, board(&[(0, changed)]), later);
    assert_eq!(tick(&mut state, later.plus_ms(10_000)), ["1 ben"], "the task has changed");
    let mut state = begin();
    let ann = MemberRecord { state_since: later, ..record("ann", 1, "codex") };
    react(&mut state, Event::Members(vec![ann, record("ben", 2, "codex")]), later);
    assert_eq!(tick(&mut state, later.plus_ms(10_000)), ["1 ann"]);
}

/// TK-13: a task that each member has given back is reported once, and again after a change.
#[test]
fn tk_13_task_that_each_member_has_given_back_is_reported_once() {
    let by_ann: Change =
        |task| (task.owner, task.state) = (Some("ann".to_owned()), TaskState::InProgress);
    let by_ben: Change =
        |task| (task.owner, task.state) = (Some("ben".to_owned()), TaskState::InProgress);
    let changed: Change = |task| task.description = "smaller".to_owned();
    let reports = |state: &mut State, at: Timestamp| {
        let effects = react(state, Event::Tick, at);
        effects.iter().filter(|effect| **effect == Effect::ReportRefused(TaskId(1))).count()
    };
    let mut state = leading_two(|_, _| {});
    for seen in [plain, by_ben, plain] {
        react(&mut state, board(&[(0, seen)]), NOW);
    }
    assert_eq!(reports(&mut state, SOON), 0, "ann can claim it");
    for seen in [by_ann, plain] {
        react(&mut state, board(&[(0, seen)]), SOON);
    }
    assert!(state.next_tick().is_some_and(|due| due < SOON.plus_ms(10_000)));
    let later = SOON.plus_ms(10_000);
    assert_eq!(reports(&mut state, later), 1);
    assert_eq!(reports(&mut state, later.plus_ms(600_000)), 0);
    let anew = later.plus_ms(700_000);
    for seen in [changed, plain, by_ben, plain, by_ann, plain] {
        react(&mut state, board(&[(0, seen)]), anew);
    }
    assert_eq!(reports(&mut state, anew.plus_ms(10_000)), 1, "the task has changed");
}

/// TK-13: only a member that could claim the task and has nothing else to do is notified of it.
#[test]
fn tk_13_only_members_that_could_begin_the_task_are_notified() {
    type Case =
        (&'static str, fn(&mut Settings, &mut [MemberRecord; 2]), Change, &'static [&'static str]);
    let table: [Case; 12] = [
        ("idle", |_, _| {}, plain, &["1 ben"]),
        ("works", |_, of| of[1].state = MemberState::Working, plain, &["1 ann"]),
        ("waits for a plan", |_, of| of[1].state = MemberState::AwaitingPlan, plain, &["1 ann"]),
        ("a worker", |_, of| of[1].request.profile = "worker".to_owned(), plain, &["1 ann"]),
        ("has one task", |_, of| of[1].request.task = Some(TaskId(9)), plain, &["1 ann"]),
        ("never", |team, _| team.board.pull = Pull::Never, plain, &[]),
        ("its own choice", |_, of| of[1].request.pull = Some(Pull::Never), plain, &["1 ann"]),
        (
            "its own choice against the team's",
            |team, of| {
                team.board.pull = Pull::Never;
                of[0].request.pull = Some(Pull::Tell);
            },
            plain,
            &["1 ann"],
        ),
        (
            "role",
            |_, of| of[0].request.role = Some("tester".to_owned()),
            |task| task.extra.role = Some("tester".to_owned()),
            &["1 ann"],
        ),
        ("command", |_, _| {}, |task| task.extra.run = vec!["true".to_owned()], &[]),
        ("owned", |_, _| {}, |task| task.owner = Some("cleo".to_owned()), &[]),
        (
            "origin",
            |team, _| {
                let deny = || model::mail::access::LinkAccess {
                    deny_users: vec!["mallory".to_owned()],
                    ..Default::default()
                };
                team.access.members.insert("ben".to_owned(), deny());
            },
            |task| task.extra.scope = Scope::parse("user=mallory,channel=web").expect("a scope"),
            &["1 ann"],
        ),
    ];
    for (what, change, task, expected) in table {
        let mut state = leading_two(change);
        react(&mut state, board(&[(0, task)]), NOW);
        assert_eq!(tick(&mut state, SOON), expected, "{what}");
    }
}
