//! Runs the commands that a person chooses in the dashboard: in the background with collected
//! output, or on the terminal.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use crate::fail::{Failure, chain};
use crate::pager;
use model::text;
use ops::{Caller, Context, TeamStore};
use sys::exec::{self, ExecCommand};
use ui::dashboard::{AfterRun, ChosenCommand, FinishedCommand, TeamAction, command_line};

/// Time limit for a command in the background.
const LIMIT: Duration = Duration::from_secs(600);

/// The context of commands: the team on display and the person's environment.
#[derive(Debug, Clone)]
pub(super) struct CommandContext {
    caller: Caller,
    /// Global options that select the team and the speaker.
    options: Vec<OsString>,
}

impl CommandContext {
    pub(super) fn new(ctx: &Context, team: &TeamStore) -> CommandContext {
        let options: [OsString; 6] = [
            "--config-dir".into(),
            team.root().into(),
            "--team".into(),
            team.name().as_str().into(),
            "--as".into(),
            ctx.speaker.as_str().into(),
        ];
        CommandContext { caller: ctx.caller.clone(), options: options.to_vec() }
    }

    /// Returns the program and arguments of a command. `color` is passed to verbs.
    fn resolve(&self, command: &ChosenCommand, color: &str) -> ExecCommand {
        let base = ExecCommand { env: Some(self.caller.env.clone()), ..ExecCommand::default() };
        match command {
            ChosenCommand::Action(action) => self.verb(command_line(action), color, base),
            ChosenCommand::Typed(words) => self.verb(words.clone(), color, base),
            ChosenCommand::Program { argv, dir } => {
                let mut words = argv.iter().map(OsString::from);
                let program = words.next().unwrap_or_default();
                ExecCommand { program, args: words.collect(), cwd: Some(dir.into()), ..base }
            }
            ChosenCommand::Shell { dir } => {
                let shell = self.var("SHELL").unwrap_or_else(|| "/bin/sh".into());
                ExecCommand { program: shell, cwd: Some(dir.into()), ..base }
            }
        }
    }

    fn verb(&self, words: Vec<String>, color: &str, base: ExecCommand) -> ExecCommand {
        let color: [OsString; 2] = ["--color".into(), color.into()];
        let words = words.into_iter().map(OsString::from);
        let args = self.options.iter().cloned().chain(color).chain(words).collect();
        // If there is none, running it reports that.
        let program = self.caller.program().unwrap_or_else(|_| self.caller.exe.clone());
        ExecCommand { program: program.into(), args, ..base }
    }

    fn var(&self, name: &str) -> Option<OsString> {
        self.caller.var(name).map(OsString::from)
    }

    /// Runs a command to its end and collects its output.
    pub(super) fn run(&self, command: ChosenCommand, after: AfterRun) -> FinishedCommand {
        let (success, output) = match exec::run(&self.resolve(&command, "never"), LIMIT) {
            Ok(done) => {
                let bytes = [done.stdout, done.stderr].concat();
                (done.code == Some(0), text::plain(&String::from_utf8_lossy(&bytes)))
            }
            Err(e) => (false, chain(&e)),
        };
        FinishedCommand { command, after, success, output }
    }

    /// Runs a command on the terminal, which the dashboard has left. Returns once the person wants
    /// to come back.
    pub(super) fn run_here(&self, command: &ChosenCommand) -> Result<(), Failure> {
        let status = exec::run_in_foreground(&self.resolve(command, "auto"))?;
        let returns_by_itself = match command {
            ChosenCommand::Action(TeamAction::Review(_)) => status.success(),
            ChosenCommand::Action(action) => matches!(action, TeamAction::Attach(_)),
            ChosenCommand::Typed(words) => words.first().is_some_and(|verb| verb == "attach"),
            ChosenCommand::Shell { .. } => true,
            ChosenCommand::Program { .. } => false,
        };
        if !returns_by_itself {
            io::stdout().write_all(b"\n[Enter returns to the dashboard] ")?;
            io::stdout().flush()?;
            let mut line = String::new();
            io::stdin().read_line(&mut line)?;
        }
        Ok(())
    }

    /// Shows the output of a command in the person's pager.
    pub(super) fn page(&self, command: &ChosenCommand) -> Result<(), Failure> {
        let done = exec::run(&self.resolve(command, "always"), LIMIT)?;
        let bytes = [done.stdout, done.stderr].concat();
        let text = if bytes.is_empty() { b"no output\n".to_vec() } else { bytes };
        let words = pager::words(|name| self.var(name), "-R");
        let mut words = words.unwrap_or_else(|| vec!["more".into()]).into_iter();
        let pager = ExecCommand {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            env: Some(self.caller.env.clone()),
            stdin: text,
            ..ExecCommand::default()
        };
        exec::run_in_foreground(&pager)?;
        Ok(())
    }
}
