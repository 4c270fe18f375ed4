//! Eight processes use one session: no record is lost and no event is denied.

use std::collections::BTreeSet;
use std::fs::File;

use crate::support::{CliWorld, JACKLINE, run_with_input};

const PROCESSES: usize = 8;
const EVENTS: usize = 50;

#[test]
fn eight_processes_on_one_session_lose_nothing() {
    let world = CliWorld::new("");
    let runs: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..PROCESSES)
            .map(|process| {
                let world = &world;
                scope.spawn(move || {
                    let lines: Vec<String> = (0..EVENTS)
                        .map(|n| {
                            format!(
                                r#"{{"session":"s","id":"e{process}-{n}","event":"tool_proposed","call":"c{process}-{n}","tool":"t","args":{{"n":"{process}-{n}"}}}}"#
                            )
                        })
                        .collect();
                    world.stdio(&lines)
                })
            })
            .collect();
        started.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for run in &runs {
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.decisions().iter().all(|answer| answer == "allow"), "{:?}", run.decisions());
    }
    let answered: BTreeSet<String> =
        runs.iter().flat_map(|run| run.stdout.lines().map(ToOwned::to_owned)).collect();
    assert_eq!(answered.len(), PROCESSES * EVENTS);
    let records = world.records("s");
    let recorded: BTreeSet<String> =
        records.iter().map(|record| record.verdict_json.clone()).collect();
    assert_eq!(recorded, answered);
    let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=(PROCESSES * EVENTS) as u64).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record.notes.is_empty()));
    world.verify_and_replay("s");
}

/// Every process starts, sends one event and exits, as hooks do.
#[test]
fn short_lived_processes_on_one_session_lose_nothing() {
    const EACH: usize = 20;
    let world = CliWorld::new("");
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            let world = &world;
            scope.spawn(move || {
                for n in 0..EACH {
                    let line = format!(
                        r#"{{"session":"s","event":"tool_finished","call":"c{process}-{n}","status":"ok"}}"#
                    );
                    let run = world.stdio(&[&line]);
                    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
                }
            });
        }
    });
    let numbers: Vec<u64> = world.records("s").iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=(PROCESSES * EACH) as u64).collect::<Vec<_>>());
    world.verify_and_replay("s");
}

/// A session that another process has locked.
fn locked_session() -> (CliWorld, File) {
    let world = CliWorld::new("");
    world.stdio(&[r#"{"session":"s","event":"session_started"}"#]);
    let journal = File::open(world.journal_path("s")).unwrap();
    journal.lock().unwrap();
    (world, journal)
}

#[test]
fn a_session_that_is_locked_for_too_long_is_denied_and_continues_when_it_is_free() {
    let (world, journal) = locked_session();
    let line = r#"{"session":"s","event":"tool_proposed","call":"c","tool":"t","args":{}}"#;
    let run = world.stdio(&[line]);
    assert_eq!((run.decisions(), run.code), (vec!["deny store_busy".to_owned()], Some(3)));
    assert_eq!(
        run.json_lines()[0]["violations"][0]["message"],
        "the guard is broken, not the call: another process has locked the session for more than 10 s"
    );
    journal.unlock().unwrap();
    assert_eq!(world.stdio(&[line]).decisions(), ["allow"]);
    assert_eq!(world.records("s").len(), 2);
    world.verify_and_replay("s");
}

/// Commands that only read must not wait forever either.
#[test]
fn a_command_that_reads_a_locked_session_ends() {
    let (world, _journal) = locked_session();
    let codes: Vec<Option<i32>> = std::thread::scope(|scope| {
        let readers = ["verify", "replay", "log", "show", "status"].map(|command| {
            let mut reader = world.command("timeout");
            reader.args(["15", JACKLINE, command, "s"]);
            scope.spawn(move || run_with_input(&mut reader, b"").code)
        });
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert!(
        codes.iter().all(|code| *code != Some(124)),
        "a command ran for more than 15 s: {codes:?}"
    );
}
