//! Points in time. The engine receives them and never reads a clock.

use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since the Unix epoch; an RFC 3339 text in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// The years 1 to 9999, without the last day. Every time in this range can be written and parsed.
const TIMESTAMP_MS_MIN: i64 = -62_135_596_800_000;
const TIMESTAMP_MS_MAX: i64 = 253_402_128_000_000;

/// The format of a time, for error messages.
pub(crate) const EXPECTED_FORMAT: &str =
    "an RFC 3339 time such as 2026-01-31T12:00:00Z, from the year 1 to 9999-12-30T00:00:00Z";

/// A text that is not an RFC 3339 time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not {EXPECTED_FORMAT}")]
pub struct TimestampError(String);

impl Timestamp {
    /// The time `ms` milliseconds after the epoch, or the nearest time in the supported range.
    pub const fn from_ms(ms: i64) -> Self {
        if ms < TIMESTAMP_MS_MIN {
            Self(TIMESTAMP_MS_MIN)
        } else if ms > TIMESTAMP_MS_MAX {
            Self(TIMESTAMP_MS_MAX)
        } else {
            Self(ms)
        }
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Parses an RFC 3339 text. Fractions of a millisecond are dropped.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let fail = || TimestampError(text.chars().take(64).collect());
        // The library accepts more formats than RFC 3339, which a protocol should not do.
        let shape =
            |at: usize, byte: &[u8]| text.as_bytes().get(at).is_some_and(|b| byte.contains(b));
        if !(shape(4, b"-") && shape(7, b"-") && shape(10, b"Tt ") && shape(13, b":"))
            || text.contains('[')
        {
            return Err(fail());
        }
        let ms = text.parse::<jiff::Timestamp>().map_err(|_| fail())?.as_millisecond();
        let time = Self::from_ms(ms);
        if time.0 == ms { Ok(time) } else { Err(fail()) }
    }

    /// The time `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self::from_ms(self.0.saturating_add_unsigned(ms))
    }

    /// The time since `earlier`; zero if `earlier` is not earlier.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        if self.0 > earlier.0 { self.0.abs_diff(earlier.0) } else { 0 }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            // The time is out of range, which only arithmetic with extreme limits can cause.
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

// JSON contains the readable form. The compact state contains the number.
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
            i64::deserialize(deserializer).map(Self::from_ms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_fractions_are_parsed() {
        let at = Timestamp::parse("2026-01-31T14:00:00.1234+02:00").unwrap();
        assert_eq!(at.to_string(), "2026-01-31T12:00:00.123Z");
        assert_eq!(Timestamp::parse(&at.to_string()).unwrap(), at);
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        assert!(Timestamp::parse("2026-01-31T12:00:00").is_err());
        assert!(Timestamp::parse("yesterday").is_err());
        assert!(Timestamp::parse("20260131T120000Z").is_err());
        assert!(Timestamp::parse("2026-01-31T12:00:00+01:00[Europe/Berlin]").is_err());
        assert!(Timestamp::parse("9999-12-30T22:00:00.5Z").is_err());
    }

    #[test]
    fn every_time_can_be_parsed_again() {
        for ms in
            [i64::MIN, TIMESTAMP_MS_MIN, -1, 0, 1, TIMESTAMP_MS_MAX, 300_000_000_000_000, i64::MAX]
        {
            let time = Timestamp::from_ms(ms);
            assert_eq!(Timestamp::parse(&time.to_string()), Ok(time), "{ms}");
            assert_eq!(
                Timestamp::parse(&time.plus_ms(u64::MAX).to_string()),
                Ok(Timestamp(TIMESTAMP_MS_MAX))
            );
        }
    }

    #[test]
    fn elapsed_time_is_never_negative() {
        let (a, b) = (Timestamp::from_ms(5), Timestamp::from_ms(9));
        assert_eq!((b.ms_since(a), a.ms_since(b)), (4, 0));
    }
}
