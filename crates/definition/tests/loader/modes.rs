//! Tests the modes of single rules and of packs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::io;
use std::path::Path;

use jackline_definition::{ExtendedFileReader, load, load_with, set_mode};
use jackline_engine::Mode::{self, Enforce, Observe};

use crate::generated::{root, yaml_files};
use crate::{check, check_shapes};

const BASE: &str = "\
extends: pack/git
mode: observe
modes: { git/clean: observe, git/push-force: enforce }
rules:
  - { name: own, command: deploy, deny: No., mode: enforce, examples: { deny: [deploy] } }
";

struct OneBase;

impl ExtendedFileReader for OneBase {
    fn read(&mut self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(BASE.as_bytes().to_vec())
    }
}

/// Returns the modes of an own rule and of three rules of a pack.
fn modes(source: &str) -> [Mode; 4] {
    let loaded = load_with(source.as_bytes(), Path::new("f"), &mut OneBase).unwrap();
    assert_eq!(loaded.warnings, []);
    let mode = |name: &str| loaded.definition.rules.iter().find(|r| r.name == name).unwrap().mode;
    ["own", "git/clean", "git/push-force", "git/reset-hard"].map(mode)
}

fn with(text: &str) -> [Mode; 4] {
    modes(&format!(
        "extends: pack/git\n{text}\nrules:\n  - {{ name: own, command: deploy, deny: No., examples: {{ deny: [deploy] }} }}\n"
    ))
}

#[test]
fn the_mode_of_a_rule_overrides_its_pack_and_the_pack_overrides_the_file() {
    assert_eq!(with(""), [Enforce; 4]);
    assert_eq!(with("mode: observe"), [Observe; 4]);
    assert_eq!(with("modes: { pack/git: observe }"), [Enforce, Observe, Observe, Observe]);
    assert_eq!(
        with("mode: observe\nmodes: { own: enforce, pack/git: enforce, git/clean: observe }"),
        [Enforce, Observe, Enforce, Enforce]
    );
    assert_eq!(
        with(
            "packs: { observe: [git/clean, git/push-force] }\nmodes: { pack/git: enforce, git/clean: enforce }"
        ),
        [Enforce, Enforce, Observe, Enforce]
    );
}

#[test]
fn modes_of_a_file_are_merged_with_those_of_extended_files() {
    assert_eq!(modes("extends: ./base.yaml"), [Enforce, Observe, Enforce, Observe]);
    assert_eq!(
        modes("extends: ./base.yaml\nmodes: { own: observe, git/clean: enforce }"),
        [Observe, Enforce, Enforce, Observe]
    );
    // The mode of a rule in the extended file still overrides the mode of a pack in this file.
    assert_eq!(
        modes("extends: ./base.yaml\nmode: enforce\nmodes: { pack/git: observe }"),
        [Enforce, Observe, Enforce, Observe]
    );
}

#[test]
fn an_unknown_rule_or_pack_is_an_error() {
    let file = |modes: &str| format!("extends: pack/git\nmodes: {{ {modes} }}\n");
    let watcher = "rules: [ { name: watch, observe: Seen., examples: { observe: [x] } } ]\nmodes: { watch: enforce }";
    check(&[
        (
            &file("git/push-forse: observe"),
            "f:2:10: there is no rule or pack `git/push-forse`; did you mean `git/push-force`?",
        ),
        (
            &file("pack/gut: observe"),
            "f:2:10: there is no rule or pack `pack/gut`; did you mean `pack/git`?",
        ),
        (
            &file("everything: observe"),
            "f:2:10: there is no rule or pack `everything`; write a rule as `jackline check` lists it, and a pack as pack/NAME",
        ),
        (
            watcher,
            "f:2:10: `watch` is an `observe` rule, so there is nothing to enforce; give the rule `deny`, `ask` or `warn` first",
        ),
    ]);
    check_shapes(&[
        (
            "extends: pack/git\nmodes: { pack/git: warn }",
            "f:2:20: the mode of `pack/git` can't be `warn`; use one of `enforce`, `observe`",
        ),
        ("modes: [pack/git]", "f:1:8: `modes` must be a mapping, not a list"),
    ]);
}

#[test]
fn a_rule_or_pack_that_is_not_in_force_is_reported() {
    let warnings = |source: &str| {
        let loaded = load_with(source.as_bytes(), Path::new("f"), &mut OneBase).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("modes: { pack/git: observe, git/clean: observe }"),
        [
            "f:1:10: `pack/git` is not in force here; the definition does not extend `pack/git`",
            "f:1:29: `git/clean` is not in force here; the definition does not extend `pack/git`"
        ]
    );
    assert_eq!(
        warnings("extends: pack/git\npacks: { off: [git/clean] }\nmodes: { git/clean: observe }"),
        ["f:3:10: `git/clean` is not in force here; `packs.off` switches it off"]
    );
}

/// Returns every definition in the repository.
fn all_definitions() -> Vec<String> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let mut all: Vec<String> = ["examples", "crates/definition/presets", "crates/definition/packs"]
        .iter()
        .flat_map(|directory| yaml_files(&root().join(directory)))
        .map(|file| read(&file))
        .collect();
    for guide in std::fs::read_dir(root().join("docs/guide")).unwrap() {
        let text = read(&guide.unwrap().path());
        let blocks = text.split("```yaml\n").skip(1);
        all.extend(blocks.map(|rest| rest.split("\n```").next().unwrap().to_owned()));
    }
    for file in yaml_files(&root().join("crates/conformance/scenarios")) {
        let tree = jackline_definition::yaml::parse(
            read(&file).as_bytes(),
            &mut jackline_definition::Diagnostics::new("scenario"),
        );
        all.push(tree.unwrap().to_json()["definition"].as_str().unwrap().to_owned());
    }
    all
}

#[test]
fn the_mode_of_every_definition_can_be_changed_and_restored() {
    let mut count = 0;
    for source in all_definitions() {
        let Ok(before) = load(source.as_bytes(), "f") else { continue };
        let set = |text: &str, mode| set_mode(text, None, mode).unwrap();
        let observed = set(&source, Observe);
        let enforced = set(&observed, Enforce);
        assert_eq!(set(&enforced, Observe), observed, "{source}");
        assert_eq!(load(observed.as_bytes(), "f").unwrap().mode, Observe, "{source}");
        assert_eq!(load(enforced.as_bytes(), "f").unwrap().mode, Enforce, "{source}");
        if let Some(rule) = before.rules.iter().find(|rule| !rule.name.contains('/')) {
            let by_name = set_mode(&source, Some(&rule.name), Observe).unwrap();
            let loaded = load(by_name.as_bytes(), "f").unwrap();
            let mode = loaded.rules.iter().find(|found| found.name == rule.name).unwrap().mode;
            assert_eq!(mode, Observe, "{by_name}");
        }
        count += 1;
    }
    assert!(count > 150, "{count} definitions");
}
