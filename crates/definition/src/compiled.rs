//! A checked definition in the form that loads fastest.
//!
//! It is a cache: whatever can't be read is simply made again from the YAML.

use jackline_engine::{Definition, Digest, SEMANTICS};

const MAGIC: &[u8; 8] = b"JLDEFN07";

/// The compiled form of the definition whose source has this checksum.
pub fn encode(definition: &Definition, source: &Digest) -> Vec<u8> {
    let mut body = source.as_bytes().to_vec();
    body.extend(postcard::to_allocvec(definition).unwrap_or_default());
    let mut bytes = Vec::with_capacity(body.len() + 44);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&SEMANTICS.to_le_bytes());
    bytes.extend_from_slice(Digest::of(&body).as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Reads a compiled form, unless it is damaged, of another version, or of
/// another source.
pub fn decode(bytes: &[u8], source: &Digest) -> Option<Definition> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let rest = rest.strip_prefix(&SEMANTICS.to_le_bytes())?;
    let (digest, body) = rest.split_at_checked(32)?;
    if Digest::of(body).as_bytes() != digest {
        return None;
    }
    postcard::from_bytes(body.strip_prefix(source.as_bytes())?).ok()
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
        let source = Digest::of(b"the source");
        let bytes = encode(&definition, &source);
        assert_eq!(decode(&bytes, &source), Some(definition));
        assert_eq!(decode(&bytes, &Digest::of(b"another")), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, &source), None, "byte {at}");
        }
        assert_eq!(decode(b"", &source), None);
    }
}
