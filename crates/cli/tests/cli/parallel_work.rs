//! Many processes that read and write the same real files in one session.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Talk, World, Xorshift};

const PROCESSES: u64 = 8;
const ROUNDS: u64 = 60;
const FILES: u64 = 6;

/// What one process says, and how it was answered.
struct Worker<'a> {
    world: &'a World,
    talk: Talk,
    random: Xorshift,
    number: u64,
    denied: &'a AtomicUsize,
}

impl Worker<'_> {
    fn say(&mut self, mut event: Value) -> Value {
        event["session"] = "s".into();
        let verdict = self.talk.say(&event.to_string());
        assert_eq!(verdict["error"], Value::Null, "{verdict}");
        verdict
    }

    /// One call on one of the files, done as it says where it may run.
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
        let verdict = self.say(json!({
            "event": "tool_proposed", "call": call, "tool": tool, "args": args, "actor": actor,
        }));
        if verdict["decision"] == "deny" {
            let why = verdict["violations"][0]["subtype"].as_str().unwrap();
            assert!(["unread_overwrite", "stale_read"].contains(&why), "{verdict}");
            self.denied.fetch_add(1, Ordering::Relaxed);
            return;
        }
        assert!(passes(&verdict), "{verdict}");
        if matches!(tool, "Edit" | "Write") {
            fs::write(self.world.work().join(&file), text).unwrap();
        }
        let finish = json!({"event": "tool_finished", "call": call, "status": "ok"});
        let verdict = self.say(finish);
        assert!(passes(&verdict), "{verdict}");
    }

    fn work(mut self) {
        for round in 0..ROUNDS {
            self.round(round);
            if self.random.below(40) == 0 {
                self.say(json!({"event": "prompt_submitted", "source": "human", "text": "go"}));
            }
            if self.random.below(40) == 0 {
                self.say(json!({"event": "stop_proposed"}));
            }
        }
        assert_eq!(self.talk.end(), Some(0));
    }
}

/// Whether nothing is held up. Who works at random may look like a loop, and the
/// loop guard only observes here.
fn passes(verdict: &Value) -> bool {
    verdict["decision"] == "allow" || verdict["enforced"] == false
}

#[test]
fn eight_processes_read_and_write_under_one_policy() {
    let world = World::new("policies: [ read_before_write: {} ]\n");
    for n in 0..FILES {
        fs::write(world.work().join(format!("f{n}")), "first\n").unwrap();
    }
    let denied = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let (world, denied) = (&world, &denied);
            scope.spawn(move || {
                let random = Xorshift(0x7265_6164 + number);
                Worker { world, talk: Talk::start(world), random, number, denied }.work();
            });
        }
    });
    // Somebody was faster often enough that this was about something.
    assert!(denied.into_inner() > 20);
    let records = world.records("s");
    assert!(records.iter().all(|record| record.notes.is_empty()));
    assert!(records.iter().map(|record| record.seq).eq(1..=records.len() as u64));
    world.prove("s");
}
