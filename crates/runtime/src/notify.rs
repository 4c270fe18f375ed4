//! Telling a person that they are needed.
//!
//! Notices are made while an event is answered, and cost it nothing: they are
//! sent once the answer is out, by a process of its own that nobody waits for.
//! What is said once is not said with every further event: a pause and an end
//! are told when they begin.

mod deliver;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jackline_engine::definition::{Notifier, Occasion};
use jackline_engine::verdict::{Completion, GuardName, ViolationType};
use jackline_engine::{
    Decision, Definition, Event, EventKind, SessionId, StopProposed, Timestamp, ToolProposed,
    Verdict, Violation,
};
use serde::{Deserialize, Serialize};

pub use deliver::deliver;
pub(crate) use deliver::take_undelivered;

use crate::asks::ask_code;
use crate::redact::redact_text;

/// How many notices wait to be sent; further ones are counted.
const WAITING_MAX: usize = 16;

/// How many processes that send are left to themselves at a time.
const SENDERS_MAX: usize = 4;

/// How long a text is. With everything else a notice fits into one page, which
/// a pipe takes at once.
const TEXT_CHARS_MAX: usize = 240;

/// How long a path is.
const PATH_CHARS_MAX: usize = 400;

/// Something a person should know now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What it is about.
    pub event: Occasion,
    /// One line for people.
    pub text: String,
    /// Why, where there is more to say.
    pub why: Option<String>,
    /// The session.
    pub session: String,
    /// Where the agent works.
    pub workspace: Option<String>,
    /// By which the person answers an ask.
    pub code: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A notice and the way it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Delivery {
    notice: Notice,
    command: Option<String>,
    webhook: Option<String>,
}

/// What a process that sends has to do.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Post {
    /// Where failures are left.
    home: Option<PathBuf>,
    deliveries: Vec<Delivery>,
}

/// The notices of a runtime, until they are taken and sent.
#[derive(Default)]
pub(crate) struct Notices {
    /// The program that sends.
    program: Option<PathBuf>,
    /// For the client's own terminal.
    desktop: Vec<Notice>,
    waiting: Vec<Delivery>,
    dropped: u64,
    /// The processes that send and were at work last.
    senders: Vec<Child>,
}

impl Notices {
    pub(crate) fn by(program: PathBuf) -> Self {
        Self { program: Some(program), ..Self::default() }
    }

    /// Keeps a notice for everybody whom a definition tells of it.
    pub(crate) fn add(&mut self, definition: &Definition, notice: &Notice) {
        let told = |told: &&Notifier| told.on.contains(&notice.event);
        for told in definition.notify.iter().filter(told) {
            if told.desktop && self.desktop.len() < WAITING_MAX && !self.desktop.contains(notice) {
                self.desktop.push(notice.clone());
            }
            // What a repository wants to run waits for a person's trust.
            if !told.trusted || (told.command.is_none() && told.webhook.is_none()) {
                continue;
            }
            let (command, webhook) = (told.command.clone(), told.webhook.clone());
            let delivery = Delivery { notice: notice.clone(), command, webhook };
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push(delivery);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// What the client may show by itself, since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.desktop)
    }

    /// Starts a process that sends what waits; says why there is none.
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
            return Err(format!("nobody was told: no program sends notices ({count} waited)"));
        };
        let post = Post { home: home.map(ToOwned::to_owned), deliveries };
        let sender = start(program, &post).map_err(|error| {
            format!("nobody was told: can't run `{}`: {error}", program.display())
        })?;
        self.senders.push(sender);
        if dropped > 0 {
            return Err(format!("{dropped} notices too many were not sent"));
        }
        Ok(())
    }
}

/// Starts a process that sends. It holds none of our streams, so nobody who
/// waits for those waits for it.
fn start(program: &Path, post: &Post) -> io::Result<Child> {
    let bytes = serde_json::to_vec(post)?;
    let mut sender = Command::new(program);
    sender.arg("notify").current_dir("/");
    sender.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut sender = sender.spawn()?;
    if let Some(mut stdin) = sender.stdin.take() {
        // Room for some forty kilobytes, and the other end reads at once.
        let _ = stdin.write_all(&bytes);
    }
    Ok(sender)
}

/// Where and when something happened.
pub(crate) struct Happened<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) workspace: Option<&'a str>,
    pub(crate) at: Timestamp,
}

impl Happened<'_> {
    /// What a person should know of a verdict.
    pub(crate) fn notice(&self, event: &Event, verdict: &Verdict, paused: bool) -> Option<Notice> {
        let holds = verdict.enforced == Some(true);
        let strongest = |decision| {
            let is_it = |found: &&Violation| found.enforced && found.decision == decision;
            verdict.violations.iter().find(is_it)
        };
        match (&event.kind, verdict.decision) {
            // A person knows what they said themselves.
            (EventKind::Control(_), _) => None,
            (EventKind::SessionEnded(_), Decision::Allow) => {
                let code = verdict.stop.as_ref()?.to_string();
                Some(self.of(Occasion::Done, &format!("the session has ended: {code}"), None))
            }
            (_, Decision::Stop) if holds => {
                let found =
                    strongest(Decision::Stop).filter(|it| it.kind != ViolationType::SessionOver)?;
                let code = verdict.stop.as_ref().map(ToString::to_string).unwrap_or_default();
                let text = format!("the session was stopped: {code}");
                Some(self.of(Occasion::Stop, &text, Some(&found.message)))
            }
            (_, Decision::Pause) if holds => {
                let begins = |it: &&Violation| {
                    it.decision == Decision::Pause && it.guard != GuardName::Pause
                };
                let found = verdict.violations.iter().find(begins)?;
                let text = "the session is paused, and waits for you";
                Some(self.of(Occasion::Pause, text, Some(&found.message)))
            }
            (EventKind::ToolProposed(ToolProposed { tool, .. }), Decision::Ask) if holds => {
                let found = strongest(Decision::Ask)?;
                let what = found.location.as_deref().unwrap_or(tool.as_str());
                let code = ask_code(self.session, verdict.seq?);
                let text = format!("`{}` needs you: jackline allow {code}", short(what, 120));
                let notice = self.of(Occasion::Ask, &text, Some(&found.message));
                Some(Notice { code: Some(code), ..notice })
            }
            (EventKind::StopProposed(StopProposed { background: 0, .. }), _)
                if event.actor.is_main() && !paused =>
            {
                self.ended(verdict)
            }
            _ => None,
        }
    }

    /// A turn that came to its end, as done or not.
    fn ended(&self, verdict: &Verdict) -> Option<Notice> {
        if verdict.enforced == Some(true) && verdict.decision != Decision::Allow {
            return None;
        }
        let not_done = |why: &str| {
            let text = format!("the agent has stopped, and not as done: {why}");
            Some(self.of(Occasion::Stop, &text, None))
        };
        match &verdict.completion {
            None => {
                let text = "the agent has stopped; nothing checked what it did";
                Some(self.of(Occasion::Done, text, None))
            }
            Some(Completion::Complete) => Some(self.of(Occasion::Done, "the agent is done", None)),
            Some(Completion::Capped { rounds, .. }) => not_done(&format!("blocked {rounds} times")),
            Some(Completion::Unverified { reason }) => not_done(&format!("unverified, {reason}")),
            Some(Completion::Bypassed { .. }) => not_done("its time or its budget is used up"),
            Some(Completion::Incomplete { .. }) => not_done("it is incomplete, and only observed"),
        }
    }

    /// A guard that can't answer.
    pub(crate) fn broken(&self, reason: &str) -> Notice {
        let text = "the guard is broken, and nothing runs until it is mended";
        self.of(Occasion::GuardBroken, text, Some(reason))
    }

    /// A definition that no longer loads, while an older one is in force.
    pub(crate) fn outdated(&self, reason: &str) -> Notice {
        let text = "the definition does not load; the last good one is in force";
        self.of(Occasion::GuardBroken, text, Some(reason))
    }

    fn of(&self, event: Occasion, text: &str, why: Option<&str>) -> Notice {
        let clean = |text: &str| {
            short(&redact_text(text).unwrap_or_else(|| text.to_owned()), TEXT_CHARS_MAX)
        };
        Notice {
            event,
            text: clean(text),
            why: why.map(clean),
            session: self.session.to_string(),
            workspace: self.workspace.map(|path| short(path, PATH_CHARS_MAX)),
            code: None,
            at: self.at,
        }
    }
}

/// One line, made harmless and cut to a length.
fn short(text: &str, chars: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut cut: String = plain.clone().take(chars).collect();
    if plain.count() > chars {
        cut.pop();
        cut.push('…');
    }
    cut
}
