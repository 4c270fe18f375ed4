//! Builds the reference page of the definition file from the tables of keys.

use std::fmt::Write as _;

use jackline_engine::ToolKind;
use jackline_engine::expr::{FUNCTIONS, Variable};
use serde_json::Value;

use crate::builtin::{BuiltInFile, PACKS, PRESETS};
use crate::diagnostic::Diagnostics;
use crate::keys::{MappingSpec, ValueType};
use crate::sections::rules::EFFECT_WORDS;
use crate::sections::{MAPPINGS, ROOT};
use crate::yaml;

/// How wide a line of prose may be.
const PROSE_COLUMNS_MAX: usize = 126;

const INTRODUCTION: &str = "\
# The definition file

<!-- Made by `cargo xtask generate` from the tables in crates/definition. -->

Each agent has one `jackline.yaml`, stored with the code that it guards. `jackline check` reports every mistake with its
position. Editors find most mistakes while you type with [jackline.schema.json](jackline.schema.json). An empty file is valid.
A key that is not listed here is an error; the error names the nearest known key.
";

const EXTENDS: &str = "
## What a file extends

`extends` names presets, packs and files. Jackline reads them first, in the order of the list, and then puts the file itself
on top. It merges mappings key by key, appends lists, and replaces every other value. It also replaces `completion` as a
whole; only the `clean` of the lower file stays in force, until a file sets `completion: null`. A key that a file leaves out
keeps its value, so an omission never loosens. A source that is named twice counts once.

The path of a file is relative to the file that extends it, such as `./base.yaml` or `team/base.yaml`. The file must be in the
directory of the definition or below it; absolute paths and paths out of that directory are refused. A chain may contain 8
files, and a definition may consist of 32.
";

/// Returns the reference page of the definition file, in Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for keys in MAPPINGS {
        write_mapping(keys, &mut page);
        if keys.id == ROOT.id {
            page.push_str(EXTENDS);
            write_presets(&mut page);
        }
    }
    write_kinds(&mut page);
    write_conditions(&mut page);
    write_packs(&mut page);
    page.lines().map(|line| wrap(line) + "\n").collect()
}

/// Breaks a line of prose. Rows of tables, headings and comments stay on one line.
fn wrap(line: &str) -> String {
    if line.starts_with(['|', '#', '<', '`']) {
        return line.to_owned();
    }
    let indent = if line.starts_with("- ") { "\n  " } else { "\n" };
    let (mut text, mut column) = (String::new(), 0);
    for word in line.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > PROSE_COLUMNS_MAX {
            text.push_str(indent);
            column = indent.len() - 1;
        } else if !text.is_empty() {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

fn write_mapping(keys: &MappingSpec, page: &mut String) {
    if keys.id != ROOT.id {
        let _ = write!(page, "\n## {}\n", title(keys));
    }
    if !keys.doc.is_empty() {
        let _ = write!(page, "\n{}\n", keys.doc);
    }
    page.push_str("\n| key | takes | default | |\n|---|---|---|---|\n");
    for key in keys.entries {
        let takes = escape_cell(&describe_type(&key.value_type));
        let _ = writeln!(
            page,
            "| `{}` | {takes} | {} | {} |",
            key.name,
            key.default,
            escape_cell(key.doc)
        );
    }
}

/// Returns the heading of a mapping: "A tool" for "a tool".
fn title(keys: &MappingSpec) -> String {
    let mut letters = keys.label.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the anchor of a mapping's heading.
fn anchor(keys: &MappingSpec) -> String {
    // GitHub removes backticks and dots from the anchor of a heading.
    keys.label.to_lowercase().replace(['`', '.'], "").replace(' ', "-")
}

fn describe_type(takes: &ValueType) -> String {
    match takes {
        ValueType::Text => "text".to_owned(),
        ValueType::Form(_, words) => (*words).to_owned(),
        ValueType::Flag => "`true` or `false`".to_owned(),
        ValueType::Count(min, max) if min == max => format!("`{min}`"),
        ValueType::Count(0, _) => "a whole number".to_owned(),
        ValueType::Count(min, _) => format!("a whole number from {min}"),
        ValueType::Usd => "an amount of dollars".to_owned(),
        ValueType::Seconds => "seconds, with up to three decimals".to_owned(),
        ValueType::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        ValueType::List(_, of) => format!("a list, each {}", self::describe_type(of)),
        ValueType::Map(keys) => format!("[{}](#{})", keys.label, anchor(keys)),
        ValueType::Names(_, of, to) => {
            format!("a mapping from each {of} to {}", self::describe_type(to))
        }
        ValueType::OneOf(choices) => {
            choices.iter().map(self::describe_type).collect::<Vec<_>>().join(" or ")
        }
        ValueType::Pointer => "a JSON pointer".to_owned(),
        ValueType::Path => "a path".to_owned(),
        ValueType::Arguments => "the arguments of the tool".to_owned(),
        ValueType::Schema => "a JSON Schema".to_owned(),
        ValueType::Nothing => "`null`".to_owned(),
    }
}

/// Escapes a text for a cell of a table.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn write_presets(page: &mut String) {
    page.push_str("\n| preset | extends | sets |\n|---|---|---|\n");
    for preset in PRESETS {
        let tree = parse_built_in(preset);
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

fn write_kinds(page: &mut String) {
    page.push_str(
        "\n## Kinds\n\nA tool with a well-known name has a kind even if the definition does not declare it. `tools` overrides the kind.\n\n\
         | kind | well-known tools |\n|---|---|\n",
    );
    for (name, kind) in ToolKind::ALL {
        let known = ToolKind::WELL_KNOWN.iter().find(|(of, _)| of == kind);
        let known: Vec<String> = known
            .into_iter()
            .flat_map(|(_, names)| *names)
            .map(|name| format!("`{name}`"))
            .collect();
        let _ = writeln!(page, "| `{name}` | {} |", known.join(", "));
    }
}

fn write_conditions(page: &mut String) {
    page.push_str(
        "\n## Conditions\n\nThe `when` of a rule is written in a part of CEL: `&&`, `||`, `!`, `? :`, comparisons, `in`, whole \
         numbers with `+ - * / %`, texts, lists, maps, and the variables and functions below. For a command line, Jackline \
         evaluates the condition once for each simple command. If a condition can't be evaluated, the call is denied.\n\n\
         | variable | type | |\n|---|---|---|\n",
    );
    for variable in Variable::ALL {
        let (name, shape) = (variable.name(), variable.shape().describe());
        let _ = writeln!(page, "| `{name}` | {shape} | {} |", escape_cell(variable.about()));
    }
    page.push_str("\n| function | |\n|---|---|\n");
    for (function, about) in FUNCTIONS {
        let _ = writeln!(page, "| `{}` | {} |", escape_cell(function), escape_cell(about));
    }
}

fn write_packs(page: &mut String) {
    page.push_str(
        "\n## Rules of the packs\n\nThese rules come with the product. Use the names listed here in `packs.off` and `packs.observe`.\n",
    );
    for pack in PACKS {
        let _ = write!(page, "\n### `pack/{}`\n", pack.name);
        let tree = parse_built_in(pack);
        let rules = tree.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if rules.is_empty() {
            page.push_str("\nNo rules yet.\n");
            continue;
        }
        page.push_str("\n| rule | effect | message | instead |\n|---|---|---|---|\n");
        for rule in rules {
            let text =
                |key: &str| escape_cell(rule.get(key).and_then(Value::as_str).unwrap_or_default());
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

fn parse_built_in(built_in: &BuiltInFile) -> Value {
    let tree = yaml::parse(built_in.source.as_bytes(), &mut Diagnostics::new(built_in.name));
    tree.map(|tree| tree.to_json()).unwrap_or_default()
}
