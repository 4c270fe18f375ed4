//! Processes are killed at random moments. Every answered event is in the journal, byte for byte,
//! and the next event continues the session.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use jackline_analysis::Replay;
use jackline_journal::{JournalLine, JournalView, StoreError, Verifier, parse_record};

use crate::support::{CliWorld, JACKLINE, Xorshift};

const JOURNALS: u64 = 250;
const KILLS_EACH: u64 = 8;

/// How many journals are tested in parallel. Each has its own seed, so the order does not matter.
const PARALLEL_JOURNALS: usize = 2;

/// More events than a process can answer before it is killed.
const EVENTS: u64 = 24;

/// Alternates small and large records. A large record takes long enough to write that a kill can
/// cut it in the middle.
fn events(run: &str) -> String {
    let event = |n| {
        let text = "x".repeat(if n % 3 == 2 { 20_000 } else { 50 });
        format!(
            r#"{{"session":"s","id":"{run}-{n}","event":"tool_proposed","call":"{run}-{n}","tool":"t","args":{{"a":"{text}"}}}}"#
        )
    };
    (0..EVENTS).map(event).collect::<Vec<_>>().join("\n")
}

/// Starts a process, lets it answer a few events, waits a moment and kills it. Returns every
/// verdict that was received completely.
fn run_and_kill(world: &CliWorld, run: &str, random: &mut Xorshift) -> Vec<String> {
    let mut child = world
        .command(JACKLINE)
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = events(run);
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut received = Vec::new();
    let mut read = |stdout: &mut BufReader<_>| {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let is_complete = line.ends_with('\n');
        if is_complete {
            received.push(line.trim_end().to_owned());
        }
        is_complete
    };
    // A random number of answers, then a random part of the next answer.
    for _ in 0..random.below(EVENTS / 2) {
        if !read(&mut stdout) {
            break;
        }
    }
    for _ in 0..random.below(60_000) {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    // Reads what the process wrote before it died.
    while read(&mut stdout) {}
    child.wait().unwrap();
    writer.join().unwrap();
    received
}

/// Verifies and replays the journal, and returns every verdict in it.
fn recorded_verdicts(world: &CliWorld) -> Vec<String> {
    let journal = JournalView::open(&world.journal_path("s")).unwrap();
    let mut verifier = Verifier::new(journal.saved_head());
    let mut replay = Replay::default();
    let mut verdicts = Vec::new();
    let torn = journal
        .for_each(|line| {
            verifier.check_line(line);
            replay.replay_line(&journal, line)?;
            if let JournalLine::Event(record) = parse_record(line)? {
                verdicts.push(record.verdict_json);
            }
            Ok::<(), StoreError>(())
        })
        .unwrap();
    assert_eq!(verifier.finish(torn).findings, []);
    let report = replay.finish();
    assert!(report.is_proven(), "{report:#?}");
    verdicts
}

/// Returns whether the journal ends in the middle of a line.
fn is_torn(world: &CliWorld) -> bool {
    fs::read(world.journal_path("s"))
        .is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'))
}

/// Counters, added up over all journals.
#[derive(Default)]
struct CrashTotals {
    kills: u64,
    torn: u64,
    answers: usize,
    unreceived: usize,
}

/// Kills the processes of one journal several times, then recovers and checks it.
fn kill_one_journal(number: u64) -> CrashTotals {
    let mut random = Xorshift(0x6b69_6c6c_2d39 + number);
    let world = CliWorld::new("");
    let mut totals = CrashTotals::default();
    let mut received = Vec::new();
    for kill in 0..KILLS_EACH {
        received.extend(run_and_kill(&world, &format!("{number}-{kill}"), &mut random));
        totals.kills += 1;
        totals.torn += u64::from(is_torn(&world));
    }
    // The next event recovers the journal.
    let run = world.stdio(&[r#"{"session":"s","event":"stop_proposed"}"#]);
    assert_eq!(run.decisions(), ["allow"], "journal {number}");
    received.push(run.stdout.trim_end().to_owned());
    if number.is_multiple_of(25) {
        world.verify_and_replay("s");
    }
    // The received verdicts are in the journal in order. Between them are only verdicts that were
    // recorded but not received.
    let recorded = recorded_verdicts(&world);
    let mut remaining = recorded.iter();
    for verdict in &received {
        assert!(remaining.any(|recorded| recorded == verdict), "journal {number} lost {verdict}");
    }
    totals.answers = received.len();
    totals.unreceived = recorded.len() - received.len();
    totals
}

#[test]
fn two_thousand_kills_lose_no_answered_event() {
    let (next, total) = (AtomicU64::new(0), Mutex::new(CrashTotals::default()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_JOURNALS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= JOURNALS {
                        break;
                    }
                    let totals = kill_one_journal(number);
                    let mut total = total.lock().unwrap();
                    total.kills += totals.kills;
                    total.torn += totals.torn;
                    total.answers += totals.answers;
                    total.unreceived += totals.unreceived;
                }
            });
        }
    });
    let CrashTotals { kills, torn, answers, unreceived: unheard } = total.into_inner().unwrap();
    assert_eq!(kills, JOURNALS * KILLS_EACH);
    println!(
        "{kills} kills, {torn} torn tails; {answers} answers, all of them recorded; {unheard} records whose answer was not received"
    );
}
