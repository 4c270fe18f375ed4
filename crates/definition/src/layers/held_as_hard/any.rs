//! Any two layers, and any story that can tell whether one takes from the other.

use jackline_engine::definition::{
    Checker, Context, Cycle, DirtyBits, Effect, Errors, Graded, Limit, Limits, LongPrice, Loops,
    Models, Per, Price, Profile, Progress, RequiredFile, Rule, Rules, Strict, Tool,
};
use jackline_engine::{Definition, Kind, Mode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tests::rule;
use super::{Move, NEW, STRANGE};

/// Calls of which some are about one thing, by a name for that.
fn calls(of: &str) -> Vec<(&'static str, Value)> {
    let exec = |line: &str| ("Bash", json!({ "command": line }));
    let on = |tool, path: &str| (tool, json!({ "file_path": path }));
    let strange = |args| (STRANGE, args);
    let changes = [on("Edit", "src/a.rs"), on("Edit", "notes/a.txt")];
    let tests = [exec("pytest"), exec("true")];
    let repeated = [
        strange(json!({ "q": "a" })),
        strange(json!({ "q": "b" })),
        strange(json!({ "q": "a", "nonce": NEW })),
        ("TodoWrite", json!({ "todos": "a", "nonce": NEW })),
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

fn a_call(of: &str) -> impl Strategy<Value = Move> + use<> {
    let call = prop::sample::select(calls(of));
    let result = prop_oneof![3 => Just("one"), 1 => Just("two"), 1 => Just("error: no such thing")];
    let exit_code = prop::sample::select(vec![0_i64, 0, 1]);
    (call, result, exit_code).prop_map(|((tool, args), result, exit_code)| Move::Call {
        tool,
        args,
        result,
        exit_code,
    })
}

fn a_usage() -> impl Strategy<Value = Move> {
    let used = prop::sample::select(vec![10_u64, 30, 50, 70, 90, 120]);
    let model = prop::sample::select(vec!["m", "openai/m", "n"]);
    let window = prop_oneof![3 => Just(Some(100_u64)), 1 => Just(None)];
    (used, model, window).prop_map(|(used, model, window)| Move::Usage { used, model, window })
}

fn an_iteration() -> impl Strategy<Value = Move> {
    let phase = prop::sample::select(vec!["plan", "build"]);
    (phase, 0..2_u64, 0..2_u64).prop_map(|(phase, failed, changed)| Move::Iteration {
        phase,
        failed,
        changed,
    })
}

fn a_compaction() -> impl Strategy<Value = Move> {
    let freed = prop::option::of(prop::sample::select(vec![0_u64, 5, 20, 60]));
    freed.prop_map(|freed| Move::Compaction { freed })
}

/// A few moves, made again and again, in any order or round and round.
fn a_story(moves: impl Strategy<Value = Move>) -> impl Strategy<Value = Vec<Move>> {
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

fn a_limit(most: u64) -> impl Strategy<Value = Option<Limit>> {
    prop::option::weighted(
        0.4,
        (1..most, any::<bool>(), any::<bool>()).prop_map(|(max, soft, turn)| Limit {
            max,
            soft,
            per: if turn { Per::Turn } else { Per::Session },
        }),
    )
}

fn some_limits() -> impl Strategy<Value = Limits> {
    let times = (a_limit(60), a_limit(60), a_limit(5));
    let tokens = (a_limit(500), a_limit(50), a_limit(500), a_limit(2_000));
    let tool = prop::sample::select(vec!["Bash", STRANGE]).prop_map(ToOwned::to_owned);
    let tool_calls = prop::collection::btree_map(tool, a_limit(9), 0..2);
    (times, tokens, 1..4_u64, tool_calls).prop_map(
        |((steps, wall_seconds, iterations), tokens, iterations_extension, tool_calls)| {
            let (input_tokens, output_tokens, total_tokens, cost_usd) = tokens;
            let given = |(tool, limit): (String, Option<Limit>)| Some((tool, limit?));
            Limits {
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

fn some_loops() -> impl Strategy<Value = Loops> {
    let number = || 2..5_u16;
    let kinds = prop::sample::subsequence(vec![Kind::Think, Kind::Other, Kind::Read], 0..3);
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
            Loops {
                mode: if observe { Mode::Observe } else { Mode::Enforce },
                profile: if strict { Profile::Strict } else { Profile::Graded },
                history,
                graded: Graded { soft: low, hard: low + high, infinite: low + high + most },
                strict: Strict { window: one + other, threshold: one, override_retries: third - 1 },
                cycle: Cycle { period_max: other, repeats: most },
                errors: Errors { soft: third, hard: third + one },
                volatile: volatile.into_iter().map(ToOwned::to_owned).collect(),
                transparent: kinds,
            }
        },
    );
    prop_oneof![1 => Just(Loops::default()), 2 => given]
}

fn some_progress() -> impl Strategy<Value = Option<Progress>> {
    let steps = prop_oneof![6 => 1..6_u32, 1 => Just(50), 2 => Just(80)];
    let given = (1..4_u32, steps, any::<bool>());
    prop::option::weighted(
        0.8,
        given.prop_map(|(failures, steps_per_iteration, exempt)| Progress {
            max_consecutive_failures: failures,
            exempt_phases: exempt.then(|| "plan".to_owned()).into_iter().collect(),
            steps_per_iteration,
        }),
    )
}

fn a_context() -> impl Strategy<Value = Option<Context>> {
    let window = prop::option::of(prop::sample::select(vec![50_u64, 100, 200]));
    let fills = prop::collection::vec(prop::sample::select(vec![10_u8, 40, 60, 80, 100]), 3);
    let given = (window, fills, prop::sample::select(vec![10_u8, 50]), 1..3_u32);
    prop::option::weighted(
        0.8,
        given.prop_map(|(window, mut fills, min_freed_pct, ineffective_max)| {
            fills.sort_unstable();
            let [warn, compact, block] = fills[..] else { unreachable!() };
            Context { window, warn, compact, block, min_freed_pct, ineffective_max }
        }),
    )
}

fn some_bits() -> impl Strategy<Value = DirtyBits> {
    let given = (
        prop::sample::subsequence(vec!["true", "ls", STRANGE], 0..2),
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

fn a_check() -> impl Strategy<Value = Option<Checker>> {
    let file = RequiredFile {
        path: "report.md".to_owned(),
        min_bytes: 0,
        json: false,
        newer_than_start: false,
    };
    prop_oneof![Just(None), Just(Some(Checker::Clean)), Just(Some(Checker::Files(vec![file])))]
}

/// What is known of a tool, as the loader lowers it.
fn some_tools() -> impl Strategy<Value = Vec<Tool>> {
    let kinds = vec![Kind::Other, Kind::Think, Kind::Read];
    let given = (prop::sample::select(kinds), any::<[bool; 3]>());
    let given = given.prop_map(|(kind, [transparent, read_only, known])| Tool {
        kind,
        transparent,
        read_only,
        commands: known.then(|| "true".to_owned()).into_iter().collect(),
        ..Tool::named(STRANGE)
    });
    prop_oneof![1 => Just(vec![]), 3 => given.prop_map(|tool| vec![tool])]
}

fn some_models() -> impl Strategy<Value = Models> {
    let name = prop::sample::select(vec!["m", "openai/m", "n"]).prop_map(ToOwned::to_owned);
    let prices = prop::collection::btree_map(name, 1..4_u64, 0..3);
    (prices, any::<bool>()).prop_map(|(prices, is_long)| {
        let price = |model: String, dollars: u64| {
            let each = dollars * 1_000_000;
            Price { model, input: each, output: each, cache_read: each, cache_creation: each }
        };
        let dated = if prices.is_empty() { "" } else { "2026-01-31" }.to_owned();
        let long = LongPrice { above: 60, price: price("m".to_owned(), 5) };
        let long = (is_long && !prices.is_empty()).then_some(long).into_iter().collect();
        let prices = prices.into_iter().map(|(model, dollars)| price(model, dollars)).collect();
        Models { dated, prices, long, windows: Vec::new() }
    })
}

fn a_definition() -> BoxedStrategy<Definition> {
    let effects = prop::sample::select(vec![Effect::Deny, Effect::Ask, Effect::Warn]);
    let said = prop::option::of((effects, any::<bool>()));
    let watched = (some_limits(), some_loops(), some_progress(), a_context(), some_bits());
    (watched, a_check(), some_tools(), some_models(), said, prop::bool::weighted(0.2))
        .prop_map(
            |(
                (limits, loops, progress, context, dirty_bits),
                completion,
                tools,
                models,
                said,
                observe,
            )| {
                let mode = if observe { Mode::Observe } else { Mode::Enforce };
                let rules = said.map(|(effect, observed)| Rule {
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

/// What a case is about: a layer, one below it, and a story that can tell.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) high: Definition,
    pub(super) low: Definition,
    pub(super) client: &'static str,
    pub(super) moves: Vec<Move>,
}

/// Cases in which two layers have these parts of two definitions.
fn cases(
    high: fn(Definition) -> Definition,
    low: fn(Definition) -> Definition,
    moves: impl Strategy<Value = Move> + 'static,
) -> BoxedStrategy<Case> {
    let client = prop::sample::select(vec!["stdio", "claude"]);
    (a_definition(), a_definition(), client, a_story(moves))
        .prop_map(move |(above, below, client, moves)| Case {
            high: high(above),
            low: low(below),
            client,
            moves,
        })
        .boxed()
}

/// Cases in which two layers differ in one value of one part: these show more
/// than such that say nothing alike.
fn near(
    part: fn(Definition) -> Definition,
    moves: impl Strategy<Value = Move> + 'static,
) -> BoxedStrategy<Case> {
    let which = any::<prop::sample::Index>();
    (cases(part, part, moves), which)
        .prop_map(|(case, which)| Case { low: in_one(&case.high, &case.low, which), ..case })
        .boxed()
}

/// Everything that `given` does not name is left out.
macro_rules! only {
    ($($field:ident),*) => {
        |given: Definition| Definition {
            $($field: given.$field,)*
            mode: given.mode,
            ..Definition::default()
        }
    };
}

/// A definition that says how long iterations are, and how many there may be.
fn iterating(given: Definition) -> Definition {
    let Limits { iterations, iterations_extension, .. } = given.limits;
    let limits = Limits { iterations, iterations_extension, ..Limits::default() };
    Definition { limits, ..only!(progress)(given) }
}

/// One that only says how many, and holds.
fn counting(given: Definition) -> Definition {
    let iterations = Some(Limit { max: 1, soft: false, per: Per::Session });
    let limits = Limits { iterations, ..Limits::default() };
    Definition { mode: Mode::Enforce, limits, ..only!(rules)(given) }
}

/// One that limits steps alone.
fn stepping(given: Definition) -> Definition {
    let Limits { steps, wall_seconds, total_tokens, .. } = given.limits;
    let limits = Limits { steps: steps.or(wall_seconds).or(total_tokens), ..Limits::default() };
    Definition { mode: Mode::Enforce, limits, ..only!()(given) }
}

pub(super) fn a_case() -> impl Strategy<Value = Case> {
    let anything = || {
        prop_oneof![
            6 => a_call("all"),
            2 => a_usage(),
            1 => an_iteration(),
            1 => a_compaction(),
            1 => Just(Move::Stop),
            1 => Just(Move::Prompt),
        ]
    };
    let batches = prop::collection::vec(a_call("repeated"), 2..4).prop_map(Move::Batch);
    let repeated = prop_oneof![6 => a_call("repeated"), 1 => batches];
    let changes = || prop_oneof![4 => a_call("changes"), 1 => Just(Move::Stop)];
    let iterations = prop_oneof![6 => a_call("changes"), 1 => an_iteration()];
    let filling = || {
        prop_oneof![
            3 => a_usage(),
            3 => a_compaction(),
            1 => a_call("changes"),
            1 => Just(Move::Stop),
        ]
    };
    let turns = prop_oneof![3 => a_call("all"), 1 => Just(Move::Prompt)];
    prop_oneof![
        4 => near(only!(loops), repeated),
        1 => cases(only!(loops), only!(loops), a_call("repeated")),
        1 => near(only!(loops, rules), a_call("all")),
        2 => cases(only!(loops), only!(tools), a_call("repeated")),
        3 => near(only!(context), filling()),
        2 => cases(only!(context, completion), only!(context), filling()),
        4 => near(iterating, iterations),
        1 => cases(counting, only!(progress), a_call("changes")),
        3 => cases(only!(completion, dirty_bits), only!(dirty_bits, tools), changes()),
        2 => cases(only!(progress, dirty_bits), only!(dirty_bits, tools), changes()),
        2 => near(stepping, turns),
        2 => cases(only!(limits, models), only!(limits, models), anything()),
        1 => cases(only!(rules, limits), only!(rules, loops), anything()),
        1 => cases(|given| given, |given| given, anything()),
    ]
}

/// What one layer says with one value of another; checks and rules aside, which
/// add up.
fn in_one(one: &Definition, other: &Definition, which: prop::sample::Index) -> Definition {
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
    if one.loops != Loops::default() {
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
