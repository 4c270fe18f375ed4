//! Checks sessions with any events in any order and with any facts.

mod random_world;
mod session_moves;

use std::sync::{Arc, LazyLock};

use arbitrary::Unstructured;
use jackline_definition::load;
use jackline_engine::bounds::STATE_BYTES_MAX;
use jackline_engine::definition::{
    BudgetLimit, CompletionRequirement, ContextThresholds, LimitPeriod, Policy, PolicyRule, Rule,
    Rules, SessionLimits,
};
use jackline_engine::facts::{OffFact, QUERIES_MAX, ROUNDS_MAX};
use jackline_engine::json::parse_strict;
use jackline_engine::wire::parse_recorded;
use jackline_engine::{
    Decision, Definition, Event, Facts, Mode, Record, Session, SessionPhase, Verdict,
};

use crate::run_in_time;
use random_world::RandomWorld;
use session_moves::SessionMove;

/// How many events one input may have. A move may be repeated.
const EVENTS_MAX: usize = 120;

/// How many events pass between two checks of the state.
const CHECK_INTERVAL: usize = 16;

/// How many of the last records are replayed from JSON. Other inputs end with the earlier ones.
const REPLAYED_RECORDS: usize = 2;

/// A session gives the same answer twice, stays small, and can be restored from its saved state and
/// from its journal.
pub fn session(bytes: &[u8]) {
    let (definition, moves) = parse(bytes);
    let story = run_in_time(|| play(&definition, &moves));
    check_restored(&story);
    check_replayed(&story);
    check_stopped(&story);
}

/// The first move chooses the definition. The others are played.
fn parse(bytes: &[u8]) -> (Arc<Definition>, Vec<SessionMove>) {
    let mut input = Unstructured::new(bytes);
    let setting: SessionMove = input.arbitrary().unwrap_or_default();
    let chosen = DEFINITIONS.get(usize::from(setting.kind) % DEFINITIONS.len());
    let mut moves = Vec::new();
    while !input.is_empty() && moves.len() < EVENTS_MAX {
        let Ok(next) = input.arbitrary::<SessionMove>() else { break };
        next.spread(&mut moves);
    }
    moves.truncate(EVENTS_MAX);
    (chosen.map(Arc::clone).unwrap_or_default(), moves)
}

/// Definitions with every guard: with unreachable limits, with limits that are soon reached, and
/// the latter in mode `observe`.
static DEFINITIONS: LazyLock<[Arc<Definition>; 3]> = LazyLock::new(|| {
    let wide = load(include_bytes!("../../bench/definition.yaml"), "definition.yaml").unwrap();
    let tight = tighten(wide.clone());
    let rules = tight.rules.iter().map(|rule| Rule { mode: Mode::Observe, ..rule.clone() });
    let rules = Rules::new(rules.collect());
    let observing = Definition { mode: Mode::Observe, rules, ..tight.clone() };
    [wide, tight, observing].map(Arc::new)
});

/// An agent in a loop is paused, and a fallback model can continue.
const LOOP_DEFINITION: &[u8] = b"
loops: { graded: { soft: 2, hard: 3, infinite: 30 } }
models: [ { provider: scripted, model: a }, { worker: claude } ]
advisor: { models: [ { provider: scripted, model: b } ] }
";

fn tighten(mut definition: Definition) -> Definition {
    let limit = |max| Some(BudgetLimit { max, soft: false, per: LimitPeriod::Session });
    let soft = |max| Some(BudgetLimit { max, soft: true, per: LimitPeriod::Turn });
    definition.limits = SessionLimits {
        steps: limit(40),
        wall_seconds: limit(100_000),
        input_tokens: soft(1_000),
        output_tokens: limit(100_000),
        total_tokens: Some(BudgetLimit { max: 10_000, soft: false, per: LimitPeriod::Turn }),
        cost_usd: soft(1_000_000),
        iterations: limit(3),
        iterations_extension: 2,
        tool_calls: vec![(
            "Bash".to_owned(),
            BudgetLimit { max: 9, soft: false, per: LimitPeriod::Turn },
        )],
    };
    definition.context =
        Some(ContextThresholds { window: Some(100_000), ..ContextThresholds::default() });
    let stuck = load(LOOP_DEFINITION, "stuck.yaml").unwrap();
    definition.loops = stuck.loops;
    definition.choices = stuck.choices;
    definition.advisor = stuck.advisor;
    let custom = |name: &str| PolicyRule::Custom { name: name.to_owned() };
    let custom = ["first", "second"].map(|name| Policy { section: None, rule: custom(name) });
    definition.policies.extend(custom);
    let checker = CompletionRequirement::Custom { name: "third".to_owned() };
    let command = CompletionRequirement::Command {
        number: 0,
        line: "make".to_owned(),
        timeout_seconds: 9,
        trusted: true,
    };
    let others = definition.completion.take();
    definition.completion =
        Some(CompletionRequirement::All(others.into_iter().chain([checker, command]).collect()));
    definition
}

/// A session and its records.
struct FuzzedSession {
    /// The first definition. A reload may change it.
    definition: Arc<Definition>,
    session: Session,
    records: Vec<(Event, Facts, Verdict)>,
}

fn play(definition: &Arc<Definition>, moves: &[SessionMove]) -> FuzzedSession {
    let mut session = Session::new(Arc::clone(definition), Arc::default());
    let mut records = Vec::with_capacity(moves.len());
    let mut world = RandomWorld::default();
    for (number, next) in moves.iter().enumerate() {
        world.advance(*next);
        let event = next.event(&world);
        let facts = gather(&session, &event, &world);
        let verdict = session.decide(&event, &facts);
        assert_eq!(verdict, session.decide(&event, &facts), "the same verdict for {event:?}");
        check_verdict(&verdict, session.seq() + 1, &event);
        let seq = session.seq() + 1;
        session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        if number % CHECK_INTERVAL == 0 {
            check_size(&session);
            check_off(&session, &event, &facts);
        }
        records.push((event, facts, verdict));
    }
    FuzzedSession { definition: Arc::clone(definition), session, records }
}

/// Answers queries until none is left. That must take few rounds.
fn gather(session: &Session, event: &Event, world: &RandomWorld) -> Facts {
    let mut facts = world.facts(event);
    for _ in 0..ROUNDS_MAX {
        let queries = session.needs(event, &facts);
        assert!(queries.iter().count() <= QUERIES_MAX, "too many queries for {event:?}");
        if queries.is_empty() {
            return facts;
        }
        for query in queries.into_batch(&facts) {
            facts.add_answer(&query, world.answer(&query)).unwrap();
        }
    }
    let open = session.needs(event, &facts);
    assert!(open.is_empty(), "{open:?} is still open for {event:?}");
    facts
}

fn check_verdict(verdict: &Verdict, seq: u64, event: &Event) {
    assert_eq!(verdict.seq, Some(seq));
    let needs_reason = verdict.decision >= Decision::Ask;
    assert!(
        !needs_reason || !verdict.violations.is_empty(),
        "{verdict:?} for {event:?} has no reason"
    );
    for violation in &verdict.violations {
        assert!(!violation.message.is_empty(), "{violation:?} has no message");
    }
}

/// While a person has switched the guard off, nothing is enforced.
fn check_off(session: &Session, event: &Event, facts: &Facts) {
    let (by, why) = (String::new(), String::new());
    let off = OffFact { until: facts.now.wall.plus_ms(1), by, why };
    let facts = Facts { off: Some(off), ..facts.clone() };
    if !facts.is_off() {
        // At the maximum time the interval is empty.
        return;
    }
    let verdict = session.decide(event, &facts);
    assert!(verdict.allows_run(), "{verdict:?} for {event:?} while the guard is off");
    assert!(verdict.violations.iter().all(|violation| !violation.enforced), "{verdict:?}");
    assert!(
        session.files_to_restore(event, &facts).is_empty(),
        "files restored while the guard is off"
    );
}

fn check_size(session: &Session) -> Vec<u8> {
    let saved = session.snapshot();
    assert!(saved.len() <= STATE_BYTES_MAX, "the state takes {} bytes", saved.len());
    saved
}

/// A restored session is equal to the saved one.
fn check_restored(story: &FuzzedSession) {
    let session = &story.session;
    let saved = check_size(session);
    let (definition, location) = (Arc::clone(session.definition()), Arc::clone(session.location()));
    let restored = Session::restore(definition, location, &saved).unwrap();
    assert_eq!(restored.snapshot(), saved, "a restored state is the one that was saved");
    if let Some((event, facts, _)) = story.records.last() {
        let (decided, restored_verdict) =
            (session.decide(event, facts), restored.decide(event, facts));
        assert_eq!(restored_verdict, decided, "a restored session decides {event:?}");
    }
}

/// Applying the records gives the same session, and the records that were stored as JSON give the
/// same verdicts.
fn check_replayed(story: &FuzzedSession) {
    let session = &story.session;
    let mut replayed = Session::new(Arc::clone(&story.definition), Arc::default());
    let folded = story.records.len().saturating_sub(REPLAYED_RECORDS);
    for (number, (event, facts, verdict)) in story.records.iter().enumerate() {
        let record = Record { seq: replayed.seq() + 1, event, facts, verdict };
        if number < folded { replayed.apply(&record) } else { replay(&mut replayed, &record) }
    }
    assert_eq!(replayed.snapshot(), session.snapshot(), "replay ends in the same state");
}

fn replay(session: &mut Session, record: &Record<'_>) {
    let json_text = serde_json::to_string(record.event).unwrap();
    let event = parse_recorded(parse_strict(json_text.as_bytes()).unwrap()).unwrap();
    assert_eq!(&event, record.event, "stored as {json_text}");
    let json_text = serde_json::to_string(record.facts).unwrap();
    let facts: Facts = serde_json::from_str(&json_text).unwrap();
    let json_text = serde_json::to_string(record.verdict).unwrap();
    let verdict: Verdict = serde_json::from_str(&json_text).unwrap();
    let decided = serde_json::to_string(&session.decide(&event, &facts)).unwrap();
    assert_eq!(decided, json_text, "replay of {event:?}");
    session.apply(&Record { seq: record.seq, event: &event, facts: &facts, verdict: &verdict });
}

/// A stopped session stays stopped after any event.
fn check_stopped(story: &FuzzedSession) {
    let summary = story.session.summary();
    if summary.phase != SessionPhase::Stopped {
        return;
    }
    let mut world = RandomWorld::default();
    for kind in session_moves::KINDS {
        let probe = SessionMove::of(*kind);
        world.advance(probe);
        let event = probe.event(&world);
        let verdict = story.session.decide(&event, &world.facts(&event));
        let stays = verdict.stop == summary.stop && verdict.decision == Decision::Stop;
        assert!(stays, "{verdict:?} for {event:?} after {:?}", summary.stop);
    }
}
