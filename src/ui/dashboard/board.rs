//! The panel of the board: columns of cards, or the graph of dependencies.

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use strum::VariantArray;

use super::Panel;
use super::keys::KeyCommand;
use super::members::{age, first_of};
use super::scroll::{DrawnPart, bounded};
use super::state::{BoardColumn, Dashboard};
use super::theme::Tone;
use super::words::{cut, draw_note, painted, position};
use crate::Paint;
use crate::board::graph::TaskGraph;
use model::board::task::TaskState;
use model::id::TaskId;
use model::members::assessment::Doing;
use model::members::need::Need;
use model::text;
use model::time::Timestamp;
use ops::views::snapshot::TaskCard;

/// Smallest width of columns side by side; narrower panels list them one below the other.
const COLUMN: u16 = 20;
/// Number of columns.
const COLUMNS: u16 = 4;

/// The place of a part of the board.
enum BoardArea {
    Title(BoardColumn, Rect),
    Card(TaskId, Rect),
}

/// Returns the task whose card is at a position.
pub(super) fn task_at(dashboard: &Dashboard, place: Rect, column: u16, row: u16) -> Option<TaskId> {
    if dashboard.as_graph {
        return None;
    }
    let here = Position::new(column, row);
    parts(dashboard, place.inner(Margin::new(1, 1))).into_iter().find_map(|part| match part {
        BoardArea::Card(id, place) if place.contains(here) => Some(id),
        BoardArea::Card(..) | BoardArea::Title(..) => None,
    })
}

/// Returns the parts that fit into the area.
fn parts(dashboard: &Dashboard, area: Rect) -> Vec<BoardArea> {
    if are_side_by_side(area) {
        side_by_side(dashboard, area, area.width / COLUMNS)
    } else {
        one_below_the_other(dashboard, area)
    }
}

fn are_side_by_side(area: Rect) -> bool {
    area.width >= COLUMN * COLUMNS
}

fn side_by_side(dashboard: &Dashboard, area: Rect, width: u16) -> Vec<BoardArea> {
    let mut found = Vec::new();
    let selected = dashboard.task.and_then(|id| dashboard.column_of(id));
    let mut x = area.x;
    for column in BoardColumn::VARIANTS {
        let nth = column.index();
        let place = Rect { x, width: width.saturating_sub(1), height: area.height.min(1), ..area };
        found.push(BoardArea::Title(*column, place));
        let rows = card_rows(area);
        let tasks = &dashboard.columns[nth];
        let at = selected.filter(|(column, _)| *column == nth).map_or(0, |(_, at)| at);
        let first = first_of(at, rows, tasks.len());
        let mut y = area.y + 1;
        for id in ids(dashboard, tasks, first).take(rows) {
            found.push(BoardArea::Card(id, Rect { y, height: 2, ..place }));
            y += 2;
        }
        x += width;
    }
    found
}

/// Returns the position of the selected task if the columns are listed one below the other. Columns
/// side by side have theirs in their own titles.
pub(super) fn position_in_list(dashboard: &Dashboard, area: Rect) -> Option<String> {
    let height = usize::from(area.height);
    if are_side_by_side(area) {
        return None;
    }
    let (column, at) = dashboard.column_of(dashboard.task?)?;
    let counts = dashboard.columns.each_ref().map(Vec::len);
    let before: usize = counts[..column].iter().sum();
    let titles = counts.iter().filter(|count| **count > 0).count();
    position(before + at, height.saturating_sub(titles), counts.iter().sum())
}

fn one_below_the_other(dashboard: &Dashboard, area: Rect) -> Vec<BoardArea> {
    // Rows of the whole list: `None` is a title.
    let mut rows: Vec<(BoardColumn, Option<TaskId>)> = Vec::new();
    for column in BoardColumn::VARIANTS {
        let tasks = &dashboard.columns[column.index()];
        if !tasks.is_empty() {
            rows.push((*column, None));
            rows.extend(ids(dashboard, tasks, 0).map(|id| (*column, Some(id))));
        }
    }
    let at = rows.iter().position(|(_, id)| id.is_some() && *id == dashboard.task).unwrap_or(0);
    let first = first_of(at, area.height.into(), rows.len());
    let shown = rows.into_iter().skip(first).zip(area.y..area.bottom());
    shown
        .map(|((column, id), y)| {
            let place = Rect { y, height: 1, ..area };
            id.map_or(BoardArea::Title(column, place), |id| BoardArea::Card(id, place))
        })
        .collect()
}

fn ids<'d>(
    dashboard: &'d Dashboard,
    tasks: &'d [usize],
    first: usize,
) -> impl Iterator<Item = TaskId> + 'd {
    let all = dashboard.snapshot.as_ref().map(|snapshot| &snapshot.tasks);
    tasks.iter().skip(first).filter_map(move |at| Some(all?.get(*at)?.id))
}

/// Draws the columns or the graph. Returns the part of the graph that was drawn.
pub(super) fn draw(
    dashboard: &Dashboard,
    area: Rect,
    buffer: &mut Buffer,
    now: Timestamp,
) -> Option<DrawnPart> {
    let theme = dashboard.theme;
    if dashboard.columns.iter().all(Vec::is_empty) {
        let is_read = dashboard.snapshot.as_ref().is_none_or(|snapshot| snapshot.is_board_read);
        let words = if is_read {
            let empty = dashboard.keymap.hint("no tasks", &[(KeyCommand::NewTask, "creates one")]);
            dashboard.words_of_empty(empty, "no task matches")
        } else {
            "reading the board …".to_owned()
        };
        draw_note(&words, area, buffer, theme);
        return None;
    }
    if dashboard.as_graph {
        return draw_graph(dashboard, area, buffer);
    }
    for part in parts(dashboard, area) {
        match part {
            BoardArea::Title(column, place) => {
                let title: &str = column.into();
                let words = format!("{title} {}", column_size(dashboard, column, area));
                let words = cut(&words, place.width.into());
                let style = theme.style(Tone::Strong).add_modifier(Modifier::UNDERLINED);
                buffer.set_line(place.x, place.y, &Line::styled(words, style), place.width);
            }
            BoardArea::Card(id, place) => {
                if let Some(task) = dashboard.task_card(id) {
                    draw_card(dashboard, task, place, buffer, now);
                }
            }
        }
    }
    None
}

/// Returns the number of tasks in a column, and before it the place of the selected task if the
/// column scrolls.
fn column_size(dashboard: &Dashboard, column: BoardColumn, area: Rect) -> String {
    let count = dashboard.columns[column.index()].len();
    let selected = dashboard.task.and_then(|id| dashboard.column_of(id));
    let at = selected.filter(|(nth, _)| *nth == column.index()).map_or(0, |(_, at)| at);
    let scrolls = are_side_by_side(area).then(|| position(at, card_rows(area), count)).flatten();
    scrolls.unwrap_or_else(|| count.to_string())
}

/// Returns the number of cards that fit below the title of a column.
fn card_rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1) / 2)
}

fn draw_card(
    dashboard: &Dashboard,
    task: &TaskCard,
    place: Rect,
    buffer: &mut Buffer,
    now: Timestamp,
) {
    let theme = dashboard.theme;
    let width = usize::from(place.width);
    let (symbol, tone) = if waits_for_a_person(dashboard, task) {
        theme.member_state(&Doing::Waiting(Need::Plan))
    } else {
        theme.task_state(task.state)
    };
    let (mark, mark_tone) = relation(dashboard, task);
    let head = format!("#{} ", task.id);
    let detail = detail(task, now);
    let head_width = Span::raw(format!("{mark}{symbol} {head}")).width();
    let key = task.key.as_deref().map(|key| format!("{} ", text::line(key))).unwrap_or_default();
    let key_width = Span::raw(key.as_str()).width();
    let subject_width = Span::raw(text::line(&task.subject)).width();
    // A card that is too narrow for both shows the subject without the key.
    let key = if head_width + key_width + subject_width <= width { key } else { String::new() };
    let room = width.saturating_sub(head_width + Span::raw(key.as_str()).width());
    let mut spans = vec![
        Span::styled(mark.to_owned(), theme.style(mark_tone)),
        Span::styled(format!("{symbol} "), theme.style(tone)),
        Span::styled(head + &key, theme.style(Tone::Dim)),
    ];
    if place.height >= 2 {
        spans.push(Span::raw(cut(&task.subject, room)));
        buffer.set_line(place.x, place.y, &Line::from(spans), place.width);
        let mut below = vec![Span::raw("   ")];
        below.extend(card_detail(dashboard, task, &detail, width.saturating_sub(3)));
        buffer.set_line(place.x, place.y + 1, &Line::from(below), place.width);
    } else {
        let detail = match &task.progress {
            Some(progress) => format!("{detail} {}%", progress.percent),
            None => detail,
        };
        let detail_room = Span::raw(detail.as_str()).width().min(room / 2);
        let subject = cut(&task.subject, room.saturating_sub(detail_room + 1));
        let gap = room.saturating_sub(Span::raw(subject.as_str()).width() + detail_room);
        spans.push(Span::raw(subject));
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(cut(&detail, detail_room), theme.style(Tone::Dim)));
        buffer.set_line(place.x, place.y, &Line::from(spans), place.width);
    }
    if dashboard.task == Some(task.id) {
        let row = Rect { height: 1, ..place };
        buffer.set_style(row, theme.selected(dashboard.focus == Panel::Board));
    }
}

/// Returns true if the owner of a task waits for an approval before it goes on.
fn waits_for_a_person(dashboard: &Dashboard, task: &TaskCard) -> bool {
    let owner = task.owner.as_deref().filter(|_| task.state == TaskState::InProgress);
    owner.is_some_and(|owner| {
        let members = dashboard.snapshot.iter().flat_map(|snapshot| &snapshot.status.members);
        members
            .filter(|member| member.name.as_str() == owner)
            .any(|member| matches!(member.state.needs, Some(Need::Plan | Need::Permission)))
    })
}

/// Marks the tasks that the selected one waits for, and those that wait for it.
fn relation(dashboard: &Dashboard, task: &TaskCard) -> (&'static str, Tone) {
    let theme = dashboard.theme;
    let Some(selected) = dashboard.task.and_then(|id| dashboard.task_card(id)) else {
        return (" ", Tone::Plain);
    };
    if selected.blockers.contains(&task.id) {
        (theme.either("←", "<"), Tone::Waiting)
    } else if task.blockers.contains(&selected.id) {
        (theme.either("→", ">"), Tone::Working)
    } else {
        (" ", Tone::Plain)
    }
}

/// Returns the owner with the age, what the task waits for, or how it ended.
fn detail(task: &TaskCard, now: Timestamp) -> String {
    let mut words = Vec::new();
    words.extend(task.owner.clone());
    if let Some(since) = task.running_since {
        words.push(age(now.since(since)));
    }
    match task.state {
        TaskState::Blocked => {
            let blockers: Vec<String> = task.blockers.iter().map(|id| format!("#{id}")).collect();
            words.push(format!("after {}", blockers.join(" ")));
        }
        TaskState::Pending | TaskState::Failed | TaskState::Stale => {
            words.extend(task.reason.clone());
        }
        TaskState::Completed | TaskState::Cancelled => words.extend(task.ending.clone()),
        TaskState::InProgress | TaskState::Stopping | TaskState::InReview => {}
    }
    words.join(" ")
}

fn card_detail(
    dashboard: &Dashboard,
    task: &TaskCard,
    detail: &str,
    width: usize,
) -> Vec<Span<'static>> {
    let theme = dashboard.theme;
    let Some(progress) = task.progress.as_ref().filter(|_| width >= 14) else {
        return vec![Span::styled(cut(detail, width), theme.style(Tone::Dim))];
    };
    let bar = format!("{} {}% ", theme.bar(progress.percent, 5), progress.percent);
    let room = width.saturating_sub(Span::raw(bar.as_str()).width());
    let words = if progress.step.is_empty() {
        detail.to_owned()
    } else {
        format!("{detail} {}", progress.step)
    };
    vec![
        Span::styled(bar, theme.style(Tone::Working)),
        Span::styled(cut(&words, room), theme.style(Tone::Dim)),
    ]
}

fn draw_graph(dashboard: &Dashboard, area: Rect, buffer: &mut Buffer) -> Option<DrawnPart> {
    let snapshot = dashboard.snapshot.as_ref()?;
    let shown = dashboard.columns.iter().flatten().filter_map(|at| snapshot.tasks.get(*at));
    let graph = TaskGraph::of_cards(shown.filter(|task| !task.state.frees_dependants()));
    let paint = Paint { on: dashboard.theme.color };
    let text = graph.draw(crate::GraphFormat::Text, paint);
    let lines: Vec<&str> = text.lines().collect();
    let rows = usize::from(area.height);
    let scrolled = dashboard.scrolled.get(&Panel::Board).copied().unwrap_or(0);
    let first = bounded(scrolled, rows, lines.len());
    for (y, line) in (area.y..area.bottom()).zip(&lines[first..]) {
        buffer.set_line(area.x, y, &painted(line, dashboard.theme), area.width);
    }
    let position = position(first, rows, lines.len());
    Some(DrawnPart { position, scrolled: first, ..DrawnPart::default() })
}
