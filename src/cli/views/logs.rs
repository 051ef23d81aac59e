//! `logs`: prints the output of members, prefixed with their names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::out::Out;
use crate::setup::{Setup, since};
use model::id::MemberName;
use model::text;
use model::time::Timestamp;
use ops::authority::Action;
use ops::views::logs::{LogLine, LogReader};
use ops::{Context, Kind, OpsError, TeamStore};
use sys::{clock, failpoint};

/// Print the output of members, each line after its member's name.
#[derive(Debug, Default, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx logs -f\n  phalanx logs ann ben --since 5m\n  phalanx logs ann -n 100\n\n\
    The output of a member on phalanx's own PTY is kept until the team is deleted, up to its last 8 to 16 MiB. \
    For a member in a tmux pane this is the text that its pane still holds, without times; \
    after its end, the last 200 lines."
)]
pub(crate) struct LogsArgs {
    /// Names of the members [default: all]; a single member's lines have no name before them.
    #[arg(value_name = "NAME")]
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Keep printing new output until these members have exited.
    #[arg(short, long)]
    #[serde(skip)]
    pub(crate) follow: bool,
    /// Show lines printed since then: 90s, 10m, 2h, 1d, or a time.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Of what was printed before, show only the last N lines of each member.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<usize>,
}

/// Interval of reads while following, because changes of logs are not notified.
const READ_INTERVAL: Duration = Duration::from_millis(250);
/// Number of intervals between two reads of a pane's screen or on another host, which cost more
/// than reads of a log.
const COSTLY_ROUNDS: u64 = 4;
/// Maximum error of a recorded time: times are recorded once a second, and a line may be younger
/// than its time.
const ACCURACY_MS: u64 = 1000;

pub(crate) fn logs(setup: &Setup, args: LogsArgs) -> VerbResult {
    let since = args.since.as_deref().map(since).transpose()?;
    let (team, names) = setup.members(&args.names, Action::ReadOutput)?;
    let mut stream = LogStream {
        ctx: setup.ctx.clone(),
        team,
        out: setup.out.clone(),
        names,
        since,
        tail: args.lines,
        follow: args.follow,
        readers: Vec::new(),
        new: BTreeSet::new(),
        drained: BTreeSet::new(),
        reads: BTreeMap::new(),
        is_cut: false,
        left_out: Vec::new(),
        unreachable: Vec::new(),
    };
    if args.follow {
        interrupt::run_interruptible(Failure::StreamEnded, move || stream.run())
    } else {
        stream.run()
    }
}

struct LogStream {
    ctx: Context,
    team: TeamStore,
    out: Out,
    /// The members named on the command line. Empty means all, including those that join later.
    names: Vec<MemberName>,
    since: Option<Timestamp>,
    /// The number of earlier lines to show of each member.
    tail: Option<usize>,
    follow: bool,
    readers: Vec<LogReader>,
    /// Positions of the readers whose first lines were not shown yet.
    new: BTreeSet<usize>,
    /// Positions of the readers that have read the last output of a member that has ended.
    drained: BTreeSet<usize>,
    /// The reads on other hosts that have not ended, by the position of the reader.
    reads: BTreeMap<usize, Receiver<(LogReader, ReadResult)>>,
    /// The last output of a member could not be read.
    is_cut: bool,
    /// Members whose output cannot be shown.
    left_out: Vec<MemberName>,
    /// Members on other hosts whose output cannot be read at present.
    unreachable: Vec<MemberName>,
}

/// The result of a read; with `all` of the last one of a member that has ended.
struct ReadResult {
    lines: Result<Vec<LogLine>, OpsError>,
    all: bool,
}

impl LogStream {
    fn run(&mut self) -> VerbResult {
        for round in 0.. {
            let is_starting = self.admit()?;
            failpoint::hit("logs.admitted");
            // Checked before the read, so that output up to the exit is not missed.
            let live: Vec<bool> = (0..self.readers.len()).map(|at| self.is_live(at)).collect();
            let mut lines = Vec::new();
            for (at, live) in live.iter().enumerate() {
                let (is_new, reader) = (self.new.contains(&at), &self.readers[at]);
                let is_due = !reader.is_costly() || round % COSTLY_ROUNDS == 0;
                if is_new || !live || is_due || self.reads.contains_key(&at) {
                    let read = self.read(at, !live)?;
                    lines.extend(read.into_iter().map(|line| (at, line)));
                }
            }
            // The sort is stable: lines without a time keep their order.
            lines.sort_by_key(|(_, line)| line.time);
            self.print(&lines)?;
            if is_starting || (0..live.len()).any(|at| live[at] || !self.drained.contains(&at)) {
                clock::sleep(READ_INTERVAL);
                continue;
            }
            // A member may have joined after the last look, and before the others ended.
            let is_starting = self.follow && self.admit()?;
            if !is_starting && self.new.is_empty() {
                break;
            }
        }
        if self.readers.is_empty() && self.since.is_some() && !self.left_out.is_empty() {
            let hint = Some("leave out `--since`".to_owned());
            return Err(Failure::new(Kind::Refused, "no member's output has times", hint));
        }
        Ok(if self.is_cut { Exit::of(Kind::Backend) } else { Exit::DONE })
    }

    fn is_live(&mut self, at: usize) -> bool {
        let is_left_out = self.left_out.contains(&self.readers[at].name);
        let is_live = self.follow && !is_left_out && self.readers[at].is_live(&self.team);
        if is_live {
            // It was started again.
            self.drained.remove(&at);
        }
        is_live
    }

    /// Opens the output of members that are not being read yet. Returns true if one is being
    /// started; its output is followed once it has a terminal.
    fn admit(&mut self) -> Result<bool, Failure> {
        let mut is_starting = false;
        let mut names = self.names.clone();
        if names.is_empty() && self.team.exists() {
            names = self.team.member_records()?.into_iter().map(|record| record.name).collect();
        }
        for name in names {
            let is_known = self.readers.iter().any(|reader| reader.name == name)
                || self.left_out.contains(&name);
            if is_known {
                continue;
            }
            let Some(reader) = LogReader::open(&self.team, &name, self.tail)? else {
                is_starting = self.follow;
                if !self.follow {
                    self.out.print_message(&text::line(&format!("`{name}` is being started")));
                }
                continue;
            };
            if self.since.is_some() && !reader.has_times(&self.ctx, &self.team)? {
                let problem = format!(
                    "the lines of `{name}` have no times: only an own terminal (pty) records them"
                );
                if !self.names.is_empty() {
                    let hint = Some("leave out `--since`".to_owned());
                    return Err(Failure::new(Kind::Refused, problem, hint));
                }
                self.leave_out(name, &problem);
                continue;
            }
            self.new.insert(self.readers.len());
            self.readers.push(reader);
        }
        Ok(is_starting)
    }

    fn leave_out(&mut self, name: MemberName, problem: &str) {
        self.out.print_message(&text::line(&format!("left out: {problem}")));
        self.left_out.push(name);
    }

    /// Reads the new lines of a member, with `all` to the end of its output; the first read applies
    /// `--since` and `-n`.
    fn read(&mut self, at: usize, all: bool) -> Result<Vec<LogLine>, Failure> {
        let name = self.readers[at].name.clone();
        if self.drained.contains(&at) {
            return Ok(Vec::new());
        }
        let is_new = self.new.contains(&at);
        let is_elsewhere = self.follow && self.readers[at].is_elsewhere();
        // A host that cannot be reached at first is an error for a member that was named.
        let read = if is_elsewhere && (!is_new || self.names.is_empty()) {
            match self.read_apart(at, all) {
                Some(read) => read,
                None => return Ok(Vec::new()),
            }
        } else {
            ReadResult { lines: self.readers[at].read(&self.ctx, &self.team, all), all }
        };
        let mut lines = match read.lines {
            // A connection can be lost for a while; the next read goes on where this one would
            // have.
            Err(e) if is_elsewhere && !read.all => {
                if !self.unreachable.contains(&name) {
                    self.out.print_message(&text::line(&format!("{name}: {e}; trying again")));
                    self.unreachable.push(name);
                }
                return Ok(Vec::new());
            }
            // The screens of exited members are gone.
            Err(e) if is_new && self.names.is_empty() => {
                self.leave_out(name.clone(), &format!("{name}: {e}"));
                self.new.remove(&at);
                self.drained.insert(at);
                return Ok(Vec::new());
            }
            Err(e) if is_elsewhere && !is_new => {
                let problem = format!("{name} has ended, and its last output is missing: {e}");
                self.out.print_message(&text::line(&problem));
                self.is_cut = true;
                Vec::new()
            }
            other => other?,
        };
        self.unreachable.retain(|one| *one != name);
        if read.all {
            self.drained.insert(at);
        }
        if self.new.remove(&at) {
            if let Some(since) = self.since {
                lines
                    .retain(|line| line.time.is_some_and(|time| time.plus_ms(ACCURACY_MS) > since));
            }
            let tail = self.tail.unwrap_or(lines.len());
            lines.drain(..lines.len().saturating_sub(tail));
        }
        Ok(lines)
    }

    /// Reads on a thread of its own, because a host that does not answer must not delay the output
    /// of other members. Returns `None` until the read has ended.
    fn read_apart(&mut self, at: usize, all: bool) -> Option<ReadResult> {
        let Some(read) = self.reads.get(&at) else {
            let (sender, read) = channel();
            let (ctx, team) = (self.ctx.clone(), self.team.clone());
            let mut reader = self.readers[at].clone();
            thread::spawn(move || {
                let lines = reader.read(&ctx, &team, all);
                // Fails once the stream has ended.
                let _ = sender.send((reader, ReadResult { lines, all }));
            });
            self.reads.insert(at, read);
            return None;
        };
        let ended = read.try_recv();
        if matches!(ended, Err(TryRecvError::Empty)) {
            return None;
        }
        self.reads.remove(&at);
        // If the thread has panicked, the reader is that of before.
        let (reader, result) = ended.ok()?;
        self.readers[at] = reader;
        Some(result)
    }

    fn print(&self, lines: &[(usize, LogLine)]) -> Result<(), Failure> {
        let mut page = String::new();
        let names = self.readers.iter().map(|reader| text::line(reader.name.as_str()));
        let longest = names.map(|name| name.chars().count()).max();
        let width = longest.filter(|_| self.names.len() != 1);
        for (at, line) in lines {
            let reader = &self.readers[*at];
            if self.out.json {
                let mut document = json!({ "name": reader.name, "line": line.text });
                if let Some(time) = line.time {
                    document["time"] = time.iso().into();
                }
                page.push_str(&document.to_string());
            } else {
                page.push_str(&ui::log_line(reader, line, width, self.out.paint));
            }
            page.push('\n');
        }
        self.out.print_text(&page)
    }
}
