//! The definition of the command line: every verb with its arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::env::Shells;

use crate::acp::AcpArgs;
use crate::args::{Global, MemberArg};
use crate::board::task::TaskVerb;
use crate::board::workspace::WorkspaceVerb;
use crate::board::worktree::WorktreeVerb;
use crate::decisions::answer::AnswerArgs;
use crate::decisions::ask::{AskVerb, PlanVerb};
use crate::decisions::requests::{ModeArgs, RequestsArgs, RulesArgs};
use crate::docs::DocsArgs;
use crate::doctor::DoctorArgs;
use crate::ending::shutdown::{DownArgs, ShutdownArgs};
use crate::fail::exits;
use crate::groups::short_help;
use crate::hosts::host::HostVerb;
use crate::hosts::store::StoreVerb;
use crate::mail::handoff::HandoffVerb;
use crate::mail::inbox::InboxArgs;
use crate::mail::{BroadcastArgs, SendArgs};
use crate::mcp::McpArgs;
use crate::members::input::{KeysArgs, TypeArgs};
use crate::members::profile::ProfileVerb;
use crate::members::rename::RenameArgs;
use crate::members::resume::{RestartArgs, ResumeArgs};
use crate::members::spawn::SpawnArgs;
use crate::members::worker::HookArgs;
use crate::review::WorkReviewArgs;
use crate::team::TeamVerb;
use crate::team::brief::BriefArgs;
use crate::team::closing::ReportArgs;
use crate::team::init::InitArgs;
use crate::team::lead::{AdoptArgs, LeadArgs};
use crate::team::manifest::ManifestVerb;
use crate::team::template::TemplateVerb;
use crate::team::up::UpArgs;
use crate::views::attach::{AttachArgs, PeekArgs};
use crate::views::events::EventsArgs;
use crate::views::logs::LogsArgs;
use crate::views::status::StatusArgs;
use crate::views::wait::WaitArgs;
use crate::watch::args::WatchArgs;
use model::board::task_ref::TaskRef;
use model::code::CodeLanguage;
use sys::selftest::HelperRole;

const EXAMPLES: &str = "\
Examples:
  phalanx init                               write a manifest that runs
  phalanx up team.toml                       run a team from a manifest, to the end
  phalanx up review --task \"Review HEAD\"    or one from a template
  phalanx team create demo                   or build a team by hand:
  phalanx spawn ada -t demo                    add a worker
  phalanx spawn log -t demo -- tail -f x.log   add any command line
  phalanx task create \"Run the tests\" -t demo -- cargo test
  phalanx status -t demo
  phalanx down -t demo";

fn after_help() -> String {
    let codes = exits().map(|(code, _, meaning)| format!("\n  {code:>3}  {meaning}"));
    format!("{EXAMPLES}\n\nExit codes:{}", codes.collect::<String>())
}

/// Leads teams of command-line agents in tmux panes or its own terminals.
#[derive(Debug, Parser)]
#[command(
    name = "phalanx",
    version,
    after_help = after_help(),
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    /// Absent for plain `phalanx`, which prints an overview.
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Verb {
    Init(InitArgs),
    #[command(alias = "run")]
    Up(UpArgs),
    Down(DownArgs),
    Lead(LeadArgs),
    Adopt(AdoptArgs),
    Resume(ResumeArgs),
    /// Create, list, show and delete teams.
    #[command(subcommand)]
    Team(TeamVerb),
    Spawn(Box<SpawnArgs>),
    /// List, show and test the profiles of programs.
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// List and show the templates of teams, for `init` and `up`.
    #[command(subcommand)]
    Template(TemplateVerb),
    /// Describe manifests, for editors.
    #[command(subcommand)]
    Manifest(ManifestVerb),
    Send(SendArgs),
    Broadcast(BroadcastArgs),
    /// Send typed messages to members, and hand over to other teams.
    #[command(subcommand)]
    Handoff(HandoffVerb),
    Type(TypeArgs),
    Keys(KeysArgs),
    Inbox(InboxArgs),
    /// Create, list, claim and complete tasks.
    #[command(subcommand)]
    Task(TaskVerb),
    Requests(RequestsArgs),
    Mode(ModeArgs),
    Rules(RulesArgs),
    #[command(alias = "stop")]
    Shutdown(ShutdownArgs),
    Restart(RestartArgs),
    Rename(RenameArgs),
    /// List, compare and remove the git worktrees of members.
    #[command(subcommand)]
    Worktree(WorktreeVerb),
    Review(WorkReviewArgs),
    /// List and check the hosts on which members can run.
    #[command(subcommand)]
    Host(HostVerb),
    /// Set up and check a database that several hosts share.
    #[command(subcommand)]
    Store(StoreVerb),
    /// List, read, write and delete the files that members produce.
    #[command(subcommand)]
    Workspace(WorkspaceVerb),
    Answer(AnswerArgs),
    /// Submit a plan to the lead.
    #[command(subcommand)]
    Plan(PlanVerb),
    /// Ask the lead for permission.
    #[command(subcommand)]
    Ask(AskVerb),
    Status(StatusArgs),
    /// List every team on this machine.
    ///
    /// Includes teams of other config roots if one of their members runs as this user.
    Ps,
    Report(ReportArgs),
    Doctor(DoctorArgs),
    /// Explain a member's state: the known facts and their sources.
    Explain(MemberArg),
    /// Show the dashboard in a popup of tmux.
    ///
    /// It shows the same as `phalanx watch`, also the list of several teams, and closes with it.
    Popup,
    /// Bring a member's pane to the front.
    Focus(MemberArg),
    /// Hide a member's pane; the member keeps running.
    Hide(MemberArg),
    /// Show a hidden pane again.
    Show(MemberArg),
    Brief(BriefArgs),
    Mcp(McpArgs),
    Acp(AcpArgs),
    Hook(HookArgs),
    Wait(WaitArgs),
    Watch(WatchArgs),
    Events(EventsArgs),
    Attach(AttachArgs),
    Peek(PeekArgs),
    Logs(LogsArgs),
    /// Describe the verbs of every day, all verbs, or one.
    #[command(after_help = "Examples:\n  phalanx help --all\n  phalanx help task create")]
    Help {
        /// Verb, such as `task create` [default: phalanx itself].
        #[arg(value_name = "VERB")]
        words: Vec<String>,
        /// List all verbs, with the global options and the exit codes.
        #[arg(long, conflicts_with = "words")]
        all: bool,
    },
    Docs(DocsArgs),
    /// Print the completion script of a shell.
    #[command(
        after_help = "Examples:\n  source <(phalanx completions bash)        in ~/.bashrc\n  \
        source <(phalanx completions zsh)         in ~/.zshrc, after compinit\n  \
        phalanx completions fish | source         in ~/.config/fish/config.fish"
    )]
    Completions {
        /// Shell that the script is for.
        #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
        shell: String,
    },
    /// Print the manual page of phalanx or of one verb.
    #[command(after_help = "Examples:\n  phalanx man >~/.local/share/man/man1/phalanx.1\n  \
        phalanx man team create >~/.local/share/man/man1/phalanx-team-create.1")]
    Man {
        /// Verb, such as `team create` [default: phalanx itself].
        #[arg(value_name = "VERB")]
        words: Vec<String>,
        /// Write the pages of all verbs into this directory instead, which must exist.
        #[arg(long, value_name = "DIR", conflicts_with = "words")]
        dir: Option<PathBuf>,
    },
    /// Print the version.
    Version,
    /// Same as `team list`.
    #[command(hide = true)]
    Ls,
    /// Same as `team delete --team TEAM`.
    #[command(hide = true)]
    Rm {
        /// Team to delete.
        #[arg(value_name = "TEAM", conflicts_with = "team")]
        name: String,
        /// Kill its members first, without asking.
        #[arg(long)]
        force: bool,
    },
    // `--help` describes `shutdown`.
    /// Same as `shutdown --force`.
    #[command(hide = true)]
    Kill(ShutdownArgs),
    /// Same as `task retry`.
    #[command(hide = true)]
    Retry {
        /// Id or key of the task.
        id: TaskRef,
    },
}

/// The verbs of processes that phalanx starts itself. They have a definition of their own because a
/// team starts two of them for each member, and that of the other verbs takes most of their start.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(name = "phalanx")]
pub(super) enum InternalVerb {
    /// The launcher in every pane.
    Exec { spec: PathBuf },
    /// Finds the words of the code on stdin for the colours of `review`.
    Highlight { language: CodeLanguage },
    /// A helper process of `doctor --self-test`.
    SelfTestHelper { role: HelperRole, dir: PathBuf },
    /// The built-in teammate.
    Worker,
    /// The wrapper around a program that is not a native member.
    Wrap,
}

impl InternalVerb {
    /// Parses a command line; `None` for that of another verb.
    pub(super) fn parse(args: &[OsString]) -> Option<Result<InternalVerb, clap::Error>> {
        let verb = args.get(1)?.to_str()?;
        InternalVerb::has_subcommand(verb).then(|| InternalVerb::try_parse_from(args))
    }
}

/// Parses a command line. The arguments of a verb are defined only if it is given: to define those
/// of all verbs takes longer than most verbs run. Help and errors also describe other verbs, so
/// they come from a second parse with all of them.
///
/// # Errors
/// A command line that is not valid, or that requests help or the version.
pub(super) fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(args).or_else(|error| {
        if error.kind() == ErrorKind::DisplayVersion {
            return Err(error);
        }
        let mut all = definition();
        let mut matches = all.try_get_matches_from_mut(args)?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut all))
    })
}

/// Returns the definition of the command line, with the arguments and descriptions of all verbs.
pub(super) fn definition() -> Command {
    let mut root = Cli::command();
    root.build();
    let help = short_help(&root);
    root.help_template(help)
}

/// Returns the verbs under `command` that people use.
pub(super) fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}
