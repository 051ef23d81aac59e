//! Plays actions on a real team: each is a command that a person could type, a call of a tool, or a
//! signal to a process.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::actions::{AGENTS, Action, Actor, Key, Name, Verb, is_worker};
use super::model::{Model, Outcome, State};
use crate::fake;
use crate::harness::{Run, Stage, binary, wait_for, wait_within};
use crate::mcp::Client;

/// The command of a task with the key `$1`. It logs its begin and its end, each with its pid, and
/// exits with the code that it reads from its pipe. An earlier run that still lives is logged, too.
const JOB: &str = r#"
for pid in $(sed -n "s/^$1 begin //p" log); do
    line=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")
    [[ $line != *"job $1 "* ]] || echo "$1 overlap $pid" >>log
done
mkfifo "end-$$"
exec 3<>"end-$$"
trap 'sleep 0.1; echo "$1 end $$" >>log; exit 143' TERM
echo "$1 begin $$" >>log
read -r code <&3
echo "$1 end $$" >>log
exit "$code"
"#;

/// What a person types to repeat a walk, and what happens beside it.
pub type Script = Arc<Mutex<Vec<String>>>;

/// A team, the ways to lead it, and what they have shown.
pub struct Team {
    pub stage: Stage,
    backend: &'static str,
    pub tools: Client,
    /// The task of each key. A deleted task keeps its id.
    pub ids: BTreeMap<Key, String>,
    /// The messages that the lead was shown, by a person's shell or by the tool.
    pub shown: Vec<String>,
    /// The limit of each wait.
    pub patience: Duration,
    script: Script,
}

impl Team {
    pub fn new(backend: &'static str, patience: Duration, script: Script) -> Team {
        let stage = Stage::new();
        fake::install(&stage);
        stage.file("job", JOB);
        stage.file("log", "");
        let tools = {
            // The server is started for the team, which it finds by itself.
            stage.phalanx(&["team", "create", "alpha"]).expect(0);
            Client::start(&stage, &["mcp"])
        };
        let team = Team {
            stage,
            backend,
            tools,
            ids: BTreeMap::new(),
            shown: Vec::new(),
            patience,
            script,
        };
        team.note("phalanx team create alpha".to_owned());
        // Agents have more tasks than they begin.
        let settings = ["max_per_link", "50", "max_per_member", "50", "unresponsive_after", "3600"];
        assert_eq!(team.phalanx(&[&["team", "set"], &settings[..]].concat()).code, 0);
        team.open_dashboard();
        team
    }

    /// Opens the dashboard in a terminal that is large enough for all panels and all tasks.
    fn open_dashboard(&self) {
        let command = format!("exec '{}' watch alpha --notify off", binary());
        let size = ["-x", "200", "-y", "100"];
        let session = ["-f", "/dev/null", "new-session", "-d", "-s", "mine"];
        let args = [&session[..], &size, &[&command]].concat();
        self.stage.tmux(&args).expect("a session");
        self.stage.tmux(&["set", "-g", "status", "off"]).expect("no status line");
        wait_for("the dashboard", || self.frame().contains("Members by").then_some(()));
    }

    pub fn frame(&self) -> String {
        self.stage.tmux(&["capture-pane", "-p", "-t", "=mine:"]).unwrap_or_default()
    }

    fn note(&self, line: String) {
        self.script.lock().expect("not poisoned").push(line);
    }

    fn phalanx(&self, args: &[&str]) -> Run {
        let quoted = |word: &&str| match word.contains([' ', '.']) {
            true => format!("'{word}'"),
            false => (*word).to_owned(),
        };
        let words: Vec<String> = args.iter().map(quoted).collect();
        self.note(format!("phalanx {}", words.join(" ")));
        let run = self.stage.phalanx(args);
        assert!(!run.stderr.contains("panicked"), "{args:?}: {run:?}");
        run
    }

    /// Calls a tool, and returns the code that the command line would exit with.
    fn call(&mut self, tool: &str, arguments: Value) -> (i32, Value) {
        self.note(format!("phalanx mcp: {tool} {arguments}"));
        let (is_done, result) = self.tools.result(tool, arguments);
        let code = match result["kind"].as_str() {
            _ if is_done => 0,
            Some("not_found") => 3,
            Some("refused") => 4,
            _ => 1,
        };
        (code, result)
    }

    fn id(&self, key: Key) -> String {
        self.ids[&key].clone()
    }

    /// Returns the processes that have logged that they run the command of a task, and live.
    pub fn running(&self) -> BTreeMap<Key, Vec<String>> {
        let mut running: BTreeMap<Key, Vec<String>> = BTreeMap::new();
        for (key, pid) in self.log().iter().filter_map(|line| begin(line)) {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&format!("job t{key} ")) {
                running.entry(key).or_default().push(pid.to_owned());
            }
        }
        running
    }

    pub fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.stage.at("work/log")).expect("the log");
        log.lines().map(str::to_owned).collect()
    }

    /// Performs an action that the model expects to end with `outcome`.
    pub fn play(&mut self, action: &Action, outcome: Outcome, before: &Model) {
        let (codes, result): (&[i32], _) = match (outcome, action) {
            (Outcome::Void, _) => return,
            (Outcome::Refused, _) => (&[3, 4], self.perform(action, before)),
            // A verb that does not pass the step ends by itself.
            (Outcome::Done, Action::CrashVerb { .. }) => (&[-1, 0], self.perform(action, before)),
            (Outcome::Done, _) => (&[0], self.perform(action, before)),
        };
        let (code, said) = result;
        assert!(codes.contains(&code), "{action:?} ended with {code} instead of {codes:?}: {said}");
        // What ends a task has ended its command.
        if let Action::Act { verb, key, .. } = action
            && !matches!(verb, Verb::Claim | Verb::Retry | Verb::Reject | Verb::Release)
            && outcome == Outcome::Done
        {
            let left = self.running().remove(key);
            assert_eq!(left, None, "the command of t{key} runs after {action:?}");
        }
    }

    fn perform(&mut self, action: &Action, before: &Model) -> (i32, String) {
        let run = match *action {
            Action::Create { by, key, has_command, file, after, owner } => {
                return self.create(by, key, has_command, (file, after, owner));
            }
            Action::Act { by, verb, key } => return self.act(by, verb, key),
            Action::Assign { by: Actor::Tools, key, to } => {
                let id = self.id(key);
                let arguments = json!({"action": "assign", "task_id": id, "assignee": to});
                let (code, result) = self.call("TeamTasks", arguments);
                return (code, result.to_string());
            }
            Action::Assign { key, to, .. } => self.phalanx(&["task", "assign", &self.id(key), to]),
            Action::Block { key, after } => {
                self.phalanx(&["task", "block", &self.id(key), "--by", &self.id(after)])
            }
            Action::Unblock { key, after } => {
                self.phalanx(&["task", "unblock", &self.id(key), "--by", &self.id(after)])
            }
            Action::EndCommand { key, with_success } => {
                self.end_command(key, with_success);
                return (0, String::new());
            }
            Action::StartLead => self.phalanx(&["lead", "--detach"]),
            Action::CrashLead => return self.crash_lead(),
            Action::Set { key, value } => self.phalanx(&["team", "set", key, value]),
            Action::Spawn(name) => self.spawn(name),
            Action::Shutdown(name) => self.phalanx(&["shutdown", name, "--deadline", "3"]),
            Action::Kill(name) => self.phalanx(&["kill", name]),
            Action::Restart(name) => self.phalanx(&["restart", name, "--force"]),
            Action::Crash(name) => {
                let pid = self.pid(name);
                return self.kill(pid, name);
            }
            Action::CrashLauncher(name) => {
                let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid(name)));
                let stat = stat.expect("a live member");
                let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
                let parent = parent.and_then(|pid| pid.parse().ok()).expect("a parent");
                return self.kill(parent, &format!("the launcher of {name}"));
            }
            Action::CrashVerb { verb, key, step } => return self.crash_verb(verb, key, step),
            Action::Report { from, word } => {
                self.phalanx(&["--as", from, "send", "team-lead", &format!("word-{word}.")])
            }
            Action::Tell { to, word } => self.phalanx(&["send", to, &format!("word-{word}.")]),
            Action::Ask { from, word } => {
                self.phalanx(&["--as", from, "ask", "permission", &format!("make word-{word}.")])
            }
            Action::Answer { from, approve } => {
                let asked = before.asks[from];
                wait_within(self.patience, &format!("the question word-{asked}"), || {
                    let open = self.stage.phalanx(&["--json", "requests"]).expect(0).stdout;
                    open.contains(&format!("word-{asked}.")).then_some(())
                });
                self.phalanx(&["answer", from, if approve { "--approve" } else { "--reject" }])
            }
        };
        (run.code, run.stdout + &run.stderr)
    }

    fn spawn(&self, name: Name) -> Run {
        let args = ["spawn", name, "--backend", self.backend];
        let agent = ["--profile", "fake", "--", "approve"];
        let is_agent = AGENTS.contains(&name);
        self.phalanx(&[&args[..], if is_agent { &agent[..] } else { &[] }].concat())
    }

    fn create(
        &mut self,
        by: Actor,
        key: Key,
        has_command: bool,
        (file, after, owner): (Option<&str>, Option<Key>, Option<Name>),
    ) -> (i32, String) {
        let subject = format!("t{key}");
        let after = after.map(|key| self.id(key));
        let command = ["bash", "job", &subject];
        let (code, made) = if by == Actor::Tools {
            let mut arguments = json!({"subject": subject});
            if has_command {
                arguments["run"] = json!(command);
            }
            let fields = [
                ("files", file.map(|file| json!([file]))),
                ("blockedBy", after.map(|id| json!([id]))),
                ("owner", owner.map(|owner| json!(owner))),
            ];
            for (field, value) in fields {
                if let Some(value) = value {
                    arguments[field] = value;
                }
            }
            let (code, made) = self.call("TaskCreate", arguments);
            (code, made["task"].clone())
        } else {
            let mut args = speaker(by);
            args.extend(["--json", "task", "create", &subject]);
            let options =
                [("--file", file), ("--blocked-by", after.as_deref()), ("--owner", owner)];
            for (option, value) in options {
                args.extend(value.into_iter().flat_map(|value| [option, value]));
            }
            if has_command {
                args.push("--");
                args.extend(command);
            }
            let run = self.phalanx(&args);
            let made = serde_json::from_str(&run.stdout).unwrap_or_default();
            (run.code, made)
        };
        if let Some(id) = made["id"].as_str() {
            self.ids.insert(key, id.to_owned());
        }
        (code, made.to_string())
    }

    fn act(&mut self, by: Actor, verb: Verb, key: Key) -> (i32, String) {
        let id = self.id(key);
        let (word, option) = match verb {
            Verb::Claim => ("claim", None),
            Verb::Complete => ("complete", None),
            Verb::Fail => ("fail", None),
            Verb::Review => ("review", None),
            Verb::Approve => ("approve", None),
            Verb::Reject => ("reject", None),
            Verb::RejectForGood => ("reject", Some("cancel")),
            Verb::Cancel => ("cancel", None),
            Verb::Release => ("release", None),
            Verb::Retry => ("retry", None),
            Verb::Delete => ("delete", Some("force")),
        };
        if by == Actor::Tools {
            let mut arguments = json!({"action": word, "task_id": id});
            if word == "reject" {
                arguments["reason"] = json!("not yet");
            }
            if let Some(option) = option {
                arguments[option] = json!(true);
            }
            let (code, result) = self.call("TeamTasks", arguments);
            return (code, result.to_string());
        }
        let option = option.map(|option| format!("--{option}"));
        let mut args = speaker(by);
        args.extend(["task", word, &id]);
        args.extend(option.as_deref());
        if word == "reject" {
            args.extend(["--reason", "not yet"]);
        }
        let run = self.phalanx(&args);
        (run.code, run.stdout + &run.stderr)
    }

    /// Lets the command of a task exit, and waits until it has.
    fn end_command(&self, key: Key, with_success: bool) {
        let pid = self.running()[&key][0].clone();
        self.note(format!("echo {} >end-{pid}  # t{key}", if with_success { 0 } else { 3 }));
        let pipe = self.stage.at("work").join(format!("end-{pid}"));
        // Open for reading, too: else it would wait for a reader that may have been killed.
        let pipe = fs::OpenOptions::new().read(true).write(true).open(pipe);
        let mut pipe = pipe.expect("the pipe of a command");
        writeln!(pipe, "{}", if with_success { 0 } else { 3 }).expect("written");
        wait_within(self.patience, &format!("the end of t{key}"), || {
            self.log().contains(&format!("t{key} end {pid}")).then_some(())
        });
    }

    fn status(&self) -> Value {
        self.stage.phalanx(&["--json", "status"]).expect(0).json()
    }

    /// Returns the pid of a member's program.
    fn pid(&self, name: Name) -> i64 {
        let status = self.status();
        let mut members = status["members"].as_array().expect("members").iter();
        let member = members.find(|member| member["name"] == name).expect("a member");
        member["pid"].as_i64().expect("a pid")
    }

    fn crash_verb(&self, verb: Verb, key: Key, step: &str) -> (i32, String) {
        let word = match verb {
            Verb::Fail => "fail",
            Verb::Release => "release",
            _ => "cancel",
        };
        let id = self.id(key);
        self.note(format!("PHALANX_FAILPOINT={step} phalanx task {word} {id}"));
        let mut command = self.stage.command(binary());
        command.env("PHALANX_FAILPOINT", step).args(["task", word, &id]);
        let run = Run::from(command.output().expect("phalanx runs"));
        (run.code, run.stdout + &run.stderr)
    }

    fn crash_lead(&self) -> (i32, String) {
        let pid = self.status()["lead"]["pid"].as_i64().expect("a lead");
        let killed = self.kill(pid, "the lead");
        wait_within(self.patience, "the end of the lead", || {
            self.status()["lead"].is_null().then_some(())
        });
        killed
    }

    /// Kills a process, which must be one of this stage.
    fn kill(&self, pid: i64, what: &str) -> (i32, String) {
        let pid = pid.to_string();
        let is_it = |line: &String| line.split(' ').next() == Some(&pid);
        assert!(self.stage.processes().iter().any(is_it), "{what} ({pid}) is not of this stage");
        self.note(format!("kill -KILL {pid}  # {what}"));
        let run = self.stage.command("kill").args(["-KILL", &pid]).output().expect("kill");
        (run.status.code().unwrap_or(-1), String::new())
    }

    /// Reads the mailbox of the lead: at a shell, or with the tool.
    pub fn read_news(&mut self, with_tools: bool) {
        let new = if with_tools {
            self.tools.call("ReadInbox", json!({}))["messages"].clone()
        } else {
            self.stage.phalanx(&["--json", "inbox"]).expect(0).json()
        };
        let texts = new.as_array().expect("messages").iter().filter_map(|m| m["text"].as_str());
        self.shown.extend(texts.map(str::to_owned));
    }

    /// Returns an action that ends a task at work, if there is one: no report comes before.
    pub fn last_action(model: &Model) -> Option<Action> {
        let by = Actor::Person;
        model.tasks.keys().copied().find_map(|key| match model.state(key) {
            State::InProgress if model.runner(key).is_some() => {
                Some(Action::EndCommand { key, with_success: true })
            }
            State::InProgress => Some(Action::Act { by, verb: Verb::Cancel, key }),
            State::InReview => Some(Action::Act { by, verb: Verb::Approve, key })
                .filter(|_| model.is_free(key))
                .or(Some(Action::Act { by, verb: Verb::Cancel, key })),
            _ => None,
        })
    }

    /// Ends the team, and checks that nothing of it is left.
    pub fn end(self) {
        let ended = self.phalanx(&["down", "--force"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let Team { stage, tools, .. } = self;
        assert_eq!(tools.end(), Some(0), "the server ends with its client");
        stage.tmux(&["kill-session", "-t", "=mine"]).expect("it is there");
        fs::remove_dir_all(stage.root().join("phalanx")).expect("profiles");
        stage.assert_clean();
    }
}

/// Returns the key and the pid of a line of the log, if a command has begun.
pub fn begin(line: &str) -> Option<(Key, &str)> {
    let (key, pid) = line.split_once(" begin ")?;
    Some((key.strip_prefix('t')?.parse().ok()?, pid))
}

fn speaker(by: Actor) -> Vec<&'static str> {
    match by {
        Actor::Member(name) => {
            assert!(!is_worker(name), "workers act by themselves");
            vec!["--as", name]
        }
        Actor::Person | Actor::Tools => Vec::new(),
    }
}
