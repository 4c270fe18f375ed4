//! From which fill of the context on something is done.

use jackline_engine::definition::Context;

use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// Reads `context`; explicitly nothing is nothing.
pub(super) fn lower(node: &Node, reader: &mut Reader<'_>) -> Option<Context> {
    if node.value == NodeValue::Null {
        return None;
    }
    let mut context = Context::default();
    for (key, node) in reader.fields(node, &keys::CONTEXT) {
        let slot = match key {
            "window" if node.value == NodeValue::Null => continue,
            "window" => {
                context.window = reader.count(node, "`context.window`");
                if context.window == Some(0) {
                    reader.complain(node.at, "`context.window` can't be 0");
                }
                continue;
            }
            "ineffective_max" => {
                if let Some(most) = reader.count(node, "`context.ineffective_max`") {
                    context.ineffective_max = most;
                    if most == 0 {
                        reader.complain(node.at, "`context.ineffective_max` can't be 0");
                    }
                }
                continue;
            }
            "warn" => &mut context.warn,
            "compact" => &mut context.compact,
            "block" => &mut context.block,
            _ => &mut context.min_freed_pct,
        };
        if let Some(percent) = percent(key, node, reader) {
            *slot = percent;
        }
    }
    if !(context.warn <= context.compact && context.compact <= context.block) {
        let Context { warn, compact, block, .. } = context;
        let message = format!("`context` rises from {warn} over {compact} to {block}");
        reader.complain_hint(
            node.at,
            message,
            "give `warn`, `compact` and `block` in rising order",
        );
    }
    Some(context)
}

fn percent(key: &str, node: &Node, reader: &mut Reader<'_>) -> Option<u8> {
    let number: u64 = reader.count(node, &format!("`context.{key}`"))?;
    let fits = u8::try_from(number).ok().filter(|number| (1..=100).contains(number));
    if fits.is_none() {
        let message = format!("`context.{key}` can't be {number}");
        reader.complain_hint(node.at, message, "percent, from 1 to 100");
    }
    fits
}
