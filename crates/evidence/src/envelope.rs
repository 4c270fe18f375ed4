//! The envelope around a statement: DSSE, version 1. The signature covers the type and the bytes
//! together, so that bytes of one type can't be passed off as another.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::{Deserialize, Serialize};

use crate::key::{PublicKey, SigningKey};

/// The type of an in-toto statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Signed bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DsseEnvelope {
    payload: String,
    payload_type: String,
    signatures: Vec<DsseSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DsseSignature {
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// Why an envelope can't be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It is not an envelope.
    #[error("it is not a DSSE envelope: {0}")]
    NotAnEnvelope(String),
    /// Its contents are not a statement.
    #[error("it contains `{0}` and not an in-toto statement")]
    WrongType(String),
    /// The given key has not signed it.
    #[error("it has no valid signature of the key {0}; it was changed, or another key signed it")]
    NotSigned(String),
}

impl DsseEnvelope {
    /// Signs some bytes.
    pub fn sign(payload: &[u8], key: &SigningKey) -> Self {
        let sig = STANDARD.encode(key.sign(&signed_bytes(PAYLOAD_TYPE, payload)));
        Self {
            payload: STANDARD.encode(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![DsseSignature { keyid: key.public().id(), sig }],
        }
    }

    /// Parses an envelope, without checking its signatures.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        serde_json::from_slice(bytes)
            .map_err(|error| EnvelopeError::NotAnEnvelope(error.to_string()))
    }

    /// The text of its file.
    pub fn render(&self) -> String {
        // Serializing plain data with text keys can't fail.
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    /// The contents, if the key has signed them.
    pub fn open(&self, key: &PublicKey) -> Result<Vec<u8>, EnvelopeError> {
        let payload = decode_base64(&self.payload)
            .ok_or_else(|| EnvelopeError::NotAnEnvelope("its payload is not base64".to_owned()))?;
        let signed = signed_bytes(&self.payload_type, &payload);
        let by_key = |it: &DsseSignature| {
            decode_base64(&it.sig).is_some_and(|sig| key.has_signed(&signed, &sig))
        };
        if !self.signatures.iter().any(by_key) {
            return Err(EnvelopeError::NotSigned(key.id()));
        }
        if self.payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::WrongType(self.payload_type.clone()));
        }
        Ok(payload)
    }
}

/// Decodes base64 in either alphabet.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// The bytes that are signed.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_covers_the_type_and_the_bytes() {
        // The example in the DSSE specification.
        let bytes = signed_bytes("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn only_signed_contents_are_returned() {
        let key = SigningKey::from_seed(&[1; 32]);
        let envelope = DsseEnvelope::sign(b"{}", &key);
        let again = DsseEnvelope::parse(envelope.render().as_bytes()).unwrap();
        assert_eq!(again.open(&key.public()).unwrap(), b"{}");
        let other = SigningKey::from_seed(&[2; 32]).public();
        assert_eq!(again.open(&other), Err(EnvelopeError::NotSigned(other.id())));
        let changed = DsseEnvelope { payload: STANDARD.encode(b"{ }"), ..envelope.clone() };
        assert!(matches!(changed.open(&key.public()), Err(EnvelopeError::NotSigned(_))));
        let retyped = DsseEnvelope { payload_type: "text/plain".to_owned(), ..envelope.clone() };
        assert!(matches!(retyped.open(&key.public()), Err(EnvelopeError::NotSigned(_))));
        let unsigned = DsseEnvelope { signatures: Vec::new(), ..envelope };
        assert!(matches!(unsigned.open(&key.public()), Err(EnvelopeError::NotSigned(_))));
        for other in ["", "{}", "[]", "{\"payload\":1}"] {
            assert!(matches!(
                DsseEnvelope::parse(other.as_bytes()),
                Err(EnvelopeError::NotAnEnvelope(_))
            ));
        }
    }

    #[test]
    fn signed_contents_of_another_type_are_refused() {
        let key = SigningKey::from_seed(&[1; 32]);
        let sig = STANDARD.encode(key.sign(&signed_bytes("text/plain", b"x")));
        let envelope = DsseEnvelope {
            payload: STANDARD.encode(b"x"),
            payload_type: "text/plain".to_owned(),
            signatures: vec![DsseSignature { keyid: String::new(), sig }],
        };
        let error = envelope.open(&key.public()).unwrap_err();
        assert_eq!(error, EnvelopeError::WrongType("text/plain".to_owned()));
    }
}
