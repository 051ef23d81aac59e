//! Logs.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::{LogKind, LogScope};

#[test]
fn log_is_read_by_position_time_and_task() {
    let Some(stage) = stage() else { return };
    let entry = |id: &str, at, task| LogEntry { at, task, ..line(id) };
    let entries = [entry("a", 10, None), entry("b", 20, Some(7)), entry("c", 30, Some(8))];
    stage.db.append_log(TEAM, LogKind::Journal, &entries).unwrap();
    stage.db.append_log(TEAM, LogKind::Journal, &entries[1..]).unwrap();
    stage.db.append_log(TEAM, LogKind::Handoff, &entries[..1]).unwrap();
    let read = |scope: LogScope| {
        let rows = stage.db.log(TEAM, LogKind::Journal, &scope).unwrap();
        rows.into_iter().map(|row| row.body[7..8].to_owned()).collect::<String>()
    };
    assert_eq!(read(LogScope::After { seq: 0, limit: 2 }), "ab");
    let first = stage.db.log(TEAM, LogKind::Journal, &LogScope::Task(7)).unwrap()[0].seq;
    assert_eq!(read(LogScope::After { seq: first, limit: 9 }), "c");
    assert_eq!(read(LogScope::Since(20)), "bc");
    assert_eq!(read(LogScope::Task(8)), "c");
    assert_eq!(read(LogScope::Tasks), "bc");
    let end = stage.db.log_end(TEAM, LogKind::Journal).unwrap();
    assert_eq!(read(LogScope::After { seq: end, limit: 9 }), "");
    assert!(stage.db.log_end(TEAM, LogKind::Handoff).unwrap() > end);
}

#[test]
fn polling_reader_misses_no_line_of_concurrent_writers() {
    const LINES: usize = 150;
    let Some(stage) = stage() else { return };
    let writers: Vec<_> = (0..8).map(|_| connect(&stage.database)).collect();
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut last, mut seen) = (0, 0);
            loop {
                let is_last = is_over.load(Ordering::SeqCst);
                let scope = LogScope::After { seq: last, limit: 50 };
                let rows = stage.db.log(TEAM, LogKind::Journal, &scope).unwrap();
                assert!(rows.windows(2).all(|pair| pair[0].seq < pair[1].seq));
                seen += rows.len();
                last = rows.last().map_or(last, |row| row.seq);
                if is_last && rows.is_empty() {
                    return seen;
                }
            }
        });
        let handles: Vec<_> = writers
            .iter()
            .enumerate()
            .map(|(writer, db)| {
                scope.spawn(move || {
                    for n in 0..LINES {
                        let entry = line(&format!("{writer}-{n}"));
                        db.append_log(TEAM, LogKind::Journal, &[entry]).unwrap();
                    }
                })
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert_eq!(seen, 8 * LINES);
}
