//! Draws the dependencies of tasks: as an indented tree for a terminal, and as Mermaid and DOT
//! source. Task texts come from any program, so each format escapes every character that has a
//! meaning in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use crate::paint::{Paint, Tint};
use crate::team::report::ids;
use model::board::Board;
use model::board::task::Task;
use model::id::TaskId;
use model::text;
use ops::views::snapshot::TaskCard;

/// Maximum length of a subject, in characters.
const SUBJECT: usize = 60;
/// Maximum indentation, in levels. Deeper tasks are not indented further, so that the size of the
/// output stays proportional to the number of tasks.
const MAX_INDENT: usize = 16;

/// A task of a [`TaskGraph`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphNode {
    pub id: TaskId,
    pub subject: String,
    /// The task's state; `unreadable` if its file could not be read.
    pub state: &'static str,
}

/// The tasks to draw and their dependencies, in the order of ids. It may contain cycles, because
/// other programs write task files too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskGraph {
    pub tasks: Vec<GraphNode>,
    /// Pairs of blocker and blocked task.
    pub edges: Vec<(TaskId, TaskId)>,
}

/// The form in which a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum GraphFormat {
    #[default]
    Text,
    Mermaid,
    Dot,
}

impl TaskGraph {
    /// Returns the graph of the open tasks, or of all with `all`. Tasks that another program
    /// reserves for itself are left out.
    pub fn new(board: &Board, all: bool) -> TaskGraph {
        let drawn: Vec<&Task> =
            board.work().filter(|task| all || !task.state.frees_dependants()).collect();
        let mut tasks: Vec<GraphNode> = drawn
            .iter()
            .map(|task| node(task.id, &task.subject, board.state(task).as_str()))
            .collect();
        tasks.extend(board.unreadable.iter().map(|id| node(*id, "cannot be read", "unreadable")));
        let edges = drawn.iter().flat_map(|task| edges_to(task.id, &task.blocked_by));
        TaskGraph::of(tasks, edges)
    }

    /// Returns the graph of these tasks and of the dependencies between them.
    pub(crate) fn of_cards<'c>(cards: impl Iterator<Item = &'c TaskCard>) -> TaskGraph {
        let cards: Vec<&TaskCard> = cards.collect();
        let nodes = cards.iter().map(|card| node(card.id, &card.subject, card.state.as_str()));
        let edges = cards.iter().flat_map(|card| edges_to(card.id, &card.blockers));
        TaskGraph::of(nodes.collect(), edges)
    }

    fn of(mut tasks: Vec<GraphNode>, edges: impl Iterator<Item = (TaskId, TaskId)>) -> TaskGraph {
        tasks.sort_by_key(|node| node.id);
        let known: BTreeSet<TaskId> = tasks.iter().map(|node| node.id).collect();
        let edges: BTreeSet<_> = edges.filter(|(blocker, _)| known.contains(blocker)).collect();
        TaskGraph { tasks, edges: edges.into_iter().collect() }
    }

    /// Draws the graph, without a line break at the end.
    pub fn draw(&self, format: GraphFormat, paint: Paint) -> String {
        match format {
            GraphFormat::Text => self.tree(paint),
            GraphFormat::Mermaid => self.mermaid(),
            GraphFormat::Dot => self.dot(),
        }
    }

    fn mermaid(&self) -> String {
        let mut out = "flowchart LR\n".to_owned();
        for GraphNode { id, subject, state } in &self.tasks {
            let label = escape_mermaid(&format!("#{id} {subject}"));
            let _ = writeln!(out, "    t{id}[\"{label}\"]:::{state}");
        }
        for (blocker, task) in &self.edges {
            let _ = writeln!(out, "    t{blocker} --> t{task}");
        }
        for state in self.tasks.iter().map(|node| node.state).collect::<BTreeSet<_>>() {
            let StateStyle { fill, stroke, .. } = style(state);
            let _ = writeln!(out, "    classDef {state} fill:{fill},stroke:{stroke},color:#1f2328");
        }
        out.trim_end().to_owned()
    }

    fn dot(&self) -> String {
        let mut out = "digraph tasks {\n    rankdir=LR;\n    \
            node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n"
            .to_owned();
        for GraphNode { id, subject, state } in &self.tasks {
            let label = escape_dot(&format!("#{id} {subject}"));
            let StateStyle { fill, stroke, .. } = style(state);
            let _ = writeln!(
                out,
                "    t{id} [label=\"{label}\", class=\"{state}\", fillcolor=\"{fill}\", color=\"{stroke}\"];"
            );
        }
        for (blocker, task) in &self.edges {
            let _ = writeln!(out, "    t{blocker} -> t{task};");
        }
        out.push('}');
        out
    }

    /// Draws each task once, indented below its first blocker, and names its other blockers behind
    /// it.
    fn tree(&self, paint: Paint) -> String {
        let mut blockers: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for (blocker, task) in &self.edges {
            blockers.entry(*task).or_default().push(*blocker);
        }
        let blockers_of = |node: &GraphNode| blockers.get(&node.id).map_or(&[][..], Vec::as_slice);
        let mut below: BTreeMap<Option<TaskId>, Vec<&GraphNode>> = BTreeMap::new();
        for node in &self.tasks {
            below.entry(blockers_of(node).first().copied()).or_default().push(node);
        }
        let free = below.get(&None).into_iter().flatten().copied();
        let mut drawn = BTreeSet::new();
        let mut lines = Vec::new();
        // No free task leads to a cycle, so it is drawn from its first task on.
        for root in free.chain(&self.tasks) {
            let mut open = vec![(root, 0)];
            while let Some((node, depth)) = open.pop() {
                if !drawn.insert(node.id) {
                    continue;
                }
                let note = match blockers_of(node) {
                    [] => String::new(),
                    all if depth == 0 || depth > MAX_INDENT => format!("  (after {})", ids(all)),
                    [_] => String::new(),
                    [_, others @ ..] => format!("  (also after {})", ids(others)),
                };
                let indent = "  ".repeat(depth.min(MAX_INDENT));
                let state = paint.put(style(node.state).tint, &node.state.replace('_', " "));
                let subject = text::line(&node.subject);
                let note = paint.put(Tint::Dim, &note);
                lines.push(format!("{indent}#{} {subject}  {state}{note}", node.id));
                let children = below.get(&Some(node.id)).into_iter().flatten().rev();
                open.extend(children.map(|child| (*child, depth + 1)));
            }
        }
        lines.join("\n")
    }
}

fn node(id: TaskId, subject: &str, state: &'static str) -> GraphNode {
    GraphNode { id, subject: text::short(subject, SUBJECT), state }
}

/// Returns the edges from these blockers to a task.
fn edges_to(task: TaskId, blockers: &[TaskId]) -> impl Iterator<Item = (TaskId, TaskId)> {
    blockers.iter().map(move |blocker| (*blocker, task))
}

/// Colours of a state.
struct StateStyle {
    fill: &'static str,
    stroke: &'static str,
    tint: Tint,
}

fn style(state: &str) -> StateStyle {
    let (fill, stroke, tint) = match state {
        "in_progress" => ("#ddf4ff", "#0969da", Tint::Bold),
        "in_review" => ("#fbefff", "#8250df", Tint::Bold),
        "completed" => ("#dafbe1", "#1a7f37", Tint::Good),
        "blocked" => ("#eaeef2", "#6e7781", Tint::Dim),
        "cancelled" => ("#f6f8fa", "#afb8c1", Tint::Dim),
        "stale" => ("#fff8c5", "#9a6700", Tint::Warn),
        "failed" | "unreadable" => ("#ffebe9", "#cf222e", Tint::Bad),
        _ => ("#ffffff", "#57606a", Tint::Plain),
    };
    StateStyle { fill, stroke, tint }
}

/// Escapes a label of Mermaid as numeric character references. Inside the quotes of a label, only
/// letters, digits and the characters below have no meaning to any version of Mermaid.
fn escape_mermaid(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        if c.is_alphanumeric() || " -_.,/()…".contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}

/// Escapes a quoted label of DOT, in which a backslash starts an escape sequence and an ampersand a
/// character reference of HTML.
fn escape_dot(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::board::task::TaskState;

    const PLAIN: Paint = Paint { on: false };

    /// A board of tasks 1..=n with edges (blocker, task).
    fn board(n: u64, edges: &[(u64, u64)]) -> Board {
        let mut board = Board::default();
        for id in 1..=n {
            board.tasks.insert(TaskId(id), Task::new(TaskId(id), &format!("s{id}"), ""));
        }
        for (blocker, task) in edges {
            let task = board.tasks.get_mut(&TaskId(*task)).expect("task");
            task.blocked_by.push(TaskId(*blocker));
        }
        board
    }

    fn tree(n: u64, edges: &[(u64, u64)]) -> String {
        let text = TaskGraph::new(&board(n, edges), false).draw(GraphFormat::Text, PLAIN);
        text.replace("  pending", "").replace("  blocked", "")
    }

    #[test]
    fn each_task_is_drawn_once_and_other_blockers_are_named() {
        assert_eq!(
            tree(6, &[(1, 2), (1, 3), (2, 4), (3, 4), (3, 5)]),
            "#1 s1\n  #2 s2\n    #4 s4  (also after #3)\n  #3 s3\n    #5 s5\n#6 s6"
        );
        assert_eq!(tree(3, &[(1, 2), (1, 3), (2, 3)]), "#1 s1\n  #2 s2\n  #3 s3  (also after #2)");
    }

    #[test]
    fn cycles_and_doubled_edges_are_drawn() {
        assert_eq!(tree(2, &[(1, 2), (2, 1), (1, 2)]), "#1 s1  (after #2)\n  #2 s2");
        assert_eq!(
            tree(4, &[(2, 3), (3, 2), (3, 4)]),
            "#1 s1\n#2 s2  (after #3)\n  #3 s3\n    #4 s4"
        );
        assert_eq!(tree(1, &[(1, 1)]), "#1 s1  (after #1)");
        let graph = TaskGraph::new(&board(2, &[(1, 2), (1, 2)]), false);
        assert_eq!(graph.edges, [(TaskId(1), TaskId(2))]);
    }

    #[test]
    fn long_chain_is_indented_up_to_the_maximum() {
        let chain: Vec<(u64, u64)> = (1..100_000).map(|id| (id, id + 1)).collect();
        let text = tree(100_000, &chain);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 100_000);
        assert_eq!(lines[16], format!("{}#17 s17", " ".repeat(32)));
        assert_eq!(lines[17], format!("{}#18 s18  (after #17)", " ".repeat(32)));
    }

    #[test]
    fn only_open_tasks_are_drawn_unless_all_are_wanted() {
        let mut b = board(4, &[(1, 2), (3, 2), (9, 2)]);
        b.tasks.get_mut(&TaskId(1)).expect("task").state = TaskState::Completed;
        let internal = b.tasks.get_mut(&TaskId(4)).expect("task");
        internal.metadata.insert("_internal".to_owned(), true.into());
        b.tasks.remove(&TaskId(3));
        b.unreadable.insert(TaskId(3));
        let draw = |all| TaskGraph::new(&b, all).draw(GraphFormat::Text, PLAIN);
        assert_eq!(draw(false), "#3 cannot be read  unreadable\n  #2 s2  blocked");
        assert_eq!(
            draw(true),
            "#1 s1  completed\n  #2 s2  blocked  (also after #3)\n#3 cannot be read  unreadable"
        );
        assert_eq!(TaskGraph::new(&Board::default(), true).draw(GraphFormat::Text, PLAIN), "");
    }

    #[test]
    fn mermaid_and_dot_have_nodes_edges_and_states() {
        let graph = TaskGraph::new(&board(2, &[(1, 2)]), false);
        assert_eq!(
            graph.draw(GraphFormat::Mermaid, PLAIN),
            "flowchart LR\n    t1[\"#35;1 s1\"]:::pending\n    t2[\"#35;2 s2\"]:::blocked\n    \
             t1 --> t2\n    classDef blocked fill:#eaeef2,stroke:#6e7781,color:#1f2328\n    \
             classDef pending fill:#ffffff,stroke:#57606a,color:#1f2328"
        );
        let dot = graph.draw(GraphFormat::Dot, PLAIN);
        assert!(dot.starts_with("digraph tasks {\n    rankdir=LR;\n"), "{dot}");
        assert!(dot.contains("\n    t1 [label=\"#1 s1\", class=\"pending\", "), "{dot}");
        assert!(dot.ends_with("\n    t1 -> t2;\n}"), "{dot}");
    }

    #[test]
    fn hostile_subjects_are_escaped_in_each_format() {
        let mut b = board(1, &[]);
        let subject = "a\"]; <b>&lt;\\n\n\u{1b}[31m`x` #35; end:::c";
        b.tasks.get_mut(&TaskId(1)).expect("task").subject = subject.to_owned();
        let draw = |format| TaskGraph::new(&b, false).draw(format, PLAIN);
        let label = |text: &str| -> String {
            let line = text.lines().find(|line| line.contains("t1")).expect("a node").to_owned();
            let (start, end) = (line.find('"').expect("quote"), line.rfind('"').expect("quote"));
            line[start + 1..end].to_owned()
        };
        let mermaid = label(&draw(GraphFormat::Mermaid));
        assert_eq!(
            mermaid,
            "#35;1 a#34;#93;#59; #60;b#62;#38;lt#59;#92;n#9226;#9243;#91;31m#96;x#96; #35;35#59; \
             end#58;#58;#58;c"
        );
        let dot = draw(GraphFormat::Dot);
        assert!(
            dot.contains(
                r##"[label="#1 a\"]; <b>&amp;lt;\\n␊␛[31m`x` #35; end:::c", class="pending""##
            ),
            "{dot}"
        );
        assert_eq!(draw(GraphFormat::Text).lines().count(), 1);
        assert!(!draw(GraphFormat::Text).contains('\u{1b}'));
    }
}
