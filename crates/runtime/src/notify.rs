//! Notifies a person who is needed.
//!
//! Notifications are created while an event is answered. A separate process sends them after the
//! answer, and nothing waits for it. A pause and a stop are notified once, when they begin, and not
//! again with every later event.

mod deliver;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jackline_engine::definition::{Notifier, Occasion};
use jackline_engine::verdict::{CompletionResult, GuardName, ViolationType};
use jackline_engine::{
    Decision, Definition, Event, EventKind, SessionId, StopProposed, Timestamp, ToolProposed,
    Verdict, Violation,
};
use serde::{Deserialize, Serialize};

pub use deliver::deliver;
pub(crate) use deliver::take_failures;

use crate::open_questions::approval_code;
use crate::redact::redact_text;

/// The largest number of queued notifications; further ones are only counted.
const QUEUED_MAX: usize = 16;

/// The largest number of sending processes at a time.
const SENDERS_MAX: usize = 4;

/// The longest text. The whole notification fits into one memory page, which a pipe accepts at
/// once.
const TEXT_CHARS_MAX: usize = 240;

/// The longest path.
const PATH_CHARS_MAX: usize = 400;

/// A message that a person should get now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonNotification {
    /// The occasion.
    pub event: Occasion,
    /// One line of text.
    pub text: String,
    /// The reason, if there is more to tell.
    pub why: Option<String>,
    /// The session id.
    pub session: String,
    /// The workspace of the session.
    pub workspace: Option<String>,
    /// The code by which the person answers a question.
    pub code: Option<String>,
    /// The time.
    pub at: Timestamp,
}

/// A notification with its receivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NotificationDelivery {
    notice: PersonNotification,
    command: Option<String>,
    webhook: Option<String>,
}

/// The work of a sending process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SendJob {
    /// The state home, where failures are stored.
    home: Option<PathBuf>,
    deliveries: Vec<NotificationDelivery>,
}

/// The notifications of a runtime that wait.
#[derive(Default)]
pub(crate) struct NotificationQueue {
    /// The program that sends notifications.
    program: Option<PathBuf>,
    /// Notifications for the client to show.
    desktop: Vec<PersonNotification>,
    waiting: Vec<NotificationDelivery>,
    dropped: u64,
    /// The sending processes that may still be running.
    senders: Vec<Child>,
}

impl NotificationQueue {
    pub(crate) fn with_program(program: PathBuf) -> Self {
        Self { program: Some(program), ..Self::default() }
    }

    /// Queues a notification for every receiver that the definition names for its occasion.
    pub(crate) fn add(&mut self, definition: &Definition, notice: &PersonNotification) {
        let receiver = |receiver: &&Notifier| receiver.on.contains(&notice.event);
        for receiver in definition.notify.iter().filter(receiver) {
            if receiver.desktop && self.desktop.len() < QUEUED_MAX && !self.desktop.contains(notice)
            {
                self.desktop.push(notice.clone());
            }
            // Commands and webhooks of a repository's definition are used only if a person has
            // trusted it.
            if !receiver.trusted || (receiver.command.is_none() && receiver.webhook.is_none()) {
                continue;
            }
            let (command, webhook) = (receiver.command.clone(), receiver.webhook.clone());
            let delivery = NotificationDelivery { notice: notice.clone(), command, webhook };
            if self.waiting.len() < QUEUED_MAX {
                self.waiting.push(delivery);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Takes the notifications that the client may show.
    pub(crate) fn take_desktop(&mut self) -> Vec<PersonNotification> {
        std::mem::take(&mut self.desktop)
    }

    /// Starts a process that sends the queue. Returns an error if notifications are lost.
    pub(crate) fn send(&mut self, home: Option<&Path>) -> Result<(), String> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.senders.retain_mut(|sender| matches!(sender.try_wait(), Ok(None)));
        if self.senders.len() >= SENDERS_MAX {
            return Ok(());
        }
        let deliveries = std::mem::take(&mut self.waiting);
        let dropped = std::mem::take(&mut self.dropped);
        let count = deliveries.len();
        let Some(program) = &self.program else {
            return Err(format!(
                "notifications were not sent: no program is set to send them ({count} lost)"
            ));
        };
        let post = SendJob { home: home.map(ToOwned::to_owned), deliveries };
        let sender = start_sender(program, &post).map_err(|error| {
            format!("notifications were not sent: can't run `{}`: {error}", program.display())
        })?;
        self.senders.push(sender);
        if dropped > 0 {
            return Err(format!(
                "{dropped} notifications were not sent, because the queue was full"
            ));
        }
        Ok(())
    }
}

/// Starts a sending process. It inherits none of our streams, so a program that waits for those
/// streams does not wait for it.
fn start_sender(program: &Path, post: &SendJob) -> io::Result<Child> {
    let bytes = serde_json::to_vec(post)?;
    let mut sender = Command::new(program);
    sender.arg("gate-notify").current_dir("/");
    sender.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut sender = sender.spawn()?;
    if let Some(mut stdin) = sender.stdin.take() {
        // The pipe holds about 40 KB, and the other process reads at once.
        let _ = stdin.write_all(&bytes);
    }
    Ok(sender)
}

/// The session, workspace and time of a notification.
pub(crate) struct NotificationContext<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) workspace: Option<&'a str>,
    pub(crate) at: Timestamp,
}

impl NotificationContext<'_> {
    /// The notification for a verdict, if a person should get one.
    pub(crate) fn for_verdict(
        &self,
        event: &Event,
        verdict: &Verdict,
        paused: bool,
    ) -> Option<PersonNotification> {
        let is_enforced = verdict.enforced == Some(true);
        let strongest = |decision| {
            let is_it = |found: &&Violation| found.enforced && found.decision == decision;
            verdict.violations.iter().find(is_it)
        };
        match (&event.kind, verdict.decision) {
            // A person needs no notification of their own command.
            (EventKind::Control(_), _) => None,
            (EventKind::SessionEnded(_), Decision::Allow) => {
                let code = verdict.stop.as_ref()?.to_string();
                Some(self.notification(
                    Occasion::Done,
                    &format!("the session has ended: {code}"),
                    None,
                ))
            }
            (_, Decision::Stop) if is_enforced => {
                let found =
                    strongest(Decision::Stop).filter(|it| it.kind != ViolationType::SessionOver)?;
                let code = verdict.stop.as_ref().map(ToString::to_string).unwrap_or_default();
                let text = format!("the session was stopped: {code}");
                Some(self.notification(Occasion::Stop, &text, Some(&found.message)))
            }
            (_, Decision::Pause) if is_enforced => {
                let begins = |it: &&Violation| {
                    it.decision == Decision::Pause && it.guard != GuardName::Pause
                };
                let found = verdict.violations.iter().find(begins)?;
                let text = "the session is paused and waits for you";
                Some(self.notification(Occasion::Pause, text, Some(&found.message)))
            }
            (EventKind::ToolProposed(ToolProposed { tool, .. }), Decision::Ask) if is_enforced => {
                let found = strongest(Decision::Ask)?;
                let what = found.location.as_deref().unwrap_or(tool.as_str());
                let code = approval_code(self.session, verdict.seq?);
                let text = format!("`{}` needs you: jackline allow {code}", shorten(what, 120));
                let notice = self.notification(Occasion::Ask, &text, Some(&found.message));
                Some(PersonNotification { code: Some(code), ..notice })
            }
            (EventKind::StopProposed(StopProposed { background: 0, .. }), _)
                if event.actor.is_main() && !paused =>
            {
                self.for_ended_turn(verdict)
            }
            _ => None,
        }
    }

    /// The notification for a turn that ended.
    fn for_ended_turn(&self, verdict: &Verdict) -> Option<PersonNotification> {
        if verdict.enforced == Some(true) && verdict.decision != Decision::Allow {
            return None;
        }
        let not_done = |why: &str| {
            let text = format!("the agent has stopped before the task was done: {why}");
            Some(self.notification(Occasion::Stop, &text, None))
        };
        match &verdict.completion {
            None => {
                let text = "the agent has stopped; no completion check is defined";
                Some(self.notification(Occasion::Done, text, None))
            }
            Some(CompletionResult::Complete) => {
                Some(self.notification(Occasion::Done, "the agent is done", None))
            }
            Some(CompletionResult::Capped { rounds, .. }) => {
                not_done(&format!("blocked {rounds} times"))
            }
            Some(CompletionResult::Unverified { reason }) => {
                not_done(&format!("not verified: {reason}"))
            }
            Some(CompletionResult::Bypassed { .. }) => not_done("its time or budget is used up"),
            Some(CompletionResult::Incomplete { .. }) => {
                not_done("the task is incomplete, and the check only observes")
            }
        }
    }

    /// The notification for a broken guard.
    pub(crate) fn for_broken_guard(&self, reason: &str) -> PersonNotification {
        let text = "the guard is broken, and no call runs until it is fixed";
        self.notification(Occasion::GuardBroken, text, Some(reason))
    }

    /// The notification for a definition that no longer loads, while an older one is in force.
    pub(crate) fn for_outdated_definition(&self, reason: &str) -> PersonNotification {
        let text = "the definition does not load; the last good one is in force";
        self.notification(Occasion::GuardBroken, text, Some(reason))
    }

    fn notification(&self, event: Occasion, text: &str, why: Option<&str>) -> PersonNotification {
        let clean = |text: &str| {
            shorten(&redact_text(text).unwrap_or_else(|| text.to_owned()), TEXT_CHARS_MAX)
        };
        PersonNotification {
            event,
            text: clean(text),
            why: why.map(clean),
            session: self.session.to_string(),
            workspace: self.workspace.map(|path| shorten(path, PATH_CHARS_MAX)),
            code: None,
            at: self.at,
        }
    }
}

/// Makes a text one line without control characters, and cuts it to a length.
fn shorten(text: &str, chars: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut cut: String = plain.clone().take(chars).collect();
    if plain.count() > chars {
        cut.pop();
        cut.push('…');
    }
    cut
}
