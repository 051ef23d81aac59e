//! Limits of this process, for work on hostile input.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Limits the CPU time and the address space of this process, at which the system ends it or
/// refuses memory, and turns off its core dumps. A limit that the system does not have is left out.
pub fn limit_this_process(cpu: Duration, memory: u64) {
    let limits = [
        (Resource::RLIMIT_CPU, cpu.as_secs().max(1)),
        (Resource::RLIMIT_AS, memory),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (resource, limit) in limits {
        let hard = getrlimit(resource).map_or(limit, |(_, hard)| hard.min(limit));
        let _ = setrlimit(resource, hard, hard);
    }
}
