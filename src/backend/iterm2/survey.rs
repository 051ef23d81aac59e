//! Evaluates iTerm2's list of sessions: the verdict on a recorded session, the caller's own
//! session, and the anchors for the next one. Pure functions.

use super::super::BackendError;
use super::super::proof::{IdentityPart, Observation, judge};
use super::osa;
use super::script::{NOT_RUNNING, SURVEY};
use model::members::placement::{ItermSession, Layout, Verdict};

/// Fewest rows that a split may leave; below that, the next session gets a tab of its own.
const FEWEST_ROWS: u32 = 8;

/// The oldest version that is used. Up to 3.1, `close` of a session that is alone in its tab closes
/// the selected tab instead (iTerm2's #6029), which may be the lead's.
const OLDEST: (u32, u32) = (3, 2);

/// One session. Other programs' variables may hold any text; a malformed value affects only its own
/// row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItermRow {
    pub(super) id: String,
    /// The terminal device; empty if there is none yet.
    pub(super) tty: String,
    /// The height of the session, in lines.
    pub(super) rows: u32,
    /// The id of the session's window.
    pub(super) window: String,
    /// The token in `user.phalanx_token`; empty if the session is not ours.
    pub(super) token: String,
    /// The tag in `user.phalanx_team`; empty if the session belongs to no team.
    pub(super) team: String,
}

/// Parses the answer of [`SURVEY`]; `None` if iTerm2 does not run. A version that closes the wrong
/// sessions is an error, so that nothing is placed in it and nothing closed.
pub(super) fn read(answer: &str) -> Result<Option<Vec<ItermRow>>, BackendError> {
    let mut lines = answer.lines();
    let first = lines.next();
    if first == Some(NOT_RUNNING) {
        return Ok(None);
    }
    match first.and_then(|line| line.split_once('\t')) {
        Some(("running", version)) if is_too_old(version) => Err(osa::too_old(version)),
        Some(("running", _)) => Ok(Some(lines.filter_map(row).collect())),
        Some(_) | None => Err(osa::unreadable(&SURVEY, answer)),
    }
}

/// Returns true for versions before [`OLDEST`]. A version that cannot be parsed is not old.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < OLDEST,
        _ => false,
    }
}

fn row(line: &str) -> Option<ItermRow> {
    let mut fields = line.splitn(6, '\t');
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let (id, tty, rows, window, token, team) = (next(), next(), next(), next(), next(), next());
    let tty = if is_tty(&tty) { tty } else { String::new() };
    is_id(&id).then(|| ItermRow { id, tty, rows: rows.parse().unwrap_or(0), window, token, team })
}

/// Returns true if the text can be a session id, which is a UUID.
pub(super) fn is_id(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

pub(super) fn is_tty(text: &str) -> bool {
    text.starts_with("/dev/") && !text.contains(char::is_whitespace)
}

/// The verdict on a recorded session: id, token and terminal must match.
pub(super) fn verdict(rows: Option<&[ItermRow]>, session: &ItermSession, token: &str) -> Verdict {
    // No session outlives iTerm2. Its processes may, but are judged by their own identity.
    let row = rows.unwrap_or_default().iter().find(|row| row.id == session.session_id);
    let Some(row) = row else { return judge(Observation::Absent) };
    let unreadable = |reason: &str| IdentityPart::Unreadable(reason.to_owned());
    let token = match token {
        "" => unreadable("no token is recorded"),
        token => IdentityPart::compare("token", token, row.token.as_str()),
    };
    // Only the leftover of a failed launch is recorded without a terminal.
    let terminal = match row.tty.as_str() {
        "" if !session.tty.is_empty() => unreadable("iTerm2 does not report its terminal"),
        tty => IdentityPart::compare("terminal", session.tty.as_str(), tty),
    };
    judge(Observation::Present(vec![token, terminal]))
}

/// Finds the caller's session by the caller's own terminal. `$ITERM_SESSION_ID` may be inherited
/// from another session; it only decides between two sessions that claim the same terminal, one of
/// which has ended (PT-03).
pub(super) fn caller_session<'r>(
    rows: &'r [ItermRow],
    tty: Option<&str>,
    hint: Option<&str>,
) -> Option<&'r ItermRow> {
    let tty = tty?;
    let mut there = rows.iter().filter(|row| row.tty == tty);
    let hinted =
        there.clone().find(|row| hint.is_some_and(|hint| hint.ends_with(&format!(":{}", row.id))));
    hinted.or_else(|| there.next())
}

/// The way to open a session from its anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Way {
    Right,
    Below,
    Tab,
}

impl Way {
    pub(super) fn word(self) -> &'static str {
        self.into()
    }
}

/// Lists the sessions from which the next one can be opened, with the way to do it, best first
/// (LY-04, LY-08). The tallest session of the team is split, so that the caller's keeps its size;
/// the caller's own is split to the right for the first member. Without a caller's session,
/// sessions of the team in any window qualify.
pub(super) fn anchors(
    rows: &[ItermRow],
    caller: Option<&ItermRow>,
    team: &str,
    layout: Layout,
) -> Vec<(String, Way)> {
    let near = |row: &&ItermRow| {
        row.team == team && caller.is_none_or(|caller| caller.window == row.window)
    };
    let mut ours: Vec<&ItermRow> = rows.iter().filter(near).collect();
    ours.sort_by_key(|row| std::cmp::Reverse(row.rows));
    let pair = |row: &ItermRow, way| (row.id.clone(), way);
    let split =
        |row: &&ItermRow| pair(row, if row.rows < 2 * FEWEST_ROWS { Way::Tab } else { Way::Below });
    match layout {
        // iTerm2 splits the caller's tab in both layouts.
        Layout::Panes | Layout::Split => {
            ours.iter().map(split).chain(caller.map(|caller| pair(caller, Way::Right))).collect()
        }
        Layout::Windows => caller.into_iter().chain(ours).map(|row| pair(row, Way::Tab)).collect(),
    }
}

/// Adds the session that was made from `anchor` to `rows`, so that the next one needs no survey.
pub(super) fn add_opened(rows: &mut Vec<ItermRow>, anchor: &str, way: Way, mut made: ItermRow) {
    let tallest = rows.iter().map(|row| row.rows).max().unwrap_or(0);
    let Some(beside) = rows.iter_mut().find(|row| row.id == anchor) else { return };
    if way == Way::Below {
        beside.rows /= 2;
    }
    made.rows = if way == Way::Tab { tallest.max(2 * FEWEST_ROWS) } else { beside.rows };
    made.window.clone_from(&beside.window);
    rows.push(made);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_row(id: &str, tty: &str, rows: u32, token: &str, team: &str) -> ItermRow {
        let (id, tty, window) = (format!("{id}-0000000"), format!("/dev/{tty}"), "1".to_owned());
        ItermRow { id, tty, rows, window, token: token.to_owned(), team: team.to_owned() }
    }

    #[test]
    fn survey_tolerates_malformed_fields() {
        let answer = "running\t3.5.10\nA-000000\t/dev/ttys001\t50\t7\t\t\nB-000000\tmissing value\t?\t7\tto\tken\nnext\tline\n\nC-000000\t/dev/ttys003\t24\t8\ttok\tteam/1";
        let rows = read(answer).expect("readable").expect("running");
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["A-000000", "B-000000", "C-000000"]);
        assert_eq!((rows[1].tty.as_str(), rows[1].rows, rows[1].token.as_str()), ("", 0, "to"));
        assert_eq!((rows[2].token.as_str(), rows[2].team.as_str()), ("tok", "team/1"));
        assert_eq!(read("not-running").expect("readable"), None);
        for odd in ["", "???", "running", "runningA\tb"] {
            assert!(read(odd).expect_err(odd).to_string().contains("answered"), "{odd}");
        }
    }

    /// SD-05: the versions that close the selected tab instead of a session are not used.
    #[test]
    fn sd_05_versions_that_close_the_wrong_tab_are_refused() {
        for old in ["2.9.20160403", "3.0.15", "3.1", "3.1.beta.9", "3.1.7"] {
            let problem = read(&format!("running\t{old}\n")).expect_err(old);
            assert!(problem.to_string().contains(old), "{problem}");
            assert!(problem.hint().is_some_and(|hint| hint.contains("update iTerm2")));
        }
        for good in ["3.2", "3.5.10", "3.10.1", "4.0", "3.6.20260101-nightly", "next", ""] {
            assert_eq!(read(&format!("running\t{good}\n")).expect(good), Some(vec![]));
        }
    }

    #[test]
    fn verdict_requires_matching_id_token_and_terminal() {
        let session = ItermSession { session_id: "A-0000000".to_owned(), tty: "/dev/a".to_owned() };
        let word = |rows: Option<&[ItermRow]>, token: &str| -> &'static str {
            verdict(rows, &session, token).into()
        };
        let one = |tty: &str, token: &str| [a_row("A", tty, 50, token, "t")];
        let mut no_tty = one("a", "tok");
        no_tty[0].tty.clear();
        assert_eq!(word(Some(&one("a", "tok")), "tok"), "owned");
        assert_eq!(word(Some(&one("a", "")), "tok"), "foreign");
        assert_eq!(word(Some(&one("a", "kot")), "tok"), "foreign");
        assert_eq!(word(Some(&one("b", "tok")), "tok"), "foreign", "its terminal is another's now");
        assert_eq!(word(Some(&one("a", "")), ""), "unknown", "an empty token proves nothing");
        assert_eq!(word(Some(&no_tty), "tok"), "unknown");
        let leftover = ItermSession { tty: String::new(), ..session.clone() };
        assert_eq!(verdict(Some(&no_tty), &leftover, "tok"), Verdict::Owned);
        assert!(matches!(
            verdict(Some(&one("a", "tok")), &leftover, "tok"),
            Verdict::Foreign { .. }
        ));
        assert_eq!(word(Some(&[a_row("B", "a", 50, "tok", "t")]), "tok"), "gone");
        assert_eq!(word(Some(&[]), "tok"), "gone");
        assert_eq!(word(None, "tok"), "gone");
    }

    /// PT-03: only the terminal identifies a session; the variable may belong to another one.
    #[test]
    fn pt_03_caller_is_identified_by_its_terminal() {
        let rows =
            [a_row("A", "a", 50, "", ""), a_row("B", "b", 50, "", ""), a_row("C", "b", 50, "", "")];
        let found = |tty, hint| caller_session(&rows, tty, hint).map(|row| row.id.as_str());
        assert_eq!(found(Some("/dev/a"), Some("w0t0p0:A-0000000")), Some("A-0000000"));
        assert_eq!(
            found(Some("/dev/b"), Some("w0t0p0:A-0000000")),
            Some("B-0000000"),
            "a stale variable"
        );
        assert_eq!(found(Some("/dev/b"), Some("w0t0p0:C-0000000")), Some("C-0000000"));
        assert_eq!(found(Some("/dev/b"), Some("C-0000000")), Some("B-0000000"));
        assert_eq!(found(Some("/dev/x"), Some("w0t0p0:A-0000000")), None);
        assert_eq!(found(None, Some("w0t0p0:A-0000000")), None);
    }

    /// LY-04, LY-08: the anchors of the next session, best first.
    #[test]
    fn ly_04_ly_08_anchors_are_tried_tallest_first() {
        let leader = a_row("L", "l", 60, "", "");
        let (a, b) = (a_row("A", "a", 20, "x", "t/1"), a_row("B", "b", 40, "y", "t/1"));
        let other = a_row("O", "o", 60, "z", "u/1");
        let mut far = a_row("F", "f", 60, "f", "t/1");
        far.window = "2".to_owned();
        let small = a_row("S", "s", 15, "s", "t/1");
        let ask = |rows: &[&ItermRow], caller: Option<&ItermRow>, layout| {
            let rows: Vec<ItermRow> = rows.iter().map(|row| (*row).clone()).collect();
            let word = |(id, way): (String, Way)| format!("{} {}", &id[..1], way.word());
            anchors(&rows, caller, "t/1", layout)
                .into_iter()
                .map(word)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (split, tabs) = (Layout::Split, Layout::Windows);
        assert_eq!(ask(&[&leader, &other], Some(&leader), split), "L right");
        assert_eq!(
            ask(&[&leader, &a, &b, &far], Some(&leader), Layout::Panes),
            "B below, A below, L right"
        );
        assert_eq!(ask(&[&a, &b, &other, &far], None, split), "F below, B below, A below");
        assert_eq!(ask(&[&leader, &small], Some(&leader), split), "S tab, L right");
        assert_eq!(ask(&[&leader, &a], Some(&leader), tabs), "L tab, A tab");
        assert_eq!(ask(&[&other], None, split), "");
    }

    #[test]
    fn new_session_is_an_anchor_for_the_next_one() {
        let mut rows = vec![a_row("L", "l", 60, "", "")];
        let made = |id| a_row(id, "x", 0, "x", "t/1");
        add_opened(&mut rows, "L-0000000", Way::Right, made("A"));
        add_opened(&mut rows, "A-0000000", Way::Below, made("B"));
        add_opened(&mut rows, "B-0000000", Way::Tab, made("C"));
        let heights: Vec<u32> = rows.iter().map(|row| row.rows).collect();
        assert_eq!(heights, [60, 30, 30, 60], "the caller's own is as it was");
    }
}
