//! Plans: decoded, rehearsed as a whole under all guards, and then run step by step.

use jackline_analysis::{Explainer, Proposed, Supposed};
use jackline_attempt::{Executor, Fault, Outcome, Subtype, Validator, Violation};
use jackline_decode::{Decoded, Ending, Schema, decode, plan_schema};
use jackline_engine::{ActorId, SessionId, ToolName};
use jackline_host::HostAccess;
use jackline_journal::Store as _;
use jackline_runtime::{Definitions, reason_of};
use jackline_sandbox_host::{CallError, Host as _};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::call::Calling;
use crate::call::caller::Caller;
use crate::call::writer::Written;
use crate::task_front::objections;

/// The plan in what was written, as far as it is run.
#[derive(Debug, Deserialize)]
struct Plan {
    tool_calls: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Looks at plans before they run.
pub(super) struct Rehearsal<'a, 's, 'r> {
    pub(super) calling: &'a Calling<'s, 'r>,
}

/// Runs plans.
pub(super) struct PlanRunner<'a, 's, 'r> {
    pub(super) calling: &'a Calling<'s, 'r>,
}

impl Validator<Written> for Rehearsal<'_, '_, '_> {
    fn validate(&mut self, written: &Written) -> Vec<Violation> {
        let plan = match read(written) {
            Ok(plan) => plan,
            Err(violations) => return violations,
        };
        let mut caller = Caller::new(self.calling);
        let known = caller.known();
        let unknown: Vec<Violation> = plan
            .tool_calls
            .iter()
            .enumerate()
            .filter(|(_, step)| !known.tools.iter().any(|tool| tool.name == step.name))
            .flat_map(|(at, step)| {
                let objections = caller.refuse_unknown_tool(&step.name);
                objections.into_iter().map(move |objection| about_step(at, objection))
            })
            .collect();
        if unknown.is_empty() { self.rehearse(&plan) } else { unknown }
    }

    fn judge(&mut self, _: &Written, _: &Outcome) -> Vec<Violation> {
        Vec::new()
    }
}

impl Rehearsal<'_, '_, '_> {
    /// Has all guards look at the whole plan, as if each step had succeeded.
    fn rehearse(&self, plan: &Plan) -> Vec<Violation> {
        let shared = self.calling.shared;
        let broken = |why: String| vec![Violation::new(Subtype::ToolDenied, why)];
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
            Ok(explainer) => explainer,
            Err(error) => return broken(format!("the plan can't be rehearsed: {error}")),
        };
        let mut supposed = Vec::new();
        for step in &plan.tool_calls {
            let Ok(tool) = ToolName::parse(&step.name) else {
                return broken(format!("`{}` is no name of a tool", step.name));
            };
            let proposed = Proposed::Args(Value::Object(step.arguments.clone()));
            supposed.push(Supposed { tool, proposed, cwd: None, actor: ActorId::main() });
        }
        let verdicts = match explainer.rehearse(&supposed) {
            Ok(verdicts) => verdicts,
            Err(error) => return broken(format!("the plan can't be rehearsed: {error}")),
        };
        let refused = verdicts.iter().enumerate().find(|(_, verdict)| !verdict.lets_run());
        let Some((at, verdict)) = refused else { return Vec::new() };
        let objections = objections(&verdict.violations, reason_of(verdict));
        objections.into_iter().map(|objection| about_step(at, objection)).collect()
    }
}

/// An objection to one step of a plan.
fn about_step(at: usize, objection: Violation) -> Violation {
    let message = format!("step {}: {}", at + 1, objection.message);
    Violation { message, ..objection }
}

impl Executor<Written> for PlanRunner<'_, '_, '_> {
    fn execute(&mut self, written: &Written) -> Result<Outcome, Fault> {
        let plan = read(written).map_err(Fault::Refused)?;
        let mut caller = Caller::new(self.calling);
        let mut results = Vec::new();
        for (at, step) in plan.tool_calls.into_iter().enumerate() {
            let result = caller.call(&step.name, step.arguments).map_err(|error| match error {
                CallError::Refused(violations) => Fault::Refused(violations),
                CallError::Failed { error_type, message } => {
                    let message = format!("step {}: {message}", at + 1);
                    Fault::Failed { error_type, message }
                }
            })?;
            results.push(result);
        }
        Ok(Outcome::Ok { value: Value::Array(results), sources: Vec::new() })
    }
}

/// The plan in what was written, or what is wrong with it.
fn read(written: &Written) -> Result<Plan, Vec<Violation>> {
    let invalid = |message: String| Violation::new(Subtype::PlanInvalid, message);
    let schema = Schema::compile(&plan_schema()).ok();
    let value = match decode(&written.text, schema.as_ref(), Ending::Finished) {
        Decoded::Accepted(accepted) => accepted.value,
        Decoded::Invalid(wrong) => {
            let each = wrong.errors.iter().map(|it| {
                let at = if it.path.is_empty() { "the plan" } else { &it.path };
                invalid(format!("{at} must be {}, not {}", it.expected, it.got))
            });
            let mut violations: Vec<Violation> = each.collect();
            if violations.is_empty() {
                violations.push(invalid("there is no plan".to_owned()));
            }
            return Err(violations);
        }
        Decoded::CutOff(_) => return Err(vec![invalid("the plan was cut off".to_owned())]),
    };
    serde_json::from_value(value).map_err(|error| vec![invalid(error.to_string())])
}
