//! The check that follows a member's shutdown: it finds, for example, uncommitted work. The caller
//! supplies the state of the git work tree.

use crate::decisions::request::{DeviationKind, ShutdownFinding, ShutdownOutcome, ShutdownRequest};
use crate::mail::protocol::ShutdownStatus;
use crate::text;

/// Maximum number of changed files to name.
const NAMED: usize = 5;
/// Maximum length of text from members or git, in characters.
const LONGEST: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkTree {
    Clean,
    /// Changed or untracked files.
    Dirty(Vec<String>),
    /// Git could not determine the state; holds the reason.
    Unknown(String),
}

/// Returns the findings for a shutdown that has ended. Calls `look` only if the member reported its
/// artifacts as committed.
pub fn findings(
    request: &ShutdownRequest,
    look: impl FnOnce() -> WorkTree,
) -> Vec<ShutdownFinding> {
    let found = [outcome(request), status(request), artifacts(request, look)];
    let deviation = |(kind, text)| ShutdownFinding { name: request.member.clone(), kind, text };
    found.into_iter().flatten().map(deviation).collect()
}

type Found = Option<(DeviationKind, String)>;

/// Checks that the member answered, timed out, or was stopped.
fn outcome(request: &ShutdownRequest) -> Found {
    let said = request.answer.as_deref().map(|answer| text::short(answer, LONGEST));
    match request.outcome? {
        ShutdownOutcome::Closed | ShutdownOutcome::Forced | ShutdownOutcome::Gone => None,
        ShutdownOutcome::Rejected => {
            let why = said.map(|why| format!(": {why}")).unwrap_or_default();
            Some((
                DeviationKind::StillThere,
                format!("rejected the shutdown and is still running{why}"),
            ))
        }
        // A timed-out request has an answer only if the stop failed; it holds that error.
        ShutdownOutcome::TimedOut => Some(match said {
            Some(why) => (DeviationKind::StillThere, why),
            None => {
                let seconds = request.deadline_at.since(request.asked_at) / 1000;
                (
                    DeviationKind::TimedOut,
                    format!("did not answer within {seconds} s and was stopped"),
                )
            }
        }),
    }
}

fn status(request: &ShutdownRequest) -> Found {
    match request.work_left.status? {
        ShutdownStatus::Clean => None,
        ShutdownStatus::Error => {
            Some((DeviationKind::Error, "something went wrong while it shut down".to_owned()))
        }
        ShutdownStatus::InProgress => {
            let left = request.work_left.pending_work.join("; ");
            let left = if left.is_empty() { "no details given".to_owned() } else { left };
            Some((
                DeviationKind::InProgress,
                format!("left work undone: {}", text::short(&left, LONGEST)),
            ))
        }
    }
}

fn artifacts(request: &ShutdownRequest, look: impl FnOnce() -> WorkTree) -> Found {
    if !request.work_left.artifacts_committed? {
        let text = "reports uncommitted work".to_owned();
        return Some((DeviationKind::Uncommitted, text));
    }
    let place = request.cwd.as_deref().unwrap_or_default();
    match look() {
        WorkTree::Clean => None,
        WorkTree::Dirty(files) => {
            let named = files.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if files.len() > NAMED { ", …" } else { "" };
            let text = format!(
                "reports that its work is committed, but git shows changes in {place}: {named}{more}"
            );
            Some((DeviationKind::Uncommitted, text::short(&text, LONGEST)))
        }
        WorkTree::Unknown(why) => {
            let text = format!("reports that its work is committed; not verified: {why}");
            Some((DeviationKind::Unchecked, text::short(&text, LONGEST)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::request::WorkLeft;
    use crate::id::{Incarnation, MemberName, RequestId};
    use crate::time::Timestamp;

    fn request(
        outcome: ShutdownOutcome,
        answer: Option<&str>,
        work_left: WorkLeft,
    ) -> ShutdownRequest {
        let ann = MemberName::new("ann").expect("name");
        ShutdownRequest {
            format: 1,
            id: RequestId::shutdown(1, &ann),
            member: ann,
            incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000001").expect("uuid"),
            reason: None,
            asked_at: Timestamp(1000),
            deadline_at: Timestamp(31_000),
            grace_s: 10,
            force: false,
            restarts: false,
            outcome: Some(outcome),
            answer: answer.map(str::to_owned),
            ended_at: Some(Timestamp(2000)),
            agreed_at: None,
            work_left,
            cwd: Some("/w".to_owned()),
            deviations: None,
            event: None,
        }
    }

    fn says(status: ShutdownStatus, pending: &[&str], committed: Option<bool>) -> WorkLeft {
        let pending_work = pending.iter().map(|work| (*work).to_owned()).collect();
        WorkLeft { status: Some(status), pending_work, artifacts_committed: committed }
    }

    /// A request, the state of the work tree, and the expected findings: kind and an excerpt of the
    /// message.
    type Row = (ShutdownRequest, WorkTree, &'static [(DeviationKind, &'static str)]);

    #[test]
    fn each_shutdown_outcome_yields_its_findings() {
        use DeviationKind as K;
        use ShutdownOutcome::{Closed, Forced, Gone, Rejected, TimedOut};
        use ShutdownStatus as S;
        let dirty = || WorkTree::Dirty(["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec());
        let none = WorkLeft::default;
        let table: [Row; 13] = [
            (request(Closed, None, none()), dirty(), &[]),
            (request(Forced, None, none()), dirty(), &[]),
            (request(Gone, None, none()), dirty(), &[]),
            (request(TimedOut, None, none()), dirty(), &[(K::TimedOut, "within 30 s")]),
            (
                request(TimedOut, Some("could not be ended: x"), none()),
                dirty(),
                &[(K::StillThere, "be ended: x")],
            ),
            (
                request(Rejected, Some("busy"), none()),
                dirty(),
                &[(K::StillThere, "still running: busy")],
            ),
            (request(Closed, None, says(S::Clean, &[], Some(true))), WorkTree::Clean, &[]),
            (request(Closed, None, says(S::Clean, &["x"], None)), dirty(), &[]),
            (
                request(Closed, None, says(S::Clean, &[], Some(true))),
                dirty(),
                &[(K::Uncommitted, "changes in /w: a, b, c, d, e, …")],
            ),
            (
                request(Closed, None, says(S::Clean, &[], Some(true))),
                WorkTree::Unknown("no git".to_owned()),
                &[(K::Unchecked, "not verified: no git")],
            ),
            (
                request(Closed, None, says(S::Clean, &[], Some(false))),
                WorkTree::Clean,
                &[(K::Uncommitted, "uncommitted")],
            ),
            (
                request(Closed, None, says(S::InProgress, &["the tests", "the docs"], Some(false))),
                WorkTree::Clean,
                &[(K::InProgress, "the tests; the docs"), (K::Uncommitted, "uncommitted")],
            ),
            (
                request(Closed, None, says(S::Error, &[], None)),
                WorkTree::Clean,
                &[(K::Error, "went wrong")],
            ),
        ];
        for (request, tree, expected) in table {
            let found = findings(&request, || tree.clone());
            let kinds: Vec<K> = found.iter().map(|d| d.kind).collect();
            assert_eq!(
                kinds,
                expected.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
                "{request:?} {tree:?}"
            );
            for (deviation, (_, part)) in found.iter().zip(expected) {
                assert!(deviation.text.contains(part), "{deviation:?} lacks {part}");
            }
        }
    }

    #[test]
    fn work_tree_is_only_inspected_if_reported_as_committed() {
        let never = || -> WorkTree { panic!("looked at without need") };
        for committed in [None, Some(false)] {
            findings(
                &request(
                    ShutdownOutcome::Closed,
                    None,
                    says(ShutdownStatus::Clean, &[], committed),
                ),
                never,
            );
        }
    }

    #[test]
    fn long_pending_work_is_truncated() {
        let much = "x".repeat(5000);
        let found = findings(
            &request(
                ShutdownOutcome::Closed,
                None,
                says(ShutdownStatus::InProgress, &[&much], None),
            ),
            || WorkTree::Clean,
        );
        assert!(found[0].text.chars().count() < LONGEST + 40, "{}", found[0].text.len());
    }
}
