//! A checked definition in the form that loads fastest.
//!
//! It is a cache: whatever can't be read is simply made again from the YAML.

use jackline_engine::{Definition, Digest, SEMANTICS};

const MAGIC: &[u8; 8] = b"JLDEFN01";

/// The compiled form of a definition.
pub fn encode(definition: &Definition) -> Vec<u8> {
    let body = postcard::to_allocvec(definition).unwrap_or_default();
    let mut bytes = Vec::with_capacity(body.len() + 44);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&SEMANTICS.to_le_bytes());
    bytes.extend_from_slice(Digest::of(&body).as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Reads a compiled form, unless it is damaged or of another version.
pub fn decode(bytes: &[u8]) -> Option<Definition> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let rest = rest.strip_prefix(&SEMANTICS.to_le_bytes())?;
    let (digest, body) = rest.split_at_checked(32)?;
    (Digest::of(body).as_bytes() == digest).then(|| postcard::from_bytes(body).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_cache_is_not_used() {
        let definition = crate::load(
            b"completion: { all: [ files: [a], any: [ files: [b] ] ] }\nlimits: { steps: 3 }",
            "t",
        )
        .unwrap();
        let bytes = encode(&definition);
        assert_eq!(decode(&bytes), Some(definition));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
        }
        assert_eq!(decode(b""), None);
    }
}
