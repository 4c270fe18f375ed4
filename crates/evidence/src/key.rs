//! Keys as PEM: PKCS#8 for the private half, `SubjectPublicKeyInfo` for the public one, as
//! `openssl genpkey -algorithm ed25519` writes them. Both are a fixed beginning and 32 bytes,
//! so no reader of DER is needed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use jackline_engine::Digest;

/// What comes before the seed in PKCS#8, version 1, of ed25519.
const PRIVATE: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// What comes before the point in `SubjectPublicKeyInfo` of ed25519.
const PUBLIC: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is something else.
    #[error("it is no PEM text `-----BEGIN {0}-----`")]
    NoPem(&'static str),
    /// It is a key of another kind.
    #[error("it is no ed25519 key; `openssl genpkey -algorithm ed25519` makes one")]
    NotEd25519,
}

/// What signs.
pub struct SigningKey(ed25519_dalek::SigningKey);

/// What signatures are checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl SigningKey {
    /// The key of 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Reads a private key.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        body::<16>(pem, "PRIVATE KEY", &PRIVATE).map(|seed| Self::from_seed(&seed))
    }

    /// The text of its file.
    pub fn render(&self) -> String {
        render("PRIVATE KEY", &PRIVATE, self.0.as_bytes())
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

impl PublicKey {
    /// Reads a public key.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        let point = body::<12>(pem, "PUBLIC KEY", &PUBLIC)?;
        VerifyingKey::from_bytes(&point).map(Self).map_err(|_| KeyError::NotEd25519)
    }

    /// The text of its file.
    pub fn render(&self) -> String {
        render("PUBLIC KEY", &PUBLIC, self.0.as_bytes())
    }

    /// What it is called: the sha256 of its DER.
    pub fn id(&self) -> String {
        Digest::of(&[&PUBLIC[..], self.0.as_bytes()].concat()).to_string()
    }

    pub(crate) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        // Strict: no second signature of the same bytes passes, and no weak key.
        signature.is_ok_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

fn render(label: &str, beginning: &[u8], bytes: &[u8; 32]) -> String {
    let body = STANDARD.encode([beginning, bytes].concat());
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// The 32 bytes of a key.
fn body<const N: usize>(
    pem: &str,
    label: &'static str,
    beginning: &[u8; N],
) -> Result<[u8; 32], KeyError> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let inner = pem.trim().strip_prefix(&begin).and_then(|rest| rest.strip_suffix(&end));
    let inner: String = inner.ok_or(KeyError::NoPem(label))?.split_whitespace().collect();
    let bytes = STANDARD.decode(inner).map_err(|_| KeyError::NoPem(label))?;
    let bytes = bytes.strip_prefix(beginning.as_slice()).ok_or(KeyError::NotEd25519)?;
    bytes.try_into().map_err(|_| KeyError::NotEd25519)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written_and_as_openssl_writes_them() {
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
    fn what_is_no_key_says_what_it_is() {
        let public = SigningKey::from_seed(&[7; 32]).public().render();
        let short = public.replacen("MCow", "", 1);
        for (text, error) in [
            ("", KeyError::NoPem("PUBLIC KEY")),
            ("ssh-ed25519 AAAA", KeyError::NoPem("PUBLIC KEY")),
            (&SigningKey::from_seed(&[7; 32]).render(), KeyError::NoPem("PUBLIC KEY")),
            (&short, KeyError::NotEd25519),
            (
                "-----BEGIN PUBLIC KEY-----\n?\n-----END PUBLIC KEY-----",
                KeyError::NoPem("PUBLIC KEY"),
            ),
        ] {
            assert_eq!(PublicKey::parse(text).unwrap_err(), error, "{text}");
        }
        assert_eq!(SigningKey::parse(&public).err(), Some(KeyError::NoPem("PRIVATE KEY")));
    }
}
