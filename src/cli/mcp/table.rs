//! The table of the tools: their names, descriptions, actions, and the verbs that these perform.

use serde_json::json;

use super::arguments::ToolArguments;
use super::call::{Reply, ToolCall};
use super::inputs::{
    HandoffInput, NoInput, ProfileInput, ReadInboxInput, RequestsInput, SendMessageInput, SetInput,
    StatusInput, SubmitPlanInput, TaskDeleteInput, TaskGetInput, TaskSearchInput, TeamCreateInput,
    TextToAll, TextToMember,
};
use super::schema::{ActionNames, Renamed, ToolSchema, schema_of, variant_of};
use super::tasks::{ASSIGN, BOARD, CAMEL, CAMEL_EDIT, IMPORT};
use super::tools::Audience::{Everyone, Lead, Teammate};
use super::tools::ToolEffect::{self, Ends, Reads, Works, Writes};
use super::tools::{ToolAction, ToolDefinition};
use super::{files, mail, tasks, team};
use crate::board::task::{CreateTaskArgs, TaskActionVerb};
use crate::board::task_import::{ExportTasksArgs, ImportTasksArgs};
use crate::board::workspace::WorkspaceVerb;
use crate::board::worktree::WorktreeVerb;
use crate::decisions::answer::AnswerArgs;
use crate::decisions::ask::PermissionArgs;
use crate::decisions::requests::{ModeArgs, RulesArgs};
use crate::ending::shutdown::ShutdownArgs;
use crate::fail::Failure;
use crate::mail::handoff::HandoffVerb;
use crate::members::input::{KeysArgs, TypeArgs};
use crate::members::resume::RestartArgs;
use crate::members::spawn::SpawnArgs;
use crate::review::ReviewVerb;
use crate::views::attach::PeekArgs;
use crate::views::events::EventsArgs;
use crate::views::logs::LogsArgs;
use crate::views::wait::WaitArgs;

type Schema = fn(&ActionNames) -> ToolSchema;
type Run = fn(&ToolCall, ToolArguments) -> Result<Reply, Failure>;

const NONE: &[Renamed] = &[];
const REQUEST: &[Renamed] = &[("id", "request_id")];
/// The names of the types of handoffs, and of their ids.
const HANDOFF: &[Renamed] = &[("kind", "type"), ("handoff", "handoff_id")];

/// The action of a tool without actions, which performs one verb.
const fn one(
    effect: ToolEffect,
    verbs: &'static [&'static str],
    schema: Schema,
    run: Run,
) -> ToolAction {
    ToolAction { names: ActionNames { name: "", renamed: NONE }, effect, verbs, schema, run }
}

/// An action on the task board.
const fn on_board(
    effect: ToolEffect,
    verbs: &'static [&'static str],
    schema: Schema,
    run: Run,
) -> ToolAction {
    one(effect, verbs, schema, run).named_by_verb().renamed(BOARD)
}

/// An action on the task board whose arguments are those of its verb.
const fn step(effect: ToolEffect, verbs: &'static [&'static str]) -> ToolAction {
    on_board(effect, verbs, variant_of::<TaskActionVerb>, tasks::step)
}

const fn handoff(effect: ToolEffect, verbs: &'static [&'static str], schema: Schema) -> ToolAction {
    one(effect, verbs, schema, files::handoff).named_by_verb().renamed(HANDOFF)
}

const fn file(effect: ToolEffect, verbs: &'static [&'static str], schema: Schema) -> ToolAction {
    one(effect, verbs, schema, files::workspace).named_by_verb()
}

const fn worktree(effect: ToolEffect, verbs: &'static [&'static str]) -> ToolAction {
    one(effect, verbs, variant_of::<WorktreeVerb>, files::worktree).named_by_verb()
}

const fn review(effect: ToolEffect, verbs: &'static [&'static str]) -> ToolAction {
    one(effect, verbs, variant_of::<ReviewVerb>, files::review).named_by_verb()
}

const fn rules(name: &'static str, effect: ToolEffect, schema: Schema) -> ToolAction {
    one(effect, &["rules"], schema, team::rules).named(name)
}

pub(super) const TOOLS: &[ToolDefinition] = &[
    ToolDefinition {
        name: "TeamCreate",
        description: "Create a team that you lead. Use it first, before other tools. Then create tasks, start members \
            with SpawnTeammate, and read their messages with ReadInbox. Returns team_name and lead_agent_id.",
        audience: Lead,
        actions: &[one(Writes, &["team create"], schema_of::<TeamCreateInput>, team::create)],
    },
    ToolDefinition {
        name: "TeamDelete",
        description: "Delete your team with its tasks and messages. All members must have ended: use Shutdown first. \
            Returns success and message.",
        audience: Lead,
        actions: &[one(Ends, &["team delete"], schema_of::<NoInput>, |call, _| team::delete(call))],
    },
    ToolDefinition {
        name: "SpawnTeammate",
        description: "Start a member in a pane of its own and wait until it is ready. `profile` is its program (claude, codex, \
            gemini, opencode); without one it is a worker, which runs the commands of tasks. `prompt` is its first message. \
            Returns its name, which may have a number appended, agent_id, backend and pid. \
            Example: {\"name\": \"ann\", \"profile\": \"claude\", \"prompt\": \"Review src/store\"}",
        audience: Lead,
        actions: &[one(Writes, &["spawn"], spawn_schema, |call, mut given| {
            let name = given.take("name");
            team::spawn(call, given.with("names", json!([name])).parse()?)
        })],
    },
    ToolDefinition {
        name: "SendMessage",
        description: "Send a message: `message` to one member (recipient, content, summary), `broadcast` to all, \
            `shutdown_request` to ask a member to end, `shutdown_response` to answer such a request (request_id, approve; \
            content is the reason if you refuse), `plan_approval_response` to decide on a plan as the lead (request_id, approve, \
            content). A message is stored in the mailbox of its recipient. Returns success, message, and routing or request_id. \
            Example: {\"type\": \"message\", \"recipient\": \"ann\", \"content\": \"Task 3 is yours\", \"summary\": \"Task 3 assigned\"}",
        audience: Everyone,
        actions: &[one(
            Writes,
            &["send", "broadcast"],
            schema_of::<SendMessageInput>,
            mail::send_message,
        )],
    },
    ToolDefinition {
        name: "ReadInbox",
        description: "Read your unread messages; they count as read once you have them. With `wait`, wait for one. A text that \
            begins with {\"type\": is a request or a notice: answer a shutdown_request with SendMessage, a plan or permission \
            with Answer. Returns messages with from, text, summary and timestamp.",
        audience: Everyone,
        actions: &[one(Writes, &["inbox"], schema_of::<ReadInboxInput>, mail::read_inbox)],
    },
    ToolDefinition {
        name: "TeamMessage",
        description: "Short form of the mail tools: `send` (to, text), `broadcast` (text), `read`.",
        audience: Everyone,
        actions: &[
            one(Writes, &["send"], schema_of::<TextToMember>, mail::send_text).named("send"),
            one(Writes, &["broadcast"], schema_of::<TextToAll>, mail::broadcast_text)
                .named("broadcast"),
            one(Writes, &["inbox"], schema_of::<NoInput>, mail::read_inbox).named("read"),
        ],
    },
    ToolDefinition {
        name: "TaskCreate",
        description: "Create a task. Use TaskList first, to avoid a second one for the same work. Without `owner` any member may \
            claim it; with `blockedBy` it waits for other tasks; with `run` a worker runs that command. Returns the task with its \
            id. Example: {\"subject\": \"Write tests\", \"blockedBy\": [\"1\"]}",
        audience: Everyone,
        actions: &[one(Writes, &["task create"], schema_of::<CreateTaskArgs>, tasks::create)
            .renamed(CAMEL)],
    },
    ToolDefinition {
        name: "TaskGet",
        description: "Get one task with its description, result, comments and events.",
        audience: Everyone,
        actions: &[one(Reads, &["task get"], schema_of::<TaskGetInput>, tasks::get).renamed(CAMEL)],
    },
    ToolDefinition {
        name: "TaskList",
        description: "List tasks, 30 a page, in the order in which they are claimed. Returns id, subject, state, owner and \
            blockedBy of each.",
        audience: Everyone,
        actions: &[one(Reads, &["task list"], tasks::list_schema, tasks::list).renamed(CAMEL)],
    },
    ToolDefinition {
        name: "TaskUpdate",
        description: "Change a task: claim it (owner is you, status in_progress), complete it (status completed), assign it \
            (owner), edit it, delete it (status deleted). `addBlockedBy` and `addBlocks` add dependencies. Returns the task.",
        audience: Everyone,
        actions: &[
            one(Writes, &["task update"], tasks::update_schema, tasks::update).renamed(CAMEL_EDIT)
        ],
    },
    ToolDefinition {
        name: "TeamTasks",
        description: "The whole task board, by `action`. claim (task_id or next), complete and review (task_id, result), approve, \
            reject (reason), cancel, fail, retry, release, assign (task_id, assignee), block and unblock (task_id, by), comment \
            (text), progress (percent, step), attach (file), remind (text), search (query), import (paths), export, scopes, and create, \
            update, list and get as the Task tools. Returns the task or tasks. \
            Example: {\"action\": \"complete\", \"task_id\": \"3\", \"result\": \"All tests pass\"}",
        audience: Everyone,
        actions: &[
            on_board(
                Writes,
                &["task create"],
                |action| schema_of::<CreateTaskArgs>(action).undescribed(),
                tasks::create,
            ),
            on_board(
                Writes,
                &["task update"],
                |action| tasks::update_schema(action).undescribed(),
                tasks::update,
            ),
            on_board(
                Reads,
                &["task list"],
                |action| tasks::list_schema(action).undescribed(),
                tasks::list,
            ),
            on_board(Reads, &["task get"], schema_of::<TaskGetInput>, tasks::get),
            on_board(Reads, &["task search"], schema_of::<TaskSearchInput>, tasks::search),
            on_board(Writes, &["task delete"], schema_of::<TaskDeleteInput>, tasks::delete),
            on_board(Writes, &["task import"], schema_of::<ImportTasksArgs>, tasks::import)
                .renamed(IMPORT),
            on_board(Reads, &["task export"], schema_of::<ExportTasksArgs>, tasks::export),
            on_board(Reads, &["task scopes"], schema_of::<NoInput>, |call, _| tasks::scopes(call)),
            step(Works, &["task claim"]),
            step(Works, &["task complete"]),
            step(Works, &["task review"]),
            step(Writes, &["task approve"]),
            step(Writes, &["task reject"]),
            step(Writes, &["task cancel"]),
            step(Writes, &["task fail"]),
            step(Writes, &["task retry"]),
            step(Writes, &["task release"]),
            step(Writes, &["task assign"]).renamed(ASSIGN),
            step(Writes, &["task block"]),
            step(Writes, &["task unblock"]),
            step(Writes, &["task comment"]),
            step(Works, &["task progress"]),
            step(Writes, &["task remind"]),
            step(Writes, &["task unremind"]),
            step(Works, &["task attach"]),
        ],
    },
    ToolDefinition {
        name: "TeamWorkspace",
        description: "Files that the team shares: list, read (path), write (path, content), delete (path), path. A file is linked \
            to the task that its writer has in progress.",
        audience: Everyone,
        actions: &[
            file(Reads, &["workspace list"], variant_of::<WorkspaceVerb>),
            file(Reads, &["workspace read"], variant_of::<WorkspaceVerb>),
            file(Works, &["workspace write"], |action| {
                variant_of::<WorkspaceVerb>(action).requiring(&["content"])
            }),
            file(Works, &["workspace delete"], variant_of::<WorkspaceVerb>),
            file(Reads, &["workspace path"], variant_of::<WorkspaceVerb>),
        ],
    },
    ToolDefinition {
        name: "TeamHandoffs",
        description: "Messages with a checked form: send (name, type, body) to a member, put (to_team, type, body) to another team \
            as its lead, list and get those from other teams, types (type) for the fields.",
        audience: Everyone,
        actions: &[
            handoff(Writes, &["handoff send"], |action| {
                variant_of::<HandoffVerb>(action).requiring(&["body"])
            }),
            handoff(Writes, &["handoff put"], |action| {
                variant_of::<HandoffVerb>(action).requiring(&["body"])
            }),
            handoff(Reads, &["handoff list"], variant_of::<HandoffVerb>),
            handoff(Reads, &["handoff get"], variant_of::<HandoffVerb>),
            handoff(Reads, &["handoff types"], variant_of::<HandoffVerb>),
        ],
    },
    ToolDefinition {
        name: "Status",
        description: "Show the whole team: lead, members with their states and tasks, members that left and why, tasks and what \
            they wait for, number of open requests.",
        audience: Everyone,
        actions: &[one(Reads, &["status", "explain"], schema_of::<StatusInput>, team::show)],
    },
    ToolDefinition {
        name: "ListMembers",
        description: "List the members with their states, roles and current tasks. `waiting` members need a \
            decision or help, named in `needs`; `idle` ones have taken all mail and ended their turn.",
        audience: Everyone,
        actions: &[one(Reads, &[], schema_of::<NoInput>, |call, _| team::list_members(call))],
    },
    ToolDefinition {
        name: "ListProfiles",
        description: "List the programs that SpawnTeammate can start, by `profile`, and whether they are installed.",
        audience: Lead,
        actions: &[one(
            Reads,
            &["profile list", "profile show"],
            schema_of::<ProfileInput>,
            team::list_profiles,
        )],
    },
    ToolDefinition {
        name: "Events",
        description: "What happened in the team, oldest first; by default the last 50 events.",
        audience: Everyone,
        actions: &[one(Reads, &["events"], schema_of::<EventsArgs>, team::list_events)],
    },
    ToolDefinition {
        name: "TeamSettings",
        description: "The settings of the team: show, or set as the lead. \
            Example: {\"action\": \"set\", \"set\": {\"max_members\": 12, \"notify\": [\"notify-send\"]}}",
        audience: Everyone,
        actions: &[
            one(Reads, &["team show", "team set"], schema_of::<NoInput>, |call, _| {
                team::settings(call)
            })
            .named("show"),
            one(
                Writes,
                &["team set", "team upgrade"],
                schema_of::<SetInput>,
                team::change_settings,
            )
            .named("set"),
        ],
    },
    ToolDefinition {
        name: "Rules",
        description: "Rules for what members may do: show, and add or remove as the lead. \
            Example: {\"action\": \"add\", \"list\": \"deny\", \"patterns\": [\"Bash(git push:*)\"]}",
        audience: Everyone,
        actions: &[
            rules("show", Reads, schema_of::<NoInput>),
            rules("add", Writes, |action| {
                schema_of::<RulesArgs>(action).requiring(&["list", "patterns"])
            }),
            rules("remove", Writes, |action| {
                schema_of::<RulesArgs>(action).requiring(&["list", "patterns"])
            }),
        ],
    },
    ToolDefinition {
        name: "Requests",
        description: "List the plans, permissions and questions of members that wait for your answer; with request_id, show one in \
            full. Answer them with Answer.",
        audience: Lead,
        actions: &[one(
            Reads,
            &["requests", "requests show"],
            schema_of::<RequestsInput>,
            mail::list_requests,
        )
        .renamed(REQUEST)],
    },
    ToolDefinition {
        name: "Answer",
        description: "Approve or reject a request of a member. `reason` tells it why, or what to change in its plan; `always` also \
            allows the same from now on; `answer` has the answers to questions that a member asks its user. \
            Example: {\"request_id\": \"perm-1\", \"approve\": false, \"reason\": \"use git stash\"}",
        audience: Lead,
        actions: &[one(Writes, &["answer"], answer_schema, mail::answer).renamed(REQUEST)],
    },
    ToolDefinition {
        name: "SubmitPlan",
        description: "Submit your plan to the lead, before you change anything, if you were started in plan mode. The answer \
            arrives in your inbox: ReadInbox with wait. A rejected plan can be revised and submitted again. Returns request_id.",
        audience: Teammate,
        actions: &[one(Writes, &["plan submit"], schema_of::<SubmitPlanInput>, mail::submit_plan)],
    },
    ToolDefinition {
        name: "AskPermission",
        description: "Ask the lead whether you may run a command or use a tool. The answer arrives in your inbox: ReadInbox with \
            wait. Returns request_id.",
        audience: Teammate,
        actions: &[one(
            Writes,
            &["ask permission"],
            schema_of::<PermissionArgs>,
            mail::ask_permission,
        )],
    },
    ToolDefinition {
        name: "Shutdown",
        description: "Ask members to end, wait up to `deadline` seconds for their answers, close their panes. A member may \
            refuse, with a reason. `force` ends them without asking. Returns each outcome.",
        audience: Lead,
        actions: &[one(Ends, &["shutdown"], schema_of::<ShutdownArgs>, team::shutdown)],
    },
    ToolDefinition {
        name: "Restart",
        description: "Stop members and start them again as they were; a member that has ended is only started.",
        audience: Lead,
        actions: &[one(Writes, &["restart", "resume"], schema_of::<RestartArgs>, team::restart)],
    },
    ToolDefinition {
        name: "SetMode",
        description: "Change the permission mode of a member (name), or of `all`.",
        audience: Lead,
        actions: &[one(
            Writes,
            &["mode"],
            |action| schema_of::<ModeArgs>(action).requiring(&["mode"]),
            team::set_mode,
        )],
    },
    ToolDefinition {
        name: "Worktrees",
        description: "Worktrees of members: list, diff (name), merge (name), which lands the commits on the main branch, \
            or only tries it with dry_run, undo the last merge, remove (name), if nothing is lost.",
        audience: Everyone,
        actions: &[
            worktree(Reads, &["worktree list"]),
            worktree(Reads, &["worktree diff"]),
            worktree(Writes, &["worktree merge"]),
            worktree(Writes, &["worktree undo"]),
            worktree(Works, &["worktree remove"]),
        ],
    },
    ToolDefinition {
        name: "Reviews",
        description: "Review members: show (name) lists files, comments; comment (name, text, at), send (name) your \
            drafts, resolve, reopen, pass; authors answer (id).",
        audience: Everyone,
        actions: &[
            review(Reads, &["review", "review overview"]),
            review(Reads, &["review show"]),
            review(Reads, &["review list"]),
            review(Writes, &["review comment"]),
            review(Writes, &["review discard"]),
            review(Writes, &["review send"]),
            review(Writes, &["review answer"]),
            review(Writes, &["review resolve"]),
            review(Writes, &["review reopen"]),
            review(Writes, &["review pass"]),
        ],
    },
    ToolDefinition {
        name: "Peek",
        description: "Read the last lines of the screens of members, to see what they do.",
        audience: Everyone,
        actions: &[one(Reads, &["peek"], schema_of::<PeekArgs>, team::peek)],
    },
    ToolDefinition {
        name: "Logs",
        description: "Read the output of members, also of those that have ended; by default the last 200 lines of each.",
        audience: Everyone,
        actions: &[one(Reads, &["logs"], schema_of::<LogsArgs>, team::read_logs)],
    },
    ToolDefinition {
        name: "Type",
        description: "Type a text into the terminal of a member, or press keys (C-c, Escape, Enter), for programs that read no \
            messages. To write to an agent use SendMessage.",
        audience: Lead,
        actions: &[one(Works, &["type", "keys"], type_schema, team::type_or_press)],
    },
    ToolDefinition {
        name: "WaitFor",
        description: "Wait until members or tasks reach a state. Idle means that what was sent before the call is done. \
            At most 600 s, 60 by default. Returns reached, and the states.",
        audience: Everyone,
        actions: &[one(Reads, &["wait"], schema_of::<WaitArgs>, team::wait_for)],
    },
    ToolDefinition {
        name: "Handoff",
        description: "Give one prompt to a member and wait for its result. The member is started if it is not on the team, which \
            needs `profile`. The prompt becomes a task of the member. Returns task_id, state and result.",
        audience: Lead,
        actions: &[one(Writes, &[], schema_of::<HandoffInput>, team::hand_off)],
    },
];

/// The arguments of `SpawnTeammate`: one name instead of several.
fn spawn_schema(action: &ActionNames) -> ToolSchema {
    let mut schema = schema_of::<SpawnArgs>(action).without("names").requiring(&["name"]);
    let name = json!({ "type": "string", "description": "Name of the member; a number is appended if it is taken." });
    schema.properties.shift_insert(0, "name".to_owned(), name);
    schema
}

/// The arguments of `Type`: those of `type`, and the keys of `keys`.
fn type_schema(action: &ActionNames) -> ToolSchema {
    let mut schema = schema_of::<TypeArgs>(action);
    schema.merge(schema_of::<KeysArgs>(action));
    schema.required = vec!["name".to_owned()];
    schema
}

/// The arguments of `Answer`: those about a shutdown are for members.
fn answer_schema(action: &ActionNames) -> ToolSchema {
    let schema = schema_of::<AnswerArgs>(action);
    schema.without("status").without("pending").without("committed")
}
