//! `jackline reload`: a session goes on under the definition as it is now, and
//! every command that looks at it says so.

use std::fs;

use jackline_engine::Digest;
use jackline_journal::{check_line, seal};
use serde_json::json;

use crate::support::{Run, World, feed};

const STRICT: &str = "version: 1\nname: a/strict\nlimits: { steps: 2 }\n";
const LOOSE: &str = "version: 1\nname: a/loose\nlimits: { steps: 4 }\n";

fn propose(world: &World, call: u32) -> String {
    let line = format!(
        r#"{{"session":"s","event":"tool_proposed","call":"c{call}","tool":"search","args":{{"n":{call}}}}}"#
    );
    let done =
        format!(r#"{{"session":"s","event":"tool_finished","call":"c{call}","status":"ok"}}"#);
    world.stdio(&[line, done]).answers()[0].clone()
}

fn ends(run: &Run, code: i32, said: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(said),
        "expected {code} and `{said}`: {run:#?}"
    );
}

impl World {
    fn define(&self, source: &str) {
        fs::write(self.work().join("jackline.yaml"), source).unwrap();
    }
}

#[test]
fn a_budget_is_raised_while_the_session_runs() {
    let world = World::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    ends(
        &world.jackline(&["reload", "s", "--by", "dana", "--why", "more to do"]),
        0,
        "session `s` runs under the definition as it is now",
    );
    for call in 2..=4 {
        assert_eq!(propose(&world, call), "allow", "call {call}");
    }
    assert_eq!(propose(&world, 5), "stop", "what was spent counts");
    ends(&world.jackline(&["reload", "s"]), 1, "this session is over: BUDGET_EXCEEDED");
    let safety = fs::read_to_string(world.work().join(".jackline/safety_log.json")).unwrap();
    assert!(safety.contains("reloaded") && safety.contains("more to do"), "{safety}");
    world.prove("s");
}

#[test]
fn everybody_who_looks_sees_what_is_in_force() {
    let world = World::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    let run = world.jackline(&["reload", "--json"]);
    assert_eq!(
        (run.code, &run.verdicts()[0]),
        (
            Some(0),
            &json!({"session": "s", "action": "reload", "done": true, "record": 3, "objections": []})
        )
    );
    let checksum = Digest::of(LOOSE.as_bytes()).to_string();
    ends(&world.jackline(&["status"]), 0, "a/loose");
    ends(&world.jackline(&["status"]), 0, "1 of 4");
    let status = &world.jackline(&["status", "--json"]).verdicts()[0];
    assert_eq!(
        status["definition"],
        json!({"name": "a/loose", "checksum": checksum, "mode": "enforce"})
    );
    ends(&world.jackline(&["log"]), 0, &format!("from here on under a/loose {checksum}"));
    ends(&world.jackline(&["show", "3"]), 0, &format!(r#""checksum": "{checksum}""#));
    ends(&world.jackline(&["watch", "--once"]), 0, "a/loose");
    let explained = &world.jackline(&["explain", "--session", "s", "--json", "ls"]).verdicts()[0];
    assert_eq!(explained["definition"]["checksum"], json!(checksum), "{explained}");
    ends(&world.jackline(&["verify", "s"]), 0, "clean");
    ends(&world.jackline(&["replay", "s"]), 0, "proven");
    ends(&world.jackline(&["backtest", "s", "-d", "jackline.yaml"]), 0, "");

    // An export is enough, wherever it is.
    let away = world.root().join("away.json");
    ends(&world.jackline(&["export", "s", "--out", away.to_str().unwrap()]), 0, "");
    fs::remove_dir_all(world.home()).unwrap();
    ends(&world.jackline(&["replay", away.to_str().unwrap()]), 0, "proven");
    ends(&world.jackline(&["status", away.to_str().unwrap()]), 0, "a/loose");
}

#[test]
fn what_cannot_be_reloaded_changes_nothing() {
    let world = World::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    ends(&world.jackline(&["reload", "nobody"]), 2, "no session `nobody`");
    ends(&world.jackline(&["reload"]), 1, "nothing to do; change the definition first");
    world.define("version: 1\nlimit: { steps: 9 }\n");
    ends(&world.jackline(&["reload"]), 1, "jackline.yaml:2:1");
    ends(&world.jackline(&["reload"]), 1, "mend it (`jackline check`), then reload");
    fs::remove_file(world.work().join("jackline.yaml")).unwrap();
    ends(&world.jackline(&["reload"]), 1, "no `jackline.yaml` in");
    let run = world.jackline(&["reload", "--json"]);
    let told = &run.verdicts()[0];
    assert_eq!((run.code, &told["done"]), (Some(1), &json!(false)));
    assert_eq!(told["objections"][0]["subtype"], "definition");
    fs::rename(world.work(), world.root().join("moved")).unwrap();
    let run =
        feed(world.person().current_dir(world.root().join("moved")).args(["reload", "s"]), b"");
    ends(&run, 1, "is not there any more");
    fs::rename(world.root().join("moved"), world.work()).unwrap();
    assert_eq!(propose(&world, 2), "allow");
    assert_eq!(propose(&world, 3), "stop");
    world.prove("s");
}

#[test]
fn a_definition_that_was_named_is_named_again() {
    let world = World::new("version: 1\n");
    fs::write(world.work().join("own.yaml"), STRICT).unwrap();
    let line = r#"{"session":"s","event":"session_started"}"#;
    feed(world.person().args(["stdio", "-d", "own.yaml"]), line.as_bytes());
    fs::write(world.work().join("own.yaml"), LOOSE).unwrap();
    ends(&world.jackline(&["reload"]), 1, "name the definition that you mean: `jackline reload -d");
    ends(&world.jackline(&["reload", "-d", "own.yaml"]), 0, "runs under the definition");
    ends(
        &world.jackline(&["reload", "-d", "gone.yaml"]),
        1,
        "can't read the definition `gone.yaml`",
    );
    ends(&world.jackline(&["status"]), 0, "a/loose");
    world.prove("s");
}

#[test]
fn the_wire_reloads_alike() {
    let world = World::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    let reload = r#"{"session":"s","event":"control","action":"reload","by":"dana"}"#;
    let run = world.stdio(&[reload, reload]);
    assert_eq!((run.code, run.answers()), (Some(0), vec!["allow".to_owned(), "deny".to_owned()]));
    assert_eq!(run.verdicts()[1]["violations"][0]["subtype"], "no_effect");
    let facts = world.records("s")[2].facts.clone();
    assert_eq!(
        facts.reload.map(|fact| serde_json::to_value(fact).unwrap()["new"]["checksum"].clone()),
        Some(json!(Digest::of(LOOSE.as_bytes())))
    );
    world.prove("s");
}

/// The last record without the definition, sealed as if it had never been there.
#[test]
fn a_record_that_lost_its_definition_is_found_and_shuts_the_gate() {
    let world = World::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    ends(&world.jackline(&["reload"]), 0, "runs under the definition");
    let journal = fs::read_to_string(world.journal("s")).unwrap();
    let (before, last) = journal.trim_end().rsplit_once('\n').unwrap();
    let prev = check_line(last.as_bytes()).unwrap().prev;
    let (body, _) = last.rsplit_once(r#","prev":""#).unwrap();
    let (head, rest) = body.split_once(r#","reload":"#).unwrap();
    let (_, tail) = rest.split_once(r#"},"verdict":"#).unwrap();
    let (line, _) = seal(format!(r#"{head}}},"verdict":{tail}"#).as_bytes(), &prev);
    fs::write(world.journal("s"), [before.as_bytes(), b"\n", &line].concat()).unwrap();
    fs::remove_file(world.directory("s").join("state")).unwrap();
    let missing = "the definition that it puts in force is missing";
    ends(&world.jackline(&["verify", "s"]), 1, &format!("record 3 unreadable: {missing}"));
    ends(&world.jackline(&["status", "s"]), 3, missing);
    let run = world.stdio(&[r#"{"session":"s","event":"stop_proposed"}"#]);
    ends(&run, 3, "the guard is broken, not the call: record 3 can't be understood");
    ends(&run, 3, missing);
}

/// What `jackline enforce` writes for a person is theirs, whatever runs meanwhile.
#[test]
fn what_our_own_command_wrote_is_reloaded_while_a_call_is_under_way() {
    let world = World::new("version: 1\nmode: observe\nlimits: { steps: 9 }\n");
    let call = r#"{"session":"s","event":"tool_proposed","call":"c1","tool":"Bash","args":{"command":"./build.sh"}}"#;
    assert_eq!(world.stdio(&[call]).answers(), ["allow"]);
    ends(&world.jackline(&["enforce"]), 0, "");
    ends(&world.jackline(&["reload"]), 0, "runs under the definition");
    let status = &world.jackline(&["status", "--json"]).verdicts()[0];
    assert_eq!(status["definition"]["mode"], "enforce");
    let done = r#"{"session":"s","event":"tool_finished","call":"c1","status":"ok"}"#;
    assert_eq!(world.stdio(&[done]).answers(), ["allow"], "and it stays");
    world.define("version: 1\n");
    assert_eq!(world.stdio(&[call.replace("c1", "c2")]).answers(), ["allow"]);
    world.define("version: 1\nmode: observe\n");
    ends(&world.jackline(&["reload"]), 1, "was changed while a call was under way");
    world.prove("s");
}
