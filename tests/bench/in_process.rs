//! In-process benchmarks (criterion).

fn main() {}
