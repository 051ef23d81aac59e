//! The command line as it is parsed: verbs, options and their help. Does nothing.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::args_answer::Answer;
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
use crate::model::mode::Mode;
use crate::model::placement::Layout;
use crate::model::settings::BackendChoice;
use crate::model::worktree::Wish;
use crate::ops::spawn::StartedWhen;
use crate::ops::wait::Until;

const EXAMPLES: &str = "\
Examples:
  phalanx up checks.toml                     run a team from a manifest, to the end
  phalanx team create demo                   or build one by hand:
  phalanx spawn ada -t demo                    a worker
  phalanx spawn log -t demo -- tail -f x.log   any command line
  phalanx task create \"Run the tests\" -t demo -- cargo test
  phalanx status -t demo
  phalanx down -t demo

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such team, member or task, 4 refused,
5 out of time, 6 no backend, 70 a fault in phalanx, 130 interrupted.";

/// Leads teams of command-line agents side by side, in tmux panes or in terminals of its own.
#[derive(Debug, Parser)]
#[command(name = "phalanx", version, after_help = EXAMPLES, max_term_width = 100)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    /// Absent for `phalanx` alone, which shows its short page.
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

/// Options of every verb.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The team; else $PHALANX_TEAM, else the only team there is.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
    /// Where teams are kept; else $PHALANX_CONFIG_DIR, $CLAUDE_CONFIG_DIR, ~/.claude.
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,
    /// Who speaks; else $PHALANX_AGENT_NAME, else team-lead.
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(super) speaker: Option<String>,
    /// Give data as JSON on stdout: one document, or one a line for streams.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Say nothing but errors.
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Say more.
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

/// What can be done.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Init(Init),
    #[command(visible_alias = "run")]
    Up(Up),
    Down(Down),
    Lead(Lead),
    Adopt(Adopt),
    Resume(Resume),
    /// Make, list, show and delete teams.
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
    /// List, compare and remove the git worktrees of members.
    #[command(subcommand)]
    Worktree(WorktreeVerb),
    Answer(Answer),
    Status(Status),
    /// List every team on this machine, whoever leads it.
    ///
    /// Those under the config root, and those of other config roots for which a launcher of this user runs.
    Ps,
    Doctor(Doctor),
    /// Say why a member's state is what it is: what is known, and from where.
    Explain(Named),
    /// Bring a member's pane forward.
    Focus(Named),
    /// Take a member's pane out of sight; it runs on.
    Hide(Named),
    /// Put a hidden pane back beside the others.
    Show(Named),
    Brief(Brief),
    Hook(Hook),
    Wait(Wait),
    Events(Events),
    Attach(Attach),
    Peek(Peek),
    Logs(Logs),
    /// Print what a shell needs to complete phalanx's command lines.
    #[command(
        after_help = "Example:\n  phalanx completions bash >~/.local/share/bash-completion/completions/phalanx"
    )]
    Completions {
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of phalanx or of one verb.
    #[command(after_help = "Examples:\n  phalanx man >~/.local/share/man/man1/phalanx.1\n  \
        phalanx man team create >~/.local/share/man/man1/phalanx-team-create.1")]
    Man {
        #[arg(value_name = "VERB")]
        words: Vec<String>,
    },
    /// Print the version.
    Version,
    /// The command of every pane.
    #[command(hide = true)]
    Exec {
        spec: PathBuf,
    },
    /// The built-in teammate.
    #[command(hide = true)]
    Worker,
    /// Stands around a program that knows nothing of us.
    #[command(hide = true)]
    Wrap,
}

/// Run a team from a manifest: create it, start its members, lead it to the end, delete it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx up fixtures/teams/checks.toml\n\n\
    The first Ctrl-C asks all members to end, the second ends them by force. \
    Exits with 0 if every task was completed, with 1 if one failed or never ran.")]
pub(super) struct Up {
    /// A TOML file that describes the team, its members and its tasks.
    pub(super) manifest: PathBuf,
    /// Start the team, then lead it in the background.
    #[arg(long)]
    pub(super) detach: bool,
    /// Leave the team's files in place at the end.
    #[arg(long)]
    pub(super) keep: bool,
    /// Where members run; wins over the manifest.
    #[arg(long, value_parser = backend, value_name = "BACKEND")]
    pub(super) backend: Option<BackendChoice>,
    /// Put its tmux panes on the server at this socket.
    #[arg(long, value_name = "PATH")]
    pub(super) tmux_socket: Option<PathBuf>,
}

/// Ask all members to end, then delete the team.
#[derive(Debug, Args)]
#[command(after_help = "A member may refuse; then the team stays, and the exit code is 4. Done twice, \
    the second time finds nothing left to do.")]
pub(super) struct Down {
    /// Why, for the members to read.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// How many seconds members have to answer.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(super) deadline: u64,
    /// End them without asking.
    #[arg(long)]
    pub(super) force: bool,
}

/// What can be done with teams.
#[derive(Debug, Subcommand)]
pub(super) enum TeamVerb {
    /// Make a team that has no members yet.
    #[command(after_help = "Example:\n  phalanx team create demo --description \"try things out\"")]
    Create {
        name: String,
        /// What the team is for.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// What the lead is, for other programs that read the team file.
        #[arg(long, value_name = "TYPE")]
        agent_type: Option<String>,
        /// Put its tmux panes on the server at this socket.
        #[arg(long, value_name = "PATH")]
        tmux_socket: Option<PathBuf>,
        /// Append -2, -3 … to a name that is taken.
        #[arg(long)]
        unique: bool,
    },
    /// List all teams.
    List,
    /// Show one team and its members.
    Show,
    /// Delete a team whose members have ended.
    Delete {
        /// End its members first, without asking.
        #[arg(long)]
        force: bool,
    },
}

/// Start teammates and return once they run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx spawn ada\n  phalanx spawn ann ben cleo --profile claude --until running\n  \
    phalanx spawn log --cwd /var/log -- tail -f syslog\n\n\
    Without a command line a teammate is a worker: it claims tasks that carry a command, runs them and reports. \
    Several names are started as one batch with the same options. If one of them does not start, the others stay; \
    the exit code is that of the first failure."
)]
pub(super) struct Spawn {
    /// The names of the new members.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// How its program is started: see `phalanx profile list`.
    #[arg(long, value_name = "PROFILE")]
    pub(super) profile: Option<String>,
    /// What it is for: an agent file or a role of the manifest.
    #[arg(long, value_name = "ROLE")]
    pub(super) role: Option<String>,
    /// The model its program is to use.
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Its permission mode.
    #[arg(long, value_parser = mode(), value_name = "MODE")]
    pub(super) mode: Option<Mode>,
    /// It must have a plan approved before it works.
    #[arg(long)]
    pub(super) plan: bool,
    /// Its first message.
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub(super) prompt: Option<String>,
    /// Read its first message from a file; - is stdin.
    #[arg(long, value_name = "FILE")]
    pub(super) prompt_file: Option<PathBuf>,
    /// Its working directory; else this one.
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// It works in a git worktree of its own, on a branch of its own or on BRANCH.
    #[arg(long, value_parser = wish, value_name = "BRANCH", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub(super) worktree: Option<Wish>,
    /// Where it runs; else as the team's other members.
    #[arg(long, value_parser = backend, value_name = "BACKEND")]
    pub(super) backend: Option<BackendChoice>,
    /// Side by side in one window, or a window each.
    #[arg(long, value_parser = layout(), value_name = "LAYOUT")]
    pub(super) layout: Option<Layout>,
    /// A variable of its environment; may be given several times.
    #[arg(long, value_parser = variable, value_name = "NAME=VALUE")]
    pub(super) env: Vec<(String, String)>,
    /// Return once the process runs, or once the program is ready as its profile defines it.
    #[arg(long, value_parser = started_when(), value_name = "WHEN", default_value = "ready")]
    pub(super) until: StartedWhen,
    /// Seconds until the start counts as failed.
    #[arg(long, value_parser = seconds, value_name = "S", default_value = "30")]
    pub(super) deadline: Duration,
    /// Append -2, -3 … to a name that is taken.
    #[arg(long)]
    pub(super) unique: bool,
    /// Only show what would be started: command line, directory, names of the variables.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Its own command line.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

/// Put a message into every other member's mailbox.
#[derive(Debug, Args)]
pub(super) struct Broadcast {
    /// The message; - or nothing reads it from stdin.
    pub(super) text: Option<String>,
    /// What it is about, in a few words.
    #[arg(long, value_name = "TEXT")]
    pub(super) summary: Option<String>,
}

/// How messages are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
    Xml,
}

/// Show unread messages, and mark one's own as read once they were shown.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx inbox --follow")]
pub(super) struct Inbox {
    /// Whose mailbox; else the speaker's own.
    pub(super) name: Option<String>,
    /// Show messages that were read before, too.
    #[arg(long)]
    pub(super) all: bool,
    /// Leave them unread.
    #[arg(long, group = "afterwards")]
    pub(super) peek: bool,
    /// Remove them once they were shown.
    #[arg(long, group = "afterwards")]
    pub(super) consume: bool,
    /// Remove every message without showing any.
    #[arg(long, group = "afterwards", conflicts_with_all = ["follow", "all"])]
    pub(super) clear: bool,
    /// Go on with messages as they come.
    #[arg(short, long)]
    pub(super) follow: bool,
    /// For people, for programs, or for the prompt of an agent.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) format: Option<Format>,
}

/// Ask members to end, wait for their answer, close what they ran in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx shutdown ada\n  phalanx shutdown --all --deadline 10\n\n\
    Exits with 4 if a member refused, with 5 if one did not answer and was ended all the same.")]
pub(super) struct Shutdown {
    /// Who is to end.
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// All members.
    #[arg(long)]
    pub(super) all: bool,
    /// Why, for the members to read.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// How many seconds they have to answer.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(super) deadline: u64,
    /// End them without asking.
    #[arg(long)]
    pub(super) force: bool,
    /// Only ask; do not wait for what comes of it.
    #[arg(long)]
    pub(super) no_wait: bool,
}

/// Wait until members, or a task, have come so far.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx wait ada --until idle --timeout 60\n  phalanx wait --until task=3"
)]
pub(super) struct Wait {
    /// Which members; none means all.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// One of them is enough.
    #[arg(long)]
    pub(super) any: bool,
    /// What is waited for: ready, idle, gone, or task=ID.
    #[arg(long, value_parser = until, value_name = "STATE")]
    pub(super) until: Until,
    /// Give up after so many seconds, with exit code 5.
    #[arg(long, value_parser = seconds, value_name = "S")]
    pub(super) timeout: Option<Duration>,
}

/// Show what happened in the team.
#[derive(Debug, Args)]
pub(super) struct Events {
    /// Go on with events as they come, until the team is deleted.
    #[arg(short, long)]
    pub(super) follow: bool,
}

/// Show how a team stands: who leads it, its members, its tasks.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Show it again whenever it changes, until the team is deleted.
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Look for what is wrong: with tmux, with what dead processes left, with the directories.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --fix nothing is changed. With it only what is proven ours is cleared away.\n\
    Exits with 1 if something is left that needs a person."
)]
pub(super) struct Doctor {
    /// Put right what can be put right safely.
    #[arg(long)]
    pub(super) fix: bool,
}

/// One member.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// The member's name.
    pub(super) name: String,
}

/// Bring a member's screen to this terminal, or the team's tmux window.
///
/// Inside the same tmux server the client is switched, elsewhere it is attached: detach with the prefix key and d. A
/// member on a PTY of ours gets this terminal's keyboard and size: detach with Ctrl-].
#[derive(Debug, Args)]
pub(super) struct Attach {
    /// The member's name; without one the team's tmux window, or its first member on a PTY.
    pub(super) name: Option<String>,
}

/// Show the last lines of members' screens.
#[derive(Debug, Args)]
pub(super) struct Peek {
    /// The members' names.
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// How many lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(super) lines: usize,
}

/// Show the output of members, each line behind its member's name.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx logs -f\n  phalanx logs ann ben --since 5m\n  phalanx logs ann -n 100\n\n\
    All that a member on an own terminal (pty) has printed is kept until the team is deleted, the last 8 to 16 MiB of it. \
    Of a member in a pane only what its screen and history still hold is shown, without times."
)]
pub(super) struct Logs {
    /// The members' names; none means all. Of a single one the lines are shown without its name.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Go on with output as it comes, until these members have ended.
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
    BackendChoice::parse(given).ok_or_else(|| format!("possible: {}", BackendChoice::FORMS.join(", ")))
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
    PossibleValuesParser::new(Mode::ALL.map(Mode::as_str))
        .map(|word| Mode::parse(&word).unwrap_or(Mode::Default))
}

/// `NAME=VALUE`; whether the name may be set, the verb knows.
fn variable(given: &str) -> Result<(String, String), String> {
    let (name, value) = given.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Seconds, with decimals if need be.
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
