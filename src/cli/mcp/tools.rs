//! The tools: their names, descriptions, and who has them.

use serde_json::json;

use super::arguments::{
    HandoffInput, NoInput, ReadInboxInput, Renamed, RequestsInput, SendMessageInput,
    SubmitPlanInput, TaskGetInput, TeamCreateInput, TeamMessageInput, ToolSchema, parse, schema_of,
};
use super::call::{Reply, ToolCall};
use super::{mail, tasks, team};
use crate::cli::answer::AnswerArgs;
use crate::cli::ask::PermissionArgs;
use crate::cli::attach::PeekArgs;
use crate::cli::fail::Failure;
use crate::cli::input::TypeArgs;
use crate::cli::shutdown::ShutdownArgs;
use crate::cli::spawn::SpawnArgs;
use crate::cli::task::{CreateTaskArgs, UpdateTaskArgs};
use crate::cli::wait::WaitArgs;
use crate::model::mode::Mode;
use crate::model::wire::Object;

/// The members that have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Lead,
    Teammate,
    Everyone,
}

/// What a tool changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolEffect {
    /// Nothing.
    Reads,
    Writes,
    /// It ends or deletes what cannot be restored.
    Ends,
}

/// A tool.
pub(super) struct ToolDefinition {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) audience: Audience,
    pub(super) effect: ToolEffect,
    pub(super) schema: fn() -> ToolSchema,
    pub(super) run: fn(&ToolCall, Object) -> Result<Reply, Failure>,
}

/// The caller of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolUser {
    pub(super) is_lead: bool,
    pub(super) mode: Option<Mode>,
    pub(super) read_only: bool,
}

/// A lead in delegate mode coordinates; it does not work in the terminals of others.
const NOT_IN_DELEGATE_MODE: [&str; 1] = ["Type"];

/// Returns the tools that the caller may use.
pub(super) fn offered(user: ToolUser) -> impl Iterator<Item = &'static ToolDefinition> {
    TOOLS.iter().filter(move |tool| {
        let is_for_user = match tool.audience {
            Audience::Lead => user.is_lead,
            Audience::Teammate => !user.is_lead,
            Audience::Everyone => true,
        };
        let is_delegated =
            user.mode != Some(Mode::Delegate) || !NOT_IN_DELEGATE_MODE.contains(&tool.name);
        let is_allowed = !user.read_only || tool.effect == ToolEffect::Reads;
        is_for_user && is_delegated && is_allowed
    })
}

/// Returns the arguments of a tool whose type is one of the command line's.
fn parsed<T: serde::de::DeserializeOwned + schemars::JsonSchema>(
    given: Object,
    renamed: &[Renamed],
) -> Result<T, Failure> {
    parse(given, &schema_of::<T>(renamed), renamed)
}

const NONE: &[Renamed] = &[];
const REQUEST: &[Renamed] = &[("id", "request_id")];

/// The arguments of `SpawnTeammate`: one name instead of several.
fn spawn_schema() -> ToolSchema {
    let mut schema = schema_of::<SpawnArgs>(NONE);
    schema.properties.shift_remove("names");
    let name = json!({ "type": "string", "description": "Name of the member; a number is appended if it is taken." });
    schema.properties.shift_insert(0, "name".to_owned(), name);
    schema.required = vec!["name".to_owned()];
    schema
}

fn spawn(call: &ToolCall, given: Object) -> Result<Reply, Failure> {
    let one = |(name, value)| match name {
        name if name == "name" => (name, json!([value])),
        name => (name, value),
    };
    let given = given.into_iter().map(one).collect();
    team::spawn(call, parse(given, &spawn_schema(), &[("names", "name")])?)
}

pub(super) const TOOLS: &[ToolDefinition] = &[
    ToolDefinition {
        name: "TeamCreate",
        description: "Create a team that you lead. Use it first, before other tools. Then create tasks, start members \
            with SpawnTeammate, and read their messages with ReadInbox. Returns team_name and lead_agent_id. \
            Example: {\"team_name\": \"docs-review\", \"description\": \"Review the docs\"}",
        audience: Audience::Lead,
        effect: ToolEffect::Writes,
        schema: || schema_of::<TeamCreateInput>(NONE),
        run: |call, given| team::create(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "TeamDelete",
        description: "Delete your team with its tasks and messages. All members must have ended: use Shutdown first. \
            Returns success and message.",
        audience: Audience::Lead,
        effect: ToolEffect::Ends,
        schema: || schema_of::<NoInput>(NONE),
        run: |call, given| parsed::<NoInput>(given, NONE).and_then(|_| team::delete(call)),
    },
    ToolDefinition {
        name: "SpawnTeammate",
        description: "Start a member in a pane of its own and wait until it is ready. `profile` is its program (claude, codex, \
            gemini, opencode); without one it is a worker, which runs the commands of tasks. `prompt` is its first message. \
            Returns its name, which may have a number appended, agent_id, backend and pid. \
            Example: {\"name\": \"ann\", \"profile\": \"claude\", \"prompt\": \"Review src/store\"}",
        audience: Audience::Lead,
        effect: ToolEffect::Writes,
        schema: spawn_schema,
        run: spawn,
    },
    ToolDefinition {
        name: "SendMessage",
        description: "Send a message: `message` to one member (recipient, content, summary), `broadcast` to all, \
            `shutdown_request` to ask a member to end, `shutdown_response` to answer such a request (request_id, approve; \
            content is the reason if you refuse), `plan_approval_response` to decide on a plan as the lead (request_id, approve, \
            content). A message is stored in the mailbox of its recipient. Returns success, message, and routing or request_id. \
            Example: {\"type\": \"message\", \"recipient\": \"ann\", \"content\": \"Task 3 is yours\", \"summary\": \"Task 3 assigned\"}",
        audience: Audience::Everyone,
        effect: ToolEffect::Writes,
        schema: || schema_of::<SendMessageInput>(NONE),
        run: |call, given| mail::send_message(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "ReadInbox",
        description: "Read your unread messages; they count as read once you have them. With `wait`, wait for one. A text that \
            begins with {\"type\": is a request or a notice: answer a shutdown_request with SendMessage, a plan or permission \
            with Answer. Returns messages with from, text, summary and timestamp. Example: {\"wait\": 30}",
        audience: Audience::Everyone,
        effect: ToolEffect::Writes,
        schema: || schema_of::<ReadInboxInput>(NONE),
        run: |call, given| mail::read_inbox(call, &parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "TeamMessage",
        description: "Short form of the mail tools: `send` (to, text), `broadcast` (text), `read`. \
            Example: {\"action\": \"send\", \"to\": \"ann\", \"text\": \"done\"}",
        audience: Audience::Everyone,
        effect: ToolEffect::Writes,
        schema: || schema_of::<TeamMessageInput>(NONE),
        run: |call, given| mail::team_message(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "TaskCreate",
        description: "Create a task. Use TaskList first, to avoid a second one for the same work. Without `owner` any member may \
            claim it; with `blockedBy` it waits for other tasks; with `run` a worker runs that command. Returns the task with its \
            id. Example: {\"subject\": \"Write tests\", \"description\": \"For src/store\", \"blockedBy\": [\"1\"]}",
        audience: Audience::Everyone,
        effect: ToolEffect::Writes,
        schema: || schema_of::<CreateTaskArgs>(tasks::CAMEL),
        run: |call, given| tasks::create(call, parsed(given, tasks::CAMEL)?),
    },
    ToolDefinition {
        name: "TaskGet",
        description: "Get one task with its description, result, comments and events. Example: {\"taskId\": \"3\"}",
        audience: Audience::Everyone,
        effect: ToolEffect::Reads,
        schema: || schema_of::<TaskGetInput>(tasks::CAMEL),
        run: |call, given| tasks::get(call, &parsed(given, tasks::CAMEL)?),
    },
    ToolDefinition {
        name: "TaskList",
        description: "List tasks, 30 a page, in the order in which they are claimed. Returns id, subject, state, owner and \
            blockedBy of each. Example: {\"filter\": \"all\"}",
        audience: Audience::Everyone,
        effect: ToolEffect::Reads,
        schema: || tasks::list_schema(tasks::CAMEL),
        run: |call, given| tasks::list(call, given, tasks::CAMEL),
    },
    ToolDefinition {
        name: "TaskUpdate",
        description: "Change a task: claim it (owner is you, status in_progress), complete it (status completed), assign it \
            (owner), edit it. `addBlockedBy` and `addBlocks` add dependencies. Returns the task. \
            Example: {\"taskId\": \"3\", \"status\": \"completed\"}",
        audience: Audience::Everyone,
        effect: ToolEffect::Writes,
        schema: || schema_of::<UpdateTaskArgs>(tasks::CAMEL_EDIT),
        run: |call, given| tasks::update(call, parsed(given, tasks::CAMEL_EDIT)?),
    },
    ToolDefinition {
        name: "TeamTasks",
        description: "The whole task board, by `action`. claim (task_id or next), complete and review (task_id, result), approve, \
            reject (reason), cancel, fail, retry, release, assign (task_id, assignee), block and unblock (task_id, by), comment \
            (text), progress (percent, step), attach (file), remind (text), search (query), and the actions of the Task tools. \
            Returns the task or tasks. Example: {\"action\": \"complete\", \"task_id\": \"3\", \"result\": \"All tests pass\"}",
        audience: Audience::Everyone,
        effect: ToolEffect::Writes,
        schema: tasks::board_schema,
        run: tasks::board,
    },
    ToolDefinition {
        name: "Status",
        description: "Show the whole team: lead, members with their states and tasks, members that left and why, tasks and what \
            they wait for, number of open requests.",
        audience: Audience::Everyone,
        effect: ToolEffect::Reads,
        schema: || schema_of::<NoInput>(NONE),
        run: |call, given| parsed::<NoInput>(given, NONE).and_then(|_| team::show(call)),
    },
    ToolDefinition {
        name: "ListMembers",
        description: "List the members with their states, roles and current tasks. `waiting` members need a \
            decision or help, named in `needs`; `idle` ones have taken all mail and ended their turn.",
        audience: Audience::Everyone,
        effect: ToolEffect::Reads,
        schema: || schema_of::<NoInput>(NONE),
        run: |call, given| parsed::<NoInput>(given, NONE).and_then(|_| team::list_members(call)),
    },
    ToolDefinition {
        name: "Requests",
        description: "List the plans, permissions and questions of members that wait for your answer; with request_id, show one in \
            full. Answer them with Answer. Example: {}",
        audience: Audience::Lead,
        effect: ToolEffect::Reads,
        schema: || schema_of::<RequestsInput>(NONE),
        run: |call, given| mail::list_requests(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "Answer",
        description: "Approve or reject a request of a member. `reason` tells it why, or what to change in its plan; `always` also \
            allows the same from now on. Example: {\"request_id\": \"perm-1\", \"approve\": false, \"reason\": \"use git stash\"}",
        audience: Audience::Lead,
        effect: ToolEffect::Writes,
        schema: answer_schema,
        run: |call, given| mail::answer(call, parse(given, &answer_schema(), REQUEST)?),
    },
    ToolDefinition {
        name: "SubmitPlan",
        description: "Submit your plan to the lead, before you change anything, if you were started in plan mode. The answer \
            arrives in your inbox: ReadInbox with wait. A rejected plan can be revised and submitted again. Returns request_id.",
        audience: Audience::Teammate,
        effect: ToolEffect::Writes,
        schema: || schema_of::<SubmitPlanInput>(NONE),
        run: |call, given| mail::submit_plan(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "AskPermission",
        description: "Ask the lead whether you may run a command or use a tool. The answer arrives in your inbox: ReadInbox with \
            wait. Returns request_id. Example: {\"command\": \"make deploy\", \"reason\": \"the release is tested\"}",
        audience: Audience::Teammate,
        effect: ToolEffect::Writes,
        schema: || schema_of::<PermissionArgs>(NONE),
        run: |call, given| mail::ask_permission(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "Shutdown",
        description: "Ask members to end, wait for their answers up to `deadline` seconds, and close their panes. A member may \
            refuse, with a reason. `force` ends them without asking. Returns the outcome of each. Example: {\"all\": true}",
        audience: Audience::Lead,
        effect: ToolEffect::Ends,
        schema: || schema_of::<ShutdownArgs>(NONE),
        run: |call, given| team::shutdown(call, &parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "Peek",
        description: "Read the last lines of the screens of members, to see what they do. \
            Example: {\"names\": [\"ann\"], \"lines\": 40}",
        audience: Audience::Everyone,
        effect: ToolEffect::Reads,
        schema: || schema_of::<PeekArgs>(NONE),
        run: |call, given| team::peek(call, &parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "Type",
        description: "Type a text into the terminal of a member, for programs that read no messages. To write to an agent use \
            SendMessage. Example: {\"name\": \"server\", \"text\": \"reload\", \"enter\": true}",
        audience: Audience::Lead,
        effect: ToolEffect::Writes,
        schema: || schema_of::<TypeArgs>(NONE),
        run: |call, given| team::type_text(call, &parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "WaitFor",
        description: "Wait until members or a task reach a state: ready, idle (what was sent before the call is \
            done), quiet=S (no output for S seconds), gone, or task=ID for the end of a task. At most 600 s, \
            60 by default. Returns reached, and the states. Example: {\"until\": \"task=3\", \"timeout\": 120}",
        audience: Audience::Everyone,
        effect: ToolEffect::Reads,
        schema: || schema_of::<WaitArgs>(NONE),
        run: |call, given| team::wait_for(call, parsed(given, NONE)?),
    },
    ToolDefinition {
        name: "Handoff",
        description: "Give one prompt to a member and wait for its result. The member is started if it is not on the team, which \
            needs `profile`. The prompt becomes a task of the member. Returns task_id, state and result. \
            Example: {\"name\": \"reviewer\", \"profile\": \"codex\", \"prompt\": \"Review the last commit\"}",
        audience: Audience::Lead,
        effect: ToolEffect::Writes,
        schema: || schema_of::<HandoffInput>(NONE),
        run: |call, given| team::hand_off(call, parsed(given, NONE)?),
    },
];

/// The arguments of `Answer`: those about a shutdown are for members.
fn answer_schema() -> ToolSchema {
    let mut schema = schema_of::<AnswerArgs>(REQUEST);
    for name in ["status", "pending", "committed"] {
        schema.properties.shift_remove(name);
    }
    schema
}
