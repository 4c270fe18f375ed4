//! Runs a program to its end, and answers its calls.

use std::cell::RefCell;
use std::rc::Rc;

use jackline_attempt::{
    ArtifactFault, ArtifactOutcome, AttemptViolation, Executor, InternalOutcome, OutcomeError,
    Subtype,
};
use serde_json::Value;

use crate::program_checker::attempt_violation;
use crate::program_host::{CallError, GeneratedTool, ProgramHost};
use crate::program_limits::ProgramLimits;
use crate::program_run::ProgramRun;
use crate::protocol::{
    CallAnswer, Callables, EndedProgram, FromWorker, HostRequest, ProgramEnd, ProgramPosition,
    ProgramViolation, RunRequest, ToWorker,
};
use crate::python_program::PythonProgram;
use crate::sandbox_worker::{SandboxWorker, WorkerLoss};
use crate::worker_pool::WorkerPool;

/// How deep a value for a program may be nested. JSON parsers stop a little deeper.
const VALUE_DEPTH_MAX: usize = 100;

/// Runs programs for a host.
pub struct ProgramRunner<'h> {
    pub(crate) workers: WorkerPool,
    pub(crate) host: &'h RefCell<dyn ProgramHost + 'h>,
    pub(crate) limits: ProgramLimits,
    pub(crate) depth: u32,
    pub(crate) last_run: Rc<RefCell<ProgramRun>>,
}

/// A call of a running program, stored until the program has ended.
enum FinishedCall {
    Done,
    Refused(Vec<AttemptViolation>),
    Failed { error_type: String, message: String },
    Child(Box<InternalOutcome>),
}

/// A program that runs.
struct RunningProgram<'a, 'h> {
    runner: &'a ProgramRunner<'h>,
    callables: Callables,
    calls: Vec<FinishedCall>,
    record: ProgramRun,
}

impl Executor<PythonProgram> for ProgramRunner<'_> {
    fn execute(&mut self, program: &PythonProgram) -> Result<ArtifactOutcome, ArtifactFault> {
        let known = self.host.borrow().callables();
        let mut going = RunningProgram {
            runner: self,
            callables: known,
            calls: Vec::new(),
            record: self.next_run(),
        };
        let outcome = going.run(program);
        let ran = going.record;
        self.last_run.replace(ran);
        outcome
    }
}

impl ProgramRunner<'_> {
    /// An empty record. The model still knows the internal texts of earlier attempts.
    fn next_run(&self) -> ProgramRun {
        let internal_texts = self.last_run.borrow().internal_texts.clone();
        ProgramRun { internal_texts, ..ProgramRun::default() }
    }
}

impl RunningProgram<'_, '_> {
    fn run(&mut self, program: &PythonProgram) -> Result<ArtifactOutcome, ArtifactFault> {
        let mut worker = self.runner.workers.take().map_err(|error| {
            let missing = AttemptViolation::new(Subtype::DependencyUnavailable, error.to_string());
            ArtifactFault::Refused(vec![missing])
        })?;
        worker.runs += 1;
        let ended =
            self.exchange_messages(&mut worker, program).map_err(|lost| ArtifactFault::Failed {
                error_type: lost.as_str().to_owned(),
                message: lost.to_string(),
            })?;
        self.runner.workers.give_back(worker);
        self.outcome(ended)
    }

    fn exchange_messages(
        &mut self,
        worker: &mut SandboxWorker,
        program: &PythonProgram,
    ) -> Result<EndedProgram, WorkerLoss> {
        let limits = self.runner.limits;
        // Only the silence of the worker counts. The time of a tool is the tool's own matter.
        let mut patience = self.runner.workers.wait_budget(limits.deadline_ms);
        let run = ToWorker::Run(Box::new(RunRequest {
            source: program.source.clone(),
            arguments: program.arguments.clone(),
            context: self.runner.host.borrow().context(),
            known: self.callables.clone(),
            limits,
        }));
        worker.send(&run, &mut patience)?;
        loop {
            let answer = match worker.receive(&mut patience, limits.line_bytes_max())? {
                // The worker counts the calls, too. A worker that exceeds the limit breaks the
                // protocol.
                FromWorker::Wants(_) if self.record.calls >= limits.calls_max => {
                    return Err(WorkerLoss::ProtocolBroken);
                }
                FromWorker::Wants(wanted) => self.answer_call(wanted),
                FromWorker::Ended(ended) => return Ok(*ended),
                FromWorker::Ready { .. } | FromWorker::Objections(_) => {
                    return Err(WorkerLoss::ProtocolBroken);
                }
            };
            // The run may have been cancelled during the call.
            patience.check_cancelled()?;
            worker.send(&ToWorker::Answer(answer), &mut patience)?;
        }
    }

    /// Runs one call of the program, unless it is refused.
    fn answer_call(&mut self, wanted: HostRequest) -> CallAnswer {
        self.record.calls += 1;
        let done = match wanted {
            HostRequest::Tool { name, arguments } => {
                self.find_callable(&name, CallableKind::Tool).and_then(|external| {
                    let value = self.runner.host.borrow_mut().call(&name, arguments)?;
                    Ok((value, FinishedCall::Done, external.then_some(name)))
                })
            }
            HostRequest::Delegate { name, arguments } => {
                self.find_callable(&name, CallableKind::Delegate).and_then(|external| {
                    let depth = self.next_depth()?;
                    let child = self.runner.host.borrow_mut().delegate(&name, arguments, depth)?;
                    self.record.internal_texts.add_outcome(&child);
                    let value = serde_json::to_value(&child).unwrap_or_default();
                    let external = external.then_some(name).filter(|_| child.is_ok());
                    Ok((value, FinishedCall::Child(Box::new(child)), external))
                })
            }
            HostRequest::Forge { name, description, source, objections } => self
                .add_tool(GeneratedTool { name, description, source }, &objections)
                .map(|()| (Value::Null, FinishedCall::Done, None)),
        };
        let (came, answer) = match done.and_then(|done| self.check_size(done)) {
            Ok((value, came, external)) => {
                if let Some(name) = external {
                    self.record.add_external(&name);
                }
                (came, CallAnswer::Value(value))
            }
            Err(CallError::Refused(violations)) => {
                self.record.internal_texts.add_violations(&violations);
                let answer = CallAnswer::Refused(violations_text(&violations));
                (FinishedCall::Refused(violations), answer)
            }
            Err(CallError::Failed { error_type, message }) => {
                let answer = CallAnswer::Failed(format!("{error_type}: {message}"));
                (FinishedCall::Failed { error_type, message }, answer)
            }
        };
        self.calls.push(came);
        answer
    }

    /// Whether a tool or delegate returns external data. An unknown name is refused.
    fn find_callable(&self, name: &str, kind: CallableKind) -> Result<bool, CallError> {
        let known = match kind {
            CallableKind::Tool => &self.callables.tools,
            CallableKind::Delegate => &self.callables.delegates,
        };
        let named = known.iter().find(|named| named.name == name);
        named.map(|named| named.external).ok_or_else(|| {
            CallError::Refused(match kind {
                CallableKind::Tool => self.runner.host.borrow_mut().refuse_unknown_tool(name),
                CallableKind::Delegate => {
                    let message = format!("delegate `{name}` does not exist");
                    vec![AttemptViolation::new(Subtype::UnknownTool, message)]
                }
            })
        })
    }

    fn next_depth(&self) -> Result<u32, CallError> {
        let (depth, most) = (self.runner.depth, self.runner.limits.depth_max);
        if depth < most {
            return Ok(depth + 1);
        }
        let message =
            format!("delegates may be nested {most} deep, and this program has reached that depth");
        let refused = AttemptViolation::new(Subtype::ToolDenied, message)
            .with_correction("Do the work in this program, with tools.");
        Err(CallError::Refused(vec![refused]))
    }

    fn add_tool(
        &mut self,
        forged: GeneratedTool,
        objections: &[ProgramViolation],
    ) -> Result<(), CallError> {
        if !objections.is_empty() {
            // The positions are inside the generated program, so they go into the message.
            let about = |objection: &ProgramViolation| {
                let ProgramPosition { line, column } = objection.at;
                let mut violation = attempt_violation(objection.clone());
                violation.message =
                    format!("in `{}`, {line}:{column}: {}", forged.name, violation.message);
                violation.location = None;
                violation
            };
            return Err(CallError::Refused(objections.iter().map(about).collect()));
        }
        self.runner.host.borrow_mut().add_tool(forged)?;
        self.callables = self.runner.host.borrow().callables();
        Ok(())
    }

    /// A value that is too large is not given to the program.
    fn check_size(&self, done: CallOutput) -> Result<CallOutput, CallError> {
        let most = self.runner.limits.value_bytes_max;
        let bytes = serde_json::to_vec(&done.0).map_or(usize::MAX, |text| text.len());
        let message = if bytes > most {
            format!("the result has {bytes} bytes; the limit is {most}")
        } else if is_nested_deeper(&done.0, VALUE_DEPTH_MAX) {
            format!("the result is nested more than {VALUE_DEPTH_MAX} deep")
        } else {
            return Ok(done);
        };
        Err(CallError::Failed { error_type: "result_too_large".to_owned(), message })
    }

    /// Converts the end of a program into its outcome.
    fn outcome(&mut self, ended: EndedProgram) -> Result<ArtifactOutcome, ArtifactFault> {
        self.record.printed = ended.printed;
        self.record.printed_bytes = ended.printed_bytes;
        self.record.answered_at = ended.at;
        let outcome = match ended.end {
            ProgramEnd::Ok { value, sources } => ArtifactOutcome::Ok { value, sources },
            ProgramEnd::Error { error_type, message, retriable } => {
                ArtifactOutcome::Error(OutcomeError::new(&error_type, message, retriable))
            }
            ProgramEnd::HandedOn(call) => match self.take_call(call) {
                Some(FinishedCall::Child(child)) => ArtifactOutcome::Child(child),
                _ => return Err(protocol_fault()),
            },
            ProgramEnd::Refused(call) => match self.take_call(call) {
                Some(FinishedCall::Refused(violations)) => {
                    return Err(ArtifactFault::Refused(with_location(violations, ended.at)));
                }
                _ => return Err(protocol_fault()),
            },
            ProgramEnd::CallFailed(call) => match self.take_call(call) {
                Some(FinishedCall::Failed { error_type, message }) => {
                    return Err(ArtifactFault::Failed { error_type, message });
                }
                _ => return Err(protocol_fault()),
            },
            ProgramEnd::Failed { failure, message } => {
                let message = match ended.at {
                    Some(at) => format!("{message} (at {}:{})", at.line, at.column),
                    None => message,
                };
                return Err(ArtifactFault::Failed {
                    error_type: failure.as_str().to_owned(),
                    message,
                });
            }
        };
        if let Some(context) = ended.context {
            self.runner.host.borrow_mut().store_context(context);
        }
        Ok(outcome)
    }

    fn take_call(&mut self, call: usize) -> Option<FinishedCall> {
        self.calls.get_mut(call).map(|came| std::mem::replace(came, FinishedCall::Done))
    }
}

/// Whether a value is nested deeper than `most`.
fn is_nested_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if most == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_nested_deeper(item, most - 1)),
        Value::Object(fields) => fields.values().any(|field| is_nested_deeper(field, most - 1)),
        _ => false,
    }
}

/// The value for the program, the stored call, and the name if the data is external.
type CallOutput = (Value, FinishedCall, Option<String>);

/// What kind of thing a program calls.
#[derive(Clone, Copy)]
enum CallableKind {
    Tool,
    Delegate,
}

fn protocol_fault() -> ArtifactFault {
    let lost = WorkerLoss::ProtocolBroken;
    ArtifactFault::Failed { error_type: lost.as_str().to_owned(), message: lost.to_string() }
}

/// The text of the exception for violations.
fn violations_text(violations: &[AttemptViolation]) -> String {
    let words = |it: &AttemptViolation| format!("{}: {} {}", it.subtype, it.message, it.correction);
    violations.iter().map(words).collect::<Vec<_>>().join("\n")
}

fn with_location(
    violations: Vec<AttemptViolation>,
    at: Option<ProgramPosition>,
) -> Vec<AttemptViolation> {
    let locate = |mut violation: AttemptViolation| {
        violation.location = violation.location.or(at.map(Into::into));
        violation
    };
    violations.into_iter().map(locate).collect()
}
