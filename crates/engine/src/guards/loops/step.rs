//! What makes two calls the same.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value;

use super::Loops;
use crate::digest::Digest128;
use crate::guards::shortened;
use crate::json;
use crate::proposal::{Proposal, Run};

/// The same for calls that do the same.
pub(crate) fn call_signature(proposal: &Proposal<'_>, loops: &Loops) -> Digest128 {
    let mut args = proposal.args.cloned().unwrap_or_default();
    for pointer in &loops.volatile {
        if let Some(value) = args.pointer_mut(pointer) {
            *value = Value::Null;
        }
    }
    let text = format!("{}\n{}\n{}", proposal.tool.name, json::digest(&args), proposal.cwd);
    Digest128::of(text.as_bytes())
}

/// The same for calls that are about the same.
pub(crate) fn coarse_signature(_proposal: &Proposal<'_>) -> Option<u64> {
    None
}

/// A call as people read it.
pub(crate) fn shown(proposal: &Proposal<'_>) -> String {
    let does = match &proposal.run {
        Run::Line(line) => line.text.to_string(),
        Run::Nothing | Run::Unseen => {
            let path = proposal.touches.iter().find_map(|touch| touch.target.path());
            let args = || proposal.args.map(ToString::to_string).unwrap_or_default();
            path.map_or_else(args, ToString::to_string)
        }
    };
    format!("{}({})", proposal.tool.name, shortened(&does))
}
