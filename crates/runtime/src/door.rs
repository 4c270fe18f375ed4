//! The panic guard of adapters that answer many events in one process: a panic becomes a denial.
//!
//! Hooks have their own panic guard, around everything that the process does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::answer::{AnswerSubject, RuntimeAnswer};
use crate::runtime::{EventRequest, Runtime, RuntimeFault};

impl Runtime {
    /// Answers an event, and denies it if the runtime panics.
    pub fn answer_safely(&mut self, request: impl Into<EventRequest>) -> RuntimeAnswer {
        let request = request.into();
        let about = AnswerSubject::from_event(&request.event);
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        answered.unwrap_or_else(|panic| {
            self.forget_sessions();
            let fault = RuntimeFault::Panic(panic_text(panic.as_ref()));
            self.note_fault(&fault);
            // Finding out which people to notify may panic too, because it may use the broken part.
            let _ = catch_unwind(AssertUnwindSafe(|| self.notify_broken(&about, &fault)));
            self.broken(about, &fault)
        })
    }
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}
