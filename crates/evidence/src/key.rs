//! Keys in PEM format: PKCS#8 for private keys and `SubjectPublicKeyInfo` for public keys, as
//! written by `openssl genpkey -algorithm ed25519`. Both are a fixed prefix and 32 bytes, so no DER
//! parser is needed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use jackline_engine::Digest;

/// The bytes before the seed in PKCS#8, version 1, for ed25519.
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The bytes before the point in `SubjectPublicKeyInfo` for ed25519.
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not a PEM text.
    #[error("it is not a PEM text with `-----BEGIN {0}-----`")]
    NotPem(&'static str),
    /// It is another type of key.
    #[error("it is not an ed25519 key; create one with `openssl genpkey -algorithm ed25519`")]
    NotEd25519,
}

/// A private key, for signing.
pub struct SigningKey(ed25519_dalek::SigningKey);

/// A public key, for checking signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl SigningKey {
    /// The key for 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Parses a private key.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        key_bytes::<16>(pem, "PRIVATE KEY", &PRIVATE_PREFIX).map(|seed| Self::from_seed(&seed))
    }

    /// The text of its file.
    pub fn render(&self) -> String {
        render("PRIVATE KEY", &PRIVATE_PREFIX, self.0.as_bytes())
    }

    /// Its public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

impl PublicKey {
    /// Parses a public key.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        let point = key_bytes::<12>(pem, "PUBLIC KEY", &PUBLIC_PREFIX)?;
        VerifyingKey::from_bytes(&point).map(Self).map_err(|_| KeyError::NotEd25519)
    }

    /// The text of its file.
    pub fn render(&self) -> String {
        render("PUBLIC KEY", &PUBLIC_PREFIX, self.0.as_bytes())
    }

    /// Its id: the SHA-256 of its DER form.
    pub fn id(&self) -> String {
        Digest::of(&[&PUBLIC_PREFIX[..], self.0.as_bytes()].concat()).to_string()
    }

    pub(crate) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        // Strict checking refuses a second signature of the same bytes, and weak keys.
        signature.is_ok_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

fn render(label: &str, beginning: &[u8], bytes: &[u8; 32]) -> String {
    let body = STANDARD.encode([beginning, bytes].concat());
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// The 32 bytes of a key.
fn key_bytes<const N: usize>(
    pem: &str,
    label: &'static str,
    beginning: &[u8; N],
) -> Result<[u8; 32], KeyError> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let inner = pem.trim().strip_prefix(&begin).and_then(|rest| rest.strip_suffix(&end));
    let inner: String = inner.ok_or(KeyError::NotPem(label))?.split_whitespace().collect();
    let bytes = STANDARD.decode(inner).map_err(|_| KeyError::NotPem(label))?;
    let bytes = bytes.strip_prefix(beginning.as_slice()).ok_or(KeyError::NotEd25519)?;
    bytes.try_into().map_err(|_| KeyError::NotEd25519)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_as_rendered_here_and_by_openssl() {
        let key = SigningKey::from_seed(&[7; 32]);
        assert_eq!(SigningKey::parse(&key.render()).unwrap().public(), key.public());
        assert_eq!(PublicKey::parse(&key.public().render()).unwrap(), key.public());
        // The first test key of RFC 8410, section 10.
        let known = "-----BEGIN PRIVATE KEY-----\n\
                     MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                     -----END PRIVATE KEY-----\n";
        let public = "-----BEGIN PUBLIC KEY-----\n\
                      MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
                      -----END PUBLIC KEY-----\n";
        let key = SigningKey::parse(known).unwrap();
        assert_eq!((key.render().as_str(), key.public().render().as_str()), (known, public));
    }

    #[test]
    fn an_invalid_key_has_an_error() {
        let public = SigningKey::from_seed(&[7; 32]).public().render();
        let short = public.replacen("MCow", "", 1);
        for (text, error) in [
            ("", KeyError::NotPem("PUBLIC KEY")),
            ("ssh-ed25519 AAAA", KeyError::NotPem("PUBLIC KEY")),
            (&SigningKey::from_seed(&[7; 32]).render(), KeyError::NotPem("PUBLIC KEY")),
            (&short, KeyError::NotEd25519),
            (
                "-----BEGIN PUBLIC KEY-----\n?\n-----END PUBLIC KEY-----",
                KeyError::NotPem("PUBLIC KEY"),
            ),
        ] {
            assert_eq!(PublicKey::parse(text).unwrap_err(), error, "{text}");
        }
        assert_eq!(SigningKey::parse(&public).err(), Some(KeyError::NotPem("PRIVATE KEY")));
    }
}
