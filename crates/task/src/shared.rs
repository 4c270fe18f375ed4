//! What a call and its delegates share.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use crate::registry::{Overlay, Registry};
use jackline_attempt::{HealthLimits, Violation};
use jackline_engine::Digest;
use jackline_engine::definition::Budgets;
use jackline_engine::verdict::{Class, ViolationSubtype, ViolationType};
use jackline_journal::FileStore;
use jackline_sandbox_host::{Ending, Limits, Workers};
use jackline_workspace::Workspace;

use crate::context::Contexts;
use crate::task_front::TaskFront;
use crate::told::Told;

/// What a call and its delegates share. What changes is borrowed for a moment, never while
/// a program runs.
pub(crate) struct Shared<'r> {
    pub(crate) front: RefCell<TaskFront<'r>>,
    pub(crate) workspace: &'r Workspace,
    pub(crate) registry: &'r Registry,
    pub(crate) overlay: RefCell<Overlay<'r>>,
    pub(crate) contexts: RefCell<Contexts>,
    pub(crate) workers: Workers,
    pub(crate) limits: Limits,
    pub(crate) budgets: Budgets,
    pub(crate) health: HealthLimits,
    /// The directory of the session in the state home.
    pub(crate) directory: PathBuf,
    pub(crate) session: String,
    pub(crate) store: FileStore,
    pub(crate) definition: Option<PathBuf>,
    /// How many attempts and calls there were so far.
    pub(crate) attempts: Cell<u32>,
    pub(crate) calls: Cell<u32>,
    /// Uses of forged tools that are not written down yet, with what came of them.
    pub(crate) uses: RefCell<Vec<(String, Digest, Option<String>)>>,
    /// What commands did in attempts which are open, and can't be undone.
    pub(crate) commands: RefCell<Vec<String>>,
    /// Which file is in which state, where an attempt could not be undone.
    pub(crate) stuck: RefCell<Option<String>>,
    pub(crate) ending: Ending,
    pub(crate) hear: RefCell<&'r mut dyn FnMut(&Told)>,
}

impl Shared<'_> {
    /// Where the undo log of an attempt is.
    pub(crate) fn undo(&self, number: u32) -> PathBuf {
        self.directory.join("undo").join(number.to_string())
    }

    pub(crate) fn next_attempt(&self) -> u32 {
        self.attempts.set(self.attempts.get() + 1);
        self.attempts.get()
    }

    pub(crate) fn next_call(&self) -> String {
        self.calls.set(self.calls.get() + 1);
        format!("k{}", self.calls.get())
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.ending.is_now()
    }

    /// Why no further call may run, if that is so.
    pub(crate) fn stuck(&self) -> Option<Violation> {
        let reason = self.stuck.borrow().clone()?;
        Some(Violation {
            class: Class::Terminal,
            kind: ViolationType::SystemError,
            subtype: ViolationSubtype::RollbackFailed,
            message: reason,
            location: None,
            correction: "A person has to look at the files first.".to_owned(),
        })
    }

    /// Writes down how forged tools did, whatever became of the attempt that used them.
    pub(crate) fn write_uses(&self) {
        for (name, version, error_type) in self.uses.take() {
            let at = jackline_host::clock::now().wall;
            let error_type = error_type.as_deref();
            // Health is an observation; a registry that takes none is said when it is used.
            let _ = self.registry.used(&name, &version, error_type, &self.health, at);
        }
    }
}
