//! Layers: what a machine, a person and a repository demand, as one definition.
//!
//! Managed → user → repository. A lower layer may only tighten, and what it
//! wanted to loosen is listed with the reason. Trust lifts a repository beside
//! the person who trusts it: then it may loosen what *they* demand, never what
//! the machine's owner does, and it may have commands run.

mod attempts;
#[cfg(test)]
mod every_key;
mod finish;
#[cfg(test)]
mod held_as_hard;
mod identity;
mod io;
mod join;
mod loops;
mod models;
mod modes;
#[cfg(test)]
mod never_looser;
mod parts;
mod progress;
mod schemas;
#[cfg(test)]
mod tests;
mod tools;

use jackline_engine::{Definition, Mode};

use finish::finish;
use join::{How, Joining};
use parts::Parts;

/// Whose word a definition is, from the one that has the most to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The owner of the machine's.
    Managed,
    /// The person's.
    User,
    /// The repository's in which the agent works.
    Repository,
}

impl Layer {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Repository => "repository",
        }
    }
}

/// The definition of one layer.
#[derive(Debug, Clone)]
pub struct Layered {
    /// Whose word it is.
    pub layer: Layer,
    /// The file it was read from.
    pub file: String,
    /// What it demands.
    pub definition: Definition,
    /// The modes it gives to rules and packs by name.
    pub modes: Vec<(String, Mode)>,
}

/// Several layers as one.
#[derive(Debug, Clone)]
pub struct Combined {
    /// What the engine runs on.
    pub definition: Definition,
    /// Who demands what, and what of it is ignored.
    pub decisions: Vec<EffectiveLine>,
    /// Why the layers can't be obeyed together; the definition is no good then.
    pub problems: Vec<String>,
}

/// One demand and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveLine {
    /// What it is about.
    pub subject: Subject,
    /// The demand in words.
    pub text: String,
    /// Whose word it is.
    pub layer: Layer,
    /// The file it is in.
    pub file: String,
    /// What it came with, such as `pack git`, where that is not the file.
    pub origin: Option<String>,
    /// Whether it is in force.
    pub standing: Standing,
}

/// What a demand is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A key with one value.
    Setting,
    /// An allowance.
    Limit,
    /// A path that can't be written.
    Protected,
    /// How a tool is understood.
    Tool,
    /// A policy over tools.
    Policy,
    /// A rule over calls.
    Rule,
    /// What must be true before the agent may stop.
    Completion,
    /// Guidance.
    Feedback,
    /// How a person is told.
    Notify,
}

impl Subject {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::Limit => "limit",
            Self::Protected => "protected",
            Self::Tool => "tool",
            Self::Policy => "policy",
            Self::Rule => "rule",
            Self::Completion => "completion",
            Self::Feedback => "feedback",
            Self::Notify => "notify",
        }
    }
}

/// What became of a demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is in force.
    InForce,
    /// It is not.
    Ignored {
        /// Why not.
        why: String,
        /// Whether trusting the repository's file would change that.
        until_trusted: bool,
    },
}

/// Makes one definition of several, at most one a layer.
pub fn combine(mut layers: Vec<Layered>, trusted: bool) -> Combined {
    layers.sort_by_key(|layered| layered.layer);
    let mut joining = Joining::new(&layers);
    let parts: Vec<Parts> = layers
        .into_iter()
        .enumerate()
        .map(|(number, layered)| {
            let runs = layered.layer != Layer::Repository || trusted;
            let mut parts = Parts::of(layered, number, trusted);
            if !runs {
                joining.withhold(&mut parts);
            }
            parts
        })
        .collect();
    // From the repository up: trust lets it speak beside the person, and
    // whatever comes of that is below the machine's owner.
    let whole = parts.into_iter().rev().reduce(|below, above| {
        let beside = trusted && joining.layer(above.mode.by) == Layer::User;
        let how = if beside { How::Override } else { How::Tighten };
        joining.join(above, below, how)
    });
    match whole {
        Some(whole) => finish(whole, joining),
        None => Combined {
            definition: Definition::default(),
            decisions: Vec::new(),
            problems: Vec::new(),
        },
    }
}
