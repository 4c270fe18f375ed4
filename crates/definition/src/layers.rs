//! Combines the definitions of a machine, a person and a repository into one definition.
//!
//! The layers, from high to low, are managed → user → repository. A lower layer may only tighten.
//! A demand that would loosen is ignored and listed with the reason. A repository that the person
//! trusts has the same rank as that person: it may loosen the demands of the person, but never
//! those of the owner of the machine, and its commands may run.
//!
//! The module of each section joins the demands of that section (`sections/`).

mod demand;
#[cfg(test)]
pub(crate) mod every_key;
mod join;
mod lines;
#[cfg(test)]
mod never_looser;
#[cfg(test)]
mod session_strictness;
#[cfg(test)]
pub(crate) mod tests;

use jackline_engine::{Definition, Mode};

pub(crate) use demand::{Demand, LayerSource, union, values};
pub(crate) use join::{JoinRule, LayerJoin, join_smaller_numbers};
pub(crate) use lines::DemandLines;

use crate::sections::{LayerDemands, problems};

/// The layer that a definition belongs to, from the highest to the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The definition of the owner of the machine.
    Managed,
    /// The definition of the person.
    User,
    /// The definition of the repository in which the agent works.
    Repository,
}

impl Layer {
    /// The name of the layer in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Repository => "repository",
        }
    }
}

/// The definition of one layer.
#[derive(Debug, Clone)]
pub struct LayerDefinition {
    /// The layer.
    pub layer: Layer,
    /// The file that the definition was read from.
    pub file: String,
    /// The demands of the layer.
    pub definition: Definition,
    /// The modes that the file gives to rules and packs by name.
    pub modes: Vec<(String, Mode)>,
}

/// Several layers, combined into one definition.
#[derive(Debug, Clone)]
pub struct CombinedDefinition {
    /// The definition that the engine runs on.
    pub definition: Definition,
    /// Every demand with its layer, and whether it is in force or ignored.
    pub decisions: Vec<DemandLine>,
    /// Conflicts between the layers. If there is one, the definition must not be used.
    pub problems: Vec<String>,
}

/// One demand of a layer, and whether it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemandLine {
    /// The subject of the demand.
    pub subject: DemandSubject,
    /// The demand in words.
    pub text: String,
    /// The layer that makes the demand.
    pub layer: Layer,
    /// The file that contains it.
    pub file: String,
    /// The source of the demand, such as `pack git`, if that is not the file itself.
    pub origin: Option<String>,
    /// Whether the demand is in force.
    pub status: DemandStatus,
}

/// The subject of a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DemandSubject {
    /// A key with one value.
    Setting,
    /// A limit.
    Limit,
    /// A path that the agent can't write.
    Protected,
    /// A declaration of a tool.
    Tool,
    /// A policy over tools.
    Policy,
    /// A rule over calls.
    Rule,
    /// What must be true before the agent may stop.
    Completion,
    /// Guidance for the agent.
    Feedback,
    /// A way to notify a person.
    Notify,
}

impl DemandSubject {
    /// The name of the subject in reports.
    pub fn as_str(self) -> &'static str {
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

/// Whether a demand is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemandStatus {
    /// The demand is in force.
    InForce,
    /// The demand is ignored.
    Ignored {
        /// The reason.
        why: String,
        /// Whether the demand takes effect once a person trusts the file of the repository.
        until_trusted: bool,
    },
}

/// Combines several definitions, at most one per layer.
pub fn combine(mut layers: Vec<LayerDefinition>, trusted: bool) -> CombinedDefinition {
    layers.sort_by_key(|layered| layered.layer);
    let mut join = LayerJoin::new(&layers);
    let mut demands = Vec::with_capacity(layers.len());
    for (layer, layered) in layers.iter().enumerate() {
        let trusted = layered.layer != Layer::Repository || trusted;
        let LayerDefinition { definition, modes, .. } = layered;
        let mut own = LayerDemands::take(&LayerSource { definition, modes, layer, trusted });
        if !trusted {
            own.withhold(&mut join);
        }
        demands.push(own);
    }
    // Join from the repository upwards. A trusted repository has the rank of the person, and the
    // result of both is below the owner of the machine.
    let all = demands.into_iter().rev().reduce(|mut below, above| {
        let beside = trusted && join.layer(above.mode.demand.layer) == Layer::User;
        join.rule = if beside { JoinRule::Override } else { JoinRule::Tighten };
        LayerDemands::join(&above, &mut below, &mut join)
    });
    let Some(all) = all else {
        return CombinedDefinition {
            definition: Definition::default(),
            decisions: Vec::new(),
            problems: Vec::new(),
        };
    };
    let mut lines = DemandLines::new(&join);
    all.describe(&mut lines);
    let mut decisions = lines.sorted();
    decisions.extend(join.named_modes);
    decisions.extend(join.ignored);
    let definition = all.into_definition();
    let problems = problems(&definition);
    CombinedDefinition { definition, decisions, problems }
}
