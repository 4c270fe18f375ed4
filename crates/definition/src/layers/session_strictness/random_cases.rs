//! Generates pairs of layers, with stories that can show a difference between them.

use jackline_engine::definition::{
    BudgetLimit, CompletionRequirement, ContextThresholds, CycleLevels, DeclaredTool, DirtyBits,
    ErrorLevels, GradedLevels, LimitPeriod, LongPromptPrice, LoopProfile, LoopSettings, ModelPrice,
    ModelTables, ProgressSettings, RequiredFile, Rule, RuleEffect, Rules, SessionLimits,
    StrictLevels,
};
use jackline_engine::{Definition, Mode, ToolKind};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tests::rule;
use super::{StoryMove, UNDECLARED_TOOL, UNIQUE_PER_CALL};

/// Returns the calls of a group; the name selects the group.
fn calls(of: &str) -> Vec<(&'static str, Value)> {
    let exec = |line: &str| ("Bash", json!({ "command": line }));
    let on = |tool, path: &str| (tool, json!({ "file_path": path }));
    let strange = |args| (UNDECLARED_TOOL, args);
    let changes = [on("Edit", "src/a.rs"), on("Edit", "notes/a.txt")];
    let tests = [exec("pytest"), exec("true")];
    let repeated = [
        strange(json!({ "q": "a" })),
        strange(json!({ "q": "b" })),
        strange(json!({ "q": "a", "nonce": UNIQUE_PER_CALL })),
        ("TodoWrite", json!({ "todos": "a", "nonce": UNIQUE_PER_CALL })),
        on("Read", "src/a.rs"),
    ];
    let others = [exec("ls"), exec("make"), exec("git push"), on("Read", "src/b.rs")];
    let list = match of {
        "changes" => vec![&changes[..], &tests, &repeated[..1]],
        "repeated" => vec![&repeated[..], &changes, &tests[1..]],
        _ => vec![&changes[..], &tests, &repeated, &others],
    };
    list.concat()
}

fn a_call(of: &str) -> impl Strategy<Value = StoryMove> + use<> {
    let call = prop::sample::select(calls(of));
    let result = prop_oneof![3 => Just("one"), 1 => Just("two"), 1 => Just("error: no such thing")];
    let exit_code = prop::sample::select(vec![0_i64, 0, 1]);
    (call, result, exit_code).prop_map(|((tool, args), result, exit_code)| StoryMove::Call {
        tool,
        args,
        result,
        exit_code,
    })
}

fn a_usage() -> impl Strategy<Value = StoryMove> {
    let used = prop::sample::select(vec![10_u64, 30, 50, 70, 90, 120]);
    let model = prop::sample::select(vec!["m", "openai/m", "n"]);
    let window = prop_oneof![3 => Just(Some(100_u64)), 1 => Just(None)];
    (used, model, window).prop_map(|(used, model, window)| StoryMove::Usage { used, model, window })
}

fn an_iteration() -> impl Strategy<Value = StoryMove> {
    let phase = prop::sample::select(vec!["plan", "build"]);
    (phase, 0..2_u64, 0..2_u64).prop_map(|(phase, failed, changed)| StoryMove::Iteration {
        phase,
        failed,
        changed,
    })
}

fn a_compaction() -> impl Strategy<Value = StoryMove> {
    let freed = prop::option::of(prop::sample::select(vec![0_u64, 5, 20, 60]));
    freed.prop_map(|freed| StoryMove::Compaction { freed })
}

/// A story of a few moves, repeated in random order or as a cycle.
fn a_story(moves: impl Strategy<Value = StoryMove>) -> impl Strategy<Value = Vec<StoryMove>> {
    let order = prop::collection::vec(any::<prop::sample::Index>(), 5..70);
    (prop::collection::vec(moves, 1..5), order, any::<bool>()).prop_map(|(moves, order, round)| {
        let count = order.len();
        let any_order = order.iter().map(|at| at.get(&moves).clone());
        if round {
            moves.iter().cycle().take(count).cloned().collect()
        } else {
            any_order.collect()
        }
    })
}

fn a_limit(most: u64) -> impl Strategy<Value = Option<BudgetLimit>> {
    prop::option::weighted(
        0.4,
        (1..most, any::<bool>(), any::<bool>()).prop_map(|(max, soft, turn)| BudgetLimit {
            max,
            soft,
            per: if turn { LimitPeriod::Turn } else { LimitPeriod::Session },
        }),
    )
}

fn some_limits() -> impl Strategy<Value = SessionLimits> {
    let times = (a_limit(60), a_limit(60), a_limit(5));
    let tokens = (a_limit(500), a_limit(50), a_limit(500), a_limit(2_000));
    let tool = prop::sample::select(vec!["Bash", UNDECLARED_TOOL]).prop_map(ToOwned::to_owned);
    let tool_calls = prop::collection::btree_map(tool, a_limit(9), 0..2);
    (times, tokens, 1..4_u64, tool_calls).prop_map(
        |((steps, wall_seconds, iterations), tokens, iterations_extension, tool_calls)| {
            let (input_tokens, output_tokens, total_tokens, cost_usd) = tokens;
            let given = |(tool, limit): (String, Option<BudgetLimit>)| Some((tool, limit?));
            SessionLimits {
                steps,
                wall_seconds,
                cost_usd,
                input_tokens,
                output_tokens,
                total_tokens,
                iterations,
                iterations_extension,
                tool_calls: tool_calls.into_iter().filter_map(given).collect(),
            }
        },
    )
}

fn some_loops() -> impl Strategy<Value = LoopSettings> {
    let number = || 2..5_u16;
    let kinds =
        prop::sample::subsequence(vec![ToolKind::Think, ToolKind::Other, ToolKind::Read], 0..3);
    let pointers = prop::sample::subsequence(vec!["/nonce", "/command", "/q"], 0..2);
    let given = (
        [prop::bool::weighted(0.2), prop::bool::weighted(0.3)],
        [number(), number(), number()],
        [number(), number(), number()],
        prop::sample::select(vec![8_u16, 64]),
        pointers,
        kinds,
    );
    let given = given.prop_map(
        |([observe, strict], [low, high, most], [one, other, third], history, volatile, kinds)| {
            LoopSettings {
                mode: if observe { Mode::Observe } else { Mode::Enforce },
                profile: if strict { LoopProfile::Strict } else { LoopProfile::Graded },
                history,
                graded: GradedLevels { soft: low, hard: low + high, infinite: low + high + most },
                strict: StrictLevels {
                    window: one + other,
                    threshold: one,
                    override_retries: third - 1,
                },
                cycle: CycleLevels { period_max: other, repeats: most },
                errors: ErrorLevels { soft: third, hard: third + one },
                volatile: volatile.into_iter().map(ToOwned::to_owned).collect(),
                transparent: kinds,
                ..LoopSettings::default()
            }
        },
    );
    prop_oneof![1 => Just(LoopSettings::default()), 2 => given]
}

fn some_progress() -> impl Strategy<Value = Option<ProgressSettings>> {
    let steps = prop_oneof![6 => 1..6_u32, 1 => Just(50), 2 => Just(80)];
    let given = (1..4_u32, steps, any::<bool>());
    prop::option::weighted(
        0.8,
        given.prop_map(|(failures, steps_per_iteration, exempt)| ProgressSettings {
            max_consecutive_failures: failures,
            exempt_phases: exempt.then(|| "plan".to_owned()).into_iter().collect(),
            steps_per_iteration,
        }),
    )
}

fn a_context() -> impl Strategy<Value = Option<ContextThresholds>> {
    let window = prop::option::of(prop::sample::select(vec![50_u64, 100, 200]));
    let fills = prop::collection::vec(prop::sample::select(vec![10_u8, 40, 60, 80, 100]), 3);
    let given = (window, fills, prop::sample::select(vec![10_u8, 50]), 1..3_u32);
    prop::option::weighted(
        0.8,
        given.prop_map(|(window, mut fills, min_freed_pct, ineffective_max)| {
            fills.sort_unstable();
            let [warn, compact, block] = fills[..] else { unreachable!() };
            ContextThresholds {
                window,
                warn,
                compact,
                block,
                min_freed_pct,
                ineffective_max,
                ..ContextThresholds::default()
            }
        }),
    )
}

fn some_bits() -> impl Strategy<Value = DirtyBits> {
    let given = (
        prop::sample::subsequence(vec!["true", "ls", UNDECLARED_TOOL], 0..2),
        prop::sample::subsequence(vec!["true", "make"], 0..2),
        prop::sample::subsequence(vec!["src/**", "notes/**"], 0..2),
    );
    let owned = |list: Vec<&str>| list.into_iter().map(ToOwned::to_owned).collect();
    let given = given.prop_map(move |(tests, builds, docs)| DirtyBits {
        tests: owned(tests),
        builds: owned(builds),
        docs: owned(docs),
    });
    prop_oneof![Just(DirtyBits::default()), given]
}

fn a_check() -> impl Strategy<Value = Option<CompletionRequirement>> {
    let file = RequiredFile {
        path: "report.md".to_owned(),
        min_bytes: 0,
        json: false,
        newer_than_start: false,
    };
    prop_oneof![
        Just(None),
        Just(Some(CompletionRequirement::Clean)),
        Just(Some(CompletionRequirement::Files(vec![file])))
    ]
}

/// A declaration of a tool, as the loader lowers it.
fn some_tools() -> impl Strategy<Value = Vec<DeclaredTool>> {
    let kinds = vec![ToolKind::Other, ToolKind::Think, ToolKind::Read];
    let given = (prop::sample::select(kinds), any::<[bool; 3]>());
    let given = given.prop_map(|(kind, [transparent, read_only, known])| DeclaredTool {
        kind,
        transparent,
        read_only,
        commands: known.then(|| "true".to_owned()).into_iter().collect(),
        ..DeclaredTool::with_name(UNDECLARED_TOOL)
    });
    prop_oneof![1 => Just(vec![]), 3 => given.prop_map(|tool| vec![tool])]
}

fn some_models() -> impl Strategy<Value = ModelTables> {
    let name = prop::sample::select(vec!["m", "openai/m", "n"]).prop_map(ToOwned::to_owned);
    let prices = prop::collection::btree_map(name, 1..4_u64, 0..3);
    (prices, any::<bool>()).prop_map(|(prices, is_long)| {
        let price = |model: String, dollars: u64| {
            let each = dollars * 1_000_000;
            ModelPrice { model, input: each, output: each, cache_read: each, cache_creation: each }
        };
        let dated = if prices.is_empty() { "" } else { "2026-01-31" }.to_owned();
        let long = LongPromptPrice { above: 60, price: price("m".to_owned(), 5) };
        let long = (is_long && !prices.is_empty()).then_some(long).into_iter().collect();
        let prices = prices.into_iter().map(|(model, dollars)| price(model, dollars)).collect();
        ModelTables { dated, prices, long, windows: Vec::new() }
    })
}

fn a_definition() -> BoxedStrategy<Definition> {
    let effects = prop::sample::select(vec![RuleEffect::Deny, RuleEffect::Ask, RuleEffect::Warn]);
    let push_rule = prop::option::of((effects, any::<bool>()));
    let watched = (some_limits(), some_loops(), some_progress(), a_context(), some_bits());
    (watched, a_check(), some_tools(), some_models(), push_rule, prop::bool::weighted(0.2))
        .prop_map(
            |(
                (limits, loops, progress, context, dirty_bits),
                completion,
                tools,
                models,
                push_rule,
                observe,
            )| {
                let mode = if observe { Mode::Observe } else { Mode::Enforce };
                let rules = push_rule.map(|(effect, observed)| Rule {
                    mode: if observed { Mode::Observe } else { mode },
                    ..rule("push", effect)
                });
                Definition {
                    mode,
                    limits,
                    loops,
                    progress,
                    context,
                    dirty_bits,
                    completion,
                    tools,
                    models,
                    rules: Rules::new(rules.into_iter().collect()),
                    ..Definition::default()
                }
            },
        )
        .boxed()
}

/// A higher layer, a lower layer, and a story that can show a difference.
#[derive(Debug, Clone)]
pub(super) struct LayerCase {
    pub(super) high: Definition,
    pub(super) low: Definition,
    pub(super) client: &'static str,
    pub(super) moves: Vec<StoryMove>,
}

/// Cases in which each layer consists of some parts of a random definition.
fn cases(
    high: fn(Definition) -> Definition,
    low: fn(Definition) -> Definition,
    moves: impl Strategy<Value = StoryMove> + 'static,
) -> BoxedStrategy<LayerCase> {
    let client = prop::sample::select(vec!["stdio", "claude"]);
    (a_definition(), a_definition(), client, a_story(moves))
        .prop_map(move |(above, below, client, moves)| LayerCase {
            high: high(above),
            low: low(below),
            client,
            moves,
        })
        .boxed()
}

/// Cases in which two layers differ in only one value of one part. These cases find more than
/// layers that have nothing in common.
fn similar_cases(
    part: fn(Definition) -> Definition,
    moves: impl Strategy<Value = StoryMove> + 'static,
) -> BoxedStrategy<LayerCase> {
    let which = any::<prop::sample::Index>();
    (cases(part, part, moves), which)
        .prop_map(|(case, which)| LayerCase {
            low: with_one_value_of(&case.high, &case.low, which),
            ..case
        })
        .boxed()
}

/// A function that takes only the named fields, and `mode`, from a definition.
macro_rules! only {
    ($($field:ident),*) => {
        |given: Definition| Definition {
            $($field: given.$field,)*
            mode: given.mode,
            ..Definition::default()
        }
    };
}

/// Takes the length and the limit of iterations.
fn iterating(given: Definition) -> Definition {
    let SessionLimits { iterations, iterations_extension, .. } = given.limits;
    let limits = SessionLimits { iterations, iterations_extension, ..SessionLimits::default() };
    Definition { limits, ..only!(progress)(given) }
}

/// Takes the rules, with an enforced limit of one iteration.
fn counting(given: Definition) -> Definition {
    let iterations = Some(BudgetLimit { max: 1, soft: false, per: LimitPeriod::Session });
    let limits = SessionLimits { iterations, ..SessionLimits::default() };
    Definition { mode: Mode::Enforce, limits, ..only!(rules)(given) }
}

/// Takes only an enforced limit on steps.
fn stepping(given: Definition) -> Definition {
    let SessionLimits { steps, wall_seconds, total_tokens, .. } = given.limits;
    let limits = SessionLimits {
        steps: steps.or(wall_seconds).or(total_tokens),
        ..SessionLimits::default()
    };
    Definition { mode: Mode::Enforce, limits, ..only!()(given) }
}

pub(super) fn a_case() -> impl Strategy<Value = LayerCase> {
    let anything = || {
        prop_oneof![
            6 => a_call("all"),
            2 => a_usage(),
            1 => an_iteration(),
            1 => a_compaction(),
            1 => Just(StoryMove::Stop),
            1 => Just(StoryMove::Prompt),
        ]
    };
    let batches = prop::collection::vec(a_call("repeated"), 2..4).prop_map(StoryMove::Batch);
    let repeated = prop_oneof![6 => a_call("repeated"), 1 => batches];
    let changes = || prop_oneof![4 => a_call("changes"), 1 => Just(StoryMove::Stop)];
    let iterations = prop_oneof![6 => a_call("changes"), 1 => an_iteration()];
    let filling = || {
        prop_oneof![
            3 => a_usage(),
            3 => a_compaction(),
            1 => a_call("changes"),
            1 => Just(StoryMove::Stop),
        ]
    };
    let turns = prop_oneof![3 => a_call("all"), 1 => Just(StoryMove::Prompt)];
    prop_oneof![
        4 => similar_cases(only!(loops), repeated),
        1 => cases(only!(loops), only!(loops), a_call("repeated")),
        1 => similar_cases(only!(loops, rules), a_call("all")),
        2 => cases(only!(loops), only!(tools), a_call("repeated")),
        3 => similar_cases(only!(context), filling()),
        2 => cases(only!(context, completion), only!(context), filling()),
        4 => similar_cases(iterating, iterations),
        1 => cases(counting, only!(progress), a_call("changes")),
        3 => cases(only!(completion, dirty_bits), only!(dirty_bits, tools), changes()),
        2 => cases(only!(progress, dirty_bits), only!(dirty_bits, tools), changes()),
        2 => similar_cases(stepping, turns),
        2 => cases(only!(limits, models), only!(limits, models), anything()),
        1 => cases(only!(rules, limits), only!(rules, loops), anything()),
        1 => cases(|given| given, |given| given, anything()),
    ]
}

/// Returns `one` with one value of `other`, without checks and rules, which are always joined.
fn with_one_value_of(
    one: &Definition,
    other: &Definition,
    which: prop::sample::Index,
) -> Definition {
    type Set = fn(&mut Definition, &Definition);
    macro_rules! set {
        ($($field:ident).+) => {
            |near: &mut Definition, other: &Definition| {
                near.$($field).+ = other.$($field).+.clone();
            }
        };
        ($part:ident? $($field:ident).+) => {
            |near: &mut Definition, other: &Definition| {
                if let (Some(near), Some(other)) = (&mut near.$part, &other.$part) {
                    near.$($field).+ = other.$($field).+.clone();
                }
            }
        };
        ($part:ident.$of:ident? $($field:ident).+) => {
            |near: &mut Definition, other: &Definition| {
                if let (Some(near), Some(other)) = (&mut near.$part.$of, &other.$part.$of) {
                    near.$($field).+ = other.$($field).+.clone();
                }
            }
        };
    }
    let mut sets: Vec<Set> = Vec::new();
    if one.loops != LoopSettings::default() {
        sets.extend::<[Set; 10]>([
            set!(loops.mode),
            set!(loops.profile),
            set!(loops.history),
            set!(loops.strict),
            set!(loops.graded),
            set!(loops.cycle.period_max),
            set!(loops.cycle.repeats),
            set!(loops.errors),
            set!(loops.volatile),
            set!(loops.transparent),
        ]);
    }
    if one.progress.is_some() {
        sets.extend::<[Set; 3]>([
            set!(progress? max_consecutive_failures),
            set!(progress? exempt_phases),
            set!(progress? steps_per_iteration),
        ]);
    }
    if one.context.is_some() {
        sets.extend::<[Set; 6]>([
            set!(context? window),
            set!(context? warn),
            set!(context? compact),
            set!(context? block),
            set!(context? min_freed_pct),
            set!(context? ineffective_max),
        ]);
    }
    if one.limits.steps.is_some() {
        sets.extend::<[Set; 3]>([
            set!(limits.steps? max),
            set!(limits.steps? soft),
            set!(limits.steps? per),
        ]);
    }
    if one.limits.iterations.is_some() {
        sets.extend::<[Set; 2]>([set!(limits.iterations? max), set!(limits.iterations_extension)]);
    }
    let mut near = Definition { completion: None, rules: Rules::default(), ..one.clone() };
    if !sets.is_empty() {
        which.get(&sets)(&mut near, other);
    }
    if let Some(context) = &mut near.context {
        context.compact = context.compact.min(context.block);
        context.warn = context.warn.min(context.compact);
    }
    near
}
