//! Where a server is that runs elsewhere, and what it is told with every request.

use std::fmt;

use jackline_engine::Digest;
use jackline_http::{AgentTimeouts, Channel, ServerUrl, ServerUrlError, build_agent};
use ureq::Agent;
use ureq::http::header::{HeaderName, HeaderValue};
use ureq::http::uri::Uri;

/// What the protocol or the connection say themselves.
const OWN: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// The parts of a value that are shorter give nothing away.
const SECRET_CHARS_MIN: usize = 4;

/// The address of a server, with the headers that it wants to see.
#[derive(Clone)]
pub struct Address {
    pub(super) uri: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    shows: Shows,
}

/// How much of an address anybody may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// All but the query.
    Path,
    /// Where the server is, and nothing that may be a key.
    Host,
}

/// Whether an address may be spoken to without encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Only where it is on this machine.
    Demanded,
    /// A person has said so.
    Waived,
}

/// Why an address can't be used. What may be secret is not repeated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// It is no URL, or of another kind.
    #[error("`--url` is no address of a server; write it as https://HOST/PATH")]
    NoUrl,
    /// It holds a password.
    #[error("`--url` must not hold a name or a password; send them with `--header-env`")]
    Credentials,
    /// Everybody could listen.
    #[error(
        "`{0}` is neither encrypted nor on this machine; use https://, or add `--insecure-http` \
         if everybody on the way may read and change what is said"
    )]
    Insecure(String),
    /// A header has no name.
    #[error("a header has no name, or one that none can have; write it as `Name: value`")]
    HeaderName,
    /// A header has a value that none can have.
    #[error("the value of the header `{0}` has characters that no header can have")]
    HeaderValue(String),
    /// The proxy sends this header itself.
    #[error("the header `{0}` is sent by the proxy itself")]
    OwnHeader(String),
}

impl Address {
    /// Checks an address.
    pub fn parse(url: &str, encryption: Encryption) -> Result<Self, AddressError> {
        let checked = ServerUrl::parse(url).map_err(|error| match error {
            ServerUrlError::Invalid => AddressError::NoUrl,
            ServerUrlError::Credentials => AddressError::Credentials,
        })?;
        let address = Self { headers: Vec::new(), shows: Shows::Path, uri: checked.uri };
        if checked.channel == Channel::Plain && encryption == Encryption::Demanded {
            return Err(AddressError::Insecure(address.in_secret().to_string()));
        }
        Ok(address)
    }

    /// For an address that was given in secret, as by a variable: its path may be a key, too.
    #[must_use]
    pub fn in_secret(self) -> Self {
        Self { shows: Shows::Host, ..self }
    }

    /// Adds a header that is sent with every request.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, AddressError> {
        let shown = || name.trim().to_owned();
        let key = HeaderName::from_bytes(name.trim().as_bytes());
        let key = key.map_err(|_| AddressError::HeaderName)?;
        if OWN.contains(&key.as_str()) {
            return Err(AddressError::OwnHeader(shown()));
        }
        let bad = |_| AddressError::HeaderValue(shown());
        let mut value = HeaderValue::from_str(value.trim()).map_err(bad)?;
        value.set_sensitive(true);
        self.headers.push((key, value));
        Ok(self)
    }

    /// The agent that reaches this server. A request has its own timeout where it needs one.
    pub(super) fn agent(&self) -> Agent {
        build_agent(self.uri.host().unwrap_or_default(), AgentTimeouts::default())
    }

    /// What a server is known by, however much of it is shown.
    pub(in crate::wrap) fn words(&self) -> Vec<String> {
        let mut words = vec![format!("{}{}", self.host(), self.uri.path())];
        // It may hold a key, and tells two servers apart all the same.
        words.extend(self.uri.query().map(|query| Digest::of(query.as_bytes()).to_string()));
        words
    }

    /// Where it is, without the path.
    fn host(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or_default())
    }

    /// A text without the values of headers, which a server may repeat, and without what of the
    /// address is not shown.
    pub(super) fn conceal(&self, text: &str) -> String {
        let values = self.headers.iter().filter_map(|(_, value)| value.to_str().ok());
        let mut secrets: Vec<&str> =
            values.flat_map(|value| [value].into_iter().chain(value.split(' '))).collect();
        if self.shows == Shows::Host {
            let query = self.uri.query().unwrap_or_default();
            secrets.extend([self.uri.path(), query]);
            secrets.extend(self.uri.path().split('/').chain(query.split(['&', '='])));
        }
        secrets.retain(|secret| secret.len() >= SECRET_CHARS_MIN);
        // What is a part of another goes last, or the rest of that other would be left.
        secrets.sort_by_key(|secret| core::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

/// The address without what may be secret.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match (self.shows, self.uri.path()) {
            (Shows::Host, path) if path.len() > 1 => "/…",
            (_, path) => path,
        };
        write!(f, "{}{path}", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> Option<AddressError> {
        Address::parse(url, Encryption::Demanded).err()
    }

    #[test]
    fn what_is_not_encrypted_stays_on_this_machine() {
        let here = ["http://localhost:1/mcp", "http://127.0.0.9/", "http://[::1]:80/x"];
        for url in here.iter().chain(&["https://example.org/mcp?key=1"]) {
            assert_eq!(refused(url), None, "{url}");
        }
        let away = "http://example.org/mcp?key=1";
        let text = refused(away).unwrap().to_string();
        assert!(text.contains("--insecure-http") && !text.contains("key"), "{text}");
        assert!(refused("http://127.0.0.1.example.org/").is_some());
        assert!(Address::parse(away, Encryption::Waived).is_ok());
        assert_eq!(refused("https://me:secret@example.org/"), Some(AddressError::Credentials));
        for url in ["", "example.org", "/mcp", "ftp://example.org/", "stdio"] {
            assert_eq!(refused(url), Some(AddressError::NoUrl), "{url}");
        }
    }

    #[test]
    fn a_secret_is_in_no_text() {
        let address = Address::parse("https://example.org/mcp?key=hidden", Encryption::Demanded);
        let address = address.unwrap().with_header("Authorization", "Bearer s3cret").unwrap();
        assert_eq!(address.to_string(), "https://example.org/mcp");
        assert!(!address.words().concat().contains("hidden"));
        assert_eq!(address.words().len(), 2);
        assert_eq!(address.conceal("no s3cret for 'Bearer s3cret'"), "no … for '…'");
        let parse = |url| Address::parse(url, Encryption::Demanded).unwrap();
        let (open, hidden) = ("https://example.org", "https://example.org/t0ken/mcp?key=hidden");
        let address = parse(hidden).in_secret();
        assert_eq!(address.to_string(), "https://example.org/…");
        assert_eq!(parse(open).in_secret().to_string(), "https://example.org/");
        assert_eq!(address.words(), parse(hidden).words(), "it is the same server");
        let said = "no /t0ken/mcp, t0ken or /t0ken/x?key=hidden at example.org";
        assert_eq!(address.conceal(said), "no …, … or /…/x?… at example.org");
        let again = |name, value| {
            let address = Address::parse("https://example.org", Encryption::Demanded);
            address.unwrap().with_header(name, value).err().map(|error| error.to_string())
        };
        assert!(again("mcp-session-id", "x").is_some() && again("a b", "x").is_some());
        assert!(again("X-Key", "in\nject").is_some_and(|text| !text.contains("inject")));
    }
}
