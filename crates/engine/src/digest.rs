//! Digests of bytes: the whole sha256 for evidence, and half of it for comparisons within bounded
//! state.

use alloc::string::String;
use core::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Digest as _;

/// A whole sha256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// The first half of a sha256: enough to distinguish values, in half the space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest128([u8; 16]);

/// A digest that is still being computed.
#[derive(Debug)]
pub struct DigestHasher(sha2::Sha256);

impl DigestHasher {
    /// Adds the next part.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The digest of all parts.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Digest {
    /// All zeros: the predecessor of the first record.
    pub const ZERO: Self = Self([0; 32]);

    /// The sha256 of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Starts a sha256 over several parts.
    pub fn hasher() -> DigestHasher {
        DigestHasher(sha2::Sha256::new())
    }

    /// A digest from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first half.
    pub fn half(&self) -> Digest128 {
        let mut half = [0; 16];
        half.iter_mut().zip(self.0).for_each(|(to, from)| *to = from);
        Digest128(half)
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        parse_hex(hex).map(Self)
    }
}

impl Digest128 {
    /// The first half of the sha256 of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest::of(bytes).half()
    }

    /// The bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

fn parse_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let nibble = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if hex.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(bytes)
}

macro_rules! hex_and_serde {
    ($($name:ident: $bytes:literal,)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                const DIGITS: [char; 16] =
                    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
                let digit = |n: u8| DIGITS.get(usize::from(n)).copied().unwrap_or('0');
                self.0.iter().try_for_each(|b| {
                    f.write_char(digit(b >> 4))?;
                    f.write_char(digit(b & 15))
                })
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    self.0.serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    parse_hex(&text).map(Self).ok_or_else(|| de::Error::custom("expected hexadecimal digits"))
                } else {
                    <[u8; $bytes]>::deserialize(deserializer).map(Self)
                }
            }
        }
    )*};
}

hex_and_serde! {
    Digest: 32,
    Digest128: 16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn hex_reads_back() {
        let digest = Digest::of(b"jackline");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("zz"), None);
        assert!(digest.to_string().starts_with(&digest.half().to_string()));
    }
}
