//! What stays in a registry, and for whom.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jackline_attempt::{HealthLimits, ToolState};
use jackline_engine::Digest;
use jackline_task::registry::{Registry, RegistryError, SOURCE_BYTES_MAX, TOOLS_MAX};

use super::{Home, NOW, forged};

#[test]
fn a_tool_of_a_failed_attempt_leaves_no_entry() {
    let home = Home::new();
    let mut overlay = home.registry.begin();
    overlay.forge("fetch", forged("one")).unwrap();
    assert_eq!(overlay.get("fetch").unwrap().unwrap().source, "one");
    assert_eq!(home.names(), [""; 0], "nobody else sees it");
    overlay.clear();
    assert_eq!(overlay.get("fetch").unwrap(), None);
    assert_eq!(overlay.commit(NOW).unwrap().kept, [""; 0]);
    drop(overlay);
    assert_eq!(fs::read_dir(home.home.path()).unwrap().count(), 0, "not even a directory");
}

#[test]
fn a_success_stays_with_a_version_by_its_source_and_privately() {
    let home = Home::new();
    home.keep("fetch", "one");
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
fn a_concurrent_success_of_somebody_else_survives() {
    let home = Home::new();
    home.keep("ours", "old");
    home.keep("theirs", "old");
    let mut overlay = home.registry.begin();
    for name in ["ours", "theirs", "new"] {
        overlay.forge(name, forged("of the attempt")).unwrap();
    }
    home.keep("theirs", "of somebody else");
    home.keep("another", "of somebody else");
    let committed = overlay.commit(NOW).unwrap();
    assert_eq!(
        (committed.kept, committed.others),
        (vec!["new".into(), "ours".into()], vec!["theirs".into()])
    );
    let sources: Vec<_> =
        home.tools().into_iter().map(|(name, source, _)| (name, source)).collect();
    let (attempt, other) = ("of the attempt".to_owned(), "of somebody else".to_owned());
    let expected = [("another", &other), ("new", &attempt), ("ours", &attempt), ("theirs", &other)];
    assert_eq!(sources, expected.map(|(name, source)| (name.to_owned(), source.clone())));
}

#[test]
fn uses_count_for_the_version_that_was_used() {
    let home = Home::new();
    home.keep("fetch", "one");
    let (limits, one) = (HealthLimits::default(), Digest::of(b"one"));
    let used = |version: &Digest, error: Option<&str>| {
        home.registry.used("fetch", version, error, &limits, NOW.plus_ms(5)).unwrap();
        home.registry.get("fetch").unwrap().unwrap()
    };
    for _ in 0..4 {
        used(&one, Some("execution"));
        used(&one, Some("timeout"));
    }
    let tool = used(&one, Some("guardrail_retry_exhausted"));
    assert_eq!((tool.uses, tool.health.samples()), (9, 5));
    assert_eq!((tool.health.state(), tool.last_used), (ToolState::Degraded, Some(NOW.plus_ms(5))));
    // The same source again is the same tool, a new source a new one.
    home.keep("fetch", "one");
    assert_eq!(home.registry.get("fetch").unwrap().unwrap(), tool);
    home.keep("fetch", "two");
    let new = used(&one, None);
    assert_eq!((new.uses, new.health.state()), (0, ToolState::New));
    assert_eq!(used(&Digest::of(b"two"), None).uses, 1);
    // Nobody is there to be used.
    home.registry.used("nobody", &one, None, &limits, NOW).unwrap();
    assert_eq!(home.names(), ["fetch"]);
}

#[test]
fn a_broken_entry_is_named_and_the_others_work() {
    let home = Home::new();
    for name in ["good", "garbled", "swapped", "renamed", "gone"] {
        home.keep(name, name);
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
    assert_eq!(listing.broken[2].1, "its source is not the one that was kept");
    let error = home.registry.get("swapped").unwrap_err();
    assert!(
        matches!(error, RegistryError::Broken { ref name, .. } if name == "swapped"),
        "{error}"
    );
    // It is forged anew, or removed.
    home.keep("swapped", "good again");
    assert_eq!(home.registry.get("swapped").unwrap().unwrap().source, "good again");
    assert!(home.registry.remove("garbled", NOW).unwrap());
    assert!(!home.registry.remove("garbled", NOW).unwrap());
    assert_eq!(home.names(), ["gone", "good", "swapped"]);
}

#[test]
fn the_last_tool_that_was_kept_is_reported_broken_too() {
    let home = Home::new();
    home.keep("only", "one");
    fs::write(home.path("tools/only.json"), "").unwrap();
    assert_eq!(home.registry.list().unwrap().broken[0].0, "only");
}

#[test]
fn names_sources_and_numbers_have_bounds() {
    let home = Home::new();
    let mut overlay = home.registry.begin();
    for name in ["", "../up", "a/b", ".", "-x", "Capital", &"x".repeat(65)] {
        let error = overlay.forge(name, forged("x")).unwrap_err();
        assert!(matches!(error, RegistryError::Name(_)), "{name}: {error}");
        assert!(matches!(home.registry.remove(name, NOW), Err(RegistryError::Name(_))));
        assert!(matches!(home.registry.get(name), Err(RegistryError::Name(_))));
    }
    for source in ["", &"x".repeat(SOURCE_BYTES_MAX + 1)] {
        let error = overlay.forge("a", forged(source)).unwrap_err();
        assert!(matches!(error, RegistryError::Source { .. }), "{error}");
    }
    overlay.forge("a", forged(&"\u{1}".repeat(SOURCE_BYTES_MAX))).unwrap();
    overlay.commit(NOW).unwrap();
    assert_eq!(home.registry.get("a").unwrap().unwrap().source.len(), SOURCE_BYTES_MAX);
    for number in 1..TOOLS_MAX {
        fs::copy(home.path("tools/a.json"), home.path(&format!("tools/t{number}.json"))).unwrap();
    }
    let mut overlay = home.registry.begin();
    overlay.forge("one-more", forged("x")).unwrap();
    assert!(matches!(overlay.commit(NOW), Err(RegistryError::TooMany)));
    assert!(!home.path("tools/one-more.json").exists());
    // What is there may still become better.
    home.keep("a", "better");
}

#[test]
fn a_change_that_is_written_down_and_not_made_is_made() {
    let home = Home::new();
    home.keep("a", "one");
    let before = fs::read(home.path("tools/a.json")).unwrap();
    home.keep("a", "two");
    // As if the process had ended between the two.
    fs::write(home.path("tools/a.json"), before).unwrap();
    assert_eq!(home.registry.get("a").unwrap().unwrap().source, "two", "also for who only looks");
    home.keep("b", "x");
    home.registry.remove("b", NOW).unwrap();
    assert_eq!(home.tools(), [("a".to_owned(), "two".to_owned(), 0)]);
    let kept = fs::read_to_string(home.path("tools/a.json")).unwrap();
    assert!(kept.contains("two"), "{kept}");
}

#[test]
fn a_torn_line_was_never_done_and_one_that_nobody_reads_is_passed_over() {
    let home = Home::new();
    home.keep("a", "one");
    let journal = home.path("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("{text}{{\"seq\":2,\"at\":")).unwrap();
    assert_eq!(home.names(), ["a"]);
    home.keep("b", "one");
    let text = fs::read_to_string(&journal).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    // A removal that is garbled brings nothing back.
    home.registry.remove("b", NOW).unwrap();
    let text = fs::read_to_string(&journal).unwrap().replace("removed", "re");
    fs::write(&journal, &text).unwrap();
    assert_eq!(home.names(), ["a"]);
    home.keep("c", "one");
    assert_eq!(home.names(), ["a", "c"]);
    let last = fs::read_to_string(&journal).unwrap();
    assert!(last.lines().last().unwrap().starts_with("{\"seq\":4,"), "{last}");
}

#[test]
fn a_long_journal_is_begun_anew_and_nothing_is_lost() {
    let home = Home::new();
    let source = "x".repeat(SOURCE_BYTES_MAX - 8);
    for number in 0..70 {
        home.keep("a", &format!("{source}{number}"));
        home.keep("b", &format!("{source}{number}"));
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
fn many_at_once_lose_nothing() {
    let home = Home::new();
    home.keep("counted", "x");
    let (limits, version) = (HealthLimits::default(), Digest::of(b"x"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (registry, limits, version) = (&home.registry, &limits, &version);
            scope.spawn(move || {
                for number in 0..10 {
                    registry.used("counted", version, None, limits, NOW).unwrap();
                    let mut overlay = registry.begin();
                    overlay.forge(&format!("t{thread}-{number}"), forged("y")).unwrap();
                    overlay.commit(NOW).unwrap();
                }
            });
        }
    });
    assert_eq!(home.tools().len(), 41);
    assert_eq!(home.registry.get("counted").unwrap().unwrap().uses, 40);
}
