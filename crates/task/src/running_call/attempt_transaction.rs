//! The transaction of an attempt: its files, its context and its generated tools stay open until
//! the attempt is committed or rolled back. The engine keeps the state of policies itself.

use crate::registry::RegistryOverlay;
use jackline_attempt::{RollbackError, RollbackResult, SnapshotError, Transaction};
use jackline_host::clock::now;
use jackline_workspace::undo::{self, UndoError};

use crate::attempt_event::AttemptEventKind;
use crate::program_contexts::ProgramContexts;
use crate::running_call::RunningCall;

pub(super) struct AttemptTransaction<'a, 's, 'r> {
    calling: &'a RunningCall<'s, 'r>,
    open: Option<OpenAttempt<'r>>,
}

/// An open attempt, with the state before it.
struct OpenAttempt<'r> {
    number: u32,
    contexts: ProgramContexts,
    overlay: RegistryOverlay<'r>,
    /// How many commands had run before.
    commands: usize,
    /// Whether the workspace was committed, so that a rollback has to use the undo log.
    is_closed: bool,
}

impl<'a, 's, 'r> AttemptTransaction<'a, 's, 'r> {
    pub(super) fn new(calling: &'a RunningCall<'s, 'r>) -> Self {
        Self { calling, open: None }
    }
}

impl Transaction for AttemptTransaction<'_, '_, '_> {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        let started = now().boot_ms;
        let shared = self.calling.shared;
        let Some(number) = self.calling.open_attempt.get() else {
            return Err(SnapshotError("the attempt is not open in its session".to_owned()));
        };
        let begun = shared.workspace.begin_attempt(&shared.undo_log(number));
        begun.map_err(|error| {
            let text = format!("the attempt can't start, because it could not be undone: {error}");
            self.calling.emit(AttemptEventKind::Notification { text });
            SnapshotError(error.to_string())
        })?;
        self.open = Some(OpenAttempt {
            number,
            contexts: shared.contexts.borrow().clone(),
            overlay: shared.overlay.borrow().clone(),
            commands: shared.command_effects.borrow().len(),
            is_closed: false,
        });
        Ok(now().boot_ms.saturating_sub(started))
    }

    fn roll_back(&mut self, _: u32) -> Result<RollbackResult, RollbackError> {
        let started = now().boot_ms;
        let shared = self.calling.shared;
        let Some(open) = self.open.take() else { return Ok(RollbackResult::default()) };
        shared.contexts.replace(open.contexts);
        shared.overlay.replace(open.overlay);
        let not_undoable = shared.command_effects.borrow_mut().split_off(open.commands);
        let undone = if open.is_closed {
            undo::roll_back(&shared.undo_log(open.number))
        } else {
            shared.workspace.roll_back_attempt()
        };
        if self.calling.depth == 0 {
            shared.record_tool_uses();
        }
        let undone = undone.map_err(|error| self.stop_session(open.number, &error))?;
        let commands_stay = not_undoable.iter().any(|effect| !effect.is_only_outside);
        self.calling.rolled_back_partly.set(commands_stay || !undone.changed_since.is_empty());
        let not_undoable: Vec<String> = not_undoable.iter().map(ToString::to_string).collect();
        self.calling.emit(AttemptEventKind::RolledBack {
            restored: undone.restored,
            kept: undone.changed_since.clone(),
            not_undoable: not_undoable.clone(),
        });
        let ms = now().boot_ms.saturating_sub(started);
        Ok(RollbackResult { ms, kept: undone.changed_since, not_undoable })
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        let shared = self.calling.shared;
        let Some(open) = &mut self.open else { return Ok(()) };
        let failed = |error: String| RollbackError(error);
        open.is_closed = true;
        shared.workspace.commit_attempt().map_err(|error| failed(error.to_string()))?;
        let mut tools = Vec::new();
        // The tools of a delegate are committed with the attempt around it.
        if self.calling.depth == 0 {
            let at = now().wall;
            let committed = shared.overlay.borrow_mut().commit(at);
            let committed = committed.map_err(|error| failed(error.to_string()))?;
            tools = committed.stored;
            shared.record_tool_uses();
            shared.command_effects.borrow_mut().clear();
        }
        let plan = undo::plan_undo(&shared.undo_log(open.number));
        let mut files: Vec<String> =
            plan.into_iter().flat_map(|plan| plan.steps).map(|step| step.path).collect();
        files.reverse();
        if self.calling.depth > 0 {
            // The log of the surrounding attempt contains these changes, and is the one to undo.
            let _ = std::fs::remove_dir_all(shared.undo_log(open.number));
        }
        self.calling.emit(AttemptEventKind::Committed { files, tools });
        self.open = None;
        Ok(())
    }
}

impl AttemptTransaction<'_, '_, '_> {
    /// Stops the session, because the state of the files is not certain.
    fn stop_session(&self, number: u32, error: &UndoError) -> RollbackError {
        let reason = error.to_string();
        let shared = self.calling.shared;
        shared.rollback_failure.borrow_mut().get_or_insert_with(|| reason.clone());
        shared.front.borrow_mut().record_rollback_failure(number, &reason);
        self.calling.open_attempt.set(None);
        self.calling.emit(AttemptEventKind::NotRolledBack { reason: reason.clone() });
        RollbackError(reason)
    }
}
