//! Plays the examples of rules on the engine itself, so that a rule that does
//! not do what its author thinks is found when it is written.

use std::sync::Arc;

use jackline_engine::definition::{Rule, RuleScope, Rules, UnknownTools};
use jackline_engine::{
    ActorId, Arguments, Definition, Event, EventKind, Facts, FileFact, FileKind, GitFact, Kind,
    Mode, Now, Place, Query, ROUNDS_MAX, Session, SessionId, Timestamp, ToolName, observe,
};
use serde_json::{Map, Value};

use crate::lower::{Example, Given, Lowered, LoweredRule, Run};
use crate::reader::Reader;

/// Where examples are played.
const WORKSPACE: &str = "/workspace";
const HOME: &str = "/home/person";

/// When examples are played: 2026-01-31T12:00:00Z.
const START: Timestamp = Timestamp::from_ms(1_769_860_800_000);

/// Plays every example, and complains where one is not answered as it says.
pub(crate) fn check(lowered: &Lowered, reader: &mut Reader<'_>) {
    let mut stage = Stage::new(&lowered.definition);
    for rule in &lowered.rules {
        stage.set(&rule.rule);
        for example in &rule.examples {
            match stage.play(rule, example) {
                Some(matched) if matched == example.matches => {}
                Some(_) => reader.complain(example.at, wrong(rule, example)),
                None => reader.complain(example.at, "this example can't be played"),
            }
        }
        check_instead(&stage, rule, reader);
    }
}

/// What a rule recommends must not be what it objects to.
fn check_instead(stage: &Stage, rule: &LoweredRule, reader: &mut Reader<'_>) {
    let (Some(line), Some(at)) = (&rule.rule.instead, rule.instead_at) else { return };
    if stage.kind(&rule.rule) != Kind::Exec {
        return;
    }
    let example = Example {
        at,
        matches: false,
        tool: None,
        run: Run::Line(line.clone()),
        given: Given::default(),
    };
    if stage.play(rule, &example) == Some(true) {
        let name = &rule.rule.name;
        reader.complain(at, format!("`{name}` itself objects to what it says to do instead"));
    }
}

fn wrong(rule: &LoweredRule, example: &Example) -> String {
    let name = &rule.rule.name;
    if example.matches {
        format!("`{name}` has nothing to say about this example")
    } else {
        format!("`{name}` objects to this example")
    }
}

/// A definition with one rule at a time.
struct Stage {
    definition: Arc<Definition>,
    place: Arc<Place>,
}

impl Stage {
    fn new(definition: &Definition) -> Self {
        let definition = Definition {
            tools: definition.tools.clone(),
            unknown_tools: UnknownTools::Allow,
            mode: Mode::Enforce,
            ..Definition::default()
        };
        let place = Place {
            workspace: Some(WORKSPACE.to_owned()),
            home: Some(HOME.to_owned()),
            ..Place::default()
        };
        Self { definition: Arc::new(definition), place: Arc::new(place) }
    }

    /// Puts one rule in force. No session holds the definition now, so nothing
    /// is copied.
    fn set(&mut self, rule: &Rule) {
        Arc::make_mut(&mut self.definition).rules = Rules::new(vec![rule.clone()]);
    }

    /// What the calls of a rule do.
    fn kind(&self, rule: &Rule) -> Kind {
        match &rule.scope {
            RuleScope::Kind(kind) => *kind,
            RuleScope::Tool(tool) => self.kind_of(tool),
            RuleScope::Any => Kind::Other,
        }
    }

    fn kind_of(&self, name: &str) -> Kind {
        let declared = self.definition.tools.iter().find(|tool| tool.name == name);
        declared
            .map_or_else(|| Kind::well_known(name).unwrap_or(Kind::Other), |declared| declared.kind)
    }

    /// Whether the rule has something to say about the example.
    fn play(&self, rule: &LoweredRule, example: &Example) -> Option<bool> {
        let event = self.event(&rule.rule, example)?;
        let session = Session::new(Arc::clone(&self.definition), Arc::clone(&self.place));
        let mut facts = Facts::at(Now::wall(START));
        facts.observed = observe(&event);
        for _ in 0..ROUNDS_MAX {
            let queries = session.needs(&event, &facts);
            queries.iter().for_each(|query| answer(query, &example.given, &mut facts));
        }
        let verdict = session.decide(&event, &facts);
        let matched = |name: &str| {
            verdict.violations.iter().any(|found| found.guard == "rules" && found.subtype == name)
        };
        Some(matched(&rule.rule.name))
    }

    fn event(&self, rule: &Rule, example: &Example) -> Option<Event> {
        let tool = called(rule, example);
        let args = match &example.run {
            Run::Args(args) => args.clone(),
            Run::Line(line) => self.with_line(&tool, line),
        };
        let kind = EventKind::ToolProposed {
            call: None,
            tool: ToolName::parse(tool).ok()?,
            args: Arguments::Parsed(args),
            cwd: example.given.cwd.clone(),
        };
        let session = SessionId::parse("example").ok()?;
        Some(Event { session, id: None, at: None, actor: ActorId::main(), kind, meta: None })
    }

    /// Arguments that hold a command line where the tool looks for one.
    fn with_line(&self, tool: &str, line: &str) -> Value {
        let declared = self.definition.tools.iter().find(|known| known.name == tool);
        let pointer = declared.and_then(|tool| tool.command.as_deref()).unwrap_or("/command");
        let names = pointer.trim_start_matches('/').split('/');
        names.rev().fold(Value::String(line.to_owned()), |inner, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            Value::Object(Map::from_iter([(name, inner)]))
        })
    }
}

/// The tool that an example calls. A kind is itself the name of a tool of that
/// kind.
fn called(rule: &Rule, example: &Example) -> String {
    let kind = match (&example.tool, &rule.scope, &example.run) {
        (Some(tool), ..) | (None, RuleScope::Tool(tool), _) => return tool.clone(),
        (None, RuleScope::Kind(kind), _) => *kind,
        (None, RuleScope::Any, Run::Line(_)) => Kind::Exec,
        (None, RuleScope::Any, Run::Args(_)) => Kind::Other,
    };
    let name = Kind::ALL.iter().find(|(_, known)| *known == kind);
    name.map_or("other", |(name, _)| *name).to_owned()
}

/// Answers a question from what an example says is given.
fn answer(query: &Query, given: &Given, facts: &mut Facts) {
    match query {
        Query::File { path, .. } => {
            facts.files.insert(path.clone(), FileFact::of(kind_at(path, given)));
        }
        Query::Git { dir } => {
            let fact = GitFact {
                repository: true,
                dirty: given.dirty,
                untracked: given.untracked,
                branch: given.branch.clone(),
            };
            facts.git.insert(dir.clone(), fact);
        }
        Query::Ignored { path } => {
            facts.ignored.insert(path.clone(), covers(&given.ignored, path));
        }
        Query::Changed { .. } => facts.changed = Some(std::collections::BTreeMap::new()),
        // A definition with nothing but a rule asks for nothing else.
        _ => {}
    }
}

fn kind_at(path: &str, given: &Given) -> FileKind {
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

/// Whether a path is listed, or lies in a directory that is.
fn covers(listed: &[String], path: &str) -> bool {
    listed.iter().any(|known| {
        let known = known.trim_end_matches('/');
        path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::extends::gather;
    use crate::lower::lower;

    /// What is wrong with the examples of a definition that is right otherwise.
    fn complaints(source: &str) -> String {
        let mut diagnostics = Diagnostics::new("f");
        let file = std::path::Path::new("f");
        let gathered = gather(source.as_bytes(), file, None, &mut diagnostics);
        let root = gathered.root.unwrap();
        let lowered = lower(&root, gathered.closed, &gathered.sources, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics}");
        check(&lowered, &mut Reader::new(&gathered.sources, &mut diagnostics));
        diagnostics.sorted().to_string()
    }

    #[test]
    fn an_example_that_shows_something_else_is_found_at_its_place() {
        let source = "\
tools: { run: { kind: exec, command: /a/line } }
rules:
  - name: push
    command: git push
    deny: No.
    instead: git fetch
    examples:
      deny: [ls]
      allow: [git pull, { run: ls, given: { git.dirty: true, exists: [a] } }]
  - name: mine
    tool: run
    deny: No.
    examples: { deny: [{ run: { path: a }, tool: view }], allow: [] }
";
        assert_eq!(
            complaints(source),
            "f:8:14: `push` has nothing to say about this example\n\
             f:13:24: `mine` has nothing to say about this example"
        );
    }

    #[test]
    fn what_is_given_answers_what_is_asked() {
        let given = Given {
            dirty: true,
            exists: vec!["a/b".to_owned(), "d/".to_owned()],
            ignored: vec!["target/".to_owned()],
            ..Given::default()
        };
        assert_eq!(kind_at("a/b", &given), FileKind::File);
        assert_eq!(kind_at("a", &given), FileKind::Directory);
        assert_eq!(kind_at("d", &given), FileKind::Directory);
        assert_eq!(kind_at("a/bc", &given), FileKind::Missing);
        let mut facts = Facts::at(Now::wall(START));
        answer(&Query::Git { dir: ".".to_owned() }, &given, &mut facts);
        answer(&Query::Ignored { path: "target/x".to_owned() }, &given, &mut facts);
        answer(&Query::Ignored { path: "targets".to_owned() }, &given, &mut facts);
        let git = facts.git.values().next().unwrap();
        assert_eq!((git.repository, git.dirty, git.branch.as_str()), (true, true, "work"));
        assert_eq!(facts.ignored.into_values().collect::<Vec<_>>(), [true, false]);
    }
}
