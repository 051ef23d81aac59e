//! `attach` and `peek` for a member on a PTY of phalanx, used from a real terminal.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use super::bench::{Bench, PATIENCE, RUN, TEAM, is_dead, text, until};
use super::own_terminal::{Detached, code, detached, detached_under, own};
use super::user_terminal::UserTerminal;
use crate::gear;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Ctrl-].
const DETACH: &[u8] = b"\x1d";

/// A member on a PTY of phalanx, running `script`.
struct Member {
    bench: Bench,
    launcher: Detached,
}

impl Member {
    fn run(script: &str) -> Member {
        let bench = Bench::new("idle");
        let launcher = detached(&bench, &own(&bench, script));
        bench.placed();
        Member { bench, launcher }
    }

    fn socket(&self) -> PathBuf {
        PathBuf::from(self.bench.part("start")["socket"].as_str().expect("a path"))
    }

    /// Attaches a user and waits until the screen shows `first`.
    fn terminal(&self, first: &str) -> UserTerminal {
        let line = "stty -a > before; printf mine; $PHALANX attach alice; echo \"<$?>\"; stty -a > after; read x";
        let terminal = UserTerminal::new(&self.bench, line);
        terminal.shows(first);
        terminal
    }

    /// Asserts that the terminal has its earlier modes and screen after `attach` has exited with
    /// `code`.
    fn is_given_back(&self, terminal: &mut UserTerminal, code: &str) {
        terminal.shows(code);
        let after = self.bench.path("work").join("after");
        until("the terminal as it was left", || text(&after).contains("echo"));
        assert_eq!(text(&self.bench.path("work").join("before")), text(&after), "as stty sees it");
        let screen = terminal.screen();
        assert!(screen.starts_with("mineattached to alice; detach with Ctrl-]"), "{screen}");
        assert!(!terminal.on_second_screen());
        assert_eq!(terminal.modes(), vt100_default_modes());
    }

    fn phalanx(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx"));
        command.args(args).env_clear().envs(gear::portable()).env("PATH", "/usr/bin:/bin");
        let output =
            command.env("PHALANX_TEAM", TEAM).env("PHALANX_CONFIG_DIR", self.bench.root()).output();
        String::from_utf8(output.expect("phalanx was built").stdout).expect("text")
    }

    fn stop(self) -> i32 {
        kill(Pid::from_raw(self.bench.launcher()), Signal::SIGTERM).expect("it runs");
        code(self.launcher)
    }
}

fn vt100_default_modes() -> Vec<u8> {
    [vt100::Parser::default().screen().input_mode_formatted(), vec![0]].concat()
}

#[test]
fn attached_user_sees_types_and_detaches() {
    let member =
        Member::run("printf '\\033[1mwho? '; read name; echo hello $name; read again; echo $again");
    let mut terminal = member.terminal("who?");
    assert!(!terminal.screen().contains("mine"), "the person's own screen is put aside");
    terminal.types(b"bob\r");
    terminal.shows("hello bob");
    terminal.types(DETACH);
    member.is_given_back(&mut terminal, "<0>");
    assert!(
        terminal.screen().contains("detached from alice, which goes on"),
        "{}",
        terminal.screen()
    );
    let terminal = member.terminal("hello bob");
    assert!(
        terminal.screen().contains("who? bob"),
        "what was there before is drawn again: {}",
        terminal.screen()
    );
    assert_eq!(member.stop(), 128 + 15);
}

#[test]
fn keys_arrive_byte_for_byte() {
    let member = Member::run("stty raw -echo; printf ready; head -c 9 > keys; echo done; read x");
    let mut terminal = member.terminal("ready");
    terminal.types(b"\x03\x1a\x1b[A\x11\x13\x04\x00");
    terminal.shows("done");
    assert_eq!(
        fs::read(member.bench.path("work").join("keys")).expect("it is there"),
        b"\x03\x1a\x1b[A\x11\x13\x04\x00"
    );
    assert!(terminal.on_second_screen(), "no key of these ended it");
    terminal.types(b"\x1b[93;5u");
    member.is_given_back(&mut terminal, "<0>");
}

#[test]
fn pt_10_launcher_answers_queries_with_and_without_viewers() {
    let member = Member::run(
        "ask() { printf '\\033[c\\033['; printf 5n; head -c 13 > $1; }; stty raw -echo; ask alone; printf ready; \
         head -c 1 > key; ask viewed; printf done; head -c 1 > next; printf over; read x",
    );
    let mut terminals = [member.terminal("ready"), member.terminal("ready")];
    terminals[0].types(b"k");
    for terminal in &terminals {
        terminal.shows("done");
        let raw = terminal.raw();
        for query in [b"\x1b[c".as_slice(), b"\x1b[5n"] {
            assert!(!raw.windows(query.len()).any(|part| part == query), "not asked: {query:?}");
        }
    }
    terminals[0].types(b"n");
    terminals[0].shows("over");
    let answers = b"\x1b[?62;22c\x1b[0n";
    let table: [(&str, &[u8]); 4] =
        [("alone", answers), ("key", b"k"), ("viewed", answers), ("next", b"n")];
    for (file, read) in table {
        let found = fs::read(member.bench.path("work").join(file)).expect("it is there");
        assert_eq!(found, read, "{file}");
    }
    member.stop();
}

#[test]
fn terminal_size_follows_the_viewer() {
    let member = Member::run("trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done");
    let mut terminal = member.terminal("24 80");
    terminal.resize(30, 91);
    terminal.shows("30 91");
    let other = member.terminal("24 80");
    terminal.types(DETACH);
    terminal.shows("<0>");
    assert!(!text(&member.bench.log()).trim_end().ends_with("50 200"), "somebody is still there");
    drop(other);
    until("its own size again", || text(&member.bench.log()).trim_end().ends_with("50 200"));
    member.stop();
}

#[test]
fn viewer_shows_how_the_member_ended() {
    for (script, said) in [("exit 7", "exit code 7"), ("kill -9 $$", "signal 9")] {
        let modes = "printf '\\033[?1049h\\033[?1003h\\033[?2004h\\033[?1h\\033=\\033[?25l\\033[2;5r'; echo up; read x;";
        let member = Member::run(&format!("{modes} {script}"));
        let mut terminal = member.terminal("up");
        assert_ne!(terminal.modes(), vt100_default_modes());
        terminal.types(b"\r");
        member.is_given_back(&mut terminal, "<0>");
        assert!(
            terminal.screen().contains(&format!("alice has ended: {said}")),
            "{}",
            terminal.screen()
        );
        let socket = member.socket();
        code(member.launcher);
        assert!(!socket.exists(), "removed at the end");
    }
}

#[test]
fn viewer_restores_the_terminal_when_the_launcher_is_killed() {
    let member = Member::run("printf '\\033[?2004h'; echo up; read x");
    let mut terminal = member.terminal("up");
    kill(Pid::from_raw(member.bench.launcher()), Signal::SIGKILL).expect("it runs");
    member.is_given_back(&mut terminal, "<1>");
    assert!(terminal.screen().contains("its launcher has gone"), "{}", terminal.screen());
    assert!(member.socket().exists(), "nobody was left to remove it");
    // A killed process can be connected to until its end is complete.
    until("the socket to be dead", || UnixStream::connect(member.socket()).is_err());
    let mut again =
        UserTerminal::new(&member.bench, "$PHALANX attach alice; echo \"<$?>\"; read x");
    again.shows("<4>");
    assert!(
        again.screen().contains("has no terminal to show"),
        "a dead socket does no harm: {}",
        again.screen()
    );
    again.types(b"\r");
    again.ends();
}

#[test]
fn viewer_restores_the_terminal_on_a_signal() {
    let member = Member::run("echo up; read x");
    for signal in ["TERM", "HUP", "INT"] {
        let mut terminal = member.terminal("up");
        let viewer = member.bench.viewer();
        let sent = Command::new("kill").args([format!("-{signal}"), viewer.to_string()]).status();
        assert!(sent.expect("kill is there").success());
        member.is_given_back(&mut terminal, "<130>");
        assert!(is_dead(viewer));
    }
    member.stop();
}

#[test]
fn stuck_viewer_blocks_no_other() {
    let member =
        Member::run("read x; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end; read x");
    let mut stuck = UnixStream::connect(member.socket()).expect("it listens");
    std::io::Write::write_all(&mut stuck, b"A\0\0\0\x04\0\x18\0\x50").expect("it listens");
    let mut terminal =
        UserTerminal::new(&member.bench, "$PHALANX attach alice; echo \"<$?>\"; read x");
    until("both are attached", || terminal.on_second_screen());
    terminal.types(b"\r");
    terminal.shows("end");
    // When it reads again, it gets the current screen instead of everything it missed.
    stuck.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let (mut buffer, mut read) = ([0; 65536], Vec::new());
    while !read.windows(3).any(|part| part == b"end") {
        let count = std::io::Read::read(&mut stuck, &mut buffer).expect("it is told in time");
        read.extend_from_slice(&buffer[..count]);
    }
    assert!(read.len() < 3_000_000, "{}", read.len());
    terminal.types(b"\r");
    terminal.shows("alice has ended: exit code 0");
    code(member.launcher);
    drop(stuck);
}

#[test]
fn sec_10_hostile_output_reaches_only_attached_viewers() {
    let script = "printf '\\033]52;c;aGk=\\007\\033]0;title\\007\\033[31mred\\033[0m\\033[5;3Hhere'; read x; printf '\\033]52;c;bGl2ZQ==\\007'; echo late; read x";
    let member = Member::run(script);
    until("the screen", || member.phalanx(&["peek", "alice"]).contains("here"));
    let peeked = member.phalanx(&["peek", "alice"]);
    assert_eq!(peeked, "red\n\n\n\n  here\n");
    let mut terminal = member.terminal("here");
    terminal.types(b"\r");
    terminal.shows("late");
    let has = |part: &[u8]| terminal.raw().windows(part.len()).any(|found| found == part);
    assert!(has(b"\x1b]52;c;bGl2ZQ==\x07"), "raw to the one who attached");
    assert!(!member.phalanx(&["peek", "alice"]).contains('\x1b'));
    assert!(!member.phalanx(&["logs", "alice"]).contains('\x1b'));
    member.stop();
}

#[test]
fn peek_shows_the_live_screen_and_later_the_log() {
    let member = Member::run("echo from the log; echo ready; read x; echo bye");
    until("it is ready", || text(&member.bench.log()).contains("ready"));
    fs::rename(member.bench.log(), member.bench.path("aside")).expect("ours");
    assert_eq!(member.phalanx(&["peek", "alice"]), "from the log\nready\n", "from the socket");
    fs::rename(member.bench.path("aside"), member.bench.log()).expect("ours");
    assert_eq!(
        member.phalanx(&["peek", "alice", "-n", "1000"]),
        "from the log\nready\n",
        "more than it holds"
    );
    let (bench, launcher) = (member.bench, member.launcher);
    kill(Pid::from_raw(bench.launcher()), Signal::SIGTERM).expect("it runs");
    code(launcher);
    let member =
        Member { launcher: Detached(Command::new("true").spawn().expect("it is there")), bench };
    assert_eq!(member.phalanx(&["peek", "alice"]), "from the log\nready\n", "from the log");
}

#[test]
fn sec_07_socket_is_private_under_any_umask() {
    let bench = Bench::new("idle");
    let mut order = own(&bench, "read x");
    order.linger_ms = 0;
    let launcher = detached_under("000", &bench, &order);
    bench.program();
    let socket = PathBuf::from(bench.part("start")["socket"].as_str().expect("a path"));
    let mode = |path: &std::path::Path| {
        fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!((mode(&socket), mode(socket.parent().expect("a directory"))), (0o600, 0o700));
    assert_eq!(mode(&bench.log()), 0o600);
    kill(Pid::from_raw(bench.launcher()), Signal::SIGTERM).expect("it runs");
    code(launcher);
}

#[test]
fn sec_07_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        // Only root can switch users; the private directory is tested above.
        return;
    }
    let member = Member::run("echo up; read x");
    let socket = member.socket();
    let mut opened = vec![socket.clone()];
    opened.extend(
        socket
            .ancestors()
            .skip(1)
            .take_while(|dir| dir.starts_with(member.bench.path("")))
            .map(PathBuf::from),
    );
    // Opens all modes, so that only the check of the peer credentials is left.
    opened.iter().for_each(|path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("ours")
    });
    let ask = "use IO::Socket::UNIX; $SIG{PIPE} = q(IGNORE); my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; \
               syswrite $s, \"L\\0\\0\\0\\4\\0\\0\\0\\5\"; my $n = sysread $s, my $b, 99; print defined $n ? $n : 0";
    let asked = |uid: u32| {
        let mut perl = Command::new("perl");
        std::os::unix::process::CommandExt::uid(perl.args(["-e", ask]).arg(&socket), uid);
        String::from_utf8(perl.output().expect("perl is there").stdout).expect("a number")
    };
    let us = fs::metadata("/proc/self").expect("it is there").uid();
    until("an answer", || asked(us) != "0");
    assert_eq!(asked(65_534), "0");
    member.stop();
}

#[test]
fn pt_05_long_path_moves_the_socket_to_the_runtime_directory() {
    let runtime = tempfile::tempdir().expect("a temporary directory");
    let bench = Bench::deep("idle");
    let launcher = super::own_terminal::detached_with(
        &bench,
        &own(&bench, "echo up; read x"),
        &[("XDG_RUNTIME_DIR", runtime.path().to_str().expect("text"))],
    );
    bench.placed();
    let member = Member { bench, launcher };
    assert_eq!(member.socket().parent(), Some(runtime.path().join("phalanx").as_path()));
    let mut terminal = member.terminal("up");
    terminal.types(DETACH);
    member.is_given_back(&mut terminal, "<0>");
    let socket = member.socket();
    member.stop();
    assert!(!socket.exists());
}

#[test]
fn member_cannot_attach_to_itself() {
    let bench = Bench::new("idle");
    let mut order = own(&bench, "read x; $PHALANX attach alice; echo \"<$?>\"; read x");
    let more = [
        ("PHALANX", env!("CARGO_BIN_EXE_phalanx")),
        ("PHALANX_TEAM", TEAM),
        ("PHALANX_INCARNATION", RUN),
    ];
    order.env.extend(more.map(|(name, value)| (name.into(), value.into())));
    order.env.push(("PHALANX_CONFIG_DIR".into(), bench.root().into()));
    let launcher = detached(&bench, &order);
    bench.placed();
    let member = Member { bench, launcher };
    let mut terminal = UserTerminal::new(&member.bench, "$PHALANX attach; read x");
    until("it is attached", || terminal.on_second_screen());
    terminal.types(b"\r");
    terminal.shows("<4>");
    assert!(terminal.screen().contains("this is its own terminal"), "{}", terminal.screen());
    member.stop();
}

#[test]
fn viewer_on_an_unread_terminal_can_be_ended() {
    let member = Member::run("while :; do echo flood; done");
    let _seat = UserTerminal::unread(&member.bench, "exec $PHALANX attach alice");
    let viewer = member.bench.viewer();
    let tasks = format!("/proc/{viewer}/task");
    until("it shows what comes", || {
        let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
        tasks.into_iter().any(|task| text(&task.path().join("comm")) == "show\n")
    });
    until("the viewer's end", || {
        // The first signal makes the viewer leave; another one ends it while its final message is
        // stuck.
        let _ = kill(Pid::from_raw(viewer), Signal::SIGTERM);
        is_dead(viewer)
    });
    member.stop();
}
