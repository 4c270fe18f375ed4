//! A model of this machine: a GGUF file that llama.cpp runs in this process.
//!
//! It is there with the feature `local-model` only: the library takes a quarter of an hour
//! to build, and wants a compiler for C++. Without it whoever names a file is told so.
//!
//! What such a model writes is decoded under a grammar: of all words that it could write
//! next, only those are left with which the answer can still become a valid document. So an
//! answer can be too short, or wrong, but never of another form.

#[cfg(feature = "local-model")]
mod asked;
#[cfg(any(feature = "local-model", test))]
mod grammar;
#[cfg(any(feature = "local-model", test))]
mod prompt;
#[cfg(feature = "local-model")]
mod seat;
#[cfg(feature = "local-model")]
mod words;

use std::path::PathBuf;
use std::time::Duration;

use crate::ask::Model;
use crate::error::{ErrorKind, ModelError};

/// What a name begins with that is the path of a model of this machine.
const SCHEME: &str = "local:";

/// What every GGUF file begins with.
#[cfg(any(feature = "local-model", test))]
const MAGIC: [u8; 4] = *b"GGUF";

/// Which file is run, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSpec {
    /// The GGUF file.
    pub path: PathBuf,
    /// How many tokens its context holds; what it was trained with, within bounds, unless told.
    pub window: Option<u64>,
    /// How long a whole answer may take.
    pub timeout: Duration,
}

impl LocalSpec {
    /// The path in `local:PATH`, if it is that.
    pub fn path_in(name: &str) -> Option<&str> {
        name.strip_prefix(SCHEME).map(str::trim).filter(|path| !path.is_empty())
    }

    /// What it is called in records: the file's name without its end.
    pub fn name(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("local")
    }
}

/// Makes a model of this machine that can be asked. Its file is looked at, and loaded when
/// it is asked first.
#[cfg(feature = "local-model")]
pub fn open_local(spec: &LocalSpec) -> Result<Box<dyn Model>, ModelError> {
    check_file(spec)?;
    Ok(Box::new(asked::Local::new(spec)))
}

/// Says that this build has no models of this machine.
#[cfg(not(feature = "local-model"))]
pub fn open_local(spec: &LocalSpec) -> Result<Box<dyn Model>, ModelError> {
    let message = format!(
        "this `jackline` was built without `local-model`, so `{}` can't be run; build one with \
         `cargo build --release --features local-model` (it wants cmake and libclang), or ask a \
         server of llama.cpp by `openai-chat`",
        spec.path.display(),
    );
    Err(ModelError::new(ErrorKind::BadRequest, message))
}

/// Whether it can be a model at all. It is said before anything else is done.
#[cfg(any(feature = "local-model", test))]
fn check_file(spec: &LocalSpec) -> Result<(), ModelError> {
    use std::io::Read as _;

    let mut first = [0; MAGIC.len()];
    let read = std::fs::File::open(&spec.path).and_then(|mut file| file.read_exact(&mut first));
    let why = match read {
        Ok(()) if first == MAGIC => return Ok(()),
        Ok(()) => "is no GGUF file".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "is no GGUF file, but shorter than any".to_owned()
        }
        Err(error) => format!("can't be read: {error}"),
    };
    Err(unusable(spec, &why))
}

/// An error about the file, which asking again does not mend.
#[cfg(any(feature = "local-model", test))]
fn unusable(spec: &LocalSpec, why: &str) -> ModelError {
    let message = format!(
        "the model `{}` {why}; check the path, or fetch the file again",
        spec.path.display()
    );
    ModelError::new(ErrorKind::UnknownModel, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(path: &str) -> LocalSpec {
        LocalSpec { path: PathBuf::from(path), window: None, timeout: Duration::from_secs(1) }
    }

    #[test]
    fn a_name_of_this_machine_is_a_path() {
        assert_eq!(LocalSpec::path_in("local:models/a.gguf"), Some("models/a.gguf"));
        assert_eq!(LocalSpec::path_in("local: "), None);
        assert_eq!(LocalSpec::path_in("openai/gpt"), None);
        assert_eq!(spec("/models/Smol-1.5B.Q4.gguf").name(), "Smol-1.5B.Q4");
    }

    #[test]
    fn what_can_be_no_model_is_said_with_the_file_and_the_way_on() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for (path, why) in [
            (own, "is no GGUF file;"),
            ("/dev/null", "shorter than any;"),
            ("/nowhere/a.gguf", "can't be read: No such file"),
            ("/", "can't be read: Is a directory"),
        ] {
            let error = check_file(&spec(path)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::UnknownModel);
            assert!(error.message.contains(why) && error.message.contains(path), "{error}");
            assert!(error.message.ends_with("check the path, or fetch the file again"), "{error}");
        }
    }

    #[cfg(not(feature = "local-model"))]
    #[test]
    fn a_build_without_it_says_how_to_get_one() {
        let Err(error) = open_local(&spec("a.gguf")) else { panic!("it runs") };
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.message.contains("--features local-model"), "{error}");
    }
}
