//! The reference page of the file, made from the tables of keys.

use std::fmt::Write as _;

use jackline_engine::Kind;
use jackline_engine::expr::{FUNCTIONS, Variable};
use serde_json::Value;

use crate::builtin::{BuiltIn, PACKS, PRESETS};
use crate::diagnostic::Diagnostics;
use crate::keys::{Keys, Takes};
use crate::sections::rules::EFFECT_WORDS;
use crate::sections::{MAPPINGS, ROOT};
use crate::well_known;
use crate::yaml;

const INTRODUCTION: &str = "\
# The definition file

<!-- Made by `cargo xtask generate` from the tables in crates/definition. -->

`jackline.yaml`, one per agent, kept with the code it guards. `jackline check` reports every mistake with its place; editors
find most of them as you type with [jackline.schema.json](jackline.schema.json). An empty file is valid. A key that is not
listed here is an error, with the nearest one that is.
";

const EXTENDS: &str = "
## What a file extends

`extends` names presets, packs and files. What is extended comes first, in the order in which it is named, and the file
itself on top: mappings are put together key by key, lists one after the other, and everything else is replaced, as is
`completion` as a whole; only its `clean` stays beside another check, and goes where a file says `completion: null`. What a file
leaves out stays as it was, so an omission never loosens. What is named twice on the way counts once.

A file is named from the file that extends it and lies in the directory of the definition or below it: `./base.yaml`,
`team/base.yaml`. Absolute paths are refused, and so is what leads out of that directory. A chain may be 8 files long, and a
definition may be made of 32.
";

/// The reference page of the definition file, in Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for keys in MAPPINGS {
        mapping(keys, &mut page);
        if keys.id == ROOT.id {
            page.push_str(EXTENDS);
            built_in(&mut page);
        }
    }
    kinds(&mut page);
    conditions(&mut page);
    packs(&mut page);
    page
}

fn mapping(keys: &Keys, page: &mut String) {
    if keys.id != ROOT.id {
        let _ = write!(page, "\n## {}\n", title(keys));
    }
    if !keys.doc.is_empty() {
        let _ = write!(page, "\n{}\n", keys.doc);
    }
    page.push_str("\n| key | takes | default | |\n|---|---|---|---|\n");
    for key in keys.known {
        let takes = cell(&words(&key.takes));
        let _ =
            writeln!(page, "| `{}` | {takes} | {} | {} |", key.name, key.default, cell(key.doc));
    }
}

/// "A tool", for "a tool".
fn title(keys: &Keys) -> String {
    let mut letters = keys.of.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The anchor of a mapping's heading.
fn anchor(keys: &Keys) -> String {
    keys.of.to_lowercase().replace('`', "").replace(' ', "-")
}

fn words(takes: &Takes) -> String {
    match takes {
        Takes::Text => "text".to_owned(),
        Takes::Form(_, words) => (*words).to_owned(),
        Takes::Flag => "`true` or `false`".to_owned(),
        Takes::Count(min, max) if min == max => format!("`{min}`"),
        Takes::Count(0, _) => "a whole number".to_owned(),
        Takes::Count(min, _) => format!("a whole number from {min}"),
        Takes::Usd => "an amount of dollars".to_owned(),
        Takes::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Takes::List(_, of) => format!("a list, each {}", self::words(of)),
        Takes::Map(keys) => format!("[{}](#{})", keys.of, anchor(keys)),
        Takes::Names(_, of, to) => format!("a mapping, each {of} to {}", self::words(to)),
        Takes::OneOf(choices) => choices.iter().map(self::words).collect::<Vec<_>>().join(" or "),
        Takes::Pointer => "a JSON pointer".to_owned(),
        Takes::Path => "a path".to_owned(),
        Takes::Arguments => "the arguments of the tool".to_owned(),
        Takes::Schema => "a JSON Schema".to_owned(),
        Takes::Nothing => "nothing".to_owned(),
    }
}

/// A text in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn built_in(page: &mut String) {
    page.push_str("\n| preset | extends | and gives |\n|---|---|---|\n");
    for preset in PRESETS {
        let tree = tree(preset);
        let extends = tree.get("extends").and_then(Value::as_array);
        let names: Vec<String> = extends
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|name| format!("`{name}`"))
            .collect();
        let own = tree.as_object().into_iter().flat_map(|own| own.keys());
        let own: Vec<String> = own
            .filter(|key| !["extends", "version"].contains(&key.as_str()))
            .map(|key| format!("`{key}`"))
            .collect();
        let _ = writeln!(page, "| `{}` | {} | {} |", preset.name, names.join(", "), own.join(", "));
    }
}

fn kinds(page: &mut String) {
    page.push_str(
        "\n## Kinds\n\nA tool of a well-known name has a kind without being declared; `tools` overrides it.\n\n\
         | kind | well-known tools |\n|---|---|\n",
    );
    for (name, kind) in Kind::ALL {
        let known = well_known::TOOLS.iter().find(|(of, _)| of == kind);
        let known: Vec<String> = known
            .into_iter()
            .flat_map(|(_, names)| *names)
            .map(|name| format!("`{name}`"))
            .collect();
        let _ = writeln!(page, "| `{name}` | {} |", known.join(", "));
    }
}

fn conditions(page: &mut String) {
    page.push_str(
        "\n## Conditions\n\nThe `when` of a rule is written in a part of CEL: `&&`, `||`, `!`, `? :`, comparisons, `in`, whole \
         numbers with `+ - * / %`, texts, lists, maps, and what is listed here. In a command line a condition is held against \
         each simple command. A condition that can't be answered denies.\n\n| variable | is | |\n|---|---|---|\n",
    );
    for variable in Variable::ALL {
        let (name, shape) = (variable.name(), variable.shape().words());
        let _ = writeln!(page, "| `{name}` | {shape} | {} |", cell(variable.about()));
    }
    page.push_str("\n| function | |\n|---|---|\n");
    for (function, about) in FUNCTIONS {
        let _ = writeln!(page, "| `{}` | {} |", cell(function), cell(about));
    }
}

fn packs(page: &mut String) {
    page.push_str(
        "\n## Rules of the packs\n\nRules that come with the product. `packs.off` and `packs.observe` name them as they are listed here.\n",
    );
    for pack in PACKS {
        let _ = write!(page, "\n### `pack/{}`\n", pack.name);
        let tree = tree(pack);
        let rules = tree.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if rules.is_empty() {
            page.push_str("\nNo rules yet.\n");
            continue;
        }
        page.push_str("\n| rule | does | says | instead |\n|---|---|---|---|\n");
        for rule in rules {
            let text = |key: &str| cell(rule.get(key).and_then(Value::as_str).unwrap_or_default());
            let effect = EFFECT_WORDS.iter().find(|effect| rule.get(**effect).is_some());
            let effect = effect.copied().unwrap_or_default();
            let instead = match text("instead") {
                instead if instead.is_empty() => instead,
                instead => format!("`{instead}`"),
            };
            let name = text("name");
            let _ = writeln!(
                page,
                "| `{}/{name}` | {effect} | {} | {instead} |",
                pack.name,
                text(effect)
            );
        }
    }
}

fn tree(built_in: &BuiltIn) -> Value {
    let tree = yaml::parse(built_in.source.as_bytes(), &mut Diagnostics::new(built_in.name));
    tree.map(|tree| tree.to_json()).unwrap_or_default()
}
