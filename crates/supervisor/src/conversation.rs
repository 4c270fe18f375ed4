//! The conversation of a model and its tools, stored on disk so that a run can resume after the
//! supervisor process was killed.
//!
//! Each message is one line, synced to disk before anything acts on it. A partial last line was
//! therefore never acted on, and is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_journal::write_private;
use jackline_model::{ConversationMessage, ToolCallResult};

use crate::run::RunError;

/// The file name in the session directory.
const FILE: &str = "conversation.jsonl";

/// The result that a model gets for a call that was running when the process ended.
const INTERRUPTED_CALL_TEXT: &str = "jackline: the run was interrupted during this call, so the call may have run or not. Check the \
                       current state before you repeat it.";

/// How many bytes one token has, for estimates.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// A conversation and its file.
#[derive(Debug)]
pub(crate) struct Conversation {
    messages: Vec<ConversationMessage>,
    path: PathBuf,
    file: File,
}

impl Conversation {
    /// Opens the conversation of a session, with the messages that are stored.
    pub(crate) fn open(directory: &Path) -> Result<Self, RunError> {
        let path = directory.join(FILE);
        let spoilt = |why: String| RunError::Conversation { path: path.clone(), why };
        let mut file = open_file(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| spoilt(error.to_string()))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
        }
        let mut messages = Vec::new();
        let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            // The column that serde reports is of no use to a person.
            let read = serde_json::from_slice(line);
            let read =
                read.map_err(|_| spoilt(format!("line {} is not a valid message", number + 1)))?;
            messages.push(read);
        }
        Ok(Self { messages, path, file })
    }

    pub(crate) fn messages(&self) -> &[ConversationMessage] {
        &self.messages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether the model has not answered anything yet.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.messages.iter().any(|message| matches!(message, ConversationMessage::Assistant(_)))
    }

    /// Stores and adds a message. Providers get adjacent user messages as one message.
    pub(crate) fn push(&mut self, message: ConversationMessage) -> io::Result<()> {
        self.file.write_all(&encode_line(&message)?)?;
        self.file.sync_data()?;
        self.messages.push(message);
        Ok(())
    }

    /// Replaces all messages by one prompt. The journal still has the earlier messages.
    pub(crate) fn restart(&mut self, prompt: String) -> io::Result<()> {
        let message = ConversationMessage::User(prompt);
        write_private(&self.path, &encode_line(&message)?).map_err(io::Error::other)?;
        self.file = open_file(&self.path)?;
        self.messages = vec![message];
        Ok(())
    }

    /// Adds an error result for each call that was open when the process ended.
    pub(crate) fn answer_open_calls(&mut self) -> io::Result<()> {
        let Some(ConversationMessage::Assistant(said)) = self.messages.last() else {
            return Ok(());
        };
        let result = |call: &jackline_model::ToolCallRequest| ToolCallResult {
            call: call.id.clone(),
            name: call.name.clone(),
            text: INTERRUPTED_CALL_TEXT.to_owned(),
            is_error: true,
        };
        let results: Vec<ToolCallResult> = said.calls.iter().map(result).collect();
        if results.is_empty() {
            return Ok(());
        }
        self.push(ConversationMessage::Results(results))
    }

    /// The estimated number of tokens of all messages.
    pub(crate) fn estimated_tokens(&self) -> u64 {
        let bytes: usize = self.messages.iter().map(message_bytes).sum();
        bytes as u64 / BYTES_PER_TOKEN
    }

    /// The last lines of the conversation as text, for an advisor.
    pub(crate) fn transcript(&self, lines_max: usize) -> String {
        let mut lines = Vec::new();
        for message in &self.messages {
            match message {
                ConversationMessage::User(text) => {
                    lines.extend(text.lines().map(|line| format!("> {line}")));
                }
                ConversationMessage::Assistant(said) => {
                    lines.extend(said.text.lines().map(ToOwned::to_owned));
                    let calls = said.calls.iter();
                    lines
                        .extend(calls.map(|call| format!("CALL {} {}", call.name, call.arguments)));
                }
                ConversationMessage::Results(results) => {
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

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

fn encode_line(message: &ConversationMessage) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn message_bytes(message: &ConversationMessage) -> usize {
    match message {
        ConversationMessage::User(text) => text.len(),
        ConversationMessage::Assistant(said) => {
            let calls = said.calls.iter().map(|call| call.name.len() + call.arguments.len());
            said.text.len() + calls.sum::<usize>()
        }
        ConversationMessage::Results(results) => {
            results.iter().map(|result| result.text.len()).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use jackline_model::{AssistantMessage, ToolCallRequest};

    use super::*;

    fn tool_call_message() -> ConversationMessage {
        let call = ToolCallRequest {
            id: "x1".into(),
            name: "shell".into(),
            arguments: r#"{"command":"make"}"#.into(),
        };
        ConversationMessage::Assistant(AssistantMessage {
            text: "I build.".into(),
            calls: vec![call],
            provider_data: None,
        })
    }

    #[test]
    fn messages_are_read_back_and_a_torn_line_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let mut first = Conversation::open(home.path()).unwrap();
        first.push(ConversationMessage::User("old".into())).unwrap();
        first.restart("do it".into()).unwrap();
        first.push(tool_call_message()).unwrap();
        first.file.write_all(br#"{"user":"hal"#).unwrap();
        let mut again = Conversation::open(home.path()).unwrap();
        assert_eq!(
            again.messages(),
            [ConversationMessage::User("do it".into()), tool_call_message()]
        );
        again.answer_open_calls().unwrap();
        let last = Conversation::open(home.path()).unwrap();
        let Some(ConversationMessage::Results(results)) = last.messages().last() else {
            panic!("no results")
        };
        assert_eq!((results[0].call.as_str(), results[0].is_error), ("x1", true));
    }

    #[test]
    fn a_transcript_has_the_last_lines() {
        let home = tempfile::tempdir().unwrap();
        let mut talk = Conversation::open(home.path()).unwrap();
        talk.push(ConversationMessage::User("one\ntwo".into())).unwrap();
        talk.push(tool_call_message()).unwrap();
        assert_eq!(talk.transcript(2), "I build.\nCALL shell {\"command\":\"make\"}");
    }
}
