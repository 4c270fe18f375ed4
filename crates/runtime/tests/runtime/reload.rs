//! A session continues under a reloaded definition, and every reader of its journal uses that
//! definition too.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jackline_analysis::{Backtest, BacktestJournal, BacktestStep};
use jackline_engine::definition::{Policy, PolicyRule};
use jackline_engine::{Decision, Definition, Digest, Session, SessionLocation};
use jackline_host::{HostAccess, LayerFiles};
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime, Sessions, load_session};
use serde_json::{Value, json};

use crate::disturbed_store::{AppendFailure, Disturbances, DisturbedStore};
use crate::replay::resealed;
use crate::support::{RuntimeTest, call, send};

const LINT: &str = "version: 1\npolicies: [ sequential_dependency: { deploy: [lint] } ]\n";
const TEST: &str = "version: 1\npolicies: [ sequential_dependency: { deploy: [test] } ]\n";
const RELOAD: &str = r#"{"event":"control","action":"reload","by":"dana"}"#;

/// How often a record contains a snapshot.
const SNAPSHOT_EVERY: u64 = 4096;

impl RuntimeTest {
    /// The session as readers see it.
    fn inspect(&self) -> Session {
        let sessions = Sessions::new(self.store.clone());
        let found = sessions.select(Some("s"), &self.workspace()).unwrap();
        load_session(&self.store, &found).unwrap()
    }

    /// Changes the definition, and reloads it in the session.
    fn reload(&self, source: &str) -> Value {
        self.write(source);
        send(&mut self.runtime(), RELOAD)
    }

    fn remove_session_file(&self, what: &str) {
        let path = self.directory("s").join(what);
        fs::remove_file(path).unwrap();
    }

    fn remove_compiled(&self) {
        fs::remove_dir_all(self.store.home().join("definitions")).unwrap();
    }
}

/// The tool that must run before `deploy`; empty if `deploy` may run.
fn required_tool(runtime: &mut Runtime, id: &str) -> String {
    let verdict = call(runtime, id, "deploy");
    let correction = verdict["violations"][0]["correction"].as_str().unwrap_or_default();
    correction.trim_start_matches("run `").split('`').next().unwrap_or_default().to_owned()
}

/// The subtype and message of a refused control; empty if it was not refused.
fn refusal(verdict: &Value) -> (&str, &str) {
    assert_eq!(verdict["error"], Value::Null, "{verdict}");
    let violation = &verdict["violations"][0];
    (
        violation["subtype"].as_str().unwrap_or_default(),
        violation["message"].as_str().unwrap_or_default(),
    )
}

/// A session after a reload, with some work after it.
fn reloaded() -> RuntimeTest {
    let world = RuntimeTest::new(LINT);
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    assert_eq!(world.reload(TEST)["decision"], "allow");
    assert_eq!(required_tool(&mut world.runtime(), "c2"), "test");
    world
}

#[test]
fn a_new_process_uses_the_reloaded_definition() {
    let world = reloaded();
    assert_eq!(world.inspect().reloaded_checksum(), Some(Digest::of(TEST.as_bytes())));
    assert_eq!(world.inspect().definition().policies.len(), 1);
    // The file may be missing or changed again: the record counts.
    fs::remove_file(world.file()).unwrap();
    assert_eq!(required_tool(&mut world.runtime(), "c3"), "test");
    world.prove("s");
}

#[test]
fn a_running_process_uses_the_reloaded_definition_with_the_next_event() {
    let world = RuntimeTest::new(LINT);
    let mut runtime = world.runtime();
    assert_eq!(required_tool(&mut runtime, "c1"), "lint");
    assert_eq!(world.reload(TEST)["decision"], "allow");
    assert_eq!(required_tool(&mut runtime, "c2"), "test");
    assert_eq!(refusal(&send(&mut runtime, RELOAD)).0, "no_effect");
    world.write(LINT);
    assert_eq!(send(&mut runtime, RELOAD)["decision"], "allow");
    assert_eq!(required_tool(&mut runtime, "c3"), "lint");
    assert_eq!(required_tool(&mut world.runtime(), "c4"), "lint");
    world.prove("s");
}

#[test]
fn the_reloaded_definition_is_read_from_the_journal_without_the_caches() {
    let world = reloaded();
    let summary = world.summary("s");
    world.remove_compiled();
    assert_eq!(required_tool(&mut world.runtime(), "c3"), "test", "without compiled definitions");
    world.remove_session_file("state");
    assert_eq!(world.summary("s").seq, summary.seq + 1);
    assert_eq!(required_tool(&mut world.runtime(), "c4"), "test", "without a state");
    world.remove_session_file("state");
    world.remove_compiled();
    assert_eq!(required_tool(&mut world.runtime(), "c5"), "test", "without either");
    let snapshot = world.inspect().snapshot();
    world.remove_session_file("state");
    assert_eq!(world.inspect().snapshot(), snapshot, "for readers");
    world.prove("s");
}

#[test]
fn a_state_from_before_the_reload_is_brought_up_to_date() {
    let world = RuntimeTest::new(LINT);
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    let state = world.directory("s").join("state");
    let before = fs::read(&state).unwrap();
    assert_eq!(world.reload(TEST)["decision"], "allow");
    fs::write(&state, before).unwrap();
    assert_eq!(required_tool(&mut world.runtime(), "c2"), "test");
    world.prove("s");
}

#[test]
fn a_snapshot_belongs_to_its_definition() {
    let world = reloaded();
    let mut runtime = world.runtime();
    while world.summary("s").seq + 2 < SNAPSHOT_EVERY {
        for n in 0..500 {
            send(
                &mut runtime,
                &format!(r#"{{"event":"usage_reported","request":"r{n}","input":1,"output":1}}"#),
            );
        }
    }
    let summary = world.summary("s");
    world.remove_session_file("state");
    world.remove_compiled();
    let snapshot = world.records("s").into_iter().find_map(|record| record.snapshot).unwrap();
    let reloads = world.records("s")[1].as_record().reloaded_definition().unwrap().checksum;
    assert_eq!(snapshot.reloaded.unwrap().definition.checksum, reloads);

    let meddler = Arc::new(Disturbances::default());
    let disturbed =
        DisturbedStore { inner: world.store.clone(), disturbances: Arc::clone(&meddler) };
    assert_eq!(required_tool(&mut world.runtime_on(disturbed), "c3"), "test");
    assert_eq!(world.summary("s").seq, summary.seq + 1);
    let at = SNAPSHOT_EVERY;
    let reads = meddler.reads.lock().unwrap().clone();
    assert!(
        !reads.is_empty() && reads.iter().all(|from| *from >= at),
        "the snapshot is at {at}, but reads began at {reads:?}"
    );
    world.prove("s");
}

#[test]
fn a_crash_before_the_record_is_whole_leaves_the_definition_in_force() {
    let world = RuntimeTest::new(LINT);
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    world.write(TEST);
    for how in [AppendFailure::Fails(28), AppendFailure::Panics] {
        let meddler = Arc::new(Disturbances::default());
        *meddler.next_append.lock().unwrap() = Some(how);
        let mut runtime =
            world.runtime_on(DisturbedStore { inner: world.store.clone(), disturbances: meddler });
        assert!(send(&mut runtime, RELOAD)["error"].is_object());
        assert_eq!(required_tool(&mut runtime, "c2"), "lint");
        assert_eq!(required_tool(&mut world.runtime(), "c3"), "lint");
    }
    // The machine crashes in the middle of the record.
    let length = fs::metadata(world.journal("s")).unwrap().len();
    let state = fs::read(world.directory("s").join("state")).unwrap();
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    let whole = fs::read(world.journal("s")).unwrap();
    let torn = &whole[..whole.len() - 200];
    assert!(torn.len() as u64 > length);
    fs::write(world.journal("s"), torn).unwrap();
    fs::write(world.directory("s").join("state"), state).unwrap();
    assert_eq!(required_tool(&mut world.runtime(), "c4"), "lint");
    world.prove("s");
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(required_tool(&mut world.runtime(), "c5"), "test");
    world.prove("s");
}

#[test]
fn of_two_concurrent_reloads_the_second_has_no_effect() {
    let world = RuntimeTest::new(LINT);
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    world.write(TEST);
    let (store, workspace) = (world.store.clone(), world.workspace());
    let meddler = Arc::new(Disturbances::default());
    *meddler.before_lock.lock().unwrap() = Some(Box::new(move || {
        let mut other = runtime_in(&store, &workspace, None);
        assert_eq!(send(&mut other, RELOAD)["decision"], "allow");
    }));
    let mut runtime =
        world.runtime_on(DisturbedStore { inner: world.store.clone(), disturbances: meddler });
    assert_eq!(
        refusal(&send(&mut runtime, RELOAD)),
        ("no_effect", "the session already uses the current definition")
    );
    assert_eq!(required_tool(&mut runtime, "c2"), "test");
    world.prove("s");
}

#[test]
fn a_reload_record_without_its_definition_blocks_the_session() {
    let world = reloaded();
    let lines = world.lines("s");
    let record = String::from_utf8(lines[2].clone()).unwrap();
    let (_, fact) = record.split_once(r#","reload":"#).unwrap();
    let (fact, _) = fact.split_once(r#"},"verdict":"#).unwrap();
    let fact = format!(r#","reload":{fact}"#);
    for (to, why) in [
        ("", "the definition that it puts in force is missing"),
        (r#","reload":"same""#, "the definition that it puts in force is missing"),
        (r#","reload":{"new":{"checksum":"x"}}"#, "can't parse record 2"),
    ] {
        let tampered: Vec<u8> = resealed(&lines, 2, &fact, to)
            .iter()
            .flat_map(|line| [line, &b"\n"[..]].concat())
            .collect();
        fs::write(world.journal("s"), tampered).unwrap();
        let _ = fs::remove_file(world.directory("s").join("state"));
        let verdict = call(&mut world.runtime(), "c3", "deploy");
        assert_eq!(verdict["decision"], "deny");
        let reason = verdict["error"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("the guard is broken, not the call: "), "{reason}");
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn redaction_follows_the_reloaded_definition_from_the_next_event() {
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let world = RuntimeTest::new("version: 1\njournal: { redact: off }\n");
    let mut runtime = world.runtime();
    let slip = |n: u8| {
        let text = format!("{}{secret}", " ".repeat(usize::from(n) * 70_000));
        json!({"event": "prompt_submitted", "text": text}).to_string()
    };
    let leaks = || {
        let has = |file: &&std::path::PathBuf| {
            let bytes = fs::read(file).unwrap();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        };
        crate::support::files(world.store.home()).iter().filter(has).count()
    };
    send(&mut runtime, &slip(0));
    assert!(leaks() > 0);
    world.write("version: 1\n");
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    let before = leaks();
    let records = world.records("s").len();
    send(&mut runtime, &slip(0));
    send(&mut runtime, &slip(1));
    assert_eq!(leaks(), before);
    let after = world.lines("s").split_off(records + 1);
    assert!(after.iter().all(|line| !line.windows(secret.len()).any(|it| it == secret.as_bytes())));
    world.prove("s");
}

#[test]
fn a_moved_workspace_is_reported() {
    let world = RuntimeTest::new(LINT);
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    // A file above the workspace belongs to another project.
    fs::write(world.workspace().parent().unwrap().join("jackline.yaml"), "version: 1\n").unwrap();
    fs::rename(world.workspace(), world.workspace().with_file_name("moved")).unwrap();
    let verdict = send(&mut world.runtime(), RELOAD);
    let (subtype, message) = refusal(&verdict);
    assert_eq!(subtype, "definition");
    assert!(
        message.ends_with("work` no longer exists; the definition in force stays"),
        "{message}"
    );
    assert_eq!(required_tool(&mut world.runtime(), "c2"), "lint");
    world.prove("s");
}

/// A runtime with or without a file that the person passes.
fn runtime_in(store: &FileStore, workspace: &Path, named: Option<&Path>) -> Runtime {
    let host = HostAccess::of_machine(Some(store.home())).with_layers(LayerFiles::default());
    let definitions = Definitions::new(named.map(Path::to_owned), host);
    Runtime::new(store.clone(), definitions, workspace.to_owned())
}

#[test]
fn a_passed_definition_must_be_passed_again() {
    let world = RuntimeTest::new("version: 1\n");
    let named = world.workspace().canonicalize().unwrap().join("own.yaml");
    fs::write(&named, LINT).unwrap();
    let runtime = |named| runtime_in(&world.store, &world.workspace(), named);
    assert_eq!(required_tool(&mut runtime(Some(&named)), "c1"), "lint");
    fs::write(&named, TEST).unwrap();
    let file = named.display();
    let verdict = send(&mut runtime(None), RELOAD);
    assert_eq!(
        refusal(&verdict).1,
        format!(
            "the session runs under `{file}`, which is not in its workspace or above it; pass the \
             definition again: `jackline reload -d {file}`; the definition in force stays"
        )
    );
    assert_eq!(send(&mut runtime(Some(&named)), RELOAD)["decision"], "allow");
    assert_eq!(required_tool(&mut runtime(None), "c2"), "test");
    world.prove("s");
}

#[test]
fn a_definition_of_a_program_is_reloaded_by_that_program() {
    let made = |name: &str| Definition {
        name: name.to_owned(),
        policies: vec![Policy {
            section: None,
            rule: PolicyRule::ReadBeforeWrite { deletes: name == "a/two" },
        }],
        ..Definition::default()
    };
    let world = RuntimeTest::with_definition(&made("a/one"));
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    assert_eq!(refusal(&send(&mut world.runtime(), RELOAD)).0, "no_effect");
    let verdict = send(&mut runtime_in(&world.store, &world.workspace(), None), RELOAD);
    assert!(
        refusal(&verdict).1.starts_with("a program created this definition in code"),
        "{verdict}"
    );
    let definitions = Definitions::made(made("a/two"), world.host(LayerFiles::default())).unwrap();
    let mut other = Runtime::new(world.store.clone(), definitions, world.workspace());
    assert_eq!(send(&mut other, RELOAD)["decision"], "allow");
    assert_eq!(world.inspect().definition().name, "a/two");
    world.prove("s");
}

#[test]
fn layers_and_trust_apply_as_for_a_new_session() {
    let world = RuntimeTest::new("version: 1\nlimits: { steps: 9 }\n");
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let steps = || world.inspect().definition().limits.steps.map(|limit| limit.max);
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    assert_eq!(steps(), Some(5));
    // An untrusted repository can't loosen the user's limits.
    assert_eq!(world.reload("version: 1\nlimits: { steps: 90 }\n")["decision"], "allow");
    assert_eq!(steps(), Some(5));
    world.trust();
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(steps(), Some(90));
    // The user's own file applies at once.
    fs::write(world.user_file(), "limits: { steps: 3 }").unwrap();
    world.write("version: 1\nlimits: { steps: 91 }\n");
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(steps(), Some(3));
    // A broken layer breaks the whole definition.
    fs::write(world.user_file(), "nonsense: 1").unwrap();
    let verdict = send(&mut world.runtime(), RELOAD);
    assert!(refusal(&verdict).1.contains("user.yaml:1:1"), "{verdict}");
    assert_eq!(steps(), Some(3));
    world.prove("s");
}

#[test]
fn a_repository_must_not_lose_its_definition() {
    let world = RuntimeTest::new(LINT);
    fs::write(world.user_file(), "limits: { steps: 50 }").unwrap();
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    fs::remove_file(world.file()).unwrap();
    let verdict = send(&mut world.runtime(), RELOAD);
    assert!(refusal(&verdict).1.starts_with("no `jackline.yaml` in "), "{verdict}");
    assert_eq!(required_tool(&mut world.runtime(), "c2"), "lint");
    // A repository without a definition may get one.
    let other = RuntimeTest::new("");
    fs::remove_file(other.file()).unwrap();
    fs::write(other.user_file(), "limits: { steps: 50 }").unwrap();
    assert_eq!(required_tool(&mut other.runtime(), "c1"), "");
    assert_eq!(other.reload(TEST)["decision"], "allow");
    assert_eq!(required_tool(&mut other.runtime(), "c2"), "test");
    other.prove("s");
}

/// An agent that can't write the definition could create another one nearer to the workspace, or
/// remove one so that another is found.
#[test]
fn a_definition_that_a_call_moved_is_not_used() {
    let above = |world: &RuntimeTest| world.workspace().with_file_name("jackline.yaml");
    let build =
        r#"{"event":"tool_proposed","call":"b","tool":"Bash","args":{"command":"./build.sh"}}"#;
    let built = r#"{"event":"tool_finished","call":"b","status":"ok"}"#;
    for begins_above in [false, true] {
        let world = RuntimeTest::new(LINT);
        if begins_above {
            fs::rename(world.file(), above(&world)).unwrap();
        } else {
            fs::write(above(&world), TEST).unwrap();
        }
        assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
        assert_eq!(send(&mut world.runtime(), build)["decision"], "allow");
        if begins_above {
            world.write(TEST);
        } else {
            fs::remove_file(world.file()).unwrap();
        }
        let verdict = send(&mut world.runtime(), RELOAD);
        assert_eq!(refusal(&verdict).0, "changed_during_call", "{verdict}");
        assert_eq!(send(&mut world.runtime(), built)["decision"], "pause");
        assert_eq!(world.file().exists(), !begins_above, "the file is restored");
        world.prove("s");
    }
}

#[test]
fn extended_files_are_compared_as_they_are_now() {
    let world = RuntimeTest::new("version: 1\nextends: [./base.yaml]\n");
    let base = world.workspace().join("base.yaml");
    fs::write(&base, LINT).unwrap();
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    fs::write(&base, TEST).unwrap();
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(required_tool(&mut world.runtime(), "c2"), "test");
    // It is protected from now on, and the file that was extended before is not.
    fs::write(world.workspace().join("other.yaml"), LINT).unwrap();
    assert_eq!(world.reload("version: 1\nextends: [./other.yaml]\n")["decision"], "allow");
    let write = |file: &str, id: &str| {
        let line = format!(
            r#"{{"event":"tool_proposed","call":"{id}","tool":"Write","args":{{"file_path":"{file}","content":"x"}}}}"#
        );
        send(&mut world.runtime(), &line)["decision"].clone()
    };
    assert_eq!(
        (write("other.yaml", "w1"), write("base.yaml", "w2")),
        (json!("deny"), json!("allow"))
    );
    world.prove("s");
}

#[test]
fn a_backtest_uses_only_its_own_definition() {
    let world = reloaded();
    let source = "policies: [ sequential_dependency: { deploy: [audit] } ]";
    let definition = jackline_definition::load(source.as_bytes(), "test").unwrap();
    let backtest = Backtest::new(&definition, SessionLocation::default());
    let mut journal = BacktestJournal::new(&backtest, Some(world.view("s")));
    let mut steps: Vec<BacktestStep> = Vec::new();
    for line in world.lines("s") {
        steps.extend(journal.line(&line).unwrap().map(Result::unwrap));
    }
    let corrections: Vec<&str> = steps
        .iter()
        .filter(|step| step.decision == Decision::Deny)
        .filter_map(|step| step.violations[0].correction.as_deref())
        .collect();
    assert_eq!(
        corrections, ["run `audit`, then `deploy` again"; 2],
        "before the reload and after it"
    );
}

#[test]
fn a_resent_reload_has_no_effect() {
    let world = RuntimeTest::new(LINT);
    assert_eq!(required_tool(&mut world.runtime(), "c1"), "lint");
    world.write(TEST);
    let line = r#"{"event":"control","action":"reload","id":"e1"}"#;
    let first = send(&mut world.runtime(), line);
    world.write(LINT);
    assert_eq!(send(&mut world.runtime(), line), first);
    assert_eq!(required_tool(&mut world.runtime(), "c2"), "test");
    world.prove("s");
}
