//! After a kill at any moment, a registry is in the state before or after a change.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_attempt::HealthLimits;
use jackline_engine::Digest;
use jackline_task::registry::Registry;

use super::{NOW, RegistryHome, tool_source};

/// How many changes a child process makes.
const CHANGES: u64 = 30;

/// The source and the use count of each tool.
type RegistryState = BTreeMap<String, (String, u64)>;

/// One change, by its number: two tools at once, a use, or a removal.
fn change(registry: &Registry, number: u64) {
    let source = number.to_string();
    match number % 4 {
        0 | 1 => {
            let mut overlay = registry.begin();
            overlay.add_tool("left", tool_source(&source)).unwrap();
            overlay.add_tool("right", tool_source(&source)).unwrap();
            overlay.commit(NOW).unwrap();
        }
        2 => {
            let version = Digest::of((number - 1).to_string().as_bytes());
            registry.record_use("left", &version, None, &HealthLimits::default(), NOW).unwrap();
        }
        _ => drop(registry.remove("right", NOW).unwrap()),
    }
}

/// The reference model of these changes.
fn expected(changes: u64) -> RegistryState {
    let mut state = RegistryState::new();
    for number in 0..changes {
        let source = number.to_string();
        match number % 4 {
            0 | 1 => {
                state.insert("left".to_owned(), (source.clone(), 0));
                state.insert("right".to_owned(), (source, 0));
            }
            2 => state.get_mut("left").unwrap().1 += 1,
            _ => drop(state.remove("right")),
        }
    }
    state
}

fn current_state(home: &RegistryHome) -> RegistryState {
    home.tools().into_iter().map(|(name, source, uses)| (name, (source, uses))).collect()
}

/// The value of an environment variable.
fn variable(name: &str) -> Option<String> {
    std::env::vars().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The child process of the next test.
#[test]
#[ignore = "the test below starts this and kills it"]
fn changes_to_be_killed() {
    let Some(home) = variable("REGISTRY_HOME") else { return };
    let registry = Registry::of_home(home.as_ref());
    for number in 0..CHANGES {
        change(&registry, number);
        println!("done {number}");
    }
}

#[test]
fn after_a_kill_the_state_is_before_or_after_a_change() {
    let rounds = variable("REGISTRY_KILLS").and_then(|it| it.parse().ok()).unwrap_or(60);
    let mut in_the_middle = 0;
    for round in 0..rounds {
        let home = RegistryHome::new();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "registry::crash::changes_to_be_killed", "--ignored", "--nocapture"])
            .env("REGISTRY_HOME", home.home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Each round kills the child a little later, at another change.
        let mut done = 0;
        let wanted = round % CHANGES;
        while done < wanted {
            let line = lines.next().unwrap().unwrap();
            done += u64::from(line.contains("done "));
        }
        std::thread::sleep(Duration::from_micros(round * 61 % 3000));
        child.kill().unwrap();
        child.wait().unwrap();
        done += lines.map_while(Result::ok).filter(|line| line.contains("done ")).count() as u64;
        let now = current_state(&home);
        let reached = (done..=CHANGES.min(done + 1)).find(|changes| expected(*changes) == now);
        let reached = reached.unwrap_or_else(|| panic!("{round}: {done} were done, and {now:?}"));
        assert_eq!(home.registry.list().unwrap().broken, []);
        in_the_middle += u64::from(done < CHANGES);
        // The next process can continue from this state.
        for number in reached..CHANGES {
            change(&home.registry, number);
        }
        assert_eq!(current_state(&home), expected(CHANGES), "{round}");
    }
    assert!(in_the_middle > 0, "no child was killed during its changes");
}
