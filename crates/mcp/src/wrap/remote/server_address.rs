//! The address of a remote server, and the headers of every request.

use std::fmt;

use jackline_engine::Digest;
use jackline_http::{AgentTimeouts, Channel, ServerUrl, ServerUrlError, build_agent};
use ureq::Agent;
use ureq::http::header::{HeaderName, HeaderValue};
use ureq::http::uri::Uri;

/// Headers that the protocol or the connection sets.
const RESERVED_HEADERS: [&str; 12] = [
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

/// Shorter parts of a value reveal nothing and are not concealed.
const SECRET_CHARS_MIN: usize = 4;

/// The address of a server, with additional headers.
#[derive(Clone)]
pub struct ServerAddress {
    pub(super) uri: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    display: AddressDisplay,
}

/// How much of an address may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressDisplay {
    /// Everything except the query.
    Path,
    /// Only the host, because the path may contain a key.
    Host,
}

/// Whether an unencrypted connection is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Only to this machine.
    Required,
    /// To any machine; the user has allowed it.
    Optional,
}

/// Why an address can't be used. The messages do not repeat secrets.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// The text is not an http or https URL.
    #[error("`--url` is not a server address; write it as https://HOST/PATH")]
    InvalidUrl,
    /// The URL contains a user name or a password.
    #[error("`--url` must not contain a user name or password; send them with `--header-env`")]
    Credentials,
    /// Other machines could read the connection.
    #[error(
        "`{0}` is not encrypted and not on this machine; use https://, or add `--insecure-http` \
         if others on the network may read and change the messages"
    )]
    Insecure(String),
    /// A header has no valid name.
    #[error("a header has no valid name; write it as `Name: value`")]
    HeaderName,
    /// A header has an invalid value.
    #[error("the value of the header `{0}` contains characters that are not allowed")]
    HeaderValue(String),
    /// The proxy sets this header itself.
    #[error("the header `{0}` is set by the proxy itself")]
    ReservedHeader(String),
}

impl ServerAddress {
    /// Parses and checks an address.
    pub fn parse(url: &str, encryption: Encryption) -> Result<Self, AddressError> {
        let checked = ServerUrl::parse(url).map_err(|error| match error {
            ServerUrlError::Invalid => AddressError::InvalidUrl,
            ServerUrlError::Credentials => AddressError::Credentials,
        })?;
        let address = Self { headers: Vec::new(), display: AddressDisplay::Path, uri: checked.uri };
        if checked.channel == Channel::Plain && encryption == Encryption::Required {
            return Err(AddressError::Insecure(address.with_secret_path().to_string()));
        }
        Ok(address)
    }

    /// Marks the address as secret, for example because it comes from a variable: its path may
    /// contain a key.
    #[must_use]
    pub fn with_secret_path(self) -> Self {
        Self { display: AddressDisplay::Host, ..self }
    }

    /// Adds a header to every request.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, AddressError> {
        let shown = || name.trim().to_owned();
        let key = HeaderName::from_bytes(name.trim().as_bytes());
        let key = key.map_err(|_| AddressError::HeaderName)?;
        if RESERVED_HEADERS.contains(&key.as_str()) {
            return Err(AddressError::ReservedHeader(shown()));
        }
        let bad = |_| AddressError::HeaderValue(shown());
        let mut value = HeaderValue::from_str(value.trim()).map_err(bad)?;
        value.set_sensitive(true);
        self.headers.push((key, value));
        Ok(self)
    }

    /// The HTTP agent for this server. Requests set their own timeouts.
    pub(super) fn agent(&self) -> Agent {
        build_agent(self.uri.host().unwrap_or_default(), AgentTimeouts::default())
    }

    /// The words that identify a server, however much of the address is shown.
    pub(in crate::wrap) fn identity(&self) -> Vec<String> {
        let mut words = vec![format!("{}{}", self.host(), self.uri.path())];
        // The query may contain a key, so only its digest is used.
        words.extend(self.uri.query().map(|query| Digest::of(query.as_bytes()).to_string()));
        words
    }

    /// The scheme and the host, without the path.
    fn host(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or_default())
    }

    /// Replaces the values of headers, which a server may repeat, and the hidden parts of the
    /// address.
    pub(super) fn conceal(&self, text: &str) -> String {
        let values = self.headers.iter().filter_map(|(_, value)| value.to_str().ok());
        let mut secrets: Vec<&str> =
            values.flat_map(|value| [value].into_iter().chain(value.split(' '))).collect();
        if self.display == AddressDisplay::Host {
            let query = self.uri.query().unwrap_or_default();
            secrets.extend([self.uri.path(), query]);
            secrets.extend(self.uri.path().split('/').chain(query.split(['&', '='])));
        }
        secrets.retain(|secret| secret.len() >= SECRET_CHARS_MIN);
        // Replace longer secrets first, because a shorter one may be a part of a longer one.
        secrets.sort_by_key(|secret| core::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

/// The address without its secret parts.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match (self.display, self.uri.path()) {
            (AddressDisplay::Host, path) if path.len() > 1 => "/…",
            (_, path) => path,
        };
        write!(f, "{}{path}", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> Option<AddressError> {
        ServerAddress::parse(url, Encryption::Required).err()
    }

    #[test]
    fn an_unencrypted_address_must_be_on_this_machine() {
        let here = ["http://localhost:1/mcp", "http://127.0.0.9/", "http://[::1]:80/x"];
        for url in here.iter().chain(&["https://example.org/mcp?key=1"]) {
            assert_eq!(refused(url), None, "{url}");
        }
        let away = "http://example.org/mcp?key=1";
        let text = refused(away).unwrap().to_string();
        assert!(text.contains("--insecure-http") && !text.contains("key"), "{text}");
        assert!(refused("http://127.0.0.1.example.org/").is_some());
        assert!(ServerAddress::parse(away, Encryption::Optional).is_ok());
        assert_eq!(refused("https://me:secret@example.org/"), Some(AddressError::Credentials));
        for url in ["", "example.org", "/mcp", "ftp://example.org/", "stdio"] {
            assert_eq!(refused(url), Some(AddressError::InvalidUrl), "{url}");
        }
    }

    #[test]
    fn texts_contain_no_secret() {
        let address =
            ServerAddress::parse("https://example.org/mcp?key=hidden", Encryption::Required);
        let address = address.unwrap().with_header("Authorization", "Bearer s3cret").unwrap();
        assert_eq!(address.to_string(), "https://example.org/mcp");
        assert!(!address.identity().concat().contains("hidden"));
        assert_eq!(address.identity().len(), 2);
        assert_eq!(address.conceal("no s3cret for 'Bearer s3cret'"), "no … for '…'");
        let parse = |url| ServerAddress::parse(url, Encryption::Required).unwrap();
        let (open, hidden) = ("https://example.org", "https://example.org/t0ken/mcp?key=hidden");
        let address = parse(hidden).with_secret_path();
        assert_eq!(address.to_string(), "https://example.org/…");
        assert_eq!(parse(open).with_secret_path().to_string(), "https://example.org/");
        assert_eq!(address.identity(), parse(hidden).identity(), "both are the same server");
        let text = "no /t0ken/mcp, t0ken or /t0ken/x?key=hidden at example.org";
        assert_eq!(address.conceal(text), "no …, … or /…/x?… at example.org");
        let again = |name, value| {
            let address = ServerAddress::parse("https://example.org", Encryption::Required);
            address.unwrap().with_header(name, value).err().map(|error| error.to_string())
        };
        assert!(again("mcp-session-id", "x").is_some() && again("a b", "x").is_some());
        assert!(again("X-Key", "in\nject").is_some_and(|text| !text.contains("inject")));
    }
}
