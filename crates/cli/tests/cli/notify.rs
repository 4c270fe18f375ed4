//! Tests of notifications to a person: a command and a webhook send them, and they never delay an
//! answer.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{CliWorld, JACKLINE, StdioSession};

const RULES: &str = "
rules:
  - { name: careful, command: git push, ask: Sure?, examples: { ask: [git push] } }
  - { name: no, command: deploy, deny: No., examples: { deny: [deploy] } }
";

/// A notification command that writes its input and its environment to a new file, which it renames
/// when the file is complete.
const RECORD_COMMAND: &str = "cat > ../n.$$ && echo >> ../n.$$ && echo \"$JACKLINE_EVENT $JACKLINE_SESSION $JACKLINE_TEXT\" >> ../n.$$ && mv ../n.$$ ../notification.$$";

fn push_proposed(call: &str) -> String {
    shell_proposed(call, "git push origin main")
}

fn shell_proposed(call: &str, line: &str) -> String {
    format!(
        r#"{{"event":"tool_proposed","session":"s","call":"{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
    )
}

/// Waits until a function returns a value.
fn wait_for_value<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1500 {
        if let Some(value) = poll() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("timed out after 30 seconds");
}

/// Returns what the commands received, in order of time: the notification and the environment.
fn notifications(world: &CliWorld, count: usize) -> Vec<(Value, String)> {
    let mut paths = wait_for_value(|| {
        let entries = fs::read_dir(world.root()).unwrap().map(|entry| entry.unwrap().path());
        let complete: Vec<_> =
            entries.filter(|path| path.to_string_lossy().contains("notification.")).collect();
        (complete.len() >= count).then_some(complete)
    });
    paths.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    let read = |path| {
        let text = fs::read_to_string(path).unwrap();
        let (notification, environment) = text.trim_end().split_once('\n').unwrap();
        (serde_json::from_str(notification).unwrap(), environment.to_owned())
    };
    paths.into_iter().map(read).collect()
}

fn definition(notify: &str) -> String {
    format!("notify: {{ {notify} }}\n{RULES}")
}

/// A world whose definition is trusted.
fn trusted_world(notify: &str) -> CliWorld {
    let world = CliWorld::new(&definition(notify));
    assert_eq!(world.jackline(&["trust", "--yes"]).code, Some(0));
    world
}

fn without_time(mut notification: Value) -> Value {
    notification.as_object_mut().unwrap().remove("at");
    notification
}

#[test]
fn a_command_gets_a_question_with_the_approval_code_for_the_person() {
    let world =
        trusted_world(&format!("command: {}", serde_json::to_string(RECORD_COMMAND).unwrap()));
    let run = world.stdio(&[
        push_proposed("c1"),
        shell_proposed("c2", "ls"),
        shell_proposed("c3", "deploy"),
    ]);
    assert_eq!(run.decisions(), ["ask", "allow", "deny"]);
    // The agent must not read the code.
    assert!(!run.stdout.contains("jl-"), "{run:?}");
    let (notification, environment) = notifications(&world, 1).remove(0);
    let code = notification["code"].as_str().unwrap().to_owned();
    assert!(code.starts_with("jl-") && code.len() == 9, "{code}");
    let text = format!("`git push origin main` needs you: jackline allow {code}");
    assert_eq!(environment, format!("ask s {text}"));
    assert_eq!(
        without_time(notification),
        json!({
            "event": "ask", "text": text, "session": "s", "code": code,
            "why": "Sure? (rule `careful`, at `git push origin main`)",
            "workspace": world.workspace(),
        })
    );
    world.verify_and_replay("s");
}

#[test]
fn a_person_is_notified_once_of_a_stop_and_when_the_agent_is_done() {
    let command = serde_json::to_string(RECORD_COMMAND).unwrap();
    let world =
        CliWorld::new(&format!("notify: {{ command: {command} }}\nlimits: {{ steps: 1 }}\n"));
    world.jackline(&["trust", "--yes"]);
    let stop = r#"{"event":"stop_proposed","session":"t"}"#;
    let end = r#"{"event":"session_ended","session":"t"}"#;
    world.stdio(&[stop]);
    notifications(&world, 1);
    world.stdio(&[end]);
    notifications(&world, 2);
    let run = world.stdio(&[
        shell_proposed("c1", "ls"),
        shell_proposed("c2", "ls"),
        shell_proposed("c3", "ls"),
    ]);
    assert_eq!(run.decisions(), ["allow", "stop", "stop"]);
    let texts: Vec<String> = notifications(&world, 3).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        texts,
        [
            "done t the agent has stopped; no completion check is defined",
            "done t the session has ended: NO_EVIDENCE",
            "stop s the session was stopped: BUDGET_EXCEEDED{steps}"
        ]
    );
}

#[test]
fn an_unfinished_turn_is_not_reported_as_done() {
    let command = serde_json::to_string(RECORD_COMMAND).unwrap();
    let source = format!(
        "notify: {{ command: {command} }}\ncompletion: {{ files: [report.md] }}\ncompletion_cap: {{ blocks: 1, same: 1 }}\n"
    );
    let world = CliWorld::new(&source);
    world.jackline(&["trust", "--yes"]);
    let stop = r#"{"event":"stop_proposed","session":"s"}"#;
    assert_eq!(world.stdio(&[stop, stop]).decisions(), ["deny", "allow"]);
    let (_, text) = notifications(&world, 1).remove(0);
    assert_eq!(text, "stop s the agent has stopped before the task was done: blocked 1 times");
    fs::write(world.workspace().join("report.md"), "x").unwrap();
    let again = r#"{"event":"prompt_submitted","session":"s","text":"go on"}"#;
    assert_eq!(world.stdio(&[again, stop]).decisions(), ["allow", "allow"]);
    assert_eq!(notifications(&world, 2)[1].1, "done s the agent is done");
}

/// A web server that sends each request it received to a channel.
fn start_webhook(answer: &'static str) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (head, body) = answer_request(&mut stream.unwrap(), answer);
            let _ = sender.send((head, body));
        }
    });
    (address, receiver)
}

fn answer_request(stream: &mut TcpStream, answer: &str) -> (String, String) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0);
    }
    let length = head.to_lowercase();
    let length = length.split("content-length: ").nth(1).unwrap();
    let mut body = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(answer.as_bytes()).unwrap();
    (head, String::from_utf8(body).unwrap())
}

const OK: &str = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

#[test]
fn a_webhook_gets_the_notification_without_secrets() {
    let (address, requests) = start_webhook(OK);
    let world = trusted_world(&format!("webhook: '{address}', on: [ask]"));
    let secret = "git push https://dana:ghp_abcdefghijklmnopqrstuvwxyz0123456789@example.com/x";
    assert_eq!(world.stdio(&[shell_proposed("c1", secret)]).decisions(), ["ask"]);
    let (head, body) = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(head.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("content-type: application/json\r\n"), "{head}");
    assert!(!body.contains("ghp_"), "{body}");
    let notification: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&notification["event"], &notification["session"]), (&json!("ask"), &json!("s")));
}

/// Waits for the failures that are stored for the next record.
fn failures(world: &CliWorld) -> String {
    let failed = world.home().join("notify/failed");
    wait_for_value(|| fs::read_to_string(&failed).ok().filter(|text| text.ends_with('\n')))
}

fn next_record_reasons(world: &CliWorld) -> Vec<String> {
    world.stdio(&[shell_proposed("c9", "ls")]);
    let notes = world.records("s").last().unwrap().notes.clone();
    world.verify_and_replay("s");
    notes
        .into_iter()
        .map(|note| serde_json::to_value(note).unwrap()["reason"].to_string())
        .collect()
}

#[test]
fn a_notification_that_could_not_be_sent_is_in_the_next_record() {
    let (address, _requests) = start_webhook("HTTP/1.1 500 No\r\nConnection: close\r\n\r\n");
    let world =
        trusted_world(&format!("webhook: '{address}', command: 'echo no >&2; exit 3', on: [ask]"));
    world.stdio(&[push_proposed("c1")]);
    wait_for_value(|| failures(&world).lines().nth(1).map(drop));
    let notes = next_record_reasons(&world).join("\n");
    assert!(
        notes.contains(
            "the notification `ask` was not sent: `echo no >&2; exit 3` ended with exit status: 3: no"
        ),
        "{notes}"
    );
    assert!(notes.contains("the notification `ask` was not sent: http://127.0.0.1:"), "{notes}");
    // The path of the address may be a secret.
    assert!(!notes.contains("/hook"), "{notes}");
}

#[test]
fn a_missing_curl_is_reported() {
    let world = trusted_world("webhook: 'http://127.0.0.1:9/', on: [ask]");
    let bin = world.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let mut command = world.command(JACKLINE);
    command.env("PATH", &bin).arg("stdio").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{}\n", push_proposed("c1")).as_bytes()).unwrap();
    child.wait().unwrap();
    failures(&world);
    let notes = next_record_reasons(&world);
    assert!(notes[0].contains("can't start http://127.0.0.1:9: No such file"), "{notes:?}");
}

/// Measures how long a question takes, until its answer and until the end of its process. Returns
/// the fastest of several runs.
fn fastest_question(world: &CliWorld) -> (Duration, Duration) {
    let one = |number: usize| {
        // Waits until the detached sender of the previous run has started.
        std::thread::sleep(Duration::from_millis(60));
        #[expect(clippy::disallowed_methods, reason = "a test measures")]
        let start = Instant::now();
        let mut talk = StdioSession::start(world);
        assert_eq!(talk.send(&push_proposed(&format!("c{number}")))["decision"], "ask");
        let answered = start.elapsed();
        talk.finish();
        (answered, start.elapsed())
    };
    let durations: Vec<_> = (0..7).map(one).collect();
    (durations.iter().map(|it| it.0).min().unwrap(), durations.iter().map(|it| it.1).min().unwrap())
}

#[test]
fn a_hanging_notification_delays_no_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let hanging = trusted_world(&format!(
        "command: 'echo $$ >> ../pids; exec sleep 60', webhook: 'http://{address}/', on: [ask]"
    ));
    let quiet = trusted_world("desktop: true, on: [ask]");
    let (with, without) = (fastest_question(&hanging), fastest_question(&quiet));
    eprintln!("an ask with everything hanging takes {with:?}, without notifications {without:?}");
    // The detached sender runs for seconds, but its start takes milliseconds.
    let slack = Duration::from_millis(500);
    assert!(with.0 < without.0 + slack && with.1 < without.1 + slack, "{with:?} {without:?}");
    end_commands(&hanging);
}

/// Ends the commands that are still running in the background.
fn end_commands(world: &CliWorld) {
    let pids = fs::read_to_string(world.root().join("pids")).unwrap_or_default();
    for pid in pids.lines() {
        let _ = Command::new("kill").arg(pid).status();
    }
}

#[test]
fn an_untrusted_repository_sends_no_notification() {
    let command = serde_json::to_string(RECORD_COMMAND).unwrap();
    let world = CliWorld::new(&definition(&format!(
        "command: {command}, webhook: 'https://x.example/secret'"
    )));
    assert_eq!(world.stdio(&[push_proposed("c1")]).decisions(), ["ask"]);
    let output = world.jackline(&["check", "--effective"]).stdout;
    assert!(output.contains("(not run until trusted)"), "{output}");
    let trust = world.jackline(&["trust"]);
    assert!(
        trust.stdout.contains("would send notifications to:\n  https://x.example\n"),
        "{trust:?}"
    );
    assert!(!world.home().join("notify").exists());
}

#[test]
fn a_broken_guard_is_reported_once_using_the_last_good_definition() {
    let world =
        trusted_world(&format!("command: {}", serde_json::to_string(RECORD_COMMAND).unwrap()));
    assert_eq!(world.stdio(&[shell_proposed("c1", "ls")]).decisions(), ["allow"]);
    // The definition no longer loads. The last good definition sends the notification.
    let file = world.workspace().join("jackline.yaml");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{good}\nmode: obsrve\n")).unwrap();
    let other = shell_proposed("c1", "ls").replace("\"s\"", "\"t\"");
    assert_eq!(world.stdio(&[&other]).decisions(), ["allow"]);
    let (notification, _) = notifications(&world, 1).remove(0);
    assert_eq!(notification["text"], "the definition does not load; the last good one is in force");
    fs::write(&file, good).unwrap();
    // A truncated journal denies every call.
    let journal = world.journal_path("s");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    for _ in 0..3 {
        assert_eq!(world.stdio(&[shell_proposed("c2", "ls")]).code, Some(3));
        notifications(&world, 2);
    }
    std::thread::sleep(Duration::from_millis(300));
    let notifications = notifications(&world, 2);
    assert_eq!(notifications.len(), 2, "{notifications:?}");
    assert_eq!(
        notifications[1].1,
        "guard_broken s the guard is broken, and no call runs until it is fixed"
    );
}
