//! Tests with many processes that read and write the same real files in one session.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{CliWorld, StdioSession, Xorshift};

const PROCESSES: u64 = 8;
const ROUNDS: u64 = 60;
const FILES: u64 = 6;

/// One process with its own random numbers, and a counter of denied calls.
struct WorkerProcess<'a> {
    world: &'a CliWorld,
    stdio: StdioSession,
    random: Xorshift,
    number: u64,
    denied: &'a AtomicUsize,
}

impl WorkerProcess<'_> {
    fn send(&mut self, mut event: Value) -> Value {
        event["session"] = "s".into();
        let verdict = self.stdio.send(&event.to_string());
        assert_eq!(verdict["error"], Value::Null, "{verdict}");
        verdict
    }

    /// Makes one call on one of the files, and performs it if it is allowed.
    fn round(&mut self, round: u64) {
        let file = format!("f{}", self.random.below(FILES));
        let text = format!("by {} in {round}\n", self.number);
        let (tool, args) = match self.random.below(4) {
            0 => ("Read", json!({"file_path": file})),
            1 => ("Bash", json!({"command": format!("cat {file}")})),
            2 => ("Edit", json!({"file_path": file, "old_string": "a", "new_string": "b"})),
            _ => ("Write", json!({"file_path": file, "content": text})),
        };
        let call = format!("c{}-{round}", self.number);
        let actor = format!("agent-{}", self.number % 3);
        let verdict = self.send(json!({
            "event": "tool_proposed", "call": call, "tool": tool, "args": args, "actor": actor,
        }));
        if verdict["decision"] == "deny" {
            let why = verdict["violations"][0]["subtype"].as_str().unwrap();
            assert!(["unread_overwrite", "stale_read"].contains(&why), "{verdict}");
            self.denied.fetch_add(1, Ordering::Relaxed);
            return;
        }
        assert!(may_run(&verdict), "{verdict}");
        if matches!(tool, "Edit" | "Write") {
            fs::write(self.world.workspace().join(&file), text).unwrap();
        }
        let finish = json!({"event": "tool_finished", "call": call, "status": "ok"});
        let verdict = self.send(finish);
        assert!(may_run(&verdict), "{verdict}");
    }

    fn work(mut self) {
        for round in 0..ROUNDS {
            self.round(round);
            if self.random.below(40) == 0 {
                self.send(json!({"event": "prompt_submitted", "source": "human", "text": "go"}));
            }
            if self.random.below(40) == 0 {
                self.send(json!({"event": "stop_proposed"}));
            }
        }
        assert_eq!(self.stdio.finish(), Some(0));
    }
}

/// Returns whether the call may run. Random work may look like a loop, but the loop guard only
/// observes here.
fn may_run(verdict: &Value) -> bool {
    verdict["decision"] == "allow" || verdict["enforced"] == false
}

#[test]
fn eight_processes_read_and_write_under_one_policy() {
    let world = CliWorld::new("policies: [ read_before_write: {} ]\n");
    for n in 0..FILES {
        fs::write(world.workspace().join(format!("f{n}")), "first\n").unwrap();
    }
    let denied = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let (world, denied) = (&world, &denied);
            scope.spawn(move || {
                let random = Xorshift(0x7265_6164 + number);
                WorkerProcess { world, stdio: StdioSession::start(world), random, number, denied }
                    .work();
            });
        }
    });
    // Enough calls were denied to show that the processes compete.
    assert!(denied.into_inner() > 20);
    let records = world.records("s");
    assert!(records.iter().all(|record| record.notes.is_empty()));
    assert!(records.iter().map(|record| record.seq).eq(1..=records.len() as u64));
    world.verify_and_replay("s");
}
