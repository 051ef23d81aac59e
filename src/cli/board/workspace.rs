//! The `workspace` subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::fail::{Exit, VerbResult};
use crate::json;
use crate::mail::scope::ChatArg;
use crate::read::bytes_from;
use crate::setup::Setup;
use model::board::workspace::WorkspacePath;
use model::text;
use ops::authority::Action;
use sys::env;

#[derive(Debug, Subcommand, Deserialize, JsonSchema)]
#[command(defer = true)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum WorkspaceVerb {
    /// List the files, who wrote them, and for which tasks.
    List(ChatArg),
    /// Print a file.
    Read(WorkspaceFileArgs),
    Write(WriteFileArgs),
    /// Delete a file that the caller wrote; the lead may delete any.
    Delete(WorkspaceFileArgs),
    /// Print the directory, or the path of a file in it.
    Path {
        /// File, relative to the workspace.
        #[arg(value_name = "PATH", value_parser = WorkspacePath::parse)]
        #[serde(default, deserialize_with = "optional_path_from_json")]
        #[schemars(with = "Option<String>")]
        path: Option<WorkspacePath>,
        #[command(flatten)]
        #[serde(flatten)]
        chat: ChatArg,
    },
}

#[derive(Debug, Args, Deserialize, JsonSchema)]
pub(crate) struct WorkspaceFileArgs {
    /// File, relative to the workspace.
    #[arg(value_name = "PATH", value_parser = WorkspacePath::parse)]
    #[serde(deserialize_with = "path_from_json")]
    #[schemars(with = "String")]
    pub(crate) path: WorkspacePath,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) chat: ChatArg,
}

/// Write a file; it is linked to the task that the caller has in progress.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Examples:\n  phalanx workspace write report.md report.md\n  \
    git diff | phalanx workspace write patches/fix.diff")]
pub(crate) struct WriteFileArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) file: WorkspaceFileArgs,
    /// Content of the file.
    #[arg(skip)]
    pub(crate) content: Option<String>,
    /// File with the content; read from stdin if it is - or missing.
    #[arg(value_name = "FILE")]
    #[serde(skip)]
    pub(crate) source: Option<PathBuf>,
}

fn path_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WorkspacePath, D::Error> {
    json::text(deserializer, parse_path)
}

fn parse_path(given: &str) -> Result<WorkspacePath, String> {
    WorkspacePath::parse(given).map_err(|problem| format!("`path`: {problem}"))
}

fn optional_path_from_json<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<WorkspacePath>, D::Error> {
    json::optional(deserializer, parse_path)
}

pub(crate) fn workspace(setup: &Setup, verb: &WorkspaceVerb) -> VerbResult {
    let team = setup.team(Action::UseWorkspace)?;
    match verb {
        WorkspaceVerb::List(chat) => {
            let view = ops::board::workspace::list(&team, &chat.resolve(setup)?)?;
            if setup.out.json {
                setup.out.print_document(&view)?;
                return Ok(Exit::DONE);
            }
            if view.files.is_empty() {
                setup.out.print_message(&format!("no files in {}", view.dir.display()));
            } else {
                setup.out.print_text(&ui::workspace_table(&view.files, setup.out.paint))?;
            }
            for problem in &view.problems {
                setup.out.print_message(&format!("warning: {}", text::line(problem)));
            }
        }
        WorkspaceVerb::Read(file) => {
            let bytes = ops::board::workspace::read(&team, &file.chat.resolve(setup)?, &file.path)?;
            if setup.out.json {
                let text = std::str::from_utf8(&bytes).ok();
                let document = json!({ "name": file.path, "bytes": bytes.len(), "text": text });
                setup.out.print_document(&document)?;
            } else if env::stdout_is_tty() {
                setup.out.print_text(&text::block(&String::from_utf8_lossy(&bytes)))?;
            } else {
                setup.out.print_bytes(&bytes)?;
            }
        }
        WorkspaceVerb::Write(WriteFileArgs { file, content, source }) => {
            let chat = file.chat.resolve(setup)?;
            // One byte more than allowed is refused as too large.
            let most = ops::board::workspace::max_file(&team)?.saturating_add(1);
            let source = source.as_ref().filter(|source| source.as_os_str() != "-");
            let source = source.map(|source| setup.ctx.caller.cwd.join(source));
            let bytes = match content {
                Some(content) => content.clone().into_bytes(),
                None => bytes_from(source.as_deref(), most)?,
            };
            let written =
                ops::board::workspace::write(&setup.ctx, &team, &chat, &file.path, &bytes)?;
            setup.out.confirm(&written, || {
                let tasks = ui::task_ids(&written.tasks);
                let linked =
                    if tasks.is_empty() { tasks } else { format!(", linked to task {tasks}") };
                format!("wrote {} ({} bytes){linked}", written.name, written.bytes)
            })?;
        }
        WorkspaceVerb::Delete(file) => {
            let chat = file.chat.resolve(setup)?;
            ops::board::workspace::delete(&setup.ctx, &team, &chat, &file.path)?;
            let document = json!({ "name": file.path, "deleted": true });
            setup.out.confirm(&document, || format!("deleted {}", file.path))?;
        }
        WorkspaceVerb::Path { path, chat } => {
            let dir = ops::board::workspace::dir(&team, &chat.resolve(setup)?)?;
            let full = path.as_ref().map_or(dir.clone(), |path| dir.join(path.as_str()));
            setup.out.print(&json!({ "path": full }), || full.display().to_string())?;
        }
    }
    Ok(Exit::DONE)
}
