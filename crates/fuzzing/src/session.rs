//! Sessions: any events in any order, in any world.

mod moves;
mod world;

use std::sync::{Arc, LazyLock};

use arbitrary::Unstructured;
use jackline_definition::load;
use jackline_engine::bounds::STATE_BYTES_MAX;
use jackline_engine::definition::{
    Checker, Context, Limit, Limits, Per, Policy, PolicyRule, Rule, Rules,
};
use jackline_engine::facts::{OffFact, QUERIES_MAX, ROUNDS_MAX};
use jackline_engine::json::parse_strict;
use jackline_engine::wire::parse_recorded;
use jackline_engine::{
    Decision, Definition, Event, Facts, Mode, Record, Session, SessionPhase, Verdict,
};

use crate::in_time;
use moves::Move;
use world::World;

/// How many events one input may bring; a move may be repeated.
const EVENTS_MAX: usize = 120;

/// How often the state is looked at on the way.
const LOOK_EVERY: usize = 16;

/// How many of the last records are read back from JSON; what comes before is
/// the end of other inputs.
const REPLAYED: usize = 2;

/// A session answers anything in the same way twice, stays small, and comes
/// back the same from its saved state and from its journal.
pub fn session(bytes: &[u8]) {
    let (definition, moves) = parse(bytes);
    let played = in_time(|| play(&definition, &moves));
    check_restored(&played);
    check_replayed(&played);
    check_over(&played);
}

/// The first move chooses the definition, the others are played.
fn parse(bytes: &[u8]) -> (Arc<Definition>, Vec<Move>) {
    let mut input = Unstructured::new(bytes);
    let setting: Move = input.arbitrary().unwrap_or_default();
    let chosen = DEFINITIONS.get(usize::from(setting.kind) % DEFINITIONS.len());
    let mut moves = Vec::new();
    while !input.is_empty() && moves.len() < EVENTS_MAX {
        let Ok(next) = input.arbitrary::<Move>() else { break };
        next.spread(&mut moves);
    }
    moves.truncate(EVENTS_MAX);
    (chosen.map(Arc::clone).unwrap_or_default(), moves)
}

/// Every guard that is built, with limits that are out of reach, and with such
/// that are soon reached; holding, and only observing.
static DEFINITIONS: LazyLock<[Arc<Definition>; 3]> = LazyLock::new(|| {
    let wide = load(include_bytes!("../../bench/definition.yaml"), "definition.yaml").unwrap();
    let tight = tighten(wide.clone());
    let rules = tight.rules.iter().map(|rule| Rule { mode: Mode::Observe, ..rule.clone() });
    let rules = Rules::new(rules.collect());
    let observing = Definition { mode: Mode::Observe, rules, ..tight.clone() };
    [wide, tight, observing].map(Arc::new)
});

/// An agent that goes in circles is held, and others can go on.
const STUCK: &[u8] = b"
loops: { graded: { soft: 2, hard: 3, infinite: 30 } }
models: [ { provider: scripted, model: a }, { worker: claude } ]
advisor: { models: [ { provider: scripted, model: b } ] }
";

fn tighten(mut definition: Definition) -> Definition {
    let limit = |max| Some(Limit { max, soft: false, per: Per::Session });
    let soft = |max| Some(Limit { max, soft: true, per: Per::Turn });
    definition.limits = Limits {
        steps: limit(40),
        wall_seconds: limit(100_000),
        input_tokens: soft(1_000),
        output_tokens: limit(100_000),
        total_tokens: Some(Limit { max: 10_000, soft: false, per: Per::Turn }),
        cost_usd: soft(1_000_000),
        iterations: limit(3),
        iterations_extension: 2,
        tool_calls: vec![("Bash".to_owned(), Limit { max: 9, soft: false, per: Per::Turn })],
    };
    definition.context = Some(Context { window: Some(100_000), ..Context::default() });
    let held = load(STUCK, "stuck.yaml").unwrap();
    definition.loops = held.loops;
    definition.choices = held.choices;
    definition.advisor = held.advisor;
    let custom = |name: &str| PolicyRule::Custom { name: name.to_owned() };
    let custom = ["first", "second"].map(|name| Policy { section: None, rule: custom(name) });
    definition.policies.extend(custom);
    let checker = Checker::Custom { name: "third".to_owned() };
    let command =
        Checker::Command { number: 0, line: "make".to_owned(), timeout_seconds: 9, trusted: true };
    let others = definition.completion.take();
    definition.completion =
        Some(Checker::All(others.into_iter().chain([checker, command]).collect()));
    definition
}

/// A session, and everything that was recorded of it.
struct Played {
    /// What it began with; people reload it.
    definition: Arc<Definition>,
    session: Session,
    records: Vec<(Event, Facts, Verdict)>,
}

fn play(definition: &Arc<Definition>, moves: &[Move]) -> Played {
    let mut session = Session::new(Arc::clone(definition), Arc::default());
    let mut records = Vec::with_capacity(moves.len());
    let mut world = World::default();
    for (number, next) in moves.iter().enumerate() {
        world.pass(*next);
        let event = next.event(&world);
        let facts = gather(&session, &event, &world);
        let verdict = session.decide(&event, &facts);
        assert_eq!(verdict, session.decide(&event, &facts), "the same answer to {event:?}");
        check_verdict(&verdict, session.seq() + 1, &event);
        let seq = session.seq() + 1;
        session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        if number % LOOK_EVERY == 0 {
            check_size(&session);
            check_off(&session, &event, &facts);
        }
        records.push((event, facts, verdict));
    }
    Played { definition: Arc::clone(definition), session, records }
}

/// Asks until there is nothing left to ask, which is soon.
fn gather(session: &Session, event: &Event, world: &World) -> Facts {
    let mut facts = world.facts(event);
    for _ in 0..ROUNDS_MAX {
        let queries = session.needs(event, &facts);
        assert!(queries.iter().count() <= QUERIES_MAX, "too many questions for {event:?}");
        if queries.is_empty() {
            return facts;
        }
        for query in queries.batch(&facts) {
            facts.learn(&query, world.answer(&query)).unwrap();
        }
    }
    let open = session.needs(event, &facts);
    assert!(open.is_empty(), "{open:?} is asked again for {event:?}");
    facts
}

fn check_verdict(verdict: &Verdict, seq: u64, event: &Event) {
    assert_eq!(verdict.seq, Some(seq));
    let objects = verdict.decision >= Decision::Ask;
    assert!(!objects || !verdict.violations.is_empty(), "{verdict:?} to {event:?} has no reason");
    for violation in &verdict.violations {
        assert!(!violation.message.is_empty(), "{violation:?} says nothing");
    }
}

/// While a person has switched the guard off, nothing holds.
fn check_off(session: &Session, event: &Event, facts: &Facts) {
    let (by, why) = (String::new(), String::new());
    let off = OffFact { until: facts.now.wall.plus_ms(1), by, why };
    let facts = Facts { off: Some(off), ..facts.clone() };
    if !facts.is_off() {
        // At the end of all time nothing lasts any longer.
        return;
    }
    let verdict = session.decide(event, &facts);
    assert!(verdict.lets_run(), "{verdict:?} to {event:?} while the guard is off");
    assert!(verdict.violations.iter().all(|violation| !violation.enforced), "{verdict:?}");
    assert!(session.gives_back(event, &facts).is_empty(), "given back while the guard is off");
}

fn check_size(session: &Session) -> Vec<u8> {
    let saved = session.snapshot();
    assert!(saved.len() <= STATE_BYTES_MAX, "the state takes {} bytes", saved.len());
    saved
}

/// A saved session that is restored is the same session.
fn check_restored(played: &Played) {
    let session = &played.session;
    let saved = check_size(session);
    let (definition, place) = (Arc::clone(session.definition()), Arc::clone(session.place()));
    let restored = Session::restore(definition, place, &saved).unwrap();
    assert_eq!(restored.snapshot(), saved, "a restored state is the one that was saved");
    if let Some((event, facts, _)) = played.records.last() {
        let (decided, again) = (session.decide(event, facts), restored.decide(event, facts));
        assert_eq!(again, decided, "a restored session answers {event:?}");
    }
}

/// What was recorded folds to the same session, and what the journal kept as
/// JSON decides as it did the first time.
fn check_replayed(played: &Played) {
    let session = &played.session;
    let mut again = Session::new(Arc::clone(&played.definition), Arc::default());
    let folded = played.records.len().saturating_sub(REPLAYED);
    for (number, (event, facts, verdict)) in played.records.iter().enumerate() {
        let record = Record { seq: again.seq() + 1, event, facts, verdict };
        if number < folded { again.apply(&record) } else { replay(&mut again, &record) }
    }
    assert_eq!(again.snapshot(), session.snapshot(), "replay ends in the same state");
}

fn replay(session: &mut Session, record: &Record<'_>) {
    let kept = serde_json::to_string(record.event).unwrap();
    let event = parse_recorded(parse_strict(kept.as_bytes()).unwrap()).unwrap();
    assert_eq!(&event, record.event, "kept as {kept}");
    let kept = serde_json::to_string(record.facts).unwrap();
    let facts: Facts = serde_json::from_str(&kept).unwrap();
    let kept = serde_json::to_string(record.verdict).unwrap();
    let verdict: Verdict = serde_json::from_str(&kept).unwrap();
    let decided = serde_json::to_string(&session.decide(&event, &facts)).unwrap();
    assert_eq!(decided, kept, "replay of {event:?}");
    session.apply(&Record { seq: record.seq, event: &event, facts: &facts, verdict: &verdict });
}

/// A session that was stopped stays so, whatever comes.
fn check_over(played: &Played) {
    let summary = played.session.summary();
    if summary.phase != SessionPhase::Stopped {
        return;
    }
    let mut world = World::default();
    for kind in moves::KINDS {
        let probe = Move::of(*kind);
        world.pass(probe);
        let event = probe.event(&world);
        let verdict = played.session.decide(&event, &world.facts(&event));
        let stays = verdict.stop == summary.stop && verdict.decision == Decision::Stop;
        assert!(stays, "{verdict:?} to {event:?} after {:?}", summary.stop);
    }
}
