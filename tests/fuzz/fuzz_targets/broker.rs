//! Fuzz target: arbitrary bytes as a message between a client and the broker
//! of a shared store cause neither a panic nor a hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = testing::parse_broker_message(bytes);
});
