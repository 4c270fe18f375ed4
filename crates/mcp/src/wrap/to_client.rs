//! From the server to the client: everything as it is, but what nobody asked for, and
//! what the guard has to see first.

use serde::Deserialize;
use serde_json::Value;

use super::errors::Failure;
use super::ledger::{Open, What};
use super::lines::{Read, begins_with_method, id_in_ends};
use super::message::{Id, Line, Message, range_in};
use super::server::lock;
use super::shared::{Answered, Job, Shared, shown};

/// What is done with one message.
enum Way {
    /// The client gets it as it is.
    Pass,
    /// The guard sees it first.
    Guard(Open),
    /// Nobody gets it.
    Drop(&'static str),
}

/// The server has said something, or nothing more.
pub(super) fn heard(shared: &Shared, read: Read) {
    match read {
        Read::Line(bytes) => drop(line(shared, bytes)),
        Read::TooLong { head, tail, bytes } => {
            shared.complain(&format!("the server sent a line of {bytes} bytes; it is dropped"));
            // Who is asked, or only told something, waits for no answer.
            if begins_with_method(&head) {
                return;
            }
            let id = id_in_ends(&head, &tail).as_ref().and_then(Id::of);
            let mut ledger = lock(&shared.ledger);
            let named = id.and_then(|id| ledger.take(&id));
            if let Some(open) = named.or_else(|| ledger.take_oldest()) {
                drop(ledger);
                shared.send(Job::Failed(open, Failure::TooLong { bytes }));
            }
        }
        Read::End => shared.send(Job::Silent),
    }
}

/// Passes a line on; gives the requests that it answers.
pub(super) fn line(shared: &Shared, bytes: Vec<u8>) -> Vec<Id> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return garbage(shared, error.as_bytes()),
    };
    let Some(Line { messages, batch }) = Line::parse(&text) else {
        return garbage(shared, text.as_bytes());
    };
    let (mut parts, mut untouched) = (Vec::new(), true);
    let answered = messages.iter().filter_map(|(_, message)| message.answers()).collect();
    for (raw, message) in &messages {
        match way(shared, message) {
            Way::Pass => parts.push((range_in(&text, raw), None)),
            Way::Guard(open) => {
                untouched = false;
                parts.push((range_in(&text, raw), Some(open)));
            }
            Way::Drop(why) => {
                untouched = false;
                let id = message.id.map_or("null", |id| id.get());
                shared
                    .complain(&format!("an answer to {} is dropped: {why}", shown(id.as_bytes())));
            }
        }
    }
    if untouched {
        shared.emit(text.into_bytes());
    } else if !parts.is_empty() {
        see(shared, Answered { text, parts, batch });
    }
    answered
}

/// Has the guard see an answer: at once, or by the other thread where it is at work.
fn see(shared: &Shared, answered: Answered) {
    let line = match shared.desk.try_lock() {
        Ok(mut desk) => desk.answered(shared, &answered),
        Err(_) => return shared.send(Job::Answered(answered)),
    };
    shared.emit(line);
    shared.tell();
}

fn garbage(shared: &Shared, bytes: &[u8]) -> Vec<Id> {
    let text = format!("the server sent a line that is no JSON-RPC message: {}", shown(bytes));
    shared.complain(&text);
    Vec::new()
}

fn way(shared: &Shared, message: &Message<'_>) -> Way {
    if message.method.as_deref() == Some("notifications/progress") {
        let progress: Option<Progress> = message.params();
        if let Some(token) = progress.and_then(|progress| Id::of(&progress.token)) {
            lock(&shared.ledger).progress(&token, shared.until_ms());
        }
    }
    let Some(id) = message.answers() else { return Way::Pass };
    let Some(open) = lock(&shared.ledger).take(&id) else {
        return Way::Drop("nobody waits for it, or no longer");
    };
    match open.what {
        What::Call { .. } | What::List => Way::Guard(open),
        What::Initialize => {
            let agreed = message.result.and_then(|raw| serde_json::from_str(raw.get()).ok());
            *lock(&shared.agreed) = agreed.map(|Agreed { version }| version);
            Way::Pass
        }
        What::Other(_) => Way::Pass,
    }
}

#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "progressToken")]
    token: Value,
}

#[derive(Deserialize)]
struct Agreed {
    #[serde(rename = "protocolVersion")]
    version: String,
}
