//! Pull requests of the service that a repository has: GitHub by `gh`, else GitLab by `glab`.

use std::path::Path;

use strum::VariantArray;

use super::program::{Forge, ForgeComment, ForgeRequest, NewRequest};
use super::{gh, glab};
use crate::{Context, OpsError};
use model::review::{ForgeTool, PullRequestState};
use model::text;

impl Forge {
    /// Finds the first program that is installed, logged in, and can read the pull requests of the
    /// repository. Returns it with the open one of the branch.
    ///
    /// # Errors
    /// A refusal that names the problem of each program.
    pub(super) fn find(
        ctx: &Context,
        dir: &Path,
        branch: &str,
    ) -> Result<(Forge, Option<ForgeRequest>), OpsError> {
        let mut problems = Vec::new();
        for tool in ForgeTool::VARIANTS {
            let found = Forge::new(ctx, *tool, dir).and_then(|forge| {
                forge.must_be_logged_in()?;
                let open = forge.open_request(branch)?;
                Ok((forge, open))
            });
            match found {
                Ok(found) => return Ok(found),
                Err(problem) => problems.push(problem.to_string()),
            }
        }
        Err(OpsError::refused(
            format!("no program can open a pull request: {}", problems.join("; ")),
            "install `gh` for GitHub or `glab` for GitLab, and log in with `gh auth login` or \
             `glab auth login`",
        ))
    }

    fn open_request(&self, branch: &str) -> Result<Option<ForgeRequest>, OpsError> {
        match self.tool {
            ForgeTool::Gh => gh::open_request(self, branch),
            ForgeTool::Glab => glab::open_request(self, branch),
        }
    }

    /// Opens a pull request.
    pub(super) fn create(&self, new: &NewRequest<'_>) -> Result<ForgeRequest, OpsError> {
        let printed = match self.tool {
            ForgeTool::Gh => gh::create(self, new)?,
            ForgeTool::Glab => glab::create(self, new)?,
        };
        match printed_request(&printed) {
            Some(made) => Ok(made),
            None => self.open_request(new.branch)?.ok_or_else(|| {
                self.failed("open the pull request", "it printed no address of one")
            }),
        }
    }

    pub(super) fn request(&self, number: u64) -> Result<ForgeRequest, OpsError> {
        match self.tool {
            ForgeTool::Gh => gh::request(self, number),
            ForgeTool::Glab => glab::request(self, number),
        }
    }

    /// Returns the comments of a pull request, those on lines first.
    pub(super) fn comments(&self, number: u64) -> Result<Vec<ForgeComment>, OpsError> {
        match self.tool {
            ForgeTool::Gh => gh::comments(self, number),
            ForgeTool::Glab => glab::comments(self, number),
        }
    }
}

/// Returns the pull request whose address a program printed when it opened it.
fn printed_request(printed: &str) -> Option<ForgeRequest> {
    let is_address = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let url = printed.split_whitespace().rev().find(is_address)?;
    let (rest, number) = url.rsplit_once('/')?;
    let is_request = rest.ends_with("/pull") || rest.ends_with("/merge_requests");
    let number = number.parse().ok().filter(|_| is_request)?;
    Some(ForgeRequest { number, url: text::line(url), state: PullRequestState::Open, head: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_new_request_is_read_from_its_address() {
        let read = |printed: &str| printed_request(printed).map(|made| (made.number, made.url));
        let gh = "Warning: 1 uncommitted change\nhttps://github.com/o/r/pull/41\n";
        assert_eq!(read(gh), Some((41, "https://github.com/o/r/pull/41".to_owned())));
        let glab = "!7 Title (demo-ada)\n https://gitlab.com/g/p/-/merge_requests/7\n\n";
        assert_eq!(read(glab), Some((7, "https://gitlab.com/g/p/-/merge_requests/7".to_owned())));
        for other in ["", "41", "https://github.com/o/r", "https://github.com/o/r/issues/41"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
