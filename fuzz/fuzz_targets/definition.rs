//! Fuzzes the loader of definition files.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::definition(bytes));
