//! What models write where JSON is wanted.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::decode(bytes));
