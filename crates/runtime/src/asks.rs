//! Codes by which a person names a question.

use jackline_engine::{Digest, SessionId};

/// The code of the question that a record of a session asked.
pub fn ask_code(session: &SessionId, seq: u64) -> String {
    let digest = Digest::of(format!("{session} {seq}").as_bytes()).to_string();
    format!("jl-{}", digest.get(..6).unwrap_or_default())
}
