//! `review NAME --pr` and `review NAME --sync`.

use crate::fail::VerbResult;
use crate::setup::Setup;
use model::id::MemberName;
use model::text;
use ops::TeamStore;
use ops::review::pull_request::{self, PullRequestReport, SyncReport};

pub(super) fn open(setup: &Setup, team: &TeamStore, name: &MemberName) -> VerbResult {
    let report = pull_request::open(&setup.ctx, team, name)?;
    setup.out.print(&report, || opened_lines(&report))
}

pub(super) fn sync(setup: &Setup, team: &TeamStore, name: &MemberName) -> VerbResult {
    let report = pull_request::sync(&setup.ctx, team, name)?;
    setup.out.print(&report, || synced_lines(&report))
}

fn opened_lines(report: &PullRequestReport) -> String {
    let PullRequestReport { name, request, into, remote, commits, is_new } = report;
    let state = if *is_new { "is opened" } else { "was open, and is up to date" };
    let (into, remote, branch) =
        (text::line(into), text::line(remote), text::line(&request.branch));
    let lines = [
        format!("{commits} commit(s) of {name} are on {remote}, branch {branch}, for {into}"),
        format!("{} {state}: {}", request.label(), text::line(&request.url)),
        format!("to read its comments: phalanx review {name} --sync"),
    ];
    lines.join("\n")
}

fn synced_lines(report: &SyncReport) -> String {
    let SyncReport { name, request, drafts, more } = report;
    let state: &str = request.state.into();
    let mut lines = vec![format!("{} is {state}: {}", request.label(), text::line(&request.url))];
    if drafts.is_empty() {
        lines.push("no new comments".to_owned());
    } else {
        let ids: Vec<String> = drafts.iter().map(ToString::to_string).collect();
        lines.push(format!("{} new comment(s) are drafts: {}", drafts.len(), ids.join(", ")));
    }
    if *more > 0 {
        lines.push(format!("{more} more are left: run it again"));
    }
    if !drafts.is_empty() {
        lines.push(format!(
            "read them: phalanx review {name}; to send them: phalanx review send {name}"
        ));
    }
    lines.join("\n")
}
