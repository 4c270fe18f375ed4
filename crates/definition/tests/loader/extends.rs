//! Tests definitions that extend files, presets and packs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jackline_definition::{ExtendedFileReader, LoadedDefinition, load_with};
use jackline_engine::Definition;
use jackline_engine::definition::{
    BudgetLimit, CompletionRequirement, FeedbackContent, LimitPeriod, ModelChoice, OpaquePolicy,
    PolicyRule, ProgressSettings, Redact, RequiredFile, UnknownTools,
};

use crate::{check, check_shapes, problems_in};

/// Files in memory; the definition itself is `w/jackline.yaml`.
struct MemoryFiles<'a>(&'a [(&'a str, &'a str)]);

impl ExtendedFileReader for MemoryFiles<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.0.iter().find(|(known, _)| Path::new("w").join(known) == path);
        found
            .map(|(_, source)| source.as_bytes().to_vec())
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

fn load(source: &str, files: &[(&str, &str)]) -> Result<LoadedDefinition, String> {
    load_with(source.as_bytes(), Path::new("w/jackline.yaml"), &mut MemoryFiles(files))
        .map_err(|problems| problems.to_string())
}

fn loaded(source: &str, files: &[(&str, &str)]) -> LoadedDefinition {
    let loaded = load(source, files);
    assert!(loaded.is_ok(), "{loaded:?}");
    loaded.unwrap_or(LoadedDefinition {
        definition: Definition::default(),
        modes: vec![],
        extended: vec![],
        warnings: vec![],
    })
}

fn problems(source: &str, files: &[(&str, &str)]) -> String {
    load(source, files).map_or_else(|problems| problems, |_| "ok".to_owned())
}

fn rule(name: &str) -> String {
    format!("{{ name: {name}, command: {name}, deny: No., examples: {{ deny: [{name}] }} }}")
}

const BASE: &str = "\
version: 1
name: acme/base
mode: observe
tools:
  read_file: { kind: read, path: file, aliases: [Read] }
  pay: { kind: effect, idempotent: false }
protected: [.env, keys/]
limits: { steps: 10, wall_seconds: { max: 5, soft: true }, input_tokens: 9 }
completion: { files: [base.md] }
feedback: [ { static: Base., every_n_calls: 2 } ]
policies: [ read_before_write: {} ]
shell: { opaque: ask }
journal: { redact: off, retain_days: 3 }
packs: { off: [] }
";

#[test]
fn a_file_is_merged_on_top_of_its_extended_file() {
    let own = "\
extends: [./base.yaml]
name: acme/own
tools:
  read_file: { aliases: [Read, view] }
  pay: { aliases: [Pay] }
  more: {}
protected: [.env, own.txt]
limits: { steps: { max: 7, per: turn }, input_tokens: null }
completion: { files: [own.md] }
feedback: [ { static: Own., every_n_calls: 3 } ]
policies:
journal: { retain_days: 4 }
";
    let LoadedDefinition { definition, modes: _, extended, warnings } =
        loaded(own, &[("base.yaml", BASE)]);
    assert_eq!(definition.name, "acme/own");
    assert_eq!(definition.mode, jackline_engine::Mode::Observe);
    let tools: Vec<_> = definition
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.aliases.join(" "), tool.idempotent))
        .collect();
    assert_eq!(
        tools,
        [
            ("read_file", "Read view".to_owned(), true),
            ("pay", "Pay".to_owned(), false),
            ("more", String::new(), true)
        ]
    );
    assert_eq!(definition.tools[0].paths.read, ["/file"]);
    assert_eq!(definition.unknown_tools, UnknownTools::Client);
    assert_eq!(definition.protected, [".env", "keys/", "own.txt"]);
    let limits = &definition.limits;
    assert_eq!(limits.steps, Some(BudgetLimit { max: 7, soft: false, per: LimitPeriod::Turn }));
    assert_eq!(
        limits.wall_seconds,
        Some(BudgetLimit { max: 5, soft: true, per: LimitPeriod::Session })
    );
    assert_eq!(limits.input_tokens, None);
    let Some(CompletionRequirement::Files(files)) = &definition.completion else {
        panic!("no files")
    };
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["own.md"]);
    assert_eq!(definition.feedback.len(), 2);
    assert_eq!(definition.policies.len(), 1);
    assert_eq!(definition.shell.opaque, OpaquePolicy::Ask);
    assert_eq!((definition.journal.redact, definition.journal.retain_days), (Redact::Off, 4));
    assert_eq!(extended, [(PathBuf::from("w/base.yaml"), BASE.as_bytes().to_vec())]);
    assert_eq!(warnings, []);
}

#[test]
fn models_replace_the_models_of_the_extended_file() {
    let base = "models: [ { provider: openai, model: a }, { worker: claude } ]\nadvisor: { models: [ { provider: openai, model: a } ], budget: 5 }";
    let labels = |list: &[ModelChoice]| list.iter().map(ModelChoice::label).collect::<Vec<_>>();
    let own = "extends: [./base.yaml]\nmodels: [ { worker: claude } ]\nadvisor: { models: [ { provider: gemini, model: g } ] }";
    for (own, models, asked) in [
        (own, &["claude"][..], "gemini/g"),
        ("extends: [./base.yaml]\nmodels:\nadvisor:", &["openai/a", "claude"], "openai/a"),
    ] {
        let definition = loaded(own, &[("base.yaml", base)]).definition;
        assert_eq!(labels(&definition.choices), models);
        let Some(advisor) = definition.advisor else { panic!("no advisor") };
        assert_eq!((labels(&advisor.models), advisor.budget), (vec![asked.to_owned()], 5));
    }
}

#[test]
fn extended_files_come_first_and_each_rule_has_its_origin() {
    let files = [
        ("a.yaml", format!("extends: [sub/b.yaml]\nrules: [ {} ]", rule("a"))),
        ("sub/b.yaml", format!("extends: [../c.yaml, ./d.yaml]\nrules: [ {} ]", rule("b"))),
        ("c.yaml", format!("rules: [ {} ]", rule("c"))),
        ("sub/d.yaml", format!("extends: ../c.yaml\nrules: [ {} ]", rule("d"))),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let own = format!("extends: [./a.yaml, coding-agent, c.yaml]\nrules: [ {} ]", rule("own"));
    let loaded = loaded(&own, &files);
    let origins: Vec<_> = loaded
        .definition
        .rules
        .iter()
        .map(|rule| (rule.name.as_str(), rule.origin.as_str()))
        .filter(|(_, origin)| origin.starts_with("file"))
        .collect();
    assert_eq!(
        origins,
        [
            ("c", "file c.yaml"),
            ("d", "file sub/d.yaml"),
            ("b", "file sub/b.yaml"),
            ("a", "file a.yaml"),
            ("own", "file jackline.yaml"),
        ]
    );
    let read: Vec<_> = loaded.extended.iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(read, ["w/a.yaml", "w/sub/b.yaml", "w/c.yaml", "w/sub/d.yaml"]);
}

#[test]
fn every_mistake_is_reported_in_its_own_file() {
    let files = [
        ("a.yaml", "version: 3\nextends: [b.yml]\nmod: observe\ntools: { t: { kind: x } }"),
        ("b.yml", "limits: [steps]\nrules: [ { name: r, deny: No. } ]\n"),
        ("c.yaml", "- a\n- b\n"),
        ("d.yaml", "mode: &x observe\n"),
    ];
    assert_eq!(
        problems("extends: [a.yaml, c.yaml, d.yaml]\nlimits: { steps: 3 }\nnaem: x/y\n", &files),
        "\
w/jackline.yaml:2:9: a mapping can't replace a list at line 1 of the extended file
w/jackline.yaml:3:1: unknown key `naem` in the definition; did you mean `name`?
w/a.yaml:1:10: version 3 is not supported; this jackline reads `version: 1`
w/a.yaml:3:1: unknown key `mod` in the definition; did you mean `mode`?
w/a.yaml:4:21: `kind` can't be `x`; use one of `read`, `write`, `edit`, `delete`, `exec`, `search`, `fetch`, `think`, `spawn`, `effect`, `other`
w/b.yml:2:10: a rule needs `examples`; show at least one call that it matches
w/c.yaml:1:1: the definition must be a mapping, not a list
w/d.yaml:1:7: anchors are not supported; write the value itself"
    );
}

#[test]
fn a_file_that_extends_itself_is_reported_with_its_chain() {
    let files = [
        ("a.yaml", "extends: [./b.yaml]"),
        ("b.yaml", "extends: [a.yaml]"),
        ("own.yaml", "extends: [./x/../own.yaml]"),
        ("back.yaml", "extends: [jackline.yaml]"),
    ];
    assert_eq!(
        problems("extends: [a.yaml]", &files),
        "w/b.yaml:1:11: this file extends itself: `jackline.yaml` → `a.yaml` → `b.yaml` → `a.yaml`"
    );
    assert_eq!(
        problems("extends: [own.yaml]", &files),
        "w/own.yaml:1:11: this file extends itself: `jackline.yaml` → `own.yaml` → `own.yaml`"
    );
    assert_eq!(
        problems("extends: back.yaml", &files),
        "w/back.yaml:1:11: this file extends itself: `jackline.yaml` → `back.yaml` → `jackline.yaml`"
    );
}

#[test]
fn the_depth_and_the_number_of_files_are_limited() {
    let chain = |length: usize| -> BTreeMap<String, String> {
        (1..=length)
            .map(|n| {
                let next =
                    if n < length { format!("extends: [f{}.yaml]", n + 1) } else { String::new() };
                (format!("f{n}.yaml"), next)
            })
            .collect()
    };
    let play = |source: &str, files: &BTreeMap<String, String>| {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        problems(source, &files)
    };
    assert_eq!(play("extends: f1.yaml", &chain(8)), "ok");
    assert_eq!(
        play("extends: f1.yaml", &chain(9)),
        "w/f8.yaml:1:11: files extend each other more than 8 deep: `jackline.yaml` → `f1.yaml` → `f2.yaml` → `f3.yaml` → \
         `f4.yaml` → `f5.yaml` → `f6.yaml` → `f7.yaml` → `f8.yaml` → `f9.yaml`"
    );
    let heap: BTreeMap<String, String> =
        (0..40).map(|n| (format!("h{n:02}.yaml"), String::new())).collect();
    let names = |count: usize| heap.keys().take(count).cloned().collect::<Vec<_>>().join(", ");
    assert_eq!(play(&format!("extends: [{}]", names(31)), &heap), "ok");
    let one_more = play(&format!("extends: [{}]", names(32)), &heap);
    assert_eq!(
        one_more,
        "w/jackline.yaml:1:321: a definition is made of more than 32 files: `jackline.yaml` → `h31.yaml`"
    );
    // Files that all extend each other are read once.
    let all = names(20);
    let web: BTreeMap<String, String> =
        (0..20).map(|n| (format!("h{n:02}.yaml"), format!("extends: [{}]", names(n)))).collect();
    assert_eq!(play(&format!("extends: [{all}]"), &web), "ok");
}

#[test]
fn an_invalid_extends_entry_is_reported_with_the_reason() {
    for (name, expected) in [
        (
            "/etc/base.yaml",
            "`/etc/base.yaml` is not a relative path; write a path relative to the file that extends it, such as ./base.yaml",
        ),
        (
            "~/base.yaml",
            "`~/base.yaml` is not a relative path; write a path relative to the file that extends it, such as ./base.yaml",
        ),
        (
            "../base.yaml",
            "`../base.yaml` is outside the directory of the definition; extend files in that directory or below it",
        ),
        ("gone.yaml", "can't read `w/gone.yaml`: entity not found"),
        ("coding-agnt", "unknown preset, pack or file `coding-agnt`; did you mean `coding-agent`?"),
        ("pack/gti", "unknown preset, pack or file `pack/gti`; did you mean `pack/git`?"),
        (
            "something",
            "unknown preset, pack or file `something`; available: coding-agent, autonomous, strict, pack/destructive, pack/git, pack/secrets, pack/publish; write a file as ./base.yaml",
        ),
    ] {
        let found = problems(&format!("extends: ['{name}']"), &[]);
        assert_eq!(found, format!("w/jackline.yaml:1:11: {expected}"));
    }
    check(&[(
        "extends: [./base.yaml]",
        "f:1:11: `./base.yaml` can't be extended here; only a definition that is itself a file can extend files; use presets and packs",
    )]);
    check_shapes(&[
        ("extends: {}", "f:1:10: `extends` must be a list, not a mapping"),
        ("extends: [1]", "f:1:11: an entry of `extends` must be text, not a number"),
    ]);
}

#[test]
fn presets_build_on_each_other() {
    for preset in ["coding-agent", "autonomous", "strict"] {
        assert_eq!(problems_in(&format!("extends: {preset}")), "ok");
    }
    for pack in ["destructive", "git", "secrets", "publish"] {
        assert_eq!(problems_in(&format!("extends: [pack/{pack}]")), "ok");
    }
    let coding = loaded("extends: coding-agent", &[]).definition;
    assert_eq!((coding.policies.len(), coding.feedback.len()), (0, 0));
    assert_eq!(coding.completion, None);
    let autonomous = loaded("extends: autonomous", &[]).definition;
    assert_eq!(autonomous.policies[0].rule, PolicyRule::ReadBeforeWrite { deletes: false });
    assert!(matches!(autonomous.feedback[0].speech, FeedbackContent::Deadline { .. }));
    assert_eq!(autonomous.completion, Some(CompletionRequirement::Clean));
    assert_eq!(autonomous.progress, Some(ProgressSettings::default()));
    let strict = loaded("extends: strict", &[]).definition;
    assert_eq!(strict.shell.opaque, OpaquePolicy::Ask);
    assert_eq!(strict.unknown_tools, UnknownTools::Client);
    assert_eq!(strict.rules, coding.rules);
    for rule in &strict.rules {
        let (pack, _) = rule.name.split_once('/').unwrap_or_default();
        assert_eq!(rule.origin, format!("pack {pack}"), "{}", rule.name);
    }
    // The values of the file itself win.
    let own =
        loaded("extends: strict\nunknown_tools: allow\nshell: { opaque: deny }", &[]).definition;
    assert_eq!((own.unknown_tools, own.shell.opaque), (UnknownTools::Allow, OpaquePolicy::Deny));
}

#[test]
fn clean_stays_in_force_beside_the_checks_of_a_file() {
    let completion =
        |own: &str| loaded(&format!("extends: strict\n{own}"), &[]).definition.completion;
    let file =
        RequiredFile { path: "a".to_owned(), min_bytes: 0, json: false, newer_than_start: false };
    let files = CompletionRequirement::Files(vec![file]);
    assert_eq!(
        completion("completion: { files: [a] }"),
        Some(CompletionRequirement::All(vec![CompletionRequirement::Clean, files.clone()]))
    );
    assert_eq!(
        completion("completion: { all: [ files: [a], clean: {} ] }"),
        Some(CompletionRequirement::All(vec![files.clone(), CompletionRequirement::Clean]))
    );
    // A `clean` inside `any` does not satisfy the `clean` of the preset.
    assert_eq!(
        completion("completion: { any: [ files: [a], clean: {} ] }"),
        Some(CompletionRequirement::All(vec![
            CompletionRequirement::Clean,
            CompletionRequirement::Any(vec![files, CompletionRequirement::Clean])
        ]))
    );
    assert_eq!(completion("completion: null"), None);
}

#[test]
fn rules_of_packs_are_switched_by_name() {
    let all = loaded("extends: coding-agent", &[]).definition.rules;
    let all: Vec<_> = all.iter().map(|rule| (rule.name.as_str(), rule.mode)).collect();
    let (first, _) = all[0];
    let (second, _) = all[1];
    let some = format!("extends: coding-agent\npacks: {{ off: [{first}], observe: [{second}] }}");
    let some = loaded(&some, &[]).definition.rules;
    let some: Vec<_> = some.iter().map(|rule| (rule.name.as_str(), rule.mode)).collect();
    let mut expected = all[1..].to_vec();
    expected[0].1 = jackline_engine::Mode::Observe;
    assert_eq!(some, expected);
    // A rule that the extended file switches off stays off.
    let base = format!("extends: coding-agent\npacks: {{ off: [{first}] }}");
    let own = format!("extends: base.yaml\npacks: {{ off: [{second}] }}");
    let left = loaded(&own, &[("base.yaml", &base)]).definition.rules;
    assert_eq!(left.iter().count(), all.len() - 2);
    // Without the pack there is nothing to switch off.
    let idle = loaded(&format!("packs: {{ off: [{first}] }}"), &[]).warnings;
    let warnings: Vec<String> = idle.iter().map(ToString::to_string).collect();
    let (pack, _) = first.split_once('/').unwrap();
    assert_eq!(
        warnings,
        [format!(
            "w/jackline.yaml:1:16: `{first}` is not in force here; the definition does not extend `pack/{pack}`"
        )]
    );
}

#[test]
fn only_rules_of_packs_are_switched_off_by_name() {
    check(&[
        (
            "extends: coding-agent\npacks: { off: [git/no-such-rule-at-all] }",
            "f:2:16: no pack has a rule `git/no-such-rule-at-all`; write the name as pack/rule, such as `git/push-force`",
        ),
        (
            "rules: [ { name: own, deny: No., examples: { deny: [x] } } ]\npacks: { observe: [own] }",
            "f:2:20: `own` is not a rule of a pack; remove the rule, or give it `mode: observe`",
        ),
    ]);
}
