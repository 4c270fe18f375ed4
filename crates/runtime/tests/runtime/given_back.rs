//! Protected files around a decision: what is given back is in the record.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use jackline_engine::Digest;
use jackline_journal::Note;
use serde_json::Value;

use crate::support::{World, send};

const SOURCE: &str = "version: 1\n";
const CHANGED: &str = "mode: observe\n";

fn propose(call: &str) -> String {
    format!(
        r#"{{"event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"./x"}}}}"#
    )
}

fn finish(call: &str) -> String {
    format!(r#"{{"event":"tool_finished","call":"{call}","status":"ok"}}"#)
}

/// The decision, and why.
fn answer(verdict: &Value) -> (&str, &str) {
    let subtype = verdict["violations"][0]["subtype"].as_str();
    (verdict["decision"].as_str().unwrap(), subtype.unwrap_or_default())
}

impl World {
    fn definition_file(&self) -> PathBuf {
        self.workspace().join("jackline.yaml")
    }

    fn latest_notes(&self) -> Vec<Note> {
        self.records("s").last().unwrap().notes.clone()
    }
}

#[test]
fn the_record_that_blames_a_call_says_what_was_given_back() {
    let world = World::new(SOURCE);
    send(&mut world.runtime(), &propose("c1"));
    fs::write(world.definition_file(), CHANGED).unwrap();
    // A process that ends with its answer, as hooks do.
    let verdict = send(&mut world.runtime(), &finish("c1"));
    assert_eq!(answer(&verdict), ("pause", "changed_during_call"));
    assert_eq!(fs::read_to_string(world.definition_file()).unwrap(), SOURCE);
    let kept = Some(Digest::of(CHANGED.as_bytes()));
    assert_eq!(world.latest_notes(), [Note::GivenBack { path: "jackline.yaml".to_owned(), kept }]);
    world.prove("s");
}

#[test]
fn the_record_says_what_could_not_be_given_back() {
    let world = World::new(SOURCE);
    let client = world.workspace().join(".claude");
    fs::create_dir(&client).unwrap();
    fs::write(client.join("settings.json"), "{}").unwrap();
    send(&mut world.runtime(), &propose("c1"));
    fs::rename(&client, world.workspace().join("elsewhere")).unwrap();
    symlink("elsewhere", &client).unwrap();
    fs::write(client.join("settings.json"), "[]").unwrap();
    let verdict = send(&mut world.runtime(), &finish("c1"));
    assert_eq!(answer(&verdict), ("pause", "changed_during_call"));
    match world.latest_notes().as_slice() {
        [Note::Fault { kind, reason }] => {
            assert_eq!(kind, "protected");
            assert!(reason.starts_with("can't give `.claude/settings.json` back: "), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    world.prove("s");
}
