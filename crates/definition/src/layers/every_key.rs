//! Every key that holds an agent, with a looser value in the lower layer.

use super::tests::{ignored, managed, of_file, repository, user};
use super::{Combined, combine};
use crate::keys::{self, Keys};

/// What the higher layer says, and what the lower one says less strictly. Where
/// neither of two values is stricter, both are tried.
struct Looser {
    key: &'static str,
    high: &'static str,
    low: &'static str,
}

const fn looser(key: &'static str, high: &'static str, low: &'static str) -> Looser {
    Looser { key, high, low }
}

/// The keys that are tried.
const KEYS: [&Keys; 25] = [
    &keys::LIMITS,
    &keys::LIMIT,
    &keys::COST_LIMIT,
    &keys::PRICE,
    &keys::CONTEXT,
    &keys::LOOPS,
    &keys::LOOPS_STRICT,
    &keys::LOOPS_GRADED,
    &keys::LOOPS_CYCLE,
    &keys::LOOPS_ERRORS,
    &keys::PROGRESS,
    &keys::DIRTY_BITS,
    &keys::CLEAN,
    &keys::SCHEMA,
    &keys::PLAN,
    &keys::OUTPUT,
    &keys::IO_READ_FILE,
    &keys::IO_OUTPUT,
    &keys::IO_SHELL,
    &keys::ATTEMPTS,
    &keys::HEALTH,
    &keys::MODEL,
    &keys::ADVISOR,
    &keys::IDENTITY,
    &keys::RULE,
];

/// What holds nobody: a name, what is recommended, what is played when a file is
/// loaded; and what is looser than nothing else.
const IDLE: [&str; 4] = ["rule.name", "rule.instead", "rule.examples", "rule.observe"];

const LIMITS: [Looser; 18] = [
    looser("limits.steps", "limits: { steps: 5 }", "limits: { steps: 9 }"),
    looser("limits.wall_seconds", "limits: { wall_seconds: 5 }", "limits: { wall_seconds: 9 }"),
    looser("limits.cost_usd", "limits: { cost_usd: 0.5 }", "limits: { cost_usd: 0.500001 }"),
    looser("limits.input_tokens", "limits: { input_tokens: 5 }", "limits: { input_tokens: 9 }"),
    looser("limits.output_tokens", "limits: { output_tokens: 5 }", "limits: { output_tokens: 9 }"),
    looser("limits.total_tokens", "limits: { total_tokens: 5 }", "limits: { total_tokens: 9 }"),
    looser("limits.iterations", "limits: { iterations: 5 }", "limits: { iterations: 9 }"),
    looser(
        "limits.tool_calls",
        "limits: { tool_calls: { a: 5 } }",
        "limits: { tool_calls: { a: 9 } }",
    ),
    looser("", "limits: { iterations: 5 }\niterations_extension: 5", "iterations_extension: 9"),
    looser(
        "limit.max",
        "limits: { steps: { max: 5, soft: true } }",
        "limits: { steps: { max: 9, soft: true } }",
    ),
    looser("limit.soft", "limits: { steps: 9 }", "limits: { steps: { max: 5, soft: true } }"),
    looser("limit.per", "limits: { steps: 9 }", "limits: { steps: { max: 5, per: turn } }"),
    looser(
        "limit.per",
        "limits: { steps: { max: 9, soft: true, per: turn } }",
        "limits: { steps: { max: 5, soft: true } }",
    ),
    looser(
        "cost_limit.max",
        "limits: { cost_usd: { max: 5 } }",
        "limits: { cost_usd: { max: 9 } }",
    ),
    looser(
        "cost_limit.soft",
        "limits: { cost_usd: 9 }",
        "limits: { cost_usd: { max: 5, soft: true } }",
    ),
    looser(
        "cost_limit.per",
        "limits: { cost_usd: 9 }",
        "limits: { cost_usd: { max: 5, per: turn } }",
    ),
    looser(
        "limit.max",
        "limits: { tool_calls: { a: { max: 5, per: turn } } }",
        "limits: { tool_calls: { a: { max: 9, per: turn } } }",
    ),
    looser(
        "limit.soft",
        "limits: { iterations: 9 }",
        "limits: { iterations: { max: 5, soft: true } }",
    ),
];

const PRICES: [Looser; 5] = [
    looser(
        "price.input",
        "prices: { m: { input: 2, output: 2 } }",
        "prices: { m: { input: 1, output: 2, cache_read: 2, cache_creation: 2 } }",
    ),
    looser(
        "price.output",
        "prices: { m: { input: 2, output: 2 } }",
        "prices: { m: { input: 2, output: 1 } }",
    ),
    looser(
        "price.cache_read",
        "prices: { m: { input: 2, output: 2 } }",
        "prices: { m: { input: 2, output: 2, cache_read: 1 } }",
    ),
    looser(
        "price.cache_creation",
        "prices: { m: { input: 2, output: 2 } }",
        "prices: { m: { input: 2, output: 2, cache_creation: 1 } }",
    ),
    // By a longer name, and past a price of long prompts.
    looser(
        "price.input",
        "limits: { cost_usd: 1 }",
        "prices: { anthropic/claude-haiku-5-5: { input: 0.05, output: 0.5 } }",
    ),
];

const CONTEXTS: [Looser; 9] = [
    looser("context.window", "context: { window: 100 }", "context: { window: 200 }"),
    looser("context.window", "context: {}", "context: { window: 100 }"),
    looser("context.window", "context: { window: 100 }", "context: { warn: 70 }"),
    looser("context.warn", "context: {}", "context: { warn: 76 }"),
    looser("context.compact", "context: {}", "context: { compact: 84 }"),
    looser("context.block", "context: {}", "context: { block: 90 }"),
    // A full context lets a stop pass where the client compacts itself.
    looser("context.block", "context: {}\ncompletion: { clean: {} }", "context: { block: 81 }"),
    looser("context.min_freed_pct", "context: {}", "context: { min_freed_pct: 10 }"),
    looser("context.ineffective_max", "context: {}", "context: { ineffective_max: 3 }"),
];

const LOOPS: [Looser; 28] = [
    looser("loops.mode", "loops: { mode: enforce }", "loops: { mode: observe, history: 63 }"),
    looser("loops.profile", "loops: { profile: graded }", "loops: { profile: strict }"),
    looser("loops.profile", "loops: { profile: strict }", "loops: { profile: graded }"),
    looser("loops.history", "loops: { history: 64 }", "loops: { history: 8 }"),
    looser(
        "loops.strict",
        "loops: { profile: strict }",
        "loops: { profile: strict, strict: { window: 4 } }",
    ),
    looser("loops.graded", "loops: { graded: { soft: 2 } }", "loops: {}"),
    looser("loops.cycle", "loops: { cycle: { repeats: 2 } }", "loops: {}"),
    looser("loops.errors", "loops: { errors: { soft: 2 } }", "loops: {}"),
    // What is the same call, and what is passed over, neither less nor more.
    looser("loops.volatile", "loops: { volatile: [/nonce] }", "loops: {}"),
    looser("loops.volatile", "loops: {}", "loops: { volatile: [/command] }"),
    looser("loops.transparent", "loops: {}", "loops: { transparent: [think, read] }"),
    looser("loops.transparent", "loops: {}", "loops: { transparent: [] }"),
    looser(
        "loops_strict.window",
        "loops: { profile: strict, strict: { window: 5 } }",
        "loops: { profile: strict, strict: { window: 3 } }",
    ),
    looser(
        "loops_strict.window",
        "loops: { profile: strict }",
        "loops: { profile: strict, strict: { window: 9 } }",
    ),
    looser(
        "loops_strict.threshold",
        "loops: { profile: strict }",
        "loops: { profile: strict, strict: { window: 9, threshold: 9 } }",
    ),
    looser(
        "loops_strict.threshold",
        "loops: { profile: strict }",
        "loops: { profile: strict, strict: { threshold: 2 } }",
    ),
    looser(
        "loops_strict.override_retries",
        "loops: { profile: strict }",
        "loops: { profile: strict, strict: { override_retries: 9 } }",
    ),
    looser("loops_graded.soft", "loops: {}", "loops: { graded: { soft: 4 } }"),
    looser("loops_graded.hard", "loops: {}", "loops: { graded: { hard: 9 } }"),
    looser("loops_graded.infinite", "loops: {}", "loops: { graded: { infinite: 99 } }"),
    looser(
        "loops_graded.hard",
        "loops: { profile: strict }",
        "loops: { profile: strict, graded: { hard: 4 } }",
    ),
    looser("loops_cycle.period_max", "loops: {}", "loops: { cycle: { period_max: 2 } }"),
    looser("loops_cycle.period_max", "loops: { cycle: { period_max: 2 } }", "loops: {}"),
    looser("loops_cycle.repeats", "loops: {}", "loops: { cycle: { repeats: 9 } }"),
    looser("loops_errors.soft", "loops: {}", "loops: { errors: { soft: 7 } }"),
    looser("loops_errors.hard", "loops: {}", "loops: { errors: { hard: 9 } }"),
    // What is passed over by default, in a tool that nobody else knows.
    looser(
        "loops.transparent",
        "loops: {}\ntools: { a: {} }\nunknown_tools: allow",
        "tools: { a: { kind: think } }\nunknown_tools: allow",
    ),
    looser(
        "loops.transparent",
        "loops: {}\ntools: { a: {} }\nunknown_tools: allow",
        "tools: { a: { transparent: true } }\nunknown_tools: allow",
    ),
];

const PROGRESS: [Looser; 4] = [
    looser(
        "progress.max_consecutive_failures",
        "progress: {}",
        "progress: { max_consecutive_failures: 4 }",
    ),
    looser("progress.exempt_phases", "progress: {}", "progress: { exempt_phases: [plan] }"),
    looser("progress.steps_per_iteration", "progress: {}", "progress: { steps_per_iteration: 51 }"),
    // In iterations of one step, nothing fails that is changed in another.
    looser("progress.steps_per_iteration", "progress: {}", "progress: { steps_per_iteration: 1 }"),
];

const BITS: [Looser; 4] = [
    looser("dirty_bits.tests", "completion: { clean: {} }", "dirty_bits: { tests: ['true'] }"),
    looser("dirty_bits.tests", "progress: {}", "dirty_bits: { tests: ['true'] }"),
    looser("dirty_bits.builds", "progress: {}", "dirty_bits: { builds: ['true'] }"),
    looser("dirty_bits.docs", "completion: { clean: {} }", "dirty_bits: { docs: ['src/**'] }"),
];

const SCHEMAS: [Looser; 5] = [
    looser(
        "schema.repair_max_attempts",
        "schema: { repair_max_attempts: 1 }",
        "schema: { repair_max_attempts: 3 }",
    ),
    looser(
        "schema.repairs_per_run",
        "schema: { repairs_per_run: 4 }",
        "schema: { repairs_per_run: 5 }",
    ),
    looser(
        "schema.correction_max_attempts",
        "schema: { correction_max_attempts: 0 }",
        "schema: { correction_max_attempts: 1 }",
    ),
    looser("plan.schema", "plan: { schema: { type: object } }", "plan: { schema: {} }"),
    looser(
        "output.schema",
        "outputs: { report: { schema: { type: object } } }",
        "outputs: { report: { schema: {} } }",
    ),
];

const IO: [Looser; 8] = [
    looser(
        "io_read_file.max_lines",
        "io: { read_file: { max_lines: 5 } }",
        "io: { read_file: { max_lines: 6 } }",
    ),
    looser("io_read_file.max_bytes", "", "io: { read_file: { max_bytes: 262145 } }"),
    looser(
        "io_read_file.max_line_bytes",
        "io: { read_file: { max_line_bytes: 16 } }",
        "io: { read_file: { max_line_bytes: 17 } }",
    ),
    looser(
        "io_output.max_bytes",
        "io: { output: { max_bytes: 5000 } }",
        "io: { output: { max_bytes: 5001 } }",
    ),
    looser("io_output.relative_paths", "", "io: { output: { relative_paths: false } }"),
    looser("io_shell.seconds", "io: { shell: { seconds: 5 } }", "io: { shell: { seconds: 6 } }"),
    looser("io_shell.seconds", "", "io: { shell: { seconds: 121 } }"),
    looser(
        "io_shell.output_bytes",
        "io: { shell: { output_bytes: 2000 } }",
        "io: { shell: { output_bytes: 2001 } }",
    ),
];

const ATTEMPTS: [Looser; 8] = [
    looser("attempts.provider", "attempts: { provider: 0 }", "attempts: { provider: 2 }"),
    looser("attempts.provider", "", "attempts: { provider: 2 }"),
    looser("attempts.guardrail", "attempts: { guardrail: 2 }", "attempts: { guardrail: 3 }"),
    looser("attempts.execution", "attempts: { execution: 0 }", "attempts: { execution: 2 }"),
    looser("attempts.outcome", "attempts: { outcome: 2 }", "attempts: { outcome: 3 }"),
    looser("attempts.ceiling", "", "attempts: { ceiling: 7 }"),
    looser("attempts.terminal", "", "attempts: { terminal: [missing_credentials] }"),
    looser(
        "attempts.terminal",
        "attempts: { terminal: [no_key, no_net] }",
        "attempts: { terminal: [no_key] }",
    ),
];

const IDENTITY: [Looser; 3] = [
    looser("identity.roles", "identity: { roles: [a] }", "identity: { roles: [a, b] }"),
    looser("identity.roles", "identity: {}", "identity: { roles: [developer, b] }"),
    looser("identity.workflow", "identity: { workflow: x }", "identity: { workflow: y }"),
];

/// Neither value of these is stricter: the higher layer's word holds.
const HEALTH: [Looser; 5] = [
    looser("health.window", "health: { window: 10 }", "health: { window: 11 }"),
    looser("health.window", "health: { window: 10 }", "health: { window: 9 }"),
    looser("health.min_samples", "health: { min_samples: 3 }", "health: { min_samples: 4 }"),
    looser(
        "health.degrade_above_pct",
        "health: { degrade_above_pct: 50 }",
        "health: { degrade_above_pct: 70 }",
    ),
    looser(
        "health.recover_below_pct",
        "health: { recover_below_pct: 20 }",
        "health: { recover_below_pct: 40 }",
    ),
];

/// The one model that the higher layer has, or what is put in its place.
macro_rules! model {
    ($said:literal) => {
        concat!("models: [ { ", $said, " } ]")
    };
}

const ONE: &str = model!("provider: openai, model: m, budget: 5, timeout_seconds: 5, window: 5");

/// No model is stricter than another: the higher layer's word holds.
const MODELS: [Looser; 11] = [
    looser("model.provider", ONE, model!("provider: gemini, model: m, budget: 5")),
    looser("model.worker", ONE, model!("worker: claude")),
    looser("model.worker", ONE, model!("worker: [agent]")),
    looser("model.model", ONE, model!("provider: openai, model: n, budget: 5")),
    looser("model.url", ONE, model!("provider: openai, model: m, url: 'https://evil.example'")),
    looser("model.key_env", ONE, model!("provider: openai, model: m, key_env: GITHUB_TOKEN")),
    looser("model.window", ONE, model!("provider: openai, model: m, window: 6")),
    looser("model.when", ONE, model!("provider: openai, model: m, when: [cost]")),
    looser("model.budget", ONE, model!("provider: openai, model: m, budget: 6")),
    looser("model.timeout_seconds", ONE, model!("provider: openai, model: m, timeout_seconds: 6")),
    // A further one would go on where the higher layer pauses.
    looser(
        "model.provider",
        "progress: {}",
        "models: [ { provider: openai, model: m }, { provider: openai, model: n } ]",
    ),
];

const ADVISED: &str = "advisor: { models: [ { provider: openai, model: m } ] }";

const ADVISORS: [Looser; 4] = [
    looser("advisor.models", ADVISED, "advisor: { models: [ { provider: openai, model: n } ] }"),
    looser("advisor.models", "loops: {}", ADVISED),
    looser(
        "advisor.transcript_lines",
        ADVISED,
        "advisor: { models: [ { provider: openai, model: m } ], transcript_lines: 501 }",
    ),
    looser(
        "advisor.budget",
        ADVISED,
        "advisor: { models: [ { provider: openai, model: m } ], budget: 3 }",
    ),
];

/// A rule that denies `git push`, or what is put in its place.
macro_rules! push {
    ($($said:literal),*) => {
        concat!("rules: [ { name: r, ", $($said,)* " } ]")
    };
}

const DENIES: &str = push!("command: git push, deny: No., examples: { deny: [git push] }");

const RULES: [Looser; 7] = [
    looser(
        "rule.deny",
        DENIES,
        push!("command: git push, warn: No., examples: { warn: [git push] }"),
    ),
    looser(
        "rule.deny",
        DENIES,
        push!("command: git push, ask: No., examples: { ask: [git push] }"),
    ),
    looser(
        "rule.ask",
        push!("command: git push, ask: No., examples: { ask: [git push] }"),
        push!("command: git push, warn: No., examples: { warn: [git push] }"),
    ),
    looser(
        "rule.warn",
        push!("command: git push, warn: No., examples: { warn: [git push] }"),
        push!("command: git push, observe: No., examples: { observe: [git push] }"),
    ),
    looser(
        "rule.command",
        DENIES,
        push!("command: git pull, deny: No., examples: { deny: [git pull] }"),
    ),
    looser("rule.tool", DENIES, push!("tool: read, deny: No., examples: { deny: [{ path: a }] }")),
    looser(
        "rule.when",
        DENIES,
        push!(
            "command: git push, when: '\"-n\" in argv', deny: No., examples: { deny: [git push -n] }"
        ),
    ),
];

fn all() -> impl Iterator<Item = &'static Looser> {
    let limits = LIMITS.iter().chain(&PRICES).chain(&CONTEXTS);
    limits
        .chain(&LOOPS)
        .chain(&PROGRESS)
        .chain(&BITS)
        .chain(&SCHEMAS)
        .chain(&IO)
        .chain(&ATTEMPTS)
        .chain(&HEALTH)
        .chain(&MODELS)
        .chain(&ADVISORS)
        .chain(&IDENTITY)
        .chain(&RULES)
}

#[test]
fn no_key_is_loosened_by_a_lower_layer() {
    for Looser { key, high, low } in all() {
        let (above, below) = (of_file(high), of_file(low));
        let alone = combine(vec![user(above.clone())], false).definition;
        let with = |trust| combine(vec![user(above.clone()), repository(below.clone())], trust);
        let Combined { definition, .. } = with(false);
        assert_eq!(definition, alone, "{key}: {high} + {low}");
        assert_ne!(ignored(&with(false)), Vec::<String>::new(), "{key}: {high} + {low}");
        // A person may let it; the owner of the machine is not asked.
        assert_ne!(with(true).definition, alone, "{key}: {high} + {low}");
        for layers in [
            vec![managed(above.clone()), repository(below.clone())],
            vec![managed(above.clone()), user(below.clone())],
            vec![managed(above.clone()), user(of_file("")), repository(below.clone())],
        ] {
            assert_eq!(combine(layers, true).definition, alone, "{key}: {high} + {low}");
        }
    }
}

#[test]
fn every_key_is_tried() {
    // `mode` of a rule is told by the tests of modes.
    let told = ["rule.mode"];
    for keys in KEYS {
        for key in keys.known {
            let name = format!("{}.{}", keys.id, key.name);
            let tried = all().any(|looser| looser.key == name);
            let named = IDLE.contains(&name.as_str()) || told.contains(&name.as_str());
            assert!(tried || named, "no looser value of `{name}` is tried");
        }
    }
}
