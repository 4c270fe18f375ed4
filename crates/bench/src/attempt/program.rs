//! What an attempt costs around a program that does next to nothing.

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use jackline_attempt::{
    Ask, Budgets, Call, Ended, Generator, InternalOutcome, Parts, ProviderError, Restored,
    RollbackError, SnapshotError, Stage, Stages, Transaction,
};
use jackline_sandbox_host::{
    CallError, Forged, Host, Known, Limits, Named, Program, Sandbox, Workers, programs,
};
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::limits::Row;
use crate::report::{Report, median};

const ROUNDS: usize = 1000;

/// Whole attempts: written, looked at, run with one call, judged, committed. The parts
/// around the program do nothing, so that what is left is ours.
pub(crate) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    let path = Some(jackline.with_file_name("jackline-sandbox"));
    let workers = Workers::new(Sandbox { path });
    let start = Instant::now();
    attempt(&workers)?;
    let cold = start.elapsed().as_secs_f64() * 1e3;
    let mut warm = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        attempt(&workers)?;
        warm.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let worst = warm.iter().copied().fold(0.0, f64::max);
    let context = format!("median of {ROUNDS} attempts with one call, worst {worst:.2} ms");
    report.add(Row("attempt: warm program"), median(warm), context);
    report.add(Row("attempt: cold program"), cold, "with the start of the worker".to_owned());
    Ok(())
}

fn attempt(workers: &Workers) -> Result<(), Failure> {
    let host = RefCell::new(Adds);
    let (mut checker, mut runner) = programs(workers, &host, Limits::default(), 0);
    let mut parts = Parts {
        generator: &mut Trivial,
        validator: &mut checker,
        executor: &mut runner,
        transaction: &mut Nothing,
        stages: &mut Unheard,
    };
    let call = Call { name: "bench".to_owned(), budgets: Budgets::default() };
    match call.run(&mut parts).0 {
        InternalOutcome::Ok { value, .. } if value == json!(3) => Ok(()),
        other => Err(format!("the attempt ended as {other:?}").into()),
    }
}

struct Trivial;

impl Generator for Trivial {
    type Artifact = Program;

    fn generate(&mut self, _: &Ask) -> Result<Program, ProviderError> {
        Ok(Program::new("ok(tool(\"add\")(a=1, b=2))"))
    }
}

struct Nothing;

impl Transaction for Nothing {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        Ok(0)
    }

    fn roll_back(&mut self, _: u32) -> Result<Restored, RollbackError> {
        Ok(Restored::default())
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        Ok(())
    }
}

struct Unheard;

impl Stages for Unheard {
    fn reached(&mut self, _: u32, _: Stage) -> Result<(), String> {
        Ok(())
    }

    fn ended(&mut self) -> Option<Ended> {
        None
    }
}

struct Adds;

impl Host for Adds {
    fn known(&self) -> Known {
        let description = "adds two numbers".to_owned();
        let add = Named { name: "add".to_owned(), description, external: false };
        Known { tools: vec![add], delegates: Vec::new() }
    }

    fn context(&self) -> Map<String, Value> {
        Map::new()
    }

    fn remember(&mut self, _: Map<String, Value>) {}

    fn call(&mut self, _: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        Ok(arguments.values().filter_map(Value::as_i64).sum::<i64>().into())
    }

    fn delegate(
        &mut self,
        _: &str,
        _: Map<String, Value>,
        _: u32,
    ) -> Result<InternalOutcome, CallError> {
        Err(CallError::Refused(Vec::new()))
    }

    fn forge(&mut self, _: Forged) -> Result<(), CallError> {
        Err(CallError::Refused(Vec::new()))
    }
}
