//! What people should know: warnings, notices, reports that could not be written.

use std::path::Path;

use jackline_engine::Definition;

use crate::notify::{Notice, Notices, take_undelivered};

/// How many warnings one answer carries.
const WARNINGS_MAX: usize = 16;

/// How often it looks for notices that could not be sent.
const UNDELIVERED_MS: u64 = 1000;

/// What waits to be shown or sent.
#[derive(Default)]
pub(super) struct Outbox {
    notices: Notices,
    warnings: Vec<String>,
    /// Which reports could not be written with the last event that wanted some, and why.
    unwritten: Vec<String>,
    /// When it last looked for notices that could not be sent.
    looked_at_ms: Option<u64>,
}

impl Outbox {
    pub(super) fn send_by(&mut self, notices: Notices) {
        self.notices = notices;
    }

    pub(super) fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }

    pub(super) fn notify(&mut self, definition: &Definition, notice: &Notice) {
        self.notices.add(definition, notice);
    }

    /// Warns that reports for people could not be written, once for each reason: each is
    /// tried again at every event.
    pub(super) fn warn_unwritten(&mut self, failed: &[String]) {
        let new = failed.iter().filter(|reason| !self.unwritten.contains(*reason));
        let new: Vec<&String> = new.collect();
        for reason in new {
            self.warn(format!(
                "a report for people can't be written, and is tried again with the next event: {reason}"
            ));
        }
        self.unwritten = failed.to_vec();
    }

    /// Why notices could not be sent. It looks now and then.
    pub(super) fn undelivered(&mut self, home: Option<&Path>, now_ms: u64) -> Vec<String> {
        if self.looked_at_ms.is_some_and(|at| now_ms < at + UNDELIVERED_MS) {
            return Vec::new();
        }
        self.looked_at_ms = Some(now_ms);
        home.map(take_undelivered).unwrap_or_default()
    }

    /// Starts a process that sends what waits; says why there is none.
    pub(super) fn send(&mut self, home: Option<&Path>) -> Result<(), String> {
        self.notices.send(home)
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    pub(super) fn take_desktop(&mut self) -> Vec<Notice> {
        self.notices.take()
    }
}
