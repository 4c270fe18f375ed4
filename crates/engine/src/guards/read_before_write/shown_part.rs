//! Which part of a file a result really shows.

use super::FoldInput;
use crate::facts::FileFact;
use crate::state::{FilePart, InFlightCall};
use crate::tool::ToolKind;
use crate::verdict::ShownPage;

/// How many bytes of white space a client may trim from the end of a result.
const TRIMMED_BYTES_MAX: u64 = 4;

/// Limits a read to what the result shows. A command whose result is shorter than the file did not
/// show all of it; a read tool itself reports when there is more.
pub(super) fn limit_to_shown(
    part: FilePart,
    call: &InFlightCall,
    fact: &FileFact,
    fold: FoldInput<'_>,
) -> FilePart {
    if let Some(page) = cutting_page(fold) {
        return limit_to_page(part, call, page);
    }
    let result = fold.record.facts.observed.result.as_ref();
    let is_shortened = result.is_some_and(|result| result.bytes + TRIMMED_BYTES_MAX < fact.bytes);
    match part {
        FilePart::Whole if is_shortened && call.kind == ToolKind::Exec => FilePart::Unknown,
        part => part,
    }
}

/// Returns the page that replaces the result, if it does not show all of the result.
pub(super) fn cutting_page(fold: FoldInput<'_>) -> Option<&ShownPage> {
    fold.record.verdict.page.as_ref().filter(|page| page.enforced && page.has_more)
}

/// Limits a read to the lines on a page. Only the page of a tool that reads one file tells which
/// lines of the file it shows.
pub(super) fn limit_to_page(part: FilePart, call: &InFlightCall, page: &ShownPage) -> FilePart {
    let reads_one_file = call.kind == ToolKind::Read && call.files.len() == 1;
    let last = page.next_offset.filter(|_| reads_one_file).and_then(|next| next.checked_sub(1));
    let Some(last) = last.map(|last| u32::try_from(last).unwrap_or(u32::MAX)) else {
        return FilePart::Unknown;
    };
    let lines = |from: u32, to: u32| {
        if from <= to { FilePart::Lines(from, to) } else { FilePart::Unknown }
    };
    match part {
        FilePart::Whole => lines(1, last),
        FilePart::From(from) => lines(from, last),
        FilePart::Lines(from, to) => lines(from, to.min(last)),
        FilePart::Last(_) | FilePart::Unknown => FilePart::Unknown,
    }
}
