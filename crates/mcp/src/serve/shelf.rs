//! What commands printed and nobody was shown, in pages.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jackline_runtime::spill::{Cursor, Spill};
use jackline_workspace::shell::{Artifact, Keep};
use jackline_workspace::{Shows, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::result::Answer;
use crate::page::{PAGE, cursor, input_schema};

/// The long outputs of one session. They lie there until the session is removed: what failed
/// can be looked at later.
#[derive(Debug, Clone)]
pub struct Shelf {
    spill: Arc<Mutex<Spill>>,
    page_bytes: usize,
}

impl Shelf {
    /// In a directory, with pages of at most so many bytes.
    pub fn new(directory: PathBuf, page_bytes: usize) -> Self {
        Self { spill: Arc::new(Mutex::new(Spill::new(directory))), page_bytes }
    }

    /// Has commands put their outputs here.
    pub fn keep(&self) -> Keep {
        let spill = Arc::clone(&self.spill);
        Keep::by(move |text| {
            let kept = spill.lock().unwrap_or_else(PoisonError::into_inner).keep(text);
            let (number, path) = kept.map_err(|error| error.to_string())?;
            let cursor = Cursor { number, offset: 0 }.to_string();
            let (file, bytes) = (path.display().to_string(), text.len() as u64);
            Ok(Artifact { file, cursor, bytes })
        })
    }

    /// Shows a page.
    pub(super) fn turn(&self, args: &Value) -> Answer {
        let cursor = match cursor(Some(args)) {
            Ok(cursor) => cursor,
            Err(why) => return Answer::invalid(&why),
        };
        let spill = self.spill.lock().unwrap_or_else(PoisonError::into_inner);
        let page = match spill.page(cursor, self.page_bytes) {
            Ok(page) => page,
            Err(error) => return Answer::no_page(&error),
        };
        let next = page.next().map(|next| next.to_string());
        let (from, to) = (page.cursor.offset, page.cursor.offset + page.text.len() as u64);
        let go_on = next.as_ref().map_or_else(
            || "this is the end".to_owned(),
            |next| format!("go on with `{PAGE}` {{\"cursor\":\"{next}\"}}"),
        );
        let newline = if page.text.ends_with('\n') { "" } else { "\n" };
        let text =
            format!("{}{newline}[bytes {from} to {to} of {}; {go_on}]\n", page.text, page.bytes);
        let structured = json!({
            "bytes_shown": to - from,
            "bytes_remaining": page.bytes.saturating_sub(to),
            "has_more": next.is_some(),
            "next_cursor": next,
            "output": page.text,
        });
        Answer::of(Shows::Nothing, ToolOutput { text, structured })
    }
}

/// What is said about the tool.
pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: PAGE,
        description: "Shows the next page of an output that was too long to be shown at once. \
                      The output names the cursor.",
        input_schema: input_schema("a cut output"),
        read_only: true,
    }
}
