//! In-process benchmarks (criterion): the store's hot paths and the lead's step.

#![allow(clippy::disallowed_methods, reason = "benches drive the real system")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use testing::{StepBench, TestTeam};

fn appends(c: &mut Criterion) {
    for filled in [0_usize, 1000] {
        let dir = tempfile::tempdir().expect("tempdir");
        let team = TestTeam::create(&dir.path().join("root"), "bench").expect("team");
        team.join("bob").expect("join");
        for n in 0..filled {
            team.append("bob", "ann", "a message of some length, as they are", &format!("old-{n}"))
                .expect("append");
        }
        let mut n = 0;
        c.bench_function(&format!("append and remove, {filled} entries in the box"), |b| {
            b.iter(|| {
                n += 1;
                let id = format!("new-{n}");
                team.append("bob", "ann", "a message of some length, as they are", &id)
                    .expect("append");
                team.remove("bob", &[id]).expect("remove");
            });
        });
    }
}

fn board(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("tempdir");
    let team = TestTeam::create(&dir.path().join("root"), "bench").expect("team");
    team.add_tasks(1000).expect("tasks");
    c.bench_function("read a board of 1000 tasks", |b| {
        b.iter(|| black_box(team.count_tasks().expect("board")))
    });
}

fn step(c: &mut Criterion) {
    c.bench_function("1000 events of a lead with 50 members", |b| {
        b.iter_batched(
            || StepBench::new(1000),
            |bench| black_box(bench.run()),
            BatchSize::LargeInput,
        )
    });
}

criterion_group!(benches, appends, board, step);
criterion_main!(benches);
