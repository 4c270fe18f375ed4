//! Replaces tool outputs that are too long for the agent.
//!
//! The client accepts another output for a tool that has run, in the format of that tool. It also
//! cuts long outputs itself and then shows only the first 2 KB. So our page is never longer than
//! the output that the client shows completely. We do not change the content of a file that was
//! read: the client limits it and reports which lines it showed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jackline_engine::facts::OutputFact;
use jackline_engine::output_page::{describe_page, first_part};
use jackline_runtime::OutputBounds;
use jackline_workspace::shell::{OutputBuffer, WorkspaceRoots};
use serde_json::{Map, Value, json};

use super::hooks::ClaudeHook;
use super::tool_results;
use crate::dialect::{ReplacedOutput, StoredOutput, ToolOutput};
use crate::payload::PayloadFields;

/// The tools for which the client accepts another output (tested with 2.1.325), with the format and
/// the number of bytes that the client shows completely. The client also accepts one for tools of
/// MCP servers. We leave those alone: `mcp wrap` and `mcp serve` make the pages there, because they
/// must know what the agent was shown.
const TOOLS: [(&str, OutputFormat, usize); 2] =
    [("Bash", OutputFormat::Command, 30_000), ("Grep", OutputFormat::Content, 20_000)];

/// Bytes of a page that are reserved for our own note.
const NOTE_BYTES: usize = 1 << 10;

/// No definition treats half of this as long (`io.output.max_bytes`).
const SHORT_BYTES: usize = 2 << 10;

/// The fields in which the client reports where it saved a long output.
const PERSISTED_FIELDS: [&str; 2] = ["persistedOutputPath", "persistedOutputSize"];

/// The format of a tool output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    /// Two streams, in `stdout` and `stderr`.
    Command,
    /// One text, in `content`.
    Content,
}

/// The output of a tool that we may replace.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClaudeToolOutput {
    format: OutputFormat,
    shown_bytes_max: usize,
    response: Value,
    /// The working directory of the agent.
    cwd: Option<String>,
}

impl ClaudeToolOutput {
    /// Reads the tool output from a payload.
    pub(super) fn of(hook: ClaudeHook, payload: &PayloadFields) -> Option<Self> {
        let tool = payload.peek_text("tool_name").filter(|_| hook == ClaudeHook::PostToolUse)?;
        let (_, shape, shown_max) = TOOLS.into_iter().find(|(name, ..)| tool == *name)?;
        let response = payload.peek_any("tool_response")?.clone();
        let cwd = payload.peek_text("cwd").map(ToOwned::to_owned);
        Some(Self { format: shape, shown_bytes_max: shown_max, response, cwd })
    }
}

impl ToolOutput for ClaudeToolOutput {
    fn may_need_replacement(&self) -> bool {
        let Value::Object(response) = &self.response else { return true };
        let texts = ["stdout", "stderr", "content"].map(|field| response.get(field)?.as_str());
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| {
            text.len() > SHORT_BYTES || (self.format == OutputFormat::Command && text.contains('/'))
        })
    }

    fn replace(
        self: Box<Self>,
        bounds: &OutputBounds,
        keep: &mut dyn FnMut(&str) -> StoredOutput,
    ) -> Option<ReplacedOutput> {
        let bytes_max = usize::try_from(bounds.io.output.max_bytes).unwrap_or(usize::MAX);
        let room = bytes_max.min(self.shown_bytes_max).saturating_sub(NOTE_BYTES);
        match (self.format, self.response) {
            (OutputFormat::Command, Value::Object(response)) => {
                let roots = workspace_roots(bounds, self.cwd.as_deref());
                CommandOutput { response, roots }.page(bytes_max, room, keep)
            }
            (OutputFormat::Content, Value::Object(mut response)) => {
                let text =
                    response.get("content")?.as_str().filter(|text| text.len() > bytes_max)?;
                let cut = OutputBeginning::of(text, room, keep(text));
                response.insert("content".to_owned(), json!(cut.text));
                Some(ReplacedOutput { fact: cut.fact, output: Value::Object(response) })
            }
            _ => None,
        }
    }
}

fn output_fact(bytes: u64, shown: usize, stored: StoredOutput) -> OutputFact {
    let (file, fault) = stored.map_or_else(|why| (None, Some(why)), |file| (file, None));
    OutputFact { bytes, shown: shown as u64, file, fault, ..OutputFact::default() }
}

/// The beginning of a text, followed by a note.
struct OutputBeginning {
    text: String,
    fact: OutputFact,
}

impl OutputBeginning {
    fn of(whole: &str, room: usize, stored: StoredOutput) -> Self {
        let shown = first_part(whole, room);
        let OutputFact { lines, .. } = describe_page(whole, shown, 1);
        let fact = OutputFact { lines, ..output_fact(whole.len() as u64, shown.len(), stored) };
        let missing = whole.len() - shown.len();
        let note = page_note(missing as u64, fact.bytes, fact.file.as_deref());
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        Self { text: format!("{shown}{end}{note}"), fact }
    }
}

fn page_note(missing: u64, bytes: u64, file: Option<&str>) -> String {
    let stored = file.map_or_else(String::new, |file| {
        format!(
            "; the whole output is stored in `{file}`: continue with `Read` (`offset`, `limit`) or \
             `grep` on that file, or request less output"
        )
    });
    format!("[jackline: {missing} of {bytes} bytes are not shown{stored}]")
}

/// Makes paths relative, if the agent works in the workspace. In another directory a relative path
/// would mean another file.
fn workspace_roots(bounds: &OutputBounds, cwd: Option<&str>) -> Option<WorkspaceRoots> {
    let workspace = bounds.workspace.as_deref().filter(|_| bounds.io.output.relative_paths)?;
    let roots = WorkspaceRoots::new(Path::new(cwd?)).ok()?;
    (roots.canonical() == workspace.canonicalize().ok()?).then_some(roots)
}

/// The output of a command.
struct CommandOutput {
    response: Map<String, Value>,
    roots: Option<WorkspaceRoots>,
}

impl CommandOutput {
    fn page(
        self,
        bytes_max: usize,
        room: usize,
        keep: &mut dyn FnMut(&str) -> StoredOutput,
    ) -> Option<ReplacedOutput> {
        let is_set = |field: &str| self.response.get(field) == Some(&Value::Bool(true));
        if is_set("isImage") || self.response.contains_key("backgroundTaskId") {
            return None;
        }
        if let Some(path) = self.response.get(PERSISTED_FIELDS[0]).and_then(Value::as_str) {
            // The client has already saved the whole output, and the agent may read it.
            let path = path.to_owned();
            let (kept, bytes) = read_ends(Path::new(&path), room).ok()?;
            return (bytes > bytes_max as u64).then(|| self.cut_middle(kept, Ok(Some(path))));
        }
        let whole = tool_results::command_output(&mut self.response.clone())?;
        if whole.len() <= bytes_max {
            return self.with_relative_paths(whole.len() as u64);
        }
        let mut kept = OutputBuffer::new(room);
        kept.add(whole.as_bytes());
        Some(self.cut_middle(kept, keep(&whole)))
    }

    /// The beginning and the end of an output, with a note between them.
    fn cut_middle(mut self, kept: OutputBuffer, stored: StoredOutput) -> ReplacedOutput {
        let mut fact = output_fact(kept.bytes_total(), 0, stored);
        let write_note = |missing, bytes| {
            fact.shown = fact.bytes.saturating_sub(missing);
            page_note(missing, bytes, fact.file.as_deref())
        };
        let text = kept.finish_with(write_note).shown;
        let relative_text =
            self.roots.as_ref().map_or_else(|| text.clone(), |roots| roots.relative(&text));
        fact.relative = relative_text != text;
        PERSISTED_FIELDS.iter().for_each(|field| drop(self.response.remove(*field)));
        self.response.insert("stdout".to_owned(), json!(relative_text));
        self.response.insert("stderr".to_owned(), json!(""));
        ReplacedOutput { fact, output: Value::Object(self.response) }
    }

    /// The same output with relative paths, if there are any paths to shorten.
    fn with_relative_paths(mut self, bytes: u64) -> Option<ReplacedOutput> {
        let roots = self.roots.as_ref()?;
        let mut shown = 0;
        let mut relative = false;
        for stream in ["stdout", "stderr"] {
            let Some(Value::String(text)) = self.response.get_mut(stream) else { continue };
            let relative_text = roots.relative(text);
            relative |= relative_text != *text;
            shown += relative_text.len() as u64;
            *text = relative_text;
        }
        let fact = OutputFact { bytes, shown, relative, ..OutputFact::default() };
        relative.then_some(ReplacedOutput { fact, output: Value::Object(self.response) })
    }
}

/// The beginning and the end of a file, and its size.
fn read_ends(path: &Path, room: usize) -> io::Result<(OutputBuffer, u64)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut kept = OutputBuffer::new(room);
    let (head, tail) = kept.shown_ranges(bytes);
    let mut part = Vec::new();
    file.by_ref().take(head as u64).read_to_end(&mut part)?;
    kept.add(&part);
    kept.count_skipped(tail.saturating_sub(part.len() as u64));
    file.seek(SeekFrom::Start(tail))?;
    part.clear();
    file.take(room as u64).read_to_end(&mut part)?;
    kept.add(&part);
    Ok((kept, bytes))
}
