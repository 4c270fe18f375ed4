//! The compiled form of a checked definition, which loads fastest.
//!
//! It is a cache: when it cannot be read, the definition is compiled again from the YAML.

use jackline_engine::{Definition, Digest, SEMANTICS};

const MAGIC: &[u8; 8] = b"JLDEFN16";

/// Encodes the compiled form of the definition whose source has this checksum.
///
/// ```text
/// magic, semantics number, checksum of the rest
/// checksum of the source, length of the definition, definition, bytes of the rules
/// ```
pub fn encode(definition: &Definition, source: &Digest) -> Vec<u8> {
    // Serialising plain data into memory cannot fail.
    let head = postcard::to_allocvec(definition).unwrap_or_default();
    let mut body = source.as_bytes().to_vec();
    body.extend_from_slice(&(head.len() as u64).to_le_bytes());
    body.extend_from_slice(&head);
    body.extend_from_slice(definition.rules.packed());
    let mut bytes = Vec::with_capacity(body.len() + 20);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&SEMANTICS.to_le_bytes());
    bytes.extend_from_slice(&checksum(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Decodes a compiled form. Returns `None` if it is damaged, has another version, or belongs to
/// another source. The definition takes over the buffer, so that its rules are not copied.
pub fn decode(file: Vec<u8>, source: &Digest) -> Option<Definition> {
    let rest = file.strip_prefix(MAGIC)?;
    let rest = rest.strip_prefix(&SEMANTICS.to_le_bytes())?;
    let (stored, body) = rest.split_at_checked(8)?;
    if checksum(body).to_le_bytes() != stored {
        return None;
    }
    let (length, rest) = body.strip_prefix(source.as_bytes())?.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (head, rules) = rest.split_at_checked(length)?;
    let mut definition: Definition = postcard::from_bytes(head).ok()?;
    let start = file.len() - rules.len();
    definition.rules.unpack(file, start).then_some(definition)
}

/// Detects damage. Every process that decides one call computes this checksum, so it must be
/// fast: it mixes one word at a time. Each step is reversible, so a changed word always changes
/// the sum. It does not protect against forgery: an attacker who can replace the file could also
/// forge a stronger checksum.
fn checksum(bytes: &[u8]) -> u64 {
    let mix =
        |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum =
        words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
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
        assert_eq!(decode(bytes.clone(), &source), Some(definition));
        assert_eq!(decode(bytes.clone(), &Digest::of(b"another")), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(damaged, &source), None, "byte {at}");
        }
        assert_eq!(decode(Vec::new(), &source), None);
    }
}
