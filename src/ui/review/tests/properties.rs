//! Properties of any keys and any news in any order.

use proptest::prelude::*;

use super::super::DiffRange;
use super::*;

/// A step of a run.
#[derive(Debug, Clone)]
enum Step {
    Key(KeyCode, KeyModifiers),
    Paste,
    Draw,
    Resize(u16, u16),
    /// A list with works of these members at these versions.
    List(Vec<(usize, u32)>),
    ListProblem,
    /// The result of a request of this age, at this version.
    Opened(usize, u32),
    OpenProblem(usize),
    Comments(usize, u32),
    Message(usize),
    /// The result of an action of this age.
    Done(usize, bool),
}

const MEMBERS: [&str; 3] = ["ada", "bob", "cyd"];

fn step() -> impl Strategy<Value = Step> {
    let keys: Vec<char> = "jkgGsyMrxuR!?qcCAVvfbWtm=-xno".chars().collect();
    let codes = [KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::Down, KeyCode::Backspace];
    prop_oneof![
        8 => prop::sample::select(keys)
            .prop_map(|key| Step::Key(KeyCode::Char(key), KeyModifiers::NONE)),
        4 => prop::sample::select(codes.to_vec())
            .prop_map(|code| Step::Key(code, KeyModifiers::NONE)),
        1 => any::<char>().prop_map(|key| Step::Key(KeyCode::Char(key), KeyModifiers::CONTROL)),
        1 => Just(Step::Paste),
        6 => Just(Step::Draw),
        1 => (0..130u16, 0..40u16).prop_map(|(cols, rows)| Step::Resize(cols, rows)),
        3 => prop::collection::vec((0..3usize, 0..3u32), 0..4).prop_map(Step::List),
        1 => Just(Step::ListProblem),
        6 => (0..2usize, 0..3u32).prop_map(|(age, version)| Step::Opened(age, version)),
        1 => (0..2usize).prop_map(Step::OpenProblem),
        1 => (0..3usize, 0..3u32).prop_map(|(who, version)| Step::Comments(who, version)),
        4 => (0..2usize).prop_map(Step::Message),
        3 => (0..3usize, any::<bool>()).prop_map(|(age, is_done)| Step::Done(age, is_done)),
    ]
}

/// A run of a screen, with the requests that it has made.
struct Run {
    stage: Stage,
    /// The last frame that was drawn.
    frame: String,
    opens: Vec<super::super::ChangesRequest>,
    messages: Vec<u64>,
    actions: Vec<ReviewAction>,
}

impl Run {
    fn new() -> Run {
        let mut stage = Stage::new(100, 30);
        let frame = stage.picture();
        Run { stage, frame, opens: Vec::new(), messages: Vec::new(), actions: Vec::new() }
    }

    fn take(&mut self, effects: Vec<ReviewEffect>) {
        for effect in effects {
            match effect {
                ReviewEffect::Open(request) => self.opens.push(request),
                ReviewEffect::ReadMessage { number, .. } => self.messages.push(number),
                ReviewEffect::Perform(action) => {
                    self.check(&action);
                    self.actions.push(action);
                }
                _ => {}
            }
        }
    }

    /// Checks that the person has seen the object of an action: its member and its commit.
    fn check(&self, action: &ReviewAction) {
        let frame = &self.frame;
        let shown = match action {
            ReviewAction::Approve { commit, .. }
            | ReviewAction::Drop { commit, .. }
            | ReviewAction::Check { commit, .. } => commit,
            ReviewAction::Land { head, .. } => head,
            ReviewAction::Send { message, .. } => message,
            ReviewAction::Undo { main, .. } => main,
            other => other.member().expect("a member").as_str(),
        };
        if let Some(member) = action.member() {
            assert!(frame.contains(member.as_str()), "{action:?} without {member} in\n{frame}");
        }
        let shown: String = shown.chars().take(7).collect();
        assert!(frame.contains(&shown), "{action:?} without {shown} in\n{frame}");
    }

    fn step(&mut self, step: Step) {
        let nth = |age: usize, count: usize| count.checked_sub(age + 1);
        let effects = match step {
            Step::Key(code, modifiers) => {
                let key = Event::Key(KeyEvent::new(code, modifiers));
                self.stage.screen.handle(&key, self.stage.size)
            }
            Step::Paste => {
                self.stage.screen.handle(&Event::Paste("a\nb".to_owned()), self.stage.size)
            }
            Step::Draw => {
                self.frame = self.stage.picture();
                Vec::new()
            }
            Step::Resize(cols, rows) => {
                self.stage.size = Size::new(cols, rows);
                self.stage.draw();
                self.stage.size = Size::new(100, 30);
                self.frame = self.stage.picture();
                Vec::new()
            }
            Step::List(works) => {
                let mut list = list();
                list.works.clear();
                for (who, version) in works {
                    if list.works.iter().all(|work| work.member.as_str() != MEMBERS[who]) {
                        list.works.push(work(MEMBERS[who], Some((4, "Validate")), version));
                    }
                }
                self.stage.screen.apply(ReviewNews::List(Ok(list)))
            }
            Step::ListProblem => {
                self.stage.screen.apply(ReviewNews::List(Err("no answer".to_owned())))
            }
            Step::Opened(age, version) => {
                let Some(at) = nth(age, self.opens.len()) else { return };
                let request = &self.opens[at];
                let mut work = opened(request.member.as_str(), version);
                if request.range == DiffRange::SinceLook {
                    work.look = None;
                }
                let screen = &mut self.stage.screen;
                let shown = |screen: &ReviewScreen| {
                    screen.changes.as_ref().map(|page| (page.member.clone(), page.range))
                };
                let (number, before) = (request.number, shown(screen));
                let is_awaited = screen.loading.as_ref().is_some_and(|r| r.number == number);
                let effects = screen.apply(ReviewNews::Opened { number, work: Ok(Box::new(work)) });
                let expected = Some((request.member.clone(), request.range));
                // Changes for another request are not shown.
                assert_eq!(shown(screen), if is_awaited { expected } else { before });
                effects
            }
            Step::OpenProblem(age) => {
                let Some(at) = nth(age, self.opens.len()) else { return };
                let (number, problem) = (self.opens[at].number, "no such commit".to_owned());
                self.stage.screen.apply(ReviewNews::Opened { number, work: Err(problem) })
            }
            Step::Comments(who, version) => {
                let snapshot = commit(&snapshot(MEMBERS[who], version));
                let member = name(MEMBERS[who]);
                let comments = Ok(comments());
                self.stage.screen.apply(ReviewNews::Comments { member, snapshot, comments })
            }
            Step::Message(age) => {
                let Some(at) = nth(age, self.messages.len()) else { return };
                let number = self.messages[at];
                // Seven digits that the frame shows if the message is on it.
                let text = Ok(format!("{number:07}: the message"));
                self.stage.screen.apply(ReviewNews::Message { number, text })
            }
            Step::Done(age, is_done) => {
                let Some(at) = nth(age, self.actions.len()) else { return };
                let action = self.actions.remove(at);
                let words = if is_done { Ok("done".to_owned()) } else { Err("failed".to_owned()) };
                self.stage.screen.apply(ReviewNews::Done { action, words })
            }
        };
        self.take(effects);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rv_15_any_keys_and_news_act_only_on_what_was_seen(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut run = Run::new();
        for step in steps {
            run.step(step);
        }
    }
}

/// RV-18: texts of other programs do not act on the terminal.
#[test]
fn rv_18_hostile_names_and_texts_become_visible_marks() {
    let hostile =
        "a\u{1b}[2J\u{1b}]0;t\u{7}\rb\u{8}\u{9b}5A\u{202e}c\u{61c}\u{2028}\u{200b}\u{0}漢";
    let mut works = list();
    works.into = hostile.to_owned();
    for work in &mut works.works {
        work.from = hostile.to_owned();
        work.host = Some(hostile.to_owned());
        work.task =
            Some(OpenTask { id: TaskId(1), subject: hostile.to_owned(), is_in_review: true });
        match &mut work.changes {
            Ok(changes) => changes.conflicts = vec![hostile.to_owned()],
            Err(problem) => *problem = hostile.to_owned(),
        }
    }
    works.overlaps[0].files = vec![hostile.to_owned()];
    let mut work = opened("ada", 0);
    work.object.from = hostile.to_owned();
    for placed in &mut work.comments {
        placed.comment.text = hostile.to_owned();
        placed.comment.place = Some(CommentPlace {
            path: hostile.to_owned(),
            lines: Some(CommentLines::quoting(LineSide::New, 1, 1, [hostile.as_bytes()])),
        });
    }
    for (cols, rows) in [(40, 10), (80, 24), (160, 40)] {
        for keys in ["j", "x", "y", "M", "u", "Enter", "r", "GG"] {
            let mut stage = Stage::new(cols, rows);
            stage.screen.apply(ReviewNews::List(Ok(works.clone())));
            stage.draw();
            stage.press(keys);
            check_cells(&stage.draw());
            stage.screen.report(hostile.to_owned(), true);
            check_cells(&stage.draw());
        }
        for keys in ["m", "m Enter o", "mm Enter Enter", "y", "M", "c", "A", "b"] {
            let mut stage = Stage::new(cols, rows);
            let effects = stage.press("Enter");
            stage.open(&effects, work.clone());
            stage.press(keys);
            stage.screen.handle(&Event::Paste(hostile.to_owned()), stage.size);
            check_cells(&stage.draw());
        }
    }
}

fn check_cells(buffer: &Buffer) {
    for cell in &buffer.content {
        let hidden = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!cell.symbol().contains(hidden) && !cell.symbol().is_empty(), "{cell:?}");
    }
}
