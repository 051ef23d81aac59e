//! The `task` subcommands that only read the board: list, scopes, get, graph and search.

use std::cell::RefCell;
use std::cmp::Reverse;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fail::{Exit, Failure, VerbResult};
use crate::mail::scope::ScopeArgs;
use crate::out::InTurn;
use crate::setup::Setup;
use model::board::search::{MAX_QUERY, Query};
use model::board::task::{Task, TaskState};
use model::id::{MemberName, TaskId};
use model::mail::access::visible_to;
use model::mail::scope::Scope;
use model::wire::{self, Object};
use ops::{self, TeamStore};
use ui::{self, GraphFormat};

/// Number of tasks on a page of `task list`.
const PAGE: usize = 30;
/// Maximum length of a snippet in characters.
const SNIPPET: usize = 500;
/// Characters of a result that `get` shows without `--full`.
const RESULT: usize = 8000;

/// List open tasks, in the order in which members claim them.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx task list --mine\n  phalanx task list --all --label bug"
)]
pub(crate) struct ListTasksArgs {
    /// Include completed and cancelled tasks, and internal ones.
    #[arg(help_heading = "Filter", long, group = "kind")]
    #[serde(skip)]
    pub(crate) all: bool,
    /// Only tasks that can or do go on: not failed ones.
    #[arg(help_heading = "Filter", long, group = "kind")]
    #[serde(skip)]
    pub(crate) active: bool,
    /// Only tasks that wait for approval.
    #[arg(help_heading = "Filter", long, group = "kind")]
    #[serde(skip)]
    pub(crate) in_review: bool,
    /// Only completed tasks.
    #[arg(help_heading = "Filter", long, group = "kind")]
    #[serde(skip)]
    pub(crate) completed: bool,
    /// Only tasks of this member.
    #[arg(help_heading = "Filter", long, value_name = "NAME", conflicts_with = "mine")]
    pub(crate) owner: Option<String>,
    /// Only tasks of the caller.
    #[arg(help_heading = "Filter", long)]
    #[serde(default)]
    mine: bool,
    /// Page to print, of 30 tasks each [default: 1; with --json: all tasks].
    #[arg(long, value_name = "N", value_parser = page_number)]
    pub(crate) page: Option<usize>,
    /// Only tasks with this label; repeatable, then with any of them.
    #[arg(help_heading = "Filter", long = "label", value_name = "LABEL")]
    #[serde(default)]
    labels: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    scope: ScopeArgs,
}

impl ListTasksArgs {
    fn shows(&self, task: &Task, owner: Option<&MemberName>, scope: &Scope) -> bool {
        let is_of_kind = match task.state {
            _ if self.all => true,
            TaskState::Completed => self.completed,
            TaskState::Cancelled => false,
            TaskState::InReview => !self.completed,
            TaskState::Failed => !self.active && !self.in_review && !self.completed,
            TaskState::Pending
            | TaskState::Blocked
            | TaskState::InProgress
            | TaskState::Stopping
            | TaskState::Stale => !self.in_review && !self.completed,
        };
        let has_label = |label: &String| self.labels.contains(label);
        is_of_kind
            && (self.all || !task.is_internal())
            && owner.is_none_or(|owner| task.is_owned_by(owner))
            && scope.covers(&task.extra.scope)
            && (self.labels.is_empty() || task.extra.labels.iter().any(has_label))
    }
}

fn page_number(given: &str) -> Result<usize, String> {
    let number = given.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "not a number from 1".to_owned())
}

/// Returns a task as Claude Code writes it, where a failed task is `pending`, with its true state
/// and how it ended on the first level.
pub(super) fn document(task: &Task, state: TaskState) -> Object {
    let mut object = task.to_object();
    wire::put(&mut object, "state", state.as_str());
    let (extra, outcome) = (&task.extra, task.extra.outcome.as_ref());
    let ends = [
        ("result", extra.result.as_deref().map(Value::from)),
        ("reason", extra.reason.as_deref().map(Value::from)),
        ("output", outcome.map(|outcome| outcome.tail.as_str().into())),
        ("exit_code", outcome.and_then(|outcome| outcome.exit_code).map(Value::from)),
    ];
    let known = ends.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    object.extend(known);
    object
}

pub(super) fn get(setup: &Setup, team: &TeamStore, id: TaskId, full: bool) -> VerbResult {
    let mut history = ops::board::task::history(team, id)?;
    let result = history.task.extra.result.take();
    let is_cut = !full && result.as_ref().is_some_and(|text| text.chars().nth(RESULT).is_some());
    let kept = |text: String| if is_cut { text.chars().take(RESULT).collect() } else { text };
    history.task.extra.result = result.map(kept);
    let mut page = document(&history.task, history.state);
    page.insert("comments".to_owned(), json!(history.comments));
    page.insert("attachments".to_owned(), json!(history.attachments));
    page.insert("events".to_owned(), json!(history.events));
    page.insert("files".to_owned(), json!(history.files));
    if is_cut {
        wire::put(&mut page, "resultIsCut", true);
    }
    setup.out.print(&page, || ui::task_page(&history, setup.out.paint))?;
    if is_cut && !setup.out.json {
        setup.out.print_message(&format!(
            "the result is cut; all of it: `phalanx task get {id} --full`"
        ));
    }
    Ok(Exit::DONE)
}

pub(super) fn list(
    setup: &Setup,
    team: &TeamStore,
    args: &ListTasksArgs,
    owner: Option<MemberName>,
) -> VerbResult {
    let scope = match &args.scope.scope {
        Some(given) => given.clone(),
        None => visible_to(&args.scope.resolve(setup)?),
    };
    ops::board::task::note_look(team, &setup.ctx.speaker)?;
    let board = ops::board::task::board_of(team, args.all || args.completed)?;
    let owner = if args.mine { Some(setup.ctx.speaker.clone()) } else { owner };
    let mut shown: Vec<&Task> =
        board.tasks.values().filter(|task| args.shows(task, owner.as_ref(), &scope)).collect();
    shown.sort_by_key(|task| Reverse(task.extra.priority.unwrap_or(0)));
    let Page { items, number, count } = page_of(&shown, args.page, setup.out.json)?;
    for id in &board.unreadable {
        setup.out.print_message(&format!("task {id} cannot be read"));
    }
    if setup.out.json {
        let object = |task: &&Task| document(task, board.state(task));
        setup.out.print_document(&InTurn(RefCell::new(items.iter().map(object))))?;
    } else if items.is_empty() {
        let is_plain = !args.active && !args.in_review && !args.completed && owner.is_none();
        setup.out.print_message(
            match (args.all, is_plain && args.labels.is_empty() && scope.is_empty()) {
                (true, _) => "no tasks",
                (false, true) => "no open tasks",
                (false, false) => "no such tasks",
            },
        );
    } else {
        let ids: Vec<_> = items.iter().map(|task| task.id).collect();
        setup.out.print_text(&ui::task_table(&board, &ids, setup.out.verbose, setup.out.paint))?;
    }
    if number < count {
        let next = number + 1;
        setup.out.print_message(&format!("page {number} of {count}; more: add --page {next}"));
    }
    Ok(Exit::DONE)
}

pub(super) fn scopes(setup: &Setup, team: &TeamStore) -> VerbResult {
    let scopes = ops::board::task::scopes(team)?;
    let none = "no task has a scope; give one with `phalanx task create --scope`";
    setup.out.print_list(&scopes, none, || ui::scope_table(&scopes, setup.out.paint))
}

/// One page of a list.
struct Page<'a, T> {
    items: &'a [T],
    /// Number of the page, from 1.
    number: usize,
    count: usize,
}

/// Returns the page with this number, by default the first one, or the whole list with `--json`.
fn page_of<T>(items: &[T], number: Option<usize>, json: bool) -> Result<Page<'_, T>, Failure> {
    let size = if json && number.is_none() { usize::MAX } else { PAGE };
    let (number, count) = (number.unwrap_or(1), items.len().div_ceil(size).max(1));
    if number > count {
        let pages = if count == 1 { "is 1 page".to_owned() } else { format!("are {count} pages") };
        let hint = format!("there {pages}; omit --page, or give a lower number");
        return Err(Failure::usage(format!("there is no page {number}"), &hint));
    }
    let items = items.chunks(size).nth(number - 1).unwrap_or_default();
    Ok(Page { items, number, count })
}

pub(super) fn graph(setup: &Setup, team: &TeamStore, format: GraphFormat, all: bool) -> VerbResult {
    let graph = ui::TaskGraph::new(&ops::board::task::board_of(team, all)?, all);
    if graph.tasks.is_empty() && !setup.out.json && format == GraphFormat::Text {
        setup.out.print_message(if all { "no tasks" } else { "no open tasks" });
    }
    setup.out.print(&graph, || graph.draw(format, setup.out.paint))
}

pub(super) fn search(setup: &Setup, team: &TeamStore, words: &str, limit: usize) -> VerbResult {
    let query = Query::new(words).ok_or_else(|| {
        let hint = format!("give one or more words, at most {MAX_QUERY} characters in all");
        Failure::usage("the query is empty or too long", &hint)
    })?;
    // In text, one line of the terminal, after the indentation.
    let snippet =
        if setup.out.json { SNIPPET } else { setup.out.width().saturating_sub(4).min(SNIPPET) };
    let found = ops::board::task_search::search(team, &query, limit, snippet)?;
    setup.out.print(&found, || ui::found_tasks(&found.tasks, setup.out.paint))?;
    if found.tasks.is_empty() && found.more == 0 {
        setup.out.print_message("no task contains all of these words");
    } else if found.more > 0 {
        setup.out.print_message(&format!("{} more; raise --limit to print them", found.more));
    }
    Ok(Exit::DONE)
}
