//! Reads a transcript of Claude Code as the events of a session, in their order.
//!
//! It reads line by line, so the size does not matter. Lines that serve only the client are
//! skipped. A line that should be an event but can't be read is counted.

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

use super::claude_paths::claude_home;
use super::raw_value::{OptionalRaw, parse_raw, raw_flag, raw_text};
use super::usage::{AnswerUsage, message_usage};
use crate::transcripts::{SkippedLines, TranscriptReader, TranscriptStore};
use content::{TranscriptBlock, finished_call, is_client_prompt, parse_blocks};

/// The longest line that is read. Longer lines are skipped.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// The id of the client in events.
const CLIENT: &str = "claude";

/// Reads a transcript, as an iterator over events. It ends with the first error.
pub struct ClaudeTranscript<R> {
    source: R,
    line: Vec<u8>,
    /// From the first line that has a session id, else the name of the file.
    session: SessionId,
    has_started: bool,
    is_finished: bool,
    /// The usage reported last. One message may have several lines with the same usage.
    usage: Option<AnswerUsage>,
    /// The message that ended a turn, until the next entry follows.
    pending_stop: Option<PendingStop>,
    queue: VecDeque<Event>,
    skipped: SkippedLines,
    bytes_read: u64,
}

struct PendingStop {
    message: Option<String>,
    at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: OptionalRaw<'a>,
    #[serde(borrow)]
    subtype: OptionalRaw<'a>,
    #[serde(borrow)]
    is_sidechain: OptionalRaw<'a>,
    #[serde(borrow)]
    agent_id: OptionalRaw<'a>,
    #[serde(borrow)]
    session_id: OptionalRaw<'a>,
    #[serde(borrow)]
    timestamp: OptionalRaw<'a>,
    #[serde(borrow)]
    cwd: OptionalRaw<'a>,
    #[serde(borrow)]
    is_meta: OptionalRaw<'a>,
    #[serde(borrow)]
    is_compact_summary: OptionalRaw<'a>,
    #[serde(borrow)]
    message: OptionalRaw<'a>,
    #[serde(borrow)]
    tool_use_result: OptionalRaw<'a>,
    #[serde(borrow)]
    tool_denial_kind: OptionalRaw<'a>,
    #[serde(borrow)]
    compact_metadata: OptionalRaw<'a>,
    #[serde(borrow)]
    attachment: OptionalRaw<'a>,
}

#[derive(Deserialize)]
struct TranscriptMessage<'a> {
    #[serde(borrow)]
    id: OptionalRaw<'a>,
    #[serde(borrow)]
    content: OptionalRaw<'a>,
    #[serde(borrow)]
    stop_reason: OptionalRaw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompactionSizes<'a> {
    #[serde(borrow)]
    pre_tokens: OptionalRaw<'a>,
    #[serde(borrow)]
    post_tokens: OptionalRaw<'a>,
}

#[derive(Deserialize)]
struct LineAttachment<'a> {
    #[serde(borrow, rename = "type")]
    kind: OptionalRaw<'a>,
    #[serde(borrow)]
    prompt: OptionalRaw<'a>,
}

impl<R: BufRead> ClaudeTranscript<R> {
    /// Reads a transcript. `session` is its id if no line has one.
    pub fn new(source: R, session: SessionId) -> Self {
        Self {
            source,
            line: Vec::new(),
            session,
            has_started: false,
            is_finished: false,
            usage: None,
            pending_stop: None,
            queue: VecDeque::new(),
            skipped: SkippedLines::default(),
            bytes_read: 0,
        }
    }

    /// How many bytes were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Reads one line. Returns false at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let count = (&mut self.source).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        self.bytes_read += count as u64;
        if count as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            self.skipped.too_long += 1;
            line = Vec::new();
            self.skip_line()?;
        } else if !line.trim_ascii().is_empty() {
            let text = String::from_utf8_lossy(&line);
            match serde_json::from_str::<TranscriptLine<'_>>(&text) {
                Ok(line) => self.read_entry(&line),
                Err(_) => self.skipped.invalid += 1,
            }
        }
        self.line = line;
        Ok(count > 0)
    }

    /// Skips the rest of a line without buffering it.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.source.fill_buf()?;
            let newline = buffer.iter().position(|byte| *byte == b'\n');
            let count = newline.map_or(buffer.len(), |at| at + 1);
            self.source.consume(count);
            self.bytes_read += count as u64;
            if newline.is_some() || count == 0 {
                return Ok(());
            }
        }
    }

    fn read_entry(&mut self, line: &TranscriptLine<'_>) {
        let kind = raw_text(line.kind).unwrap_or_default();
        match kind.as_str() {
            "user" => self.read_user(line),
            "assistant" => self.read_assistant(line),
            "system" if raw_text(line.subtype).as_deref() == Some("compact_boundary") => {
                self.read_compaction(line);
            }
            "attachment" => self.read_attachment(line),
            // The client's own records, which grow with every version.
            _ => {}
        }
    }

    fn read_user(&mut self, line: &TranscriptLine<'_>) {
        let Some(message) = parse_raw::<TranscriptMessage<'_>>(line.message) else {
            self.skipped.unexpected += 1;
            return;
        };
        if raw_flag(line.is_meta) || raw_flag(line.is_compact_summary) {
            return;
        }
        self.end_turn(line);
        if let Some(prompt) = raw_text(message.content) {
            return self.push_prompt(line, prompt);
        }
        let Some(blocks) = parse_blocks(message.content) else {
            self.skipped.unexpected += 1;
            return;
        };
        let results =
            |block: &&TranscriptBlock<'_>| raw_text(block.kind).as_deref() == Some("tool_result");
        // The line describes a result in another field. That field belongs to the result only if
        // the line has a single one.
        let details = (blocks.iter().filter(results).count() == 1).then_some(line.tool_use_result);
        for block in blocks.iter().filter(results) {
            match finished_call(block, details.flatten(), line.tool_denial_kind) {
                Some(kind) => self.push(line, kind),
                None => self.skipped.unexpected += 1,
            }
        }
        if !blocks.iter().any(|block| results(&block)) {
            let texts: Vec<String> =
                blocks.iter().filter_map(|block| raw_text(block.text)).collect();
            self.push_prompt(line, texts.join("\n"));
        }
    }

    fn push_prompt(&mut self, line: &TranscriptLine<'_>, prompt: String) {
        // A sub-agent gets its task from another agent.
        let human = !raw_flag(line.is_sidechain) && !is_client_prompt(&prompt);
        let source = if human { PromptSource::Human } else { PromptSource::Harness };
        self.push(
            line,
            EventKind::PromptSubmitted(PromptSubmitted {
                source,
                text: Some(Payload::Inline(prompt)),
            }),
        );
    }

    /// A prompt that arrived while the agent worked: from a person, or from a finished task.
    fn read_attachment(&mut self, line: &TranscriptLine<'_>) {
        if let Some(attachment) = parse_raw::<LineAttachment<'_>>(line.attachment)
            && raw_text(attachment.kind).as_deref() == Some("queued_command")
            && let Some(prompt) = raw_text(attachment.prompt)
        {
            self.end_turn(line);
            self.push_prompt(line, prompt);
        }
    }

    fn read_assistant(&mut self, line: &TranscriptLine<'_>) {
        let Some(message) = parse_raw::<TranscriptMessage<'_>>(line.message) else {
            self.skipped.unexpected += 1;
            return;
        };
        let id = raw_text(message.id);
        if self.pending_stop.as_ref().is_some_and(|stop| stop.message != id) {
            self.end_turn(line);
        }
        if let Some(usage) = parse_raw(line.message).and_then(|message| message_usage(&message))
            && self.usage.as_ref() != Some(&usage)
        {
            self.push(line, usage_event(&usage));
            self.usage = Some(usage);
        }
        for block in parse_blocks(message.content).unwrap_or_default() {
            if raw_text(block.kind).as_deref() == Some("tool_use") {
                match proposed_call(&block, raw_text(line.cwd)) {
                    Some(kind) => self.push(line, kind),
                    None => self.skipped.unexpected += 1,
                }
            }
        }
        if !raw_flag(line.is_sidechain)
            && raw_text(message.stop_reason).as_deref() == Some("end_turn")
        {
            self.pending_stop = Some(PendingStop { message: id, at: line_time(line) });
        }
    }

    fn read_compaction(&mut self, line: &TranscriptLine<'_>) {
        self.end_turn(line);
        let sizes = parse_raw::<CompactionSizes<'_>>(line.compact_metadata);
        let freed = sizes.and_then(|sizes| {
            let before: u64 = parse_raw(sizes.pre_tokens)?;
            let after: u64 = parse_raw(sizes.post_tokens)?;
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

    /// Reports that the main agent's last message ended its turn. The transcript has no line for
    /// that, so we notice it when another entry follows.
    fn end_turn(&mut self, line: &TranscriptLine<'_>) {
        if !raw_flag(line.is_sidechain) {
            self.flush_stop();
        }
    }

    fn flush_stop(&mut self) {
        if let Some(stop) = self.pending_stop.take() {
            let reason = Some("end_turn".to_owned());
            let kind = EventKind::StopProposed(StopProposed { reason, ..StopProposed::default() });
            self.queue.push_back(self.event(stop.at, ActorId::main(), kind));
        }
    }

    fn push(&mut self, line: &TranscriptLine<'_>, kind: EventKind) {
        if !self.has_started {
            self.has_started = true;
            if let Some(id) = raw_text(line.session_id).and_then(|id| SessionId::parse(id).ok()) {
                self.session = id;
            }
            let workspace = raw_text(line.cwd).filter(|cwd| cwd.starts_with('/'));
            let kind = EventKind::SessionStarted(SessionStarted {
                workspace,
                client: Some(CLIENT.to_owned()),
                ..SessionStarted::default()
            });
            self.queue.push_back(self.event(line_time(line), ActorId::main(), kind));
        }
        let event = self.event(line_time(line), line_actor(line), kind);
        self.queue.push_back(event);
    }

    fn event(&self, at: Option<Timestamp>, actor: ActorId, kind: EventKind) -> Event {
        Event { session: self.session.clone(), id: None, at, actor, kind, meta: None }
    }
}

impl<R: BufRead> Iterator for ClaudeTranscript<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<io::Result<Event>> {
        while self.queue.is_empty() && !self.is_finished {
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => {
                    self.is_finished = true;
                    self.flush_stop();
                }
                Err(error) => {
                    self.is_finished = true;
                    return Some(Err(error));
                }
            }
        }
        self.queue.pop_front().map(Ok)
    }
}

impl<R: BufRead> TranscriptReader for ClaudeTranscript<R> {
    fn skipped(&self) -> SkippedLines {
        self.skipped
    }
}

/// The transcripts of Claude Code.
pub(super) struct ClaudeTranscriptStore;

/// The field that every line of a transcript has.
#[derive(Deserialize)]
struct TypeField {
    #[serde(rename = "type")]
    kind: Option<IgnoredAny>,
}

impl TranscriptStore for ClaudeTranscriptStore {
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
        Box::new(ClaudeTranscript::new(source, session))
    }
}

fn line_time(line: &TranscriptLine<'_>) -> Option<Timestamp> {
    Timestamp::parse(&raw_text(line.timestamp)?).ok()
}

fn line_actor(line: &TranscriptLine<'_>) -> ActorId {
    let agent =
        || ActorId::parse(raw_text(line.agent_id).unwrap_or_else(|| "sidechain".to_owned()));
    let agent = raw_flag(line.is_sidechain).then(agent);
    agent.and_then(Result::ok).unwrap_or_else(ActorId::main)
}

fn usage_event(usage: &AnswerUsage) -> EventKind {
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

/// A proposed call. Arguments that are not an object, or nested too deep, stay text.
fn proposed_call(block: &TranscriptBlock<'_>, cwd: Option<String>) -> Option<EventKind> {
    let tool = ToolName::parse(raw_text(block.name)?).ok()?;
    let call = CallId::parse(raw_text(block.id)?).ok()?;
    let args = match parse_raw(block.input) {
        Some(input) => Arguments::Parsed(serde_json::Value::Object(input)),
        None => Arguments::Text(Payload::Inline(block.input?.get().to_owned())),
    };
    Some(EventKind::ToolProposed(ToolProposed {
        call: Some(call),
        tool,
        args,
        cwd,
        ..ToolProposed::default()
    }))
}

#[cfg(test)]
mod tests;
