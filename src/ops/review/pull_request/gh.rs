//! Pull requests of GitHub, by `gh`.

use serde::Deserialize;

use super::program::{Forge, ForgeComment, ForgePlace, ForgeRequest, NewRequest};
use crate::OpsError;
use model::review::{LineSide, PullRequestState};
use model::text;

/// The fields of a pull request.
const FIELDS: &str = "number,url,state,isCrossRepository";
/// Those of one that is read. Versions before 2.18 have no `headRefOid`.
const ALL_FIELDS: &str = "number,url,state,headRefOid";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GhRequest {
    number: u64,
    url: String,
    state: String,
    /// The branch is one of a fork, which may have the same name.
    #[serde(default)]
    is_cross_repository: bool,
    head_ref_oid: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GhComment {
    id: u64,
    body: Option<String>,
    /// `None` for an account that was deleted.
    user: Option<GhUser>,
    path: Option<String>,
    commit_id: Option<String>,
    original_commit_id: Option<String>,
    /// `None` if later commits have changed the line.
    line: Option<u32>,
    original_line: Option<u32>,
    start_line: Option<u32>,
    original_start_line: Option<u32>,
    side: Option<String>,
    start_side: Option<String>,
    /// The state of a review.
    state: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GhUser {
    login: String,
}

pub(super) fn open_request(forge: &Forge, branch: &str) -> Result<Option<ForgeRequest>, OpsError> {
    let args = ["pr", "list", "--head", branch, "--state", "open", "--json", FIELDS];
    let found: Vec<Vec<GhRequest>> = forge.read("list the pull requests", &args)?;
    let own = found.into_iter().flatten().find(|request| !request.is_cross_repository);
    Ok(own.map(GhRequest::into_request))
}

pub(super) fn create(forge: &Forge, new: &NewRequest<'_>) -> Result<String, OpsError> {
    let title = format!("--title={}", new.title);
    let args =
        ["pr", "create", "--head", new.branch, "--base", new.into, &title, "--body-file", "-"];
    forge.run("open the pull request", &args, new.body)
}

pub(super) fn request(forge: &Forge, number: u64) -> Result<ForgeRequest, OpsError> {
    let what = "read the pull request";
    let number = number.to_string();
    let found: Vec<GhRequest> = forge.read(what, &["pr", "view", &number, "--json", ALL_FIELDS])?;
    let found = found.into_iter().next();
    found.map(GhRequest::into_request).ok_or_else(|| forge.failed(what, "it printed nothing"))
}

pub(super) fn comments(forge: &Forge, number: u64) -> Result<Vec<ForgeComment>, OpsError> {
    let mut all = Vec::new();
    let lists = [
        ("line", format!("pulls/{number}/comments")),
        ("comment", format!("issues/{number}/comments")),
        ("review", format!("pulls/{number}/reviews")),
    ];
    for (kind, list) in lists {
        let path = format!("repos/{{owner}}/{{repo}}/{list}?per_page=100");
        let pages: Vec<Vec<GhComment>> =
            forge.read("read the comments", &["api", "--paginate", &path])?;
        all.extend(pages.into_iter().flatten().filter_map(|comment| comment.into_comment(kind)));
    }
    Ok(all)
}

impl GhRequest {
    fn into_request(self) -> ForgeRequest {
        let state = match self.state.as_str() {
            "OPEN" => PullRequestState::Open,
            "MERGED" => PullRequestState::Merged,
            _ => PullRequestState::Closed,
        };
        let (url, head) = (text::line(&self.url), self.head_ref_oid);
        ForgeRequest { number: self.number, url, state, head }
    }
}

impl GhComment {
    /// Returns the comment, except one without a text and one of a review that is not submitted.
    fn into_comment(self, kind: &str) -> Option<ForgeComment> {
        let place = self.place();
        let text = self.body.filter(|body| !body.trim().is_empty())?;
        if self.state.as_deref() == Some("PENDING") {
            return None;
        }
        let login = self.user.map_or_else(|| "ghost".to_owned(), |user| user.login);
        // GitHub numbers the three kinds separately.
        Some(ForgeComment { id: format!("gh:{kind}:{}", self.id), login, text, place })
    }

    fn place(&self) -> Option<ForgePlace> {
        let path = self.path.clone()?;
        let (first, last, commit) = match self.line {
            Some(line) => (self.start_line, Some(line), &self.commit_id),
            None => (self.original_start_line, self.original_line, &self.original_commit_id),
        };
        let is_one_side = self.start_side.is_none() || self.start_side == self.side;
        let lines = last.map(|last| {
            let first = first.filter(|first| is_one_side && *first <= last);
            (first.unwrap_or(last), last)
        });
        let side = match self.side.as_deref() {
            Some("LEFT") => LineSide::Old,
            Some(_) | None => LineSide::New,
        };
        Some(ForgePlace { path, side, lines, commit: commit.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Vec<ForgeComment> {
        let all: Vec<GhComment> = serde_json::from_str(json).expect("JSON");
        all.into_iter().filter_map(|comment| comment.into_comment("line")).collect()
    }

    #[test]
    fn comments_of_github_are_read_with_their_places() {
        let all = read(
            r#"[
            {"id": 1, "body": "Why?", "user": {"login": "octo", "id": 7}, "path": "a.txt",
             "line": 4, "start_line": 2, "side": "RIGHT", "start_side": "RIGHT",
             "commit_id": "aaa", "original_commit_id": "bbb", "reactions": {"+1": 1}},
            {"id": 2, "body": "Old.", "user": null, "path": "a.txt", "line": null,
             "original_line": 9, "side": "LEFT", "commit_id": "aaa", "original_commit_id": "bbb"},
            {"id": 3, "body": "Both.", "path": "a.txt", "line": 5, "start_line": 3,
             "side": "RIGHT", "start_side": "LEFT", "commit_id": "aaa"},
            {"id": 4, "body": "File.", "path": "a.txt", "line": null, "commit_id": "aaa"},
            {"id": 5, "body": " ", "state": "APPROVED"},
            {"id": 6, "body": "later", "state": "PENDING"},
            {"id": 7, "body": null},
            {"id": 8, "body": "All good."}]"#,
        );
        let place = |side, lines, commit: &str| {
            let commit = (!commit.is_empty()).then(|| commit.to_owned());
            Some(ForgePlace { path: "a.txt".to_owned(), side, lines, commit })
        };
        let comment = |id: u32, login: &str, text: &str, place| ForgeComment {
            id: format!("gh:line:{id}"),
            login: login.to_owned(),
            text: text.to_owned(),
            place,
        };
        let expected = [
            comment(1, "octo", "Why?", place(LineSide::New, Some((2, 4)), "aaa")),
            comment(2, "ghost", "Old.", place(LineSide::Old, Some((9, 9)), "bbb")),
            comment(3, "ghost", "Both.", place(LineSide::New, Some((5, 5)), "aaa")),
            comment(4, "ghost", "File.", place(LineSide::New, None, "")),
            comment(8, "ghost", "All good.", None),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn states_of_github_are_read() {
        let state = |word: &str| {
            let json = format!(r#"{{"number": 1, "url": "u", "state": "{word}", "more": 1}}"#);
            serde_json::from_str::<GhRequest>(&json).expect("JSON").into_request().state
        };
        let states = ["OPEN", "CLOSED", "MERGED"].map(state);
        use PullRequestState::{Closed, Merged, Open};
        assert_eq!(states, [Open, Closed, Merged]);
    }
}
