//! Fuzzes the hook with payloads of Claude Code.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::hook(bytes));
