//! From the client to the server: everything as it is, but no call that was not let run.

use jackline_engine::Status;
use serde_json::value::RawValue;

use super::errors::Failure;
use super::ledger::{Entered, Open, What};
use super::lines::{Read, id_in_ends};
use super::message::{Cancelled, Id, LISTENS, Line, Message, STATELESS};
use super::server::lock;
use super::shared::{Job, Ruled, Shared, Want};
use crate::params::Params;

/// The client's part of the work.
pub(super) struct ToServer<'a> {
    pub(super) shared: &'a Shared,
}

/// What is done with one message.
enum Step<'a> {
    /// It is sent.
    Send(&'a RawValue),
    /// It is sent, and answered.
    Ask(&'a RawValue, Open),
    /// It is sent if the guard lets it.
    Call(&'a RawValue, Want),
    /// It is answered without the server.
    Answer(String),
}

impl ToServer<'_> {
    /// The client has said something, or nothing more. Says whether the server was sent a
    /// call.
    pub(super) fn heard(&self, read: Read) -> bool {
        match read {
            Read::Line(line) => return self.line(line),
            Read::TooLong { head, tail, bytes } => {
                let id = id_in_ends(&head, &tail).as_ref().and_then(Id::of);
                let failure = Failure::LineTooLong { bytes };
                self.shared.emit(failure.answer(id.as_ref()).into_bytes());
            }
            Read::End => self.shared.send(Job::Leave),
        }
        false
    }

    fn line(&self, line: Vec<u8>) -> bool {
        if line.iter().all(u8::is_ascii_whitespace) {
            return false;
        }
        let parsed = std::str::from_utf8(&line).ok().and_then(Line::parse);
        let Some(Line { messages, batch }) = parsed else {
            self.shared.emit(Failure::NoMessage.answer(None).into_bytes());
            return false;
        };
        let steps: Vec<Step<'_>> =
            messages.iter().map(|(raw, message)| self.step(raw, message)).collect();
        let count = steps.len();
        let calls = steps.iter().any(|step| matches!(step, Step::Call(..)));
        let (sent, answers) = self.carry_out(steps);
        let waits = !sent.is_empty();
        if sent.len() == count {
            self.shared.forward(line);
        } else if waits {
            self.shared.forward(joined(&sent, batch));
        }
        if !answers.is_empty() {
            let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
            self.shared.emit(joined(&answers, batch));
        }
        if calls {
            self.shared.tell();
        }
        calls && waits
    }

    fn step<'a>(&self, raw: &'a RawValue, message: &Message<'_>) -> Step<'a> {
        let Some(method) = message.method.as_deref() else { return Step::Send(raw) };
        let calls = method == "tools/call";
        let Some(id) = message.asks() else {
            if message.id.is_some() {
                return Step::Answer(Failure::BadId.answer(None));
            }
            if calls {
                return Step::Answer(Failure::Unanswerable.answer(None));
            }
            if method == "notifications/cancelled" {
                self.cancel(message);
            }
            return Step::Send(raw);
        };
        let params: Option<Params<'_>> = message.params();
        // Two readers could take it for two different calls.
        if calls && params.is_none() && message.params.is_some() {
            return Step::Answer(Failure::BadParams.answer(Some(&id)));
        }
        let params = params.unwrap_or_default();
        let what = match method {
            "tools/list" => What::List,
            "initialize" => What::Initialize,
            _ => What::Other(method.to_owned()),
        };
        let meta = params.meta.as_ref();
        let open = Open {
            id,
            what,
            stateless: meta.is_some_and(|meta| meta.get(STATELESS).is_some()),
            progress: meta.and_then(|meta| Id::of(meta.get("progressToken")?)),
            until_ms: (!LISTENS.contains(&method)).then(|| self.shared.until_ms()),
        };
        if !calls {
            return Step::Ask(raw, open);
        }
        // What can't be sent needs no ruling.
        if let Some(gone) = lock(&self.shared.ledger).gone() {
            return Step::Answer(Failure::Gone(gone.clone()).answer_to(&open));
        }
        let tool = params.name.unwrap_or_default();
        let arguments = params.arguments.map(|raw| raw.get().to_owned());
        Step::Call(raw, Want { open, tool, arguments })
    }

    /// Takes steps; gives what is to be sent, and what is answered here.
    fn carry_out<'a>(&self, steps: Vec<Step<'a>>) -> (Vec<&'a str>, Vec<String>) {
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        let (mut calls, mut wants) = (Vec::new(), Vec::new());
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send(raw) => sent.push((at, raw.get())),
                Step::Ask(raw, open) => match self.enter(&open) {
                    Ok(()) => sent.push((at, raw.get())),
                    Err(failure) => answers.push(failure.answer_to(&open)),
                },
                Step::Call(raw, want) => {
                    calls.push((at, raw, want.open.clone(), want.tool.clone()));
                    wants.push(want);
                }
                Step::Answer(answer) => answers.push(answer),
            }
        }
        let mut rulings = Vec::new();
        if !wants.is_empty() {
            let mut desk = lock(&self.shared.desk);
            rulings.extend(wants.iter().map(|want| desk.ruled(want)));
        }
        for ((at, raw, open, tool), ruled) in calls.into_iter().zip(rulings) {
            match ruled {
                Ruled::Answer(answer) => answers.push(answer),
                Ruled::Run(call) => {
                    let until_ms = open.until_ms.map(|_| self.shared.until_ms());
                    let open = Open { what: What::Call { call, tool }, until_ms, ..open };
                    match self.enter(&open) {
                        Ok(()) => sent.push((at, raw.get())),
                        Err(failure) => {
                            answers.push(failure.answer_to(&open));
                            lock(&self.shared.desk).over(&open, Status::Cancelled, None);
                        }
                    }
                }
            }
        }
        sent.sort_unstable_by_key(|(at, _)| *at);
        (sent.into_iter().map(|(_, raw)| raw).collect(), answers)
    }

    /// Opens a request, unless it can't be answered.
    fn enter(&self, open: &Open) -> Result<(), Failure> {
        let entered = lock(&self.shared.ledger).enter(open.clone());
        match entered {
            Entered::Open => Ok(()),
            Entered::Twice => Err(Failure::Twice),
            Entered::Gone(gone) => Err(Failure::Gone(gone)),
        }
    }

    /// The client does not wait for an answer any more, and gets none.
    fn cancel(&self, message: &Message<'_>) {
        let params: Option<Cancelled> = message.params();
        let id = params.and_then(|params| Id::of(&params.request));
        let open = id.and_then(|id| lock(&self.shared.ledger).take(&id));
        if let Some(open) = open.filter(|open| matches!(open.what, What::Call { .. })) {
            self.shared.send(Job::Cancelled(open));
        }
    }
}

/// Messages as one line.
fn joined(messages: &[&str], batch: bool) -> Vec<u8> {
    let all = messages.join(",");
    if batch { format!("[{all}]") } else { all }.into_bytes()
}
