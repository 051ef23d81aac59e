//! The `phalanx` program: everything is in the library.

fn main() {}
