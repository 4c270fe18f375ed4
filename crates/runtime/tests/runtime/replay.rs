//! A journal proves its verdicts, and says who is to blame where it does not.

use jackline_analysis::{Difference, Replay, ReplayReport};
use jackline_engine::{Digest, ENGINE_VERSION, SEMANTICS};
use jackline_journal::{JournalView, check_line, seal};

use crate::support::{World, call, replay, send};

const DEFINITION: &str = "\
policies: [ sequential_dependency: { deploy: [lint] } ]
completion: { files: [report.md] }
limits: { steps: 6 }
";

/// The lines of a journal, and where its definition can be loaded.
fn journal() -> (Vec<Vec<u8>>, JournalView) {
    let world = World::new(DEFINITION);
    let mut runtime = world.runtime();
    send(&mut runtime, r#"{"event":"session_started"}"#);
    call(&mut runtime, "c1", "deploy");
    call(&mut runtime, "c2", "lint");
    call(&mut runtime, "c3", "deploy");
    send(&mut runtime, r#"{"event":"stop_proposed"}"#);
    call(&mut runtime, "c4", "lint");
    call(&mut runtime, "c5", "lint");
    call(&mut runtime, "c6", "lint");
    world.prove("s");
    let (lines, view) = (world.lines("s"), world.view("s"));
    // Loaded now, because the files of this test go with it.
    view.parse(&lines[0]).unwrap();
    (lines, view)
}

/// The journal with one record changed and everything after it sealed again.
pub(crate) fn resealed(lines: &[Vec<u8>], seq: usize, from: &str, to: &str) -> Vec<Vec<u8>> {
    let mut prev = Digest::ZERO;
    lines
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let text = String::from_utf8(line.clone()).unwrap();
            let (body, _) = text.rsplit_once(r#","prev":""#).unwrap();
            let body = if number == seq {
                assert!(body.contains(from), "{body}");
                body.replacen(from, to, 1)
            } else {
                body.to_owned()
            };
            let (line, hash) = seal(body.as_bytes(), &prev);
            prev = hash;
            let line = line.strip_suffix(b"\n").unwrap().to_vec();
            assert!(check_line(&line).is_ok());
            line
        })
        .collect()
}

const RECORDED: &str = r#"{"v":1,"session":"s","seq":3,"step":2,"call":"c2","decision":"allow"}"#;
const FORGED: &str = r#"{"v":1,"session":"s","seq":3,"step":9,"call":"c2","decision":"allow"}"#;

fn one_difference(events: u64, by: &'static str, semantics: u32) -> ReplayReport {
    ReplayReport {
        events,
        same: events - 1,
        differ_by_version: u64::from(by == "version"),
        differ_by_fault: u64::from(by == "fault"),
        differences: vec![Difference {
            seq: 3,
            by,
            engine: ENGINE_VERSION.to_owned(),
            semantics,
            recorded: FORGED.to_owned(),
            decided: RECORDED.to_owned(),
        }],
    }
}

#[test]
fn a_journal_proves_every_verdict() {
    let (lines, view) = journal();
    let events = lines.len() as u64 - 1;
    let proven = ReplayReport { events, same: events, ..ReplayReport::default() };
    assert_eq!(replay(Replay::default(), &view, &lines), proven);
    // Sealing again what is already right changes no byte.
    assert_eq!(resealed(&lines, 1, "", ""), lines);
    // An engine that means something else and decides the same proves it too.
    assert_eq!(replay(Replay::with_semantics(SEMANTICS + 1), &view, &lines), proven);
}

#[test]
fn a_verdict_that_was_changed_and_sealed_again_differs_by_fault() {
    let (lines, view) = journal();
    let forged = resealed(&lines, 3, RECORDED, FORGED);
    let events = lines.len() as u64 - 1;
    assert_eq!(
        replay(Replay::default(), &view, &forged),
        one_difference(events, "fault", SEMANTICS)
    );
}

#[test]
fn a_verdict_of_another_version_differs_by_version() {
    let (lines, view) = journal();
    let events = lines.len() as u64 - 1;
    let forged = resealed(&lines, 3, RECORDED, FORGED);
    let other = SEMANTICS + 41;
    // An engine whose verdicts mean something else reads this journal,
    assert_eq!(
        replay(Replay::with_semantics(other), &view, &forged),
        one_difference(events, "version", SEMANTICS)
    );
    // and this engine reads the journal of another.
    let theirs = resealed(
        &forged,
        3,
        &format!(r#""semantics":{SEMANTICS},"#),
        &format!(r#""semantics":{other},"#),
    );
    assert_eq!(replay(Replay::default(), &view, &theirs), one_difference(events, "version", other));
}

/// What happened is what is folded in, so one forged verdict spoils only what
/// depends on it.
#[test]
fn what_follows_a_changed_verdict_is_replayed_on_what_was_recorded() {
    let (lines, view) = journal();
    // The denial of `deploy` becomes a permission; its result never came, so
    // nothing else changes.
    let forged =
        resealed(&lines, 2, r#""decision":"deny","enforced":true"#, r#""decision":"allow""#);
    let report = replay(Replay::default(), &view, &forged);
    let differing: Vec<u64> = report.differences.iter().map(|difference| difference.seq).collect();
    assert_eq!(differing, [2]);
}

#[test]
fn a_journal_without_its_opening_proves_nothing() {
    let (lines, view) = journal();
    let mut replay = Replay::default();
    let error = replay.line(&view, &lines[1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 1 can't be understood: it comes before the record that opens the session"
    );
}
