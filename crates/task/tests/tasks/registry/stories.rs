//! Which tools stay in a registry.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jackline_attempt::{HealthLimits, ToolState};
use jackline_engine::Digest;
use jackline_task::registry::{Registry, RegistryError, SOURCE_BYTES_MAX, TOOLS_MAX};

use super::{NOW, RegistryHome, tool_source};

#[test]
fn a_tool_of_a_failed_attempt_leaves_no_entry() {
    let home = RegistryHome::new();
    let mut overlay = home.registry.begin();
    overlay.add_tool("fetch", tool_source("one")).unwrap();
    assert_eq!(overlay.get("fetch").unwrap().unwrap().source, "one");
    assert_eq!(home.names(), [""; 0], "only the overlay has the tool");
    overlay.clear();
    assert_eq!(overlay.get("fetch").unwrap(), None);
    assert_eq!(overlay.commit(NOW).unwrap().stored, [""; 0]);
    drop(overlay);
    assert_eq!(
        fs::read_dir(home.home.path()).unwrap().count(),
        0,
        "not even a directory was created"
    );
}

#[test]
fn a_committed_tool_has_a_version_and_private_files() {
    let home = RegistryHome::new();
    home.store_tool("fetch", "one");
    let tool = home.registry.get("fetch").unwrap().unwrap();
    assert_eq!((tool.version, tool.uses), (Digest::of(b"one"), 0));
    assert_eq!((tool.forged_at, tool.last_used), (NOW, None));
    for name in ["", "tools", "tools/fetch.json", "journal.jsonl", "lock"] {
        let mode = fs::metadata(home.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
    let again = Registry::of_home(home.home.path());
    assert_eq!(again.get("fetch").unwrap(), Some(tool));
}

#[test]
fn a_tool_that_another_attempt_stored_in_the_meantime_stays() {
    let home = RegistryHome::new();
    home.store_tool("ours", "old");
    home.store_tool("theirs", "old");
    let mut overlay = home.registry.begin();
    for name in ["ours", "theirs", "new"] {
        overlay.add_tool(name, tool_source("of the attempt")).unwrap();
    }
    home.store_tool("theirs", "of another attempt");
    home.store_tool("another", "of another attempt");
    let committed = overlay.commit(NOW).unwrap();
    assert_eq!(
        (committed.stored, committed.skipped),
        (vec!["new".into(), "ours".into()], vec!["theirs".into()])
    );
    let sources: Vec<_> =
        home.tools().into_iter().map(|(name, source, _)| (name, source)).collect();
    let (attempt, other) = ("of the attempt".to_owned(), "of another attempt".to_owned());
    let expected = [("another", &other), ("new", &attempt), ("ours", &attempt), ("theirs", &other)];
    assert_eq!(sources, expected.map(|(name, source)| (name.to_owned(), source.clone())));
}

#[test]
fn uses_count_for_the_version_that_was_used() {
    let home = RegistryHome::new();
    home.store_tool("fetch", "one");
    let (limits, one) = (HealthLimits::default(), Digest::of(b"one"));
    let used = |version: &Digest, error: Option<&str>| {
        home.registry.record_use("fetch", version, error, &limits, NOW.plus_ms(5)).unwrap();
        home.registry.get("fetch").unwrap().unwrap()
    };
    for _ in 0..4 {
        used(&one, Some("execution"));
        used(&one, Some("timeout"));
    }
    let tool = used(&one, Some("guardrail_retry_exhausted"));
    assert_eq!((tool.uses, tool.health.samples()), (9, 5));
    assert_eq!((tool.health.state(), tool.last_used), (ToolState::Degraded, Some(NOW.plus_ms(5))));
    // A new source is a new version.
    home.store_tool("fetch", "two");
    let new = used(&one, None);
    assert_eq!((new.uses, new.health.state()), (0, ToolState::New));
    assert_eq!(used(&Digest::of(b"two"), None).uses, 1);
    // A use of a tool that does not exist changes nothing.
    home.registry.record_use("missing", &one, None, &limits, NOW).unwrap();
    assert_eq!(home.names(), ["fetch"]);
}

#[test]
fn a_degraded_tool_that_is_generated_again_is_on_probation() {
    let home = RegistryHome::new();
    let one = Digest::of(b"one");
    let stored = || home.registry.get("fetch").unwrap().unwrap();
    let used = |error: Option<&str>, recover_below_pct: u32| {
        let limits = HealthLimits { recover_below_pct, ..HealthLimits::default() };
        home.registry.record_use("fetch", &one, error, &limits, NOW).unwrap();
        stored().health.state()
    };
    home.store_tool("fetch", "one");
    used(None, 30);
    home.store_tool("fetch", "one");
    assert_eq!(stored().uses, 1, "the same source is the same version");
    for _ in 0..4 {
        used(Some("execution"), 30);
    }
    assert_eq!(stored().health.state(), ToolState::Degraded);
    // The attempt already sees the tool as usable, and a failed attempt changes nothing.
    let mut overlay = home.registry.begin();
    overlay.add_tool("fetch", tool_source("one")).unwrap();
    let seen = [overlay.get("fetch").unwrap().unwrap(), overlay.list().unwrap().tools.remove(0)];
    assert!(seen.iter().all(|tool| tool.health.state() == ToolState::Probation));
    overlay.clear();
    assert_eq!(stored().health.state(), ToolState::Degraded);
    home.store_tool("fetch", "one");
    assert_eq!((stored().health.state(), stored().uses), (ToolState::Probation, 5));
    // One failure of five is less than 30 percent, but not less than 20 percent.
    used(Some("execution"), 20);
    for _ in 0..3 {
        assert_eq!(used(None, 20), ToolState::Probation);
    }
    assert_eq!(used(None, 20), ToolState::Probation);
    assert_eq!(used(None, 30), ToolState::Durable);
}

#[test]
fn a_broken_entry_is_reported_and_the_others_work() {
    let home = RegistryHome::new();
    for name in ["good", "garbled", "swapped", "renamed", "gone"] {
        home.store_tool(name, name);
    }
    fs::write(home.path("tools/garbled.json"), "{\"name\":").unwrap();
    let swapped = fs::read_to_string(home.path("tools/swapped.json")).unwrap();
    fs::write(
        home.path("tools/swapped.json"),
        swapped.replace("\"source\":\"swapped\"", "\"source\":\"evil\""),
    )
    .unwrap();
    fs::copy(home.path("tools/good.json"), home.path("tools/renamed.json")).unwrap();
    fs::write(home.path("tools/Not A Name.json"), "x").unwrap();
    let listing = home.registry.list().unwrap();
    assert_eq!(home.names(), ["gone", "good"]);
    let broken: Vec<_> = listing.broken.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(broken, ["garbled", "renamed", "swapped"]);
    assert_eq!(listing.broken[2].1, "its source does not match its checksum");
    let error = home.registry.get("swapped").unwrap_err();
    assert!(
        matches!(error, RegistryError::Broken { ref name, .. } if name == "swapped"),
        "{error}"
    );
    // A broken entry can be replaced or removed.
    home.store_tool("swapped", "good again");
    assert_eq!(home.registry.get("swapped").unwrap().unwrap().source, "good again");
    assert!(home.registry.remove("garbled", NOW).unwrap());
    assert!(!home.registry.remove("garbled", NOW).unwrap());
    assert_eq!(home.names(), ["gone", "good", "swapped"]);
}

#[test]
fn the_tool_of_the_last_change_is_reported_broken_too() {
    let home = RegistryHome::new();
    home.store_tool("only", "one");
    fs::write(home.path("tools/only.json"), "").unwrap();
    assert_eq!(home.registry.list().unwrap().broken[0].0, "only");
}

#[test]
fn names_sources_and_the_number_of_tools_are_limited() {
    let home = RegistryHome::new();
    let mut overlay = home.registry.begin();
    for name in ["", "../up", "a/b", ".", "-x", "Capital", &"x".repeat(65)] {
        let error = overlay.add_tool(name, tool_source("x")).unwrap_err();
        assert!(matches!(error, RegistryError::Name(_)), "{name}: {error}");
        assert!(matches!(home.registry.remove(name, NOW), Err(RegistryError::Name(_))));
        assert!(matches!(home.registry.get(name), Err(RegistryError::Name(_))));
    }
    for source in ["", &"x".repeat(SOURCE_BYTES_MAX + 1)] {
        let error = overlay.add_tool("a", tool_source(source)).unwrap_err();
        assert!(matches!(error, RegistryError::Source { .. }), "{error}");
    }
    overlay.add_tool("a", tool_source(&"\u{1}".repeat(SOURCE_BYTES_MAX))).unwrap();
    overlay.commit(NOW).unwrap();
    assert_eq!(home.registry.get("a").unwrap().unwrap().source.len(), SOURCE_BYTES_MAX);
    for number in 1..TOOLS_MAX {
        fs::copy(home.path("tools/a.json"), home.path(&format!("tools/t{number}.json"))).unwrap();
    }
    let mut overlay = home.registry.begin();
    overlay.add_tool("one-more", tool_source("x")).unwrap();
    assert!(matches!(overlay.commit(NOW), Err(RegistryError::TooMany)));
    assert!(!home.path("tools/one-more.json").exists());
    // An existing tool can still be replaced.
    home.store_tool("a", "better");
}

#[test]
fn a_change_in_the_journal_counts_before_it_is_applied() {
    let home = RegistryHome::new();
    home.store_tool("a", "one");
    let before = fs::read(home.path("tools/a.json")).unwrap();
    home.store_tool("a", "two");
    // As if the process had ended between the two writes.
    fs::write(home.path("tools/a.json"), before).unwrap();
    assert_eq!(home.registry.get("a").unwrap().unwrap().source, "two", "readers see it, too");
    home.store_tool("b", "x");
    home.registry.remove("b", NOW).unwrap();
    assert_eq!(home.tools(), [("a".to_owned(), "two".to_owned(), 0)]);
    let kept = fs::read_to_string(home.path("tools/a.json")).unwrap();
    assert!(kept.contains("two"), "{kept}");
}

#[test]
fn a_torn_line_and_an_unreadable_line_are_skipped() {
    let home = RegistryHome::new();
    home.store_tool("a", "one");
    let journal = home.path("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("{text}{{\"seq\":2,\"at\":")).unwrap();
    assert_eq!(home.names(), ["a"]);
    home.store_tool("b", "one");
    let text = fs::read_to_string(&journal).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    // An unreadable removal does not restore the tool.
    home.registry.remove("b", NOW).unwrap();
    let text = fs::read_to_string(&journal).unwrap().replace("removed", "re");
    fs::write(&journal, &text).unwrap();
    assert_eq!(home.names(), ["a"]);
    home.store_tool("c", "one");
    assert_eq!(home.names(), ["a", "c"]);
    let last = fs::read_to_string(&journal).unwrap();
    assert!(last.lines().last().unwrap().starts_with("{\"seq\":4,"), "{last}");
}

#[test]
fn a_long_journal_is_rotated_without_loss() {
    let home = RegistryHome::new();
    let source = "x".repeat(SOURCE_BYTES_MAX - 8);
    for number in 0..70 {
        home.store_tool("a", &format!("{source}{number}"));
        home.store_tool("b", &format!("{source}{number}"));
    }
    assert!(fs::metadata(home.path("journal.jsonl")).unwrap().len() < 5 << 20);
    assert!(home.path("journal.before.jsonl").exists());
    for (_, source, _) in home.tools() {
        assert!(source.ends_with("69"));
    }
    home.registry.remove("a", NOW).unwrap();
    assert_eq!(home.names(), ["b"]);
}

#[test]
fn concurrent_changes_are_not_lost() {
    let home = RegistryHome::new();
    home.store_tool("counted", "x");
    let (limits, version) = (HealthLimits::default(), Digest::of(b"x"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (registry, limits, version) = (&home.registry, &limits, &version);
            scope.spawn(move || {
                for number in 0..10 {
                    registry.record_use("counted", version, None, limits, NOW).unwrap();
                    let mut overlay = registry.begin();
                    overlay.add_tool(&format!("t{thread}-{number}"), tool_source("y")).unwrap();
                    overlay.commit(NOW).unwrap();
                }
            });
        }
    });
    assert_eq!(home.tools().len(), 41);
    assert_eq!(home.registry.get("counted").unwrap().unwrap().uses, 40);
}
