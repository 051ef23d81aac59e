//! Fuzz target: arbitrary bytes as the output of `git diff` cause neither a panic nor a hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = testing::parse_patch(bytes);
});
