//! What the agent is shown instead of what a tool gave back.
//!
//! The client takes another output for a tool that has run, in the tool's own shape. It
//! also cuts what is too long for it, and then shows the first 2 KB; so a page of ours is
//! never longer than what the client shows whole. A file that was read is left alone: what
//! was seen of it is what the client says, and the client bounds it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jackline_engine::facts::OutputFact;
use jackline_runtime::Bounds;
use jackline_runtime::spill::first_part;
use jackline_workspace::shell::{Kept, Roots};
use serde_json::{Map, Value, json};

use super::hooks::ClaudeHook;
use super::results;
use crate::dialect::{KeptOutput, ReplacedOutput, ToolOutput};
use crate::payload::PayloadFields;

/// Tools of which the client takes another output, tried with 2.1.325: their shape, and how
/// much the client shows whole. It takes one for tools of MCP servers, too, and those are
/// left alone: pages are turned where the server is (`mcp wrap`, `mcp serve`), which has to
/// know what was seen.
const TOOLS: [(&str, Shape, usize); 2] =
    [("Bash", Shape::Command, 30_000), ("Grep", Shape::Content, 20_000)];

/// What is left of a page for our own words.
const NOTE_BYTES: usize = 1 << 10;

/// No definition calls half of this long (`io.output.max_bytes`).
const SHORT_BYTES: usize = 2 << 10;

/// Where the client says that it has put a long output.
const PERSISTED: [&str; 2] = ["persistedOutputPath", "persistedOutputSize"];

/// The shape of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Two streams, in `stdout` and `stderr`.
    Command,
    /// One text, in `content`.
    Content,
}

/// What a tool gave back, where something else can be shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Returned {
    shape: Shape,
    shown_max: usize,
    response: Value,
    /// Where the agent is.
    cwd: Option<String>,
}

impl Returned {
    /// What a payload says that a tool gave back.
    pub(super) fn of(hook: ClaudeHook, payload: &PayloadFields) -> Option<Self> {
        let tool = payload.peek("tool_name").filter(|_| hook == ClaudeHook::PostToolUse)?;
        let (_, shape, shown_max) = TOOLS.into_iter().find(|(name, ..)| tool == *name)?;
        let response = payload.peek_any("tool_response")?.clone();
        let cwd = payload.peek("cwd").map(ToOwned::to_owned);
        Some(Self { shape, shown_max, response, cwd })
    }
}

impl ToolOutput for Returned {
    fn may_differ(&self) -> bool {
        let Value::Object(response) = &self.response else { return true };
        let texts = ["stdout", "stderr", "content"].map(|field| response.get(field)?.as_str());
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| {
            text.len() > SHORT_BYTES || (self.shape == Shape::Command && text.contains('/'))
        })
    }

    fn replace(
        self: Box<Self>,
        bounds: &Bounds,
        keep: &mut dyn FnMut(&str) -> KeptOutput,
    ) -> Option<ReplacedOutput> {
        let most = usize::try_from(bounds.io.output.max_bytes).unwrap_or(usize::MAX);
        let room = most.min(self.shown_max).saturating_sub(NOTE_BYTES);
        match (self.shape, self.response) {
            (Shape::Command, Value::Object(response)) => {
                let roots = roots(bounds, self.cwd.as_deref());
                Command { response, roots }.page(most, room, keep)
            }
            (Shape::Content, Value::Object(mut response)) => {
                let text = response.get("content")?.as_str().filter(|text| text.len() > most)?;
                let cut = Cut::of(text, room, keep(text));
                response.insert("content".to_owned(), json!(cut.text));
                Some(ReplacedOutput { fact: cut.fact, output: Value::Object(response) })
            }
            _ => None,
        }
    }
}

fn fact(bytes: u64, shown: usize, lies: KeptOutput) -> OutputFact {
    let (file, fault) = lies.map_or_else(|why| (None, Some(why)), |file| (file, None));
    OutputFact { bytes, shown: shown as u64, relative: false, file, fault }
}

/// The beginning of a text, with a note behind it.
struct Cut {
    text: String,
    fact: OutputFact,
}

impl Cut {
    fn of(whole: &str, room: usize, lies: KeptOutput) -> Self {
        let shown = first_part(whole, room);
        let fact = fact(whole.len() as u64, shown.len(), lies);
        let missing = whole.len() - shown.len();
        let note = note(missing as u64, fact.bytes, fact.file.as_deref());
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        Self { text: format!("{shown}{end}{note}"), fact }
    }
}

fn note(missing: u64, bytes: u64, file: Option<&str>) -> String {
    let lies = file.map_or_else(String::new, |file| {
        format!(
            "; all of it lies in `{file}`: go on with `Read` (`offset`, `limit`) or `grep` there, or \
             ask for less"
        )
    });
    format!("[jackline: {missing} of {bytes} bytes are not shown{lies}]")
}

/// The names of the workspace, where the agent is in it: elsewhere a relative name would
/// mean another file.
fn roots(bounds: &Bounds, cwd: Option<&str>) -> Option<Roots> {
    let workspace = bounds.workspace.as_deref().filter(|_| bounds.io.output.relative_paths)?;
    let roots = Roots::new(Path::new(cwd?)).ok()?;
    (roots.canonical() == workspace.canonicalize().ok()?).then_some(roots)
}

/// What a command printed.
struct Command {
    response: Map<String, Value>,
    roots: Option<Roots>,
}

impl Command {
    fn page(
        self,
        most: usize,
        room: usize,
        keep: &mut dyn FnMut(&str) -> KeptOutput,
    ) -> Option<ReplacedOutput> {
        let says = |field: &str| self.response.get(field) == Some(&Value::Bool(true));
        if says("isImage") || self.response.contains_key("backgroundTaskId") {
            return None;
        }
        if let Some(path) = self.response.get(PERSISTED[0]).and_then(Value::as_str) {
            // All of it lies there already, and the agent may read it.
            let path = path.to_owned();
            let (kept, bytes) = ends(Path::new(&path), room).ok()?;
            return (bytes > most as u64).then(|| self.cut(kept, Ok(Some(path))));
        }
        let whole = results::output(&mut self.response.clone())?;
        if whole.len() <= most {
            return self.relative(whole.len() as u64);
        }
        let mut kept = Kept::new(room);
        kept.add(whole.as_bytes());
        Some(self.cut(kept, keep(&whole)))
    }

    /// Both ends of an output, with a note between them.
    fn cut(mut self, kept: Kept, lies: KeptOutput) -> ReplacedOutput {
        let mut fact = fact(kept.bytes_total(), 0, lies);
        let say = |missing, bytes| {
            fact.shown = fact.bytes.saturating_sub(missing);
            note(missing, bytes, fact.file.as_deref())
        };
        let text = kept.finish_with(say).shown;
        let told = self.roots.as_ref().map_or_else(|| text.clone(), |roots| roots.relative(&text));
        fact.relative = told != text;
        PERSISTED.iter().for_each(|field| drop(self.response.remove(*field)));
        self.response.insert("stdout".to_owned(), json!(told));
        self.response.insert("stderr".to_owned(), json!(""));
        ReplacedOutput { fact, output: Value::Object(self.response) }
    }

    /// The same output with other names for paths, where there are any.
    fn relative(mut self, bytes: u64) -> Option<ReplacedOutput> {
        let roots = self.roots.as_ref()?;
        let mut shown = 0;
        let mut relative = false;
        for stream in ["stdout", "stderr"] {
            let Some(Value::String(text)) = self.response.get_mut(stream) else { continue };
            let told = roots.relative(text);
            relative |= told != *text;
            shown += told.len() as u64;
            *text = told;
        }
        let fact = OutputFact { bytes, shown, relative, ..OutputFact::default() };
        relative.then_some(ReplacedOutput { fact, output: Value::Object(self.response) })
    }
}

/// Both ends of a file, and how long it is.
fn ends(path: &Path, room: usize) -> io::Result<(Kept, u64)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut kept = Kept::new(room);
    let (head, tail) = kept.ends(bytes);
    let mut part = Vec::new();
    file.by_ref().take(head as u64).read_to_end(&mut part)?;
    kept.add(&part);
    kept.skip(tail.saturating_sub(part.len() as u64));
    file.seek(SeekFrom::Start(tail))?;
    part.clear();
    file.take(room as u64).read_to_end(&mut part)?;
    kept.add(&part);
    Ok((kept, bytes))
}
