//! Files that are no model, or not all of one.

use std::fs;
use std::io::Read as _;

use jackline_model::{ErrorKind, LocalSpec, open_local};

use crate::world::{ask, gguf, request, spec};

#[test]
fn a_file_that_is_cut_off_or_damaged_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fs::metadata(gguf()).unwrap().len();
    for (name, length) in [("header", 16), ("words", 200_000), ("weights", whole - 1_000_000)] {
        let path = directory.path().join(format!("{name}.gguf"));
        let mut bytes = Vec::new();
        fs::File::open(gguf()).unwrap().take(length).read_to_end(&mut bytes).unwrap();
        fs::write(&path, bytes).unwrap();
        let mut model = open_local(&LocalSpec { path: path.clone(), ..spec() }).unwrap();
        for _ in 0..2 {
            let error = ask(model.as_mut(), &request("Hello.")).unwrap_err();
            assert_eq!(error.kind, ErrorKind::UnknownModel, "{name}: {error}");
            assert!(error.message.contains(path.to_str().unwrap()), "{error}");
            assert!(error.message.contains("cut off, damaged"), "{error}");
        }
    }
}

#[test]
fn what_is_no_model_is_said_before_it_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.gguf");
    let open = || open_local(&LocalSpec { path: path.clone(), ..spec() }).map(drop).unwrap_err();
    assert!(open().message.contains("No such file"), "{}", open());
    fs::write(&path, "some notes").unwrap();
    assert_eq!(open().kind, ErrorKind::UnknownModel);
    assert!(open().message.contains("is no GGUF file"), "{}", open());
}
