//! `task import` and `task export`: tasks from files, and to files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::args::word;
use crate::fail::{Exit, Failure, VerbResult};
use crate::json;
use crate::read::{MAX_MANIFEST, MAX_TEXT, read_text};
use crate::setup::Setup;
use config::task_file::TaskFormat;
use model::text;
use ops::{self, Kind, TeamStore};
use sys::env;

/// Put the tasks of files on the board; tasks that are there already are updated.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Examples:\n  phalanx task import 03-01.jsonl 03-02.jsonl\n  \
    phalanx task import TODO.md --dry-run\n\n\
    The extension tells the format: .jsonl is a plan or the issues of beads, .md a check list or a task of \
    Backlog.md, .toml a manifest, .json an export or the tasks of Task Master. If one file has an error, \
    nothing is imported.")]
pub(crate) struct ImportTasksArgs {
    /// Files of tasks, in any order.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the files [default: by their extensions and texts].
    #[arg(long, value_parser = word::<TaskFormat>(), value_name = "FORMAT")]
    #[serde(default, deserialize_with = "json::word")]
    #[schemars(schema_with = "json::words::<TaskFormat>")]
    pub(crate) format: Option<TaskFormat>,
    /// Show what would change, without changing it.
    #[arg(long)]
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Print the open tasks for a spreadsheet, or for `task import` in another team.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Example:\n  phalanx task export > tasks.json\n  \
    phalanx task import tasks.json -t other")]
pub(crate) struct ExportTasksArgs {
    /// Output format [default: json].
    #[arg(long, value_enum, value_name = "FORMAT")]
    #[serde(skip)]
    pub(crate) format: Option<ExportFormat>,
    /// Include completed and cancelled tasks, and internal ones.
    #[arg(long)]
    #[serde(default)]
    pub(crate) all: bool,
}

/// The formats of exported tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Json,
    Csv,
}

pub(crate) fn import(setup: &Setup, team: &TeamStore, args: &ImportTasksArgs) -> VerbResult {
    let read = |path: &Path| {
        // JSON is parsed faster than the other languages.
        let ending = path.extension().unwrap_or_default();
        let is_json = ["json", "jsonl"].iter().any(|json| ending.eq_ignore_ascii_case(json));
        read_text(path, if is_json { MAX_TEXT } else { MAX_MANIFEST })
    };
    let (files, format) = (&args.files, args.format);
    let done =
        ops::board::task_import::import(&setup.ctx, team, files, format, &read, args.dry_run)?;
    let out = &setup.out;
    out.confirm(&done, || ui::import_report(&done, out.verbose, out.paint))
}

pub(crate) fn export(setup: &Setup, team: &TeamStore, args: &ExportTasksArgs) -> VerbResult {
    setup.out.check_format(args.format == Some(ExportFormat::Csv))?;
    let tasks = ops::board::task_export::export(team, args.all)?;
    let export = match args.format.unwrap_or(ExportFormat::Json) {
        ExportFormat::Json => ui::task_list_json(&tasks).map(|json| text::json(&json).into_owned()),
        // Only a file has the texts as they are.
        ExportFormat::Csv if env::stdout_is_tty() => {
            ui::task_csv(&tasks).map(|csv| text::block(&csv))
        }
        ExportFormat::Csv => ui::task_csv(&tasks),
    };
    let export = export.map_err(|e| {
        Failure::new(Kind::Internal, format!("the tasks cannot be written: {e}"), None)
    })?;
    setup.out.print_text(&export)?;
    Ok(Exit::DONE)
}
