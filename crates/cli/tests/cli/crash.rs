//! Killed at any moment: what was answered is in the journal, byte for byte,
//! and the next event finds everything in order.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use jackline_analysis::Replay;
use jackline_journal::{JournalView, Line, StoreError, Verifier, parse_record};

use crate::support::{JACKLINE, World, Xorshift};

const JOURNALS: u64 = 250;
const KILLS_EACH: u64 = 8;

/// Journals at once; each has its own seed, so that which runs when is no matter.
const WORKERS: usize = 2;

/// More events than a process lives to answer.
const EVENTS: u64 = 24;

/// Small and large records in turn: a large one takes long enough to write to
/// be cut in the middle.
fn events(run: &str) -> String {
    let event = |n| {
        let text = "x".repeat(if n % 3 == 2 { 20_000 } else { 50 });
        format!(
            r#"{{"session":"s","id":"{run}-{n}","event":"tool_proposed","call":"{run}-{n}","tool":"t","args":{{"a":"{text}"}}}}"#
        )
    };
    (0..EVENTS).map(event).collect::<Vec<_>>().join("\n")
}

/// Starts a process, lets it answer a few events, waits a moment, kills it,
/// and gives every verdict that came out whole.
fn run_and_kill(world: &World, run: &str, random: &mut Xorshift) -> Vec<String> {
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
        let whole = line.ends_with('\n');
        if whole {
            received.push(line.trim_end().to_owned());
        }
        whole
    };
    // A random number of answers, then a random part of the next one.
    for _ in 0..random.below(EVENTS / 2) {
        if !read(&mut stdout) {
            break;
        }
    }
    for _ in 0..random.below(60_000) {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    // What it managed to say before it died was said.
    while read(&mut stdout) {}
    child.wait().unwrap();
    writer.join().unwrap();
    received
}

/// Every verdict in the journal, after a check of its chain and a replay.
fn recorded(world: &World) -> Vec<String> {
    let journal = JournalView::open(&world.journal("s")).unwrap();
    let mut verifier = Verifier::new(journal.saved());
    let mut replay = Replay::default();
    let mut verdicts = Vec::new();
    let torn = journal
        .for_each(|line| {
            verifier.line(line);
            replay.line(&journal, line)?;
            if let Line::Event(record) = parse_record(line)? {
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

/// How a journal ended when its process was killed: in the middle of a line?
fn is_torn(world: &World) -> bool {
    fs::read(world.journal("s")).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'))
}

/// What was seen, added up over journals.
#[derive(Default)]
struct Seen {
    kills: u64,
    torn: u64,
    answers: usize,
    unheard: usize,
}

/// One journal, killed again and again, then recovered and looked at.
fn one_journal(number: u64) -> Seen {
    let mut random = Xorshift(0x6b69_6c6c_2d39 + number);
    let world = World::new("");
    let mut seen = Seen::default();
    let mut received = Vec::new();
    for kill in 0..KILLS_EACH {
        received.extend(run_and_kill(&world, &format!("{number}-{kill}"), &mut random));
        seen.kills += 1;
        seen.torn += u64::from(is_torn(&world));
    }
    // The next event recovers.
    let run = world.stdio(&[r#"{"session":"s","event":"stop_proposed"}"#]);
    assert_eq!(run.answers(), ["allow"], "journal {number}");
    received.push(run.stdout.trim_end().to_owned());
    if number.is_multiple_of(25) {
        world.prove("s");
    }
    // In order, and nothing but what was decided and not heard in between.
    let recorded = recorded(&world);
    let mut left = recorded.iter();
    for verdict in &received {
        assert!(left.any(|known| known == verdict), "journal {number} lost {verdict}");
    }
    seen.answers = received.len();
    seen.unheard = recorded.len() - received.len();
    seen
}

#[test]
fn two_thousand_kills_lose_nothing_that_was_answered() {
    let (next, total) = (AtomicU64::new(0), Mutex::new(Seen::default()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= JOURNALS {
                        break;
                    }
                    let seen = one_journal(number);
                    let mut total = total.lock().unwrap();
                    total.kills += seen.kills;
                    total.torn += seen.torn;
                    total.answers += seen.answers;
                    total.unheard += seen.unheard;
                }
            });
        }
    });
    let Seen { kills, torn, answers, unheard } = total.into_inner().unwrap();
    assert_eq!(kills, JOURNALS * KILLS_EACH);
    println!(
        "{kills} kills, {torn} torn tails; {answers} answers, all of them recorded, and {unheard} records that nobody heard of"
    );
}
