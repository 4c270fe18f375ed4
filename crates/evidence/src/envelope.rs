//! The envelope around a statement: DSSE, version 1. What is signed is the type and the bytes
//! together, so that bytes of one kind can't be shown as another.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::{Deserialize, Serialize};

use crate::key::{PublicKey, SigningKey};

/// The type of an in-toto statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Signed bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Signed {
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// Why an envelope can't be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It is something else.
    #[error("it is no DSSE envelope: {0}")]
    None(String),
    /// It holds something else.
    #[error("it holds `{0}`, and not a statement of in-toto")]
    Type(String),
    /// Nobody whom we know has signed it.
    #[error("no signature in it is one of the key {0}; it was changed, or another key signed it")]
    Signature(String),
}

impl Envelope {
    /// Signs some bytes.
    pub fn sign(payload: &[u8], key: &SigningKey) -> Self {
        let sig = STANDARD.encode(key.sign(&encoded(PAYLOAD_TYPE, payload)));
        Self {
            payload: STANDARD.encode(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![Signed { keyid: key.public().id(), sig }],
        }
    }

    /// Reads one; nothing of it is believed yet.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        serde_json::from_slice(bytes).map_err(|error| EnvelopeError::None(error.to_string()))
    }

    /// The text of its file.
    pub fn render(&self) -> String {
        // Plain data with text keys has no way to fail to be JSON.
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    /// What is in it, if the key has signed it.
    pub fn open(&self, key: &PublicKey) -> Result<Vec<u8>, EnvelopeError> {
        let payload = decoded(&self.payload)
            .ok_or_else(|| EnvelopeError::None("its payload is not base64".to_owned()))?;
        let signed = encoded(&self.payload_type, &payload);
        let by_key =
            |it: &Signed| decoded(&it.sig).is_some_and(|sig| key.has_signed(&signed, &sig));
        if !self.signatures.iter().any(by_key) {
            return Err(EnvelopeError::Signature(key.id()));
        }
        if self.payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::Type(self.payload_type.clone()));
        }
        Ok(payload)
    }
}

/// Either alphabet may be used.
fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// The bytes that are signed.
fn encoded(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_the_type_and_the_bytes() {
        // The example of the DSSE protocol.
        let bytes = encoded("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn only_what_was_signed_comes_out() {
        let key = SigningKey::from_seed(&[1; 32]);
        let envelope = Envelope::sign(b"{}", &key);
        let again = Envelope::parse(envelope.render().as_bytes()).unwrap();
        assert_eq!(again.open(&key.public()).unwrap(), b"{}");
        let other = SigningKey::from_seed(&[2; 32]).public();
        assert_eq!(again.open(&other), Err(EnvelopeError::Signature(other.id())));
        let changed = Envelope { payload: STANDARD.encode(b"{ }"), ..envelope.clone() };
        assert!(matches!(changed.open(&key.public()), Err(EnvelopeError::Signature(_))));
        let retyped = Envelope { payload_type: "text/plain".to_owned(), ..envelope.clone() };
        assert!(matches!(retyped.open(&key.public()), Err(EnvelopeError::Signature(_))));
        let unsigned = Envelope { signatures: Vec::new(), ..envelope };
        assert!(matches!(unsigned.open(&key.public()), Err(EnvelopeError::Signature(_))));
        for other in ["", "{}", "[]", "{\"payload\":1}"] {
            assert!(matches!(Envelope::parse(other.as_bytes()), Err(EnvelopeError::None(_))));
        }
    }

    #[test]
    fn something_else_that_the_key_has_signed_is_no_statement() {
        let key = SigningKey::from_seed(&[1; 32]);
        let sig = STANDARD.encode(key.sign(&encoded("text/plain", b"x")));
        let envelope = Envelope {
            payload: STANDARD.encode(b"x"),
            payload_type: "text/plain".to_owned(),
            signatures: vec![Signed { keyid: String::new(), sig }],
        };
        let error = envelope.open(&key.public()).unwrap_err();
        assert_eq!(error, EnvelopeError::Type("text/plain".to_owned()));
    }
}
