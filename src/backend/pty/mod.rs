//! Own PTYs, each held by the launcher of its member.
