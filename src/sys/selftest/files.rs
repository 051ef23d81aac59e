//! Checks of files, locks and sockets.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::super::fs::{create_dir_exclusive, create_new, exchange, write_atomic};
use super::super::lock::{DirLock, Gate};
use super::super::socket::{LONGEST_PATH, Listener, connect};
use super::super::watch::Watch;
use super::super::{clock, env, native, proc};
use super::check::{
    CheckFault, CheckResult, HelperRole, PATIENCE, TestChild, TestSite, require, shown, wait_for,
};

/// The file that a helper process has locked.
pub(super) const LOCKED: &str = "locked";
/// The gate of that lock.
pub(super) const GATE: &str = "gate";
/// The file that the helper process creates once it holds the lock.
pub(super) const HELD: &str = "held";
/// Pause before a change, so that late reports of the previous change have arrived.
const SETTLE: Duration = Duration::from_millis(100);

/// Credentials of the peer of a socket, and the longest path.
pub(super) fn socket(site: &TestSite) -> CheckResult {
    let listener = Listener::bind(&site.file("socket"))?;
    let near = connect(listener.path())?;
    let far = listener.accept()?;
    for end in [&near, &far] {
        let (uid, us) = (native::peer_uid(end)?, env::effective_uid());
        require(uid == us, format!("the peer is shown as user {uid} instead of {us}"))?;
    }
    let taken = site.dir().as_os_str().len() + 1;
    let Some(free) = LONGEST_PATH.checked_sub(taken).filter(|free| *free > 0) else {
        let dir = site.dir().display();
        return Err(CheckFault::Failed(format!("{dir} is too long a path for sockets")));
    };
    let longest = Listener::bind(&site.file(&"x".repeat(free)));
    longest.map_err(|e| CheckFault::Failed(format!("a path of {LONGEST_PATH} bytes: {e}")))?;
    let longer = Listener::bind(&site.file(&"x".repeat(free + 1)));
    require(longer.is_err(), format!("a path of {} bytes is not refused", LONGEST_PATH + 1))?;
    Ok(format!("both peers are known; paths have at most {LONGEST_PATH} bytes"))
}

/// Changes a file in a watched directory.
type FileChange = fn(&Path) -> Result<(), CheckFault>;

/// Reports of changes in a directory.
pub(super) fn watch(site: &TestSite) -> CheckResult {
    let dir = site.file("watched");
    create_dir_exclusive(&dir)?;
    let (sender, reports) = channel();
    let on_change = move |path: &Path| sender.send((path.to_owned(), Instant::now())).is_ok();
    let watch = Watch::new(std::slice::from_ref(&dir), on_change)?;
    let file = dir.join("entry");
    let changes: [(&str, FileChange); 4] = [
        ("creation", |file| Ok(fs::write(file, "1")?)),
        ("write under a lock", write_in_place),
        ("replacement", |file| Ok(write_atomic(file, b"replaced")?)),
        ("removal", |file| Ok(fs::remove_file(file)?)),
    ];
    let mut latencies = Vec::new();
    for (what, change) in changes {
        clock::sleep(SETTLE);
        while reports.try_recv().is_ok() {}
        let begun = Instant::now();
        change(&file)?;
        let reported = loop {
            let missed = |_| CheckFault::Failed(format!("the {what} of a file was not reported"));
            let (path, at) = reports.recv_timeout(PATIENCE).map_err(missed)?;
            if path == file {
                break at;
            }
        };
        latencies.push(format!("{what} {}", shown(reported.saturating_duration_since(begun))));
    }
    let way = if watch.polling().is_some() { "by polling" } else { "by events" };
    Ok(format!("{way}: {}", latencies.join(", ")))
}

/// Writes as Claude Code does. macOS reports the lock, and not the write.
fn write_in_place(file: &Path) -> Result<(), CheckFault> {
    // Not in the watched directory.
    let gate = file.ancestors().nth(2).unwrap_or(file).join("watch-gate");
    let lock = DirLock::acquire(file, &gate, PATIENCE)?;
    let mut open = OpenOptions::new().write(true).open(file)?;
    open.write_all(b"in place")?;
    drop(lock);
    Ok(())
}

/// A rename that replaces nothing, and the exchange of two paths.
pub(super) fn rename(site: &TestSite) -> CheckResult {
    let (one, other) = (site.file("one"), site.file("other"));
    require(create_new(&one, b"1")?, "a file was not created")?;
    require(!create_new(&one, b"2")?, "an existing file was replaced")?;
    require(fs::read(&one)? == b"1", "an existing file was changed")?;
    require(create_new(&other, b"2")?, "a second file was not created")?;
    exchange(&one, &other)?;
    require(fs::read(&one)? == b"2" && fs::read(&other)? == b"1", "no exchange")?;
    Ok("an existing file is kept; two files were exchanged".to_owned())
}

/// An flock excludes, and ends with its holder.
pub(super) fn flock(site: &TestSite) -> CheckResult {
    let path = site.file(GATE);
    let is_free = || Gate::try_open(&path).map(|gate| gate.is_some());
    let ours = Gate::try_open(&path)?;
    require(ours.is_some(), "a new lock is not free")?;
    require(!is_free()?, "a lock can be acquired twice by one process")?;
    drop(ours);
    let holder = TestChild::start(site, HelperRole::Hold)?;
    wait_for("a helper process holds a lock", || site.file(HELD).exists())?;
    require(!is_free()?, "a lock can be acquired while another process holds it")?;
    require(proc::signal(holder.process, libc::SIGKILL), "the holder cannot be killed")?;
    let released =
        wait_for("the lock of a killed holder is free", || matches!(is_free(), Ok(true)));
    // Far below the time after which the lock directory is stale.
    let reclaimed = DirLock::acquire(&site.file(LOCKED), &path, Duration::from_secs(1));
    let directory = match reclaimed {
        Ok(_lock) => "its directory is taken over",
        Err(_) => "its directory stays until it is stale: no extended attributes here",
    };
    Ok(format!("excludes; free {} after its holder was killed; {directory}", shown(released?)))
}
