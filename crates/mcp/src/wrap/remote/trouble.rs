//! What went wrong on the way to a server, in words.

use std::io;

use ureq::{Error, Timeout};

use super::Remote;
use crate::wrap::errors::Failure;

impl Remote {
    /// Why there is no answer at all. Once anything was sent, nobody knows what came of it.
    pub(super) fn trouble(&self, error: &Error, sent: bool) -> Failure {
        let why = match error {
            Error::HostNotFound => "nobody knows its name".to_owned(),
            Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                "there was no connection in time".to_owned()
            }
            Error::Timeout(_) => "there was no answer in time".to_owned(),
            Error::Io(error) if is_tls(error) => format!("no safe connection: {error}"),
            Error::Tls(_) | Error::Rustls(_) => format!("no safe connection: {error}"),
            Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        if sent { self.cut(&why) } else { self.unreached(&why) }
    }

    /// Why nobody was asked at all.
    pub(super) fn unreached(&self, why: &str) -> Failure {
        Failure::Unreached { address: self.address.to_string(), why: self.address.conceal(why) }
    }

    /// Why an answer has no end.
    pub(super) fn cut(&self, why: &str) -> Failure {
        Failure::Cut { address: self.address.to_string(), why: self.address.conceal(why) }
    }
}

/// Whether the two could not agree on how to speak in secret.
fn is_tls(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}
