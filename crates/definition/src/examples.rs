//! Plays the examples of rules on the engine itself, so that a rule that does
//! not do what its author thinks is found when it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::definition::{Rule, RuleScope, Rules, UnknownTools};
use jackline_engine::expr::Expr;
use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::verdict::{GuardName, ViolationType};
use jackline_engine::{
    ActorId, Arguments, Definition, Event, EventKind, Fact, Facts, Kind, Mode, Now, Place, Query,
    Session, SessionId, Timestamp, ToolName, ToolProposed, observe,
};
use serde_json::{Map, Value};

use crate::lower::Lowered;
use crate::reader::Reader;
use crate::sections::rules::{Example, ExampleCall, ExampleWorld, LoweredRule, is_of_pack};

/// Where examples are played.
const WORKSPACE: &str = "/workspace";
const HOME: &str = "/home/person";

/// When examples are played: 2026-01-31T12:00:00Z.
const START: Timestamp = Timestamp::from_ms(1_769_860_800_000);

/// Plays every example, and complains where one is not answered as it says.
pub(crate) fn check(lowered: &Lowered, reader: &mut Reader<'_>) {
    let mut stage = Stage::new(&lowered.definition);
    // What comes with the product is played by its own tests. Only a file that
    // says what its tools do can change how that ends.
    let tools_are_ours = lowered.definition.tools.is_empty();
    for rule in &lowered.rules {
        if tools_are_ours && is_of_pack(rule, reader) {
            continue;
        }
        stage.set(&rule.rule);
        for example in &rule.examples {
            let Some(wrong) = wrong(&rule.rule.name, example, stage.play(rule, example)) else {
                continue;
            };
            match rule.rule.when.as_ref().and_then(Expr::constant) {
                Some(truth) if truth != example.matches => {
                    let hint = format!("its condition is always {truth}");
                    reader.complain_hint(example.at, wrong, hint);
                }
                _ => reader.complain(example.at, wrong),
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
        run: ExampleCall::Line(line.clone()),
        given: ExampleWorld::default(),
    };
    if stage.play(rule, &example) == Outcome::Matches {
        let name = &rule.rule.name;
        reader.complain(at, format!("`{name}` itself objects to what it says to do instead"));
    }
}

/// What a rule said about an example.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It objected.
    Matches,
    /// Nothing.
    Silent,
    /// Its condition can't be answered, for this reason.
    Broken(String),
}

/// What is wrong with what came of an example, if anything is.
fn wrong(name: &str, example: &Example, outcome: Outcome) -> Option<String> {
    match (outcome, example.matches) {
        (Outcome::Matches, true) | (Outcome::Silent, false) => None,
        (Outcome::Matches, false) => Some(format!("`{name}` objects to this example")),
        (Outcome::Silent, true) => Some(format!("`{name}` has nothing to say about this example")),
        (Outcome::Broken(reason), _) => {
            Some(format!("the condition of `{name}` can't be answered for this example: {reason}"))
        }
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

    /// What the rule says about the example.
    fn play(&self, rule: &LoweredRule, example: &Example) -> Outcome {
        let Some(event) = self.event(&rule.rule, example) else { return Outcome::Silent };
        let session = Session::new(Arc::clone(&self.definition), Arc::clone(&self.place));
        let mut facts = Facts::at(Now::wall(START));
        facts.observed = observe(&event);
        let verdict = session.ground().understand(&event, |understood| {
            let ask = |query: &Query| fact(query, &example.given);
            session.gather_known(understood, &mut facts, ask);
            session.decide_on(understood, &facts)
        });
        let mut said = verdict.violations.iter().filter(|found| found.guard == GuardName::Rules);
        match said.find(|found| found.subtype.word() == rule.rule.name) {
            None => Outcome::Silent,
            Some(found) if found.kind == ViolationType::RuleViolation => Outcome::Matches,
            Some(found) => {
                let reason = found.message.split_once("can't be answered: ");
                Outcome::Broken(reason.map_or(&*found.message, |(_, reason)| reason).to_owned())
            }
        }
    }

    fn event(&self, rule: &Rule, example: &Example) -> Option<Event> {
        let tool = self.called(rule, example);
        let args = match &example.run {
            ExampleCall::Args(args) => args.clone(),
            ExampleCall::Line(line) => self.with_line(&tool, line),
        };
        let kind = EventKind::ToolProposed(ToolProposed {
            tool: ToolName::parse(tool).ok()?,
            args: Arguments::Parsed(args),
            cwd: example.given.cwd.clone(),
            ..ToolProposed::default()
        });
        let session = SessionId::parse("example").ok()?;
        Some(Event { session, id: None, at: None, actor: ActorId::main(), kind, meta: None })
    }

    /// The tool that an example calls. A kind is itself the name of a tool of
    /// that kind, and a tool that is recognised from a line comes in one.
    fn called(&self, rule: &Rule, example: &Example) -> String {
        if let Some(tool) = &example.tool {
            return tool.clone();
        }
        let kind = match (&rule.scope, &example.run) {
            (RuleScope::Tool(tool), ExampleCall::Line(_)) if self.kind_of(tool) != Kind::Exec => {
                Kind::Exec
            }
            (RuleScope::Tool(tool), _) => return tool.clone(),
            (RuleScope::Kind(kind), _) => *kind,
            (RuleScope::Any, ExampleCall::Line(_)) => Kind::Exec,
            (RuleScope::Any, ExampleCall::Args(_)) => Kind::Other,
        };
        let name = Kind::ALL.iter().find(|(_, known)| *known == kind);
        name.map_or("other", |(name, _)| *name).to_owned()
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

/// Answers a query from what an example says is given.
pub(crate) fn fact(query: &Query, given: &ExampleWorld) -> Fact {
    match query {
        Query::File { path, .. } => Fact::File(FileFact::of(kind_at(path, given))),
        Query::Git { .. } => Fact::Git(GitFact {
            repository: true,
            dirty: given.dirty,
            untracked: given.untracked,
            branch: given.branch.clone(),
        }),
        Query::Ignored { path } => Fact::Ignored(covers(&given.ignored, path)),
        Query::Changed { .. } => Fact::Changed(BTreeMap::new()),
        Query::Watched { .. } => Fact::Watched(BTreeMap::new()),
        // A definition with nothing but a rule asks for nothing else.
        _ => Fact::Unknown,
    }
}

fn kind_at(path: &str, given: &ExampleWorld) -> FileKind {
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
            complaints(source),
            "\
f:9:61: `push` has nothing to say about this example
f:9:65: `push` has nothing to say about this example
f:10:35: `push` objects to this example
f:15:14: `mine` itself objects to what it says to do instead
f:16:32: `mine` has nothing to say about this example
f:16:66: `mine` has nothing to say about this example
f:16:91: the condition of `mine` can't be answered for this example: a number has no key `line`
f:22:31: `paths` has nothing to say about this example
f:23:69: `paths` objects to this example
f:24:83: `recognised` has nothing to say about this example
f:25:97: `watching` objects to this example"
        );
    }

    #[test]
    fn what_is_given_answers_what_is_asked() {
        let given = ExampleWorld {
            dirty: true,
            exists: vec!["a/b".to_owned(), "d/".to_owned()],
            ignored: vec!["target/".to_owned()],
            ..ExampleWorld::default()
        };
        assert_eq!(kind_at("a/b", &given), FileKind::File);
        assert_eq!(kind_at("a", &given), FileKind::Directory);
        assert_eq!(kind_at("d", &given), FileKind::Directory);
        assert_eq!(kind_at("a/bc", &given), FileKind::Missing);
        let Fact::Git(git) = fact(&Query::Git { dir: ".".to_owned() }, &given) else { panic!() };
        assert_eq!((git.repository, git.dirty, git.branch.as_str()), (true, true, "work"));
        let is_ignored = |path: &str| fact(&Query::Ignored { path: path.to_owned() }, &given);
        assert_eq!(is_ignored("target/x"), Fact::Ignored(true));
        assert_eq!(is_ignored("targets"), Fact::Ignored(false));
    }
}
