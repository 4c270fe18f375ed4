//! A definition taken apart, so that of each demand it is known whose it is.

use jackline_engine::definition::{
    Advisor, Budgets, Cap, Checker, Context, Definition, FeedbackProvider, HealthLimits, Identity,
    Io, Journal, Limit, LongPrice, Loops, ModelChoice, Models, Notifier, Opaque, Policy, Price,
    Progress, Redact, Rule, Schemas, Shell, Tool, UnknownTools,
};
use jackline_engine::{Dimension, Mode};

use super::{Layer, Layered};
use crate::words;

/// Something, and the number of the layer that demands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said<T> {
    pub(super) what: T,
    pub(super) by: usize,
}

/// A definition taken apart.
pub(super) struct Parts {
    /// None for a file that does not name itself.
    pub(super) name: Said<Option<String>>,
    pub(super) mode: Said<Mode>,
    /// Whether it has anything that holds by `mode`, and not by a mode of its own.
    pub(super) governs: bool,
    pub(super) tools: Vec<Said<Tool>>,
    /// How many sections there are.
    pub(super) sections: u16,
    pub(super) unknown_tools: Said<UnknownTools>,
    pub(super) opaque: Said<Opaque>,
    pub(super) protected: Vec<Said<String>>,
    pub(super) policies: Vec<Said<Policy>>,
    pub(super) rules: Vec<Said<Rule>>,
    /// By the name of a rule or a pack.
    pub(super) modes: Vec<Said<(String, Mode)>>,
    /// All of them must be satisfied.
    pub(super) completion: Vec<Said<Checker>>,
    /// None where there is nothing that it could be the cap of.
    pub(super) cap: Option<Said<Cap>>,
    /// By dimension.
    pub(super) limits: Vec<(Dimension, Option<Said<Limit>>)>,
    /// None where nothing is said about it.
    pub(super) loops: Option<Said<Loops>>,
    pub(super) progress: Option<Said<Progress>>,
    /// What counts as a test, a build and documentation, by its key.
    pub(super) dirty_bits: Vec<Said<(&'static str, String)>>,
    pub(super) iterations_extension: Said<u64>,
    /// By tool.
    pub(super) tool_calls: Vec<(String, Said<Limit>)>,
    pub(super) context: Option<Said<Context>>,
    pub(super) prices: Vec<Said<Price>>,
    /// The built-in tables; what is the same in all layers that have them.
    pub(super) dated: String,
    pub(super) long: Vec<LongPrice>,
    pub(super) windows: Vec<(String, u64)>,
    pub(super) schemas: Said<Schemas>,
    pub(super) io: Said<Io>,
    pub(super) attempts: Said<Budgets>,
    /// None where nothing is said about it.
    pub(super) health: Option<Said<HealthLimits>>,
    /// Who does the work, in their order.
    pub(super) choices: Said<Vec<ModelChoice>>,
    pub(super) advisor: Option<Said<Advisor>>,
    pub(super) identity: Option<Said<Identity>>,
    pub(super) feedback: Vec<Said<FeedbackProvider>>,
    pub(super) feedback_bytes_max: Said<u32>,
    pub(super) notify: Vec<Said<Notifier>>,
    pub(super) redact: Said<Redact>,
    pub(super) retain_days: Said<u32>,
    pub(super) retain_bytes: Said<u64>,
}

impl Parts {
    /// Takes the definition of layer number `by` apart. Every field is named
    /// here, so that a new one can't be forgotten between the layers.
    pub(super) fn of(layered: Layered, by: usize, trusted: bool) -> Self {
        let Layered { layer, file: _, definition, modes } = layered;
        let governs = governs(&definition);
        let Definition {
            name,
            mode,
            tools,
            unknown_tools,
            shell: Shell { opaque },
            protected,
            policies,
            rules,
            completion,
            completion_cap,
            limits,
            loops,
            progress,
            dirty_bits,
            context,
            models: Models { dated, prices, long, windows },
            schemas,
            io,
            attempts,
            health,
            choices,
            advisor,
            identity,
            feedback,
            feedback_bytes_max,
            notify,
            journal: Journal { redact, retain_days, retain_bytes },
        } = definition;
        let runs = layer != Layer::Repository || trusted;
        let completion: Vec<_> =
            completion.into_iter().map(|checker| with_trust(checker, runs)).collect();
        let has_cap = !completion.is_empty() || completion_cap != Cap::default();
        let iterations_extension = limits.iterations_extension;
        let tool_calls = limits.tool_calls.iter().cloned();
        let said_limit = |limit: Option<Limit>| limit.map(|what| Said { what, by });
        Self {
            name: Said { what: (name != Definition::default().name).then_some(name), by },
            mode: Said { what: mode, by },
            governs,
            sections: sections(&tools, &policies),
            tools: all(tools, by),
            unknown_tools: Said { what: unknown_tools, by },
            opaque: Said { what: opaque, by },
            protected: all(protected, by),
            policies: all(policies, by),
            rules: all(rules.iter().cloned(), by),
            modes: all(modes, by),
            completion: all(completion, by),
            cap: has_cap.then_some(Said { what: completion_cap, by }),
            limits: words::limits(&limits).map(|(key, limit)| (key, said_limit(limit))).into(),
            loops: (loops != Loops::default()).then_some(Said { what: loops, by }),
            progress: progress.map(|what| Said { what, by }),
            dirty_bits: all(super::progress::bits(dirty_bits), by),
            iterations_extension: Said { what: iterations_extension, by },
            tool_calls: tool_calls.map(|(tool, what)| (tool, Said { what, by })).collect(),
            context: context.map(|what| Said { what, by }),
            prices: all(prices, by),
            dated,
            long,
            windows,
            schemas: Said { what: schemas, by },
            io: Said { what: io, by },
            attempts: Said { what: attempts, by },
            health: (health != HealthLimits::default()).then_some(Said { what: health, by }),
            choices: Said { what: choices, by },
            advisor: advisor.map(|what| Said { what, by }),
            identity: identity.map(|what| Said { what, by }),
            feedback: all(feedback, by),
            feedback_bytes_max: Said { what: feedback_bytes_max, by },
            notify: all(notify.into_iter().map(|told| Notifier { trusted: runs, ..told }), by),
            redact: Said { what: redact, by },
            retain_days: Said { what: retain_days, by },
            retain_bytes: Said { what: retain_bytes, by },
        }
    }

    /// The limit of a dimension.
    pub(super) fn limit(&self, dimension: Dimension) -> Option<&Said<Limit>> {
        let found = self.limits.iter().find(|(known, _)| *known == dimension);
        found.and_then(|(_, limit)| limit.as_ref())
    }
}

fn all<T>(list: impl IntoIterator<Item = T>, by: usize) -> Vec<Said<T>> {
    list.into_iter().map(|what| Said { what, by }).collect()
}

/// Whether anything in it holds by the definition's mode; rules have their own.
fn governs(definition: &Definition) -> bool {
    !definition.policies.is_empty()
        || definition.completion.is_some()
        || words::limits(&definition.limits).iter().any(|(_, limit)| limit.is_some())
        || definition.progress.is_some()
        || definition.identity.is_some()
        || definition.tools.iter().any(|tool| tool.roles.is_some())
        || !definition.limits.tool_calls.is_empty()
        || definition.context.is_some()
        || definition.unknown_tools == UnknownTools::Deny
        || definition.shell.opaque != Opaque::Allow
        || definition.tools.iter().any(|tool| !tool.idempotent)
        || !definition.feedback.is_empty()
}

fn sections(tools: &[Tool], policies: &[Policy]) -> u16 {
    let of_tools = tools.iter().flat_map(|tool| tool.sections.iter().copied());
    let of_policies = policies.iter().filter_map(|policy| policy.section);
    of_tools.chain(of_policies).max().map_or(0, |last| last.saturating_add(1))
}

/// Says of every command in a check whether a person lets it run. Numbers are
/// given once all layers are together.
pub(super) fn with_trust(checker: Checker, runs: bool) -> Checker {
    let each = |parts: Vec<Checker>| {
        parts.into_iter().map(|part| with_trust(part, runs)).collect::<Vec<_>>()
    };
    match checker {
        Checker::Command { number: _, line, timeout_seconds, trusted: _ } => {
            Checker::Command { number: 0, line, timeout_seconds, trusted: runs }
        }
        Checker::All(parts) => Checker::All(each(parts)),
        Checker::Any(parts) => Checker::Any(each(parts)),
        Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => checker,
    }
}
