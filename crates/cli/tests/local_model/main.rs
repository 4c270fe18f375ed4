//! A real model in this process, under real schemas.
//!
//! These tests want a GGUF file in `JACKLINE_TEST_GGUF`, and are built with the feature
//! `local-model` only; `cargo xtask test --local-model` fetches the file and runs them. What
//! a small model says is often nonsense. What is tested is that it is of the right form, that
//! it ends, and what is said where it can't.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod ends;
mod files;
mod forms;
mod run;
mod world;
