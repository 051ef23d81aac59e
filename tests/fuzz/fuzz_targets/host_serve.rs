//! Fuzz target: arbitrary bytes as a line of the connection to
//! `phalanx host serve` cause neither a panic nor a hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = testing::parse_host_line(bytes);
});
