//! Walks through every key, panel, selection and size.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use serde_json::json;
use strum::VariantArray;

use super::{Dashboard, Effect, NOW, THEME, name, permission, press, sample};
use crate::dashboard::dialog::{OpenDialog, PromptKind};
use crate::dashboard::keys::BINDINGS;
use crate::dashboard::layout::{Panel, Places};
use crate::testing::shown_state;
use model::board::task::TaskState;
use model::decisions::rules::Rule;
use model::id::{MemberName, TaskId};
use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use ops::decisions::decide::ApprovalPreview;
use ops::decisions::requests::Shown;
use ops::members::status::{LeftStatus, MemberStatus};
use ops::views::snapshot::TeamSnapshot;

const SIZES: [(u16, u16); 4] = [(40, 10), (80, 24), (120, 40), (200, 50)];

/// A selection in each list that has one.
#[derive(Debug, Clone, Copy, Default)]
struct Selection {
    member: &'static str,
    request: &'static str,
    task: u64,
    is_empty: bool,
}

const SELECTIONS: [Selection; 9] = [
    Selection { member: "", request: "", task: 0, is_empty: true },
    Selection { member: "cleo", request: "perm-ben", task: 6, is_empty: false },
    Selection { member: "ben", request: "plan-ada", task: 3, is_empty: false },
    Selection { member: "ada", request: "shutdown-srv", task: 2, is_empty: false },
    Selection { member: "zoe", request: "pane-dan", task: 7, is_empty: false },
    Selection { member: "dan", request: "perm-ben", task: 4, is_empty: false },
    Selection { member: "srv", request: "perm-cat", task: 1, is_empty: false },
    Selection { member: "cat", request: "perm-cat", task: 8, is_empty: false },
    Selection { member: "eve", request: "perm-eve", task: 5, is_empty: false },
];

/// The object that a frame shows as highlighted in the panel with the focus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FrameObject {
    pub(super) member: Option<String>,
    pub(super) task: Option<TaskId>,
    /// The owner of the task.
    pub(super) owner: Option<String>,
    /// The highlighted request, or the oldest one of the member.
    pub(super) request: Option<String>,
    /// The line at the bottom.
    pub(super) footer: String,
}

/// One key, pressed in one state.
#[derive(Debug)]
pub(super) struct Step {
    /// Key, panel, selection and size.
    pub(super) case: String,
    pub(super) key: String,
    pub(super) object: FrameObject,
    /// The effects of the key and of the answers to its dialogs.
    pub(super) effects: Vec<Effect>,
    /// The key was refused with a reason.
    pub(super) is_refused: bool,
}

fn shell(id: &str, from: &str, command: &str) -> Shown {
    let always = Ok(vec![Rule::parse(&format!("Bash({command})")).expect("a rule")]);
    Shown {
        body: json!({"type": "permission_request", "request_id": id, "tool_name": "Bash",
            "description": "why", "input": {"command": command}}),
        summary: format!("Bash: {command}"),
        preview: Some(ApprovalPreview { always, asked_by: None, outside: None }),
        ..permission(id, from, 1_000)
    }
}

/// A team in which each kind of member, task and request occurs.
fn team() -> TeamSnapshot {
    let mut snapshot = sample();
    let named = |who: &str, like: usize| MemberStatus {
        name: name(who),
        ..sample().status.members[like].clone()
    };
    snapshot.status.members.extend([named("cat", 1), named("eve", 1)]);
    snapshot.status.left = vec![LeftStatus {
        name: name("zoe"),
        state: shown_state(Doing::Ended(MemberState::Failed), Some("exited with code 7")),
        age_ms: 5_000,
        gave_up_after: None,
        resumable: true,
    }];
    let plan = Shown {
        kind: "plan",
        summary: "Move the parser".to_owned(),
        body: json!({"type": "plan_approval_request", "requestId": "plan-ada", "from": "ada",
            "planContent": "# Move the parser\n1. move it"}),
        ..permission("plan-ada", "ada", 9_000)
    };
    let shutdown = Shown {
        kind: "shutdown",
        summary: "shutdown request".to_owned(),
        body: "enough".into(),
        ..permission("shutdown-srv", "srv", 8_000)
    };
    let pane = Shown { answered_by: Some("pane"), ..permission("pane-dan", "dan", 7_000) };
    snapshot.requests = vec![
        plan,
        shutdown,
        pane,
        shell("perm-ben", "ben", "make deploy"),
        shell("perm-ben-2", "ben", "rm -rf out"),
        shell("perm-cat", "cat", "ls"),
        permission("perm-eve", "eve", 500),
    ];
    let mut tasks = (*snapshot.tasks).clone();
    let cancelled = super::card(8, "Drop it", TaskState::Cancelled);
    tasks.push(ops::views::snapshot::TaskCard { owner: Some("gone".to_owned()), ..cancelled });
    snapshot.tasks = Arc::new(tasks);
    snapshot
}

fn empty() -> TeamSnapshot {
    let mut snapshot = TeamSnapshot { requests: Vec::new(), ..sample() };
    snapshot.status.members.clear();
    snapshot.tasks = Arc::default();
    snapshot
}

fn selected(selection: Selection, panel: Panel) -> Dashboard {
    let mut dashboard = super::dashboard(THEME);
    dashboard.set_snapshot(if selection.is_empty { empty() } else { team() });
    dashboard.show(panel);
    if !selection.is_empty {
        dashboard.member = Some(name(selection.member));
        dashboard.request = Some(selection.request.to_owned());
        dashboard.task = Some(TaskId(selection.task));
    }
    dashboard.moved_at = None;
    dashboard
}

/// Draws the dashboard, and returns the places of the frame and what it shows as highlighted.
fn drawn(
    dashboard: &mut Dashboard,
    panel: Panel,
    (width, height): (u16, u16),
) -> (Places, FrameObject) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    terminal.draw(|frame| dashboard.draw(frame, NOW)).expect("memory");
    let buffer = terminal.backend().buffer();
    let place = dashboard.places.place_of(panel).expect("the panel with the focus is shown");
    let row = |y: u16, from: u16, to: u16| -> String {
        (from..to).map(|x| buffer[(x, y)].symbol()).collect()
    };
    let marked = marked_row(buffer, place);
    let title = row(place.y, place.x, place.right());
    let row_of_request = marked.clone();
    let mut object = FrameObject { footer: row(height - 1, 0, width), ..FrameObject::default() };
    let word = |text: &str, nth: usize| text.split_whitespace().nth(nth).map(str::to_owned);
    match panel {
        Panel::Members => object.member = marked.and_then(|row| word(&row, 1)),
        Panel::Screen => object.member = word(&title, 1),
        Panel::Messages => object.member = word(&title, 3),
        Panel::Events => {}
        Panel::Requests => object.member = marked.as_ref().and_then(|row| word(row, 0)),
        Panel::Board => {
            let id = marked.and_then(|row| row.split_once('#').map(|(_, id)| id.to_owned()));
            let id = id.and_then(|id| word(&id, 0)).and_then(|id| TaskId::parse(&id).ok());
            object.owner = id.and_then(|id| dashboard.task_card(id)?.owner.clone());
            object.task = id;
        }
    }
    object.member = object.member.filter(|who| MemberName::new(who).is_ok());
    let all = dashboard.snapshot.iter().flat_map(|snapshot| &snapshot.requests);
    let request = match panel {
        Panel::Requests => marked_request(dashboard, row_of_request.as_deref()),
        _ => all.into_iter().find(|one| {
            one.kind != "shutdown" && Some(one.from.as_str()) == object.member.as_deref()
        }),
    };
    object.request = request.map(|one| one.request_id.to_string());
    // Beside another panel, the panel of requests shows what the keys answer.
    let of_member = matches!(panel, Panel::Members | Panel::Screen | Panel::Messages);
    if let Some(place) = dashboard.places.place_of(Panel::Requests).filter(|_| of_member) {
        let row = marked_row(buffer, place);
        let shown = marked_request(dashboard, row.as_deref());
        let answered = shown.filter(|one| one.kind != "shutdown");
        let answered = answered.map(|one| one.request_id.to_string());
        assert_eq!(answered, object.request, "{panel:?} of {width}x{height}: {row:?}");
        let who = object.member.as_deref();
        assert!(shown.is_none_or(|one| Some(one.from.as_str()) == who), "{who:?}: {row:?}");
    }
    (dashboard.places.clone(), object)
}

/// Returns the highlighted row of a list.
fn marked_row(buffer: &Buffer, place: Rect) -> Option<String> {
    let is_marked = |x: u16, y: u16| {
        let cell = &buffer[(x, y)];
        cell.modifier.contains(Modifier::REVERSED) || cell.bg != Color::Reset
    };
    (place.y + 1..place.bottom() - 1).find_map(|y| {
        let marked: Vec<u16> =
            (place.x + 1..place.right() - 1).filter(|x| is_marked(*x, y)).collect();
        let (first, last) = (*marked.first()?, *marked.last()?);
        Some((first..=last).map(|x| buffer[(x, y)].symbol()).collect())
    })
}

/// Returns the request whose row this is; a long row is cut.
fn marked_request<'d>(dashboard: &'d Dashboard, row: Option<&str>) -> Option<&'d Shown> {
    let row = row?;
    let whole = |one: &Shown| format!("{} {}: {}", one.from, one.kind, one.summary);
    let shown = row.split('…').next()?;
    let is_row = |one: &&Shown| {
        shown.starts_with(&whole(one)) || (row.contains('…') && whole(one).starts_with(shown))
    };
    let mut found = dashboard.snapshot.as_ref()?.requests.iter().filter(is_row);
    let first = found.next();
    assert!(found.next().is_none(), "the row {row} is of one request");
    first
}

/// Presses a key, and answers the dialogs that it opens so that they are carried out.
fn drive(dashboard: &mut Dashboard, key: &str) -> Vec<Effect> {
    let mut effects = press(dashboard, key);
    for _ in 0..3 {
        let keys = match &mut dashboard.dialog {
            Some(OpenDialog::Confirmation(_)) => "y",
            Some(OpenDialog::Page(_)) if ["y", "Y", "r", "E"].contains(&key) => key,
            Some(OpenDialog::TextPrompt(prompt)) => match prompt.kind {
                PromptKind::Palette | PromptKind::Filter => return effects,
                PromptKind::Block(_) | PromptKind::Unblock(_) => "C-u '#1 3' Enter",
                PromptKind::Assign(_) => "C-u ada Enter",
                PromptKind::EditInput(_) => "C-u '{\"command\":\"-x\"}' Enter",
                _ => "'--text of a person' Enter",
            },
            Some(OpenDialog::Form(form)) => {
                if let crate::dashboard::form::FormKind::EditTask { task, .. } = form.kind {
                    form.fill(task, "", "one\ntwo");
                }
                "new Tab x Tab Enter"
            }
            _ => return effects,
        };
        effects.extend(press(dashboard, keys));
    }
    effects
}

/// Calls `check` for each key, panel, selection and size.
pub(super) fn walk(mut check: impl FnMut(&Step)) {
    for size in SIZES {
        for panel in Panel::VARIANTS {
            for selection in SELECTIONS {
                let (places, object) = drawn(&mut selected(selection, *panel), *panel, size);
                for key in BINDINGS.iter().flat_map(|binding| binding.keys) {
                    // The terminal has no such key, or it only moves.
                    if ["F1", "BTab", "NPage"].contains(key) {
                        continue;
                    }
                    let mut dashboard = selected(selection, *panel);
                    dashboard.places = places.clone();
                    let effects = drive(&mut dashboard, key);
                    check(&Step {
                        case: format!("{key} in {panel:?} of {size:?} with {selection:?}"),
                        key: (*key).to_owned(),
                        object: object.clone(),
                        effects,
                        is_refused: dashboard.notice.is_some() && dashboard.dialog.is_none(),
                    });
                }
            }
        }
    }
}
