//! Tests that no demand of a higher layer becomes looser when a lower layer is joined.

use jackline_engine::definition::{
    Advisor, BudgetLimit, ChainLevels, CompletionCap, CompletionRequirement, ContextThresholds,
    CycleLevels, DeclaredTool, DirtyBits, ErrorLevels, FeedbackContent, FeedbackProvider,
    FeedbackTrigger, GradedLevels, IoLimits, JournalSettings, LimitPeriod, LongPromptPrice,
    LoopProfile, LoopSettings, ModelChoice, ModelKind, ModelPrice, ModelProvider, ModelTables,
    OpaquePolicy, OutputLimits, Policy, PolicyRule, PollAllowance, Prerequisite, ProgressSettings,
    Redact, Rule, RuleEffect, RuleScope, Rules, RunLimits, SequentialDependency, SessionLimits,
    ShellOutputLimits, ShellSettings, SimilarCallLevels, StrictLevels, ToolDependency, ToolPaths,
    UnknownTools,
};
use jackline_engine::{Definition, Mode, ToolKind};
use proptest::prelude::*;

use super::tests::{command, condition, managed, repository, rule, user};
use super::{LayerDefinition, combine};
use crate::words;

const MODELS: [&str; 6] = ["m", "m-001", "m-001-002", "n", "openai/m", "openai/m-001"];
const NAMES: [&str; 6] = ["Bash", "Write", "run", "pay", "think", "mcp_x"];

fn a_name() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..]).prop_map(ToOwned::to_owned)
}

fn a_tool() -> impl Strategy<Value = DeclaredTool> {
    let kinds = [ToolKind::Exec, ToolKind::Think, ToolKind::Write, ToolKind::Other];
    (a_name(), prop::sample::select(kinds.to_vec()), prop::option::of(a_name()), any::<[bool; 4]>())
        .prop_map(|(name, kind, alias, [idempotent, pointer, transparent, read_only])| {
            let paths = ToolPaths { read: vec![], write: vec!["/nowhere".to_owned()] };
            DeclaredTool {
                kind,
                aliases: alias.into_iter().filter(|alias| *alias != name).collect(),
                idempotent,
                transparent,
                read_only,
                paths: if pointer { paths } else { ToolPaths::default() },
                ..DeclaredTool::with_name(&name)
            }
        })
}

/// Tools with unique names, as the loader demands.
fn some_tools() -> impl Strategy<Value = Vec<DeclaredTool>> {
    prop::collection::vec(a_tool(), 0..4).prop_map(|list| {
        let mut taken: Vec<String> = Vec::new();
        let fits = |tool: &DeclaredTool| {
            let all: Vec<String> =
                std::iter::once(&tool.name).chain(&tool.aliases).cloned().collect();
            let free = all.iter().all(|name| !taken.contains(name));
            taken.extend(all);
            free
        };
        let mut fits = fits;
        list.into_iter().filter(|tool| fits(tool)).collect()
    })
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let effects = [RuleEffect::Observe, RuleEffect::Warn, RuleEffect::Ask, RuleEffect::Deny];
    let scope = prop_oneof![
        Just(RuleScope::Any),
        a_name().prop_map(RuleScope::Tool),
        Just(RuleScope::Kind(ToolKind::Exec))
    ];
    let name = prop::sample::select(&["r1", "r2", "r3"][..]);
    (name, prop::sample::select(effects.to_vec()), scope, any::<bool>(), any::<bool>()).prop_map(
        |(name, effect, scope, enforce, always)| Rule {
            scope,
            origin: if name == "r3" { "pack p" } else { "f" }.to_owned(),
            mode: if enforce { Mode::Enforce } else { Mode::Observe },
            when: always.then(|| condition("true")),
            ..rule(name, effect)
        },
    )
}

fn some_rules() -> impl Strategy<Value = Rules> {
    prop::collection::vec(a_rule(), 0..3).prop_map(|mut list| {
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list.dedup_by(|a, b| a.name == b.name);
        Rules::new(list)
    })
}

fn a_limit() -> impl Strategy<Value = Option<BudgetLimit>> {
    prop::option::of((1..5_u64, any::<bool>(), any::<bool>()).prop_map(|(max, soft, turn)| {
        BudgetLimit { max, soft, per: if turn { LimitPeriod::Turn } else { LimitPeriod::Session } }
    }))
}

fn some_limits() -> impl Strategy<Value = SessionLimits> {
    let given = (prop::array::uniform7(a_limit()), some_tool_calls(), 1..4_u64);
    given.prop_map(|(limits, tool_calls, iterations_extension)| {
        let [steps, wall_seconds, cost_usd, iterations, input_tokens, output_tokens, total_tokens] =
            limits;
        SessionLimits {
            steps,
            wall_seconds,
            cost_usd,
            input_tokens,
            output_tokens,
            total_tokens,
            iterations,
            iterations_extension,
            tool_calls,
        }
    })
}

fn some_tool_calls() -> impl Strategy<Value = Vec<(String, BudgetLimit)>> {
    prop::collection::btree_map(a_name(), a_limit(), 0..3).prop_map(|limits| {
        limits.into_iter().filter_map(|(tool, limit)| Some((tool, limit?))).collect()
    })
}

fn a_context() -> impl Strategy<Value = Option<ContextThresholds>> {
    let window = prop::option::of(1..4_u64);
    prop::option::of((window, 1..4_u8, 1..4_u8, 1..4_u8, 1..4_u8, 1..4_u32).prop_map(
        |(window, warn, compact, block, min_freed_pct, ineffective_max)| ContextThresholds {
            window,
            warn,
            compact,
            block,
            min_freed_pct,
            ineffective_max,
            estimate_lines: 498 + ineffective_max,
            restarts_max: ineffective_max,
        },
    ))
}

/// Prices of models; some names are prefixes of others.
fn some_models() -> impl Strategy<Value = ModelTables> {
    let model = prop::sample::select(&MODELS[..]).prop_map(ToOwned::to_owned);
    prop::collection::btree_map(model, (1..4_u64, 1..4_u64), 0..4).prop_map(|prices| {
        let price = |(model, (input, output))| ModelPrice {
            model,
            input,
            output,
            cache_read: input,
            cache_creation: output,
        };
        let prices: Vec<ModelPrice> = prices.into_iter().map(price).collect();
        // A layer with prices has the complete table.
        let dated = if prices.is_empty() { "" } else { "2026-01-31" }.to_owned();
        let long = prices.first().map(|price| LongPromptPrice { above: 9, price: price.clone() });
        ModelTables { dated, prices, long: long.into_iter().collect(), windows: Vec::new() }
    })
}

fn a_checker() -> impl Strategy<Value = Option<CompletionRequirement>> {
    prop_oneof![
        Just(None),
        Just(Some(command("make", 0, true))),
        Just(Some(CompletionRequirement::Clean)),
        Just(Some(CompletionRequirement::Any(vec![
            command("make", 0, true),
            command("x", 1, true)
        ]))),
    ]
}

fn some_progress() -> impl Strategy<Value = Option<ProgressSettings>> {
    let steps = prop_oneof![1..5_u32, 49..52_u32];
    prop::option::of((1..5_u32, steps, any::<bool>()).prop_map(|(failures, steps, exempt)| {
        ProgressSettings {
            max_consecutive_failures: failures,
            exempt_phases: exempt.then(|| "plan".to_owned()).into_iter().collect(),
            steps_per_iteration: steps,
        }
    }))
}

fn some_bits() -> impl Strategy<Value = DirtyBits> {
    any::<[bool; 3]>().prop_map(|[tests, builds, docs]| {
        let one = |given: bool, text: &str| given.then(|| text.to_owned()).into_iter().collect();
        DirtyBits { tests: one(tests, "true"), builds: one(builds, "b"), docs: one(docs, "**") }
    })
}

fn some_policies() -> impl Strategy<Value = Vec<Policy>> {
    let policy =
        (a_name(), a_name(), prop::option::of(0..2_u16)).prop_map(|(tool, need, section)| {
            let needs = vec![Prerequisite { tool: need, fresh: false }];
            let rule = SequentialDependency::new(vec![ToolDependency { tool, needs }]);
            Policy { section, rule: PolicyRule::SequentialDependency(rule) }
        });
    prop::collection::vec(policy, 0..3)
}

fn some_loops() -> impl Strategy<Value = LoopSettings> {
    let number = 2..6_u16;
    let kinds =
        prop::sample::subsequence(vec![ToolKind::Think, ToolKind::Fetch, ToolKind::Read], 0..3);
    let given = (any::<[bool; 2]>(), [number.clone(), number.clone(), number], kinds);
    let given =
        given.prop_map(|([observe, strict], [low, high, most], transparent)| LoopSettings {
            mode: if observe { Mode::Observe } else { Mode::Enforce },
            profile: if strict { LoopProfile::Strict } else { LoopProfile::Graded },
            graded: GradedLevels { soft: low, hard: low + high, infinite: low + high + most },
            strict: StrictLevels { window: low + high, threshold: low, override_retries: most },
            cycle: CycleLevels { period_max: high, repeats: most },
            errors: ErrorLevels { soft: most, hard: most + low },
            chain: ChainLevels { calls_min: low, calls_max: 16 + most },
            similar: SimilarCallLevels {
                changing_results: high,
                same_subject: most,
                same_subject_failing: low + 1,
                same_result: high,
                among: most + low,
            },
            wait: PollAllowance {
                until_changed: true,
                max_calls: low.into(),
                within_seconds: high.into(),
            },
            volatile: vec![format!("/{low}")],
            transparent,
            ..LoopSettings::default()
        });
    prop_oneof![Just(LoopSettings::default()), given]
}

fn some_choices() -> impl Strategy<Value = (Vec<ModelChoice>, Option<Advisor>)> {
    let choice = |(name, url): (&str, bool)| {
        let kind = ModelKind::Provider {
            provider: ModelProvider::OpenAi,
            model: name.to_owned(),
            url: url.then(|| "https://a.example".to_owned()),
            key_env: None,
            window: None,
            timeout_seconds: None,
        };
        ModelChoice { kind, worker_model: None, when: vec![], budget: None }
    };
    let all = [("a", false), ("b", true), ("c", false)].map(choice);
    let choices = prop::sample::subsequence(all.to_vec(), 0..3);
    let models = prop::sample::subsequence(all.to_vec(), 1..3);
    let advisor = (models, 1..4_u32, 1..4_u32).prop_map(|(models, transcript_lines, budget)| {
        Advisor { models, transcript_lines, budget }
    });
    (choices, prop::option::of(advisor))
}

fn a_definition() -> impl Strategy<Value = Definition> {
    let opaque =
        prop::sample::select(&[OpaquePolicy::Allow, OpaquePolicy::Ask, OpaquePolicy::Deny][..]);
    let unknown = [UnknownTools::Allow, UnknownTools::Client, UnknownTools::Deny];
    let unknown = prop::sample::select(unknown.to_vec());
    let lists = (some_tools(), some_rules(), some_policies(), a_checker(), some_loops());
    let numbers = (1..5_u32, 1..5_u32);
    let watched = (some_progress(), some_bits(), some_choices());
    let budgets = (some_limits(), a_context(), some_models());
    let settings = (opaque, unknown, any::<[bool; 3]>());
    (lists, numbers, watched, budgets, settings).prop_map(
        |(lists, (cap, bytes), watched, budgets, (opaque, unknown_tools, flags))| {
            let (tools, rules, policies, completion, loops) = lists;
            let (progress, dirty_bits, (choices, advisor)) = watched;
            let (limits, context, models) = budgets;
            let [observe, off, speaks] = flags;
            let hello = FeedbackContent::Static { text: "hello".to_owned() };
            let hello = FeedbackProvider { speech: hello, trigger: FeedbackTrigger::default() };
            let mut definition = Definition {
                mode: if observe { Mode::Observe } else { Mode::Enforce },
                unknown_tools,
                shell: ShellSettings { opaque },
                protected: vec![format!("p{cap}")],
                rules,
                completion,
                loops,
                completion_cap: CompletionCap { blocks: cap, same: cap },
                progress,
                dirty_bits,
                limits,
                context,
                models,
                choices,
                advisor,
                feedback: speaks.then_some(hello).into_iter().collect(),
                feedback_bytes_max: bytes,
                io: IoLimits {
                    output: OutputLimits { max_bytes: 65_534 + bytes, relative_paths: !off },
                    shell: ShellOutputLimits { seconds: 118 + cap, ..ShellOutputLimits::default() },
                    ..IoLimits::default()
                },
                journal: JournalSettings {
                    redact: if off { Redact::Off } else { Redact::BuiltIn },
                    retain_days: bytes,
                    ..JournalSettings::default()
                },
                run: RunLimits {
                    failed_checks: cap,
                    undone_iterations: cap,
                    model_waits: bytes,
                    ..RunLimits::default()
                },
                tools,
                ..Definition::default()
            };
            // Policies name only declared tools, as the loader ensures.
            for policy in &policies {
                if let PolicyRule::SequentialDependency(rule) = &policy.rule {
                    let needs = rule.dependencies.iter().flat_map(|d| &d.needs);
                    let named = needs.map(|need| &need.tool);
                    for name in named.chain(rule.dependencies.iter().map(|d| &d.tool)) {
                        if !resolves(&definition, name) {
                            definition.tools.push(DeclaredTool::with_name(name));
                        }
                    }
                }
            }
            definition.policies = policies;
            definition
        },
    )
}

fn find<'a>(definition: &'a Definition, name: &str) -> Option<&'a DeclaredTool> {
    let has_name =
        |tool: &&DeclaredTool| tool.name == name || tool.aliases.iter().any(|a| a == name);
    definition.tools.iter().find(has_name)
}

fn resolves(definition: &Definition, name: &str) -> bool {
    find(definition, name).is_some()
}

/// Asserts that the combined definition is not looser than the higher layer.
fn assert_no_looser(high: &Definition, combined: &Definition) {
    for rule in &high.rules {
        let joined = combined.rules.iter().find(|joined| joined.name == rule.name).unwrap();
        assert!(rule.mode == Mode::Observe || joined.mode == Mode::Enforce);
        assert_eq!(
            Rule { mode: joined.mode, ..rule.clone() },
            Rule { origin: rule.origin.clone(), ..joined.clone() }
        );
    }
    let limits = words::limits(&high.limits).into_iter().zip(words::limits(&combined.limits));
    let limits = limits.map(|((_, high), (_, joined))| (high, joined));
    let of_tools = high.limits.tool_calls.iter().map(|(tool, limit)| {
        let joined = combined.limits.tool_calls.iter().find(|(joined, _)| joined == tool);
        (Some(*limit), joined.map(|(_, limit)| *limit))
    });
    for (high, joined) in limits.chain(of_tools) {
        let Some(high) = high else { continue };
        let joined = joined.unwrap();
        assert!(joined.max <= high.max && (!joined.soft || high.soft));
        assert!(joined.per == high.per || (joined.per == LimitPeriod::Session && !joined.soft));
    }
    assert!(combined.limits.iterations_extension <= high.limits.iterations_extension);
    let more =
        ["m-001-002-003", "n-007", "m-003", "openai/m-001-002", "openai/n", "us.anthropic.m"];
    for model in MODELS.iter().chain(&more) {
        let Some(price) = high.models.price(model) else { continue };
        assert!(combined.models.price(model).unwrap().is_at_least(price), "{model}");
    }
    assert!(high.models.long.iter().all(|long| combined.models.long.contains(long)));
    if high.completion.is_some() {
        // No stop that was checked before may pass without a check.
        let full = |context: ContextThresholds| (context.window, context.block);
        assert_eq!(combined.context.map(full), high.context.map(full));
    }
    if let Some(high) = high.context {
        let joined = combined.context.unwrap();
        assert!(
            joined.warn <= high.warn
                && joined.compact <= high.compact
                && joined.block <= high.block
        );
        assert!(joined.min_freed_pct >= high.min_freed_pct);
        assert!(joined.ineffective_max <= high.ineffective_max);
        assert!(joined.estimate_lines <= high.estimate_lines);
        assert!(joined.restarts_max <= high.restarts_max);
        assert_eq!(joined.window.is_some(), high.window.is_some());
        assert!(joined.window <= high.window);
    }
    assert!(high.protected.iter().all(|path| combined.protected.contains(path)));
    assert!(high.policies.iter().all(|policy| combined.policies.contains(policy)));
    assert!(high.feedback.iter().all(|provider| combined.feedback.contains(provider)));
    assert!(high.unknown_tools <= combined.unknown_tools);
    assert!(high.shell.opaque <= combined.shell.opaque);
    assert!(high.journal.redact == Redact::Off || combined.journal.redact == Redact::BuiltIn);
    assert!(high.journal.retain_days <= combined.journal.retain_days);
    assert_eq!(high.completion_cap, combined.completion_cap);
    assert_loops_no_looser(&high.loops, &combined.loops);
    if let Some(high) = &high.progress {
        let joined = combined.progress.as_ref().unwrap();
        assert!(joined.max_consecutive_failures <= high.max_consecutive_failures);
        assert_eq!(joined.steps_per_iteration, high.steps_per_iteration);
        assert!(joined.exempt_phases.iter().all(|phase| high.exempt_phases.contains(phase)));
    }
    if high.limits.iterations.is_some() && high.progress.is_none() {
        assert!(combined.progress.as_ref().is_none_or(|joined| joined.steps_per_iteration <= 50));
    }
    if relies_on_tests(high) {
        assert_eq!(high.dirty_bits, combined.dirty_bits);
    }
    let io = (high.io, combined.io);
    assert!(
        io.1.output.max_bytes <= io.0.output.max_bytes && io.1.shell.seconds <= io.0.shell.seconds
    );
    assert_eq!(io.1.output.relative_paths, io.0.output.relative_paths);
    assert!(combined.run.undone_iterations <= high.run.undone_iterations);
    assert!(combined.run.failed_checks <= high.run.failed_checks);
    assert!(combined.run.model_waits <= high.run.model_waits);
    let bytes = (combined.feedback_bytes_max, high.feedback_bytes_max);
    assert!(bytes.0 == bytes.1 || (high.feedback.is_empty() && bytes.0 < bytes.1));
    if let Some(check) = &high.completion {
        let joined = combined.completion.as_ref().unwrap();
        assert!(
            joined == check
                || matches!(joined, CompletionRequirement::All(all) if all.contains(check))
        );
    }
    let governs = !high.policies.is_empty()
        || high.completion.is_some()
        || high.progress.is_some()
        || words::limits(&high.limits).iter().any(|(_, limit)| limit.is_some())
        || !high.limits.tool_calls.is_empty()
        || high.context.is_some()
        || high.unknown_tools != UnknownTools::Allow
        || high.shell.opaque > OpaquePolicy::Allow
        || high.tools.iter().any(|tool| !tool.idempotent)
        || !high.feedback.is_empty();
    assert!(!governs || high.mode == Mode::Observe || combined.mode == Mode::Enforce);
    NAMES.iter().for_each(|name| assert_means_the_same(name, high, combined));
    assert_pauses_as_strictly(high, combined);
}

/// Asserts that a session without progress still waits for a person.
fn assert_pauses_as_strictly(high: &Definition, combined: &Definition) {
    assert!(high.choices.is_empty() || high.choices == combined.choices);
    if let Some(high) = &high.advisor {
        let joined = combined.advisor.as_ref().unwrap();
        assert_eq!(joined.models, high.models);
        assert!(joined.budget <= high.budget && joined.transcript_lines <= high.transcript_lines);
    }
    if high.progress.is_some() || high.loops.mode == Mode::Enforce {
        assert!(combined.choices.len() <= high.choices.len().max(1));
        assert!(combined.advisor.is_none() || high.advisor.is_some());
    }
}

fn relies_on_tests(high: &Definition) -> bool {
    high.progress.is_some()
        || high.completion.as_ref().is_some_and(CompletionRequirement::uses_dirty_bits)
}

/// Asserts that the loop guard reacts at least as early as before.
fn assert_loops_no_looser(high: &LoopSettings, joined: &LoopSettings) {
    if high.mode == Mode::Observe {
        return;
    }
    let less = |of: fn(&LoopSettings) -> u16| assert!(of(joined) <= of(high));
    less(|loops| loops.graded.soft);
    less(|loops| loops.graded.hard);
    less(|loops| loops.graded.infinite);
    less(|loops| loops.cycle.repeats);
    less(|loops| loops.errors.soft);
    less(|loops| loops.errors.hard);
    less(|loops| loops.chain.calls_min);
    less(|loops| loops.similar.changing_results);
    less(|loops| loops.similar.same_subject);
    less(|loops| loops.similar.same_subject_failing);
    less(|loops| loops.similar.same_result);
    assert!(joined.similar.among >= high.similar.among);
    assert!(joined.chain.calls_max >= high.chain.calls_max);
    assert!(joined.wait.max_calls <= high.wait.max_calls);
    assert!(joined.wait.within_seconds <= high.wait.within_seconds);
    assert!(joined.history >= high.history);
    // The other values can't be compared, so they must not change.
    let LoopSettings { history, graded, errors, chain, similar, wait, .. } = high.clone();
    let rest = |loops: &LoopSettings| LoopSettings {
        history,
        graded,
        errors,
        chain,
        similar,
        wait,
        cycle: CycleLevels { repeats: high.cycle.repeats, ..loops.cycle },
        ..loops.clone()
    };
    assert_eq!(rest(joined), *high);
    assert!(high.profile == LoopProfile::Graded || joined == high);
    let GradedLevels { soft, hard, infinite } = joined.graded;
    assert!(soft < hard && hard < infinite);
}

/// Asserts that a name refers to the same tool for the rules of the higher layer.
fn assert_means_the_same(name: &str, high: &Definition, combined: &Definition) {
    let Some(joined) = find(combined, name) else {
        assert!(!resolves(high, name));
        return;
    };
    let Some(before) = find(high, name) else {
        assert!(high.accepts_tool(name, false), "{name} became a declared tool");
        let referred = high.rules.iter().any(|r| r.scope == RuleScope::Tool(name.to_owned()));
        assert!(!referred || joined.name == name, "{name} became {}", joined.name);
        let watched = high.loops != LoopSettings::default();
        assert!(
            !watched || !(joined.transparent || joined.read_only),
            "{name} is ignored by the loop guard"
        );
        let known = ToolKind::well_known(name) == Some(joined.kind);
        let harmless = matches!(joined.kind, ToolKind::Think | ToolKind::Exec) && !known;
        assert!(!harmless || !(watched || relies_on_tests(high)), "{name} became harmless");
        if let Some(kind) = ToolKind::well_known(name) {
            assert_eq!((joined.kind, &joined.paths), (kind, &ToolPaths::default()), "{name}");
        }
        return;
    };
    let sections: Vec<u16> = joined
        .sections
        .iter()
        .copied()
        .filter(|section| before.sections.contains(section))
        .collect();
    let joined = DeclaredTool { sections, ..joined.clone() };
    let idempotent = before.idempotent && joined.idempotent;
    assert_eq!(joined, DeclaredTool { idempotent, ..before.clone() }, "{name}");
}

/// Modes by name, for existing and missing rules.
fn some_modes() -> impl Strategy<Value = Vec<(String, Mode)>> {
    let name = prop::sample::select(&["r1", "r2", "pack/p"][..]).prop_map(ToOwned::to_owned);
    let mode = prop::sample::select(&[Mode::Enforce, Mode::Observe][..]);
    prop::collection::btree_map(name, mode, 0..3).prop_map(|modes| modes.into_iter().collect())
}

proptest! {
    #[test]
    fn an_untrusted_repository_never_loosens(
        high in a_definition(),
        low in a_definition(),
        modes in some_modes(),
    ) {
        let alone = combine(vec![user(high)], false).definition;
        let low = LayerDefinition { modes, ..repository(low) };
        let combined = combine(vec![user(alone.clone()), low], false);
        assert_no_looser(&alone, &combined.definition);
        let choices = combined.definition.choices.iter();
        let asked = combined.definition.advisor.iter().flat_map(|advisor| &advisor.models);
        let own = alone.choices.iter().chain(alone.advisor.iter().flat_map(|it| &it.models));
        let own: Vec<&ModelChoice> = own.collect();
        for choice in choices.chain(asked) {
            prop_assert!(!choice.needs_trust() || own.contains(&choice));
        }
    }

    #[test]
    fn no_layer_loosens_the_demands_of_the_owner_of_the_machine(
        high in a_definition(),
        person in a_definition(),
        low in a_definition(),
        modes in (some_modes(), some_modes()),
        trust in any::<bool>(),
    ) {
        let alone = combine(vec![managed(high)], false).definition;
        let person = LayerDefinition { modes: modes.0, ..user(person) };
        let low = LayerDefinition { modes: modes.1, ..repository(low) };
        let layers = vec![managed(alone.clone()), person, low];
        assert_no_looser(&alone, &combine(layers, trust).definition);
    }

    #[test]
    fn an_untrusted_command_never_runs(high in a_definition(), low in a_definition()) {
        fn untrusted_lines(checker: &CompletionRequirement) -> Vec<(u16, bool)> {
            match checker {
                CompletionRequirement::Command { number, trusted, .. } => vec![(*number, *trusted)],
                CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
                    parts.iter().flat_map(untrusted_lines).collect()
                }
                _ => vec![],
            }
        }
        let own = high.completion.as_ref().map_or(0, |check| untrusted_lines(check).len());
        let combined = combine(vec![user(high), repository(low)], false).definition;
        let all = combined.completion.as_ref().map_or(vec![], untrusted_lines);
        let numbers: Vec<u16> = all.iter().map(|(number, _)| *number).collect();
        prop_assert_eq!(numbers, (0..).take(all.len()).collect::<Vec<u16>>());
        prop_assert_eq!(all.iter().filter(|(_, trusted)| *trusted).count(), own);
    }
}
