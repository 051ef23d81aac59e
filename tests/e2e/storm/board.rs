//! A large board whose files other programs change between reads: the index never changes what is
//! read.

use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use super::*;

/// Above the size from which phalanx keeps an index.
const TASKS: u64 = 800;

/// The index takes in no file that changed later than this many seconds ago.
const SETTLED_S: i64 = 4;

/// Pseudo-random numbers, the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A task file; a subject of even length closes the task.
fn text(id: u64, subject: &str) -> String {
    let status = if subject.len().is_multiple_of(2) { "completed" } else { "in_progress" };
    format!(r#"{{"id":"{id}","subject":"{subject}","status":"{status}","blocks":[]}}"#)
}

/// Changes one file or two as another program may do it.
fn change(dir: &Path, numbers: &mut Numbers) {
    let id = 1 + numbers.below(TASKS);
    let path = dir.join(format!("{id}.json"));
    let temp = dir.join(".foreign.tmp");
    let new = text(id, &format!("{:09}", numbers.below(1_000_000_000)));
    match numbers.below(7) {
        // In place, mostly with the length that the file has.
        0 => fs::write(&path, new).expect("write"),
        1 => fs::write(&path, text(id, &"odd".repeat(1 + id as usize % 9))).expect("write"),
        2 => {
            fs::write(&temp, new).expect("write");
            fs::rename(&temp, &path).expect("rename");
        }
        3 => drop(fs::remove_file(&path)),
        4 => fs::write(&path, text(id, "x").replace(r#""x""#, r#"["unusual"]"#)).expect("write"),
        5 => {
            let other = dir.join(format!("{}.json", 1 + numbers.below(TASKS)));
            if path.exists() && other.exists() {
                fs::rename(&path, &temp).expect("rename");
                fs::rename(&other, &path).or_else(|_| fs::rename(&temp, &path)).expect("rename");
                drop(fs::rename(&temp, &other));
            }
        }
        _ => {
            let Ok(modified) = fs::metadata(&path).and_then(|meta| meta.modified()) else { return };
            fs::write(&path, new).expect("write");
            let file = fs::File::options().write(true).open(&path).expect("open");
            file.set_modified(modified).expect("own file");
        }
    }
}

#[test]
fn board_read_through_its_index_equals_the_files() {
    let (_dir, root, team) = fresh();
    let dir = root.join("tasks/storm");
    let index = root.join("teams/storm/phalanx/board/index");
    let aside = root.join("aside");
    let newest = || {
        let times = fs::read_dir(&dir)
            .expect("list")
            .map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |meta| meta.ctime()));
        times.max().unwrap_or(0)
    };
    let read = || team.describe_board().expect("board");
    for id in 1..=TASKS {
        fs::write(dir.join(format!("{id}.json")), text(id, "at first ")).expect("write");
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..scaled(3) {
        // The index takes in no file that has just changed.
        wait_for("all files to settle", || {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("clock");
            (now.as_secs() as i64 > newest() + SETTLED_S).then_some(())
        });
        let _ = fs::remove_file(&index);
        read();
        assert!(index.exists(), "a new index");
        for _ in 0..60 {
            for _ in 0..1 + numbers.below(8) {
                change(&dir, &mut numbers);
            }
            let through_index = read();
            fs::rename(&index, &aside).expect("rename");
            assert!(read() == through_index, "the index changed what was read");
            // Without its index, the board was read from its files, and a new index was written.
            // An old index must give the same result.
            if numbers.below(3) > 0 {
                fs::rename(&aside, &index).expect("rename");
            }
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        read();
                    }
                });
            }
            for _ in 0..200 {
                change(&dir, &mut numbers);
            }
            done.store(true, Ordering::Relaxed);
        });
        let through_index = read();
        let _ = fs::remove_file(&index);
        assert!(read() == through_index, "the index changed what was read");
    }
}
