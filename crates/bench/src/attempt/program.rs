//! Measures the time of an attempt around a program that does almost nothing.

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use jackline_attempt::{
    AttemptBudgets, AttemptCall, CallParts, GenerationRequest, Generator, InternalOutcome,
    Interruption, ProviderError, RollbackError, RollbackResult, SnapshotError, Stage,
    StageObserver, Transaction,
};
use jackline_sandbox_host::{
    CallError, CallableSpec, Callables, GeneratedTool, ProgramHost, ProgramLimits, PythonProgram,
    Sandbox, WorkerPool, checker_and_runner,
};
use serde_json::{Map, Value, json};

use crate::BenchError;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const ROUNDS: usize = 1000;

/// Runs whole attempts: generate, check, run with one call, validate, commit. The parts around the
/// program do nothing, so that the rest is our own time.
pub(crate) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    let path = Some(jackline.with_file_name("jackline-sandbox"));
    let workers = WorkerPool::new(Sandbox { path });
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

fn attempt(workers: &WorkerPool) -> Result<(), BenchError> {
    let host = RefCell::new(AddingHost);
    let (mut checker, mut runner) = checker_and_runner(workers, &host, ProgramLimits::default(), 0);
    let mut parts = CallParts {
        generator: &mut FixedGenerator,
        validator: &mut checker,
        executor: &mut runner,
        transaction: &mut NoTransaction,
        stages: &mut SilentStages,
    };
    let call = AttemptCall { name: "bench".to_owned(), budgets: AttemptBudgets::default() };
    match call.run(&mut parts).0 {
        InternalOutcome::Ok { value, .. } if value == json!(3) => Ok(()),
        other => Err(format!("unexpected result of the attempt: {other:?}").into()),
    }
}

struct FixedGenerator;

impl Generator for FixedGenerator {
    type Artifact = PythonProgram;

    fn generate(&mut self, _: &GenerationRequest) -> Result<PythonProgram, ProviderError> {
        Ok(PythonProgram::new("ok(tool(\"add\")(a=1, b=2))"))
    }
}

struct NoTransaction;

impl Transaction for NoTransaction {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        Ok(0)
    }

    fn roll_back(&mut self, _: u32) -> Result<RollbackResult, RollbackError> {
        Ok(RollbackResult::default())
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        Ok(())
    }
}

struct SilentStages;

impl StageObserver for SilentStages {
    fn stage_reached(&mut self, _: u32, _: Stage) -> Result<(), String> {
        Ok(())
    }

    fn interruption(&mut self) -> Option<Interruption> {
        None
    }
}

struct AddingHost;

impl ProgramHost for AddingHost {
    fn callables(&self) -> Callables {
        let description = "adds two numbers".to_owned();
        let add = CallableSpec { name: "add".to_owned(), description, external: false };
        Callables { tools: vec![add], delegates: Vec::new() }
    }

    fn context(&self) -> Map<String, Value> {
        Map::new()
    }

    fn store_context(&mut self, _: Map<String, Value>) {}

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

    fn add_tool(&mut self, _: GeneratedTool) -> Result<(), CallError> {
        Err(CallError::Refused(Vec::new()))
    }
}
