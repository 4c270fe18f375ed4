//! A session goes on under another definition, and everything that reads its
//! journal goes with it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jackline_analysis::{Backtest, BacktestJournal, BacktestStep};
use jackline_engine::definition::{Policy, PolicyRule};
use jackline_engine::{Decision, Definition, Digest, Place, Session};
use jackline_host::{HostAccess, LayerFiles};
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime, Sessions, inspect};
use serde_json::{Value, json};

use crate::meddling::{How, Meddler, Meddling};
use crate::replay::resealed;
use crate::support::{World, call, send};

const LINT: &str = "version: 1\npolicies: [ sequential_dependency: { deploy: [lint] } ]\n";
const TEST: &str = "version: 1\npolicies: [ sequential_dependency: { deploy: [test] } ]\n";
const RELOAD: &str = r#"{"event":"control","action":"reload","by":"dana"}"#;

/// How often a record carries a snapshot.
const SNAPSHOT_EVERY: u64 = 4096;

impl World {
    /// The session for those who only look.
    fn inspect(&self) -> Session {
        let sessions = Sessions::new(self.store.clone());
        let found = sessions.select(Some("s"), &self.workspace()).unwrap();
        inspect(&self.store, &found).unwrap()
    }

    /// Changes the definition, and has the session go on under it.
    fn reload(&self, source: &str) -> Value {
        self.write(source);
        send(&mut self.runtime(), RELOAD)
    }

    fn forget(&self, what: &str) {
        let path = self.directory("s").join(what);
        fs::remove_file(path).unwrap();
    }

    fn forget_compiled(&self) {
        fs::remove_dir_all(self.store.home().join("definitions")).unwrap();
    }
}

/// What `deploy` is told to run first; empty where it may run.
fn wants(runtime: &mut Runtime, id: &str) -> String {
    let verdict = call(runtime, id, "deploy");
    let told = verdict["violations"][0]["correction"].as_str().unwrap_or_default();
    told.trim_start_matches("run `").split('`').next().unwrap_or_default().to_owned()
}

/// Why a control was refused; nothing where it was not.
fn refusal(verdict: &Value) -> (&str, &str) {
    assert_eq!(verdict["error"], Value::Null, "{verdict}");
    let found = &verdict["violations"][0];
    (found["subtype"].as_str().unwrap_or_default(), found["message"].as_str().unwrap_or_default())
}

/// A session that was reloaded, and some work after it.
fn reloaded() -> World {
    let world = World::new(LINT);
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    assert_eq!(world.reload(TEST)["decision"], "allow");
    assert_eq!(wants(&mut world.runtime(), "c2"), "test");
    world
}

#[test]
fn a_new_process_goes_on_under_what_was_reloaded() {
    let world = reloaded();
    assert_eq!(world.inspect().reloaded(), Some(Digest::of(TEST.as_bytes())));
    assert_eq!(world.inspect().definition().policies.len(), 1);
    // The file may be gone or changed again: it is the record that counts.
    fs::remove_file(world.file()).unwrap();
    assert_eq!(wants(&mut world.runtime(), "c3"), "test");
    world.prove("s");
}

#[test]
fn a_process_that_is_at_work_goes_on_under_it_with_the_next_event() {
    let world = World::new(LINT);
    let mut runtime = world.runtime();
    assert_eq!(wants(&mut runtime, "c1"), "lint");
    assert_eq!(world.reload(TEST)["decision"], "allow");
    assert_eq!(wants(&mut runtime, "c2"), "test");
    assert_eq!(refusal(&send(&mut runtime, RELOAD)).0, "no_effect");
    world.write(LINT);
    assert_eq!(send(&mut runtime, RELOAD)["decision"], "allow");
    assert_eq!(wants(&mut runtime, "c3"), "lint");
    assert_eq!(wants(&mut world.runtime(), "c4"), "lint");
    world.prove("s");
}

#[test]
fn what_was_reloaded_is_read_from_the_journal_where_the_caches_are_gone() {
    let world = reloaded();
    let summary = world.summary("s");
    world.forget_compiled();
    assert_eq!(wants(&mut world.runtime(), "c3"), "test", "without compiled definitions");
    world.forget("state");
    assert_eq!(world.summary("s").seq, summary.seq + 1);
    assert_eq!(wants(&mut world.runtime(), "c4"), "test", "without a state");
    world.forget("state");
    world.forget_compiled();
    assert_eq!(wants(&mut world.runtime(), "c5"), "test", "without either");
    let looked = world.inspect().snapshot();
    world.forget("state");
    assert_eq!(world.inspect().snapshot(), looked, "for those who only look");
    world.prove("s");
}

#[test]
fn a_state_of_before_the_reload_is_brought_up_to_date() {
    let world = World::new(LINT);
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    let state = world.directory("s").join("state");
    let before = fs::read(&state).unwrap();
    assert_eq!(world.reload(TEST)["decision"], "allow");
    fs::write(&state, before).unwrap();
    assert_eq!(wants(&mut world.runtime(), "c2"), "test");
    world.prove("s");
}

#[test]
fn a_snapshot_belongs_to_the_definition_it_was_made_under() {
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
    world.forget("state");
    world.forget_compiled();
    let snapshot = world.records("s").into_iter().find_map(|record| record.snapshot).unwrap();
    let reloads = world.records("s")[1].as_record().reloads().unwrap().checksum;
    assert_eq!(snapshot.reloaded.unwrap().definition.checksum, reloads);

    let meddler = Arc::new(Meddler::default());
    let watched = Meddling { inner: world.store.clone(), meddler: Arc::clone(&meddler) };
    assert_eq!(wants(&mut world.runtime_on(watched), "c3"), "test");
    assert_eq!(world.summary("s").seq, summary.seq + 1);
    let at = SNAPSHOT_EVERY;
    let reads = meddler.reads.lock().unwrap().clone();
    assert!(!reads.is_empty() && reads.iter().all(|from| *from >= at), "{at}, read from {reads:?}");
    world.prove("s");
}

#[test]
fn a_crash_before_the_record_is_whole_leaves_the_definition_in_force() {
    let world = World::new(LINT);
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    world.write(TEST);
    for how in [How::Fails(28), How::Panics] {
        let meddler = Arc::new(Meddler::default());
        *meddler.next.lock().unwrap() = Some(how);
        let mut runtime = world.runtime_on(Meddling { inner: world.store.clone(), meddler });
        assert!(send(&mut runtime, RELOAD)["error"].is_object());
        assert_eq!(wants(&mut runtime, "c2"), "lint");
        assert_eq!(wants(&mut world.runtime(), "c3"), "lint");
    }
    // The machine goes down in the middle of the record.
    let length = fs::metadata(world.journal("s")).unwrap().len();
    let state = fs::read(world.directory("s").join("state")).unwrap();
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    let whole = fs::read(world.journal("s")).unwrap();
    let torn = &whole[..whole.len() - 200];
    assert!(torn.len() as u64 > length);
    fs::write(world.journal("s"), torn).unwrap();
    fs::write(world.directory("s").join("state"), state).unwrap();
    assert_eq!(wants(&mut world.runtime(), "c4"), "lint");
    world.prove("s");
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(wants(&mut world.runtime(), "c5"), "test");
    world.prove("s");
}

#[test]
fn of_two_who_reload_at_once_the_second_is_told() {
    let world = World::new(LINT);
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    world.write(TEST);
    let (store, workspace) = (world.store.clone(), world.workspace());
    let meddler = Arc::new(Meddler::default());
    *meddler.before_lock.lock().unwrap() = Some(Box::new(move || {
        let mut other = runtime_in(&store, &workspace, None);
        assert_eq!(send(&mut other, RELOAD)["decision"], "allow");
    }));
    let mut runtime = world.runtime_on(Meddling { inner: world.store.clone(), meddler });
    assert_eq!(
        refusal(&send(&mut runtime, RELOAD)),
        ("no_effect", "the session runs under the definition as it is now")
    );
    assert_eq!(wants(&mut runtime, "c2"), "test");
    world.prove("s");
}

#[test]
fn a_reload_that_does_not_say_what_is_in_force_shuts_the_gate() {
    let world = reloaded();
    let lines = world.lines("s");
    let record = String::from_utf8(lines[2].clone()).unwrap();
    let (_, fact) = record.split_once(r#","reload":"#).unwrap();
    let (fact, _) = fact.split_once(r#"},"verdict":"#).unwrap();
    let fact = format!(r#","reload":{fact}"#);
    for (to, why) in [
        ("", "the definition that it puts in force is missing"),
        (r#","reload":"same""#, "the definition that it puts in force is missing"),
        (r#","reload":{"new":{"checksum":"x"}}"#, "record 2 can't be understood"),
    ] {
        let forged: Vec<u8> = resealed(&lines, 2, &fact, to)
            .iter()
            .flat_map(|line| [line, &b"\n"[..]].concat())
            .collect();
        fs::write(world.journal("s"), forged).unwrap();
        let _ = fs::remove_file(world.directory("s").join("state"));
        let verdict = call(&mut world.runtime(), "c3", "deploy");
        assert_eq!(verdict["decision"], "deny");
        let said = verdict["error"]["reason"].as_str().unwrap();
        assert!(said.starts_with("the guard is broken, not the call: "), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn secrets_are_taken_out_as_the_definition_says_from_the_next_event_on() {
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let world = World::new("version: 1\njournal: { redact: off }\n");
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
fn a_workspace_that_moved_says_so() {
    let world = World::new(LINT);
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    // What lies above it is another project's.
    fs::write(world.workspace().parent().unwrap().join("jackline.yaml"), "version: 1\n").unwrap();
    fs::rename(world.workspace(), world.workspace().with_file_name("moved")).unwrap();
    let verdict = send(&mut world.runtime(), RELOAD);
    let (subtype, message) = refusal(&verdict);
    assert_eq!(subtype, "definition");
    assert!(
        message.ends_with("work` is not there any more; the definition in force stays"),
        "{message}"
    );
    assert_eq!(wants(&mut world.runtime(), "c2"), "lint");
    world.prove("s");
}

/// A runtime whose person names a definition, or does not.
fn runtime_in(store: &FileStore, workspace: &Path, named: Option<&Path>) -> Runtime {
    let host = HostAccess::of_machine(Some(store.home())).with_layers(LayerFiles::default());
    let definitions = Definitions::new(named.map(Path::to_owned), host);
    Runtime::new(store.clone(), definitions, workspace.to_owned())
}

#[test]
fn a_definition_that_was_named_has_to_be_named_again() {
    let world = World::new("version: 1\n");
    let named = world.workspace().canonicalize().unwrap().join("own.yaml");
    fs::write(&named, LINT).unwrap();
    let runtime = |named| runtime_in(&world.store, &world.workspace(), named);
    assert_eq!(wants(&mut runtime(Some(&named)), "c1"), "lint");
    fs::write(&named, TEST).unwrap();
    let file = named.display();
    let verdict = send(&mut runtime(None), RELOAD);
    assert_eq!(
        refusal(&verdict).1,
        format!(
            "the session runs under `{file}`, which is not found from its workspace; name the \
             definition that you mean: `jackline reload -d {file}`; the definition in force stays"
        )
    );
    assert_eq!(send(&mut runtime(Some(&named)), RELOAD)["decision"], "allow");
    assert_eq!(wants(&mut runtime(None), "c2"), "test");
    world.prove("s");
}

#[test]
fn a_definition_that_a_program_made_is_reloaded_by_that_program() {
    let made = |name: &str| Definition {
        name: name.to_owned(),
        policies: vec![Policy {
            section: None,
            rule: PolicyRule::ReadBeforeWrite { deletes: name == "a/two" },
        }],
        ..Definition::default()
    };
    let world = World::with_definition(&made("a/one"));
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    assert_eq!(refusal(&send(&mut world.runtime(), RELOAD)).0, "no_effect");
    let verdict = send(&mut runtime_in(&world.store, &world.workspace(), None), RELOAD);
    assert!(refusal(&verdict).1.starts_with("the definition was made by a program"), "{verdict}");
    let definitions = Definitions::made(made("a/two"), world.host(LayerFiles::default())).unwrap();
    let mut other = Runtime::new(world.store.clone(), definitions, world.workspace());
    assert_eq!(send(&mut other, RELOAD)["decision"], "allow");
    assert_eq!(world.inspect().definition().name, "a/two");
    world.prove("s");
}

#[test]
fn layers_and_trust_count_as_for_a_session_that_starts() {
    let world = World::new("version: 1\nlimits: { steps: 9 }\n");
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let steps = || world.inspect().definition().limits.steps.map(|limit| limit.max);
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    assert_eq!(steps(), Some(5));
    // A repository that nobody trusts can't loosen what a person demands.
    assert_eq!(world.reload("version: 1\nlimits: { steps: 90 }\n")["decision"], "allow");
    assert_eq!(steps(), Some(5));
    world.trust();
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(steps(), Some(90));
    // The person's own word counts at once.
    fs::write(world.user_file(), "limits: { steps: 3 }").unwrap();
    world.write("version: 1\nlimits: { steps: 91 }\n");
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(steps(), Some(3));
    // A layer that is broken breaks the whole.
    fs::write(world.user_file(), "nonsense: 1").unwrap();
    let verdict = send(&mut world.runtime(), RELOAD);
    assert!(refusal(&verdict).1.contains("user.yaml:1:1"), "{verdict}");
    assert_eq!(steps(), Some(3));
    world.prove("s");
}

#[test]
fn a_repository_that_loses_its_definition_is_not_left_to_the_persons_alone() {
    let world = World::new(LINT);
    fs::write(world.user_file(), "limits: { steps: 50 }").unwrap();
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    fs::remove_file(world.file()).unwrap();
    let verdict = send(&mut world.runtime(), RELOAD);
    assert!(refusal(&verdict).1.starts_with("no `jackline.yaml` in "), "{verdict}");
    assert_eq!(wants(&mut world.runtime(), "c2"), "lint");
    // One that had none may get one.
    let other = World::new("");
    fs::remove_file(other.file()).unwrap();
    fs::write(other.user_file(), "limits: { steps: 50 }").unwrap();
    assert_eq!(wants(&mut other.runtime(), "c1"), "");
    assert_eq!(other.reload(TEST)["decision"], "allow");
    assert_eq!(wants(&mut other.runtime(), "c2"), "test");
    other.prove("s");
}

/// Whoever can't write the definition may put another in its way, or take it
/// away so that another is found.
#[test]
fn a_definition_that_is_found_elsewhere_because_of_a_call_is_not_obeyed() {
    let above = |world: &World| world.workspace().with_file_name("jackline.yaml");
    let build =
        r#"{"event":"tool_proposed","call":"b","tool":"Bash","args":{"command":"./build.sh"}}"#;
    let built = r#"{"event":"tool_finished","call":"b","status":"ok"}"#;
    for begins_above in [false, true] {
        let world = World::new(LINT);
        if begins_above {
            fs::rename(world.file(), above(&world)).unwrap();
        } else {
            fs::write(above(&world), TEST).unwrap();
        }
        assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
        assert_eq!(send(&mut world.runtime(), build)["decision"], "allow");
        if begins_above {
            world.write(TEST);
        } else {
            fs::remove_file(world.file()).unwrap();
        }
        let verdict = send(&mut world.runtime(), RELOAD);
        assert_eq!(refusal(&verdict).0, "changed_during_call", "{verdict}");
        assert_eq!(send(&mut world.runtime(), built)["decision"], "pause");
        assert_eq!(world.file().exists(), !begins_above, "it is as it was");
        world.prove("s");
    }
}

#[test]
fn what_extends_another_file_is_compared_as_it_is_now() {
    let world = World::new("version: 1\nextends: [./base.yaml]\n");
    let base = world.workspace().join("base.yaml");
    fs::write(&base, LINT).unwrap();
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    fs::write(&base, TEST).unwrap();
    assert_eq!(send(&mut world.runtime(), RELOAD)["decision"], "allow");
    assert_eq!(wants(&mut world.runtime(), "c2"), "test");
    // It is protected from now on, and what was extended before is not.
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
fn a_backtest_of_it_asks_about_one_definition_alone() {
    let world = reloaded();
    let source = "policies: [ sequential_dependency: { deploy: [audit] } ]";
    let definition = jackline_definition::load(source.as_bytes(), "test").unwrap();
    let backtest = Backtest::new(&definition, Place::default());
    let mut journal = BacktestJournal::new(&backtest, Some(world.view("s")));
    let mut steps: Vec<BacktestStep> = Vec::new();
    for line in world.lines("s") {
        steps.extend(journal.line(&line).unwrap().map(Result::unwrap));
    }
    let told: Vec<&str> = steps
        .iter()
        .filter(|step| step.decision == Decision::Deny)
        .filter_map(|step| step.objections[0].correction.as_deref())
        .collect();
    assert_eq!(told, ["run `audit`, then `deploy` again"; 2], "before the reload and after it");
}

#[test]
fn a_resend_of_a_reload_reloads_nothing() {
    let world = World::new(LINT);
    assert_eq!(wants(&mut world.runtime(), "c1"), "lint");
    world.write(TEST);
    let line = r#"{"event":"control","action":"reload","id":"e1"}"#;
    let first = send(&mut world.runtime(), line);
    world.write(LINT);
    assert_eq!(send(&mut world.runtime(), line), first);
    assert_eq!(wants(&mut world.runtime(), "c2"), "test");
    world.prove("s");
}
