//! Decides what an import changes: which tasks are new, how the others differ from the board, and
//! which task blocks which.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use config::ConfigError;
use config::task_file::MAX_FAULTS;
use model::board::Board;
use model::board::cycle::find_cycle;
use model::board::task::Task;
use model::board::task_definition::{TaskDefinition, TaskFile, names_key, whole_plan};
use model::id::{MemberName, TaskId};
use model::name::nearest;
use store::{NewTask, TaskChanges, TaskImport, TaskRevision};

/// Maximum number of tasks in an import.
const MAX_TASKS: usize = 100_000;
/// Maximum number of edges in an import. A plan that depends on another has an edge for each pair
/// of their tasks.
const MAX_EDGES: usize = 1_000_000;

/// A file of tasks.
#[derive(Debug)]
pub(super) struct LoadedFile {
    /// The path as given, for messages.
    pub(super) name: String,
    pub(super) tasks: TaskFile,
}

/// A task that an import creates or changes.
#[derive(Debug, PartialEq, Serialize)]
pub struct ImportedTask {
    /// `None` for a task that a dry run would create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    pub key: String,
    pub subject: String,
    /// Blockers as the file names them; `PLAN/*` are all tasks of a plan.
    pub after: Vec<String>,
    /// The fields that change; none for a new task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<&'static str>,
}

/// The decision on an import.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) import: TaskImport,
    /// For each task to create, its file, line and column.
    pub(super) places: Vec<String>,
    /// For each task to revise.
    pub(super) updated: Vec<ImportedTask>,
    pub(super) unchanged: usize,
    pub(super) skipped: usize,
}

/// A task on the board, or one that the import creates, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Board(TaskId),
    New(usize),
}

/// A definition with its file and its task.
struct Located<'f> {
    file: &'f LoadedFile,
    task: &'f TaskDefinition,
    /// `None` if it is done and not on the board.
    node: Option<Node>,
}

impl Located<'_> {
    fn place(&self) -> String {
        format!("{}:{}:1", self.file.name, self.task.line)
    }
}

/// The faults of an import. Beyond [`MAX_FAULTS`], only one more is kept.
#[derive(Default)]
struct ImportFaults(Vec<String>);

impl ImportFaults {
    fn is_full(&self) -> bool {
        self.0.len() > MAX_FAULTS
    }

    fn add(&mut self, file: &LoadedFile, line: usize, message: String, nearest: Option<&str>) {
        if !self.is_full() {
            let nearest = nearest.map(str::to_owned);
            let fault = ConfigError { line, column: 1, message, nearest };
            self.0.push(format!("{}:{fault}", file.name));
        }
    }
}

/// Decides on the import of these files.
///
/// # Errors
/// All faults between the tasks of the files and of the board, each with file and line.
pub(super) fn resolve(files: &[LoadedFile], board: &Board) -> Result<Resolved, Vec<String>> {
    let mut faults = ImportFaults::default();
    if let Some(id) = board.unreadable.first() {
        let problem = format!("task {id} on the board cannot be read, and may be one of the files");
        return Err(vec![problem]);
    }
    let (tasks, keys) = locate(files, board, &mut faults);
    let plans = members_of_plans(files, &keys, &mut faults);
    let blockers = blockers(&tasks, &keys, &plans, &mut faults);
    if !faults.0.is_empty() {
        return Err(faults.0);
    }
    let mut resolved = Resolved {
        import: TaskImport::default(),
        places: Vec::new(),
        updated: Vec::new(),
        unchanged: 0,
        skipped: 0,
    };
    let mut edges: BTreeMap<Node, Vec<Node>> = BTreeMap::new();
    for (located, wanted) in tasks.iter().zip(&blockers) {
        match located.node {
            None => resolved.skipped += 1,
            Some(node @ Node::New(_)) => {
                resolved.places.push(located.place());
                match new_task(located.task, wanted) {
                    Ok(new) => resolved.import.create.push(new),
                    Err(problem) => faults.add(located.file, located.task.line, problem, None),
                }
                edges.insert(node, wanted.clone());
            }
            Some(node @ Node::Board(id)) => {
                let Some(task) = board.tasks.get(&id) else { continue };
                let is_left_alone = located.task.is_done || task.state.is_over();
                let revision = revision(task, located.task, wanted, board);
                if is_left_alone || revision.fields().is_empty() {
                    resolved.unchanged += 1;
                    continue;
                }
                edges.insert(node, blockers_after(task, &revision));
                resolved.updated.push(ImportedTask {
                    id: Some(id),
                    key: located.task.key.clone(),
                    subject: located.task.subject.clone(),
                    after: located.task.after.clone(),
                    fields: revision.fields(),
                });
                resolved.import.revise.push(revision);
            }
        }
    }
    refuse_cycle(&tasks, &edges, board, &mut faults);
    if faults.0.is_empty() { Ok(resolved) } else { Err(faults.0) }
}

/// The task of each key, on the board and in the files. `None` for one that is done and not on the
/// board.
type KeyIndex<'k> = BTreeMap<&'k str, Option<Node>>;

/// Finds the task of each definition.
fn locate<'f>(
    files: &'f [LoadedFile],
    board: &'f Board,
    faults: &mut ImportFaults,
) -> (Vec<Located<'f>>, KeyIndex<'f>) {
    let mut on_board: BTreeMap<&str, Vec<TaskId>> = BTreeMap::new();
    for task in board.tasks.values() {
        if let Some(key) = &task.extra.key {
            on_board.entry(key).or_default().push(task.id);
        }
    }
    let mut keys: KeyIndex = BTreeMap::new();
    keys.extend(on_board.iter().map(|(key, ids)| (*key, Some(Node::Board(ids[0])))));
    let mut places: BTreeMap<&str, String> = BTreeMap::new();
    let (mut tasks, mut created): (Vec<Located>, usize) = (Vec::new(), 0);
    for (file, task) in files.iter().flat_map(|f| f.tasks.tasks.iter().map(move |task| (f, task))) {
        if tasks.len() == MAX_TASKS {
            let problem = format!("there are more than {MAX_TASKS} tasks");
            faults.add(file, task.line, problem, None);
            break;
        }
        let key = task.key.as_str();
        let node = match on_board.get(key).map(Vec::as_slice) {
            None if task.is_done => None,
            None => {
                created += 1;
                Some(Node::New(created - 1))
            }
            Some([id]) => Some(Node::Board(*id)),
            Some(ids) => {
                let ids = ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
                let problem = format!("several tasks on the board have the key `{key}`: {ids}");
                faults.add(file, task.line, problem, None);
                None
            }
        };
        let located = Located { file, task, node };
        match places.get(key) {
            Some(first) => {
                let problem =
                    format!("two tasks have the key `{key}`; the other one is at {first}");
                faults.add(file, task.line, problem, None);
            }
            None => drop(places.insert(key, located.place())),
        }
        keys.entry(key).or_insert(node);
        tasks.push(located);
    }
    (tasks, keys)
}

/// Returns the tasks of each plan that another one depends on.
fn members_of_plans<'f>(
    files: &'f [LoadedFile],
    keys: &KeyIndex<'f>,
    faults: &mut ImportFaults,
) -> BTreeMap<&'f str, Vec<Node>> {
    let mut imported: BTreeMap<&str, &LoadedFile> = BTreeMap::new();
    for file in files {
        let Some(plan) = &file.tasks.plan else { continue };
        if let Some(other) = imported.insert(&plan.id, file) {
            let problem = format!("plan `{}` is also in {}", plan.id, other.name);
            faults.add(file, plan.line, problem, None);
        }
    }
    let mut members: BTreeMap<&str, Vec<Node>> = BTreeMap::new();
    for file in files {
        let Some(plan) = &file.tasks.plan else { continue };
        for wanted in &plan.depends_on {
            if *wanted == plan.id {
                let problem = format!("plan `{wanted}` depends on itself");
                faults.add(file, plan.line, problem, None);
            }
            let first = format!("{wanted}/");
            let found = keys.range(first.as_str()..).take_while(|(key, _)| key.starts_with(&first));
            let mut found = found.peekable();
            if found.peek().is_none() && !imported.contains_key(wanted.as_str()) {
                let problem = format!(
                    "plan `{}` depends on plan `{wanted}`, which is neither in the files nor on the board",
                    plan.id
                );
                let known = imported.keys().copied().filter(|id| *id != plan.id);
                faults.add(file, plan.line, problem, nearest(wanted, known));
            }
            members.insert(wanted, found.filter_map(|(_, node)| *node).collect());
        }
    }
    members
}

/// Returns the blockers of each definition.
fn blockers(
    tasks: &[Located],
    keys: &KeyIndex,
    plans: &BTreeMap<&str, Vec<Node>>,
    faults: &mut ImportFaults,
) -> Vec<Vec<Node>> {
    let (mut found, mut count) = (Vec::with_capacity(tasks.len()), 0);
    for Located { file, task, .. } in tasks {
        let mut wanted = Vec::new();
        for name in &task.after {
            if let Some(plan) = whole_plan(name) {
                // An unknown plan is reported once, at its header.
                wanted.extend(plans.get(plan).into_iter().flatten().copied());
            } else if let Some(node) = keys.get(name.as_str()) {
                wanted.extend(*node);
            } else if !faults.is_full() {
                let problem = format!("task `{}` depends on unknown task `{name}`", task.key);
                let others = keys.keys().copied().filter(|key| *key != task.key);
                faults.add(file, task.line, problem, nearest(name, others));
            }
        }
        let mut seen = BTreeSet::new();
        wanted.retain(|node| seen.insert(*node));
        count += wanted.len();
        if count > MAX_EDGES {
            let problem = format!("the tasks have more than {MAX_EDGES} dependencies");
            faults.add(file, task.line, problem, None);
            break;
        }
        found.push(wanted);
    }
    found
}

fn new_task(task: &TaskDefinition, blockers: &[Node]) -> Result<NewTask, String> {
    let owner = task.owner.as_deref().map(MemberName::new).transpose();
    let (blocked_by, after) = split(blockers);
    Ok(NewTask {
        key: Some(task.key.clone()),
        subject: task.subject.clone(),
        description: task.description.clone(),
        fields: task.fields.clone(),
        owner: owner.map_err(|problem| problem.to_string())?,
        blocked_by,
        after,
        named_blockers: task.after.clone(),
        ..NewTask::default()
    })
}

/// Separates blockers on the board from those that the import creates.
fn split(blockers: &[Node]) -> (Vec<TaskId>, Vec<usize>) {
    let (mut on_board, mut created) = (Vec::new(), Vec::new());
    for node in blockers {
        match node {
            Node::Board(id) => on_board.push(*id),
            Node::New(place) => created.push(*place),
        }
    }
    (on_board, created)
}

/// Returns what the file changes in a task. What the file does not say is left as it is, and so are
/// edges that no file has set.
fn revision(
    task: &Task,
    wanted: &TaskDefinition,
    blockers: &[Node],
    board: &Board,
) -> TaskRevision {
    fn differing<T: PartialEq + Clone>(now: &T, wanted: &T) -> Option<T> {
        (now != wanted).then(|| wanted.clone())
    }
    let (on_board, after) = split(blockers);
    let key_of = |id: &TaskId| board.tasks.get(id).and_then(|other| other.extra.key.as_deref());
    let is_from_file = |id: &TaskId| {
        key_of(id).is_some_and(|key| task.extra.after.iter().any(|e| names_key(e, key)))
    };
    let kept: BTreeSet<TaskId> = on_board.iter().copied().collect();
    let unblock = task.blocked_by.iter().filter(|id| !kept.contains(id) && is_from_file(id));
    let unblock: Vec<TaskId> = unblock.copied().collect();
    let present: BTreeSet<TaskId> = task.blocked_by.iter().copied().collect();
    let blocked_by: Vec<TaskId> = on_board.into_iter().filter(|id| !present.contains(id)).collect();
    let is_linked = !(blocked_by.is_empty() && unblock.is_empty() && after.is_empty());
    let named_blockers = differing(&task.extra.after, &wanted.after).filter(|_| is_linked);
    TaskRevision {
        id: task.id,
        changes: TaskChanges {
            subject: differing(&task.subject, &wanted.subject),
            description: differing(&task.description, &wanted.description),
            fields: wanted.fields.clone().differing(task),
            named_blockers,
            blocked_by,
            unblock,
            ..TaskChanges::default()
        },
        after,
    }
}

fn blockers_after(task: &Task, revision: &TaskRevision) -> Vec<Node> {
    let removed: BTreeSet<TaskId> = revision.changes.unblock.iter().copied().collect();
    let kept = task.blocked_by.iter().filter(|id| !removed.contains(id));
    let on_board = kept.chain(&revision.changes.blocked_by).map(|id| Node::Board(*id));
    on_board.chain(revision.after.iter().map(|place| Node::New(*place))).collect()
}

/// Adds a fault if a task of the files would wait for itself, directly or through tasks on the
/// board. `edges` are the blockers of tasks that change.
fn refuse_cycle(
    tasks: &[Located],
    edges: &BTreeMap<Node, Vec<Node>>,
    board: &Board,
    faults: &mut ImportFaults,
) {
    let open_task = |id: &TaskId| board.tasks.get(id).filter(|t| !t.state.frees_dependants());
    let blockers_of = |node: Node| -> Vec<Node> {
        match (edges.get(&node), node) {
            (Some(blockers), _) => blockers.clone(),
            (None, Node::Board(id)) => open_task(&id)
                .map(|task| task.blocked_by.iter().map(|id| Node::Board(*id)).collect())
                .unwrap_or_default(),
            (None, Node::New(_)) => Vec::new(),
        }
    };
    let from_files: Vec<&Located> = tasks.iter().filter(|located| located.node.is_some()).collect();
    let mut nodes: Vec<Node> = from_files.iter().filter_map(|located| located.node).collect();
    let mut places: BTreeMap<Node, usize> =
        nodes.iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let mut waits: Vec<Vec<usize>> = Vec::new();
    while let Some(node) = nodes.get(waits.len()).copied() {
        let is_open = |node: &Node| match node {
            Node::Board(id) => open_task(id).is_some(),
            Node::New(_) => true,
        };
        let mut befores = Vec::new();
        for blocker in blockers_of(node).into_iter().filter(is_open) {
            befores.push(*places.entry(blocker).or_insert_with(|| {
                nodes.push(blocker);
                nodes.len() - 1
            }));
        }
        waits.push(befores);
    }
    let Some(cycle) = find_cycle(&waits) else { return };
    let name = |place: &usize| match (from_files.get(*place), nodes.get(*place)) {
        (Some(located), _) => format!("`{}`", located.task.key),
        (None, Some(Node::Board(id))) => {
            let key = board.tasks.get(id).and_then(|task| task.extra.key.as_deref());
            key.map_or(format!("#{id}"), |key| format!("`{key}`"))
        }
        (None, _) => String::new(),
    };
    let problem = match cycle.as_slice() {
        [alone] => format!("task {} depends on itself", name(alone)),
        around => {
            let names: Vec<String> = around.iter().chain(around.first()).map(name).collect();
            format!("tasks form a dependency cycle: {}", names.join(" after "))
        }
    };
    // A cycle on the board alone is reported at the first task, which would wait for it forever.
    let first = cycle.first().and_then(|place| from_files.get(*place)).or(from_files.first());
    if let Some(located) = first {
        faults.add(located.file, located.task.line, problem, None);
    }
}
