//! Conditions of rules, as people write them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::expression(bytes));
