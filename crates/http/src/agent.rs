//! The configuration of an HTTP agent.

use std::time::Duration;

use ureq::Agent;

use crate::certificates::tls_config;
use crate::server_url::is_loopback;

/// The timeout for resolving a host name, and for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeouts of an agent once it is connected. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentTimeouts {
    /// For a single read.
    pub read: Option<Duration>,
    /// For a single write.
    pub write: Option<Duration>,
    /// For a whole request with its response.
    pub global: Option<Duration>,
}

/// Builds an agent for requests to `host`.
///
/// The agent follows no redirect: headers may contain secrets, which another server must not get.
/// It returns a response with any status, so that the caller can read why a server refused. It
/// connects to a host on this machine directly and never through a proxy.
pub fn build_agent(host: &str, timeouts: AgentTimeouts) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("jackline/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls_config())
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_per_read(timeouts.read)
        .timeout_per_write(timeouts.write)
        .timeout_global(timeouts.global);
    let config = if is_loopback(host) { config.proxy(None) } else { config };
    config.build().new_agent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_follows_no_redirect_and_reports_every_status() {
        let second = Some(Duration::from_secs(1));
        let timeouts = AgentTimeouts { global: second, ..AgentTimeouts::default() };
        let agent = build_agent("models.example", timeouts);
        let config = agent.config();
        assert_eq!((config.max_redirects(), config.max_redirects_will_error()), (0, false));
        assert!(!config.http_status_as_error());
        let set = config.timeouts();
        assert_eq!((set.connect, set.resolve), (Some(CONNECT_TIMEOUT), Some(CONNECT_TIMEOUT)));
        assert_eq!(set.global, second);
    }

    #[test]
    fn a_server_on_this_machine_is_reached_without_a_proxy() {
        assert!(build_agent("127.0.0.1", AgentTimeouts::default()).config().proxy().is_none());
    }
}
