//! Merge requests of GitLab, by `glab`.

use serde::Deserialize;

use super::program::{Forge, ForgeComment, ForgePlace, ForgeRequest, NewRequest};
use crate::OpsError;
use model::review::{LineSide, PullRequestState};
use model::text;

/// The merge requests of the repository in the current directory.
const REQUESTS: &str = "projects/:id/merge_requests";

#[derive(Debug, Deserialize)]
struct GlabRequest {
    iid: u64,
    web_url: String,
    state: String,
    /// The last commit.
    sha: Option<String>,
    /// Differs from the target for a branch of a fork.
    #[serde(default)]
    source_project_id: Option<u64>,
    #[serde(default)]
    target_project_id: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct GlabDiscussion {
    #[serde(default)]
    notes: Vec<GlabNote>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlabNote {
    id: u64,
    body: Option<String>,
    author: Option<GlabAuthor>,
    /// Written by GitLab, for example about a new commit.
    system: bool,
    position: Option<GlabPosition>,
}

#[derive(Debug, Deserialize)]
struct GlabAuthor {
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlabPosition {
    head_sha: Option<String>,
    old_path: Option<String>,
    new_path: Option<String>,
    old_line: Option<u32>,
    new_line: Option<u32>,
    line_range: Option<GlabRange>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlabRange {
    start: Option<GlabLine>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlabLine {
    old_line: Option<u32>,
    new_line: Option<u32>,
}

pub(super) fn open_request(forge: &Forge, branch: &str) -> Result<Option<ForgeRequest>, OpsError> {
    let path = format!("{REQUESTS}?state=opened&source_branch={}", encoded(branch));
    let found: Vec<Vec<GlabRequest>> = forge.read("list the merge requests", &["api", &path])?;
    let is_own = |request: &GlabRequest| request.source_project_id == request.target_project_id;
    Ok(found.into_iter().flatten().find(is_own).map(GlabRequest::into_request))
}

pub(super) fn create(forge: &Forge, new: &NewRequest<'_>) -> Result<String, OpsError> {
    let title = format!("--title={}", new.title);
    // `-` alone would open an editor, and the body has more.
    let body = format!("--description={}", new.body);
    let branches = ["--source-branch", new.branch, "--target-branch", new.into];
    let args = [&["mr", "create"], &branches[..], &[&title, &body, "--yes"]].concat();
    forge.run("open the merge request", &args, "")
}

pub(super) fn request(forge: &Forge, number: u64) -> Result<ForgeRequest, OpsError> {
    let what = "read the merge request";
    let path = format!("{REQUESTS}/{number}");
    let found: Vec<GlabRequest> = forge.read(what, &["api", &path])?;
    let found = found.into_iter().next();
    found.map(GlabRequest::into_request).ok_or_else(|| forge.failed(what, "it printed nothing"))
}

pub(super) fn comments(forge: &Forge, number: u64) -> Result<Vec<ForgeComment>, OpsError> {
    let path = format!("{REQUESTS}/{number}/discussions?per_page=100");
    let pages: Vec<Vec<GlabDiscussion>> =
        forge.read("read the comments", &["api", "--paginate", &path])?;
    let notes = pages.into_iter().flatten().flat_map(|discussion| discussion.notes);
    Ok(notes.filter_map(GlabNote::into_comment).collect())
}

/// Encodes a value for the query of an address.
fn encoded(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(byte).collect()
}

impl GlabRequest {
    fn into_request(self) -> ForgeRequest {
        let state = match self.state.as_str() {
            // A locked one is about to be merged.
            "opened" | "locked" => PullRequestState::Open,
            "merged" => PullRequestState::Merged,
            _ => PullRequestState::Closed,
        };
        ForgeRequest { number: self.iid, url: text::line(&self.web_url), state, head: self.sha }
    }
}

impl GlabNote {
    fn into_comment(self) -> Option<ForgeComment> {
        let text = self.body.filter(|body| !self.system && !body.trim().is_empty())?;
        let login = self.author.map_or_else(|| "ghost".to_owned(), |author| author.username);
        let place = self.position.and_then(GlabPosition::into_place);
        Some(ForgeComment { id: format!("glab:note:{}", self.id), login, text, place })
    }
}

impl GlabPosition {
    fn into_place(self) -> Option<ForgePlace> {
        let start = self.line_range.and_then(|range| range.start).unwrap_or_default();
        // A line that was not changed has both numbers.
        let (side, path, first, last) = match (self.new_line, self.old_line) {
            (None, Some(last)) => (LineSide::Old, self.old_path?, start.old_line, Some(last)),
            (last, _) => (LineSide::New, self.new_path?, start.new_line, last),
        };
        let lines = last.map(|last| (first.filter(|first| *first <= last).unwrap_or(last), last));
        Some(ForgePlace { path, side, lines, commit: self.head_sha })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_gitlab_are_read_with_their_places() {
        let json = r#"[
            {"id": "d1", "individual_note": false, "notes": [
                {"id": 1, "type": "DiffNote", "body": "Why?", "author": {"username": "root"},
                 "system": false, "position": {"base_sha": "b", "head_sha": "aaa",
                    "old_path": "old.txt", "new_path": "a.txt", "old_line": null, "new_line": 4,
                    "line_range": {"start": {"new_line": 2}, "end": {"new_line": 4}}}},
                {"id": 2, "body": "Gone.", "author": {"username": "ann"}, "position": {
                    "head_sha": "aaa", "old_path": "old.txt", "new_path": "a.txt", "old_line": 9}}]},
            {"id": "d2", "individual_note": true, "notes": [
                {"id": 3, "body": "added 1 commit", "system": true},
                {"id": 4, "body": "All good."}]}]"#;
        let all: Vec<GlabDiscussion> = serde_json::from_str(json).expect("JSON");
        let notes = all.into_iter().flat_map(|discussion| discussion.notes);
        let all: Vec<ForgeComment> = notes.filter_map(GlabNote::into_comment).collect();
        let place = |path: &str, side, lines| {
            let (path, commit) = (path.to_owned(), Some("aaa".to_owned()));
            Some(ForgePlace { path, side, lines: Some(lines), commit })
        };
        let comment = |id: u32, login: &str, text: &str, place| ForgeComment {
            id: format!("glab:note:{id}"),
            login: login.to_owned(),
            text: text.to_owned(),
            place,
        };
        let expected = [
            comment(1, "root", "Why?", place("a.txt", LineSide::New, (2, 4))),
            comment(2, "ann", "Gone.", place("old.txt", LineSide::Old, (9, 9))),
            comment(4, "ghost", "All good.", None),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn branch_in_a_query_is_encoded() {
        assert_eq!(encoded("demo-ada_1.0~"), "demo-ada_1.0~");
        assert_eq!(encoded("fix/a&b=c%#+é"), "fix%2Fa%26b%3Dc%25%23%2B%C3%A9");
    }
}
