//! Fuzz target: arbitrary bytes as the address of a shared store cause neither a panic nor a hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = testing::parse_store_url(bytes);
});
