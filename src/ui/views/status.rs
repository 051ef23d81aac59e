//! The tables of teams, members and shutdown outcomes.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};
use crate::team::report::deviations;
use crate::views::life::{count_list, reason_cell, span, state_cell, task_mark, task_word};
use model::members::assessment::Doing;
use model::members::usage::{self, UsageTotal};
use model::team::Team;
use model::{text, time};
use ops::ending::by_process::EndedRun;
use ops::ending::shutdown::ShutdownResult;
use ops::members::lead::LeadSeen;
use ops::members::status::{MemberStatus, Status, TaskCounts, TaskStatus};
use ops::team::ListedTeam;

/// Up to this number, all tasks and all former members are shown.
const ALL_SHOWN_UP_TO: usize = 10;

/// The size of a page and the amount of detail.
#[derive(Debug, Clone, Copy)]
pub struct StatusFormat {
    /// Maximum number of characters in a line.
    pub width: usize,
    /// Completed tasks and all former members are shown, regardless of their number.
    pub all: bool,
    pub paint: Paint,
}

/// Formats the page about a team: lead, members, former members and tasks.
pub fn status(status: &Status, format: StatusFormat) -> String {
    let paint = format.paint;
    let team = paint.put(Tint::Bold, &format!("team {}", status.team));
    let requests = match status.requests {
        0 => String::new(),
        some => format!("  open requests: {some}"),
    };
    let unread = match status.unread {
        None | Some(0) => String::new(),
        Some(some) => paint.put(
            Tint::Warn,
            &format!("\nunread: {some}; `phalanx inbox -t {}` shows them", status.team),
        ),
    };
    let usage = status.usage.map(|usage| format!("  used: {}", usage.describe()));
    let head = format!(
        "{team}  {}\n{}{requests}{}{unread}",
        lead(status, paint),
        counts(&status.tasks),
        usage.unwrap_or_default()
    );
    let near = status.budgets.iter().filter(|budget| budget.level().is_some());
    let near =
        near.map(|budget| paint.put(Tint::Warn, &format!("\nbudget: {}", budget.describe())));
    let head = head + &near.collect::<String>();
    let parts = [members(status, format), left(status, format), tasks(status, format)];
    let parts = parts.into_iter().flatten().map(|part| format!("\n\n{part}"));
    head + &parts.collect::<String>()
}

fn lead(status: &Status, paint: Paint) -> String {
    match (&status.lead, &status.dead_lead) {
        (Some(lead), _) if lead.state == "stopped" => paint
            .put(Tint::Bad, &format!("led by process {0}, stopped; `kill -CONT {0}`", lead.pid)),
        (Some(lead), _) => {
            let age = time::human(lead.age_ms);
            let on_host = if lead.is_elsewhere {
                format!(" on host {}", text::line(&lead.host))
            } else {
                String::new()
            };
            paint.put(Tint::Dim, &format!("led by process {}{on_host} for {age}", lead.pid))
        }
        (None, Some(lead)) => {
            let has_left = status.left.iter().any(|left| left.resumable);
            let members = status.members.iter();
            let text = dead_lead_text(lead, status.team.as_str(), members, has_left);
            paint.put(Tint::Bad, &text)
        }
        (None, None) => paint.put(Tint::Dim, "no lead"),
    }
}

/// Returns the text about a dead lead, with the next command.
pub(crate) fn dead_lead_text<'m>(
    lead: &LeadSeen,
    team: &str,
    members: impl Iterator<Item = &'m MemberStatus> + Clone,
    has_left: bool,
) -> String {
    format!("lead {} died; `{}`", lead.pid, lead.succession(team, members, has_left))
}

fn counts(tasks: &TaskCounts) -> String {
    let counted = [
        (tasks.pending, "pending"),
        (tasks.blocked, "blocked"),
        (tasks.in_progress, "in progress"),
        (tasks.in_review, "in review"),
        (tasks.stale, "stale"),
        (tasks.completed, "completed"),
        (tasks.failed, "failed"),
        (tasks.cancelled, "cancelled"),
    ];
    match count_list(&counted).as_str() {
        "" => "no tasks".to_owned(),
        counts => format!("tasks: {counts}"),
    }
}

fn members(status: &Status, format: StatusFormat) -> Option<String> {
    if status.members.is_empty() {
        return None;
    }
    let heads = [
        "NAME", "STATE", "TASK", "IDLE", "ROLE", "PROFILE", "BACKEND", "HOST", "PANE", "PID",
        "USED", "REASON",
    ];
    let mut table = Table::new(&heads);
    for member in &status.members {
        table.row(vec![
            tinted(Tint::member(member.color.as_deref()), member.name.as_str()),
            state_cell(&member.state.doing),
            maybe(member.task.map(|id| format!("#{id} {}", text::short(activity(member), 40)))),
            maybe(member.idle_ms.map(span)),
            maybe(member.role.as_deref().filter(|role| *role != "general-purpose")),
            maybe(member.profile.as_deref()),
            maybe(member.backend.as_deref()),
            maybe(member.host.as_ref().map(|host| host.as_str())),
            maybe(member.pane.as_deref()),
            match member.pid {
                Some(pid) if member.is_elsewhere => tinted(Tint::Warn, format!("{pid}?")),
                pid => maybe(pid.map(|pid| pid.to_string())),
            },
            maybe(member.usage.map(used)),
            // Its work has a column of its own.
            if member.state.doing == Doing::Working && member.task.is_some() {
                cell("")
            } else {
                reason_cell(&member.state)
            },
        ]);
    }
    let spare = ["PID", "PROFILE", "PANE", "BACKEND", "ROLE", "HOST", "USED"];
    let table =
        table.render_within(format.width, &spare, &["REASON", "TASK", "NAME"], format.paint);
    let note = "\nmembers on other hosts are shown as recorded; `phalanx ps` asks their hosts";
    let is_elsewhere = status.members.iter().any(|member| member.is_elsewhere);
    let note = if is_elsewhere { format.paint.put(Tint::Dim, note) } else { String::new() };
    Some(table + &note)
}

/// Returns tokens and cost in short: `1.2M $3.40`.
pub(crate) fn used(usage: UsageTotal) -> String {
    let cost = usage.cost_word().map(|cost| format!(" {cost}")).unwrap_or_default();
    format!("{}{cost}", usage::count(usage.tokens))
}

fn left(status: &Status, format: StatusFormat) -> Option<String> {
    if status.left.is_empty() {
        return None;
    }
    let mut table = Table::new(&["LEFT", "STATE", "WHEN", "REASON", "NEXT"]);
    let shown = if format.all { status.left.len() } else { ALL_SHOWN_UP_TO };
    for member in status.left.iter().take(shown) {
        table.row(vec![
            tinted(Tint::Bold, member.name.as_str()),
            state_cell(&member.state.doing),
            cell(time::ago(member.age_ms)),
            reason_cell(&member.state),
            maybe(member.resumable.then(|| format!("`phalanx resume {}`", member.name))),
        ]);
    }
    let table =
        table.render_within(format.width, &["WHEN", "STATE"], &["REASON", "LEFT"], format.paint);
    let hidden = status.left.len().saturating_sub(shown);
    Some(table + &hidden_words(hidden, "members that left", format.paint))
}

fn tasks(status: &Status, format: StatusFormat) -> Option<String> {
    if status.task_list.is_empty() {
        return None;
    }
    let whole = format.all || status.task_list.len() <= ALL_SHOWN_UP_TO;
    let is_shown = |task: &&TaskStatus| whole || !task.state.frees_dependants();
    let shown: Vec<&TaskStatus> = status.task_list.iter().filter(is_shown).collect();
    let mut table = Table::new(&["ID", "KEY", "STATE", "OWNER", "SUBJECT", "DETAIL"]);
    for task in &shown {
        table.row(vec![
            cell(format!("#{}", task.id)),
            maybe(task.key.as_deref()),
            tinted(task_mark(task.state).1, task_word(task.state)),
            maybe(task.owner.as_deref()),
            cell(&task.subject),
            maybe(detail(task)),
        ]);
    }
    let table = match shown.is_empty() {
        true => String::new(),
        false => table.render_within(
            format.width,
            &["KEY", "OWNER"],
            &["KEY", "SUBJECT", "DETAIL", "OWNER"],
            format.paint,
        ),
    };
    let hidden = status.task_list.len() - shown.len();
    Some((table + &hidden_words(hidden, "completed tasks", format.paint)).trim_start().to_owned())
}

/// Returns the reason why a task waits, else its running time.
fn detail(task: &TaskStatus) -> Option<String> {
    let waits = task.waits_for.as_ref().map(|waits| waits.text.clone());
    waits.or_else(|| task.elapsed_ms.map(span))
}

fn hidden_words(hidden: usize, what: &str, paint: Paint) -> String {
    match hidden {
        0 => String::new(),
        some => paint.put(Tint::Dim, &format!("\n{some} {what} not shown: `phalanx status --all`")),
    }
}

fn activity(member: &MemberStatus) -> &str {
    member.activity.as_deref().unwrap_or_default()
}

pub fn team_list(teams: &[ListedTeam], paint: Paint) -> String {
    let mut table = Table::new(&["TEAM", "MEMBERS", "LEAD", "DESCRIPTION"]);
    for team in teams {
        table.row(vec![
            tinted(Tint::Bold, team.name.as_str()),
            cell(text::short(&team.members.join(", "), 60)),
            maybe(team.lead_pid.map(|pid| pid.to_string())),
            maybe(team.description.as_deref().map(|d| text::short(d, 60))),
        ]);
    }
    table.render(paint)
}

pub fn team_lines(team: &Team, paint: Paint) -> String {
    let mut table = Table::new(&["NAME", "TYPE", "MODEL", "BACKEND", "PANE", "DIRECTORY"]);
    for member in &team.members {
        table.row(vec![
            tinted(Tint::member(member.color.as_deref()), member.name.as_str()),
            maybe(member.agent_type.as_deref()),
            maybe(member.model.as_deref()),
            maybe(member.backend_type.as_deref()),
            cell(&member.pane_id),
            cell(&member.cwd),
        ]);
    }
    let name = paint.put(Tint::Bold, &format!("team {}", text::line(&team.name)));
    let what = team.description.as_deref().filter(|d| !d.is_empty());
    let what = what.map(|d| format!("  {}", text::line(d))).unwrap_or_default();
    format!("{name}{what}\n\n{}", table.render(paint))
}

/// Formats what was ended by process as a table.
pub fn ended_runs(ended: &[EndedRun], paint: Paint) -> String {
    let mut table = Table::new(&["NAME", "OUTCOME", "PLACE", "REASON"]);
    for one in ended {
        table.row(vec![
            maybe(one.member.as_ref().map(ToString::to_string)),
            cell(if one.failure.is_none() { "forced" } else { "still running" }),
            cell(one.place.as_str()),
            maybe(one.failure.as_deref().map(|reason| text::short(reason, 80))),
        ]);
    }
    table.render(paint)
}

/// Formats the outcomes of shutdowns as a table.
pub fn shutdowns(ended: &[ShutdownResult], paint: Paint) -> String {
    let mut table = Table::new(&["NAME", "OUTCOME", "TOOK", "REASON"]);
    for one in ended {
        table.row(vec![
            tinted(Tint::Bold, one.name.as_str()),
            cell(one.outcome.replace('_', " ")),
            maybe(one.elapsed_ms.map(span)),
            maybe(one.reason.as_deref().map(|r| text::short(r, 80))),
        ]);
    }
    let all: Vec<_> = ended.iter().flat_map(|one| one.deviations.clone()).collect();
    let findings = deviations(&all, paint).map(|lines| format!("\n\n{lines}"));
    table.render(paint) + &findings.unwrap_or_default()
}
