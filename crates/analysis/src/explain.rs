//! What would be decided on a call, without leaving a trace.
//!
//! The definition is resolved as for a new session, the facts are real, and
//! the session is thrown away: no journal, no state, no started verification,
//! nothing kept in the state home.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_decode::Decoder;
use jackline_engine::definition::{Redact, Rule, Tool};
use jackline_engine::facts::PinsFact;
use jackline_engine::observe::elide;
use jackline_engine::understanding::Understanding;
use jackline_engine::verdict::{GuardName, ViolationType};
use jackline_engine::{
    ActorId, Arguments, CallId, Decision, Definition, Digest, Event, EventKind, Facts, Kind, Place,
    Record, Session, SessionId, Status, ToolFinished, ToolName, ToolProposed, Verdict, Violation,
    observe,
};
use jackline_journal::{SessionEntry, Store};
use serde_json::{Map, Value};

use jackline_host::clock;
use jackline_runtime::definitions::Resolved;
use jackline_runtime::unrecorded::{NamedDefinition, decide_unrecorded};
use jackline_runtime::{Definitions, Fault, inspect, panic_text, redact};

/// The tool that command lines are taken to be for, unless a definition
/// declares another.
const SHELL: &str = "Bash";

/// A call that nobody has proposed.
#[derive(Debug, Clone)]
pub struct Supposed {
    /// The tool.
    pub tool: ToolName,
    /// What it is given.
    pub proposed: Proposed,
    /// The directory it works in, absolute; none is the workspace.
    pub cwd: Option<String>,
    /// Who calls it.
    pub actor: ActorId,
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposed {
    /// A command line.
    Line(String),
    /// Arguments: a JSON object.
    Args(Value),
}

/// What would be decided, and why.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The verdict.
    pub verdict: Verdict,
    /// Its objections, in the same order, with where they come from.
    pub reasons: Vec<Reason>,
    /// What the call does.
    pub understanding: Option<Understanding>,
    /// What the decision rests on.
    pub facts: Facts,
}

/// An objection and where it comes from.
#[derive(Debug, Clone)]
pub struct Reason {
    /// The objection.
    pub violation: Violation,
    /// The rule behind it, where it is one.
    pub rule: Option<Rule>,
    /// What passes instead, where the rule says so.
    pub instead: Option<Instead>,
}

/// What a rule says to do instead.
#[derive(Debug, Clone)]
pub struct Instead {
    /// What it says.
    pub text: String,
    /// What would be decided on that; none where it is no command line.
    pub verdict: Option<Verdict>,
}

/// Decides on calls in a session that is thrown away.
pub struct Explainer {
    id: SessionId,
    session: Session,
    definitions: Definitions,
    checksum: Digest,
    /// The digest of the definition that the session was opened with.
    stored: Digest,
    broken: Option<String>,
}

impl Explainer {
    /// Explains what a new session in a workspace would be told.
    pub fn of_workspace(definitions: Definitions, workspace: &Path) -> Result<Self, Fault> {
        let definitions = definitions.only_looking();
        let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let Some(workspace) = real.to_str() else { return Err(Fault::Workspace(real)) };
        let Resolved { definition, stored, checksum, files, broken } =
            definitions.resolve(&real)?;
        let shown = |path: PathBuf| path.display().to_string();
        let host = definitions.host();
        let place = Place {
            workspace: Some(workspace.to_owned()),
            home: host.home.clone().map(shown),
            state_home: definitions.state_home().map(shown),
            own: host.own_files.iter().cloned().map(shown).collect(),
            definition: files.into_iter().map(shown).collect(),
        };
        let session = Session::new(definition, Arc::new(place));
        let id = SessionId::parse("explain").map_err(|error| Fault::Panic(error.to_string()))?;
        Ok(Self { id, session, definitions, checksum, stored, broken })
    }

    /// Explains what a session would be told as it stands.
    pub fn of_session(
        definitions: Definitions,
        store: &dyn Store,
        entry: &SessionEntry,
    ) -> Result<Self, Fault> {
        let opened = entry.opened()?;
        let session = inspect(store, entry)?;
        Ok(Self {
            id: opened.session.clone(),
            checksum: session.reloaded().unwrap_or(opened.definition.checksum),
            stored: opened.definition.lowered.digest(),
            session,
            definitions: definitions.only_looking(),
            broken: None,
        })
    }

    /// The definition in force.
    pub fn definition(&self) -> &Definition {
        self.session.definition()
    }

    /// Its checksum.
    pub fn checksum(&self) -> Digest {
        self.checksum
    }

    /// Why the files of the definition don't load, where this is the last one
    /// that did.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Where it is decided.
    pub fn place(&self) -> &Place {
        self.session.place()
    }

    /// The last record of the session; 0 for a new one.
    pub fn seq(&self) -> u64 {
        self.session.seq()
    }

    /// The tool that command lines are for: one that the definition declares,
    /// else the usual one.
    pub fn shell(&self) -> &str {
        let tools = &self.definition().tools;
        let is_shell = |tool: &&Tool| tool.kind == Kind::Exec && tool.commands.is_empty();
        match self.declared(SHELL) {
            Some(_) => SHELL,
            None => tools.iter().find(is_shell).map_or(SHELL, |tool| &tool.name),
        }
    }

    /// Whether a tool takes a command line.
    pub fn takes_line(&self, tool: &str) -> bool {
        let kind =
            self.declared(tool).map_or_else(|| Kind::well_known(tool), |tool| Some(tool.kind));
        kind == Some(Kind::Exec)
    }

    /// Says what would be decided on a call, and why. A bug of ours is a fault
    /// here too.
    pub fn explain(&self, call: &Supposed) -> Result<Explained, Fault> {
        catch_unwind(AssertUnwindSafe(|| self.explained(call)))
            .unwrap_or_else(|panic| Err(Fault::Panic(panic_text(panic.as_ref()))))
    }

    /// Says what would be decided on each call of a plan, as if those before it had been
    /// made, and had succeeded. Ends at the first one that would not run.
    pub fn rehearse(&mut self, plan: &[Supposed]) -> Result<Vec<Verdict>, Fault> {
        catch_unwind(AssertUnwindSafe(|| self.rehearsed(plan)))
            .unwrap_or_else(|panic| Err(Fault::Panic(panic_text(panic.as_ref()))))
    }

    fn rehearsed(&mut self, plan: &[Supposed]) -> Result<Vec<Verdict>, Fault> {
        let mut verdicts = Vec::new();
        for (number, call) in plan.iter().enumerate() {
            let id = CallId::parse(format!("rehearsed-{number}")).ok();
            let mut event = self.event(call);
            if let EventKind::ToolProposed(ToolProposed { call, .. }) = &mut event.kind {
                call.clone_from(&id);
            }
            let verdict = self.suppose(&event)?;
            let runs = verdict.lets_run();
            verdicts.push(verdict);
            if !runs {
                break;
            }
            event.kind = EventKind::ToolFinished(ToolFinished {
                call: id,
                status: Status::Ok,
                ..ToolFinished::default()
            });
            self.suppose(&event)?;
        }
        Ok(verdicts)
    }

    /// Decides, and goes on as if that had happened.
    fn suppose(&mut self, event: &Event) -> Result<Verdict, Fault> {
        let (verdict, facts) = self.decide(event)?;
        let seq = self.session.seq() + 1;
        self.session.apply(&Record { seq, event, facts: &facts, verdict: &verdict });
        Ok(verdict)
    }

    fn explained(&self, call: &Supposed) -> Result<Explained, Fault> {
        let event = self.event(call);
        let (verdict, facts) = self.decide(&event)?;
        let reasons = verdict.violations.iter().map(|found| self.reason(call, found));
        let reasons = reasons.collect::<Result<_, Fault>>()?;
        let understanding = self.session.understand(&event);
        Ok(Explained { verdict, reasons, understanding, facts })
    }

    /// Decides as a live session does, on the event as its journal would hold it.
    fn decide(&self, event: &Event) -> Result<(Verdict, Facts), Fault> {
        let mut facts = Facts::at(clock::now());
        let mut event = event.clone();
        facts.decoded = Decoder::default().decode(&mut event, self.definition(), None);
        facts.observed = observe(&event);
        // Which agent a session will have that has not begun is unknown.
        facts.pins = (self.session.seq() == 0).then(PinsFact::default);
        let named = NamedDefinition { checksum: self.checksum, digest: self.stored };
        decide_unrecorded(&self.session, (&self.definitions, named), &event, facts)
    }

    fn reason(&self, call: &Supposed, violation: &Violation) -> Result<Reason, Fault> {
        let is_it = |rule: &&Rule| {
            rule.name == violation.subtype.word()
                && (violation.kind != ViolationType::RuleViolation
                    || violation.message.starts_with(&rule.message))
        };
        let rules = self.definition().rules.iter();
        let rule = Some(rules).filter(|_| violation.guard == GuardName::Rules);
        let rule = rule.and_then(|mut rules| rules.find(is_it)).cloned();
        let text = rule
            .as_ref()
            .filter(|_| {
                violation.kind == ViolationType::RuleViolation
                    && violation.decision > Decision::Allow
            })
            .and_then(|rule| rule.instead.clone());
        let instead = text.map(|text| {
            let decide = || {
                let proposed = Proposed::Line(text.clone());
                let event = self.event(&Supposed { proposed, ..call.clone() });
                self.decide(&event).map(|(verdict, _)| verdict)
            };
            let verdict = self.takes_line(call.tool.as_str()).then(decide).transpose()?;
            Ok::<_, Fault>(Instead { text, verdict })
        });
        Ok(Reason { violation: violation.clone(), rule, instead: instead.transpose()? })
    }

    fn event(&self, call: &Supposed) -> Event {
        let args = match &call.proposed {
            Proposed::Line(line) => self.with_line(call.tool.as_str(), line),
            Proposed::Args(args) => args.clone(),
        };
        let kind = EventKind::ToolProposed(ToolProposed {
            tool: call.tool.clone(),
            args: Arguments::Parsed(args),
            cwd: call.cwd.clone(),
            ..ToolProposed::default()
        });
        let (session, actor) = (self.id.clone(), call.actor.clone());
        let mut event = Event { session, id: None, at: None, actor, kind, meta: None };
        if self.definition().journal.redact == Redact::BuiltIn {
            redact(&mut event, self.definition());
        }
        elide(&mut event, self.definition());
        event
    }

    /// Arguments that hold a command line where the tool looks for one.
    fn with_line(&self, tool: &str, line: &str) -> Value {
        let pointer = self.declared(tool).and_then(|tool| tool.command.as_deref());
        let names = pointer.unwrap_or("/command").trim_start_matches('/').split('/');
        names.rev().fold(Value::String(line.to_owned()), |inner, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            Value::Object(Map::from_iter([(name, inner)]))
        })
    }

    fn declared(&self, name: &str) -> Option<&Tool> {
        let is_it =
            |tool: &&Tool| tool.name == name || tool.aliases.iter().any(|alias| alias == name);
        self.definition().tools.iter().find(is_it)
    }
}
