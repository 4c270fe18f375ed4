//! Stores long outputs of commands, and shows them in pages.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jackline_runtime::spill::{PageCursor, Spill};
use jackline_workspace::shell::{Artifact, ArtifactSink};
use jackline_workspace::{ShownContent, ToolAnswer, ToolSpec};
use serde_json::{Value, json};

use super::call_answer::McpCallAnswer;
use crate::page_tool::{PAGE_TOOL, page_input_schema, parse_cursor_argument};

/// The long outputs of one session. They are stored until the session is removed, so that a failure
/// can be examined later.
#[derive(Debug, Clone)]
pub struct OutputStore {
    spill: Arc<Mutex<Spill>>,
    page_bytes: usize,
}

impl OutputStore {
    /// Stores outputs in a directory, with pages of at most `page_bytes` bytes.
    pub fn new(directory: PathBuf, page_bytes: usize) -> Self {
        Self { spill: Arc::new(Mutex::new(Spill::new(directory))), page_bytes }
    }

    /// The sink that stores the outputs of commands here.
    pub fn artifact_sink(&self) -> ArtifactSink {
        let spill = Arc::clone(&self.spill);
        ArtifactSink::storing_with(move |text| {
            let stored = spill.lock().unwrap_or_else(PoisonError::into_inner).store(text);
            let (number, path) = stored.map_err(|error| error.to_string())?;
            let cursor = PageCursor { number, offset: 0 }.to_string();
            let (file, bytes) = (path.display().to_string(), text.len() as u64);
            Ok(Artifact { file, cursor, bytes })
        })
    }

    /// Shows one page.
    pub(super) fn show_page(&self, args: &Value) -> McpCallAnswer {
        let cursor = match parse_cursor_argument(Some(args)) {
            Ok(cursor) => cursor,
            Err(why) => return McpCallAnswer::invalid_arguments(&why),
        };
        let spill = self.spill.lock().unwrap_or_else(PoisonError::into_inner);
        let page = match spill.page(cursor, self.page_bytes) {
            Ok(page) => page,
            Err(error) => return McpCallAnswer::no_page(&error),
        };
        let next = page.next().map(|next| next.to_string());
        let (from, to) = (page.cursor.offset, page.cursor.offset + page.text.len() as u64);
        let how_to_continue = next.as_ref().map_or_else(
            || "end of the output".to_owned(),
            |next| format!("continue with `{PAGE_TOOL}` {{\"cursor\":\"{next}\"}}"),
        );
        let newline = if page.text.ends_with('\n') { "" } else { "\n" };
        let text = format!(
            "{}{newline}[bytes {from} to {to} of {}; {how_to_continue}]\n",
            page.text, page.bytes
        );
        let structured = json!({
            "bytes_shown": to - from,
            "bytes_remaining": page.bytes.saturating_sub(to),
            "has_more": next.is_some(),
            "next_cursor": next,
            "output": page.text,
        });
        McpCallAnswer::of_output(ShownContent::Nothing, ToolAnswer { text, structured })
    }
}

/// The description of the tool.
pub(super) fn page_tool_spec() -> ToolSpec {
    ToolSpec {
        name: PAGE_TOOL,
        description: "Shows the next page of an output that was too long for one answer. \
                      The shortened output contains the cursor.",
        input_schema: page_input_schema("the shortened output"),
        read_only: true,
    }
}
