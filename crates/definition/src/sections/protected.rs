//! `protected`: paths that the agent can't write.

use jackline_engine::path::canonical;

use super::prelude::*;

static KEYS: [Key; 1] = [key(
    "protected",
    List(0, &Path),
    "none",
    "Paths the agent can't write, besides the guard's own. A slash at the end means a directory, `*` anything but a slash; `~/` and absolute paths are accepted.",
)];

pub(crate) struct ProtectedSection;

impl Section for ProtectedSection {
    type Part = Vec<Demand<String>>;

    const KEYS: &'static [Key] = &KEYS;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let items = reader.list(node, "`protected`");
        lowering.definition.protected =
            items.iter().filter_map(|item| protected_path(item, reader)).collect();
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.list(source.definition.protected.iter().cloned())
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, _join: &mut LayerJoin) -> Self::Part {
        union(&high.protected, &low.protected)
    }

    fn describe(paths: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for path in paths {
            lines.add(Subject::Protected, format!("`{}`", path.value), path.layer);
        }
    }

    fn put(paths: Self::Part, definition: &mut Definition) {
        definition.protected = values(paths);
    }
}

/// A canonical path: absolute, from the home directory or in the workspace. A directory keeps
/// the slash at its end.
fn protected_path(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "a protected path")?;
    if text.contains("**") {
        let message = format!("`{text}` has a `**`, and `*` stands for anything but a slash");
        reader.complain_hint(node.at, message, "a slash at the end means everything below");
        return None;
    }
    let (prefix, rest) = match text.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None if text.starts_with('/') => ("/", text),
        None if text.starts_with('~') => {
            reader.complain_hint(node.at, format!("`{text}` is nobody's"), "write `~/` and a path");
            return None;
        }
        None => ("", text),
    };
    let slash = if text.ends_with('/') { "/" } else { "" };
    match canonical(if rest.is_empty() { "." } else { rest }, Some("/").filter(|_| prefix == "/")) {
        Ok(path) if path == "." => {
            reader.complain(node.at, format!("`{text}` would protect everything"));
            None
        }
        Ok(path) => Some(format!("{prefix}{path}{slash}")),
        Err(error) => {
            reader.complain_hint(
                node.at,
                error.to_string(),
                "outside, write it absolute or with `~/`",
            );
            None
        }
    }
}
