//! Guidance after a tool that looks for something and found nothing.
//!
//! An agent without guidance often repeats the same search. The tools of Jackline itself suggest
//! names that exist. This guard knows only the kind of the tool, so it names the ways that are left.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Guard, GuardAnswers, GuardInput};
use crate::event::{CallStatus, EventKind, ToolFinished};
use crate::tool::ToolKind;
use crate::verdict::{Feedback, Severity};

/// The provider name of this guard's feedback.
const PROVIDER: &str = "EmptyResult";

pub(crate) struct EmptyResultGuard;

impl Guard for EmptyResultGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::ToolFinished(ToolFinished {
            status: CallStatus::Ok, background: false, ..
        }) = &input.event.kind
        else {
            return;
        };
        if !input.facts.observed.result.is_some_and(|result| result.empty) {
            return;
        }
        let call = input.state.in_flight.find(input.call_key());
        let guidance = call.and_then(|call| Some((call, guidance(call.kind, &call.tool)?)));
        let Some((call, (found, suggestions))) = guidance else { return };
        answers.feedback.push(Feedback {
            provider: PROVIDER.to_string(),
            severity: Severity::Info,
            summary: format!("`{}` {found}.", call.tool),
            observations: Vec::new(),
            suggestions: suggestions.iter().map(ToString::to_string).collect::<Vec<String>>(),
            timestamp: input.clock.now(),
            call_index: input.state.invocations.proposed,
            definition: input.definition.name.clone(),
        });
    }
}

/// What a tool of this kind did not find, and what the agent can try next.
fn guidance(kind: ToolKind, tool: &str) -> Option<(&'static str, &'static [&'static str])> {
    match kind {
        ToolKind::Search if ToolKind::only_lists_names(tool) => Some((
            "found no names",
            &[
                "Check the path, or list its parent directory.",
                "Try another spelling, or a more general pattern.",
            ],
        )),
        ToolKind::Search => Some((
            "found no matches",
            &[
                "List the directory to see which names exist.",
                "Try another spelling, another letter case, or a part of the name.",
                "Search more: remove the path or the file filter.",
            ],
        )),
        ToolKind::Read => Some((
            "returned no text",
            &[
                "The file is empty, or the range begins after its end: check the path and the range.",
            ],
        )),
        ToolKind::Fetch => Some(("returned nothing", &["Try other words, or another address."])),
        _ => None,
    }
}
