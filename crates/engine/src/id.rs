//! Ids that adapters give to things. They are opaque, bounded and printable.
//!
//! Every kind of id has its own type, so a call can't be mistaken for an actor. Events, records,
//! verdicts and states share one id, so a clone only increments a reference count. An id has at
//! most [`ID_BYTES_MAX`] bytes and no control characters, because ids are stored in bounded state
//! and shown on terminals.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// The longest id that is accepted.
pub const ID_BYTES_MAX: usize = 128;

/// The longest session id that is accepted. Stores hash long ids.
const SESSION_BYTES_MAX: usize = 4096;

/// Why a text can't be an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than accepted.
    #[error("is {0} bytes long; at most {1} are accepted")]
    TooLong(usize, usize),
    /// The text contains a NUL or another control character.
    #[error("contains a control character")]
    ControlCharacter,
    /// The text is not a lowercase word.
    #[error("must be a lowercase word of letters, digits and dashes")]
    NotAWord,
}

fn check_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        Err(IdError::Empty)
    } else if text.len() > ID_BYTES_MAX {
        Err(IdError::TooLong(text.len(), ID_BYTES_MAX))
    } else if text.chars().any(char::is_control) {
        Err(IdError::ControlCharacter)
    } else {
        Ok(())
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text and creates an id from it.
            pub fn parse(text: impl AsRef<str>) -> Result<Self, IdError> {
                let text = text.as_ref();
                check_id(text).map(|()| Self(Arc::from(text)))
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// The actor in a session: `main`, or a sub-agent.
    ActorId,
    /// One generate-validate-execute try.
    AttemptId,
    /// One tool call.
    CallId,
    /// One event, so that sending it twice counts once.
    EventId,
    /// One model request, so that its usage counts once.
    RequestId,
    /// A tool as the agent names it.
    ToolName,
}

impl ActorId {
    /// The main agent, as opposed to its sub-agents.
    pub fn main() -> Self {
        Self(Arc::from("main"))
    }

    /// Whether this is the main agent.
    pub fn is_main(&self) -> bool {
        &*self.0 == "main"
    }
}

/// One agent run. Any text that is not empty is allowed, unlike for other ids, because stores hash
/// ids that can't be file names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Checks a text and creates a session id from it.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, IdError> {
        let text = text.as_ref();
        if text.is_empty() {
            Err(IdError::Empty)
        } else if text.len() > SESSION_BYTES_MAX {
            Err(IdError::TooLong(text.len(), SESSION_BYTES_MAX))
        } else {
            Ok(Self(Arc::from(text)))
        }
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SessionId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A session id may contain any characters, and people see this form of it.
        for c in self.0.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

impl Default for ToolName {
    /// The name for a tool without a name.
    fn default() -> Self {
        Self(Arc::from("unnamed"))
    }
}

impl Default for AttemptId {
    /// The id for an attempt without an id.
    fn default() -> Self {
        Self(Arc::from("unnamed"))
    }
}

/// The longest client id.
const CLIENT_BYTES_MAX: usize = 32;

/// An agent client, by the word that names it on the command line, in definitions and in journals.
///
/// Any word of lowercase letters, digits and dashes is valid. A journal or a definition may name a
/// client that this build does not support, and the layers below the clients must not depend on the
/// list of clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ClientId(Cow<'static, str>);

impl ClientId {
    /// Checks a text and creates a client id from it.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, IdError> {
        let text = text.as_ref();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() {
            Err(IdError::Empty)
        } else if text.len() > CLIENT_BYTES_MAX {
            Err(IdError::TooLong(text.len(), CLIENT_BYTES_MAX))
        } else if !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.chars().all(fits) {
            Err(IdError::NotAWord)
        } else {
            Ok(Self(Cow::Owned(text.into())))
        }
    }

    /// Creates an id from a constant without checking it. The list of clients has a test that its
    /// words are valid.
    pub const fn from_static(word: &'static str) -> Self {
        Self(Cow::Borrowed(word))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ClientId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_client_is_named_by_a_short_lowercase_word() {
        assert_eq!(ClientId::parse("my-agent2").unwrap().as_str(), "my-agent2");
        assert_eq!(ClientId::parse("").unwrap_err(), IdError::Empty);
        assert_eq!(ClientId::parse("x".repeat(33)).unwrap_err(), IdError::TooLong(33, 32));
        for invalid in ["Agent", "2nd", "-a", "a b", "a/b", "ä"] {
            assert_eq!(ClientId::parse(invalid).unwrap_err(), IdError::NotAWord, "{invalid}");
        }
        assert!(
            serde_json::from_str::<ClientId>("\"A\"").is_err(),
            "deserialization must check it too"
        );
    }

    #[test]
    fn an_id_is_bounded_and_printable() {
        assert_eq!(CallId::parse("").unwrap_err(), IdError::Empty);
        assert_eq!(CallId::parse("a\0b").unwrap_err(), IdError::ControlCharacter);
        assert_eq!(CallId::parse("x".repeat(129)).unwrap_err(), IdError::TooLong(129, 128));
        assert_eq!(CallId::parse("..").unwrap().as_str(), "..");
        assert!(
            serde_json::from_str::<CallId>(r#""""#).is_err(),
            "deserialization must check it too"
        );
    }

    #[test]
    fn a_session_id_is_shown_without_control_characters() {
        assert_eq!(SessionId::parse("a\u{1b}[31m\0").unwrap().to_string(), "a\\u{1b}[31m\\u{0}");
    }
}
