//! Tests of a real model in this process, with real schemas.
//!
//! These tests need a GGUF file in `JACKLINE_TEST_GGUF`, and are built only with the feature
//! `local-model`. `cargo xtask test --local-model` downloads the file and runs them. The answers of
//! a small model are often nonsense. The tests check that the answers match their schema, that they
//! end, and that errors are reported.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod answer_limits;
mod model_files;
mod model_requests;
mod run;
mod schemas;
