//! The state that a call and its delegates share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::PathBuf;

use crate::registry::{Registry, RegistryOverlay};
use jackline_attempt::{AttemptViolation, CallPressure, HealthLimits, ValidationResult};
use jackline_engine::Digest;
use jackline_engine::definition::AttemptBudgets;
use jackline_engine::verdict::{ViolationClass, ViolationSubtype, ViolationType};
use jackline_journal::FileStore;
use jackline_sandbox_host::{ProgramCancel, ProgramLimits, WorkerPool};
use jackline_workspace::Workspace;

use crate::attempt_event::AttemptEvent;
use crate::program_contexts::ProgramContexts;
use crate::task_front::TaskFront;

/// The state that a call and its delegates share. Cells are borrowed for short moments only, never
/// while a program runs.
pub(crate) struct CallTreeState<'r> {
    pub(crate) front: RefCell<TaskFront<'r>>,
    pub(crate) workspace: &'r Workspace,
    pub(crate) registry: &'r Registry,
    pub(crate) overlay: RefCell<RegistryOverlay<'r>>,
    pub(crate) contexts: RefCell<ProgramContexts>,
    pub(crate) workers: WorkerPool,
    pub(crate) limits: ProgramLimits,
    pub(crate) budgets: AttemptBudgets,
    pub(crate) health: HealthLimits,
    /// Which tasks and delegates used all their retries again and again.
    pub(crate) pressure: RefCell<CallPressure>,
    /// The session directory in the state home.
    pub(crate) directory: PathBuf,
    pub(crate) session: String,
    pub(crate) store: FileStore,
    pub(crate) definition: Option<PathBuf>,
    /// How many attempts and calls there were so far.
    /// Whether the calls belong to a run, which has a public outcome of its own.
    pub(crate) is_run: bool,
    pub(crate) attempts: Cell<u32>,
    pub(crate) calls: Cell<u32>,
    /// Uses of generated tools that are not recorded yet, with the error type of each.
    pub(crate) tool_uses: RefCell<Vec<(String, Digest, Option<String>)>>,
    /// Effects of commands in open attempts that can't be undone.
    pub(crate) command_effects: RefCell<Vec<CommandEffect>>,
    /// The state of the files, if an attempt could not be undone.
    pub(crate) rollback_failure: RefCell<Option<String>>,
    pub(crate) cancel: ProgramCancel,
    pub(crate) observer: RefCell<&'r mut dyn FnMut(&AttemptEvent)>,
}

/// The effect of a command that a rollback can't undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandEffect {
    /// The command line, shortened.
    pub(crate) line: String,
    /// Whether the changes in the workspace can be undone, so that only others stay.
    pub(crate) is_only_outside: bool,
}

impl fmt::Display for CommandEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = if self.is_only_outside { " outside the workspace" } else { "" };
        write!(f, "effects of the command `{}`{scope}", self.line)
    }
}

impl CallTreeState<'_> {
    /// The undo log directory of an attempt.
    pub(crate) fn undo_log(&self, number: u32) -> PathBuf {
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
        self.cancel.is_cancelled()
    }

    /// The violation for every further call, if an attempt could not be undone.
    pub(crate) fn rollback_failure(&self) -> Option<AttemptViolation> {
        let reason = self.rollback_failure.borrow().clone()?;
        Some(AttemptViolation {
            validation_result: ValidationResult::Failed,
            class: ViolationClass::Terminal,
            kind: ViolationType::SystemError,
            subtype: ViolationSubtype::RollbackFailed,
            message: reason,
            location: None,
            correction: "A person has to look at the files first.".to_owned(),
        })
    }

    /// Records the uses of generated tools, whether the attempt that used them succeeded or not.
    pub(crate) fn record_tool_uses(&self) {
        for (name, version, error_type) in self.tool_uses.take() {
            let at = jackline_host::clock::now().wall;
            let error_type = error_type.as_deref();
            // The statistics are best effort. A registry that can't be written fails at its next
            // use.
            let _ = self.registry.record_use(&name, &version, error_type, &self.health, at);
        }
    }
}
