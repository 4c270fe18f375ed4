//! `jackline attest` and `jackline verify --attestation`: a signed statement about a session,
//! and whether it holds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::{JACKLINE, Run, World, feed};

const DEFINITION: &str = "version: 1\nname: a/b\nmode: enforce\ncompletion: {files: [done.txt]}\n";

/// A world with a key, and the session `s1` that has done what it was to do.
fn world() -> World {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("done.txt"), "yes").unwrap();
    work(&world, "s1");
    let made = world.jackline(&["attest", "--new-key"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    world
}

/// A session that is refused something, and ends as done.
fn work(world: &World, session: &str) {
    let events = [
        r#""event":"session_started","model":"m1""#,
        r#""event":"tool_proposed","call":"a","tool":"Write","args":{"file_path":"jackline.yaml","content":"x"}"#,
        r#""event":"stop_proposed""#,
        r#""event":"session_ended""#,
    ];
    let events = events.map(|event| format!(r#"{{"v":1,"session":"{session}",{event}}}"#));
    let run = world.stdio(&events);
    assert_eq!(run.answers(), ["allow", "deny", "allow", "allow"], "{run:?}");
}

fn attested(world: &World, out: &str) -> PathBuf {
    let path = world.root().join(out);
    let run = world.jackline(&["attest", "s1", "--out", path.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    path
}

fn verify(world: &World, file: &Path, more: &[&str]) -> Run {
    let mut args = vec!["verify", "--attestation", file.to_str().unwrap()];
    args.extend(more);
    world.jackline(&args)
}

/// What was signed.
fn statement(file: &Path) -> Value {
    let envelope: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(envelope["payloadType"], "application/vnd.in-toto+json");
    let bytes = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// A repository around the workspace, and its commit.
fn commit(world: &World) -> String {
    let git = |args: &[&str]| {
        let run = feed(
            world.command("git").args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(args),
            b"",
        );
        assert_eq!(run.code, Some(0), "{args:?}: {run:?}");
        run.stdout.trim().to_owned()
    };
    if !world.work().join(".git").exists() {
        git(&["init", "-q"]);
    }
    git(&["add", "-A"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["rev-parse", "HEAD"])
}

#[test]
fn a_statement_says_what_the_journal_says_and_holds() {
    let world = world();
    let head = commit(&world);
    let file = attested(&world, "s1.att");
    let said = statement(&file);
    assert_eq!(said["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(said["subject"][2]["digest"]["gitCommit"], head.as_str());
    let predicate = &said["predicate"];
    assert_eq!(predicate["session"], "s1");
    assert_eq!(predicate["stop"]["code"], "OBJECTIVE_ACHIEVED");
    assert_eq!(predicate["completion"]["result"], "complete");
    assert_eq!(predicate["verdicts"]["decisions"], serde_json::json!({"allow": 3, "deny": 1}));
    assert_eq!(predicate["verdicts"]["guards"], serde_json::json!({"protected": 1}));
    assert_eq!(
        (&predicate["journal"]["records"], &predicate["uncommitted"]),
        (&5.into(), &false.into())
    );
    let run = verify(&world, &file, &["--done", "--commit", &head]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("holds, OBJECTIVE_ACHIEVED"), "{run:?}");
    // An export elsewhere is as good as the journal.
    let export = world.root().join("s1.json");
    world.jackline(&["export", "s1", "--out", export.to_str().unwrap()]);
    fs::remove_dir_all(world.directory("s1")).unwrap();
    let run = verify(&world, &file, &[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("the journal of `s1` is not here"), "{run:?}");
    assert_eq!(verify(&world, &file, &[export.to_str().unwrap()]).code, Some(0));
}

#[test]
fn whatever_does_not_hold_is_named() {
    let world = world();
    let file = attested(&world, "s1.att");
    let run = verify(&world, &file, &["--commit", "abc"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("the commit is attested as none, and not abc"), "{run:?}");
    // The session goes on.
    world.stdio(&[r#"{"v":1,"session":"s1","event":"session_started"}"#]);
    let run = verify(&world, &file, &["--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    for says in
        ["`journal of s1` is not", "`journal.records`", "`verdicts.decisions.allow`", "`stop"]
    {
        assert!(run.stdout.contains(says), "{says}: {run:?}");
    }
    // Another one comes after it.
    work(&world, "s2");
    let run = verify(&world, &file, &["--done"]);
    assert!(run.stdout.contains("the latest session of this workspace is `s2`"), "{run:?}");
    // The journal was changed.
    let journal = fs::read_to_string(world.journal("s2")).unwrap();
    fs::write(world.journal("s2"), journal.replacen("\"m1\"", "\"m2\"", 1)).unwrap();
    let run = world.jackline(&["attest", "s2"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    let run = verify(&world, &file, &["s2"]);
    assert!(run.stdout.contains("the journal is not what was written"), "{run:?}");
}

#[test]
fn only_the_key_that_signed_opens_it() {
    let world = world();
    let file = attested(&world, "s1.att");
    let other = world.root().join("other");
    let run = world.jackline(&["attest", "--new-key", "--key", other.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o600);
    let run =
        verify(&world, &file, &["--public-key", other.with_extension("pub").to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains("no signature in it is one of the key"), "{run:?}");
    // One bit of what was signed.
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find("\"payload\":\"").unwrap() + 40;
    let mut bytes = text.clone().into_bytes();
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    fs::write(&file, bytes).unwrap();
    assert_eq!(verify(&world, &file, &[]).code, Some(1));
    // No key is written over another.
    let run = world.jackline(&["attest", "--new-key"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("move the old one away"), "{run:?}");
}

#[test]
fn what_is_no_attestation_or_no_key_is_bad_input() {
    let world = world();
    let file = attested(&world, "s1.att");
    let text = fs::read_to_string(&file).unwrap();
    for held in [
        "",
        "{}",
        "hello",
        &text[..text.len() / 2],
        r#"{"payload":"?","payloadType":"x","signatures":[]}"#,
    ] {
        fs::write(&file, held).unwrap();
        let run = verify(&world, &file, &[]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{held}: {run:?}");
        assert!(run.stderr.contains("is no attestation"), "{run:?}");
    }
    assert_eq!(verify(&world, Path::new("nowhere"), &[]).code, Some(2));
    fs::write(&file, text).unwrap();
    let public = world.home().join("keys/attest.pub");
    fs::write(&public, "not a key").unwrap();
    let run = verify(&world, &file, &[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("it is no PEM text"), "{run:?}");
    fs::remove_file(world.home().join("keys/attest.ed25519")).unwrap();
    let run = world.jackline(&["attest", "s1"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("jackline attest --new-key"), "{run:?}");
}

/// Runs a script of the examples.
fn example(world: &World, name: &str, args: &[&str], input: &str) -> Run {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evidence");
    let mut shell = world.command("/bin/sh");
    shell.arg(directory.join(name)).args(args).env("JACKLINE", JACKLINE);
    shell.env("JACKLINE_PUBLIC_KEY", world.home().join("keys/attest.pub"));
    feed(&mut shell, input.as_bytes())
}

/// Runs the hook as git does before something is pushed.
fn push_of(world: &World, name: &str, object: &str) -> Run {
    let zero = "0".repeat(40);
    let line = format!("{name} {object} refs/heads/main {zero}\n");
    example(world, "pre-push", &["origin", "somewhere"], &line)
}

fn push(world: &World) -> Run {
    let head = feed(world.command("git").args(["rev-parse", "HEAD"]), b"").stdout;
    push_of(world, "refs/heads/main", head.trim())
}

#[test]
fn a_push_waits_for_a_session_that_is_done_and_attested_for_head() {
    let world = world();
    commit(&world);
    let refused = |says: &str| {
        let run = push(&world);
        assert_eq!(run.code, Some(1), "{says}: {run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(says), "{says}: {run:?}");
    };
    refused("no attestation");
    let attest = || {
        let out = world.work().join(".git/jackline-attestation.json");
        let run = world.jackline(&["attest", "--out", out.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{run:?}");
    };
    attest();
    let run = push(&world);
    assert_eq!(run.code, Some(0), "{run:?}");
    // Another commit, which nobody has attested, also where it is not checked out.
    let git = |args: &[&str]| feed(world.command("git").args(args), b"");
    let first = commit(&world);
    assert_eq!(git(&["checkout", "-q", "HEAD~1"]).code, Some(0));
    assert_eq!(push(&world).code, Some(0));
    let run = push_of(&world, "refs/heads/other", &first);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("because of refs/heads/other"), "{run:?}");
    assert_eq!(git(&["checkout", "-q", "-"]).code, Some(0));
    // What is deleted, and the notes with the evidence, need none.
    assert_eq!(push_of(&world, "(delete)", &"0".repeat(40)).code, Some(0));
    assert_eq!(push_of(&world, "refs/notes/jackline", &first).code, Some(0));
    refused("the commit is attested as");
    attest();
    assert_eq!(push(&world).code, Some(0));
    // Another session, which has not achieved anything.
    world.stdio(&[r#"{"v":1,"session":"s2","event":"session_started"}"#]);
    refused("the latest session of this workspace is `s2`");
    attest();
    refused("and not OBJECTIVE_ACHIEVED");
}

#[test]
fn what_is_not_known_to_be_committed_is_not_done() {
    let world = world();
    let done = || {
        let run = world.jackline(&["attest", "s1", "--out", "../s1.att"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        (run.stderr, verify(&world, &world.root().join("s1.att"), &["--done"]))
    };
    let refused = |warns: &str, says: &str| {
        let (warned, run) = done();
        assert!(warned.contains(warns), "{warns}: {warned}");
        assert_eq!(run.code, Some(1), "{says}: {run:?}");
        assert!(run.stdout.contains(says), "{says}: {run:?}");
    };
    // No repository, and one without a commit.
    refused("git names no commit", "no commit is attested");
    assert_eq!(feed(world.command("git").args(["init", "-q"]), b"").code, Some(0));
    refused("git names no commit", "no commit is attested");
    // Files that git has never seen, but for those that are no work.
    commit(&world);
    let ours = world.work().join(".jackline");
    fs::create_dir_all(ours.join("new")).unwrap();
    fs::write(ours.join("new/note.md"), "for a person").unwrap();
    let (warned, run) = done();
    assert_eq!(run.code, Some(0), "{warned}: {run:?}");
    fs::create_dir_all(world.work().join("src/.jackline")).unwrap();
    let work = world.work().join("src/.jackline/new.rs");
    fs::write(&work, "fn main() {}").unwrap();
    refused("not in it", "not in it, when it was attested");
    fs::write(world.work().join(".git/info/exclude"), "new.rs\n").unwrap();
    assert_eq!(done().1.code, Some(0), "what is ignored is no work");
    // An index that nobody can read.
    fs::write(world.work().join(".git/index"), "garbage").unwrap();
    refused("git names no commit", "no commit is attested");
}

/// Adds a note to the commit that is checked out.
fn add_note(world: &World, name: &str, file: &Path) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    let mut git = world.command("git");
    git.args(identity).args(["notes", &format!("--ref={name}"), "add", "-f", "-F"]);
    let run = feed(git.arg(file).arg("HEAD"), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_build_far_from_the_session_takes_only_what_is_done_and_attested() {
    let world = world();
    let head = commit(&world);
    let check = |says: &str, code: i32| {
        let run = example(&world, "ci.sh", &[], "");
        assert_eq!(run.code, Some(code), "{says}: {run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(says), "{says}: {run:?}");
    };
    check(&format!("no evidence for {head}"), 1);
    let travels = |session: &str| {
        let [attested, export] = ["a", "e"].map(|name| world.root().join(name));
        let out = |path: &Path| path.to_str().unwrap().to_owned();
        let _ = fs::remove_file(&export);
        let run = world.jackline(&["attest", session, "--out", &out(&attested)]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let run = world.jackline(&["export", session, "--out", &out(&export)]);
        assert_eq!(run.code, Some(0), "{run:?}");
        add_note(&world, "jackline", &attested);
        add_note(&world, "jackline-session", &export);
    };
    // One that has not achieved anything, and one that has; neither is here any more.
    world.stdio(&[r#"{"v":1,"session":"s2","event":"session_started"}"#]);
    travels("s2");
    check("and not OBJECTIVE_ACHIEVED", 1);
    travels("s1");
    fs::remove_dir_all(world.home().join("sessions")).unwrap();
    check("holds, OBJECTIVE_ACHIEVED", 0);
    commit(&world);
    check("no evidence for ", 1);
}
