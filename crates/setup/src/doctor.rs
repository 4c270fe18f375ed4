//! Whether the guard holds, tried out on the real client.
//!
//! Each line of defence is a run of the client in a scratch workspace, with the
//! command line of an installation. A line counts as closed only where the call
//! was seen to be proposed and refused: a client that never got that far proves
//! nothing.

mod faults;
mod installation;
mod latency;
mod trials;

use crate::live::LiveError;
use jackline_clients::installed::Installed;

pub use faults::Fault;
pub use installation::inspect;
pub use latency::Latency;
pub use trials::{REASON, definition};

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// Every line of defence, in the order in which they were tried.
    pub lines: Vec<Line>,
    /// What a hook costs; none where it could not be measured.
    pub latency: Option<Latency>,
}

/// One line of defence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What must hold.
    pub name: &'static str,
    /// For whom.
    pub actor: Actor,
    /// Whether it does.
    pub standing: Standing,
    /// What was seen.
    pub detail: String,
}

/// Who made the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The agent itself.
    Main,
    /// A sub-agent in the background.
    Subagent,
}

/// Whether a line of defence holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It does.
    Closed,
    /// It could not be tried.
    Unproven,
    /// It does not.
    Open,
}

/// What was seen of one denied call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryReport {
    /// Whether the call was refused and the model saw why.
    pub standing: Standing,
    /// What was seen.
    pub detail: String,
    /// How long it took.
    pub ms: u64,
}

/// The doctor: a client, and the guard it is examined with.
#[derive(Debug)]
pub struct Doctor<'a> {
    /// The client.
    pub client: &'a Installed,
    /// The guard's program, as a word of a shell line.
    pub jackline: &'a str,
}

impl Report {
    /// The worst of all lines.
    pub fn standing(&self) -> Standing {
        self.lines.iter().map(|line| line.standing).max().unwrap_or(Standing::Unproven)
    }
}

impl Actor {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main agent",
            Self::Subagent => "sub-agent",
        }
    }
}

impl Standing {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Unproven => "unproven",
            Self::Open => "open",
        }
    }
}

impl Doctor<'_> {
    /// Tries every line of defence. `next` is told what is tried, before it is.
    pub fn examine(&self, mut next: impl FnMut(&str)) -> Result<Report, LiveError> {
        let mut lines = Vec::new();
        next("a denied call");
        lines.extend(trials::denied(self)?);
        for fault in Fault::ALL {
            next(fault.name());
            lines.extend(trials::broken(self, fault)?);
        }
        next("silence");
        lines.push(trials::silent(self)?);
        next("how long a hook takes");
        let latency = latency::measure(self.client.client, &self.hooks())?;
        Ok(Report { lines, latency })
    }
}

/// Sees to it that one denied call does not run and the model is told why.
pub fn canary(client: &Installed, jackline: &str) -> Result<CanaryReport, LiveError> {
    trials::canary(&Doctor { client, jackline })
}
