//! Checks the loader with definition files of people.

use std::sync::Arc;

use jackline_definition::{Diagnostics, FILE_NAME, decode, encode, load};
use jackline_engine::bounds::STATE_BYTES_MAX;
use jackline_engine::{Definition, Digest, Session};

use crate::run_in_time;

/// Either the file loads and can be stored and read back unchanged, or each of its errors has a
/// position in the file.
pub fn definition(bytes: &[u8]) {
    let loaded = run_in_time(|| load(bytes, FILE_NAME));
    match loaded {
        Ok(definition) => check_loaded(&definition, bytes),
        Err(diagnostics) => check_mistakes(&diagnostics, bytes),
    }
}

fn check_loaded(definition: &Definition, source: &[u8]) {
    let checksum = Digest::of(source);
    let compiled = encode(definition, &checksum);
    assert_eq!(decode(compiled, &checksum).as_ref(), Some(definition), "the compiled form");
    // The first record of a journal contains the definition as JSON.
    let json_text = serde_json::to_string(definition).unwrap();
    let read: Definition = serde_json::from_str(&json_text).unwrap();
    assert_eq!(&read, definition, "the recorded form, {json_text}");
    let definition = Arc::new(read);
    let saved = Session::new(Arc::clone(&definition), Arc::default()).snapshot();
    assert!(saved.len() <= STATE_BYTES_MAX, "a new session takes {} bytes", saved.len());
    let restored = Session::restore(definition, Arc::default(), &saved).unwrap();
    assert_eq!(restored.snapshot(), saved, "a new session is restored");
}

fn check_mistakes(diagnostics: &Diagnostics, source: &[u8]) {
    assert!(!diagnostics.is_empty(), "a file that does not load has an error");
    // YAML ends a line at a carriage return too.
    let ends = source.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    for problem in diagnostics.iter() {
        // An error about something missing at the end of the file is reported on the line after it.
        assert!((1..=ends + 2).contains(&problem.line), "{problem:?}");
        assert!((1..=source.len() + 2).contains(&problem.column), "{problem:?}");
        let texts = [Some(&problem.message), problem.hint.as_ref()];
        for text in texts.into_iter().flatten() {
            assert!(!text.is_empty() && !text.contains(char::is_control), "{problem:?}");
        }
    }
    assert!(diagnostics.to_string().starts_with(FILE_NAME), "an error names its file");
}
