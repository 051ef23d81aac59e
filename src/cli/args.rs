//! The command line as clap parses it: verbs, options and their help texts.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::env::Shells;
use strum::VariantNames;

use super::args_answer::Answer;
use super::args_ask::{AskVerb, PlanVerb};
use super::args_input::{Keys, Type};
use super::args_lead::{Adopt, Lead, Resume};
use super::args_profile::ProfileVerb;
use super::args_request::{Requests, Rules, SetMode};
use super::args_send::Send;
use super::args_short::{Init, Kill, Restart, Rm};
use super::args_task::{TaskVerb, task_id};
use super::args_worktree::{WorktreeVerb, wish};
use super::brief::Brief;
use super::hook::Hook;
use super::out::Color;
use crate::model::id::TaskId;
use crate::model::mode::Mode;
use crate::model::placement::Layout;
use crate::model::rules::Rule;
use crate::model::settings::BackendChoice;
use crate::model::worktree::WorktreeRequest;
use crate::ops::spawn::StartedWhen;
use crate::ops::wait::Until;

const EXAMPLES: &str = "\
Examples:
  phalanx init                               write a manifest that runs
  phalanx up team.toml                       run a team from a manifest, to the end
  phalanx team create demo                   or build a team by hand:
  phalanx spawn ada -t demo                    add a worker
  phalanx spawn log -t demo -- tail -f x.log   add any command line
  phalanx task create \"Run the tests\" -t demo -- cargo test
  phalanx status -t demo
  phalanx down -t demo

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 timed out,
6 no backend or no place for files, 70 internal error, 130 interrupted.";

/// Leads teams of command-line agents in tmux panes or its own terminals.
#[derive(Debug, Parser)]
#[command(name = "phalanx", version, after_help = EXAMPLES, max_term_width = 100)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    /// Absent for plain `phalanx`, which prints an overview.
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

/// Options of every verb.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Team to use [default: $PHALANX_TEAM, else the only team].
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
    /// Directory that holds the teams [default: $PHALANX_CONFIG_DIR, $CLAUDE_CONFIG_DIR,
    /// ~/.claude].
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,
    /// Member to act as [default: $PHALANX_AGENT_NAME, else team-lead].
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(super) speaker: Option<String>,
    /// Print JSON: one document, or one per line for streams.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print only requested data and failures.
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Print more details.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(super) color: Color,
}

impl ValueEnum for Color {
    fn value_variants<'a>() -> &'a [Self] {
        &[Color::Auto, Color::Always, Color::Never]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let word = match self {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        };
        Some(clap::builder::PossibleValue::new(word))
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Init(Init),
    #[command(visible_alias = "run")]
    Up(Up),
    Down(Down),
    Lead(Lead),
    Adopt(Adopt),
    Resume(Resume),
    /// Create, list, show and delete teams.
    #[command(subcommand)]
    Team(TeamVerb),
    /// List all teams, as `team list` does.
    Ls,
    Rm(Rm),
    Spawn(Spawn),
    /// List, show and test the profiles of programs.
    #[command(subcommand)]
    Profile(ProfileVerb),
    Send(Send),
    Broadcast(Broadcast),
    Type(Type),
    Keys(Keys),
    Inbox(Inbox),
    /// Create, list, claim and complete tasks.
    #[command(subcommand)]
    Task(TaskVerb),
    Requests(Requests),
    Mode(SetMode),
    Rules(Rules),
    #[command(visible_alias = "stop")]
    Shutdown(Shutdown),
    Kill(Kill),
    Restart(Restart),
    /// Make a failed task pending again, as `task retry` does.
    Retry {
        /// Id of the task.
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    /// List, compare and remove the git worktrees of members.
    #[command(subcommand)]
    Worktree(WorktreeVerb),
    Answer(Answer),
    /// Submit a plan to the lead.
    #[command(subcommand)]
    Plan(PlanVerb),
    /// Ask the lead for permission.
    #[command(subcommand)]
    Ask(AskVerb),
    Status(Status),
    /// List every team on this machine.
    ///
    /// Includes teams of other config roots if one of their members runs as this user.
    Ps,
    Doctor(Doctor),
    /// Explain a member's state: the known facts and their sources.
    Explain(Named),
    /// Bring a member's pane to the front.
    Focus(Named),
    /// Hide a member's pane; the member keeps running.
    Hide(Named),
    /// Show a hidden pane again.
    Show(Named),
    Brief(Brief),
    Hook(Hook),
    Wait(Wait),
    Events(Events),
    Attach(Attach),
    Peek(Peek),
    Logs(Logs),
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
    },
    /// Print the version.
    Version,
    /// The launcher in every pane.
    #[command(hide = true)]
    Exec {
        spec: PathBuf,
    },
    /// The built-in teammate.
    #[command(hide = true)]
    Worker,
    /// The wrapper around a program that is not a native member.
    #[command(hide = true)]
    Wrap,
}

/// Run a team from a manifest: create it, lead it until its tasks are done, delete it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx up fixtures/teams/checks.toml\n\n\
    The first Ctrl-C asks all members to stop, the second kills them. \
    Exits with 0 if every task was completed, with 1 if one failed or never ran.")]
pub(super) struct Up {
    /// TOML file that describes the team, its members and its tasks.
    pub(super) manifest: PathBuf,
    /// Lead the team in the background.
    #[arg(long)]
    pub(super) detach: bool,
    /// Keep the team's files at the end.
    #[arg(long)]
    pub(super) keep: bool,
    /// Backend for the members; overrides the manifest.
    #[arg(long, value_parser = backend, value_name = "BACKEND")]
    pub(super) backend: Option<BackendChoice>,
    /// Socket of the tmux server to use.
    #[arg(long, value_name = "PATH")]
    pub(super) tmux_socket: Option<PathBuf>,
}

/// Stop all members, then delete the team.
#[derive(Debug, Args)]
#[command(
    after_help = "Each member is asked to stop and may refuse; the team then stays, with exit code 4."
)]
pub(super) struct Down {
    /// Reason to give to the members.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Seconds to wait for the members to answer.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(super) deadline: u64,
    /// Kill the members without asking.
    #[arg(long)]
    pub(super) force: bool,
    /// Write a summary of the run to a new file; with --json as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum TeamVerb {
    /// Create a team without members.
    #[command(
        after_help = "Examples:\n  phalanx team create demo --description \"try things out\"\n  \
        phalanx team create demo --settings team.toml"
    )]
    Create {
        /// Name of the team.
        name: String,
        /// Purpose of the team.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Agent type of the lead in the team file.
        #[arg(long, value_name = "TYPE")]
        agent_type: Option<String>,
        /// Socket of the tmux server to use.
        #[arg(long, value_name = "PATH")]
        tmux_socket: Option<PathBuf>,
        /// Settings file in TOML: a manifest without a name and without tasks.
        #[arg(long, value_name = "FILE")]
        settings: Option<PathBuf>,
        /// Append -2, -3 … if the name is taken.
        #[arg(long)]
        unique: bool,
    },
    /// List all teams.
    List,
    /// Show one team, its members and its settings.
    Show,
    Set(SetTeam),
    /// Delete a team whose members have stopped.
    Delete {
        /// Kill its members first, without asking.
        #[arg(long)]
        force: bool,
    },
}

/// Change settings of a team, or list them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx team set\n  phalanx team set max_members 12 finish tasks-done\n  \
    phalanx team set notify '[\"notify-send\", \"phalanx\"]' env.deny '[\"AWS_*\"]'\n  \
    phalanx team set role.scout.model haiku member.dev.scale '{ max = 3 }'\n  \
    phalanx team set --unset notify\n\n\
    A key is a key of [team] in a manifest, or a dotted path into another section. A value is TOML; \
    quotes around a string are optional. Several changes are applied together or not at all. A running lead applies them at once."
)]
pub(super) struct SetTeam {
    /// Keys, each followed by its value.
    #[arg(value_names = ["KEY", "VALUE"], num_args = 0..)]
    pub(super) pairs: Vec<String>,
    /// Reset a key to its default; repeatable.
    #[arg(long, value_name = "KEY")]
    pub(super) unset: Vec<String>,
}

/// Start members.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx spawn ada\n  phalanx spawn ann ben cleo --profile claude --until running\n  \
    phalanx spawn log --cwd /var/log -- tail -f syslog\n\n\
    Without a command line a member is a worker: it claims tasks that have a command, and runs them. \
    Several names are started as one batch with the same options. If one of them does not start, the others stay; \
    the exit code is that of the first failure."
)]
pub(super) struct Spawn {
    /// Names of the members.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Profile of its program; see `phalanx profile list`.
    #[arg(long, value_name = "PROFILE")]
    pub(super) profile: Option<String>,
    /// Role: an agent file, or a role of the manifest.
    #[arg(long, value_name = "ROLE")]
    pub(super) role: Option<String>,
    /// Model for its program.
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Permission mode.
    #[arg(long, value_parser = mode(), value_name = "MODE")]
    pub(super) mode: Option<Mode>,
    /// Tools that it may use, and no others: names or patterns with commas between them;
    /// repeatable.
    #[arg(long, value_parser = Rule::parse_list, value_name = "TOOLS")]
    pub(super) allowed_tools: Vec<Vec<Rule>>,
    /// Tools that it may not use; repeatable.
    #[arg(long, value_parser = Rule::parse_list, value_name = "TOOLS")]
    pub(super) disallowed_tools: Vec<Vec<Rule>>,
    /// Require an approved plan before it works.
    #[arg(long)]
    pub(super) plan: bool,
    /// First message.
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub(super) prompt: Option<String>,
    /// File with the first message; - reads stdin.
    #[arg(long, value_name = "FILE")]
    pub(super) prompt_file: Option<PathBuf>,
    /// Working directory [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// Create a git worktree for it, on a new branch or on BRANCH.
    #[arg(long, value_parser = wish, value_name = "BRANCH", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub(super) worktree: Option<WorktreeRequest>,
    /// Backend [default: that of the team's first members].
    #[arg(long, value_parser = backend, value_name = "BACKEND")]
    pub(super) backend: Option<BackendChoice>,
    /// Placement: panes of a window, a window each, or beside the lead.
    #[arg(long, value_parser = layout(), value_name = "LAYOUT")]
    pub(super) layout: Option<Layout>,
    /// Environment variable; repeatable.
    #[arg(long, value_parser = variable, value_name = "NAME=VALUE")]
    pub(super) env: Vec<(String, String)>,
    /// Return when its process runs, or when its program is ready as its profile defines it.
    #[arg(long, value_parser = started_when(), value_name = "WHEN", default_value = "ready")]
    pub(super) until: StartedWhen,
    /// Seconds to wait for it to start.
    #[arg(long, value_parser = seconds, value_name = "S", default_value = "30")]
    pub(super) deadline: Duration,
    /// Append -2, -3 … if the name is taken.
    #[arg(long)]
    pub(super) unique: bool,
    /// Print what would be started, and start nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Command line to run.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

/// Send a message to all other members.
#[derive(Debug, Args)]
pub(super) struct Broadcast {
    /// The message; read from stdin if it is - or missing.
    pub(super) text: Option<String>,
    /// Short summary.
    #[arg(long, value_name = "TEXT")]
    pub(super) summary: Option<String>,
}

/// The formats of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
    Xml,
}

/// Show unread messages and mark them as read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx inbox --follow")]
pub(super) struct Inbox {
    /// Member whose mailbox is shown [default: the caller]; messages of other members are not
    /// marked.
    pub(super) name: Option<String>,
    /// Include messages that were read before.
    #[arg(long)]
    pub(super) all: bool,
    /// Show all messages since then, including read and handled ones: 90s, 10m, 2h, 1d, or a time.
    #[arg(long, value_name = "TIME", conflicts_with = "all")]
    pub(super) since: Option<String>,
    /// Do not mark them as read.
    #[arg(long, group = "afterwards")]
    pub(super) peek: bool,
    /// Remove them after they were shown.
    #[arg(long, group = "afterwards")]
    pub(super) consume: bool,
    /// Remove all messages without showing them.
    #[arg(long, group = "afterwards", conflicts_with_all = ["follow", "all", "since"])]
    pub(super) clear: bool,
    /// Keep printing new messages.
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Output format; xml is for the prompt of an agent.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) format: Option<Format>,
}

/// Ask members to stop, wait for their answers, close their panes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx shutdown ada\n  phalanx shutdown --all --deadline 10\n\n\
    Exits with 4 if a member refused, with 5 if one did not answer and was killed."
)]
pub(super) struct Shutdown {
    /// Members to stop.
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Stop all members.
    #[arg(long)]
    pub(super) all: bool,
    /// Reason to give to the members.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Seconds to wait for the members to answer.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(super) deadline: u64,
    /// Kill the members without asking.
    #[arg(long)]
    pub(super) force: bool,
    /// Send the request and do not wait.
    #[arg(long)]
    pub(super) no_wait: bool,
}

/// Wait until members or a task reach a state.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx wait ada --until idle --timeout 60\n  phalanx wait --until task=3"
)]
pub(super) struct Wait {
    /// Members to wait for [default: all].
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Return as soon as one of them is there.
    #[arg(long)]
    pub(super) any: bool,
    /// State to wait for: ready, idle, gone, or task=ID.
    #[arg(long, value_parser = until, value_name = "STATE")]
    pub(super) until: Until,
    /// Seconds to wait, then exit with 5 [default: no limit].
    #[arg(long, value_parser = seconds, value_name = "S")]
    pub(super) timeout: Option<Duration>,
}

/// Show the events of a team.
#[derive(Debug, Args)]
pub(super) struct Events {
    /// Keep printing new events until the team is deleted.
    #[arg(short, long)]
    pub(super) follow: bool,
}

/// Show a team: its lead, members, former members, tasks and why they wait.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Include completed tasks, and all former members.
    #[arg(short, long)]
    pub(super) all: bool,
    /// Keep it up to date until the team is deleted.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Find problems with tmux, directories and the remains of dead processes.
#[derive(Debug, Args)]
#[command(after_help = "Without --fix nothing is changed.\n\
    Exits with 1 if a problem is left that needs a person.")]
pub(super) struct Doctor {
    /// Repair what is safe to repair.
    #[arg(long)]
    pub(super) fix: bool,
}

/// A member.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// Name of the member.
    pub(super) name: String,
}

/// Attach this terminal to a member, or to the team's tmux window.
///
/// Detach from tmux with the prefix key and d, from a member on a PTY with Ctrl-].
#[derive(Debug, Args)]
pub(super) struct Attach {
    /// Member [default: the team's tmux window, else its first member on a PTY].
    pub(super) name: Option<String>,
}

/// Print the last lines of members' screens.
#[derive(Debug, Args)]
pub(super) struct Peek {
    /// Names of the members.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Number of lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(super) lines: usize,
}

/// Print the output of members, with the member's name before each line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx logs -f\n  phalanx logs ann ben --since 5m\n  phalanx logs ann -n 100\n\n\
    The output of a member on phalanx's own PTY is kept until the team is deleted, up to its last 8 to 16 MiB. \
    For a member in a tmux pane this is the text that its pane still holds, without times."
)]
pub(super) struct Logs {
    /// Names of the members [default: all]; a single member's lines have no name before them.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Keep printing new output until these members have exited.
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Show lines printed since then: 90s, 10m, 2h, 1d, or a time.
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<String>,
    /// Of what was printed before, show only the last N lines of each member.
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) lines: Option<usize>,
}

fn backend(given: &str) -> Result<BackendChoice, String> {
    BackendChoice::parse(given)
        .ok_or_else(|| format!("possible: {}", BackendChoice::FORMS.join(", ")))
}

fn layout() -> impl TypedValueParser<Value = Layout> {
    PossibleValuesParser::new(Layout::ALL.map(|(word, _)| word)).map(|word| {
        let found = Layout::ALL.into_iter().find(|(known, _)| *known == word);
        found.map(|(_, layout)| layout).unwrap_or_default()
    })
}

fn started_when() -> impl TypedValueParser<Value = StartedWhen> {
    PossibleValuesParser::new(StartedWhen::ALL.map(|(word, _)| word)).map(|word| {
        let found = StartedWhen::ALL.into_iter().find(|(known, _)| *known == word);
        found.map_or(StartedWhen::Ready, |(_, when)| when)
    })
}

pub(super) fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::VARIANTS)
        .map(|word| Mode::parse(&word).unwrap_or(Mode::Default))
}

/// Parses `NAME=VALUE`. The operation checks whether the name may be set.
pub(super) fn variable(given: &str) -> Result<(String, String), String> {
    let (name, value) = given.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a number of seconds, with optional decimals.
pub(super) fn seconds(given: &str) -> Result<Duration, String> {
    let number: f64 = given.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|_| "not a number of seconds".to_owned())
}

fn until(given: &str) -> Result<Until, String> {
    match (given, given.strip_prefix("task=")) {
        ("ready", _) => Ok(Until::Ready),
        ("idle", _) => Ok(Until::Idle),
        ("gone", _) => Ok(Until::Gone),
        (_, Some(id)) => task_id(id).map(Until::Task),
        (_, None) => Err("possible: ready, idle, gone, task=ID".to_owned()),
    }
}
