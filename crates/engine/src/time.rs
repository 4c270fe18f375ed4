//! Points in time as the engine knows them: given, never read.

use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since the Unix epoch; RFC 3339 in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 time such as 2026-01-31T12:00:00Z")]
pub struct TimestampError(String);

impl Timestamp {
    /// The point `ms` milliseconds after the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Reads an RFC 3339 text; what is finer than a millisecond is dropped.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .map_err(|_| TimestampError(text.chars().take(64).collect()))
    }

    /// The point `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }

    /// How long after `earlier` this is; zero where it is not.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        if self.0 > earlier.0 { self.0.abs_diff(earlier.0) } else { 0 }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            // Beyond the calendar; only arithmetic on absurd limits gets here.
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

// JSON has the readable form; the compact state has the number.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&self.to_string())
        } else {
            serializer.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Self::parse(&text).map_err(de::Error::custom)
        } else {
            i64::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_fractions_are_understood() {
        let at = Timestamp::parse("2026-01-31T14:00:00.1234+02:00").unwrap();
        assert_eq!(at.to_string(), "2026-01-31T12:00:00.123Z");
        assert_eq!(Timestamp::parse(&at.to_string()).unwrap(), at);
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        assert!(Timestamp::parse("2026-01-31T12:00:00").is_err());
        assert!(Timestamp::parse("yesterday").is_err());
    }

    #[test]
    fn elapsed_time_never_runs_back() {
        let (a, b) = (Timestamp::from_ms(5), Timestamp::from_ms(9));
        assert_eq!((b.ms_since(a), a.ms_since(b)), (4, 0));
    }
}
