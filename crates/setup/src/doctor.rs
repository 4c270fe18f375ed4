//! Tests on the real client whether the guard enforces.
//!
//! Each check runs the client in a scratch workspace, with the command line of an installation. A
//! check is `closed` only if the client proposed the call and the guard refused it. A client that
//! never proposed the call proves nothing.

mod broken_guard;
mod installation;
mod latency;
mod live_checks;

use crate::live::LiveError;
use jackline_clients::installed_client::InstalledClient;

pub use broken_guard::BrokenGuard;
pub use installation::check_installation;
pub use latency::HookLatency;
pub use live_checks::{DENIAL_REASON, definition};

/// The results of the doctor.
#[derive(Debug)]
pub struct DoctorReport {
    /// All checks, in the order in which they ran.
    pub checks: Vec<DoctorCheck>,
    /// The run time of a hook; nothing if it could not be measured.
    pub latency: Option<HookLatency>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorCheck {
    /// What the check proves.
    pub name: &'static str,
    /// The agent that made the call.
    pub actor: CheckedAgent,
    /// Whether the guard enforces it.
    pub status: CheckStatus,
    /// What the check observed.
    pub detail: String,
}

/// The agent that makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedAgent {
    /// The agent itself.
    Main,
    /// A sub-agent in the background.
    Subagent,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckStatus {
    /// The guard enforces it.
    Closed,
    /// The check could not run.
    Unproven,
    /// The guard does not enforce it.
    Open,
}

/// The result of one denied test call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryReport {
    /// Whether the call was refused and the model got the reason.
    pub status: CheckStatus,
    /// What the check observed.
    pub detail: String,
    /// The duration in milliseconds.
    pub ms: u64,
}

/// Checks the guard in a client.
#[derive(Debug)]
pub struct Doctor<'a> {
    /// The client.
    pub client: &'a InstalledClient,
    /// The program of the guard, as one quoted word of a shell command.
    pub jackline: &'a str,
}

impl DoctorReport {
    /// The worst result of all checks.
    pub fn worst_status(&self) -> CheckStatus {
        self.checks.iter().map(|line| line.status).max().unwrap_or(CheckStatus::Unproven)
    }
}

impl CheckedAgent {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main agent",
            Self::Subagent => "sub-agent",
        }
    }
}

impl CheckStatus {
    /// The name for people and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Unproven => "unproven",
            Self::Open => "open",
        }
    }
}

impl Doctor<'_> {
    /// Runs every check. It calls `next` with the name of a check before the check starts.
    pub fn examine(&self, mut next: impl FnMut(&str)) -> Result<DoctorReport, LiveError> {
        let mut lines = Vec::new();
        next("a denied call");
        lines.extend(live_checks::check_denied_call(self)?);
        for fault in BrokenGuard::ALL {
            next(fault.name());
            lines.extend(live_checks::check_broken_guard(self, fault)?);
        }
        next("an empty answer");
        lines.push(live_checks::check_client_asks(self)?);
        next("how long a hook takes");
        let latency = latency::measure(self.client.client, &self.hooks())?;
        Ok(DoctorReport { checks: lines, latency })
    }
}

/// Checks that one denied call does not run, and that the model gets the reason.
pub fn canary(client: &InstalledClient, jackline: &str) -> Result<CanaryReport, LiveError> {
    live_checks::run_canary(&Doctor { client, jackline })
}
