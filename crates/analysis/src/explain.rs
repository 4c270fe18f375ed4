//! Shows the decision on a call without recording anything.
//!
//! The definition is resolved as for a new session, and the facts are real. The session is
//! discarded afterwards: there is no journal, no saved state and no started verification, and
//! nothing is written to the state home.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_decode::EventDecoder;
use jackline_engine::call_description::CallDescription;
use jackline_engine::definition::{DeclaredTool, Redact, Rule};
use jackline_engine::facts::PinsFact;
use jackline_engine::observe::elide;
use jackline_engine::verdict::{GuardName, ViolationType};
use jackline_engine::{
    ActorId, Arguments, CallId, CallStatus, Decision, Definition, Digest, Event, EventKind, Facts,
    Record, Session, SessionId, SessionLocation, ToolFinished, ToolKind, ToolName, ToolProposed,
    Verdict, Violation, observe,
};
use jackline_journal::{SessionEntry, Store};
use serde_json::{Map, Value};

use jackline_host::clock;
use jackline_runtime::definitions::ResolvedDefinition;
use jackline_runtime::guard_links::add_links;
use jackline_runtime::unrecorded::{DefinitionDigests, decide_unrecorded};
use jackline_runtime::{AdapterTools, Definitions, RuntimeFault, load_session, panic_text, redact};

/// The default tool for command lines, unless a definition declares another one.
const SHELL: &str = "Bash";

/// A hypothetical call.
#[derive(Debug, Clone)]
pub struct HypotheticalCall {
    /// The tool.
    pub tool: ToolName,
    /// The command line or the arguments.
    pub proposed: CallInput,
    /// The absolute working directory; `None` means the workspace.
    pub cwd: Option<String>,
    /// The actor that makes the call.
    pub actor: ActorId,
}

/// The input of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum CallInput {
    /// A command line.
    CommandLine(String),
    /// Arguments as a JSON object.
    Args(Value),
}

/// The decision on a hypothetical call, with its reasons.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The verdict.
    pub verdict: Verdict,
    /// The violations in the same order, with their sources.
    pub reasons: Vec<ViolationReason>,
    /// The effects of the call.
    pub understanding: Option<CallDescription>,
    /// The facts on which the decision depends.
    pub facts: Facts,
}

/// A violation and its source.
#[derive(Debug, Clone)]
pub struct ViolationReason {
    /// The violation.
    pub violation: Violation,
    /// The rule behind it, if there is one.
    pub rule: Option<Rule>,
    /// The alternative that the rule proposes, if it has one.
    pub instead: Option<RuleAlternative>,
}

/// The alternative that a rule proposes.
#[derive(Debug, Clone)]
pub struct RuleAlternative {
    /// The text of the alternative.
    pub text: String,
    /// The verdict on the alternative; `None` if it is not a command line.
    pub verdict: Option<Verdict>,
}

/// Decides on calls in a session that is discarded.
pub struct Explainer {
    id: SessionId,
    session: Session,
    definitions: Definitions,
    checksum: Digest,
    /// The digest of the definition with which the session was opened.
    stored: Digest,
    broken: Option<String>,
    tools: AdapterTools,
}

impl Explainer {
    /// Explains calls in a new session of a workspace.
    pub fn of_workspace(definitions: Definitions, workspace: &Path) -> Result<Self, RuntimeFault> {
        let definitions = definitions.read_only();
        let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let Some(workspace) = real.to_str() else { return Err(RuntimeFault::Workspace(real)) };
        let ResolvedDefinition { definition, stored, checksum, files, broken } =
            definitions.resolve(&real)?;
        let shown = |path: PathBuf| path.display().to_string();
        let host = definitions.host();
        let mut place = SessionLocation {
            workspace: Some(workspace.to_owned()),
            home: host.home.clone().map(shown),
            state_home: definitions.state_home().map(shown),
            own: host.own_files.iter().cloned().map(shown).collect(),
            links: BTreeMap::new(),
            definition: files.into_iter().map(shown).collect(),
        };
        add_links(&mut place);
        let session = Session::new(definition, Arc::new(place));
        let id =
            SessionId::parse("explain").map_err(|error| RuntimeFault::Panic(error.to_string()))?;
        let tools = AdapterTools::default();
        Ok(Self { id, session, definitions, checksum, stored, broken, tools })
    }

    /// Sets the tools of the clients whose calls are explained.
    #[must_use]
    pub fn with_tools(self, tools: AdapterTools) -> Self {
        Self { tools, ..self }
    }

    /// Explains calls in the current state of a session.
    pub fn of_session(
        definitions: Definitions,
        store: &dyn Store,
        entry: &SessionEntry,
    ) -> Result<Self, RuntimeFault> {
        let opened = entry.opening()?;
        let session = load_session(store, entry)?;
        Ok(Self {
            id: opened.session.clone(),
            checksum: session.reloaded_checksum().unwrap_or(opened.definition.checksum),
            stored: opened.definition.lowered.digest(),
            session,
            definitions: definitions.read_only(),
            broken: None,
            tools: AdapterTools::default(),
        })
    }

    /// The definition in force.
    pub fn definition(&self) -> &Definition {
        self.session.definition()
    }

    /// The checksum of the definition in force.
    pub fn checksum(&self) -> Digest {
        self.checksum
    }

    /// Why the files of the definition don't load, if the last good definition is used.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// The location of the session.
    pub fn place(&self) -> &SessionLocation {
        self.session.location()
    }

    /// The last record of the session; 0 for a new one.
    pub fn seq(&self) -> u64 {
        self.session.seq()
    }

    /// The tool for command lines: one that the definition declares, else the default one.
    pub fn shell(&self) -> &str {
        let tools = &self.definition().tools;
        let is_shell =
            |tool: &&DeclaredTool| tool.kind == ToolKind::Exec && tool.commands.is_empty();
        match self.declared(SHELL) {
            Some(_) => SHELL,
            None => tools.iter().find(is_shell).map_or(SHELL, |tool| &tool.name),
        }
    }

    /// Whether a tool takes a command line.
    pub fn takes_command_line(&self, tool: &str) -> bool {
        let kind =
            self.declared(tool).map_or_else(|| ToolKind::well_known(tool), |tool| Some(tool.kind));
        kind == Some(ToolKind::Exec)
    }

    /// Decides on a call and collects the reasons. A panic becomes a fault.
    pub fn explain(&self, call: &HypotheticalCall) -> Result<Explanation, RuntimeFault> {
        catch_unwind(AssertUnwindSafe(|| self.explain_call(call)))
            .unwrap_or_else(|panic| Err(RuntimeFault::Panic(panic_text(panic.as_ref()))))
    }

    /// Decides on each call of a plan, as if the previous calls had succeeded. Ends at the first
    /// call that would not run.
    pub fn rehearse(&mut self, plan: &[HypotheticalCall]) -> Result<Vec<Verdict>, RuntimeFault> {
        catch_unwind(AssertUnwindSafe(|| self.rehearse_calls(plan)))
            .unwrap_or_else(|panic| Err(RuntimeFault::Panic(panic_text(panic.as_ref()))))
    }

    fn rehearse_calls(&mut self, plan: &[HypotheticalCall]) -> Result<Vec<Verdict>, RuntimeFault> {
        let mut verdicts = Vec::new();
        for (number, call) in plan.iter().enumerate() {
            let id = CallId::parse(format!("rehearsed-{number}")).ok();
            let mut event = self.event(call);
            if let EventKind::ToolProposed(ToolProposed { call, .. }) = &mut event.kind {
                call.clone_from(&id);
            }
            let verdict = self.decide_and_apply(&event)?;
            let runs = verdict.allows_run();
            verdicts.push(verdict);
            if !runs {
                break;
            }
            event.kind = EventKind::ToolFinished(ToolFinished {
                call: id,
                status: CallStatus::Ok,
                ..ToolFinished::default()
            });
            self.decide_and_apply(&event)?;
        }
        Ok(verdicts)
    }

    /// Decides, and applies the result as if it had happened.
    fn decide_and_apply(&mut self, event: &Event) -> Result<Verdict, RuntimeFault> {
        let (verdict, facts) = self.decide(event)?;
        let seq = self.session.seq() + 1;
        self.session.apply(&Record { seq, event, facts: &facts, verdict: &verdict });
        Ok(verdict)
    }

    fn explain_call(&self, call: &HypotheticalCall) -> Result<Explanation, RuntimeFault> {
        let event = self.event(call);
        let (verdict, facts) = self.decide(&event)?;
        let reasons = verdict.violations.iter().map(|found| self.reason(call, found));
        let reasons = reasons.collect::<Result<_, RuntimeFault>>()?;
        let understanding = self.session.describe_call(&event);
        Ok(Explanation { verdict, reasons, understanding, facts })
    }

    /// Decides as a live session does, on the event as the journal would contain it.
    fn decide(&self, event: &Event) -> Result<(Verdict, Facts), RuntimeFault> {
        let mut facts = Facts::at(clock::now());
        let mut event = event.clone();
        facts.decoded = EventDecoder::default().decode(&mut event, self.definition(), None);
        facts.observed = observe(&event);
        if let EventKind::ToolProposed(ToolProposed { tool, .. }) = &event.kind {
            facts.tools = self.tools.facts_about(tool.as_str(), self.definition());
        }
        // The agent of a future session is unknown.
        facts.pins = (self.session.seq() == 0).then(PinsFact::default);
        let named = DefinitionDigests { checksum: self.checksum, digest: self.stored };
        decide_unrecorded(&self.session, (&self.definitions, named), &event, facts)
    }

    fn reason(
        &self,
        call: &HypotheticalCall,
        violation: &Violation,
    ) -> Result<ViolationReason, RuntimeFault> {
        let is_it = |rule: &&Rule| {
            rule.name == violation.subtype.as_str()
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
                let proposed = CallInput::CommandLine(text.clone());
                let event = self.event(&HypotheticalCall { proposed, ..call.clone() });
                self.decide(&event).map(|(verdict, _)| verdict)
            };
            let verdict = self.takes_command_line(call.tool.as_str()).then(decide).transpose()?;
            Ok::<_, RuntimeFault>(RuleAlternative { text, verdict })
        });
        Ok(ViolationReason { violation: violation.clone(), rule, instead: instead.transpose()? })
    }

    fn event(&self, call: &HypotheticalCall) -> Event {
        let args = match &call.proposed {
            CallInput::CommandLine(line) => {
                self.arguments_with_command_line(call.tool.as_str(), line)
            }
            CallInput::Args(args) => args.clone(),
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

    /// Arguments that contain a command line at the tool's pointer.
    fn arguments_with_command_line(&self, tool: &str, line: &str) -> Value {
        let pointer = self.declared(tool).and_then(|tool| tool.command.as_deref());
        let names = pointer.unwrap_or("/command").trim_start_matches('/').split('/');
        names.rev().fold(Value::String(line.to_owned()), |inner, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            Value::Object(Map::from_iter([(name, inner)]))
        })
    }

    fn declared(&self, name: &str) -> Option<&DeclaredTool> {
        let is_it = |tool: &&DeclaredTool| {
            tool.name == name || tool.aliases.iter().any(|alias| alias == name)
        };
        self.definition().tools.iter().find(is_it)
    }
}
