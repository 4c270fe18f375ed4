//! Fuzzes the decoder with texts that models write as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::decode(bytes));
