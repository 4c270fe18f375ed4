//! The door of adapters that answer many events in one process: a panic becomes a denial.
//!
//! Hooks have a door of their own, around everything that one process does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::answer::{About, Answer};
use crate::runtime::{Fault, Request, Runtime};

impl Runtime {
    /// Answers an event, and denies it where the runtime panics.
    pub fn answer_safely(&mut self, request: impl Into<Request>) -> Answer {
        let request = request.into();
        let about = About::of(&request.event);
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        answered.unwrap_or_else(|panic| {
            self.forget();
            let fault = Fault::Panic(panic_text(panic.as_ref()));
            self.note_fault(&fault);
            // Which people to tell is asked of what may be what broke.
            let _ = catch_unwind(AssertUnwindSafe(|| self.notify_broken(&about, &fault)));
            self.broken(about, &fault)
        })
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}
