//! Runs the examples of rules on the engine when a definition is loaded, so that the author of a
//! rule sees at once if the rule has another effect than expected.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::definition::{Rule, RuleScope, Rules, UnknownTools};
use jackline_engine::expr::Expr;
use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::{
    ActorId, Arguments, Definition, Event, EventKind, Fact, Facts, Mode, Now, Query, Session,
    SessionId, SessionLocation, Timestamp, ToolKind, ToolName, ToolProposed, observe,
};
use serde_json::{Map, Value};

use crate::lower::LoweredDefinition;
use crate::reader::NodeReader;
use crate::sections::rules::{Example, ExampleCall, ExampleWorld, LoweredRule, is_pack_rule};

/// The directories of the example session.
const WORKSPACE: &str = "/workspace";
const HOME: &str = "/home/person";

/// The time of the example session: 2026-01-31T12:00:00Z.
const START_TIME: Timestamp = Timestamp::from_ms(1_769_860_800_000);

/// Runs every example, and reports the examples with another result than expected.
pub(crate) fn check_examples(lowered: &LoweredDefinition, reader: &mut NodeReader<'_>) {
    let mut stage = ExampleRunner::new(&lowered.definition);
    // The tests of this crate run the examples of the packs. Only a file that declares tools can
    // change their results.
    let tools_are_ours = lowered.definition.tools.is_empty();
    for rule in &lowered.rules {
        if tools_are_ours && is_pack_rule(rule, reader) {
            continue;
        }
        stage.set_rule(&rule.rule);
        for example in &rule.examples {
            let Some(wrong) =
                describe_mismatch(&rule.rule.name, example, stage.run_example(rule, example))
            else {
                continue;
            };
            match rule.rule.when.as_ref().and_then(Expr::constant_value) {
                Some(truth) if truth != example.matches => {
                    let hint = format!("its condition is always {truth}");
                    reader.report_with_hint(example.position, wrong, hint);
                }
                _ => reader.report(example.position, wrong),
            }
        }
        check_instead(&stage, rule, reader);
    }
}

/// Checks that a rule does not match the command line that it recommends.
fn check_instead(stage: &ExampleRunner, rule: &LoweredRule, reader: &mut NodeReader<'_>) {
    let (Some(line), Some(at)) = (&rule.rule.instead, rule.instead_position) else { return };
    if stage.kind_of_rule(&rule.rule) != ToolKind::Exec {
        return;
    }
    let example = Example {
        position: at,
        matches: false,
        tool: None,
        run: ExampleCall::Line(line.clone()),
        world: ExampleWorld::default(),
    };
    if stage.run_example(rule, &example) == ExampleOutcome::Matches {
        let name = &rule.rule.name;
        reader.report(at, format!("`{name}` also matches its own `instead`"));
    }
}

/// The result of an example.
#[derive(Debug, PartialEq, Eq)]
enum ExampleOutcome {
    /// The rule matched.
    Matches,
    /// The rule did not match.
    NoMatch,
    /// The condition can't be evaluated, for this reason.
    EvaluationFailed(String),
}

/// Describes the difference between the result of an example and the expected result, if any.
fn describe_mismatch(name: &str, example: &Example, outcome: ExampleOutcome) -> Option<String> {
    match (outcome, example.matches) {
        (ExampleOutcome::Matches, true) | (ExampleOutcome::NoMatch, false) => None,
        (ExampleOutcome::Matches, false) => Some(format!("`{name}` matches this example")),
        (ExampleOutcome::NoMatch, true) => Some(format!("`{name}` does not match this example")),
        (ExampleOutcome::EvaluationFailed(reason), _) => {
            Some(format!("the condition of `{name}` can't be evaluated for this example: {reason}"))
        }
    }
}

/// Runs examples in a definition that has one rule at a time.
struct ExampleRunner {
    definition: Arc<Definition>,
    session_place: Arc<SessionLocation>,
}

impl ExampleRunner {
    fn new(definition: &Definition) -> Self {
        let definition = Definition {
            tools: definition.tools.clone(),
            unknown_tools: UnknownTools::Allow,
            mode: Mode::Enforce,
            ..Definition::default()
        };
        let place = SessionLocation {
            workspace: Some(WORKSPACE.to_owned()),
            home: Some(HOME.to_owned()),
            ..SessionLocation::default()
        };
        Self { definition: Arc::new(definition), session_place: Arc::new(place) }
    }

    /// Makes this the only rule of the definition. No session refers to the definition now, so it
    /// is not copied.
    fn set_rule(&mut self, rule: &Rule) {
        Arc::make_mut(&mut self.definition).rules = Rules::new(vec![rule.clone()]);
    }

    /// Returns the kind of tool that a rule is about.
    fn kind_of_rule(&self, rule: &Rule) -> ToolKind {
        match &rule.scope {
            RuleScope::Kind(kind) => *kind,
            RuleScope::Tool(tool) => self.kind_of(tool),
            RuleScope::Any => ToolKind::Other,
        }
    }

    fn kind_of(&self, name: &str) -> ToolKind {
        let declared = self.definition.tools.iter().find(|tool| tool.name == name);
        declared.map_or_else(
            || ToolKind::well_known(name).unwrap_or(ToolKind::Other),
            |declared| declared.kind,
        )
    }

    /// Runs an example and returns the result.
    fn run_example(&self, rule: &LoweredRule, example: &Example) -> ExampleOutcome {
        let Some(event) = self.build_event(&rule.rule, example) else {
            return ExampleOutcome::NoMatch;
        };
        let session = Session::new(Arc::clone(&self.definition), Arc::clone(&self.session_place));
        let mut facts = Facts::at(Now::wall(START_TIME));
        facts.observed = observe(&event);
        let outcomes = session.event_interpreter().with_interpreted(&event, |understood| {
            let ask = |query: &Query| answer_query(query, &example.world);
            session.gather_facts(understood, &mut facts, ask);
            session.rule_outcomes(understood, &facts)
        });
        let Some((_, outcome)) = outcomes.iter().find(|(name, _)| *name == rule.rule.name) else {
            return ExampleOutcome::NoMatch;
        };
        match outcome.failure() {
            None => ExampleOutcome::Matches,
            Some(reason) => ExampleOutcome::EvaluationFailed(reason.to_owned()),
        }
    }

    fn build_event(&self, rule: &Rule, example: &Example) -> Option<Event> {
        let tool = self.called_tool(rule, example);
        let args = match &example.run {
            ExampleCall::Args(args) => args.clone(),
            ExampleCall::Line(line) => self.arguments_with_line(&tool, line),
        };
        let kind = EventKind::ToolProposed(ToolProposed {
            tool: ToolName::parse(tool).ok()?,
            args: Arguments::Parsed(args),
            cwd: example.world.cwd.clone(),
            ..ToolProposed::default()
        });
        let session = SessionId::parse("example").ok()?;
        Some(Event { session, id: None, at: None, actor: ActorId::main(), kind, meta: None })
    }

    /// Returns the tool that an example calls. The name of a kind is also the name of a tool of
    /// that kind. A tool that is recognised in command lines is called through a tool of kind `exec`.
    fn called_tool(&self, rule: &Rule, example: &Example) -> String {
        if let Some(tool) = &example.tool {
            return tool.clone();
        }
        let kind = match (&rule.scope, &example.run) {
            (RuleScope::Tool(tool), ExampleCall::Line(_))
                if self.kind_of(tool) != ToolKind::Exec =>
            {
                ToolKind::Exec
            }
            (RuleScope::Tool(tool), _) => return tool.clone(),
            (RuleScope::Kind(kind), _) => *kind,
            (RuleScope::Any, ExampleCall::Line(_)) => ToolKind::Exec,
            (RuleScope::Any, ExampleCall::Args(_)) => ToolKind::Other,
        };
        let name = ToolKind::ALL.iter().find(|(_, known)| *known == kind);
        name.map_or("other", |(name, _)| *name).to_owned()
    }

    /// Builds arguments with the command line at the position that the tool expects.
    fn arguments_with_line(&self, tool: &str, line: &str) -> Value {
        let declared = self.definition.tools.iter().find(|known| known.name == tool);
        let pointer = declared.and_then(|tool| tool.command.as_deref()).unwrap_or("/command");
        let names = pointer.trim_start_matches('/').split('/');
        names.rev().fold(Value::String(line.to_owned()), |inner, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            Value::Object(Map::from_iter([(name, inner)]))
        })
    }
}

/// Answers a query of the engine from the state of the workspace in an example.
pub(crate) fn answer_query(query: &Query, given: &ExampleWorld) -> Fact {
    match query {
        Query::File { path, .. } => {
            Fact::File(FileFact::without_details(file_kind_at(path, given)))
        }
        Query::Git { .. } => Fact::Git(GitFact {
            repository: true,
            dirty: given.dirty,
            untracked: given.untracked,
            branch: given.branch.clone(),
        }),
        Query::Ignored { path } => Fact::Ignored(is_listed(&given.ignored, path)),
        Query::Changed { .. } => Fact::Changed(BTreeMap::new()),
        Query::Watched { .. } => Fact::Watched(BTreeMap::new()),
        // A definition with only one rule sends no other query.
        _ => Fact::Unknown,
    }
}

fn file_kind_at(path: &str, given: &ExampleWorld) -> FileKind {
    let is_parent =
        |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    if given.exists.iter().any(|file| file == path) {
        FileKind::File
    } else if given.exists.iter().any(is_parent) {
        FileKind::Directory
    } else {
        FileKind::Missing
    }
}

/// Whether a path, or a directory that contains it, is listed.
fn is_listed(listed: &[String], path: &str) -> bool {
    listed.iter().any(|known| {
        let known = known.trim_end_matches('/');
        path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::extends::resolve_extends;
    use crate::lower::lower;

    /// Returns the problems with the examples of a definition that is otherwise valid.
    fn problems(source: &str) -> String {
        let mut diagnostics = Diagnostics::new("f");
        let file = std::path::Path::new("f");
        let gathered = resolve_extends(source.as_bytes(), file, None, &mut diagnostics);
        let root = gathered.root.unwrap();
        let lowered = lower(&root, gathered.closed, &gathered.sources, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics}");
        check_examples(&lowered, &mut NodeReader::new(&gathered.sources, &mut diagnostics));
        diagnostics.sorted().to_string()
    }

    #[test]
    fn a_wrong_example_is_reported_with_its_position() {
        let source = "\
tools: { run: { kind: exec, command: /a/line }, deploy: { commands: [make deploy] } }
rules:
  - name: push
    command: git push
    when: 'git.dirty'
    deny: No.
    instead: git push
    examples:
      deny: [{ run: git push, given: { git.dirty: true } }, ls, git push]
      allow: [git pull, git push, { run: git push, given: { git.dirty: true } }]
  - name: mine
    tool: run
    when: 'args.a.line.contains(\"x\")'
    deny: No.
    instead: echo x
    examples: { deny: [echo x, { run: { path: a }, tool: view }, echo y], allow: [echo y, { a: 1 }] }
  - name: paths
    tool: write
    when: 'path.startsWith(\"src/\") && !exists(path)'
    warn: Hm.
    examples:
      warn: [{ path: src/a }, { path: lib/a }]
      allow: [{ run: { path: src/a }, given: { exists: [src/a] } }, { path: src/b }]
  - { name: recognised, tool: deploy, ask: Hm., examples: { ask: [make -s deploy, make x], allow: [make x] } }
  - { name: watching, observe: Hm., mode: observe, examples: { observe: [ls, { a: 1 }], allow: [ls] } }
";
        assert_eq!(
            problems(source),
            "\
f:9:61: `push` does not match this example
f:9:65: `push` does not match this example
f:10:35: `push` matches this example
f:15:14: `mine` also matches its own `instead`
f:16:32: `mine` does not match this example
f:16:66: `mine` does not match this example
f:16:91: the condition of `mine` can't be evaluated for this example: a number has no key `line`
f:22:31: `paths` does not match this example
f:23:69: `paths` matches this example
f:24:83: `recognised` does not match this example
f:25:97: `watching` matches this example"
        );
    }

    #[test]
    fn the_given_state_answers_the_queries() {
        let given = ExampleWorld {
            dirty: true,
            exists: vec!["a/b".to_owned(), "d/".to_owned()],
            ignored: vec!["target/".to_owned()],
            ..ExampleWorld::default()
        };
        assert_eq!(file_kind_at("a/b", &given), FileKind::File);
        assert_eq!(file_kind_at("a", &given), FileKind::Directory);
        assert_eq!(file_kind_at("d", &given), FileKind::Directory);
        assert_eq!(file_kind_at("a/bc", &given), FileKind::Missing);
        let Fact::Git(git) = answer_query(&Query::Git { dir: ".".to_owned() }, &given) else {
            panic!()
        };
        assert_eq!((git.repository, git.dirty, git.branch.as_str()), (true, true, "work"));
        let is_ignored =
            |path: &str| answer_query(&Query::Ignored { path: path.to_owned() }, &given);
        assert_eq!(is_ignored("target/x"), Fact::Ignored(true));
        assert_eq!(is_ignored("targets"), Fact::Ignored(false));
    }
}
