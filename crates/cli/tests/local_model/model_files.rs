//! Tests with files that are not a model, or only a part of one.

use std::fs;
use std::io::Read as _;

use jackline_model::{LocalModelSpec, ModelErrorKind, open_local_model};

use crate::model_requests::{ask, model_file, request, spec};

#[test]
fn an_incomplete_or_damaged_model_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fs::metadata(model_file()).unwrap().len();
    for (name, length) in [("header", 16), ("words", 200_000), ("weights", whole - 1_000_000)] {
        let path = directory.path().join(format!("{name}.gguf"));
        let mut bytes = Vec::new();
        fs::File::open(model_file()).unwrap().take(length).read_to_end(&mut bytes).unwrap();
        fs::write(&path, bytes).unwrap();
        let mut model = open_local_model(&LocalModelSpec { path: path.clone(), ..spec() }).unwrap();
        for _ in 0..2 {
            let error = ask(model.as_mut(), &request("Hello.")).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::UnknownModel, "{name}: {error}");
            assert!(error.message.contains(path.to_str().unwrap()), "{error}");
            assert!(error.message.contains("incomplete, damaged"), "{error}");
        }
    }
}

#[test]
fn a_file_that_is_not_a_model_is_reported_before_the_first_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.gguf");
    let open = || {
        open_local_model(&LocalModelSpec { path: path.clone(), ..spec() }).map(drop).unwrap_err()
    };
    assert!(open().message.contains("No such file"), "{}", open());
    fs::write(&path, "some notes").unwrap();
    assert_eq!(open().kind, ModelErrorKind::UnknownModel);
    assert!(open().message.contains("is not a GGUF file"), "{}", open());
}
