//! `protected`: paths that the agent can't write.

use jackline_engine::path::canonical_path;

use super::prelude::*;

static KEYS: [KeySpec; 1] = [key(
    "protected",
    List(0, &Path),
    "none",
    "Paths that the agent can't write, in addition to Jackline's own files. A slash at the end means a directory, and `*` matches anything but a slash. `~/` and absolute paths are accepted.",
)];

pub(crate) struct ProtectedSection;

impl Section for ProtectedSection {
    type Part = Vec<Demand<String>>;

    const KEYS: &'static [KeySpec] = &KEYS;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
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

    fn describe(paths: &Self::Part, lines: &mut DemandLines<'_>) {
        for path in paths {
            lines.add(DemandSubject::Protected, format!("`{}`", path.value), path.layer);
        }
    }

    fn put(paths: Self::Part, definition: &mut Definition) {
        definition.protected = values(paths);
    }
}

/// Reads a path that is absolute, in the home directory or in the workspace, and makes it
/// canonical. A directory keeps the slash at its end.
fn protected_path(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<String> {
    let text = reader.text(node, "a protected path")?;
    if text.contains("**") {
        let message = format!(
            "`{text}` contains `**`, which is not supported; `*` matches anything but a slash"
        );
        reader.report_with_hint(
            node.position,
            message,
            "to match everything in a directory, end the path with a slash",
        );
        return None;
    }
    let (prefix, rest) = match text.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None if text.starts_with('/') => ("/", text),
        None if text.starts_with('~') => {
            reader.report_with_hint(
                node.position,
                format!("`{text}`: `~user` paths are not supported"),
                "use `~/…` or an absolute path",
            );
            return None;
        }
        None => ("", text),
    };
    let slash = if text.ends_with('/') { "/" } else { "" };
    match canonical_path(
        if rest.is_empty() { "." } else { rest },
        Some("/").filter(|_| prefix == "/"),
    ) {
        Ok(path) if path == "." => {
            reader.report(node.position, format!("`{text}` would protect everything"));
            None
        }
        Ok(path) => Some(format!("{prefix}{path}{slash}")),
        Err(error) => {
            reader.report_with_hint(
                node.position,
                error.to_string(),
                "outside the workspace, write an absolute path or start with `~/`",
            );
            None
        }
    }
}
