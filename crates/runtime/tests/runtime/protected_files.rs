//! Protected files around a decision: a restore is in the record, and facts from before another
//! process decided are gathered again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_engine::{Digest, FaultKind};
use jackline_host::{HostAccess, LayerFiles};
use jackline_journal::JournalNote;
use jackline_runtime::{Definitions, Runtime};
use serde_json::Value;

use crate::disturbed_store::{Disturbances, DisturbedStore};
use crate::support::{RuntimeTest, send};

const SOURCE: &str = "version: 1\n";
const CHANGED: &str = "mode: observe\n";
const PROMPT: &str = r#"{"event":"prompt_submitted","source":"human","text":"go on"}"#;

fn propose(call: &str) -> String {
    format!(
        r#"{{"event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"./x"}}}}"#
    )
}

fn finish(call: &str) -> String {
    format!(r#"{{"event":"tool_finished","call":"{call}","status":"ok"}}"#)
}

/// The decision and the subtype of the first violation.
fn answer(verdict: &Value) -> (&str, &str) {
    let subtype = verdict["violations"][0]["subtype"].as_str();
    (verdict["decision"].as_str().unwrap(), subtype.unwrap_or_default())
}

impl RuntimeTest {
    fn definition_file(&self) -> PathBuf {
        self.workspace().join("jackline.yaml")
    }

    fn latest_notes(&self) -> Vec<JournalNote> {
        self.records("s").last().unwrap().notes.clone()
    }
}

#[test]
fn the_record_that_blames_a_call_lists_the_restored_file() {
    let world = RuntimeTest::new(SOURCE);
    send(&mut world.runtime(), &propose("c1"));
    fs::write(world.definition_file(), CHANGED).unwrap();
    // A process that ends with its answer, as hooks do.
    let verdict = send(&mut world.runtime(), &finish("c1"));
    assert_eq!(answer(&verdict), ("pause", "changed_during_call"));
    assert_eq!(fs::read_to_string(world.definition_file()).unwrap(), SOURCE);
    let kept = Some(Digest::of(CHANGED.as_bytes()));
    assert_eq!(
        world.latest_notes(),
        [JournalNote::GivenBack { path: "jackline.yaml".to_owned(), kept }]
    );
    world.prove("s");
}

#[test]
fn a_failed_restore_is_in_the_record() {
    let world = RuntimeTest::new(SOURCE);
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
        [JournalNote::Fault { kind, reason }] => {
            assert_eq!(*kind, FaultKind::Protected);
            assert!(reason.starts_with("can't restore `.claude/settings.json`: "), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    world.prove("s");
}

/// One process reads a file that a call has changed. Before it gets the lock, others end that call,
/// restore the file and continue.
#[test]
fn a_file_that_another_process_restored_is_read_again() {
    let world = RuntimeTest::new(SOURCE);
    send(&mut world.runtime(), &propose("c1"));
    fs::write(world.definition_file(), CHANGED).unwrap();

    let (store, workspace) = (world.store.clone(), world.workspace());
    let meddler = Arc::new(Disturbances::default());
    *meddler.before_lock.lock().unwrap() = Some(Box::new(move || {
        let host = HostAccess::of_machine(Some(store.home())).with_layers(LayerFiles::default());
        let definitions = Definitions::new(None, host);
        let mut other = Runtime::new(store, definitions, workspace);
        assert_eq!(send(&mut other, &finish("c1"))["decision"], "pause");
        assert_eq!(send(&mut other, PROMPT)["decision"], "allow");
    }));
    let mut runtime =
        world.runtime_on(DisturbedStore { inner: world.store.clone(), disturbances: meddler });
    assert_eq!(send(&mut runtime, &propose("c2"))["decision"], "allow");

    // The version of the first call must not become the one to restore.
    assert_eq!(send(&mut runtime, &finish("c2"))["decision"], "allow");
    assert_eq!(fs::read_to_string(world.definition_file()).unwrap(), SOURCE);
    world.prove("s");
}

#[test]
fn a_link_or_huge_file_at_a_protected_path_is_removed() {
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().join("settings.json");
    fs::write(&elsewhere, "{}").unwrap();
    let changes: [&dyn Fn(&Path); 3] = [
        &|settings| symlink(&elsewhere, settings).unwrap(),
        &|settings| {
            let inside = settings.with_file_name("inside.json");
            fs::write(&inside, "{}").unwrap();
            symlink(inside, settings).unwrap();
        },
        &|settings| fs::File::create(settings).unwrap().set_len(100 << 20).unwrap(),
    ];
    for change in changes {
        let world = RuntimeTest::new(SOURCE);
        let client = world.workspace().join(".claude");
        fs::create_dir(&client).unwrap();
        send(&mut world.runtime(), &propose("c1"));
        change(&client.join("settings.json"));
        let verdict = send(&mut world.runtime(), &finish("c1"));
        assert_eq!(answer(&verdict), ("pause", "changed_during_call"));
        assert!(fs::symlink_metadata(client.join("settings.json")).is_err());
        world.prove("s");
    }
    assert_eq!(
        fs::read_to_string(&elsewhere).unwrap(),
        "{}",
        "the target of the link is unchanged"
    );
}

#[test]
fn the_target_of_a_protected_link_is_protected_too() {
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().join("settings.json");
    fs::write(&elsewhere, "{}").unwrap();
    let world = RuntimeTest::new(SOURCE);
    let client = world.workspace().join(".claude");
    fs::create_dir(&client).unwrap();
    symlink(&elsewhere, client.join("settings.json")).unwrap();
    for call in ["c1", "c2"] {
        let verdict = send(&mut world.runtime(), &propose(call));
        assert_eq!(answer(&verdict), ("allow", ""), "the link existed before");
        let verdict = send(&mut world.runtime(), &finish(call));
        assert_eq!(answer(&verdict), ("allow", ""));
    }
    send(&mut world.runtime(), &propose("c3"));
    fs::write(&elsewhere, "[]").unwrap();
    let verdict = send(&mut world.runtime(), &finish("c3"));
    assert_eq!(answer(&verdict), ("pause", "changed_during_call"));
    world.prove("s");
}
