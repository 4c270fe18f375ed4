//! Compares our parser with `brush-parser` on lines generated from a grammar.
//!
//! If both accept a line, both must find the same simple commands with the same
//! words.

use brush_parser::ast::{
    AndOr, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, Pipeline,
    SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};
use jackline_shell::{understand, written_commands};
use proptest::prelude::*;

/// The simple commands that brush finds. `None` if brush rejects the line.
fn brush_commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut parser = Parser::new(std::io::Cursor::new(line), &ParserOptions::default());
    let program = parser.parse_program().ok()?;
    let mut out = Vec::new();
    for list in &program.complete_commands {
        compound_list(list, &mut out);
    }
    Some(out)
}

fn compound_list(list: &CompoundList, out: &mut Vec<Vec<String>>) {
    for item in &list.0 {
        pipeline(&item.0.first, out);
        for more in &item.0.additional {
            let (AndOr::And(next) | AndOr::Or(next)) = more;
            pipeline(next, out);
        }
    }
}

fn pipeline(pipeline: &Pipeline, out: &mut Vec<Vec<String>>) {
    for part in &pipeline.seq {
        command(part, out);
    }
}

fn command(command: &Command, out: &mut Vec<Vec<String>>) {
    match command {
        Command::Simple(simple) => out.push(words(simple)),
        Command::Compound(inner, _) => compound(inner, out),
        Command::Function(function) => compound(&function.body.0, out),
        Command::ExtendedTest(..) => {}
    }
}

fn compound(command: &CompoundCommand, out: &mut Vec<Vec<String>>) {
    match command {
        CompoundCommand::BraceGroup(group) => compound_list(&group.list, out),
        CompoundCommand::Subshell(shell) => compound_list(&shell.list, out),
        CompoundCommand::ForClause(clause) => compound_list(&clause.body.list, out),
        CompoundCommand::CaseClause(clause) => {
            for case in &clause.cases {
                case.cmd.iter().for_each(|list| compound_list(list, out));
            }
        }
        CompoundCommand::IfClause(clause) => {
            compound_list(&clause.condition, out);
            compound_list(&clause.then, out);
            for branch in clause.elses.iter().flatten() {
                branch.condition.iter().for_each(|list| compound_list(list, out));
                compound_list(&branch.body, out);
            }
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            compound_list(&clause.0, out);
            compound_list(&clause.1.list, out);
        }
        CompoundCommand::Arithmetic(_)
        | CompoundCommand::ArithmeticForClause(_)
        | CompoundCommand::Coprocess(_) => {}
    }
}

fn words(simple: &SimpleCommand) -> Vec<String> {
    let mut out = Vec::new();
    let items = |items: &[CommandPrefixOrSuffixItem]| -> Vec<String> {
        items
            .iter()
            .filter_map(|item| match item {
                CommandPrefixOrSuffixItem::Word(word)
                | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(word.value.clone()),
                CommandPrefixOrSuffixItem::IoRedirect(_)
                | CommandPrefixOrSuffixItem::ProcessSubstitution(..) => None,
            })
            .collect()
    };
    if let Some(prefix) = &simple.prefix {
        out.extend(items(&prefix.0));
    }
    out.extend(simple.word_or_name.iter().map(|word| word.value.clone()));
    if let Some(suffix) = &simple.suffix {
        out.extend(items(&suffix.0));
    }
    out
}

fn shell_word() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z./-]{1,6}",
        "[a-z]{1,3}".prop_map(|text| format!("'{text} $x'")),
        "[a-z]{1,3}".prop_map(|text| format!("\"{text} $x \\\" '\"")),
        Just("$x".to_owned()),
        Just("${y}".to_owned()),
        Just("${z:-a b}".to_owned()),
        Just("$(echo a | b)".to_owned()),
        Just("`date`".to_owned()),
        Just("$((1 + 2))".to_owned()),
        Just("$'a\\n'".to_owned()),
        Just("\\;".to_owned()),
        Just("\\ ".to_owned()),
        Just("*".to_owned()),
        Just("{a,b}".to_owned()),
        Just("~".to_owned()),
        Just("é".to_owned()),
        Just("#".to_owned()),
        Just("=".to_owned()),
    ];
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

fn simple_command() -> impl Strategy<Value = String> {
    let redirect = prop_oneof![
        shell_word().prop_map(|word| format!("> {word}")),
        shell_word().prop_map(|word| format!("2>> {word}")),
        shell_word().prop_map(|word| format!("< {word}")),
        shell_word().prop_map(|word| format!("<<< {word}")),
        Just("2>&1".to_owned()),
        Just("&> f".to_owned()),
        Just(">| f".to_owned()),
    ];
    let assignment = shell_word().prop_map(|word| format!("v={word}"));
    (
        prop::collection::vec(assignment, 0..2),
        "[a-z]{2,5}x",
        prop::collection::vec(prop_oneof![4 => shell_word(), 1 => redirect], 0..5),
    )
        .prop_map(|(assignments, program, rest)| {
            let mut parts = assignments;
            parts.push(program);
            parts.extend(rest);
            parts.join(" ")
        })
}

fn shell_line() -> impl Strategy<Value = String> {
    simple_command().prop_recursive(4, 24, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!("{a} | {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} |& {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} && {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} ||\n{b}")),
            two.clone().prop_map(|(a, b)| format!("{a}; {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} & {b}")),
            two.clone().prop_map(|(a, b)| format!("{a}\n{b}")),
            two.clone().prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
            two.prop_map(|(a, b)| format!("while {a}\ndo {b}\ndone > f")),
            // brush misreads `${…}` next to a here-document.
            inner.clone().prop_map(|a| format!("cat <<EOF && lsx a\n$x 'y\nEOF\n{a}")),
            // brush reads `( ( a ) )` as arithmetic.
            inner.clone().prop_map(|a| format!("( lsx; {a} )")),
            inner.clone().prop_map(|a| format!("{{ {a}; }} 2> f")),
            inner.clone().prop_map(|a| format!("for i in a 'b c'; do {a}; done")),
            inner.clone().prop_map(|a| format!("case $x in a|b) {a};; *) {a};; esac")),
            inner.clone().prop_map(|a| format!("f() {{ {a}; }}")),
            inner.clone().prop_map(|a| format!("! {a}")),
            inner.prop_map(|a| format!("{a} # it's a comment")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn both_parsers_find_the_same_commands(line in shell_line()) {
        if let (Some(ours), Some(theirs)) = (written_commands(&line), brush_commands(&line)) {
            prop_assert_eq!(ours, theirs, "{}", line);
        }
    }

    #[test]
    fn any_text_is_analysed_without_a_panic(line in ".{0,200}") {
        understand(&line);
    }

    #[test]
    fn any_mix_of_shell_characters_is_analysed_without_a_panic(line in "[a-c $(){}'\"`\\\\;&|<>\n=#*?\\[\\]!~0-2-]{0,80}") {
        understand(&line);
    }
}
