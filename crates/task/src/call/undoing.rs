//! What an attempt changes, held until it is known whether that stays: files, what is
//! remembered, and tools. What policies know is the engine's matter.

use crate::registry::Overlay;
use jackline_attempt::{Restored, RollbackError, SnapshotError, Transaction};
use jackline_host::clock::now;
use jackline_workspace::undo::{self, UndoError};

use crate::call::Calling;
use crate::context::Contexts;
use crate::told::What;

pub(super) struct Undoing<'a, 's, 'r> {
    calling: &'a Calling<'s, 'r>,
    open: Option<Open<'r>>,
}

/// An attempt that is under way, with how things were before.
struct Open<'r> {
    number: u32,
    contexts: Contexts,
    overlay: Overlay<'r>,
    /// How many commands had run.
    commands: usize,
    /// Whether its files are done with, so that they are undone by their log.
    is_closed: bool,
}

impl<'a, 's, 'r> Undoing<'a, 's, 'r> {
    pub(super) fn new(calling: &'a Calling<'s, 'r>) -> Self {
        Self { calling, open: None }
    }
}

impl Transaction for Undoing<'_, '_, '_> {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        let started = now().boot_ms;
        let shared = self.calling.shared;
        let Some(number) = self.calling.open.get() else {
            return Err(SnapshotError("the attempt is not open in its session".to_owned()));
        };
        let begun = shared.workspace.begin(&shared.undo(number));
        begun.map_err(|error| {
            let text = format!("the attempt could not be undone, so it is not begun: {error}");
            self.calling.tell(What::Aside { text });
            SnapshotError(error.to_string())
        })?;
        self.open = Some(Open {
            number,
            contexts: shared.contexts.borrow().clone(),
            overlay: shared.overlay.borrow().clone(),
            commands: shared.commands.borrow().len(),
            is_closed: false,
        });
        Ok(now().boot_ms.saturating_sub(started))
    }

    fn roll_back(&mut self, _: u32) -> Result<Restored, RollbackError> {
        let started = now().boot_ms;
        let shared = self.calling.shared;
        let Some(open) = self.open.take() else { return Ok(Restored::default()) };
        shared.contexts.replace(open.contexts);
        shared.overlay.replace(open.overlay);
        let not_undoable = shared.commands.borrow_mut().split_off(open.commands);
        let undone = if open.is_closed {
            undo::roll_back(&shared.undo(open.number))
        } else {
            shared.workspace.roll_back()
        };
        if self.calling.depth == 0 {
            shared.write_uses();
        }
        let undone = undone.map_err(|error| self.stuck(open.number, &error))?;
        self.calling.tell(What::RolledBack {
            restored: undone.restored,
            kept: undone.kept.clone(),
            not_undoable: not_undoable.clone(),
        });
        let ms = now().boot_ms.saturating_sub(started);
        Ok(Restored { ms, kept: undone.kept, not_undoable })
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        let shared = self.calling.shared;
        let Some(open) = &mut self.open else { return Ok(()) };
        let failed = |error: String| RollbackError(error);
        open.is_closed = true;
        shared.workspace.commit().map_err(|error| failed(error.to_string()))?;
        let mut tools = Vec::new();
        // What a delegate forged stays with the attempt around it.
        if self.calling.depth == 0 {
            let at = now().wall;
            let committed = shared.overlay.borrow_mut().commit(at);
            let committed = committed.map_err(|error| failed(error.to_string()))?;
            tools = committed.kept;
            shared.write_uses();
            shared.commands.borrow_mut().clear();
        }
        let plan = undo::plan(&shared.undo(open.number));
        let mut files: Vec<String> =
            plan.into_iter().flat_map(|plan| plan.steps).map(|step| step.path).collect();
        files.reverse();
        if self.calling.depth > 0 {
            // The log of the attempt around it tells of all this, and is the one that is undone.
            let _ = std::fs::remove_dir_all(shared.undo(open.number));
        }
        self.calling.tell(What::Committed { files, tools });
        self.open = None;
        Ok(())
    }
}

impl Undoing<'_, '_, '_> {
    /// Nothing goes on where nobody knows how files are.
    fn stuck(&self, number: u32, error: &UndoError) -> RollbackError {
        let reason = error.to_string();
        let shared = self.calling.shared;
        shared.stuck.borrow_mut().get_or_insert_with(|| reason.clone());
        shared.front.borrow_mut().stuck(number, &reason);
        self.calling.open.set(None);
        self.calling.tell(What::NotRolledBack { reason: reason.clone() });
        RollbackError(reason)
    }
}
