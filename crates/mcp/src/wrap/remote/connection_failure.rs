//! Describes connection errors.

use jackline_http::describe_tls_failure;
use ureq::{Error, Timeout};

use super::RemoteServer;
use crate::wrap::proxy_failure::ProxyFailure;

impl RemoteServer {
    /// The failure of a request without an answer. If any byte was sent, it is unknown whether the
    /// call ran.
    pub(super) fn connection_failure(&self, error: &Error, sent: bool) -> ProxyFailure {
        let host = self.address.uri.host().unwrap_or_default();
        let why = match error {
            Error::HostNotFound => "its host name can't be resolved".to_owned(),
            Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                "connecting timed out".to_owned()
            }
            Error::Timeout(_) => "waiting for the answer timed out".to_owned(),
            error => error.to_string(),
        };
        let why = describe_tls_failure(error, host).unwrap_or(why);
        if sent { self.connection_lost(&why) } else { self.not_reached(&why) }
    }

    /// The failure of a request that was not sent.
    pub(super) fn not_reached(&self, why: &str) -> ProxyFailure {
        ProxyFailure::Unreached {
            address: self.address.to_string(),
            why: self.address.conceal(why),
        }
    }

    /// The failure of an answer that ended too early.
    pub(super) fn connection_lost(&self, why: &str) -> ProxyFailure {
        ProxyFailure::ConnectionLost {
            address: self.address.to_string(),
            why: self.address.conceal(why),
        }
    }
}
