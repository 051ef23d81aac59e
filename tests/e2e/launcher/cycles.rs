//! PF-03: members and viewers that come and go leak nothing. `PHALANX_LONG=1` runs the required two
//! thousand cycles.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::bench::{Bench, is_dead, until};
use super::own_terminal::{code, detached, own};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn cycles(short: usize) -> usize {
    if std::env::var_os("PHALANX_LONG").is_some() { 2000 } else { short }
}

/// The numbers of file descriptors, of terminals among them, and of threads of a process.
fn held(pid: i32) -> (usize, usize, usize) {
    let count =
        |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).map(Iterator::count).unwrap_or(0);
    let is_terminal =
        |path: &&PathBuf| path.starts_with("/dev/pts") || *path == Path::new("/dev/ptmx");
    (count("fd"), links(pid).iter().filter(is_terminal).count(), count("task"))
}

/// The targets of the file descriptors of a process.
fn links(pid: i32) -> Vec<PathBuf> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).collect()
}

fn open_ptys() -> String {
    fs::read_to_string("/proc/sys/kernel/pty/nr").unwrap_or_default().trim().to_owned()
}

#[test]
fn pf_03_members_that_come_and_go_leak_no_terminal() {
    let bench = Bench::new("idle");
    let us = i32::try_from(std::process::id()).expect("a pid");
    let (before, machine) = (held(us), open_ptys());
    for _ in 0..cycles(10) {
        bench.put_record(super::bench::RUN, "idle");
        let launcher = detached(&bench, &own(&bench, "read x"));
        let (program, tty) = (bench.program(), bench.part("start")["tty"].clone());
        kill(Pid::from_raw(bench.launcher()), Signal::SIGTERM).expect("it runs");
        assert_eq!(code(launcher), 128 + 15);
        assert!(is_dead(program), "{tty}");
        assert_eq!(fs::read_dir(bench.ours("sockets")).expect("made by the launcher").count(), 0);
    }
    assert_eq!(held(us), before);
    println!(
        "cycles {}: {before:?} -> {:?}; ptys of the machine {machine} -> {}",
        cycles(10),
        held(us),
        open_ptys()
    );
}

#[test]
fn pf_03_viewers_that_come_and_go_leak_nothing_in_the_launcher() {
    let bench = Bench::new("idle");
    let launcher = detached(&bench, &own(&bench, "echo up; read x"));
    let socket = bench.part("start")["socket"].as_str().expect("a path").to_owned();
    let pid = bench.launcher();
    let attach = || {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        stream.write_all(b"A\0\0\0\x04\0\x18\0\x50").expect("it listens");
        stream.read_exact(&mut [0; 5]).expect("the first words");
    };
    // The lock under which it writes its start record is a descriptor too.
    let is_log =
        |path: &PathBuf| *path == bench.log() || *path == bench.log().with_extension("log.times");
    let files =
        || links(pid).into_iter().filter(|path| path.starts_with(bench.team()) && !is_log(path));
    // Its threads: the main one, signals, output, the answers to its queries, the attach server and
    // the watch for prompts.
    until("its record is written", || files().count() == 0 && held(pid).2 == 6);
    let before = held(pid);
    for at in 0..cycles(100) {
        attach();
        if at % 3 == 0 {
            // Hostile viewers: one that sends nothing, one that stops within a message, and one
            // that sends garbage.
            drop(UnixStream::connect(&socket).expect("it listens"));
            let _ = UnixStream::connect(&socket).expect("it listens").write_all(b"A\0\0");
            let _ = UnixStream::connect(&socket)
                .expect("it listens")
                .write_all(b"GET / HTTP/1.1\r\n\r\n");
        }
        until("room for another", || held(pid).2 < 20);
    }
    until("all have left", || held(pid) == before);
    println!("viewers {}: {before:?} -> {:?}", cycles(100), held(pid));
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
    code(launcher);
}
