//! Lowers the examples of rules.

use jackline_engine::ToolKind;
use jackline_engine::definition::{RuleEffect, RuleScope};
use jackline_engine::path::canonical_path;
use serde_json::Value;

use super::{EXAMPLE_RUN, EXAMPLES, GIVEN};
use crate::diagnostic::SourcePosition;
use crate::reader::NodeReader;
use crate::sections::tools::DeclaredTools;
use crate::values::read_tool_name;
use crate::yaml::{YamlNode, YamlValue};

/// A call that shows what a rule does.
pub(crate) struct Example {
    pub(crate) position: SourcePosition,
    /// Whether the rule must match it.
    pub(crate) matches: bool,
    /// The tool of the call, if the rule does not determine it.
    pub(crate) tool: Option<String>,
    pub(crate) run: ExampleCall,
    pub(crate) world: ExampleWorld,
}

/// The call of an example.
pub(crate) enum ExampleCall {
    /// A command line.
    Line(String),
    /// The arguments of a tool.
    Args(Value),
}

/// The state of the workspace in an example.
pub(crate) struct ExampleWorld {
    pub(crate) dirty: bool,
    pub(crate) untracked: bool,
    pub(crate) branch: String,
    /// Canonical paths. A directory ends with a slash.
    pub(crate) exists: Vec<String>,
    pub(crate) ignored: Vec<String>,
    pub(crate) cwd: Option<String>,
}

impl Default for ExampleWorld {
    fn default() -> Self {
        Self {
            dirty: false,
            untracked: false,
            branch: "work".to_owned(),
            exists: Vec::new(),
            ignored: Vec::new(),
            cwd: None,
        }
    }
}

/// The tools that the examples of a rule may call.
pub(super) struct ExampleTarget<'a> {
    pub(super) scope: Option<&'a RuleScope>,
    pub(super) tools: &'a DeclaredTools,
}

impl ExampleTarget<'_> {
    /// Whether a command line can be an example.
    fn takes_lines(&self) -> bool {
        match self.scope {
            Some(RuleScope::Kind(kind)) => *kind == ToolKind::Exec,
            Some(RuleScope::Tool(tool)) => runs_lines(self.tools, tool),
            Some(RuleScope::Any) | None => true,
        }
    }
}

/// Whether a tool takes command lines, or is recognised in command lines.
fn runs_lines(tools: &DeclaredTools, name: &str) -> bool {
    let recognised = tools.get(name).is_some_and(|tool| !tool.commands.is_empty());
    recognised || tools.kind(name) == ToolKind::Exec
}

pub(super) fn examples(
    node: &YamlNode,
    effect: Option<&(&str, RuleEffect, String)>,
    target: &ExampleTarget<'_>,
    reader: &mut NodeReader<'_>,
) -> Vec<Example> {
    let mut examples = Vec::new();
    for (key, body) in reader.fields(node, &EXAMPLES) {
        let own = effect.map(|(word, ..)| *word);
        if key != "allow" && own.is_some_and(|own| own != key) {
            let own = own.unwrap_or_default();
            let message = format!("a `{own}` rule can't have examples for `{key}`");
            reader.report_with_hint(
                body.position,
                message,
                format!("list them under `{own}` or `allow`"),
            );
        }
        for item in reader.list(body, &format!("the examples for `{key}`")) {
            examples.extend(example(item, key != "allow", target, reader));
        }
    }
    let missing = !examples.iter().any(|example| example.matches);
    if missing && matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
        let word = effect.map_or("deny", |(word, ..)| word);
        let message = format!("no example shows the effect of this rule; add one under `{word}`");
        reader.report(node.position, message);
    }
    examples
}

fn example(
    node: &YamlNode,
    matches: bool,
    target: &ExampleTarget<'_>,
    reader: &mut NodeReader<'_>,
) -> Option<Example> {
    let mut example = Example {
        position: node.position,
        matches,
        tool: None,
        run: ExampleCall::Args(Value::Null),
        world: ExampleWorld::default(),
    };
    if !is_full_form(node) {
        example.run = read_call(node, target.takes_lines(), reader)?;
        return Some(example);
    }
    let mut calls = None;
    let mut lines = target.takes_lines();
    for (key, node) in reader.fields(node, &EXAMPLE_RUN) {
        match key {
            "run" => calls = Some(node),
            "tool" => {
                let name = reader.text(node, "`tool`")?;
                lines = runs_lines(target.tools, name);
                example.tool = Some(read_tool_name(name, node.position, reader));
            }
            _ => example.world = given(node, reader),
        }
    }
    example.run = read_call(calls?, lines, reader)?;
    Some(example)
}

/// Whether an example has the form `{run, tool, given}` and is not the arguments of a tool.
fn is_full_form(node: &YamlNode) -> bool {
    let YamlValue::Map(entries) = &node.value else { return false };
    let known = |name: &str| EXAMPLE_RUN.names().any(|known| known == name);
    entries.iter().any(|(key, _)| key.text == "run")
        && entries.iter().all(|(key, _)| known(&key.text))
}

fn read_call(node: &YamlNode, lines: bool, reader: &mut NodeReader<'_>) -> Option<ExampleCall> {
    if lines && !matches!(node.value, YamlValue::Map(_)) {
        return reader.text(node, "an example").map(|line| ExampleCall::Line(line.to_owned()));
    }
    arguments(node, reader).map(ExampleCall::Args)
}

fn arguments(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<Value> {
    if !matches!(node.value, YamlValue::Map(_)) {
        let message = format!("an example of this rule must be a mapping, not {}", node.describe());
        reader.report_with_hint(node.position, message, "write the arguments of the call");
        return None;
    }
    Some(node.to_json())
}

fn given(node: &YamlNode, reader: &mut NodeReader<'_>) -> ExampleWorld {
    let mut given = ExampleWorld::default();
    for (key, node) in reader.fields(node, &GIVEN) {
        match key {
            "git.dirty" => given.dirty = reader.flag(node, "`git.dirty`").unwrap_or_default(),
            "git.untracked" => {
                given.untracked = reader.flag(node, "`git.untracked`").unwrap_or_default();
            }
            "git.branch" => {
                if let Some(branch) = reader.text(node, "`git.branch`") {
                    branch.clone_into(&mut given.branch);
                }
            }
            "exists" => given.exists = paths(node, "`exists`", reader),
            "ignored" => given.ignored = paths(node, "`ignored`", reader),
            _ => given.cwd = reader.text(node, "`cwd`").map(ToOwned::to_owned),
        }
    }
    given
}

/// Reads a list of paths, relative to the workspace or absolute, and makes them canonical.
fn paths(node: &YamlNode, what: &str, reader: &mut NodeReader<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    for node in reader.list(node, what) {
        let Some(text) = reader.text(node, "a path") else { continue };
        let root = text.starts_with('/').then_some("/");
        match canonical_path(text, root) {
            Ok(path) => {
                let (start, end) =
                    (root.unwrap_or_default(), if text.ends_with('/') { "/" } else { "" });
                paths.push(format!("{start}{path}{end}"));
            }
            Err(error) => reader.report(node.position, error.to_string()),
        }
    }
    paths
}
