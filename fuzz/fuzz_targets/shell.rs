//! Fuzzes the shell parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::shell(bytes));
