//! A host that is made up, and the real worker.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use jackline_attempt::{
    Executor as _, Fault, InternalOutcome, Outcome, OutcomeError, Subtype, Validator as _,
    Violation,
};
use jackline_sandbox_host::{
    CallError, Forged, Host, Known, Limits, Named, Program, Ran, Sandbox, Workers, programs,
};
use serde_json::{Map, Value, json};

pub(crate) fn sandbox() -> Sandbox {
    Sandbox { path: Some(PathBuf::from(env!("CARGO_BIN_EXE_jackline-sandbox"))) }
}

/// What nobody outside may read.
pub(crate) const INSIDE: &str = "RAW-4f1d inside of the delegate";

/// A host with some tools, and everything that was asked of it.
pub(crate) struct World {
    pub(crate) workers: Workers,
    pub(crate) limits: Limits,
    pub(crate) depth: u32,
    pub(crate) state: RefCell<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) context: Map<String, Value>,
    pub(crate) forged: BTreeMap<String, Forged>,
    pub(crate) depths: Vec<u32>,
    workers: Option<Workers>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(sandbox())
    }

    pub(crate) fn with(sandbox: Sandbox) -> Self {
        let workers = Workers::new(sandbox);
        let state = State { workers: Some(workers.clone()), ..State::default() };
        let limits = Limits { time_ms: 2_000, ..Limits::default() };
        Self { workers, limits, depth: 0, state: RefCell::new(state) }
    }

    /// What is wrong with a program, as `subtype line:column`.
    pub(crate) fn validate(&self, source: &str) -> Vec<String> {
        let (mut checker, _) = programs(&self.workers, &self.state, self.limits, self.depth);
        checker.validate(&Program::new(source)).iter().map(show).collect()
    }

    /// Runs a program that nobody looked at.
    pub(crate) fn run(&self, source: &str) -> Result<Outcome, Fault> {
        self.run_and_judge(source).0
    }

    /// Runs a program, and looks at what came of it.
    pub(crate) fn run_and_judge(
        &self,
        source: &str,
    ) -> (Result<Outcome, Fault>, Vec<Violation>, Ran) {
        let program = Program::new(source);
        let (mut checker, mut runner) =
            programs(&self.workers, &self.state, self.limits, self.depth);
        let outcome = runner.execute(&program);
        let violations = match &outcome {
            Ok(outcome) => checker.judge(&program, outcome),
            Err(_) => Vec::new(),
        };
        (outcome, violations, runner.ran())
    }

    /// The answer of a program that has one.
    #[track_caller]
    pub(crate) fn answer(&self, source: &str) -> Value {
        match self.run(source) {
            Ok(Outcome::Ok { value, .. }) => value,
            other => panic!("{other:?} of:\n{source}"),
        }
    }

    /// The type and the message of a program's fault.
    #[track_caller]
    pub(crate) fn fault(&self, source: &str) -> (String, String) {
        match self.run(source) {
            Err(Fault::Failed { error_type, message }) => (error_type, message),
            other => panic!("{other:?} of:\n{source}"),
        }
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.state.borrow().calls.iter().map(|(name, _)| name.clone()).collect()
    }
}

pub(crate) fn show(violation: &Violation) -> String {
    let at = violation.location.map_or_else(String::new, |at| format!(" {at}"));
    format!("{}{at}", violation.subtype)
}

fn named(name: &str, external: bool) -> Named {
    Named { name: name.to_owned(), description: format!("does {name}"), external }
}

impl Host for State {
    fn known(&self) -> Known {
        let own = ["echo", "add", "broken", "denied", "big", "deep", "panics"]
            .map(|name| named(name, false));
        let forged = self.forged.keys().map(|name| named(name, false));
        let tools = own.into_iter().chain([named("fetch", true)]).chain(forged).collect();
        let delegates = vec![named("helper", false), named("scout", true), named("lost", false)];
        Known { tools, delegates }
    }

    fn context(&self) -> Map<String, Value> {
        self.context.clone()
    }

    fn remember(&mut self, context: Map<String, Value>) {
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
                let denied = Violation::new(Subtype::ToolDenied, "not on a Sunday");
                Err(CallError::Refused(vec![denied]))
            }
            "deep" => Ok((0..1000).fold(Value::Null, |inner, _| json!([inner]))),
            "panics" => panic!("the host's own fault"),
            "big" => Ok(Value::String("x".repeat(5 << 20))),
            forged => {
                // Runs as any program does: looked at, in a worker of its own.
                let source = self.forged[forged].source.clone();
                let inner = RefCell::new(Self::default());
                let workers = self.workers.as_ref().unwrap();
                let (_, mut runner) = programs(workers, &inner, Limits::default(), 0);
                match runner.execute(&Program { source, arguments }) {
                    Ok(Outcome::Ok { value, .. }) => Ok(value),
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
            return Ok(InternalOutcome::Inside {
                error: OutcomeError::new("guardrail_retry_exhausted", INSIDE, false),
                guardrail_class: Subtype::ToolDenied.class(),
                guardrail_subtype: "tool_denied".to_owned(),
                retries: 1,
            });
        }
        Ok(InternalOutcome::Ok { value: Value::Object(arguments), sources: Vec::new() })
    }

    fn forge(&mut self, forged: Forged) -> Result<(), CallError> {
        self.forged.insert(forged.name.clone(), forged);
        Ok(())
    }
}
