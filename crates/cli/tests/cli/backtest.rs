//! `jackline backtest --mine`: what a definition would have done to the
//! transcripts of a client.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

/// A world without a definition, in which somebody has worked.
struct Past {
    world: World,
}

impl Past {
    fn new() -> Self {
        let world = World::new("");
        fs::remove_file(world.work().join("jackline.yaml")).unwrap();
        Self { world }
    }

    fn projects(&self) -> PathBuf {
        self.world.root().join("person/.claude/projects")
    }

    /// Writes a transcript below the client's own directory.
    fn wrote(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.projects().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn backtest(&self, args: &[&str]) -> Run {
        let mut command = self.world.command(JACKLINE);
        command.env("HOME", self.world.root().join("person")).args(["backtest", "--mine"]);
        feed(command.args(args), b"").anywhere(&self.world)
    }
}

fn line(mut value: Value) -> String {
    value["sessionId"] = json!("s-1");
    value["cwd"] = json!("/project");
    value["timestamp"] = json!("2026-01-31T12:00:00.000Z");
    format!("{value}\n")
}

fn prompt(text: &str) -> String {
    line(json!({"type": "user", "message": {"role": "user", "content": text}}))
}

/// A call and its result.
fn call(id: &str, tool: &str, input: &Value) -> String {
    let proposed = json!({"type": "assistant", "message": {"id": "m", "role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]}});
    let finished = json!({"type": "user", "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]}});
    line(proposed) + &line(finished)
}

fn bash(id: &str, command: &str) -> String {
    call(id, "Bash", &json!({"command": command}))
}

/// A session with something of everything.
fn session() -> String {
    [
        prompt("tidy up"),
        bash("c1", "ls -la"),
        bash("c2", "cd web && git stash clear"),
        bash("c3", "git stash drop"),
        bash("c4", "git commit --amend --no-edit"),
        call("c5", "Write", &json!({"file_path": "/project/a.rs", "content": "fn main() {}"})),
        call(
            "c6",
            "Write",
            &json!({"file_path": "/project/.claude/settings.json", "content": "{}"}),
        ),
    ]
    .concat()
}

#[test]
fn a_report_before_anything_is_installed() {
    let past = Past::new();
    past.wrote("-work/s-1.jsonl", session());
    past.wrote("-work/s-1/subagents/agent-a7.jsonl", bash("c7", "git stash clear"));
    let run = past.backtest(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let (first, rest) = run.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("2 sessions (1 of a sub-agent) and 7 calls in "), "{first}");
    assert!(
        first.ends_with("under the preset `coding-agent`, the default, as if it had been enforced")
    );
    assert_eq!(
        rest,
        "\
nothing was run, and nothing was written

would have been denied          3 calls     42.85 %, in 2 sessions
would have waited for you       1 call      14.28 %, in 1 session
would have been stopped         0 sessions  0.00 %
would have been told of a loop  0 sessions  0.00 %
would have been held in a loop  0 sessions  0.00 %

git/stash-clear  2 denied
  2026-01-31 s-1  Bash: git stash clear
  2026-01-31 s-1  Bash: git stash clear

git/stash-drop  1 asked
  2026-01-31 s-1  Bash: git stash drop

protected  1 denied
  2026-01-31 s-1  Write: .claude/settings.json

can't be told afterwards (of 2 events; such guards are not counted above)
  git/amend-protected  1  not known: what git said then
  protected            1  not known: where symbolic links led then
"
    );
    assert!(!past.world.home().exists(), "something was written");
    assert_eq!(fs::read_dir(past.world.work()).unwrap().count(), 0);
}

#[test]
fn a_line_a_session_for_programs() {
    let past = Past::new();
    past.wrote("-work/s-1.jsonl", session());
    past.wrote("-work/s-1/subagents/agent-a7.jsonl", bash("c7", "ls"));
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
fn the_definition_here_counts_and_one_that_is_named_before_it() {
    let past = Past::new();
    past.wrote("-work/s-1.jsonl", session());
    let rule = |name: &str| {
        format!(
            "mode: observe\nrules: [{{ name: {name}, tool: exec, command: ls, deny: No., \
             examples: {{ deny: [ls] }} }}]"
        )
    };
    fs::write(past.world.work().join("jackline.yaml"), rule("here")).unwrap();
    let run = past.backtest(&[]);
    assert!(run.stdout.contains("under `WORKSPACE/jackline.yaml`"), "{}", run.stdout);
    // It is on trial, and this is the trial.
    assert!(run.stdout.contains("here  1 denied"), "{}", run.stdout);
    fs::write(past.world.work().join("other.yaml"), rule("other")).unwrap();
    let run = past.backtest(&["-d", "other.yaml"]);
    assert!(run.stdout.contains("other  1 denied"), "{}", run.stdout);

    let run = past.backtest(&["-d", "missing.yaml"]);
    assert_eq!(run.stderr, "error: no definition `missing.yaml`; check the path after -d\n");
    fs::write(past.world.work().join("other.yaml"), "ruels: []").unwrap();
    let run = past.backtest(&["-d", "other.yaml"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("ruels") && run.stderr.contains("jackline check"),
        "{}",
        run.stderr
    );
}

#[test]
fn no_transcripts_says_where_it_looked() {
    let past = Past::new();
    let none = "error: no transcripts of Claude Code in `ROOT/person/.claude/projects`; if they \
                are elsewhere, name the files or their directory\n";
    let run = past.backtest(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), none));

    let path = past.wrote("-work/s-1.jsonl", "{}\n");
    let run = past.backtest(&[]);
    assert!(run.stderr.contains("nothing in `ROOT/person/.claude/projects` is a transcript"));

    fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let run = past.backtest(&["--since", "2d"]);
    assert!(run.stderr.contains("in the last 2d; 1 are older"), "{}", run.stderr);
    let run = past.backtest(&["--since", "soon"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("--since takes a time"), "{}", run.stderr);
}

#[test]
fn the_client_may_keep_them_elsewhere() {
    let past = Past::new();
    let elsewhere = past.world.root().join("elsewhere");
    fs::create_dir_all(elsewhere.join("projects/-work")).unwrap();
    fs::write(elsewhere.join("projects/-work/s.jsonl"), session()).unwrap();
    let mut command = past.world.command(JACKLINE);
    command.env("CLAUDE_CONFIG_DIR", &elsewhere).args(["backtest", "--mine"]);
    let run = feed(&mut command, b"");
    assert!(run.stdout.starts_with("1 session and 6 calls"), "{run:?}");
    let run = past.backtest(&[elsewhere.to_str().unwrap(), past.world.work().to_str().unwrap()]);
    assert!(run.stdout.starts_with("1 session and 6 calls"), "{run:?}");
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_decided() {
    let past = Past::new();
    let half = session() + "{\"type\":\"assis";
    let good = past.wrote("-work/s-1.jsonl", [b"\xff\n", half.as_bytes()].concat());
    // No file, no transcript, and a link that leads nowhere.
    fs::create_dir(past.projects().join("-work/d.jsonl")).unwrap();
    std::os::unix::fs::symlink("nowhere", past.projects().join("-work/l.jsonl")).unwrap();
    past.wrote("-work/notes.txt", "not a transcript");
    let run = past.backtest(&[]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.starts_with("1 session and 6 calls"), "{}", run.stdout);
    assert!(run.stdout.ends_with("lines skipped: 2 not JSON\n"), "{}", run.stdout);
    assert!(
        run.stderr.starts_with("warning: can't read `ROOT/person/.claude/projects/-work/l.jsonl`")
    );

    // What somebody names and can't be read is bad input, and the rest is decided.
    let run = past.backtest(&[good.to_str().unwrap(), "missing.jsonl", "/dev/null"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.starts_with("1 session and 6 calls"), "{}", run.stdout);
    assert!(
        run.stderr.contains("`missing.jsonl`") && run.stderr.contains("`/dev/null`"),
        "{run:?}"
    );
}

#[test]
fn examples_hold_no_secrets_and_nothing_that_moves_a_cursor() {
    let past = Past::new();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let rule = "rules: [{ name: no-curl, tool: exec, command: curl, deny: No., \
                examples: { deny: [curl x] } }]";
    fs::write(past.world.work().join("jackline.yaml"), rule).unwrap();
    let line = format!("curl -H 'Authorization: Bearer {secret}' \u{1b}[2J\u{202e} https://x");
    past.wrote(
        "-work/s-1.jsonl",
        (0..5).map(|n| bash(&format!("c{n}"), &line)).collect::<String>(),
    );
    let run = past.backtest(&[]);
    assert!(run.stdout.contains("no-curl  5 denied"), "{}", run.stdout);
    assert_eq!(run.stdout.matches("Bash: curl").count(), 3, "{}", run.stdout);
    assert!(!run.stdout.contains(secret), "{}", run.stdout);
    assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{:?}", run.stdout);
}

#[test]
fn it_has_to_be_said_what_to_decide_again() {
    let past = Past::new();
    let run = feed(past.world.command(JACKLINE).arg("backtest"), b"");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("--mine") && run.stderr.contains("files of runs"), "{run:?}");
    let run = past.backtest(&["--client", "nobody"]);
    assert_eq!(run.code, Some(2));
}
