//! A local model: a GGUF file that llama.cpp runs in this process.
//!
//! It requires the feature `local-model`, because the library takes a quarter of an hour to build
//! and needs a C++ compiler. Without the feature, a local model is an error that says so.
//!
//! A grammar restricts the output: the next token must keep it possible to complete a valid
//! document. So an answer can be too short or wrong, but never of another form.

#[cfg(any(feature = "local-model", test))]
mod grammar;
#[cfg(feature = "local-model")]
mod local_model;
#[cfg(feature = "local-model")]
mod model_thread;
#[cfg(any(feature = "local-model", test))]
mod prompt;
#[cfg(feature = "local-model")]
mod token_decoder;

use std::path::PathBuf;
use std::time::Duration;

use crate::conversation::Model;
use crate::error::{ModelError, ModelErrorKind};

/// The prefix of a model name that is the path of a local model.
const LOCAL_PREFIX: &str = "local:";

/// The first bytes of every GGUF file.
#[cfg(any(feature = "local-model", test))]
const GGUF_MAGIC: [u8; 4] = *b"GGUF";

/// The file of a local model, with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModelSpec {
    /// The GGUF file.
    pub path: PathBuf,
    /// The size of the context window in tokens; by default that of the training, up to a limit.
    pub window: Option<u64>,
    /// The timeout of a complete answer.
    pub timeout: Duration,
}

impl LocalModelSpec {
    /// The path in `local:PATH`, if the name has this form.
    pub fn path_in(name: &str) -> Option<&str> {
        name.strip_prefix(LOCAL_PREFIX).map(str::trim).filter(|path| !path.is_empty())
    }

    /// The name in records: the file name without its extension.
    pub fn name(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("local")
    }
}

/// Opens a local model. Checks the file now, and loads it with the first request.
#[cfg(feature = "local-model")]
pub fn open_local_model(spec: &LocalModelSpec) -> Result<Box<dyn Model>, ModelError> {
    check_file(spec)?;
    Ok(Box::new(local_model::LocalModel::new(spec)))
}

/// Returns an error, because this build does not support local models.
#[cfg(not(feature = "local-model"))]
pub fn open_local_model(spec: &LocalModelSpec) -> Result<Box<dyn Model>, ModelError> {
    let message = format!(
        "this `jackline` was built without `local-model`, so `{}` can't be run; build one with \
         `cargo build --release --features local-model` (it needs cmake and libclang), or use a \
         llama.cpp server with the provider `openai-chat`",
        spec.path.display(),
    );
    Err(ModelError::new(ModelErrorKind::BadRequest, message))
}

/// Checks whether the file can be a model, before anything else is done.
#[cfg(any(feature = "local-model", test))]
fn check_file(spec: &LocalModelSpec) -> Result<(), ModelError> {
    use std::io::Read as _;

    let mut first = [0; GGUF_MAGIC.len()];
    let read = std::fs::File::open(&spec.path).and_then(|mut file| file.read_exact(&mut first));
    let why = match read {
        Ok(()) if first == GGUF_MAGIC => return Ok(()),
        Ok(()) => "is not a GGUF file".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "is not a GGUF file, because it is too short".to_owned()
        }
        Err(error) => format!("can't be read: {error}"),
    };
    Err(unusable_file_error(spec, &why))
}

/// The error of an unusable file. A retry would not help.
#[cfg(any(feature = "local-model", test))]
fn unusable_file_error(spec: &LocalModelSpec, why: &str) -> ModelError {
    let message = format!(
        "the model `{}` {why}; check the path, or download the file again",
        spec.path.display()
    );
    ModelError::new(ModelErrorKind::UnknownModel, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(path: &str) -> LocalModelSpec {
        LocalModelSpec { path: PathBuf::from(path), window: None, timeout: Duration::from_secs(1) }
    }

    #[test]
    fn the_name_of_a_local_model_is_a_path() {
        assert_eq!(LocalModelSpec::path_in("local:models/a.gguf"), Some("models/a.gguf"));
        assert_eq!(LocalModelSpec::path_in("local: "), None);
        assert_eq!(LocalModelSpec::path_in("openai/gpt"), None);
        assert_eq!(spec("/models/Smol-1.5B.Q4.gguf").name(), "Smol-1.5B.Q4");
    }

    #[test]
    fn an_unusable_file_is_an_error_with_the_path_and_advice() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for (path, why) in [
            (own, "is not a GGUF file;"),
            ("/dev/null", "too short;"),
            ("/nowhere/a.gguf", "can't be read: No such file"),
            ("/", "can't be read: Is a directory"),
        ] {
            let error = check_file(&spec(path)).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::UnknownModel);
            assert!(error.message.contains(why) && error.message.contains(path), "{error}");
            assert!(
                error.message.ends_with("check the path, or download the file again"),
                "{error}"
            );
        }
    }

    #[cfg(not(feature = "local-model"))]
    #[test]
    fn a_build_without_the_feature_says_how_to_build_one_with_it() {
        let Err(error) = open_local_model(&spec("a.gguf")) else { panic!("the model was opened") };
        assert_eq!(error.kind, ModelErrorKind::BadRequest);
        assert!(error.message.contains("--features local-model"), "{error}");
    }
}
