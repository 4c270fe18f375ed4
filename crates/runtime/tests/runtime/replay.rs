//! A journal proves its verdicts. If it does not, a replay says whether the version or the journal
//! is the cause.

use jackline_analysis::{Replay, ReplayReport, VerdictDifference};
use jackline_engine::{Digest, ENGINE_VERSION, SEMANTICS};
use jackline_journal::{JournalView, check_line, seal};

use crate::support::{RuntimeTest, call, replay, send};

const DEFINITION: &str = "\
policies: [ sequential_dependency: { deploy: [lint] } ]
completion: { files: [report.md] }
limits: { steps: 6 }
";

/// The lines of a journal, and its view, which loads the definition.
fn journal() -> (Vec<Vec<u8>>, JournalView) {
    let world = RuntimeTest::new(DEFINITION);
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
    // Loads the definition now, because this test removes its files at the end.
    view.parse(&lines[0]).unwrap();
    (lines, view)
}

/// The journal with one changed record, and with new seals from there on.
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
        differences: vec![VerdictDifference {
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
    // Sealing unchanged lines again changes no byte.
    assert_eq!(resealed(&lines, 1, "", ""), lines);
    // An engine with other semantics and the same decisions proves the journal too.
    assert_eq!(replay(Replay::with_semantics(SEMANTICS + 1), &view, &lines), proven);
}

#[test]
fn a_verdict_that_was_changed_and_sealed_again_differs_by_fault() {
    let (lines, view) = journal();
    let tampered = resealed(&lines, 3, RECORDED, FORGED);
    let events = lines.len() as u64 - 1;
    assert_eq!(
        replay(Replay::default(), &view, &tampered),
        one_difference(events, "fault", SEMANTICS)
    );
}

#[test]
fn a_verdict_of_another_version_differs_by_version() {
    let (lines, view) = journal();
    let events = lines.len() as u64 - 1;
    let tampered = resealed(&lines, 3, RECORDED, FORGED);
    let other = SEMANTICS + 41;
    // An engine with other semantics reads this journal.
    assert_eq!(
        replay(Replay::with_semantics(other), &view, &tampered),
        one_difference(events, "version", SEMANTICS)
    );
    // This engine reads the journal of another.
    let theirs = resealed(
        &tampered,
        3,
        &format!(r#""semantics":{SEMANTICS},"#),
        &format!(r#""semantics":{other},"#),
    );
    assert_eq!(replay(Replay::default(), &view, &theirs), one_difference(events, "version", other));
}

/// A replay applies the recorded verdicts, so a changed verdict affects only records that depend on
/// it.
#[test]
fn records_after_a_changed_verdict_are_replayed_as_recorded() {
    let (lines, view) = journal();
    // The denial of `deploy` becomes an allow. Its result never came, so nothing else changes.
    let tampered =
        resealed(&lines, 2, r#""decision":"deny","enforced":true"#, r#""decision":"allow""#);
    let report = replay(Replay::default(), &view, &tampered);
    let differing: Vec<u64> = report.differences.iter().map(|difference| difference.seq).collect();
    assert_eq!(differing, [2]);
}

#[test]
fn a_journal_without_its_opening_proves_nothing() {
    let (lines, view) = journal();
    let mut replay = Replay::default();
    let error = replay.replay_line(&view, &lines[1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "can't parse record 1: it comes before the record that opens the session"
    );
}
