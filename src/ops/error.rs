//! Errors of the verbs, with the class that gives the exit code and a hint for the user.

mod kind;
mod remote;
mod sources;

use std::path::PathBuf;
use std::time::Duration;

pub use kind::Kind;
pub(crate) use remote::RemoteFailure;
pub use sources::NO_TEAM;
pub(super) use sources::{adopt_hint, quoted};
use sources::{host_kind, meant, store_hint, store_kind, worktree_hint, worktree_kind};

use ::remote::HostError;
use ::worktree::WorktreeError;
use backend::BackendError;
use config::ConfigError;
use model::id::{HostName, IdError, MemberName, RequestId, TaskId, TeamName};
use model::mail::access::AccessDenied;
use model::members::placement::{BackendKind, Verdict};
use model::name::nearest;
use model::team::Member;
use model::team::settings::BackendChoice;
use store::{StoreError, TeamStore};
use sys::fs::FsError;

/// An error of a verb.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    #[error(transparent)]
    Store(StoreError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error(transparent)]
    File(#[from] FsError),
    /// The requested backend does not work here.
    #[error("backend `{backend}` is not available: {problem}")]
    BackendUnavailable { backend: BackendChoice, problem: String },
    #[error("profile `{name}` does not exist")]
    NoSuchProfile { name: String, known: Vec<String>, nearest: Option<String> },
    /// A user's profile that cannot be parsed.
    #[error("{}:{source}", file.display())]
    Profile { file: PathBuf, source: ConfigError },
    /// A user's template that cannot be parsed.
    #[error("{}:{source}", file.display())]
    Template { file: PathBuf, source: ConfigError },
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("{problem}")]
    NoSuchHost { problem: String, known: Vec<String>, nearest: Option<String> },
    #[error("{}", failure.text)]
    OnHost { host: HostName, failure: RemoteFailure },
    /// An agent file, or a directory of agent files, that cannot be read.
    #[error("{}: {problem}", file.display())]
    Role { file: PathBuf, problem: String },
    #[error("{problem}")]
    Usage { problem: String, hint: Option<String> },
    /// The member's program did not start; all that was created for it was removed.
    #[error("`{name}` did not start: {reason}{}", screen_block(screen))]
    StartFailed { name: MemberName, reason: String, screen: String },
    /// The placement was created, but its launcher did not start.
    #[error("`{name}` did not start: {reason}{}", screen_block(screen))]
    NoLauncher { name: MemberName, reason: String, screen: String },
    #[error("`{name}` did not start within {seconds} s{}", screen_block(screen))]
    StartDeadline {
        name: MemberName,
        seconds: u64,
        screen: String,
        /// True if not even the launcher has reported.
        silent: bool,
    },
    #[error("team `{team}` has live members: {}", names(members))]
    LiveMembers { team: TeamName, members: Vec<MemberName> },
    /// A teammate tried to start members beyond the allowed depth.
    #[error(
        "`{name}` is a teammate and may not start members: team `{team}` allows a depth of {max}, this would be depth {depth}"
    )]
    Nested { name: MemberName, team: String, depth: usize, max: usize },
    #[error("team `{team}` is led by process {pid}{}", on_host(host.as_deref()))]
    LedByAnother { team: TeamName, pid: i32, host: Option<String> },
    #[error("team `{team}` is led by another program: process {pid}{}", if *.unseen { ", which is not visible from this host or container" } else { "" })]
    LedByStranger { team: TeamName, pid: i32, unseen: bool },
    /// Another program made the team and does not record which process leads it.
    #[error(
        "team `{team}` may be led by another program{}",
        if signs.is_empty() { ", which does not record its process".to_owned() } else { format!(": {}", signs.join("; ")) }
    )]
    MayBeLed { team: TeamName, signs: Vec<String>, adopting: bool },
    /// The team name is in use; the hint depends on whether the team still runs.
    #[error("team `{team}` already exists{}", taken(*alive, *dead_lead))]
    TeamTaken {
        team: TeamName,
        /// True if a lead or a member runs, or if that is unknown.
        alive: bool,
        /// Pid of the last lead, if it died and no other leads.
        dead_lead: Option<i32>,
    },
    #[error("`{name}` runs a plain command and reads no mail")]
    ReadsNoMail { name: MemberName },
    #[error("`{name}` was not started by phalanx")]
    NotOurMember { name: MemberName },
    /// The placement is not proven to be the member's, so it is left alone.
    #[error("{place} of `{name}` is not touched: {verdict}")]
    NotProven { name: MemberName, place: String, verdict: Verdict },
    /// The member's backend does not support this verb.
    #[error(transparent)]
    CannotDo(BackendError),
    #[error("`{name}` has no terminal to show: {reason}")]
    NotAttachable { name: MemberName, team: TeamName, reason: String },
    #[error("this process cannot act as `{speaker}`: its token belongs to {}", holder(owner.as_ref()))]
    NotTheSpeaker { speaker: MemberName, owner: Option<MemberName> },
    /// A member of another team, which did not create this one (SEC-12).
    #[error("`{member}` of team `{own}` may not act in team `{team}`, which it did not create")]
    NotItsTeam { member: MemberName, own: TeamName, team: TeamName },
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error("`{name}` has no worktree")]
    NoWorktree { name: MemberName, known: Vec<MemberName> },
    /// The machine that runs the command does not have the repository of a worktree.
    #[error("the repository of `{name}`'s worktree, {repository}, is on host `{host}`")]
    RepositoryElsewhere { name: MemberName, repository: String, host: HostName },
    /// A member that is about to start on one host has its worktree on another.
    #[error("`{name}` has a worktree on host `{host}`: {path}")]
    WorktreeOnHost { name: MemberName, path: String, host: HostName },
    /// A teammate may not do this (SEC-04); `whom` is the member it would affect.
    #[error("`{speaker}` may not {deed}{}; only the lead may", of_whom(whom.as_ref()))]
    NotPermitted { speaker: MemberName, deed: &'static str, whom: Option<MemberName> },
    /// The access policy of the team refuses the origin of a request.
    #[error("{undone}: {why}")]
    AccessDenied { undone: String, why: AccessDenied },
    /// The request is already decided; each is answered only once.
    #[error("request `{id}` cannot be answered: {}", decided(state, by, at))]
    Decided { id: RequestId, state: &'static str, by: String, at: String },
    /// The request exists, but cannot take this answer.
    #[error("request `{id}`: {problem}")]
    AnswerRefused { id: RequestId, problem: String, hint: &'static str },
    #[error("there is no request `{id}`")]
    NoSuchRequest { id: RequestId, nearest: Option<String> },
    /// A permission mode that is valid, but disabled or above the lead's own.
    #[error("{problem}")]
    NotAllowed { problem: String },
    /// A hook of the user rejected the completion.
    #[error("task {task} was not completed; a hook rejected it: {said}")]
    HookRefused { task: TaskId, said: String },
    #[error("{what} within {} s", .limit.as_secs_f64())]
    Deadline { what: String, limit: Duration },
    /// A process that must end still runs.
    #[error("{what}")]
    NotEnded { what: String },
    /// A failure in the words of the operation that found it. No other code tells it apart.
    #[error("{problem}")]
    Described { kind: Kind, problem: String, hint: Option<String> },
    /// A failure without a class or hint of its own.
    #[error("{problem}")]
    Failed { problem: String },
}

fn taken(alive: bool, dead_lead: Option<i32>) -> String {
    match (alive, dead_lead) {
        (true, Some(pid)) => format!("; its lead {pid} died, its members run on"),
        (true, None) => String::new(),
        (false, Some(pid)) => format!("; its lead {pid} died, and no member runs"),
        (false, None) => "; it has no lead, and no member runs".to_owned(),
    }
}

/// Describes the owner of a token.
pub(super) fn holder(owner: Option<&MemberName>) -> String {
    owner.map_or("a run that has ended".to_owned(), |name| format!("`{name}`"))
}

fn on_host(host: Option<&str>) -> String {
    host.map(|host| format!(" on host {host}")).unwrap_or_default()
}

fn of_whom(whom: Option<&MemberName>) -> String {
    whom.map_or(String::new(), |name| format!(" `{name}`"))
}

pub(crate) fn screen_block(screen: &str) -> String {
    if screen.is_empty() { String::new() } else { format!("\nlast lines of its screen:\n{screen}") }
}

fn decided(state: &str, by: &str, at: &str) -> String {
    match state {
        "timed_out" | "answered_too_late" => {
            format!("it timed out at {at}, and its member was notified")
        }
        "asker_gone" => "the run that sent it has ended".to_owned(),
        "withdrawn" => {
            format!("its program stopped asking at {at}: it was answered in the pane, or withdrawn")
        }
        state => format!("it was {state} by {by} at {at}"),
    }
}

/// Joins names with commas.
pub(crate) fn names(list: &[MemberName]) -> String {
    list.iter().map(MemberName::to_string).collect::<Vec<_>>().join(", ")
}

impl From<StoreError> for OpsError {
    fn from(e: StoreError) -> OpsError {
        match e {
            StoreError::Name(e) => OpsError::Name(e),
            StoreError::File(e) => OpsError::File(e),
            e => OpsError::Store(e),
        }
    }
}

impl OpsError {
    /// A failure of this class, with the next step for the user.
    pub fn described(kind: Kind, problem: impl Into<String>, hint: impl Into<String>) -> OpsError {
        OpsError::Described { kind, problem: problem.into(), hint: Some(hint.into()) }
    }

    /// A refusal, with the next step for the user.
    pub fn refused(problem: impl Into<String>, hint: impl Into<String>) -> OpsError {
        OpsError::described(Kind::Refused, problem, hint)
    }

    /// The error for a wrong argument or setting, with the next step for the user.
    pub fn usage(problem: impl Into<String>, hint: impl Into<String>) -> OpsError {
        OpsError::Usage { problem: problem.into(), hint: Some(hint.into()) }
    }

    /// The refusal of a word, with the nearest known one and all known ones; more can follow them.
    pub(super) fn unknown_word(what: &str, given: &str, known: &[String], more: &str) -> OpsError {
        let nearest = nearest(given, known.iter().map(String::as_str)).map(str::to_owned);
        let problem = format!("{what} `{}` does not exist", given.escape_debug());
        let hint = meant(&nearest, &format!("{what}s"), known) + more;
        OpsError::described(Kind::Usage, problem, hint)
    }

    /// The error for a name that no member has. Its hint suggests one of `members`.
    pub(super) fn no_such_member<'m>(
        team: &TeamStore,
        name: &MemberName,
        members: impl IntoIterator<Item = &'m Member>,
    ) -> OpsError {
        let known = members.into_iter().map(|member| member.name.clone()).collect();
        StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into()
    }

    /// Returns true for a claim that was refused because the board had changed.
    pub fn is_refused_claim(&self) -> bool {
        matches!(self, OpsError::Store(StoreError::Refused(_)))
    }

    pub fn kind(&self) -> Kind {
        match self {
            OpsError::Described { kind, .. } => *kind,
            OpsError::Store(e) => store_kind(e),
            OpsError::Backend(BackendError::OnHost { is_refusal: true, .. }) => Kind::Refused,
            OpsError::Backend(_)
            | OpsError::BackendUnavailable { .. }
            | OpsError::NoLauncher { .. } => Kind::Backend,
            OpsError::Host(e) => host_kind(e),
            OpsError::OnHost { failure, .. } => failure.kind,
            // No team can be stored without a writable config root.
            OpsError::File(_) => Kind::Backend,
            OpsError::Name(_)
            | OpsError::NoSuchProfile { .. }
            | OpsError::Profile { .. }
            | OpsError::Template { .. }
            | OpsError::Role { .. }
            | OpsError::Usage { .. } => Kind::Usage,
            OpsError::NoWorktree { .. }
            | OpsError::NoSuchHost { .. }
            | OpsError::NoSuchRequest { .. } => Kind::NotFound,
            OpsError::Worktree(e) => worktree_kind(e),
            OpsError::StartFailed { .. } | OpsError::NotEnded { .. } | OpsError::Failed { .. } => {
                Kind::Failed
            }
            OpsError::StartDeadline { .. } | OpsError::Deadline { .. } => Kind::Deadline,
            OpsError::LiveMembers { .. }
            | OpsError::NotProven { .. }
            | OpsError::CannotDo(_)
            | OpsError::LedByAnother { .. }
            | OpsError::Nested { .. }
            | OpsError::ReadsNoMail { .. }
            | OpsError::LedByStranger { .. }
            | OpsError::MayBeLed { .. }
            | OpsError::TeamTaken { .. }
            | OpsError::NotAttachable { .. }
            | OpsError::RepositoryElsewhere { .. }
            | OpsError::WorktreeOnHost { .. }
            | OpsError::NotTheSpeaker { .. }
            | OpsError::NotItsTeam { .. }
            | OpsError::NotPermitted { .. }
            | OpsError::AccessDenied { .. }
            | OpsError::Decided { .. }
            | OpsError::AnswerRefused { .. }
            | OpsError::NotAllowed { .. }
            | OpsError::HookRefused { .. }
            | OpsError::NotOurMember { .. } => Kind::Refused,
        }
    }

    /// Returns the next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            OpsError::Store(e) => store_hint(e),
            OpsError::BackendUnavailable { backend: BackendChoice::Tmux, .. } => Some(
                "install it (`apt-get install tmux`), or use `--backend auto` or `--backend pty`".to_owned(),
            ),
            OpsError::BackendUnavailable { backend: BackendChoice::Iterm2, .. } => Some(
                "run it in an iTerm2 session on this Mac, outside tmux and SSH, or use `--backend auto`"
                    .to_owned(),
            ),
            OpsError::Backend(e) => e.hint(),
            OpsError::NoSuchProfile { nearest, known, .. } => Some(meant(nearest, "profiles", known)),
            OpsError::Template { .. } => Some("`phalanx docs manifest templates` describes the placeholders".to_owned()),
            OpsError::Host(e) => e.hint(),
            OpsError::NoSuchHost { known, .. } if known.is_empty() => Some(
                "configure one with `[[host]]` in the manifest or in hosts.toml; see `phalanx docs hosts`".to_owned(),
            ),
            OpsError::NoSuchHost { nearest, known, .. } => Some(meant(nearest, "hosts", known)),
            OpsError::OnHost { host, failure } => Some(match &failure.hint {
                Some(hint) => format!("on host {host}: {hint}"),
                None => format!("this happened on host {host}"),
            }),
            OpsError::Role { .. } => Some("the format is described in `phalanx docs manifest roles`".to_owned()),
            OpsError::Profile { .. } => Some("the keys are described in `phalanx docs profiles`".to_owned()),
            OpsError::Usage { hint, .. } | OpsError::Described { hint, .. } => hint.clone(),
            OpsError::LiveMembers { team, .. } => Some(format!(
                "end them first: `phalanx shutdown --all -t {team}`, with `--force` without asking"
            )),
            OpsError::Nested { .. } => Some(
                "ask the lead to do it (`phalanx send team-lead TEXT`), or allow it with `max_depth` in the manifest's [team]"
                    .to_owned(),
            ),
            OpsError::LedByAnother { team, .. } => Some(format!(
                "show it with `phalanx status -t {team}`, or end it with `phalanx down -t {team}`"
            )),
            OpsError::LedByStranger { team, unseen, .. } => Some(match unseen {
                false => format!(
                    "send it a message with `phalanx send`, or end that program and run `phalanx lead -t {team}`"
                ),
                true => format!("if that process has ended, take the team over with `phalanx adopt --force -t {team}`"),
            }),
            OpsError::MayBeLed { team, adopting, .. } => Some(adopt_hint(team, *adopting)),
            OpsError::TeamTaken { team, alive: true, dead_lead: Some(_) } => Some(format!(
                "take it over with `phalanx adopt -t {team}`, or end it with `phalanx down -t {team}`"
            )),
            OpsError::TeamTaken { team, alive: true, dead_lead: None } => {
                Some(format!(
                    "choose another name, or end that team with `phalanx down -t {team}` (`--force` if its files are broken)"
                ))
            }
            OpsError::TeamTaken { team, alive: false, .. } => Some(format!(
                "take it over with `phalanx adopt -t {team}`, or delete it with `phalanx team delete -t {team}`"
            )),
            OpsError::ReadsNoMail { name } => {
                Some(format!("type into its terminal: `phalanx type {name} TEXT --enter`"))
            }
            OpsError::NotProven { name, .. } => Some(format!("see why with `phalanx explain {name}`")),
            OpsError::CannotDo(BackendError::NotShown { .. }) => {
                Some("bring the team to this terminal with `phalanx attach`".to_owned())
            }
            OpsError::CannotDo(BackendError::CannotDo { backend: BackendKind::Pty, .. }) => {
                Some("bring a member to this terminal with `phalanx attach NAME`".to_owned())
            }
            OpsError::CannotDo(_) => Some("follow a member's output with `phalanx logs NAME -f`".to_owned()),
            OpsError::NotAttachable { name, team, .. } => {
                Some(format!("show its output with `phalanx logs {name} -t {team}`"))
            }
            OpsError::NotTheSpeaker { owner: Some(owner), .. } => {
                Some(format!("omit `--as`, or use `--as {owner}`"))
            }
            OpsError::NotTheSpeaker { owner: None, .. } => {
                Some("if you are a person at this terminal, use `env -u PHALANX_TOKEN phalanx …`".to_owned())
            }
            OpsError::NotItsTeam { member, own, team } if member.is_lead() => Some(format!(
                "hand over to its lead with `phalanx handoff put {team} -t {own} --type TYPE`"
            )),
            OpsError::NotItsTeam { own, .. } => Some(format!("act in your own team: `-t {own}`")),
            OpsError::Worktree(e) => worktree_hint(e),
            OpsError::NoWorktree { known, .. } if known.is_empty() => {
                Some("give a member one with `phalanx spawn NAME --worktree`".to_owned())
            }
            OpsError::NoWorktree { known, .. } => Some(format!("worktrees: {}", names(known))),
            OpsError::RepositoryElsewhere { host, .. } => Some(format!("run the command on `{host}`")),
            OpsError::WorktreeOnHost { name, host, .. } => Some(format!(
                "start it there with `--host {host}`, or first run `phalanx worktree remove {name}`"
            )),
            OpsError::NotPermitted { .. } => Some("ask the lead: `phalanx send team-lead TEXT`".to_owned()),
            OpsError::AccessDenied { why, .. } => Some(why.hint()),
            OpsError::Decided { .. } => Some("list all requests with `phalanx requests --all`".to_owned()),
            OpsError::AnswerRefused { hint, .. } => Some((*hint).to_owned()),
            OpsError::NoSuchRequest { nearest: Some(id), .. } => Some(format!("did you mean `{id}`?")),
            OpsError::NoSuchRequest { nearest: None, .. } => {
                Some("list all requests with `phalanx requests --all`".to_owned())
            }
            OpsError::NotAllowed { .. } => Some("choose another mode".to_owned()),
            OpsError::HookRefused { task, .. } => {
                Some(format!("fix what the hook reports, then run `phalanx task complete {task}` again"))
            }
            OpsError::NotOurMember { .. } => Some("ask the lead that started it".to_owned()),
            OpsError::Name(e) => e.alternative().map(|name| format!("use `{name}`")),
            OpsError::BackendUnavailable { .. }
            | OpsError::File(_)
            | OpsError::StartFailed { .. }
            | OpsError::NoLauncher { .. }
            | OpsError::StartDeadline { .. }
            | OpsError::Deadline { .. }
            | OpsError::NotEnded { .. }
            | OpsError::Failed { .. } => None,
        }
    }
}
