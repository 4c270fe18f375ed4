//! Measures `decide` and `apply` with every guard.

use std::sync::Arc;
use std::time::Instant;

use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind};
use jackline_engine::{
    Definition, Event, EventKind, Facts, Now, Record, Session, Timestamp, ToolProposed, observe,
};

use crate::limits::Row;
use crate::report::{BenchReport, median};
use crate::{BenchError, cedar, mix};

const EVENTS: usize = 4000;
const LONG_SESSION_EVENTS: u64 = 1_000_000;
const ROUNDS: usize = 15;

pub(crate) fn definition() -> Result<Definition, BenchError> {
    Ok(jackline_definition::load(include_bytes!("../definition.yaml"), "definition.yaml")?)
}

pub(crate) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    let definition = Arc::new(definition()?);
    let events: Vec<(Event, Facts)> = mix::parsed_events(EVENTS, &definition)?
        .into_iter()
        .zip(0..)
        .map(|(event, number)| {
            let facts = make_facts(&event, number);
            (event, facts)
        })
        .collect();

    // Both run in turns, and the fastest round of each counts, because other processes use the
    // machine too.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(measure_session(&definition, &events));
        theirs.push(cedar::measure(events.len())?);
    }
    let (ours, theirs) = (fastest(ours), fastest(theirs));
    let bash = |event: &Event| matches!(&event.kind, EventKind::ToolProposed(ToolProposed { tool, .. }) if tool.as_str() == "Bash");
    let timed = || ours.iter().copied().zip(&events);
    let lines: Vec<f64> = timed().filter(|(_, (e, _))| bash(e)).map(|(ns, _)| ns).collect();
    let others: Vec<f64> = timed().filter(|(_, (e, _))| !bash(e)).map(|(ns, _)| ns).collect();
    let (lines, others) = (median(lines), median(others));
    let (ours, theirs) = (median(ours), median(theirs));
    let guards = "coding-agent with all packs and every other guard".to_owned();
    report.add(Row("engine: decide + apply, p50"), ours / 1000.0, guards);
    report.add(Row("engine: a Bash call, p50"), lines / 1000.0, String::new());
    report.add(Row("engine: any other event, p50"), others / 1000.0, String::new());
    report.add(
        Row("engine: relative to a 3-policy Cedar decision"),
        ours / theirs,
        format!("Cedar p50 {:.2} us", theirs / 1000.0),
    );

    let mut long = play_events(&definition, &events, LONG_SESSION_EVENTS);
    let (mut at_short, mut at_long, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..9 {
        let (short, long) = measure_lengths(&definition, &mut long, &events);
        let (short, long) = (median(short), median(long));
        ratios.push(long / short);
        at_short.push(short);
        at_long.push(long);
    }
    let (at_short, at_long) = (median(at_short), median(at_long));
    report.add(
        Row("engine: at 1,000,000 events vs at 10"),
        median(ratios),
        format!("{:.2} vs {:.2} us", at_long / 1000.0, at_short / 1000.0),
    );
    report.add(
        Row("engine: state at 1,000,000 events"),
        long.snapshot().len() as f64 / 1024.0,
        String::new(),
    );
    Ok(())
}

/// The facts that a runtime would find: every file exists and nothing has changed.
fn make_facts(event: &Event, number: i64) -> Facts {
    let wall = Timestamp::from_ms(1_700_000_000_000 + number * 50);
    let mut facts = Facts::at(Now::wall(wall));
    facts.observed = observe(event);
    let file = FileFact {
        bytes: 1000,
        modified: Some(Timestamp::from_ms(1_600_000_000_000)),
        stamp: Some(1),
        digest: Some(Digest128::of(b"contents")),
        lines: Some(40),
        ..FileFact::without_details(FileKind::File)
    };
    for path in ["src/session.rs", "notes.md"] {
        facts.files.insert(path.to_owned(), file.clone());
    }
    facts
}

/// The round with the lowest median.
fn fastest(rounds: Vec<Vec<f64>>) -> Vec<f64> {
    let by_median = |a: &Vec<f64>, b: &Vec<f64>| median(a.clone()).total_cmp(&median(b.clone()));
    rounds.into_iter().min_by(by_median).unwrap_or_default()
}

/// Nanoseconds of each event of one session.
fn measure_session(definition: &Arc<Definition>, events: &[(Event, Facts)]) -> Vec<f64> {
    let mut session = Session::new(Arc::clone(definition), Arc::default());
    events.iter().map(|(event, facts)| measure_step(&mut session, event, facts)).collect()
}

/// The nanoseconds of each event in sessions with ten events, and of the same events in a long
/// session.
fn measure_lengths(
    definition: &Arc<Definition>,
    long: &mut Session,
    events: &[(Event, Facts)],
) -> (Vec<f64>, Vec<f64>) {
    let (mut at_short, mut at_long) = (Vec::new(), Vec::new());
    for (turn, chunk) in events.chunks_exact(20).enumerate() {
        let mut short = Session::new(Arc::clone(definition), Arc::default());
        for (number, (event, facts)) in chunk.iter().enumerate() {
            // The second session finds the event in the CPU cache, so they take turns.
            let (first, second) = if turn % 2 == 0 {
                let first = measure_step(&mut short, event, facts);
                (first, measure_step(long, event, facts))
            } else {
                let second = measure_step(long, event, facts);
                (measure_step(&mut short, event, facts), second)
            };
            if number >= 10 {
                at_short.push(first);
                at_long.push(second);
            }
        }
    }
    (at_short, at_long)
}

fn measure_step(session: &mut Session, event: &Event, facts: &Facts) -> f64 {
    let seq = session.seq() + 1;
    let start = Instant::now();
    // The same calls as in the runtime.
    let verdict = session.event_interpreter().with_interpreted(event, |understood| {
        let verdict = session.decide_interpreted(understood, facts);
        session.apply_interpreted(understood, &Record { seq, event, facts, verdict: &verdict });
        verdict
    });
    let elapsed = start.elapsed().as_nanos() as f64;
    std::hint::black_box(verdict);
    elapsed
}

/// A session with this many events: the mix, repeated.
fn play_events(definition: &Arc<Definition>, events: &[(Event, Facts)], length: u64) -> Session {
    let mut session = Session::new(Arc::clone(definition), Arc::default());
    for (event, facts) in events.iter().cycle() {
        if session.seq() >= length {
            break;
        }
        measure_step(&mut session, event, facts);
    }
    session
}
