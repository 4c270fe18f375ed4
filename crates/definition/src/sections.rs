//! The sections of `jackline.yaml`, one module each.
//!
//! A section module contains everything about its keys: the rows with type, default and
//! documentation, the lowering of a value to a struct of the engine, the join of the demands of
//! two layers, the text that describes them for people, and the tests. The list of all sections
//! is at the end of this file. `docs/contributing/adding-a-key.md` shows how to add a key.

pub(crate) mod advisor;
pub(crate) mod attempts;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod dirty_bits;
pub(crate) mod feedback;
pub(crate) mod general;
pub(crate) mod health;
pub(crate) mod identity;
pub(crate) mod io;
pub(crate) mod journal;
pub(crate) mod limits;
pub(crate) mod loops;
pub(crate) mod mode;
pub(crate) mod models;
pub(crate) mod modes;
pub(crate) mod notify;
pub(crate) mod policies;
pub(crate) mod prelude;
pub(crate) mod prices;
pub(crate) mod progress;
pub(crate) mod protected;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod schemas;
pub(crate) mod shell;
pub(crate) mod tools;

use jackline_engine::Definition;

use crate::keys::{KeySpec, MappingSpec, concat};
#[cfg(test)]
use crate::layers::every_key::Looser;
use crate::layers::{DemandLines, LayerJoin, LayerSource};
use crate::lower::LoweringState;
use crate::reader::NodeReader;
use crate::yaml::YamlNode;

/// A section of the file: its keys, and how the loader and the layers process them.
pub(crate) trait Section {
    /// The demands of one layer in this section.
    type Part: Clone;

    /// The keys at the top level of the file, in the order of the reference page.
    const KEYS: &'static [KeySpec];

    /// The mappings below these keys, in the order of the reference page.
    const MAPPINGS: &'static [&'static MappingSpec] = &[];

    /// The step in which the demands of two layers are joined.
    const JOIN_STEP: JoinStep = JoinStep::Last;

    /// A looser value for each key that restricts an agent.
    #[cfg(test)]
    const LOOSER: &'static [Looser] = &[];

    /// Lowers the value of one of the top-level keys. A section that depends on other sections
    /// does nothing here and has a step in `lower.rs`.
    fn lower(_: &str, _: &YamlNode, _: &mut LoweringState<'_>, _: &mut NodeReader<'_>) {}

    /// Takes the demands of this section from the definition of one layer.
    fn take(source: &LayerSource<'_>) -> Self::Part;

    /// Removes demands that an untrusted repository must not make.
    fn withhold(_part: &mut Self::Part, _join: &mut LayerJoin) {}

    /// Whether the section has a demand that `mode: observe` would stop enforcing.
    fn follows_mode(_part: &Self::Part) -> bool {
        false
    }

    /// Joins the demands of two layers. The lower layer may only tighten, unless `join` lets it
    /// override. A demand that is ignored is reported with the reason.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part;

    /// Describes the demands in force, one line each.
    fn describe(_part: &Self::Part, _lines: &mut DemandLines<'_>) {}

    /// Writes the joined demands into the definition that the engine runs on.
    fn put(part: Self::Part, definition: &mut Definition);

    /// Finds conflicts between layers that are valid on their own.
    fn problems(_definition: &Definition) -> Vec<String> {
        Vec::new()
    }
}

/// The step in which a section is joined. Ignored demands are reported in this order, and within
/// a step in the order of the list of sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinStep {
    /// Sections that read other sections: tools, which also change the policies and rules of the
    /// lower layer, and the guards of a whole session.
    First,
    /// The general settings of a definition, such as `mode`.
    Second,
    /// All other sections.
    Last,
}

impl JoinStep {
    const ALL: [Self; 3] = [Self::First, Self::Second, Self::Last];
}

/// Builds the tables and the struct of demands from the list of sections.
macro_rules! sections {
    ($($field:ident: $section:ty,)*) => {
        /// The demands of one layer, section by section.
        #[derive(Clone)]
        pub(crate) struct LayerDemands {
            $(pub(crate) $field: <$section as Section>::Part,)*
        }

        impl LayerDemands {
            /// Splits the definition of one layer into demands.
            pub(crate) fn take(source: &LayerSource<'_>) -> Self {
                let mut demands = Self { $($field: <$section>::take(source),)* };
                demands.mode.is_used =
                    false $(|| <$section>::follows_mode(&demands.$field))*;
                demands
            }

            /// Removes demands that an untrusted repository must not make.
            pub(crate) fn withhold(&mut self, join: &mut LayerJoin) {
                $(<$section>::withhold(&mut self.$field, join);)*
            }

            /// Joins the demands of two layers.
            pub(crate) fn join(high: &Self, low: &mut Self, join: &mut LayerJoin) -> Self {
                let mut joined = high.clone();
                for step in JoinStep::ALL {
                    $(if <$section>::JOIN_STEP == step {
                        joined.$field = <$section>::join(high, low, join);
                    })*
                }
                joined
            }

            /// Describes the demands in force.
            pub(crate) fn describe(&self, lines: &mut DemandLines<'_>) {
                $(<$section>::describe(&self.$field, lines);)*
            }

            /// Converts the demands back to a definition.
            pub(crate) fn into_definition(self) -> Definition {
                let mut definition = Definition::default();
                $(<$section>::put(self.$field, &mut definition);)*
                definition
            }
        }

        /// Finds conflicts between layers that are valid on their own.
        pub(crate) fn problems(definition: &Definition) -> Vec<String> {
            [$(<$section>::problems(definition)),*].concat()
        }

        /// Lowers the value of a top-level key.
        pub(crate) fn lower(
            key: &str,
            node: &YamlNode,
            lowering: &mut LoweringState<'_>,
            reader: &mut NodeReader<'_>,
        ) {
            $(if <$section>::KEYS.iter().any(|row| row.name == key) {
                <$section>::lower(key, node, lowering, reader);
            })*
        }

        static TOP_LEVEL: [KeySpec; 0 $(+ <$section>::KEYS.len())*] =
            concat(&[$(<$section>::KEYS),*]);

        /// Every mapping with known keys, in the order of the reference page.
        pub(crate) static MAPPINGS: [&MappingSpec; 1 $(+ <$section>::MAPPINGS.len())*] =
            concat(&[&[&ROOT], $(<$section>::MAPPINGS),*]);

        /// The looser values of all sections.
        #[cfg(test)]
        pub(crate) const LOOSER: &[&[Looser]] = &[$(<$section>::LOOSER),*];
    };
}

/// The top level of the file.
pub(crate) static ROOT: MappingSpec = MappingSpec {
    id: "definition",
    label: "the definition",
    doc: "",
    entries: &TOP_LEVEL,
    required: &[],
};

// All sections, in the order of the reference page.
sections! {
    name: general::GeneralSection,
    mode: mode::ModeSection,
    modes: modes::ModesSection,
    tools: tools::ToolsSection,
    unknown_tools: tools::UnknownToolsSection,
    policies: policies::PoliciesSection,
    rules: rules::RulesSection,
    shell: shell::ShellSection,
    protected: protected::ProtectedSection,
    completion: completion::CompletionSection,
    limits: limits::LimitsSection,
    loops: loops::LoopsSection,
    progress: progress::ProgressSection,
    dirty_bits: dirty_bits::DirtyBitsSection,
    counts: limits::CountsSection,
    prices: prices::PricesSection,
    context: context::ContextSection,
    schemas: schemas::SchemasSection,
    io: io::IoSection,
    attempts: attempts::AttemptsSection,
    health: health::HealthSection,
    run: run::RunSection,
    models: models::ModelsSection,
    advisor: advisor::AdvisorSection,
    identity: identity::IdentitySection,
    feedback: feedback::FeedbackSection,
    notify: notify::NotifySection,
    journal: journal::JournalSection,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mapping_is_listed_once_and_every_key_is_documented() {
        let mut ids: Vec<&str> = MAPPINGS.iter().map(|keys| keys.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), MAPPINGS.len());
        for keys in MAPPINGS {
            let mut names: Vec<&str> = keys.names().collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}", keys.id);
            assert!(keys.entries.iter().all(|key| key.doc.ends_with('.')), "{}", keys.id);
        }
    }
}
