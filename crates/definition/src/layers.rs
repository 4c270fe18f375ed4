//! Layers: the definitions of a machine, a person and a repository, as one definition.
//!
//! Managed → user → repository. A lower layer may only tighten. A demand that would loosen is
//! ignored and listed with the reason. Trust lifts a repository beside the person who trusts it.
//! It may then loosen what that person demands, but never what the owner of the machine demands,
//! and its commands may run.
//!
//! How the demands of one section are joined is in the module of that section (`sections/`).

mod demand;
#[cfg(test)]
pub(crate) mod every_key;
#[cfg(test)]
mod held_as_hard;
mod join;
mod lines;
#[cfg(test)]
mod never_looser;
#[cfg(test)]
pub(crate) mod tests;

use jackline_engine::{Definition, Mode};

pub(crate) use demand::{Demand, LayerSource, union, values};
pub(crate) use join::{JoinRule, LayerJoin, join_smaller};
pub(crate) use lines::EffectiveLines;

use crate::sections::{LayerDemands, problems};

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
    let mut join = LayerJoin::new(&layers);
    let mut demands = Vec::with_capacity(layers.len());
    for (layer, layered) in layers.iter().enumerate() {
        let trusted = layered.layer != Layer::Repository || trusted;
        let Layered { definition, modes, .. } = layered;
        let mut own = LayerDemands::take(&LayerSource { definition, modes, layer, trusted });
        if !trusted {
            own.withhold(&mut join);
        }
        demands.push(own);
    }
    // From the repository up: a trusted repository speaks beside the person, and the result of
    // both is below the owner of the machine.
    let all = demands.into_iter().rev().reduce(|mut below, above| {
        let beside = trusted && join.layer(above.mode.demand.layer) == Layer::User;
        join.rule = if beside { JoinRule::Override } else { JoinRule::Tighten };
        LayerDemands::join(&above, &mut below, &mut join)
    });
    let Some(all) = all else {
        return Combined {
            definition: Definition::default(),
            decisions: Vec::new(),
            problems: Vec::new(),
        };
    };
    let mut lines = EffectiveLines::new(&join);
    all.describe(&mut lines);
    let mut decisions = lines.sorted();
    decisions.extend(join.named);
    decisions.extend(join.ignored);
    let definition = all.into_definition();
    let problems = problems(&definition);
    Combined { definition, decisions, problems }
}
