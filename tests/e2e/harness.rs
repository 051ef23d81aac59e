//! An isolated stage per test: its own config root, home directory and tmux server. A stage leaves
//! nothing behind when dropped.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::TestDatabase;

use crate::gear;

/// The limit of every wait, far above what any operation takes, so that no test fails on a busy
/// machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A program that emulates the TUI of an agent and logs each turn that it gets.
pub const FAKE_TUI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/fake-tui/fake-tui");

/// A profile for any command line whose member is ready once it has run for a while.
pub const SETTLED: &str = "about = \"has to run for a while\"\nruns = \"native\"\n\
                           reads_mail = false\n[launch]\nargv = [[\"{command}\"]]\nprompt = \"mailbox\"\n\
                           [ready]\nwhen = \"settled\"\nsettle_ms = 3000\n";

/// A profile for any command line that is treated as an agent that reads its own mailbox.
pub const NATIVE: &str = "about = \"reads its mailbox\"\nruns = \"native\"\nreads_mail = true\n[launch]\n\
                          argv = [[\"{command}\"]]\nprompt = \"mailbox\"\nbrief = \"none\"\n[ready]\n\
                          when = \"running\"\n";

/// The command line of a broker up to its socket.
const BROKER: &str = " store serve ";

pub struct Stage {
    dir: TempDir,
    path: String,
    /// Variables besides those of every stage.
    env: Vec<(String, String)>,
    /// The store of its teams, if they are not files.
    database: Option<TestDatabase>,
}

/// The result of a run of phalanx.
#[derive(Debug)]
pub struct Run {
    /// The exit code; -1 after a signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Parses stdout as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// Asserts the exit code.
    pub fn expect(self, code: i32) -> Run {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_phalanx")
}

/// Calls `look` until it returns a value. Panics after [`PATIENCE`], naming what it waited for.
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_within(PATIENCE, what, look)
}

/// Like [`wait_for`], with the given limit.
pub fn wait_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < limit, "waited {limit:?} in vain for: {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

impl Stage {
    /// Creates a stage with tmux on its `PATH`.
    pub fn new() -> Stage {
        let dir = tempfile::Builder::new().prefix("phx").tempdir_in("/tmp").expect("tempdir");
        for sub in ["home", "tmux", "bin", "work"] {
            fs::create_dir(dir.path().join(sub)).expect("dir");
        }
        let path = std::env::var("PATH").expect("PATH");
        Stage { dir, path, env: Vec::new(), database: None }
    }

    /// Keeps the teams of the stage in a database of its own.
    pub fn in_postgres(mut self) -> Stage {
        let database = TestDatabase::create().expect("PostgreSQL is installed");
        self.set_env("PHALANX_STORE", &database.url());
        self.database = Some(database);
        self
    }

    /// Creates a stage whose `PATH` holds only common tools, without tmux.
    pub fn without_tmux() -> Stage {
        let mut stage = Stage::new();
        let bin = stage.at("bin");
        for program in [
            "sh", "bash", "true", "false", "sleep", "cat", "env", "echo", "printf", "touch",
            "kill", "setsid", "nohup",
        ] {
            if let Some(found) = which(program, &stage.path) {
                std::os::unix::fs::symlink(found, bin.join(program)).expect("symlink");
            }
        }
        stage.path = bin.to_string_lossy().into_owned();
        stage
    }

    /// Sets a variable for later commands.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Puts a directory first on the `PATH`.
    pub fn prepend_path(&mut self, dir: &Path) {
        self.path = format!("{}:{}", dir.display(), self.path);
    }

    /// Installs a script that shadows `program` on the `PATH`.
    pub fn shadow(&mut self, program: &str, script: &str) {
        let path = self.at("bin").join(program);
        self.script(&path, script);
        self.path = format!("{}:{}", self.at("bin").display(), self.path);
    }

    pub fn script(&self, path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(path, text).expect("script");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    pub fn at(&self, sub: &str) -> PathBuf {
        self.dir.path().join(sub)
    }

    pub fn root(&self) -> PathBuf {
        self.at("config")
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Writes a file in the working directory and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.at("work").join(name);
        fs::write(&path, text).expect("file");
        path.to_string_lossy().into_owned()
    }

    pub fn profile(&self, name: &str, text: &str) {
        let profiles = self.root().join("phalanx/profiles");
        fs::create_dir_all(&profiles).expect("profiles");
        fs::write(profiles.join(format!("{name}.toml")), text).expect("profile");
    }

    /// Writes the profile `fake` of [`FAKE_TUI`], modified by `edit`.
    pub fn fake_tui(&self, edit: impl FnOnce(String) -> String) {
        let sheet = fs::read_to_string(Path::new(FAKE_TUI).with_file_name("fake.toml"));
        self.profile("fake", &edit(sheet.expect("profile")));
    }

    /// Returns a command with only this stage's environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(gear::portable())
            .env("PATH", &self.path)
            .env("HOME", self.at("home"))
            .env("TMUX_TMPDIR", self.at("tmux"))
            .env("PHALANX_CONFIG_DIR", self.root())
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .envs(self.env.iter().cloned())
            .current_dir(self.at("work"))
            .stdin(Stdio::null());
        command
    }

    pub fn phalanx(&self, args: &[&str]) -> Run {
        let mut command = self.command(binary());
        Run::from(command.args(args).output().expect("phalanx runs"))
    }

    pub fn start(&self, args: &[&str]) -> Background {
        let mut command = self.command(binary());
        command.args(args);
        Background::start(command)
    }

    /// Starts phalanx and waits until it has stopped at the point with this name
    /// (`src/sys/failpoint.rs`).
    pub fn start_and_stop_at(&self, point: &str, args: &[&str]) -> Background {
        let mut command = self.command(binary());
        command.env("PHALANX_STOPPOINT", point).args(args);
        let background = Background::start(command);
        wait_for(point, || background.is_stopped().then_some(()));
        background
    }

    /// Runs a tmux command on this stage's server; `None` if it fails.
    pub fn tmux(&self, args: &[&str]) -> Option<String> {
        let mut command = self.command("tmux");
        let output = command.arg("-u").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// All panes of this stage's server, as `%id pid token`.
    pub fn panes(&self) -> Vec<String> {
        let listed =
            self.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{@phalanx_token}"]);
        listed.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Returns pid and command line of each process that has this stage's directory in its
    /// environment or arguments, except tmux servers.
    pub fn processes(&self) -> Vec<String> {
        let mark = self.dir.path().to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("proc").flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let (environ, cmdline, stat) = (read("environ"), read("cmdline"), read("stat"));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ");
            let dead = text(&stat).rsplit(") ").next().is_some_and(|s| s.starts_with(['Z', 'X']));
            let ours = text(&environ).contains(&mark) || text(&cmdline).contains(&mark);
            let line = text(&cmdline);
            if ours && !dead && pid != std::process::id().cast_signed() && !line.starts_with("tmux")
            {
                found.push(format!("{pid} {line}"));
            }
        }
        // Brokers of the store end by themselves.
        found.retain(|line| self.database.is_none() || !line.contains(BROKER));
        found
    }

    /// Waits until no process of this stage is left. Panics with those that are, and what they
    /// belong to.
    pub fn await_end(&self, what: &str) {
        let began = Instant::now();
        let mut left = self.processes();
        while !left.is_empty() {
            let about = |line: &String| {
                let pid = line.split(' ').next().unwrap_or_default();
                let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                let environ = String::from_utf8_lossy(&read("environ")).into_owned();
                let marks: Vec<&str> =
                    environ.split('\0').filter(|var| var.starts_with("PHALANX_")).collect();
                format!("{line}\n  {}  {marks:?}", String::from_utf8_lossy(&read("stat")))
            };
            let about: Vec<String> = left.iter().map(about).collect();
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: still running after {PATIENCE:?}:\n{}",
                about.join("\n")
            );
            std::thread::park_timeout(Duration::from_millis(10));
            left = self.processes();
        }
    }

    /// Returns the pids of the brokers whose sockets are in this stage's directory.
    fn brokers(&self) -> Vec<String> {
        let mark = format!("{BROKER}{}", self.dir.path().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("proc").flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).replace('\0', " ").contains(&mark) {
                found.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        found
    }

    /// Adds native members to a team: on the roster, reading their own mailboxes, not started by
    /// phalanx.
    pub fn add_native(&self, team: &str, names: &[&str]) {
        let add = |config: &mut Value| {
            let members = config["members"].as_array_mut().expect("members");
            for name in names {
                members.push(json!({"agentId": format!("{name}@{team}"), "name": name}));
            }
        };
        if let Some(database) = &self.database {
            return change_stored_roster(database, team, add);
        }
        let file = self.root().join("teams").join(team).join("config.json");
        let mut config: Value =
            serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
        add(&mut config);
        fs::write(&file, serde_json::to_string_pretty(&config).expect("text")).expect("write");
    }

    /// Asserts that no team has left a file, lock, pane or process.
    pub fn assert_clean(&self) {
        for part in ["teams", "tasks"] {
            let dir = self.root().join(part);
            let left: Vec<_> = fs::read_dir(&dir)
                .map(|d| d.flatten().map(|e| e.path()).collect())
                .unwrap_or_default();
            assert_eq!(left, Vec::<PathBuf>::new(), "left under {part}");
        }
        let panes: Vec<String> = self
            .panes()
            .into_iter()
            .filter(|p| p.split(' ').count() > 2 && !p.ends_with(' '))
            .collect();
        assert_eq!(panes, Vec::<String>::new());
        wait_for("all processes of the test to end", || self.processes().is_empty().then_some(()));
    }

    /// Prints the journal, the state and the processes of a team if the test fails before the
    /// returned value is dropped.
    pub fn printed_if_failed<'s>(&'s self, team: &'s str) -> impl Drop + 's {
        PrintedIfFailed { stage: self, team }
    }

    pub fn journal(&self, team: &str) -> Vec<Value> {
        let path = self.root().join("teams").join(team).join("phalanx/journal.jsonl");
        let text = match &self.database {
            Some(_) => self.phalanx(&["events", "-t", team, "--json"]).stdout,
            None => fs::read_to_string(path).unwrap_or_default(),
        };
        text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    /// Waits for an event of this kind about this member or task.
    pub fn wait_event(&self, team: &str, event: &str, about: &str) -> Value {
        wait_for(&format!("event {event} about {about}"), || {
            let found =
                |e: &Value| e["event"] == event && (e["member"] == about || e["task"] == about);
            self.journal(team).into_iter().find(found)
        })
    }
}

/// Changes the team file of a team in PostgreSQL.
fn change_stored_roster(database: &TestDatabase, team: &str, change: impl FnOnce(&mut Value)) {
    let call = |function: &str, arguments: Value| -> Value {
        let sql = format!("select phalanx.{function}($args${arguments}$args$::jsonb)::text");
        let rows = database.execute(&sql);
        let reply = rows[0][0].as_deref().expect("a reply");
        serde_json::from_str(reply).expect("json")
    };
    let stored = call("document", json!({"team": team, "kind": "config", "key": ""}));
    let text = stored["body"].as_str().expect("a body");
    let mut config: Value = serde_json::from_str(text).expect("json");
    change(&mut config);
    let names = config["members"].as_array().expect("members").iter();
    let names: Vec<String> =
        names.map(|one| one["name"].as_str().expect("a name").to_ascii_lowercase()).collect();
    let written = json!({
        "team": team, "kind": "config", "key": "", "body": config.to_string(), "names": names,
        "expected": stored["version"], "write": format!("roster-{}", stored["version"]),
    });
    assert!(call("put_document", written).is_i64(), "no other process writes the team file");
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The brokers of a stage would live for a minute after it.
        if self.database.is_some() {
            for pid in self.brokers() {
                let _ = Command::new("kill").arg(&pid).output();
            }
        }
        // Kills only servers whose socket lies in this stage's directory.
        for entry in fs::read_dir(self.at("tmux")).into_iter().flatten().flatten() {
            for socket in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let _ = Command::new("tmux")
                    .arg("-S")
                    .arg(socket.path())
                    .arg("kill-server")
                    .env_remove("TMUX")
                    .output();
            }
        }
        // Kills processes that the test left running: a lead whose database is gone would wait for
        // it. Only they mention this stage's directory.
        for line in self.processes() {
            if let Some(pid) = line.split(' ').next() {
                let _ = Command::new("kill").args(["-9", pid]).output();
            }
        }
    }
}

struct PrintedIfFailed<'s> {
    stage: &'s Stage,
    team: &'s str,
}

impl Drop for PrintedIfFailed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stage.journal(self.team).iter().for_each(|event| println!("{event}"));
            let status = self.stage.phalanx(&["--json", "status", "-t", self.team]);
            println!("{status:?}\n{:?}", self.stage.processes());
        }
    }
}

/// A background run of phalanx; killed when dropped.
pub struct Background {
    child: Child,
    stdout: Drain,
    stderr: Drain,
}

impl Background {
    /// Starts the command with both of its outputs collected.
    pub fn start(mut command: Command) -> Background {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("phalanx starts");
        let stdout = Drain::start(child.stdout.take().expect("piped"));
        let stderr = Drain::start(child.stderr.take().expect("piped"));
        Background { child, stdout, stderr }
    }

    /// Returns its standard input, which the command has as a pipe.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("piped")
    }

    /// Returns what is on stdout.
    pub fn output(&self) -> String {
        self.stdout.text()
    }

    /// Returns whether a signal has stopped the process.
    pub fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.pid()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits until `text` is on stdout.
    pub fn wait_for_output(&self, text: &str) {
        wait_for(text, || self.stdout.text().contains(text).then_some(()));
    }

    /// Waits until stderr contains `text`.
    pub fn wait_for_message(&self, text: &str) {
        wait_for(text, || self.messages().contains(text).then_some(()));
    }

    /// Returns what is on stderr.
    pub fn messages(&self) -> String {
        self.stderr.text()
    }

    /// Waits until the process exits.
    pub fn end(mut self) -> Run {
        let status = wait_for("phalanx to end", || self.child.try_wait().expect("wait"));
        Run {
            code: status.code().unwrap_or(-1),
            stdout: self.stdout.rest(),
            stderr: self.stderr.rest(),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe on a separate thread, so that a long report cannot block the process.
struct Drain {
    read: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    fn start(mut pipe: impl Read + Send + 'static) -> Drain {
        let read = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&read);
        let thread = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut chunk) {
                shared.lock().expect("not poisoned").extend_from_slice(&chunk[..n]);
            }
        });
        Drain { read, thread: Some(thread) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.read.lock().expect("not poisoned")).into_owned()
    }

    /// Returns everything up to the end of the pipe.
    fn rest(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("drained");
        }
        self.text()
    }
}

pub fn which(program: &str, path: &str) -> Option<PathBuf> {
    path.split(':').map(|dir| Path::new(dir).join(program)).find(|p| p.is_file())
}
