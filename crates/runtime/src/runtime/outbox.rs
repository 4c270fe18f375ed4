//! Messages for people: warnings, notifications, and reports that could not be written.

use std::path::Path;

use jackline_engine::Definition;

use crate::notify::{NotificationQueue, PersonNotification, take_failures};

/// The largest number of warnings in one answer.
const WARNINGS_MAX: usize = 16;

/// How often failed notifications are read.
const FAILURE_CHECK_MS: u64 = 1000;

/// Messages that wait until they are shown or sent.
#[derive(Default)]
pub(super) struct Outbox {
    notifications: NotificationQueue,
    warnings: Vec<String>,
    /// The reports that the last event could not write, and why.
    unwritten: Vec<String>,
    /// When failed notifications were last read.
    checked_at_ms: Option<u64>,
}

impl Outbox {
    pub(super) fn send_by(&mut self, notices: NotificationQueue) {
        self.notifications = notices;
    }

    pub(super) fn add_warning(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }

    pub(super) fn queue_notification(
        &mut self,
        definition: &Definition,
        notice: &PersonNotification,
    ) {
        self.notifications.add(definition, notice);
    }

    /// Warns about reports that could not be written, once for each reason. Every event tries
    /// again.
    pub(super) fn warn_unwritten(&mut self, failed: &[String]) {
        let new = failed.iter().filter(|reason| !self.unwritten.contains(*reason));
        let new: Vec<&String> = new.collect();
        for reason in new {
            self.add_warning(format!(
                "a report for people can't be written; the next event tries again: {reason}"
            ));
        }
        self.unwritten = failed.to_vec();
    }

    /// Why notifications could not be sent. This reads the file only from time to time.
    pub(super) fn take_failures(&mut self, home: Option<&Path>, now_ms: u64) -> Vec<String> {
        if self.checked_at_ms.is_some_and(|at| now_ms < at + FAILURE_CHECK_MS) {
            return Vec::new();
        }
        self.checked_at_ms = Some(now_ms);
        home.map(take_failures).unwrap_or_default()
    }

    /// Starts a process that sends the queued notifications.
    pub(super) fn send(&mut self, home: Option<&Path>) -> Result<(), String> {
        self.notifications.send(home)
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    pub(super) fn take_desktop(&mut self) -> Vec<PersonNotification> {
        self.notifications.take_desktop()
    }
}
