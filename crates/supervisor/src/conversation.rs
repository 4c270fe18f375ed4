//! What a model and its tools have said to each other, kept so that a supervisor that was
//! killed goes on where it was.
//!
//! Each message is a line, synced before anything comes of it. A line that is cut off was
//! never acted upon.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_journal::write_private;
use jackline_model::{Message, ToolResult};

use crate::run::RunError;

/// The file in the directory of a session.
const FILE: &str = "conversation.jsonl";

/// Told to a model about a call of which nobody knows how far it came.
const CUT_OFF: &str = "jackline: the work was cut off while this ran, and it may have run. Look at what is there \
                       before you do it again.";

/// How many bytes a token has, where nobody counts them.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// A conversation and its file.
#[derive(Debug)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    path: PathBuf,
    file: File,
}

impl Conversation {
    /// Opens the conversation of a session, with what was said before.
    pub(crate) fn open(directory: &Path) -> Result<Self, RunError> {
        let path = directory.join(FILE);
        let spoilt = |why: String| RunError::Conversation { path: path.clone(), why };
        let mut file = open(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| spoilt(error.to_string()))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
        }
        let mut messages = Vec::new();
        let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            // Where in the line serde found it is of no use to anybody.
            let read = serde_json::from_slice(line);
            let read = read.map_err(|_| spoilt(format!("line {} is no message", number + 1)))?;
            messages.push(read);
        }
        Ok(Self { messages, path, file })
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether nothing was said in it but the task.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.messages.iter().any(|message| matches!(message, Message::Assistant(_)))
    }

    /// Adds a message. What the model is told twice in a row is one message to it.
    pub(crate) fn push(&mut self, message: Message) -> io::Result<()> {
        self.file.write_all(&line(&message)?)?;
        self.file.sync_data()?;
        self.messages.push(message);
        Ok(())
    }

    /// Begins anew with this; what was said before is in the journal.
    pub(crate) fn begin_anew(&mut self, prompt: String) -> io::Result<()> {
        let message = Message::User(prompt);
        write_private(&self.path, &line(&message)?).map_err(io::Error::other)?;
        self.file = open(&self.path)?;
        self.messages = vec![message];
        Ok(())
    }

    /// Answers the calls that were open when the work was cut off.
    pub(crate) fn mend(&mut self) -> io::Result<()> {
        let Some(Message::Assistant(said)) = self.messages.last() else { return Ok(()) };
        let result = |call: &jackline_model::Call| ToolResult {
            call: call.id.clone(),
            name: call.name.clone(),
            text: CUT_OFF.to_owned(),
            is_error: true,
        };
        let results: Vec<ToolResult> = said.calls.iter().map(result).collect();
        if results.is_empty() {
            return Ok(());
        }
        self.push(Message::Results(results))
    }

    /// How many tokens it has, roughly.
    pub(crate) fn tokens(&self) -> u64 {
        let bytes: usize = self.messages.iter().map(size).sum();
        bytes as u64 / BYTES_PER_TOKEN
    }

    /// The last lines of it, for somebody who only reads.
    pub(crate) fn transcript(&self, lines_max: usize) -> String {
        let mut lines = Vec::new();
        for message in &self.messages {
            match message {
                Message::User(text) => lines.extend(text.lines().map(|line| format!("> {line}"))),
                Message::Assistant(said) => {
                    lines.extend(said.text.lines().map(ToOwned::to_owned));
                    let calls = said.calls.iter();
                    lines
                        .extend(calls.map(|call| format!("CALL {} {}", call.name, call.arguments)));
                }
                Message::Results(results) => {
                    for result in results {
                        let word = if result.is_error { "FAILED" } else { "RESULT" };
                        lines.push(format!("{word} {}", result.name));
                        lines.extend(result.text.lines().map(ToOwned::to_owned));
                    }
                }
            }
        }
        let skipped = lines.len().saturating_sub(lines_max);
        lines.split_off(skipped).join("\n")
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

fn line(message: &Message) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn size(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Assistant(said) => {
            let calls = said.calls.iter().map(|call| call.name.len() + call.arguments.len());
            said.text.len() + calls.sum::<usize>()
        }
        Message::Results(results) => results.iter().map(|result| result.text.len()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use jackline_model::{Call, Said};

    use super::*;

    fn called() -> Message {
        let call = Call {
            id: "x1".into(),
            name: "shell".into(),
            arguments: r#"{"command":"make"}"#.into(),
        };
        Message::Assistant(Said { text: "I build.".into(), calls: vec![call], kept: None })
    }

    #[test]
    fn what_was_said_is_there_again_and_a_torn_line_is_not() {
        let home = tempfile::tempdir().unwrap();
        let mut first = Conversation::open(home.path()).unwrap();
        first.push(Message::User("old".into())).unwrap();
        first.begin_anew("do it".into()).unwrap();
        first.push(called()).unwrap();
        first.file.write_all(br#"{"user":"hal"#).unwrap();
        let mut again = Conversation::open(home.path()).unwrap();
        assert_eq!(again.messages(), [Message::User("do it".into()), called()]);
        again.mend().unwrap();
        let last = Conversation::open(home.path()).unwrap();
        let Some(Message::Results(results)) = last.messages().last() else { panic!("no results") };
        assert_eq!((results[0].call.as_str(), results[0].is_error), ("x1", true));
    }

    #[test]
    fn a_transcript_has_the_last_lines() {
        let home = tempfile::tempdir().unwrap();
        let mut talk = Conversation::open(home.path()).unwrap();
        talk.push(Message::User("one\ntwo".into())).unwrap();
        talk.push(called()).unwrap();
        assert_eq!(talk.transcript(2), "I build.\nCALL shell {\"command\":\"make\"}");
    }
}
