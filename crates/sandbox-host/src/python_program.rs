//! The artifact: a program that a model wrote, with its checker and its runner.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::program_checker::ProgramChecker;
use crate::program_host::ProgramHost;
use crate::program_limits::ProgramLimits;
use crate::program_run::ProgramRun;
use crate::program_runner::ProgramRunner;
use crate::worker_pool::WorkerPool;

/// A program that a model wrote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PythonProgram {
    /// The source, in Python.
    pub source: String,
    /// The arguments, which a generated tool reads from `arguments`.
    pub arguments: Map<String, Value>,
}

impl PythonProgram {
    /// A program without arguments.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), arguments: Map::new() }
    }
}

/// The checker and the runner for the programs of one call.
pub fn checker_and_runner<'h>(
    workers: &WorkerPool,
    host: &'h RefCell<dyn ProgramHost + 'h>,
    limits: ProgramLimits,
    depth: u32,
) -> (ProgramChecker<'h>, ProgramRunner<'h>) {
    let ran = Rc::new(RefCell::new(ProgramRun::default()));
    let checker =
        ProgramChecker { workers: workers.clone(), host, limits, last_run: Rc::clone(&ran) };
    let runner = ProgramRunner { workers: workers.clone(), host, limits, depth, last_run: ran };
    (checker, runner)
}

impl ProgramRunner<'_> {
    /// A record of the last run.
    pub fn last_run(&self) -> ProgramRun {
        self.last_run.borrow().clone()
    }
}
