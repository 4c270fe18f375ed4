//! Why a scenario is not played on a surface.

use std::fmt;

use jackline_runtime::surfaces::{SurfaceCapability, SurfaceProfile};

/// Why a scenario is not played on a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unplayable {
    /// The surface lacks a capability, or has it with limits.
    Needs(SurfaceCapability),
    /// The client of the surface sends no event of the scenario, so it shows nothing here.
    NoEvents,
}

impl Unplayable {
    /// The reason in the table of surfaces. It is an error if the table says that the surface can
    /// play the scenario. `None` if the scenario has nothing to play.
    pub fn reason(self, surface: &SurfaceProfile) -> Option<Result<&'static str, String>> {
        let Self::Needs(capability) = self else { return None };
        let wrong = || {
            let (name, word) = (surface.name, capability.as_str());
            format!("the driver of `{name}` needs `{word}`, which its table does not limit")
        };
        Some(surface.limit(capability).ok_or_else(wrong))
    }
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(capability) => write!(f, "it needs `{}`", capability.as_str()),
            Self::NoEvents => f.write_str("the client sends none of its events"),
        }
    }
}

impl From<Unplayable> for String {
    fn from(why: Unplayable) -> Self {
        why.to_string()
    }
}

impl From<SurfaceCapability> for Unplayable {
    fn from(capability: SurfaceCapability) -> Self {
        Self::Needs(capability)
    }
}
