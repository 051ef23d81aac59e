//! Worktrees for members that are about to start on another host: brings the commit and the files
//! of a repository here to the host's copy of it.

use std::path::PathBuf;

use crate::hosts::deliver::{send_commit, this_machine};
use crate::hosts::link::{GIT, HostLink};
use crate::hosts::wire::HostRequest;
use crate::team::worktree::{must_be_here, must_be_on, not_managed, title};
use crate::{Context, OpsError};
use model::id::MemberName;
use model::members::launch::LaunchSpec;
use model::team::settings::Settings;
use model::team::worktree::{Checkout, WorktreeOrigin, WorktreeRequest};
use store::TeamStore;
use sys::rand;
use worktree::{Repository, WorktreeState};

/// Brings the commits and files from which the worktrees of `specs` are made to a host, and returns
/// the specs as the host needs them. A member that has its worktree there needs nothing. With
/// `is_unique`, a name may change on the host, so that a known worktree is not taken for that of
/// the new member. Appends the operations whose files are on the host to `tokens`, also on failure.
///
/// # Errors
/// [`OpsError::Worktree`] if the repository here cannot be used, [`OpsError::WorktreeOnHost`] for
/// a worktree on another host, [`OpsError::RepositoryElsewhere`] for one whose repository is on
/// another machine and that is gone; failures of the host.
pub(super) fn provide(
    ctx: &Context,
    team: &TeamStore,
    link: &HostLink,
    specs: Vec<LaunchSpec>,
    is_unique: bool,
    tokens: &mut Vec<String>,
) -> Result<Vec<LaunchSpec>, OpsError> {
    if specs.iter().all(|spec| spec.worktree.is_none()) {
        return Ok(specs);
    }
    let mut provided = Vec::new();
    let settings = team.settings()?;
    let settings = settings.ok_or_else(|| not_managed(team))?;
    for spec in specs {
        let Some(request) = spec.worktree.clone() else {
            provided.push(spec);
            continue;
        };
        let name = MemberName::new(&spec.name)?;
        let known = settings.checkouts.get(&name).filter(|_| !is_unique);
        let kept = known.map(|had| keep(team, link, &name, had, &request)).transpose()?.flatten();
        let origin = match kept {
            Some(origin) => origin,
            None => {
                let source = CommitSource { ctx, team, link, settings: &settings };
                let token = rand::token();
                tokens.push(token.clone());
                source.send(&spec, &name, &request, token)?
            }
        };
        // The directory is one of this machine.
        provided.push(LaunchSpec { cwd: None, origin: Some(origin), ..spec });
    }
    Ok(provided)
}

/// Returns the origin of a worktree that the member has on the host already; `None` if the host
/// has to make one.
fn keep(
    team: &TeamStore,
    link: &HostLink,
    name: &MemberName,
    had: &Checkout,
    request: &WorktreeRequest,
) -> Result<Option<WorktreeOrigin>, OpsError> {
    must_be_on(link.host(), name, had)?;
    let Some(origin) = had.known_origin() else { return Ok(None) };
    if request.branch(&had.branch) != had.branch {
        return Ok(None);
    }
    let state: WorktreeState = link.call(HostRequest::Worktree(had.clone()), GIT)?;
    if state.is_usable() {
        return Ok(Some(origin));
    }
    must_be_here(team, name, had)?;
    Ok(None)
}

/// This machine as the source of a worktree.
struct CommitSource<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    link: &'a HostLink,
    settings: &'a Settings,
}

impl CommitSource<'_> {
    fn send(
        &self,
        spec: &LaunchSpec,
        name: &MemberName,
        request: &WorktreeRequest,
        token: String,
    ) -> Result<WorktreeOrigin, OpsError> {
        let here = this_machine(self.team)?;
        let cwd = self.ctx.caller.cwd.join(spec.cwd.as_deref().unwrap_or("."));
        let cwd: PathBuf = cwd.components().collect();
        let repository = Repository::find(&cwd, &self.ctx.caller.env)?;
        let rules = &self.settings.worktree;
        let base = spec.base.as_deref().or(rules.base.as_deref());
        let title = title(self.team, name);
        let (start, from) = repository.start_for(self.link.host(), &title, request, base)?;
        let files = repository.files_to_copy(rules)?;
        let top = repository.top().to_string_lossy().into_owned();
        let copy = send_commit(self.link, &here, &repository, &start, &token)?;
        for (nth, (_, bytes)) in files.iter().enumerate() {
            self.link.upload(bytes, &token, &nth.to_string())?;
        }
        Ok(WorktreeOrigin {
            host: here,
            repository: top,
            copy,
            start,
            from,
            files: files.into_iter().map(|(file, _)| file).collect(),
            staged: Some(self.link.transfer_dir(&token)),
        })
    }
}
