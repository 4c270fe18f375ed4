//! What Claude Code sends to its hooks.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::hook(bytes));
