//! Any bytes as a mailbox file: no panic, no hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = phalanx::drive::parse_mailbox(bytes);
});
