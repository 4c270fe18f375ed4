//! Fuzzes sessions with any events in any order.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::session(bytes));
