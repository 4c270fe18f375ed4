//! A person is told: by a command, by a webhook, and never at the cost of an
//! answer.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{JACKLINE, Talk, World};

const RULES: &str = "
rules:
  - { name: careful, command: git push, ask: Sure?, examples: { ask: [git push] } }
  - { name: no, command: deploy, deny: No., examples: { deny: [deploy] } }
";

/// A command that keeps what it is given in a file of its own, once complete.
const KEEPS: &str = "cat > ../n.$$ && echo >> ../n.$$ && echo \"$JACKLINE_EVENT $JACKLINE_SESSION $JACKLINE_TEXT\" >> ../n.$$ && mv ../n.$$ ../told.$$";

fn push(call: &str) -> String {
    proposed(call, "git push origin main")
}

fn proposed(call: &str, line: &str) -> String {
    format!(
        r#"{{"event":"tool_proposed","session":"s","call":"{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
    )
}

/// Waits until something is there.
fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1500 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it never came");
}

/// What commands were told, in order of time: the notice, and the environment.
fn told(world: &World, count: usize) -> Vec<(Value, String)> {
    let mut found = wait(|| {
        let entries = fs::read_dir(world.root()).unwrap().map(|entry| entry.unwrap().path());
        let told: Vec<_> =
            entries.filter(|path| path.to_string_lossy().contains("told.")).collect();
        (told.len() >= count).then_some(told)
    });
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    let read = |path| {
        let text = fs::read_to_string(path).unwrap();
        let (notice, said) = text.trim_end().split_once('\n').unwrap();
        (serde_json::from_str(notice).unwrap(), said.to_owned())
    };
    found.into_iter().map(read).collect()
}

fn definition(notify: &str) -> String {
    format!("notify: {{ {notify} }}\n{RULES}")
}

/// A repository that is trusted, as a person's own file would be.
fn world(notify: &str) -> World {
    let world = World::new(&definition(notify));
    assert_eq!(world.jackline(&["trust", "--yes"]).code, Some(0));
    world
}

fn without_time(mut notice: Value) -> Value {
    notice.as_object_mut().unwrap().remove("at");
    notice
}

#[test]
fn a_command_is_told_of_an_ask_with_the_code_for_the_person() {
    let world = world(&format!("command: {}", serde_json::to_string(KEEPS).unwrap()));
    let run = world.stdio(&[push("c1"), proposed("c2", "ls"), proposed("c3", "deploy")]);
    assert_eq!(run.answers(), ["ask", "allow", "deny"]);
    // Nobody shows the code to the agent.
    assert!(!run.stdout.contains("jl-"), "{run:?}");
    let (notice, environment) = told(&world, 1).remove(0);
    let code = notice["code"].as_str().unwrap().to_owned();
    assert!(code.starts_with("jl-") && code.len() == 9, "{code}");
    let text = format!("`git push origin main` needs you: jackline allow {code}");
    assert_eq!(environment, format!("ask s {text}"));
    assert_eq!(
        without_time(notice),
        json!({
            "event": "ask", "text": text, "session": "s", "code": code,
            "why": "Sure? (rule `careful`, at `git push origin main`)",
            "workspace": world.work(),
        })
    );
    world.prove("s");
}

#[test]
fn a_person_is_told_once_of_a_stop_and_that_the_agent_is_done() {
    let keeps = serde_json::to_string(KEEPS).unwrap();
    let world = World::new(&format!("notify: {{ command: {keeps} }}\nlimits: {{ steps: 1 }}\n"));
    world.jackline(&["trust", "--yes"]);
    let stop = r#"{"event":"stop_proposed","session":"t"}"#;
    let end = r#"{"event":"session_ended","session":"t"}"#;
    world.stdio(&[stop]);
    told(&world, 1);
    world.stdio(&[end]);
    told(&world, 2);
    let run = world.stdio(&[proposed("c1", "ls"), proposed("c2", "ls"), proposed("c3", "ls")]);
    assert_eq!(run.answers(), ["allow", "stop", "stop"]);
    let said: Vec<String> = told(&world, 3).into_iter().map(|(_, said)| said).collect();
    assert_eq!(
        said,
        [
            "done t the agent has stopped; nothing checked what it did",
            "done t the session has ended: NO_EVIDENCE",
            "stop s the session was stopped: BUDGET_EXCEEDED{steps}"
        ]
    );
}

#[test]
fn a_turn_that_is_not_done_is_not_told_as_done() {
    let keeps = serde_json::to_string(KEEPS).unwrap();
    let source = format!(
        "notify: {{ command: {keeps} }}\ncompletion: {{ files: [report.md] }}\ncompletion_cap: {{ blocks: 1, same: 1 }}\n"
    );
    let world = World::new(&source);
    world.jackline(&["trust", "--yes"]);
    let stop = r#"{"event":"stop_proposed","session":"s"}"#;
    assert_eq!(world.stdio(&[stop, stop]).answers(), ["deny", "allow"]);
    let (_, said) = told(&world, 1).remove(0);
    assert_eq!(said, "stop s the agent has stopped, and not as done: blocked 1 times");
    fs::write(world.work().join("report.md"), "x").unwrap();
    let again = r#"{"event":"prompt_submitted","session":"s","text":"go on"}"#;
    assert_eq!(world.stdio(&[again, stop]).answers(), ["allow", "allow"]);
    assert_eq!(told(&world, 2)[1].1, "done s the agent is done");
}

/// A web server for one request: what it was sent.
fn server(answer: &'static str) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (head, body) = request(&mut stream.unwrap(), answer);
            let _ = sender.send((head, body));
        }
    });
    (address, receiver)
}

fn request(stream: &mut TcpStream, answer: &str) -> (String, String) {
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
fn a_webhook_is_sent_the_notice_without_secrets() {
    let (address, requests) = server(OK);
    let world = world(&format!("webhook: '{address}', on: [ask]"));
    let secret = "git push https://dana:ghp_abcdefghijklmnopqrstuvwxyz0123456789@example.com/x";
    assert_eq!(world.stdio(&[proposed("c1", secret)]).answers(), ["ask"]);
    let (head, body) = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(head.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("content-type: application/json\r\n"), "{head}");
    assert!(!body.contains("ghp_"), "{body}");
    let notice: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&notice["event"], &notice["session"]), (&json!("ask"), &json!("s")));
}

/// The failures that were left for the next record.
fn failures(world: &World) -> String {
    let failed = world.home().join("notify/failed");
    wait(|| fs::read_to_string(&failed).ok().filter(|text| text.ends_with('\n')))
}

fn notes(world: &World) -> Vec<String> {
    world.stdio(&[proposed("c9", "ls")]);
    let notes = world.records("s").last().unwrap().notes.clone();
    world.prove("s");
    notes
        .into_iter()
        .map(|note| serde_json::to_value(note).unwrap()["reason"].to_string())
        .collect()
}

#[test]
fn what_could_not_be_sent_is_in_the_next_record() {
    let (address, _requests) = server("HTTP/1.1 500 No\r\nConnection: close\r\n\r\n");
    let world = world(&format!("webhook: '{address}', command: 'echo no >&2; exit 3', on: [ask]"));
    world.stdio(&[push("c1")]);
    wait(|| failures(&world).lines().nth(1).map(drop));
    let notes = notes(&world).join("\n");
    assert!(
        notes.contains(
            "nobody was told of `ask`: `echo no >&2; exit 3` ended with exit status: 3: no"
        ),
        "{notes}"
    );
    assert!(notes.contains("nobody was told of `ask`: http://127.0.0.1:"), "{notes}");
    // The rest of an address may be a secret.
    assert!(!notes.contains("/hook"), "{notes}");
}

#[test]
fn without_curl_that_is_said() {
    let world = world("webhook: 'http://127.0.0.1:9/', on: [ask]");
    let bin = world.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let mut command = world.command(JACKLINE);
    command.env("PATH", &bin).arg("stdio").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{}\n", push("c1")).as_bytes()).unwrap();
    child.wait().unwrap();
    failures(&world);
    let notes = notes(&world);
    assert!(notes[0].contains("can't start http://127.0.0.1:9: No such file"), "{notes:?}");
}

/// How long an ask takes, until its answer and until the end of a process that
/// was there for it alone; the fastest of a few.
fn fastest(world: &World) -> (Duration, Duration) {
    let one = |number: usize| {
        // What an earlier one left to itself has started by then.
        std::thread::sleep(Duration::from_millis(60));
        #[expect(clippy::disallowed_methods, reason = "a test measures")]
        let start = Instant::now();
        let mut talk = Talk::start(world);
        assert_eq!(talk.say(&push(&format!("c{number}")))["decision"], "ask");
        let answered = start.elapsed();
        talk.end();
        (answered, start.elapsed())
    };
    let all: Vec<_> = (0..7).map(one).collect();
    (all.iter().map(|it| it.0).min().unwrap(), all.iter().map(|it| it.1).min().unwrap())
}

#[test]
fn what_hangs_holds_nobody_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let hanging = world(&format!(
        "command: 'echo $$ >> ../pids; exec sleep 60', webhook: 'http://{address}/', on: [ask]"
    ));
    let quiet = world("desktop: true, on: [ask]");
    let (with, without) = (fastest(&hanging), fastest(&quiet));
    eprintln!("an ask with everything hanging takes {with:?}, without notices {without:?}");
    // What is left to itself takes seconds; starting it takes milliseconds.
    let slack = Duration::from_millis(500);
    assert!(with.0 < without.0 + slack && with.1 < without.1 + slack, "{with:?} {without:?}");
    end_commands(&hanging);
}

/// Ends the commands that this test left to themselves.
fn end_commands(world: &World) {
    let pids = fs::read_to_string(world.root().join("pids")).unwrap_or_default();
    for pid in pids.lines() {
        let _ = Command::new("kill").arg(pid).status();
    }
}

#[test]
fn a_repository_tells_nobody_before_it_is_trusted() {
    let keeps = serde_json::to_string(KEEPS).unwrap();
    let world =
        World::new(&definition(&format!("command: {keeps}, webhook: 'https://x.example/secret'")));
    assert_eq!(world.stdio(&[push("c1")]).answers(), ["ask"]);
    let shown = world.jackline(&["check", "--effective"]).stdout;
    assert!(shown.contains("(not run until trusted)"), "{shown}");
    let trust = world.jackline(&["trust"]);
    assert!(
        trust.stdout.contains("would post what happens to:\n  https://x.example\n"),
        "{trust:?}"
    );
    assert!(!world.home().join("notify").exists());
}

#[test]
fn a_broken_guard_is_told_once_and_by_the_last_good_definition() {
    let world = world(&format!("command: {}", serde_json::to_string(KEEPS).unwrap()));
    assert_eq!(world.stdio(&[proposed("c1", "ls")]).answers(), ["allow"]);
    // The definition no longer loads: the last good one tells.
    let file = world.work().join("jackline.yaml");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{good}\nmode: obsrve\n")).unwrap();
    let other = proposed("c1", "ls").replace("\"s\"", "\"t\"");
    assert_eq!(world.stdio(&[&other]).answers(), ["allow"]);
    let (notice, _) = told(&world, 1).remove(0);
    assert_eq!(notice["text"], "the definition does not load; the last good one is in force");
    fs::write(&file, good).unwrap();
    // A journal that somebody cut: the gate is shut.
    let journal = world.journal("s");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    for _ in 0..3 {
        assert_eq!(world.stdio(&[proposed("c2", "ls")]).code, Some(3));
        told(&world, 2);
    }
    std::thread::sleep(Duration::from_millis(300));
    let told = told(&world, 2);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        told[1].1,
        "guard_broken s the guard is broken, and nothing runs until it is mended"
    );
}
