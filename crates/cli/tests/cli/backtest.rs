//! Tests of `jackline backtest --mine`: the verdicts of a definition on the transcripts of a
//! client.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// A world without a definition, with transcripts of earlier work.
struct TranscriptWorld {
    world: CliWorld,
}

impl TranscriptWorld {
    fn new() -> Self {
        let world = CliWorld::new("");
        fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
        Self { world }
    }

    fn projects(&self) -> PathBuf {
        self.world.root().join("person/.claude/projects")
    }

    /// Writes a transcript below the directory of the client.
    fn write_transcript(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.projects().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn backtest(&self, args: &[&str]) -> CliOutput {
        let mut command = self.world.command(JACKLINE);
        command.env("HOME", self.world.root().join("person")).args(["backtest", "--mine"]);
        run_with_input(command.args(args), b"").with_path_placeholders(&self.world)
    }
}

fn transcript_line(mut value: Value) -> String {
    value["sessionId"] = json!("s-1");
    value["cwd"] = json!("/project");
    value["timestamp"] = json!("2026-01-31T12:00:00.000Z");
    format!("{value}\n")
}

fn transcript_prompt(text: &str) -> String {
    transcript_line(json!({"type": "user", "message": {"role": "user", "content": text}}))
}

/// The transcript lines of a call and its result.
fn transcript_call(id: &str, tool: &str, input: &Value) -> String {
    let proposed = json!({"type": "assistant", "message": {"id": "m", "role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]}});
    let finished = json!({"type": "user", "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]}});
    transcript_line(proposed) + &transcript_line(finished)
}

fn transcript_bash_call(id: &str, command: &str) -> String {
    transcript_call(id, "Bash", &json!({"command": command}))
}

/// A session with several kinds of calls: allowed, denied, asked and undecidable ones.
fn session_transcript() -> String {
    [
        transcript_prompt("tidy up"),
        transcript_bash_call("c1", "ls -la"),
        transcript_bash_call("c2", "cd web && git stash clear"),
        transcript_bash_call("c3", "git stash drop"),
        transcript_bash_call("c4", "git commit --amend --no-edit"),
        transcript_call(
            "c5",
            "Write",
            &json!({"file_path": "/project/a.rs", "content": "fn main() {}"}),
        ),
        transcript_call(
            "c6",
            "Write",
            &json!({"file_path": "/project/.claude/settings.json", "content": "{}"}),
        ),
    ]
    .concat()
}

#[test]
fn a_report_works_before_anything_is_installed() {
    let past = TranscriptWorld::new();
    past.write_transcript("-work/s-1.jsonl", session_transcript());
    past.write_transcript(
        "-work/s-1/subagents/agent-a7.jsonl",
        transcript_bash_call("c7", "git stash clear"),
    );
    let run = past.backtest(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let (first, rest) = run.stdout.split_once('\n').unwrap();
    assert!(
        first.starts_with("decided on 2 sessions (1 of a sub-agent) with 7 calls in "),
        "{first}"
    );
    assert!(first.ends_with("under the preset `coding-agent`, the default, as if enforced"));
    assert_eq!(
        rest,
        "\
nothing was run or written

would have been denied            3 calls     42.85 %, in 2 sessions
would have waited for you         1 call      14.28 %, in 1 session
would have been stopped           0 sessions  0.00 %
would have been warned of a loop  0 sessions  0.00 %
would have been paused in a loop  0 sessions  0.00 %

git/stash-clear  2 denied
  2026-01-31 s-1  Bash: git stash clear
  2026-01-31 s-1  Bash: git stash clear

git/stash-drop  1 asked
  2026-01-31 s-1  Bash: git stash drop

protected  1 denied
  2026-01-31 s-1  Write: .claude/settings.json

undecidable from the recording (2 events; not counted above)
  git/amend-protected  1  unknown: the state of the git repository at that time
  protected            1  unknown: the targets of symbolic links at that time
"
    );
    assert!(!past.world.home().exists(), "nothing may be written");
    assert_eq!(fs::read_dir(past.world.workspace()).unwrap().count(), 0);
}

#[test]
fn json_output_has_one_line_per_session() {
    let past = TranscriptWorld::new();
    past.write_transcript("-work/s-1.jsonl", session_transcript());
    past.write_transcript("-work/s-1/subagents/agent-a7.jsonl", transcript_bash_call("c7", "ls"));
    let run = past.backtest(&["--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.stdout,
        "\
{\"id\":\"s-1/agent-a7\",\"soft\":null,\"hard\":null,\"rule\":null,\"denied\":[],\"asked\":[],\"stop\":null,\"undecidable\":[]}
{\"id\":\"s-1\",\"soft\":null,\"hard\":null,\"rule\":\"git/stash-clear\",\"denied\":[1,5],\"asked\":[2],\"stop\":null,\"undecidable\":[\"git/amend-protected\",\"protected\"]}
"
    );
}

#[test]
fn the_definition_of_the_directory_is_used_unless_one_is_named() {
    let past = TranscriptWorld::new();
    past.write_transcript("-work/s-1.jsonl", session_transcript());
    let rule = |name: &str| {
        format!(
            "mode: observe\nrules: [{{ name: {name}, tool: exec, command: ls, deny: No., \
             examples: {{ deny: [ls] }} }}]"
        )
    };
    fs::write(past.world.workspace().join("jackline.yaml"), rule("here")).unwrap();
    let run = past.backtest(&[]);
    assert!(run.stdout.contains("under `WORKSPACE/jackline.yaml`"), "{}", run.stdout);
    // The definition only observes, and a backtest decides as if it were enforced.
    assert!(run.stdout.contains("here  1 denied"), "{}", run.stdout);
    fs::write(past.world.workspace().join("other.yaml"), rule("other")).unwrap();
    let run = past.backtest(&["-d", "other.yaml"]);
    assert!(run.stdout.contains("other  1 denied"), "{}", run.stdout);

    let run = past.backtest(&["-d", "missing.yaml"]);
    assert_eq!(run.stderr, "error: definition `missing.yaml` not found; check the path after -d\n");
    fs::write(past.world.workspace().join("other.yaml"), "ruels: []").unwrap();
    let run = past.backtest(&["-d", "other.yaml"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("ruels") && run.stderr.contains("jackline check"),
        "{}",
        run.stderr
    );
}

#[test]
fn missing_transcripts_error_names_the_searched_directory() {
    let past = TranscriptWorld::new();
    let none = "error: no transcripts of Claude Code in `ROOT/person/.claude/projects`; if they \
                are elsewhere, name the files or their directory\n";
    let run = past.backtest(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), none));

    let path = past.write_transcript("-work/s-1.jsonl", "{}\n");
    let run = past.backtest(&[]);
    assert!(
        run.stderr.contains("found no transcript of Claude Code in `ROOT/person/.claude/projects`")
    );

    fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let run = past.backtest(&["--since", "2d"]);
    assert!(run.stderr.contains("in the last 2d; 1 files are older"), "{}", run.stderr);
    let run = past.backtest(&["--since", "soon"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("--since takes a time"), "{}", run.stderr);
}

#[test]
fn transcripts_in_another_client_directory_are_found() {
    let past = TranscriptWorld::new();
    let elsewhere = past.world.root().join("elsewhere");
    fs::create_dir_all(elsewhere.join("projects/-work")).unwrap();
    fs::write(elsewhere.join("projects/-work/s.jsonl"), session_transcript()).unwrap();
    let mut command = past.world.command(JACKLINE);
    command.env("CLAUDE_CONFIG_DIR", &elsewhere).args(["backtest", "--mine"]);
    let run = run_with_input(&mut command, b"");
    assert!(run.stdout.starts_with("decided on 1 session with 6 calls"), "{run:?}");
    let run =
        past.backtest(&[elsewhere.to_str().unwrap(), past.world.workspace().to_str().unwrap()]);
    assert!(run.stdout.starts_with("decided on 1 session with 6 calls"), "{run:?}");
}

#[test]
fn unreadable_files_are_named_and_the_others_are_decided() {
    let past = TranscriptWorld::new();
    let half = session_transcript() + "{\"type\":\"assis";
    let good = past.write_transcript("-work/s-1.jsonl", [b"\xff\n", half.as_bytes()].concat());
    // A directory, a file that is no transcript, and a link to a missing file.
    fs::create_dir(past.projects().join("-work/d.jsonl")).unwrap();
    std::os::unix::fs::symlink("nowhere", past.projects().join("-work/l.jsonl")).unwrap();
    past.write_transcript("-work/notes.txt", "not a transcript");
    let run = past.backtest(&[]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.starts_with("decided on 1 session with 6 calls"), "{}", run.stdout);
    assert!(run.stdout.ends_with("lines skipped: 2 not JSON\n"), "{}", run.stdout);
    assert!(
        run.stderr.starts_with("warning: can't read `ROOT/person/.claude/projects/-work/l.jsonl`")
    );

    // A file that the user named and that can't be read is bad input. The others are decided.
    let run = past.backtest(&[good.to_str().unwrap(), "missing.jsonl", "/dev/null"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.starts_with("decided on 1 session with 6 calls"), "{}", run.stdout);
    assert!(
        run.stderr.contains("`missing.jsonl`") && run.stderr.contains("`/dev/null`"),
        "{run:?}"
    );
}

#[test]
fn examples_contain_no_secrets_and_no_control_characters() {
    let past = TranscriptWorld::new();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let rule = "rules: [{ name: no-curl, tool: exec, command: curl, deny: No., \
                examples: { deny: [curl x] } }]";
    fs::write(past.world.workspace().join("jackline.yaml"), rule).unwrap();
    let line = format!("curl -H 'Authorization: Bearer {secret}' \u{1b}[2J\u{202e} https://x");
    past.write_transcript(
        "-work/s-1.jsonl",
        (0..5).map(|n| transcript_bash_call(&format!("c{n}"), &line)).collect::<String>(),
    );
    let run = past.backtest(&[]);
    assert!(run.stdout.contains("no-curl  5 denied"), "{}", run.stdout);
    assert_eq!(run.stdout.matches("Bash: curl").count(), 3, "{}", run.stdout);
    assert!(!run.stdout.contains(secret), "{}", run.stdout);
    assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{:?}", run.stdout);
}

#[test]
fn an_input_must_be_named() {
    let past = TranscriptWorld::new();
    let run = run_with_input(past.world.command(JACKLINE).arg("backtest"), b"");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("--mine") && run.stderr.contains("files of runs"), "{run:?}");
    let run = past.backtest(&["--client", "no-such-client"]);
    assert_eq!(run.code, Some(2));
}
