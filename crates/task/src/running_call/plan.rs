//! Plans: parsed, rehearsed as a whole under all guards, then run call by call.

use jackline_analysis::{CallInput, Explainer, HypotheticalCall};
use jackline_attempt::{
    ArtifactFault, ArtifactOutcome, AttemptViolation, Executor, Subtype, Validator,
};
use jackline_decode::{
    DecodeMismatch, DecodeOutcome, InvalidDocument, Schema, TextEnding, check_value_unchanged,
    decode, plan_schema,
};
use jackline_engine::{ActorId, SessionId, ToolName};
use jackline_host::HostAccess;
use jackline_journal::Store as _;
use jackline_runtime::{AdapterTools, Definitions, reason_of};
use jackline_sandbox_host::{CallError, ProgramHost as _};
use jackline_workspace::argument_schemas;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::running_call::RunningCall;
use crate::running_call::artifact_writer::WrittenPlan;
use crate::running_call::attempt_host::AttemptHost;
use crate::task_front::attempt_violations;

/// The part of a plan that is run.
#[derive(Debug, Deserialize)]
struct CallPlan {
    tool_calls: Vec<PlanStep>,
}

#[derive(Debug, Deserialize)]
struct PlanStep {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Checks plans before they run.
pub(super) struct Rehearsal<'a, 's, 'r> {
    pub(super) calling: &'a RunningCall<'s, 'r>,
}

/// Runs plans.
pub(super) struct PlanRunner<'a, 's, 'r> {
    pub(super) calling: &'a RunningCall<'s, 'r>,
}

impl Validator<WrittenPlan> for Rehearsal<'_, '_, '_> {
    fn validate(&mut self, written: &WrittenPlan) -> Vec<AttemptViolation> {
        let plan = match parse_plan(written) {
            Ok(plan) => plan,
            Err(violations) => return violations,
        };
        let mut caller = AttemptHost::new(self.calling);
        let known = caller.callables();
        let unknown: Vec<AttemptViolation> = plan
            .tool_calls
            .iter()
            .enumerate()
            .filter(|(_, step)| !known.tools.iter().any(|tool| tool.name == step.name))
            .flat_map(|(at, step)| {
                let objections = caller.refuse_unknown_tool(&step.name);
                objections.into_iter().map(move |objection| with_step_number(at, objection))
            })
            .collect();
        if !unknown.is_empty() {
            return unknown;
        }
        let invalid = invalid_arguments(&plan);
        if invalid.is_empty() { self.rehearse(&plan) } else { invalid }
    }

    fn judge(&mut self, _: &WrittenPlan, _: &ArtifactOutcome) -> Vec<AttemptViolation> {
        Vec::new()
    }
}

impl Rehearsal<'_, '_, '_> {
    /// Has all guards decide on the whole plan, as if each step had succeeded.
    fn rehearse(&self, plan: &CallPlan) -> Vec<AttemptViolation> {
        let shared = self.calling.shared;
        let broken = |why: String| vec![AttemptViolation::new(Subtype::ToolDenied, why)];
        let session = SessionId::parse(&*shared.session).ok();
        let entry = session.and_then(|session| shared.store.entry(&session).ok().flatten());
        let Some(entry) = entry else {
            return broken("the session can't be read, so the plan can't be rehearsed".to_owned());
        };
        let definitions = Definitions::new(
            shared.definition.clone(),
            HostAccess::of_machine(Some(shared.store.home())),
        );
        let mut explainer = match Explainer::of_session(definitions, &shared.store, &entry) {
            // The names in the plan are already checked.
            Ok(explainer) => explainer.with_tools(AdapterTools::all_proposed()),
            Err(error) => return broken(format!("the plan can't be rehearsed: {error}")),
        };
        let mut supposed = Vec::new();
        for step in &plan.tool_calls {
            let Ok(tool) = ToolName::parse(&step.name) else {
                return broken(format!("`{}` is not a valid tool name", step.name));
            };
            let proposed = CallInput::Args(Value::Object(step.arguments.clone()));
            supposed.push(HypotheticalCall { tool, proposed, cwd: None, actor: ActorId::main() });
        }
        let verdicts = match explainer.rehearse(&supposed) {
            Ok(verdicts) => verdicts,
            Err(error) => return broken(format!("the plan can't be rehearsed: {error}")),
        };
        let refused = verdicts.iter().enumerate().find(|(_, verdict)| !verdict.allows_run());
        let Some((at, verdict)) = refused else { return Vec::new() };
        let objections = attempt_violations(&verdict.violations, reason_of(verdict));
        objections.into_iter().map(|objection| with_step_number(at, objection)).collect()
    }
}

/// The violations of arguments that a workspace tool does not accept. Generated tools have no
/// schema.
fn invalid_arguments(plan: &CallPlan) -> Vec<AttemptViolation> {
    let schemas = argument_schemas(jackline_workspace::tools());
    let mut violations = Vec::new();
    for (at, step) in plan.tool_calls.iter().enumerate() {
        let schema = schemas.get(&step.name).and_then(|text| serde_json::from_str(&text.0).ok());
        let schema = schema.and_then(|schema: Value| Schema::compile(&schema).ok());
        let Some(schema) = schema else { continue };
        let arguments = Value::Object(step.arguments.clone());
        let DecodeOutcome::Invalid(wrong) = check_value_unchanged(arguments, &schema) else {
            continue;
        };
        let found = schema_violations(&wrong, &format!("the arguments of `{}`", step.name));
        violations.extend(found.into_iter().map(|violation| with_step_number(at, violation)));
    }
    violations
}

/// The violations of a document. Errors without a path are about `whole`.
fn schema_violations(wrong: &InvalidDocument, whole: &str) -> Vec<AttemptViolation> {
    let violation = |it: &DecodeMismatch| {
        let at = if it.path.is_empty() { whole } else { &it.path };
        plan_violation(format!("{at} must be {}, not {}", it.expected, it.got))
    };
    wrong.errors.iter().map(violation).collect()
}

fn plan_violation(message: String) -> AttemptViolation {
    AttemptViolation::new(Subtype::PlanInvalid, message)
}

/// Adds the number of a step to a violation.
fn with_step_number(at: usize, objection: AttemptViolation) -> AttemptViolation {
    let message = format!("step {}: {}", at + 1, objection.message);
    AttemptViolation { message, ..objection }
}

impl Executor<WrittenPlan> for PlanRunner<'_, '_, '_> {
    fn execute(&mut self, written: &WrittenPlan) -> Result<ArtifactOutcome, ArtifactFault> {
        let plan = parse_plan(written).map_err(ArtifactFault::Refused)?;
        let mut caller = AttemptHost::new(self.calling);
        let mut results = Vec::new();
        for (at, step) in plan.tool_calls.into_iter().enumerate() {
            let result = caller.call(&step.name, step.arguments).map_err(|error| match error {
                CallError::Refused(violations) => ArtifactFault::Refused(violations),
                CallError::Failed { error_type, message } => {
                    let message = format!("step {}: {message}", at + 1);
                    ArtifactFault::Failed { error_type, message }
                }
            })?;
            results.push(result);
        }
        Ok(ArtifactOutcome::Ok { value: Value::Array(results), sources: Vec::new() })
    }
}

/// Parses the plan, or returns its violations.
fn parse_plan(written: &WrittenPlan) -> Result<CallPlan, Vec<AttemptViolation>> {
    let schema = Schema::compile(&plan_schema()).ok();
    let value = match decode(&written.text, schema.as_ref(), TextEnding::Finished) {
        DecodeOutcome::Accepted(accepted) => accepted.value,
        DecodeOutcome::Invalid(wrong) => {
            let mut violations = schema_violations(&wrong, "the plan");
            if violations.is_empty() {
                violations.push(plan_violation("the answer contains no plan".to_owned()));
            }
            return Err(violations);
        }
        DecodeOutcome::CutOff(_) => {
            return Err(vec![plan_violation("the plan was cut off".to_owned())]);
        }
    };
    serde_json::from_value(value).map_err(|error| vec![plan_violation(error.to_string())])
}
