//! The artifact: a program that a model wrote, and what checks and runs it.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::checker::Checker;
use crate::host::Host;
use crate::limits::Limits;
use crate::ran::Ran;
use crate::runner::Runner;
use crate::workers::Workers;

/// A program that a model wrote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Its text, in Python.
    pub source: String,
    /// What it is called with, which a forged tool finds in `arguments`.
    pub arguments: Map<String, Value>,
}

impl Program {
    /// A program that is called with nothing.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), arguments: Map::new() }
    }
}

/// What checks and what runs the programs of a host, the two of one call.
pub fn programs<'h>(
    workers: &Workers,
    host: &'h RefCell<dyn Host + 'h>,
    limits: Limits,
    depth: u32,
) -> (Checker<'h>, Runner<'h>) {
    let ran = Rc::new(RefCell::new(Ran::default()));
    let checker = Checker { workers: workers.clone(), host, limits, ran: Rc::clone(&ran) };
    let runner = Runner { workers: workers.clone(), host, limits, depth, ran };
    (checker, runner)
}

impl Runner<'_> {
    /// How the last program ran.
    pub fn ran(&self) -> Ran {
        self.ran.borrow().clone()
    }
}
