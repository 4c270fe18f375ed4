//! A whole transcript as the events of a session, as they happened.
//!
//! It is read line by line, whatever its size. The client writes much that is
//! for itself alone; that is passed over in silence. What should have been an
//! event and can't be read is counted.

mod content;

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};
use std::path::PathBuf;

use jackline_engine::event::{CompactionFinished, PromptSource, UsageReported};
use jackline_engine::id::RequestId;
use jackline_engine::{
    ActorId, Arguments, CallId, Event, EventKind, Payload, PromptSubmitted, SessionId,
    SessionStarted, StopProposed, Timestamp, ToolName, ToolProposed,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::lines::{Raw, flag, read, text};
use super::places::claude_home;
use super::usage::{Usage, reported};
use crate::transcripts::{SkippedLines, TranscriptReader, Transcripts};
use content::{Block, blocks, finished, is_wrapper};

/// The longest line that is read. One beyond this is passed over.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// How a transcript is called in events.
const CLIENT: &str = "claude";

/// Reads a transcript: an iterator over events. Ends with the first error.
pub struct Transcript<R> {
    source: R,
    line: Vec<u8>,
    /// Named by the first line that says so, else after the file.
    session: SessionId,
    started: bool,
    over: bool,
    /// What was reported last; one message has several lines.
    usage: Option<Usage>,
    /// The message that ended a turn, until something else follows.
    stop: Option<Stop>,
    waiting: VecDeque<Event>,
    skipped: SkippedLines,
    bytes: u64,
}

struct Stop {
    message: Option<String>,
    at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    subtype: Raw<'a>,
    #[serde(borrow)]
    is_sidechain: Raw<'a>,
    #[serde(borrow)]
    agent_id: Raw<'a>,
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    cwd: Raw<'a>,
    #[serde(borrow)]
    is_meta: Raw<'a>,
    #[serde(borrow)]
    is_compact_summary: Raw<'a>,
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow)]
    tool_use_result: Raw<'a>,
    #[serde(borrow)]
    tool_denial_kind: Raw<'a>,
    #[serde(borrow)]
    compact_metadata: Raw<'a>,
    #[serde(borrow)]
    attachment: Raw<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    content: Raw<'a>,
    #[serde(borrow)]
    stop_reason: Raw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compaction<'a> {
    #[serde(borrow)]
    pre_tokens: Raw<'a>,
    #[serde(borrow)]
    post_tokens: Raw<'a>,
}

#[derive(Deserialize)]
struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    prompt: Raw<'a>,
}

impl<R: BufRead> Transcript<R> {
    /// Reads a transcript; `session` is its name where no line says another.
    pub fn new(source: R, session: SessionId) -> Self {
        Self {
            source,
            line: Vec::new(),
            session,
            started: false,
            over: false,
            usage: None,
            stop: None,
            waiting: VecDeque::new(),
            skipped: SkippedLines::default(),
            bytes: 0,
        }
    }

    /// How many bytes were read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads one line, or says that there is none left.
    fn read_line(&mut self) -> io::Result<bool> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let count = (&mut self.source).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        self.bytes += count as u64;
        if count as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            self.skipped.long += 1;
            line = Vec::new();
            self.skip_line()?;
        } else if !line.trim_ascii().is_empty() {
            let text = String::from_utf8_lossy(&line);
            match serde_json::from_str::<Line<'_>>(&text) {
                Ok(line) => self.take(&line),
                Err(_) => self.skipped.torn += 1,
            }
        }
        self.line = line;
        Ok(count > 0)
    }

    /// Passes over the rest of a line without keeping it.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.source.fill_buf()?;
            let newline = buffer.iter().position(|byte| *byte == b'\n');
            let count = newline.map_or(buffer.len(), |at| at + 1);
            self.source.consume(count);
            self.bytes += count as u64;
            if newline.is_some() || count == 0 {
                return Ok(());
            }
        }
    }

    fn take(&mut self, line: &Line<'_>) {
        let kind = text(line.kind).unwrap_or_default();
        match kind.as_str() {
            "user" => self.user(line),
            "assistant" => self.assistant(line),
            "system" if text(line.subtype).as_deref() == Some("compact_boundary") => {
                self.compaction(line);
            }
            "attachment" => self.attachment(line),
            // The client's own bookkeeping, which grows with every version.
            _ => {}
        }
    }

    fn user(&mut self, line: &Line<'_>) {
        let Some(message) = read::<Message<'_>>(line.message) else {
            self.skipped.odd += 1;
            return;
        };
        if flag(line.is_meta) || flag(line.is_compact_summary) {
            return;
        }
        self.end_turn(line);
        if let Some(prompt) = text(message.content) {
            return self.prompt(line, prompt);
        }
        let Some(blocks) = blocks(message.content) else {
            self.skipped.odd += 1;
            return;
        };
        let results = |block: &&Block<'_>| text(block.kind).as_deref() == Some("tool_result");
        // What the client knows of a result lies beside it, and belongs to it
        // where it is the only one.
        let beside = (blocks.iter().filter(results).count() == 1).then_some(line.tool_use_result);
        for block in blocks.iter().filter(results) {
            match finished(block, beside.flatten(), line.tool_denial_kind) {
                Some(kind) => self.push(line, kind),
                None => self.skipped.odd += 1,
            }
        }
        if !blocks.iter().any(|block| results(&block)) {
            let texts: Vec<String> = blocks.iter().filter_map(|block| text(block.text)).collect();
            self.prompt(line, texts.join("\n"));
        }
    }

    fn prompt(&mut self, line: &Line<'_>, prompt: String) {
        // A sub-agent is given its task by another agent.
        let human = !flag(line.is_sidechain) && !is_wrapper(&prompt);
        let source = if human { PromptSource::Human } else { PromptSource::Harness };
        self.push(
            line,
            EventKind::PromptSubmitted(PromptSubmitted {
                source,
                text: Some(Payload::Inline(prompt)),
            }),
        );
    }

    /// What a person typed, or a finished task said, while the agent worked.
    fn attachment(&mut self, line: &Line<'_>) {
        if let Some(attachment) = read::<Attachment<'_>>(line.attachment)
            && text(attachment.kind).as_deref() == Some("queued_command")
            && let Some(prompt) = text(attachment.prompt)
        {
            self.end_turn(line);
            self.prompt(line, prompt);
        }
    }

    fn assistant(&mut self, line: &Line<'_>) {
        let Some(message) = read::<Message<'_>>(line.message) else {
            self.skipped.odd += 1;
            return;
        };
        let id = text(message.id);
        if self.stop.as_ref().is_some_and(|stop| stop.message != id) {
            self.end_turn(line);
        }
        if let Some(usage) = read(line.message).and_then(|message| reported(&message))
            && self.usage.as_ref() != Some(&usage)
        {
            self.push(line, report(&usage));
            self.usage = Some(usage);
        }
        for block in blocks(message.content).unwrap_or_default() {
            if text(block.kind).as_deref() == Some("tool_use") {
                match proposed(&block, text(line.cwd)) {
                    Some(kind) => self.push(line, kind),
                    None => self.skipped.odd += 1,
                }
            }
        }
        if !flag(line.is_sidechain) && text(message.stop_reason).as_deref() == Some("end_turn") {
            self.stop = Some(Stop { message: id, at: at(line) });
        }
    }

    fn compaction(&mut self, line: &Line<'_>) {
        self.end_turn(line);
        let sizes = read::<Compaction<'_>>(line.compact_metadata);
        let freed = sizes.and_then(|sizes| {
            let before: u64 = read(sizes.pre_tokens)?;
            let after: u64 = read(sizes.post_tokens)?;
            Some(before.saturating_sub(after))
        });
        self.push(
            line,
            EventKind::CompactionFinished(CompactionFinished {
                freed,
                ..CompactionFinished::default()
            }),
        );
    }

    /// The main agent's last message was the end of its turn. Nobody wrote that
    /// down; it shows when something else follows.
    fn end_turn(&mut self, line: &Line<'_>) {
        if !flag(line.is_sidechain) {
            self.flush_stop();
        }
    }

    fn flush_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let reason = Some("end_turn".to_owned());
            let kind = EventKind::StopProposed(StopProposed { reason, ..StopProposed::default() });
            self.waiting.push_back(self.event(stop.at, ActorId::main(), kind));
        }
    }

    fn push(&mut self, line: &Line<'_>, kind: EventKind) {
        if !self.started {
            self.started = true;
            if let Some(id) = text(line.session_id).and_then(|id| SessionId::parse(id).ok()) {
                self.session = id;
            }
            let workspace = text(line.cwd).filter(|cwd| cwd.starts_with('/'));
            let kind = EventKind::SessionStarted(SessionStarted {
                workspace,
                client: Some(CLIENT.to_owned()),
                ..SessionStarted::default()
            });
            self.waiting.push_back(self.event(at(line), ActorId::main(), kind));
        }
        let event = self.event(at(line), actor(line), kind);
        self.waiting.push_back(event);
    }

    fn event(&self, at: Option<Timestamp>, actor: ActorId, kind: EventKind) -> Event {
        Event { session: self.session.clone(), id: None, at, actor, kind, meta: None }
    }
}

impl<R: BufRead> Iterator for Transcript<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<io::Result<Event>> {
        while self.waiting.is_empty() && !self.over {
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => {
                    self.over = true;
                    self.flush_stop();
                }
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
        self.waiting.pop_front().map(Ok)
    }
}

impl<R: BufRead> TranscriptReader for Transcript<R> {
    fn skipped(&self) -> SkippedLines {
        self.skipped
    }
}

/// The transcripts of Claude Code.
pub(super) struct ClaudeTranscripts;

/// The field that every line of a transcript has.
#[derive(Deserialize)]
struct TypeField {
    #[serde(rename = "type")]
    kind: Option<IgnoredAny>,
}

impl Transcripts for ClaudeTranscripts {
    fn directory(&self) -> Option<PathBuf> {
        Some(claude_home()?.join("projects"))
    }

    fn variables(&self) -> &'static str {
        "CLAUDE_CONFIG_DIR or HOME"
    }

    fn recognizes(&self, line: &[u8]) -> bool {
        serde_json::from_slice::<TypeField>(line).is_ok_and(|line| line.kind.is_some())
    }

    fn read<'a>(
        &self,
        source: Box<dyn BufRead + 'a>,
        session: SessionId,
    ) -> Box<dyn TranscriptReader + 'a> {
        Box::new(Transcript::new(source, session))
    }
}

fn at(line: &Line<'_>) -> Option<Timestamp> {
    Timestamp::parse(&text(line.timestamp)?).ok()
}

fn actor(line: &Line<'_>) -> ActorId {
    let agent = || ActorId::parse(text(line.agent_id).unwrap_or_else(|| "sidechain".to_owned()));
    let agent = flag(line.is_sidechain).then(agent);
    agent.and_then(Result::ok).unwrap_or_else(ActorId::main)
}

fn report(usage: &Usage) -> EventKind {
    EventKind::UsageReported(UsageReported {
        request: usage.request.as_ref().and_then(|id| RequestId::parse(id).ok()),
        model: usage.short_model(),
        input: usage.input,
        cache_read: usage.cache_read,
        cache_creation: usage.cache_creation,
        output: usage.output,
        unknown: usage.unknown,
        ..UsageReported::default()
    })
}

/// A call. Arguments that are no object, or nest too deep, stay text.
fn proposed(block: &Block<'_>, cwd: Option<String>) -> Option<EventKind> {
    let tool = ToolName::parse(text(block.name)?).ok()?;
    let call = CallId::parse(text(block.id)?).ok()?;
    let args = match read(block.input) {
        Some(input) => Arguments::Parsed(serde_json::Value::Object(input)),
        None => Arguments::Text(Payload::Inline(block.input?.get().to_owned())),
    };
    Some(EventKind::ToolProposed(ToolProposed { call: Some(call), tool, args, cwd }))
}

#[cfg(test)]
mod tests;
