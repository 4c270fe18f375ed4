//! Pages of long results, for adapters whose caller cuts a result as the verdict says.

use jackline_engine::definition::Mode;
use jackline_engine::facts::{OffFact, OutputFact};
use jackline_engine::{Event, EventKind, ToolFinished};

use super::Runtime;
use crate::live_session::LiveSession;
use crate::spill::Spill;

impl Runtime {
    /// The page of a long result, if the caller of this runtime shows pages. The whole result is
    /// stored in a file, if the store has files and the page will be enforced.
    pub(super) fn offer_page(
        &self,
        live: &LiveSession,
        event: &Event,
        off: Option<&OffFact>,
    ) -> Option<OutputFact> {
        if !self.settings.caller_shows_pages {
            return None;
        }
        let page = live.session.first_page(event)?;
        let EventKind::ToolFinished(ToolFinished { result: Some(result), .. }) = &event.kind else {
            return None;
        };
        if off.is_some() || live.session.definition().mode != Mode::Enforce {
            return Some(page);
        }
        let Some(directory) = live.log.directory() else { return Some(page) };
        Some(match Spill::new(directory.join("spill")).store(result.head()) {
            Ok((_, path)) => OutputFact { file: Some(path.display().to_string()), ..page },
            Err(error) => OutputFact { fault: Some(error.to_string()), ..page },
        })
    }
}
