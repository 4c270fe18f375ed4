//! Killed at any moment, a registry is as before a change or as after it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_attempt::HealthLimits;
use jackline_engine::Digest;
use jackline_task::registry::Registry;

use super::{Home, NOW, forged};

/// How many changes a child makes.
const CHANGES: u64 = 30;

/// What is there: the source and the uses of each tool.
type State = BTreeMap<String, (String, u64)>;

/// One change, by its number: two tools at once, a use, or a removal.
fn change(registry: &Registry, number: u64) {
    let source = number.to_string();
    match number % 4 {
        0 | 1 => {
            let mut overlay = registry.begin();
            overlay.forge("left", forged(&source)).unwrap();
            overlay.forge("right", forged(&source)).unwrap();
            overlay.commit(NOW).unwrap();
        }
        2 => {
            let version = Digest::of((number - 1).to_string().as_bytes());
            registry.used("left", &version, None, &HealthLimits::default(), NOW).unwrap();
        }
        _ => drop(registry.remove("right", NOW).unwrap()),
    }
}

/// The same, said plainly.
fn expected(changes: u64) -> State {
    let mut state = State::new();
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

fn found(home: &Home) -> State {
    home.tools().into_iter().map(|(name, source, uses)| (name, (source, uses))).collect()
}

/// What the environment says under a name.
fn told(name: &str) -> Option<String> {
    std::env::vars().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// What the child of the next test does.
#[test]
#[ignore = "run by the test below, to be killed"]
fn changes_to_be_killed() {
    let Some(home) = told("REGISTRY_HOME") else { return };
    let registry = Registry::of_home(home.as_ref());
    for number in 0..CHANGES {
        change(&registry, number);
        println!("done {number}");
    }
}

#[test]
fn killed_at_any_moment_it_is_as_before_or_after() {
    let rounds = told("REGISTRY_KILLS").and_then(|it| it.parse().ok()).unwrap_or(60);
    let mut in_the_middle = 0;
    for round in 0..rounds {
        let home = Home::new();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "registry::crash::changes_to_be_killed", "--ignored", "--nocapture"])
            .env("REGISTRY_HOME", home.home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Each is killed a little later than the one before, at another change.
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
        let now = found(&home);
        let reached = (done..=CHANGES.min(done + 1)).find(|changes| expected(*changes) == now);
        let reached = reached.unwrap_or_else(|| panic!("{round}: {done} were done, and {now:?}"));
        assert_eq!(home.registry.list().unwrap().broken, []);
        in_the_middle += u64::from(done < CHANGES);
        // Who comes next finds it in order, and goes on.
        for number in reached..CHANGES {
            change(&home.registry, number);
        }
        assert_eq!(found(&home), expected(CHANGES), "{round}");
    }
    assert!(in_the_middle > 0, "none was killed in the middle");
}
