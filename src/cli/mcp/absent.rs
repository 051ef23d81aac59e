//! The commands and options of the command line that no tool has, with the reason, and what a hint
//! names in their place.

/// A command or an option that no tool has: the verb, the field of the option or argument (empty
/// for the whole command), what a hint names instead (empty if there is nothing), and the reason,
/// for docs/mcp.md.
pub(super) type Omission = (&'static str, &'static str, &'static str, &'static str);

/// Returns what a hint names instead of a command, or of an option of it.
pub(super) fn instead(verb: &str, option: &str) -> Option<&'static str> {
    let found = NOT_OVER_MCP.iter().find(|(of, name, ..)| *of == verb && *name == option);
    found.map(|(_, _, instead, _)| *instead).filter(|instead| !instead.is_empty())
}

const PERSON: &str = "a person sets this up";
const TERMINAL: &str = "it needs a terminal";
const SESSION: &str = "it starts a lead that runs on; the server's caller leads its own team";
const ONE_TEAM: &str = "a server acts for one team";
const TEXT: &str = "the tool takes the text itself";
const STREAM: &str = "a call has one result; wait, or subscribe to a resource";
const PUBLISHED: &str = "a person decides what is published, and what comes in from outside";
const JSON: &str = "a result is JSON";

pub(super) const NOT_OVER_MCP: &[Omission] = &[
    ("init", "", "", PERSON),
    ("up", "", "", SESSION),
    ("down", "", "Shutdown with `all`, then TeamDelete", "two tools do the same in two steps"),
    ("lead", "", "", SESSION),
    ("adopt", "", "", SESSION),
    ("resume", "session", "", "the recorded session is continued"),
    ("resume", "all", "Resume without names", "a server starts the lead that is missing itself"),
    ("rename", "", "", PERSON),
    ("team list", "", "Status", ONE_TEAM),
    ("ps", "", "Status", ONE_TEAM),
    ("report", "", "TaskList", "a person looks at a team that has ended"),
    ("shutdown", "grace", "", "`grace` of TeamSettings"),
    ("send", "wait", "`wait` of Inbox", STREAM),
    ("send", "timeout", "", STREAM),
    ("team create", "tmux_socket", "", PERSON),
    ("team create", "settings", "", "TeamSettings sets them afterwards"),
    ("team create", "unique", "", "the tool always appends a number"),
    ("team delete", "force", "", "Shutdown ends members"),
    ("team set", "pairs", "`set`", "the tool takes them as an object"),
    ("spawn", "names", "`name`", "a call starts one member"),
    ("spawn", "prompt_file", "`prompt`", TEXT),
    ("spawn", "unique", "", "the tool always appends a number"),
    ("spawn", "env_file", "`env`", "the tool takes the variables themselves"),
    ("spawn", "wrap", "", PERSON),
    ("spawn", "no_lead", "", ONE_TEAM),
    ("profile test", "", "", PERSON),
    ("profile learn", "", "", TERMINAL),
    ("template list", "", "", "`up` is not a tool"),
    ("template show", "", "", "`up` is not a tool"),
    ("manifest schema", "", "", "`up` is not a tool"),
    ("handoff send", "file", "`body`", TEXT),
    ("handoff put", "file", "`body`", TEXT),
    ("workspace write", "source", "`content`", TEXT),
    ("plan submit", "file", "`plan`", TEXT),
    ("inbox", "consume", "", "what an agent has read stays for a person to see"),
    ("inbox", "clear", "", "what an agent has read stays for a person to see"),
    ("inbox", "follow", "`wait`", STREAM),
    ("inbox", "format", "", JSON),
    ("task create", "subject_option", "`subject`", "an argument may begin with a dash"),
    ("task graph", "", "TaskList", "TaskList names what each task waits for"),
    ("task list", "all", "`filter`", "the words of `filter`"),
    ("task list", "active", "`filter`", "the words of `filter`"),
    ("task list", "in_review", "`filter`", "the words of `filter`"),
    ("task list", "completed", "`filter`", "the words of `filter`"),
    ("task search", "words", "`query`", "the tool takes them as one text"),
    ("task export", "format", "", JSON),
    ("rules", "remove", "the action remove", "it is an action"),
    ("worktree merge", "complete", "TaskUpdate", "TaskUpdate completes it"),
    ("review", "name", "the action show", "it is an action"),
    ("review", "pr", "", PUBLISHED),
    ("review", "sync", "", PUBLISHED),
    (
        "review approve",
        "",
        "TeamTasks approve, then Worktrees merge",
        "two tools do the same in two steps",
    ),
    ("review check", "", "Worktrees merge with `check`", "it runs them before the work lands"),
    ("review drop", "", "TeamTasks cancel", "a person keeps the list short"),
    ("review conflicts", "", "Worktrees merge with `dry_run`", "it names the files"),
    (
        "shutdown",
        "no_wait",
        "SendMessage with `type` shutdown_request",
        "SendMessage does not wait",
    ),
    ("host list", "", "`hosts.toml`", PERSON),
    ("host check", "", "", PERSON),
    ("host lost", "", "", PERSON),
    ("store init", "", "", PERSON),
    ("store check", "", "", PERSON),
    ("store export", "", "", PERSON),
    ("store import", "", "", PERSON),
    ("answer", "reject", "`approve` false", "`approve` is true or false"),
    ("answer", "via", "", "it records a key of the dashboard"),
    ("answer", "status", "", "a member answers a shutdown with SendMessage"),
    ("answer", "pending", "", "a member answers a shutdown with SendMessage"),
    ("answer", "committed", "", "a member answers a shutdown with SendMessage"),
    ("answer", "uncommitted", "", "a member answers a shutdown with SendMessage"),
    ("status", "watch", "WaitFor", STREAM),
    ("status", "format", "", JSON),
    ("doctor", "", "", PERSON),
    ("popup", "", "", TERMINAL),
    ("focus", "", "", TERMINAL),
    ("hide", "", "", TERMINAL),
    ("show", "", "", TERMINAL),
    ("brief", "", "Status", "the program has it in its prompt"),
    ("acp", "", "", PERSON),
    ("mcp", "", "", "it is the server"),
    ("mcp install", "", "", PERSON),
    ("hook", "", "", "programs call it"),
    ("watch", "", "Status", TERMINAL),
    ("events", "follow", "WaitFor", STREAM),
    ("events", "ended", "", ONE_TEAM),
    ("inbox", "ended", "", ONE_TEAM),
    ("attach", "", "Peek", TERMINAL),
    ("logs", "follow", "", STREAM),
    ("help", "", "", "it is for a person"),
    ("docs", "", "", "it is for a person"),
    ("completions", "", "", "it is for a shell"),
    ("man", "", "", "it is for a person"),
    ("version", "", "", "the protocol's handshake has it"),
];
