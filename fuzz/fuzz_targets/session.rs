//! Sessions: any events in any order, in any world.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jackline_fuzzing::session(bytes));
