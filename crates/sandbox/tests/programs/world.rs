//! A test host, and the real worker.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use jackline_attempt::{
    ArtifactFault, ArtifactOutcome, AttemptViolation, Executor as _, GuardrailCause,
    InternalOutcome, OutcomeError, Subtype, Validator as _,
};
use jackline_sandbox_host::{
    CallError, CallableSpec, Callables, GeneratedTool, ProgramHost, ProgramLimits, ProgramRun,
    PythonProgram, Sandbox, WorkerPool, checker_and_runner,
};
use serde_json::{Map, Value, json};

pub(crate) fn sandbox() -> Sandbox {
    Sandbox { path: Some(PathBuf::from(env!("CARGO_BIN_EXE_jackline-sandbox"))) }
}

/// Internal text of a delegate, which no answer may contain.
pub(crate) const INTERNAL_TEXT: &str = "RAW-4f1d inside of the delegate";

/// A test host with some tools, which records its calls.
pub(crate) struct SandboxWorld {
    pub(crate) workers: WorkerPool,
    pub(crate) limits: ProgramLimits,
    pub(crate) depth: u32,
    pub(crate) state: RefCell<TestHost>,
}

#[derive(Default)]
pub(crate) struct TestHost {
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) context: Map<String, Value>,
    pub(crate) forged: BTreeMap<String, GeneratedTool>,
    pub(crate) depths: Vec<u32>,
    workers: Option<WorkerPool>,
}

impl SandboxWorld {
    pub(crate) fn new() -> Self {
        Self::with(sandbox())
    }

    pub(crate) fn with(sandbox: Sandbox) -> Self {
        let workers = WorkerPool::new(sandbox);
        let state = TestHost { workers: Some(workers.clone()), ..TestHost::default() };
        let limits = ProgramLimits { time_ms: 2_000, ..ProgramLimits::default() };
        Self { workers, limits, depth: 0, state: RefCell::new(state) }
    }

    /// The violations of a program, as `subtype line:column`.
    pub(crate) fn validate(&self, source: &str) -> Vec<String> {
        let (mut checker, _) =
            checker_and_runner(&self.workers, &self.state, self.limits, self.depth);
        checker.validate(&PythonProgram::new(source)).iter().map(violation_text).collect()
    }

    /// Runs a program without checking it.
    pub(crate) fn run(&self, source: &str) -> Result<ArtifactOutcome, ArtifactFault> {
        self.run_and_judge(source).0
    }

    /// Runs a program and judges its outcome.
    pub(crate) fn run_and_judge(
        &self,
        source: &str,
    ) -> (Result<ArtifactOutcome, ArtifactFault>, Vec<AttemptViolation>, ProgramRun) {
        let program = PythonProgram::new(source);
        let (mut checker, mut runner) =
            checker_and_runner(&self.workers, &self.state, self.limits, self.depth);
        let outcome = runner.execute(&program);
        let violations = match &outcome {
            Ok(outcome) => checker.judge(&program, outcome),
            Err(_) => Vec::new(),
        };
        (outcome, violations, runner.last_run())
    }

    /// The answer of a program that succeeds.
    #[track_caller]
    pub(crate) fn answer(&self, source: &str) -> Value {
        match self.run(source) {
            Ok(ArtifactOutcome::Ok { value, .. }) => value,
            other => panic!("{other:?} of:\n{source}"),
        }
    }

    /// The type and message of the fault of a program.
    #[track_caller]
    pub(crate) fn fault(&self, source: &str) -> (String, String) {
        match self.run(source) {
            Err(ArtifactFault::Failed { error_type, message }) => (error_type, message),
            other => panic!("{other:?} of:\n{source}"),
        }
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.state.borrow().calls.iter().map(|(name, _)| name.clone()).collect()
    }
}

pub(crate) fn violation_text(violation: &AttemptViolation) -> String {
    let at = violation.location.map_or_else(String::new, |at| format!(" {at}"));
    format!("{}{at}", violation.subtype)
}

fn callable(name: &str, external: bool) -> CallableSpec {
    CallableSpec { name: name.to_owned(), description: format!("does {name}"), external }
}

impl ProgramHost for TestHost {
    fn callables(&self) -> Callables {
        let own = ["echo", "add", "broken", "denied", "big", "deep", "panics"]
            .map(|name| callable(name, false));
        let forged = self.forged.keys().map(|name| callable(name, false));
        let tools = own.into_iter().chain([callable("fetch", true)]).chain(forged).collect();
        let delegates =
            vec![callable("helper", false), callable("scout", true), callable("lost", false)];
        Callables { tools, delegates }
    }

    fn context(&self) -> Map<String, Value> {
        self.context.clone()
    }

    fn store_context(&mut self, context: Map<String, Value>) {
        self.context = context;
    }

    fn call(&mut self, name: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        self.calls.push((name.to_owned(), Value::Object(arguments.clone())));
        let failed = |error_type: &str, message: &str| CallError::Failed {
            error_type: error_type.to_owned(),
            message: message.to_owned(),
        };
        match name {
            "echo" => Ok(Value::Object(arguments)),
            "add" => match (arguments.get("a"), arguments.get("b")) {
                (Some(Value::Number(a)), Some(Value::Number(b))) => {
                    Ok(json!(a.as_i64().unwrap() + b.as_i64().unwrap()))
                }
                _ => Err(failed("invalid_arguments", "`a` and `b` must be integers")),
            },
            "fetch" => Ok(json!({ "status": 200, "body": "Dune" })),
            "broken" => Err(failed("network_error", "the line is down")),
            "denied" => {
                let denied = AttemptViolation::new(Subtype::ToolDenied, "not on a Sunday");
                Err(CallError::Refused(vec![denied]))
            }
            "deep" => Ok((0..1000).fold(Value::Null, |inner, _| json!([inner]))),
            "panics" => panic!("a fault of the host"),
            "big" => Ok(Value::String("x".repeat(5 << 20))),
            forged => {
                // Runs like any program, in a worker of its own.
                let source = self.forged[forged].source.clone();
                let inner = RefCell::new(Self::default());
                let workers = self.workers.as_ref().unwrap();
                let (_, mut runner) =
                    checker_and_runner(workers, &inner, ProgramLimits::default(), 0);
                match runner.execute(&PythonProgram { source, arguments }) {
                    Ok(ArtifactOutcome::Ok { value, .. }) => Ok(value),
                    other => Err(failed("tool_failed", &format!("{other:?}"))),
                }
            }
        }
    }

    fn delegate(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        depth: u32,
    ) -> Result<InternalOutcome, CallError> {
        self.calls.push((name.to_owned(), Value::Object(arguments.clone())));
        self.depths.push(depth);
        if name == "lost" {
            return Ok(InternalOutcome::InternalError {
                error: OutcomeError::new("guardrail_retry_exhausted", INTERNAL_TEXT, false),
                guardrail: Some(GuardrailCause {
                    class: Subtype::ToolDenied.class(),
                    subtype: "tool_denied".to_owned(),
                }),
                guardrail_recovery_attempts: 1,
                retries: 1,
            });
        }
        Ok(InternalOutcome::Ok { value: Value::Object(arguments), sources: Vec::new() })
    }

    fn add_tool(&mut self, forged: GeneratedTool) -> Result<(), CallError> {
        self.forged.insert(forged.name.clone(), forged);
        Ok(())
    }
}
