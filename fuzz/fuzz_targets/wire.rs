//! Fuzzes the wire format.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::wire(bytes));
