//! Lowers the examples of rules.

use jackline_engine::Kind;
use jackline_engine::definition::{Effect, RuleScope};
use jackline_engine::path::canonical;
use serde_json::Value;

use super::{EXAMPLE_RUN, EXAMPLES, GIVEN};
use crate::diagnostic::At;
use crate::reader::Reader;
use crate::sections::tools::Tools;
use crate::values::tool_name;
use crate::yaml::{Node, NodeValue};

/// A call that shows what a rule does.
pub(crate) struct Example {
    pub(crate) at: At,
    /// Whether the rule must match it.
    pub(crate) matches: bool,
    /// The tool of the call, where the rule alone does not tell.
    pub(crate) tool: Option<String>,
    pub(crate) run: ExampleCall,
    pub(crate) given: ExampleWorld,
}

/// The call of an example.
pub(crate) enum ExampleCall {
    /// A command line.
    Line(String),
    /// The arguments of a tool.
    Args(Value),
}

/// The state of the world in an example.
pub(crate) struct ExampleWorld {
    pub(crate) dirty: bool,
    pub(crate) untracked: bool,
    pub(crate) branch: String,
    /// Canonical; a directory with a slash at its end.
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
    pub(super) tools: &'a Tools,
}

impl ExampleTarget<'_> {
    /// Whether a command line can be an example.
    fn takes_lines(&self) -> bool {
        match self.scope {
            Some(RuleScope::Kind(kind)) => *kind == Kind::Exec,
            Some(RuleScope::Tool(tool)) => runs_lines(self.tools, tool),
            Some(RuleScope::Any) | None => true,
        }
    }
}

/// Whether a tool takes command lines, or is recognised in command lines.
fn runs_lines(tools: &Tools, name: &str) -> bool {
    let recognised = tools.get(name).is_some_and(|tool| !tool.commands.is_empty());
    recognised || tools.kind(name) == Kind::Exec
}

pub(super) fn examples(
    node: &Node,
    effect: Option<&(&str, Effect, String)>,
    target: &ExampleTarget<'_>,
    reader: &mut Reader<'_>,
) -> Vec<Example> {
    let mut examples = Vec::new();
    for (key, body) in reader.fields(node, &EXAMPLES) {
        let own = effect.map(|(word, ..)| *word);
        if key != "allow" && own.is_some_and(|own| own != key) {
            let own = own.unwrap_or_default();
            let message = format!("a rule that says `{own}` has no examples for `{key}`");
            reader.complain_hint(body.at, message, format!("list them under `{own}` or `allow`"));
        }
        for item in reader.list(body, &format!("the examples for `{key}`")) {
            examples.extend(example(item, key != "allow", target, reader));
        }
    }
    let missing = !examples.iter().any(|example| example.matches);
    if missing && matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        let word = effect.map_or("deny", |(word, ..)| word);
        let message = format!("no example shows what this rule is for; list one under `{word}`");
        reader.complain(node.at, message);
    }
    examples
}

fn example(
    node: &Node,
    matches: bool,
    target: &ExampleTarget<'_>,
    reader: &mut Reader<'_>,
) -> Option<Example> {
    let mut example = Example {
        at: node.at,
        matches,
        tool: None,
        run: ExampleCall::Args(Value::Null),
        given: ExampleWorld::default(),
    };
    if !is_written_out(node) {
        example.run = run(node, target.takes_lines(), reader)?;
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
                example.tool = Some(tool_name(name, node.at, reader));
            }
            _ => example.given = given(node, reader),
        }
    }
    example.run = run(calls?, lines, reader)?;
    Some(example)
}

/// Whether an example is `{run, tool, given}` and not the arguments of a tool.
fn is_written_out(node: &Node) -> bool {
    let NodeValue::Map(entries) = &node.value else { return false };
    let known = |name: &str| EXAMPLE_RUN.names().any(|known| known == name);
    entries.iter().any(|(key, _)| key.text == "run")
        && entries.iter().all(|(key, _)| known(&key.text))
}

fn run(node: &Node, lines: bool, reader: &mut Reader<'_>) -> Option<ExampleCall> {
    if lines && !matches!(node.value, NodeValue::Map(_)) {
        return reader.text(node, "an example").map(|line| ExampleCall::Line(line.to_owned()));
    }
    arguments(node, reader).map(ExampleCall::Args)
}

fn arguments(node: &Node, reader: &mut Reader<'_>) -> Option<Value> {
    if !matches!(node.value, NodeValue::Map(_)) {
        let message = format!("an example of this rule is a mapping, not {}", node.describe());
        reader.complain_hint(node.at, message, "write the arguments of the call");
        return None;
    }
    Some(node.to_json())
}

fn given(node: &Node, reader: &mut Reader<'_>) -> ExampleWorld {
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

/// Canonical paths, in the workspace or absolute.
fn paths(node: &Node, what: &str, reader: &mut Reader<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    for node in reader.list(node, what) {
        let Some(text) = reader.text(node, "a path") else { continue };
        let root = text.starts_with('/').then_some("/");
        match canonical(text, root) {
            Ok(path) => {
                let (start, end) =
                    (root.unwrap_or_default(), if text.ends_with('/') { "/" } else { "" });
                paths.push(format!("{start}{path}{end}"));
            }
            Err(error) => reader.complain(node.at, error.to_string()),
        }
    }
    paths
}
