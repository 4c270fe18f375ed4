//! What an adapter asks about a result before it shows the result in pages.

use alloc::vec::Vec;

use super::{Session, call_key};
use crate::event::{Event, EventKind, ShownLines, ToolFinished};
use crate::facts::OutputFact;
use crate::guards::read_before_write;
use crate::id::CallId;
use crate::output_page::{PageLimits, describe_page};
use crate::state::CallKey;
use crate::tool::ToolKind;

impl Session {
    /// The first page of a result that is longer than the definition allows, for a caller that cuts
    /// the result as the verdict says. `None` if the result is short enough.
    pub fn first_page(&self, event: &Event) -> Option<OutputFact> {
        let EventKind::ToolFinished(ToolFinished { result: Some(result), seen, .. }) = &event.kind
        else {
            return None;
        };
        let call = self.state.in_flight.find(call_key(&self.definition, event));
        let kind = call.map_or(ToolKind::Other, |call| call.kind);
        let (limits, text) = (PageLimits::of(kind, &self.definition.io), result.head());
        if !limits.is_exceeded_by(text) {
            return None;
        }
        let requested = call.and_then(|call| call.first_line).map(u64::from);
        let first = match seen.as_slice() {
            [part] if requested.is_some() => part.from.max(1),
            _ => requested.unwrap_or(1),
        };
        Some(describe_page(text, limits.first_page(text), first))
    }

    /// How much of the result of an open call is shown at once, and the first line that it shows.
    pub fn page_limits_of(&self, call: &CallId) -> (PageLimits, u64) {
        let call = self.state.in_flight.find(CallKey::Id(call));
        let kind = call.map_or(ToolKind::Other, |call| call.kind);
        let first = call.and_then(|call| call.first_line).unwrap_or(1);
        (PageLimits::of(kind, &self.definition.io), first.into())
    }

    /// The lines of files that an open call shows if its whole result is shown. For adapters that
    /// show a result in pages: they report these lines with the last page.
    pub fn lines_shown_by(&self, call: &CallId) -> Vec<ShownLines> {
        self.state
            .in_flight
            .find(CallKey::Id(call))
            .map_or_else(Vec::new, read_before_write::shown_parts)
    }
}
