//! The address of a server, and who can read what is sent there.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use ureq::http::uri::Uri;

/// The checked address of a server: `http` or `https`, with a host, without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// The address.
    pub uri: Uri,
    /// Who can read the traffic.
    pub channel: Channel,
}

/// Who can read what is sent to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Only the server: `https`.
    Encrypted,
    /// Only this machine: `http` to a loopback host.
    Loopback,
    /// Any host on the way: `http` to another machine.
    Plain,
}

/// Why a text is not the address of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerUrlError {
    /// It is not a URL of `http` or `https` with a host.
    Invalid,
    /// It contains a user name or a password.
    Credentials,
}

impl ServerUrl {
    /// Parses and checks an address.
    pub fn parse(url: &str) -> Result<Self, ServerUrlError> {
        let uri: Uri = url.parse().map_err(|_| ServerUrlError::Invalid)?;
        let authority = uri.authority().ok_or(ServerUrlError::Invalid)?;
        if authority.as_str().contains('@') {
            return Err(ServerUrlError::Credentials);
        }
        let channel = match uri.scheme_str() {
            Some("https") => Channel::Encrypted,
            Some("http") if is_loopback(authority.host()) => Channel::Loopback,
            Some("http") => Channel::Plain,
            _ => return Err(ServerUrlError::Invalid),
        };
        Ok(Self { uri, channel })
    }
}

impl fmt::Display for ServerUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "invalid address: write it as https://HOST/PATH",
            Self::Credentials => "the address contains a user name or a password",
        })
    }
}

impl Error for ServerUrlError {}

/// Whether a host of an address is this machine.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_who_can_read_the_traffic() {
        for (url, expected) in [
            ("https://models.example/v1?key=1", Ok(Channel::Encrypted)),
            ("https://localhost/", Ok(Channel::Encrypted)),
            ("http://127.0.0.9:8080/v1", Ok(Channel::Loopback)),
            ("http://[::1]:8080", Ok(Channel::Loopback)),
            ("http://LocalHost", Ok(Channel::Loopback)),
            ("http://models.example/v1", Ok(Channel::Plain)),
            ("http://127.0.0.1.models.example/v1", Ok(Channel::Plain)),
            ("http://localhost.models.example/v1", Ok(Channel::Plain)),
            ("https://me:secret@models.example", Err(ServerUrlError::Credentials)),
            ("ftp://models.example", Err(ServerUrlError::Invalid)),
            ("models.example", Err(ServerUrlError::Invalid)),
            ("/v1", Err(ServerUrlError::Invalid)),
            ("", Err(ServerUrlError::Invalid)),
        ] {
            assert_eq!(ServerUrl::parse(url).map(|url| url.channel), expected, "{url}");
        }
    }
}
