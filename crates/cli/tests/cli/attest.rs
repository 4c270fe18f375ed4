//! Tests of `jackline attest` and `jackline verify --attestation`: a signed statement about a
//! session, and whether it is valid.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

const DEFINITION: &str = "version: 1\nname: a/b\nmode: enforce\ncompletion: {files: [done.txt]}\n";

/// A world with a key and the finished session `s1`.
fn finished_world() -> CliWorld {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("done.txt"), "yes").unwrap();
    run_session(&world, "s1");
    let made = world.jackline(&["attest", "--new-key"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    world
}

/// A session with one denied call that ends with its objective achieved.
fn run_session(world: &CliWorld, session: &str) {
    let events = [
        r#""event":"session_started","model":"m1""#,
        r#""event":"tool_proposed","call":"a","tool":"Write","args":{"file_path":"jackline.yaml","content":"x"}"#,
        r#""event":"stop_proposed""#,
        r#""event":"session_ended""#,
    ];
    let events = events.map(|event| format!(r#"{{"v":1,"session":"{session}",{event}}}"#));
    let run = world.stdio(&events);
    assert_eq!(run.decisions(), ["allow", "deny", "allow", "allow"], "{run:?}");
}

fn attest_session(world: &CliWorld, out: &str) -> PathBuf {
    let path = world.root().join(out);
    let run = world.jackline(&["attest", "s1", "--out", path.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    path
}

fn verify(world: &CliWorld, file: &Path, more: &[&str]) -> CliOutput {
    let mut args = vec!["verify", "--attestation", file.to_str().unwrap()];
    args.extend(more);
    world.jackline(&args)
}

/// Returns the signed statement.
fn signed_statement(file: &Path) -> Value {
    let envelope: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(envelope["payloadType"], "application/vnd.in-toto+json");
    let bytes = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Creates a repository in the workspace if there is none, and commits. Returns the commit.
fn commit_workspace(world: &CliWorld) -> String {
    let git = |args: &[&str]| {
        let run = run_with_input(
            world.command("git").args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(args),
            b"",
        );
        assert_eq!(run.code, Some(0), "{args:?}: {run:?}");
        run.stdout.trim().to_owned()
    };
    if !world.workspace().join(".git").exists() {
        git(&["init", "-q"]);
    }
    git(&["add", "-A"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["rev-parse", "HEAD"])
}

#[test]
fn a_statement_matches_the_journal_and_is_valid() {
    let world = finished_world();
    let head = commit_workspace(&world);
    let file = attest_session(&world, "s1.att");
    let statement = signed_statement(&file);
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["subject"][2]["digest"]["gitCommit"], head.as_str());
    let predicate = &statement["predicate"];
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
    assert!(run.stdout.contains("valid, finished"), "{run:?}");
    // An export is as good as the journal, also on another machine.
    let export = world.root().join("s1.json");
    world.jackline(&["export", "s1", "--out", export.to_str().unwrap()]);
    fs::remove_dir_all(world.session_directory("s1")).unwrap();
    let run = verify(&world, &file, &[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("the journal of `s1` was not found"), "{run:?}");
    assert_eq!(verify(&world, &file, &[export.to_str().unwrap()]).code, Some(0));
}

#[test]
fn every_mismatch_is_named() {
    let world = finished_world();
    let file = attest_session(&world, "s1.att");
    let run = verify(&world, &file, &["--commit", "abc"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("the attested commit is none, not abc"), "{run:?}");
    // The session continues.
    world.stdio(&[r#"{"v":1,"session":"s1","event":"session_started"}"#]);
    let run = verify(&world, &file, &["--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    for fragment in
        ["`journal of s1` differs", "`journal.records`", "`verdicts.decisions.allow`", "`stop"]
    {
        assert!(run.stdout.contains(fragment), "{fragment}: {run:?}");
    }
    // A later session exists.
    run_session(&world, "s2");
    let run = verify(&world, &file, &["--done"]);
    assert!(run.stdout.contains("the latest session of this workspace is `s2`"), "{run:?}");
    // The journal was changed.
    let journal = fs::read_to_string(world.journal_path("s2")).unwrap();
    fs::write(world.journal_path("s2"), journal.replacen("\"m1\"", "\"m2\"", 1)).unwrap();
    let run = world.jackline(&["attest", "s2"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    let run = verify(&world, &file, &["s2"]);
    assert!(run.stdout.contains("the journal was changed"), "{run:?}");
}

#[test]
fn only_the_signing_key_verifies_the_statement() {
    let world = finished_world();
    let file = attest_session(&world, "s1.att");
    let other = world.root().join("other");
    let run = world.jackline(&["attest", "--new-key", "--key", other.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o600);
    let run =
        verify(&world, &file, &["--public-key", other.with_extension("pub").to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains("it has no valid signature of the key"), "{run:?}");
    // Changes one character of the signed payload.
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find("\"payload\":\"").unwrap() + 40;
    let mut bytes = text.clone().into_bytes();
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    fs::write(&file, bytes).unwrap();
    assert_eq!(verify(&world, &file, &[]).code, Some(1));
    // An existing key is never overwritten.
    let run = world.jackline(&["attest", "--new-key"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("move the old key away"), "{run:?}");
}

#[test]
fn an_invalid_attestation_or_key_is_bad_input() {
    let world = finished_world();
    let file = attest_session(&world, "s1.att");
    let text = fs::read_to_string(&file).unwrap();
    for content in [
        "",
        "{}",
        "hello",
        &text[..text.len() / 2],
        r#"{"payload":"?","payloadType":"x","signatures":[]}"#,
    ] {
        fs::write(&file, content).unwrap();
        let run = verify(&world, &file, &[]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{content}: {run:?}");
        assert!(run.stderr.contains("is not an attestation"), "{run:?}");
    }
    assert_eq!(verify(&world, Path::new("nowhere"), &[]).code, Some(2));
    fs::write(&file, text).unwrap();
    let public = world.home().join("keys/attest.pub");
    fs::write(&public, "not a key").unwrap();
    let run = verify(&world, &file, &[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("it is not a PEM text"), "{run:?}");
    fs::remove_file(world.home().join("keys/attest.ed25519")).unwrap();
    let run = world.jackline(&["attest", "s1"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("jackline attest --new-key"), "{run:?}");
}

/// Runs a script of the examples.
fn example(world: &CliWorld, name: &str, args: &[&str], input: &str) -> CliOutput {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evidence");
    let mut shell = world.command("/bin/sh");
    shell.arg(directory.join(name)).args(args).env("JACKLINE", JACKLINE);
    shell.env("JACKLINE_PUBLIC_KEY", world.home().join("keys/attest.pub"));
    run_with_input(&mut shell, input.as_bytes())
}

/// Runs the pre-push hook as git does.
fn push_of(world: &CliWorld, name: &str, object: &str) -> CliOutput {
    let zero = "0".repeat(40);
    let line = format!("{name} {object} refs/heads/main {zero}\n");
    example(world, "pre-push", &["origin", "somewhere"], &line)
}

fn push(world: &CliWorld) -> CliOutput {
    let head = run_with_input(world.command("git").args(["rev-parse", "HEAD"]), b"").stdout;
    push_of(world, "refs/heads/main", head.trim())
}

#[test]
fn a_push_needs_a_finished_session_that_is_attested_for_head() {
    let world = finished_world();
    commit_workspace(&world);
    let refused = |fragment: &str| {
        let run = push(&world);
        assert_eq!(run.code, Some(1), "{fragment}: {run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(fragment), "{fragment}: {run:?}");
    };
    refused("no attestation of this workspace");
    let attest = || {
        let out = world.workspace().join(".git/jackline-attestation.json");
        let run = world.jackline(&["attest", "--out", out.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{run:?}");
    };
    attest();
    let run = push(&world);
    assert_eq!(run.code, Some(0), "{run:?}");
    // A commit without an attestation is refused, even if it is not checked out.
    let git = |args: &[&str]| run_with_input(world.command("git").args(args), b"");
    let first = commit_workspace(&world);
    assert_eq!(git(&["checkout", "-q", "HEAD~1"]).code, Some(0));
    assert_eq!(push(&world).code, Some(0));
    let run = push_of(&world, "refs/heads/other", &first);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("because of refs/heads/other"), "{run:?}");
    assert_eq!(git(&["checkout", "-q", "-"]).code, Some(0));
    // A deletion, and the notes that store the evidence, need no attestation.
    assert_eq!(push_of(&world, "(delete)", &"0".repeat(40)).code, Some(0));
    assert_eq!(push_of(&world, "refs/notes/jackline", &first).code, Some(0));
    refused("the attested commit is");
    attest();
    assert_eq!(push(&world).code, Some(0));
    // A later session that has not achieved anything.
    world.stdio(&[r#"{"v":1,"session":"s2","event":"session_started"}"#]);
    refused("the latest session of this workspace is `s2`");
    attest();
    refused(", not OBJECTIVE_ACHIEVED");
}

#[test]
fn an_uncommitted_result_is_not_finished() {
    let world = finished_world();
    let attest_and_verify = || {
        let run = world.jackline(&["attest", "s1", "--out", "../s1.att"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        (run.stderr, verify(&world, &world.root().join("s1.att"), &["--done"]))
    };
    let refused = |warning_fragment: &str, fragment: &str| {
        let (warning, run) = attest_and_verify();
        assert!(warning.contains(warning_fragment), "{warning_fragment}: {warning}");
        assert_eq!(run.code, Some(1), "{fragment}: {run:?}");
        assert!(run.stdout.contains(fragment), "{fragment}: {run:?}");
    };
    // There is no repository, and then a repository without a commit.
    refused("git reports no commit", "no commit is attested");
    assert_eq!(run_with_input(world.command("git").args(["init", "-q"]), b"").code, Some(0));
    refused("git reports no commit", "no commit is attested");
    // Untracked files count, except for files of Jackline itself.
    commit_workspace(&world);
    let ours = world.workspace().join(".jackline");
    fs::create_dir_all(ours.join("new")).unwrap();
    fs::write(ours.join("new/note.md"), "for a person").unwrap();
    let (warning, run) = attest_and_verify();
    assert_eq!(run.code, Some(0), "{warning}: {run:?}");
    fs::create_dir_all(world.workspace().join("src/.jackline")).unwrap();
    let work = world.workspace().join("src/.jackline/new.rs");
    fs::write(&work, "fn main() {}").unwrap();
    refused("uncommitted changes", "uncommitted changes or files when it was attested");
    fs::write(world.workspace().join(".git/info/exclude"), "new.rs\n").unwrap();
    assert_eq!(attest_and_verify().1.code, Some(0), "ignored files do not count");
    // An index that git cannot read.
    fs::write(world.workspace().join(".git/index"), "garbage").unwrap();
    refused("git reports no commit", "no commit is attested");
}

/// Adds a git note to the commit that is checked out.
fn add_note(world: &CliWorld, name: &str, file: &Path) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    let mut git = world.command("git");
    git.args(identity).args(["notes", &format!("--ref={name}"), "add", "-f", "-F"]);
    let run = run_with_input(git.arg(file).arg("HEAD"), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_build_on_another_machine_accepts_only_attested_finished_work() {
    let world = finished_world();
    let head = commit_workspace(&world);
    let check = |fragment: &str, code: i32| {
        let run = example(&world, "ci.sh", &[], "");
        assert_eq!(run.code, Some(code), "{fragment}: {run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(fragment), "{fragment}: {run:?}");
    };
    check(&format!("no evidence for {head}"), 1);
    let publish = |session: &str| {
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
    // One session achieved nothing, the other finished. Neither is in the state home at the end.
    world.stdio(&[r#"{"v":1,"session":"s2","event":"session_started"}"#]);
    publish("s2");
    check(", not OBJECTIVE_ACHIEVED", 1);
    publish("s1");
    fs::remove_dir_all(world.home().join("sessions")).unwrap();
    check("valid, finished", 0);
    commit_workspace(&world);
    check("no evidence for ", 1);
}
