//! `task import`: puts the tasks of files on the board. Everything is checked before anything is
//! written, and a task that is on the board with the same key is edited.

mod artifact;
mod resolve;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::board::{owners, task};
use crate::resolve_dir;
use crate::{Context, OpsError, now};
pub(crate) use artifact::ReadFile;
use config::task_file::{MAX_FAULTS, TaskFormat};
use model::board::Board;
use model::board::task_definition::{FileNote, TaskDefinition, TaskFile};
use model::team::event::{EventKind, Note};
use model::text;
pub use resolve::ImportedTask;
use resolve::{LoadedFile, Resolved};
use store::{StoreError, TaskImport, TeamStore};

/// The changes of an import.
#[derive(Debug, PartialEq, Serialize)]
pub struct Imported {
    pub dry_run: bool,
    pub created: Vec<ImportedTask>,
    pub updated: Vec<ImportedTask>,
    pub unchanged: usize,
    /// Tasks that are done in the file and not on the board.
    pub skipped: usize,
    /// Items that are left out or changed, each as `FILE:LINE: TEXT`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Imports the tasks of these files, in `format` or in the format of each; a dry run only returns
/// what would change. Directories of commands are relative to the caller's.
///
/// # Errors
/// [`OpsError::Usage`] with all faults of the files; a refusal on a board of
/// version 1; [`OpsError::AccessDenied`], a refusal or a refusal for
/// new tasks. Nothing is written then.
pub fn import(
    ctx: &Context,
    team: &TeamStore,
    files: &[PathBuf],
    format: Option<TaskFormat>,
    read: ReadFile<'_>,
    dry_run: bool,
) -> Result<Imported, OpsError> {
    task::must_have_verb(team, "import")?;
    let files = load(files, format, read, &ctx.caller.cwd).map_err(refuse)?;
    apply(ctx, team, &files, ImportOrigin::Files, dry_run)
}

/// Puts the tasks of the manifest called `name` on the board of a team that exists. Their owners
/// may still have to join. Without `revises` only those that are missing are created.
///
/// # Errors
/// As [`import`].
pub(crate) fn import_manifest(
    ctx: &Context,
    team: &TeamStore,
    (name, tasks): (&str, &[TaskDefinition]),
    revises: bool,
    dry_run: bool,
) -> Result<Imported, OpsError> {
    if !tasks.is_empty() {
        task::must_have_verb(team, "import")?;
    }
    let tasks = TaskFile { tasks: tasks.to_vec(), ..TaskFile::default() };
    let file = LoadedFile { name: name.to_owned(), tasks };
    apply(ctx, team, &[file], ImportOrigin::Manifest { revises }, dry_run)
}

/// Where the tasks of an import come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ImportOrigin {
    Files,
    Manifest { revises: bool },
}

fn apply(
    ctx: &Context,
    team: &TeamStore,
    files: &[LoadedFile],
    source: ImportOrigin,
    dry_run: bool,
) -> Result<Imported, OpsError> {
    let notes = files.iter().flat_map(|file| {
        let note = |note: &FileNote| format!("{}:{}: {}", file.name, note.line, note.text);
        file.tasks.notes.iter().map(note)
    });
    let mut report = Imported {
        dry_run,
        created: Vec::new(),
        updated: Vec::new(),
        unchanged: 0,
        skipped: 0,
        notes: notes.collect(),
    };
    let mut decide = |board: &Board| -> Result<TaskImport, OpsError> {
        let Resolved { mut import, places, updated, unchanged, skipped } =
            resolve::resolve(files, board).map_err(refuse)?;
        let mut faults = Vec::new();
        for (new, place) in import.create.iter_mut().zip(&places) {
            let Some(owner) = new.owner.as_ref().filter(|_| source == ImportOrigin::Files) else {
                continue;
            };
            match task::must_be_member(team, owner) {
                Err(OpsError::Store(e @ StoreError::NoSuchMember { .. })) => {
                    faults.push(format!("{place}: {e}"));
                }
                checked => checked?,
            }
            task::prepare_assignment(ctx, team, new)?;
        }
        if !faults.is_empty() {
            return Err(refuse(faults));
        }
        (report.updated, report.unchanged, report.skipped) = (updated, unchanged, skipped);
        match source {
            ImportOrigin::Files => task::may_create(ctx, team, &import.create)?,
            ImportOrigin::Manifest { revises: true } => {}
            ImportOrigin::Manifest { revises: false } => {
                import.revise.clear();
                report.unchanged += std::mem::take(&mut report.updated).len();
            }
        }
        report.created = (import.create.iter())
            .map(|new| ImportedTask {
                id: None,
                key: new.key.clone().unwrap_or_default(),
                subject: new.subject.clone(),
                after: new.named_blockers.clone(),
                fields: Vec::new(),
            })
            .collect();
        Ok(import)
    };
    if dry_run {
        decide(&team.board()?)?;
        return Ok(report);
    }
    let done = team.import_tasks(&ctx.speaker, now(), decide)?;
    let mut notes = task::created(&done.created, &ctx.speaker);
    let updated = done.revised.iter().zip(&report.updated).map(|(task, row)| {
        let note = Note::of_task(EventKind::TaskUpdated, task);
        note.with("by", ctx.speaker.as_str()).with("fields", row.fields.clone())
    });
    notes.extend(updated);
    team.record_all(notes)?;
    for (row, task) in report.created.iter_mut().zip(&done.created) {
        row.id = Some(task.id);
    }
    task::notify_new_owners(ctx, team, &done.created)?;
    owners::freed(team, &ctx.speaker, &done.unblocked, None)?;
    Ok(report)
}

/// Returns the error for faults in files.
fn refuse(mut faults: Vec<String>) -> OpsError {
    let surplus = faults.len() > MAX_FAULTS;
    faults.truncate(MAX_FAULTS);
    let problem = match faults.as_slice() {
        [fault] => fault.clone(),
        faults => {
            let more = if surplus { "\nand more" } else { "" };
            format!("the files have errors:\n{}{more}", faults.join("\n"))
        }
    };
    let hint = "nothing was imported; correct the files and import them again";
    OpsError::Usage { problem, hint: Some(hint.to_owned()) }
}

/// Reads and parses the files, and checks the artifacts that plans depend on.
fn load(
    paths: &[PathBuf],
    format: Option<TaskFormat>,
    read: ReadFile<'_>,
    here: &Path,
) -> Result<Vec<LoadedFile>, Vec<String>> {
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    for path in paths {
        let name = text::line(&path.to_string_lossy());
        match load_file(path, format, read) {
            Ok(mut tasks) => {
                if let Some(plan) = &tasks.plan {
                    let dir = path.parent().unwrap_or(Path::new(""));
                    let missing = plan.artifacts.iter().filter_map(|artifact| {
                        artifact::check(&dir.join(artifact), artifact, read).err()
                    });
                    let missing = missing.take(MAX_FAULTS);
                    faults.extend(missing.map(|why| format!("{name}:{}:1: {why}", plan.line)));
                }
                for task in &mut tasks.tasks {
                    task.fields.cwd = task.fields.cwd.take().map(|cwd| resolve_dir(here, &cwd));
                }
                files.push(LoadedFile { name, tasks });
            }
            Err(problems) => {
                faults.extend(problems.into_iter().map(|problem| format!("{name}:{problem}")));
            }
        }
    }
    if faults.is_empty() { Ok(files) } else { Err(faults) }
}

/// Returns the tasks of a file, or its faults without its name.
fn load_file(
    path: &Path,
    format: Option<TaskFormat>,
    read: ReadFile<'_>,
) -> Result<TaskFile, Vec<String>> {
    let in_whole = |problem: String| vec![format!(" {problem}")];
    if format.is_none() {
        TaskFormat::of(path, "").map_err(in_whole)?;
    }
    let text = read(path).map_err(in_whole)?;
    let format = format.map_or_else(|| TaskFormat::of(path, &text), Ok).map_err(in_whole)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format.parse(&stem, &text).map_err(|faults| faults.iter().map(ToString::to_string).collect())
}
