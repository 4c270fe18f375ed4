//! Fuzzes the conditions of rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::expression(bytes));
