//! Runs a program to its end, and answers what it asks for on the way.

use std::cell::RefCell;
use std::rc::Rc;

use jackline_attempt::{
    Executor, Fault, InternalOutcome, Outcome, OutcomeError, Subtype, Violation,
};
use serde_json::Value;

use crate::checker::violation;
use crate::host::{CallError, Forged, Host};
use crate::limits::Limits;
use crate::program::Program;
use crate::protocol::{
    Answer, End, Ended, FromWorker, Known, Objection, Place, Run, ToWorker, Wanted,
};
use crate::ran::Ran;
use crate::worker::{Lost, Worker};
use crate::workers::Workers;

/// How deep what a program gets may be nested; what reads JSON goes little deeper.
const DEPTH_MAX: usize = 100;

/// Runs programs for a host.
pub struct Runner<'h> {
    pub(crate) workers: Workers,
    pub(crate) host: &'h RefCell<dyn Host + 'h>,
    pub(crate) limits: Limits,
    pub(crate) depth: u32,
    pub(crate) ran: Rc<RefCell<Ran>>,
}

/// What came of a call, kept until the program has ended.
enum Came {
    Done,
    Refused(Vec<Violation>),
    Failed { error_type: String, message: String },
    Child(Box<InternalOutcome>),
}

/// A program under way.
struct Going<'a, 'h> {
    runner: &'a Runner<'h>,
    known: Known,
    came: Vec<Came>,
    ran: Ran,
}

impl Executor<Program> for Runner<'_> {
    fn execute(&mut self, program: &Program) -> Result<Outcome, Fault> {
        let known = self.host.borrow().known();
        let mut going = Going { runner: self, known, came: Vec::new(), ran: Ran::default() };
        let outcome = going.run(program);
        let ran = going.ran;
        self.ran.replace(ran);
        outcome
    }
}

impl Going<'_, '_> {
    fn run(&mut self, program: &Program) -> Result<Outcome, Fault> {
        let mut worker = self.runner.workers.take().map_err(|error| {
            let missing = Violation::new(Subtype::DependencyUnavailable, error.to_string());
            Fault::Refused(vec![missing])
        })?;
        worker.runs += 1;
        let ended = self.play(&mut worker, program).map_err(|lost| Fault::Failed {
            error_type: lost.name().to_owned(),
            message: lost.to_string(),
        })?;
        self.runner.workers.give_back(worker);
        self.outcome(ended)
    }

    fn play(&mut self, worker: &mut Worker, program: &Program) -> Result<Ended, Lost> {
        let limits = self.runner.limits;
        // Only the worker's silence counts: what a tool may take is the tool's matter.
        let mut patience = self.runner.workers.patience(limits.deadline_ms);
        let run = ToWorker::Run(Box::new(Run {
            source: program.source.clone(),
            arguments: program.arguments.clone(),
            context: self.runner.host.borrow().context(),
            known: self.known.clone(),
            limits,
        }));
        worker.send(&run, &mut patience)?;
        loop {
            let answer = match worker.receive(&mut patience, limits.line_bytes_max())? {
                // The worker counts, too; one that goes on asking is none of ours any more.
                FromWorker::Wants(_) if self.ran.calls >= limits.calls_max => {
                    return Err(Lost::Garbled);
                }
                FromWorker::Wants(wanted) => self.answer(wanted),
                FromWorker::Ended(ended) => return Ok(*ended),
                FromWorker::Ready { .. } | FromWorker::Objections(_) => return Err(Lost::Garbled),
            };
            // What was done meanwhile may be why nothing goes on.
            patience.check()?;
            worker.send(&ToWorker::Answer(answer), &mut patience)?;
        }
    }

    /// Does what the program wants, unless somebody objects.
    fn answer(&mut self, wanted: Wanted) -> Answer {
        self.ran.calls += 1;
        let done = match wanted {
            Wanted::Tool { name, arguments } => self.find(&name, Kind::Tool).and_then(|external| {
                let value = self.runner.host.borrow_mut().call(&name, arguments)?;
                Ok((value, Came::Done, external.then_some(name)))
            }),
            Wanted::Delegate { name, arguments } => {
                self.find(&name, Kind::Delegate).and_then(|external| {
                    let depth = self.deeper()?;
                    let child = self.runner.host.borrow_mut().delegate(&name, arguments, depth)?;
                    self.hear(&child);
                    let value = serde_json::to_value(&child).unwrap_or_default();
                    let external = external.then_some(name).filter(|_| child.is_ok());
                    Ok((value, Came::Child(Box::new(child)), external))
                })
            }
            Wanted::Forge { name, description, source, objections } => self
                .forge(Forged { name, description, source }, &objections)
                .map(|()| (Value::Null, Came::Done, None)),
        };
        let (came, answer) = match done.and_then(|done| self.fits(done)) {
            Ok((value, came, external)) => {
                if let Some(name) = external {
                    self.ran.told_from_outside(&name);
                }
                (came, Answer::Value(value))
            }
            Err(CallError::Refused(violations)) => {
                let answer = Answer::Refused(in_words(&violations));
                (Came::Refused(violations), answer)
            }
            Err(CallError::Failed { error_type, message }) => {
                let answer = Answer::Failed(format!("{error_type}: {message}"));
                (Came::Failed { error_type, message }, answer)
            }
        };
        self.came.push(came);
        answer
    }

    /// Whether what is called answers from outside; what nobody knows is not called.
    fn find(&self, name: &str, kind: Kind) -> Result<bool, CallError> {
        let known = match kind {
            Kind::Tool => &self.known.tools,
            Kind::Delegate => &self.known.delegates,
        };
        let named = known.iter().find(|named| named.name == name);
        named.map(|named| named.external).ok_or_else(|| {
            CallError::Refused(match kind {
                Kind::Tool => self.runner.host.borrow_mut().refuse_unknown_tool(name),
                Kind::Delegate => {
                    let message = format!("there is no delegate `{name}`");
                    vec![Violation::new(Subtype::UnknownTool, message)]
                }
            })
        })
    }

    fn deeper(&self) -> Result<u32, CallError> {
        let (depth, most) = (self.runner.depth, self.runner.limits.depth_max);
        if depth < most {
            return Ok(depth + 1);
        }
        let message = format!("delegates may be {most} deep, and this program is that deep");
        let refused = Violation::new(Subtype::ToolDenied, message)
            .correct("Do the work in this program, with tools.");
        Err(CallError::Refused(vec![refused]))
    }

    fn hear(&mut self, child: &InternalOutcome) {
        if let InternalOutcome::Inside { error, .. } = child {
            self.ran.inside.push(error.error_message.clone());
        }
    }

    fn forge(&mut self, forged: Forged, objections: &[Objection]) -> Result<(), CallError> {
        if !objections.is_empty() {
            // The places are those in the forged program, and the words say so.
            let about = |objection: &Objection| {
                let Place { line, column } = objection.at;
                let mut violation = violation(objection.clone());
                violation.message =
                    format!("in `{}`, {line}:{column}: {}", forged.name, violation.message);
                violation.location = None;
                violation
            };
            return Err(CallError::Refused(objections.iter().map(about).collect()));
        }
        self.runner.host.borrow_mut().forge(forged)?;
        self.known = self.runner.host.borrow().known();
        Ok(())
    }

    /// What is too long for a program is not given to it.
    fn fits(&self, done: Done) -> Result<Done, CallError> {
        let most = self.runner.limits.value_bytes_max;
        let bytes = serde_json::to_vec(&done.0).map_or(usize::MAX, |text| text.len());
        let message = if bytes > most {
            format!("what came back has {bytes} bytes, and a program gets {most}")
        } else if is_deeper(&done.0, DEPTH_MAX) {
            format!("what came back is nested more than {DEPTH_MAX} deep")
        } else {
            return Ok(done);
        };
        Err(CallError::Failed { error_type: "result_too_large".to_owned(), message })
    }

    /// What the end of a program comes to.
    fn outcome(&mut self, ended: Ended) -> Result<Outcome, Fault> {
        self.ran.printed = ended.printed;
        self.ran.printed_bytes = ended.printed_bytes;
        self.ran.answered_at = ended.at;
        let outcome = match ended.end {
            End::Ok { value, sources } => Outcome::Ok { value, sources },
            End::Error { error_type, message, retriable } => {
                Outcome::Error(OutcomeError::new(&error_type, message, retriable))
            }
            End::HandedOn(call) => match self.take(call) {
                Some(Came::Child(child)) => Outcome::Child(child),
                _ => return Err(garbled()),
            },
            End::Refused(call) => match self.take(call) {
                Some(Came::Refused(violations)) => {
                    return Err(Fault::Refused(located(violations, ended.at)));
                }
                _ => return Err(garbled()),
            },
            End::CallFailed(call) => match self.take(call) {
                Some(Came::Failed { error_type, message }) => {
                    return Err(Fault::Failed { error_type, message });
                }
                _ => return Err(garbled()),
            },
            End::Failed { failure, message } => {
                let message = match ended.at {
                    Some(at) => format!("{message} (at {}:{})", at.line, at.column),
                    None => message,
                };
                return Err(Fault::Failed { error_type: failure.name().to_owned(), message });
            }
        };
        if let Some(context) = ended.context {
            self.runner.host.borrow_mut().remember(context);
        }
        Ok(outcome)
    }

    fn take(&mut self, call: usize) -> Option<Came> {
        self.came.get_mut(call).map(|came| std::mem::replace(came, Came::Done))
    }
}

/// Whether a value is nested deeper than so many.
fn is_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if most == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, most - 1)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, most - 1)),
        _ => false,
    }
}

/// What a program gets, what is kept of it, and who answered from outside.
type Done = (Value, Came, Option<String>);

/// What is called.
#[derive(Clone, Copy)]
enum Kind {
    Tool,
    Delegate,
}

fn garbled() -> Fault {
    let lost = Lost::Garbled;
    Fault::Failed { error_type: lost.name().to_owned(), message: lost.to_string() }
}

/// What the program reads of objections, in its exception.
fn in_words(violations: &[Violation]) -> String {
    let words = |it: &Violation| format!("{}: {} {}", it.subtype, it.message, it.correction);
    violations.iter().map(words).collect::<Vec<_>>().join("\n")
}

fn located(violations: Vec<Violation>, at: Option<Place>) -> Vec<Violation> {
    let locate = |mut violation: Violation| {
        violation.location = violation.location.or(at.map(Into::into));
        violation
    };
    violations.into_iter().map(locate).collect()
}
