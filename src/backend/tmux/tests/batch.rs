//! Batches of panes: few tmux processes, and the same result for each pane as in a call of its own.

use super::super::Tmux;
use super::super::command::{PaneId, Server, Unit};
use super::super::verb::{self, PaneGuard};
use super::harness::{
    Lab, all_closed, exists, launch, launches, marks, pane, placed, traced, until,
};
use crate::{Backend, CloseOutcome, Mark, TmuxHome};
use model::members::placement::{Layout, Placement, Verdict};

#[test]
fn sixteen_panes_are_verified_in_one_process_and_closed_in_three() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(TmuxHome { program: traced(&lab), ..lab.home("demo") });
    let all = launches(16);
    let places = placed(&tmux, &all);
    let before = lab.calls();
    assert!(
        tmux.verify_all(&marks(&places, &all)).iter().all(|verdict| *verdict == Verdict::Owned)
    );
    assert_eq!(lab.calls() - before, 1);
    all_closed(&tmux, &places, &all);
    // Closing takes two, and a third if the server has not finished when it lists the panes.
    assert!(lab.calls() - before <= 4, "{}", lab.calls() - before);
    assert_eq!(lab.panes(), ["%0"]);
    for outcome in tmux.close_all(&marks(&places, &all), &mut |_| true) {
        assert!(matches!(outcome, CloseOutcome::Gone), "again: {outcome:?}");
    }
}

#[test]
fn sd_05_batch_results_match_those_of_single_calls() {
    let (lab, other) = (Lab::start(None), Lab::start(None));
    let (tmux, elsewhere) = (Tmux::new(lab.home("demo")), Tmux::new(other.home("demo")));
    let all = launches(5);
    let places = placed(&tmux, &all);
    let there = launches(2);
    let far = placed(&elsewhere, &there);
    let changed = |nth: usize, change: &dyn Fn(&mut model::members::placement::TmuxPane)| {
        let mut copy = pane(&places[nth]).clone();
        change(&mut copy);
        Placement::Tmux(copy)
    };
    let hostile = changed(0, &|pane| pane.pane_id = "%".to_owned());
    let unreachable = changed(0, &|pane| pane.socket = "/nonexistent/s".to_owned());
    let restarted = changed(0, &|pane| pane.server.start -= 1);
    let mark = |placement, token| Mark { placement, token };
    let asked = [
        mark(&places[0], all[0].token.as_str()),
        mark(&places[1], all[2].token.as_str()),
        mark(&far[0], there[0].token.as_str()),
        mark(&hostile, all[0].token.as_str()),
        mark(&unreachable, all[0].token.as_str()),
        mark(&restarted, all[0].token.as_str()),
        mark(&places[3], all[3].token.as_str()),
    ];
    let verdicts = tmux.verify_all(&asked);
    let alone: Vec<Verdict> = asked.iter().map(|mark| tmux.verify(*mark)).collect();
    assert_eq!(verdicts, alone);
    let word = |outcome: &CloseOutcome| match outcome {
        CloseOutcome::Closed => "closed",
        CloseOutcome::Gone => "gone",
        CloseOutcome::Foreign { .. } => "foreign",
        CloseOutcome::Unknown { .. } => "unknown",
        CloseOutcome::Failed(error) => panic!("{error:?}"),
    };
    let results = tmux.close_all(&asked, &mut |_| true);
    let words: Vec<&str> = results.iter().map(word).collect();
    assert_eq!(words, ["closed", "foreign", "closed", "unknown", "unknown", "gone", "closed"]);
    let left: Vec<Verdict> = tmux.verify_all(&marks(&places, &all));
    let expected = [Verdict::Gone, Verdict::Owned, Verdict::Owned, Verdict::Gone, Verdict::Owned];
    assert_eq!(left, expected, "and nothing else was touched");
    assert_eq!(elsewhere.verify(Mark::new(&far[1], &there[1].token)), Verdict::Owned);
}

#[test]
fn sd_06_vanished_pane_does_not_stop_the_close_of_others() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(6);
    let places = placed(&tmux, &all);
    let (first, socket) = (&pane(&places[0]).pane_id, lab.socket.display());
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *kill-pane*) tmux -S '{socket}' kill-pane -t {first} 2>/dev/null;; esac\nexec tmux \"$@\"\n"
    );
    let racing = Tmux::new(TmuxHome { program: lab.script("racing", &text), ..lab.home("demo") });
    all_closed(&racing, &places, &all);
    assert_eq!(lab.panes(), ["%0"]);
}

#[test]
fn sp_15_close_through_a_faulty_tmux_is_reported_as_failed() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(3);
    let places = placed(&tmux, &all);
    let before = lab.panes();
    for (name, answer, expected) in [
        ("lies", "exit 0", "is still there"),
        ("lacks", "echo 'unknown command: if-shell' >&2; exit 1", "unknown command: if-shell"),
    ] {
        let text =
            format!("#!/bin/sh\ncase \"$*\" in *if-shell*) {answer};; esac\nexec tmux \"$@\"\n");
        let fake = Tmux::new(TmuxHome { program: lab.script(name, &text), ..lab.home("demo") });
        for (outcome, place) in
            fake.close_all(&marks(&places, &all), &mut |_| true).into_iter().zip(&places)
        {
            let text = outcome.into_verdict(place).expect_err("not closed").to_string();
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(lab.panes(), before);
    }
    all_closed(&tmux, &places, &all);
}

#[test]
fn ly_03_sixty_four_members_fit_at_80x24_and_close_completely() {
    let lab = Lab::start(None);
    for layout in [Layout::Panes, Layout::Split] {
        let tmux = Tmux::new(TmuxHome { layout, ..lab.home_in("demo", "%0") });
        let view = || lab.field("%0", "#{window_id} #{window_layout} #{window_active}");
        let before = view();
        let all = launches(64);
        let places = placed(&tmux, &all);
        assert!(
            tmux.verify_all(&marks(&places, &all)).iter().all(|verdict| *verdict == Verdict::Owned)
        );
        assert_eq!(lab.panes().len(), 65);
        assert_eq!(view(), before, "no room for a column of a useful width beside the lead");
        all_closed(&tmux, &places, &all);
        assert_eq!(lab.panes(), ["%0"]);
    }
}

/// Passes every word of one or two of these characters through tmux's own parser, as the text of an
/// inner command.
#[test]
fn sec_01_words_of_an_inner_command_arrive_byte_for_byte() {
    const HOSTILE: &str = "\"\\$~;#{}' \n\t\u{1b}\u{7f}%()*ü&|<>=-H1,:";
    let lab = Lab::start(None);
    let canary = lab.path("canary");
    let mut words: Vec<String> = HOSTILE.chars().map(String::from).collect();
    words.extend(HOSTILE.chars().flat_map(|a| HOSTILE.chars().map(move |b| format!("{a}{b}"))));
    words
        .extend(["", "do it;", "#(touch x)", "~root/x", "$HOME", "\u{1b}[201~"].map(str::to_owned));
    words.push(format!("; run-shell 'touch {}' ;", canary.display()));
    let ids = lab.field("%0", "#{pid} #{pane_pid}");
    let (server, process) = ids.split_once(' ').expect("two");
    let guard = PaneGuard::Process(process.parse().expect("a pid"));
    let lead = PaneId::parse("%0").expect("an id");
    let tmux = Server { program: "tmux".as_ref(), socket: Some(&lab.socket) };
    for (nth, some) in words.chunks(150).enumerate() {
        let out = lab.path(&format!("out{nth}"));
        let text = "out=$1; shift; printf '%s\\0' \"$@\" > \"$out.new\"; mv \"$out.new\" \"$out\"; exec sleep 300";
        let head =
            ["new-window", "-d", "-t", "$0:", "--", "/bin/sh", "-c", text, "sh"].map(str::to_owned);
        let all = head.into_iter().chain([out.display().to_string()]).chain(some.iter().cloned());
        let inner = Unit::new(all.map(Into::into));
        let answer = tmux.ask(&verb::guarded(lead, server.parse().expect("a pid"), &guard, &inner));
        assert!(answer.problem.is_none(), "{:?}", answer.problem);
        until("the words are written", || exists(&out));
        let expected: String = some.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(lab.text(&format!("out{nth}")), expected);
    }
    assert!(!exists(&canary));
    let refused = verb::guarded(lead, 1, &guard, &Unit::new(["kill-server"].map(Into::into)));
    assert!(tmux.ask(&refused).problem.is_none());
    assert!(lab.panes().len() > 1, "another server's pid is no guard");
    placed(&Tmux::new(lab.home("demo")), &[launch("bob")]);
}
