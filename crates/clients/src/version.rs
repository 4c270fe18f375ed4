//! Versions of agent clients.

use core::fmt;

/// A version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientVersion(pub u32, pub u32, pub u32);

impl ClientVersion {
    /// Parses the output of `--version`. The version is the first word.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.split_whitespace().next()?;
        let core = word.trim_start_matches('v').split(['-', '+']).next()?;
        let mut numbers = core.split('.').map(|number| number.parse().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_tolerantly() {
        assert_eq!(ClientVersion::parse("2.1.325 (Some Client)\n"), Some(ClientVersion(2, 1, 325)));
        assert_eq!(ClientVersion::parse("v2.2.0-beta.1"), Some(ClientVersion(2, 2, 0)));
        for odd in ["", "agent", "2.1", "2.1.x", "2.1.3.4", "99999999999.1.1"] {
            assert_eq!(ClientVersion::parse(odd), None, "{odd}");
        }
    }
}
