//! Any bytes as a manifest: no panic, no hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = phalanx::drive::parse_manifest(bytes);
});
