//! `dirty_bits`: the commands that test and build, and the files that are documentation.

use jackline_engine::definition::DirtyBits;
use jackline_engine::path::canonical_path;

use super::prelude::*;
use crate::values::{read_command_words, read_limited_list};

static KEYS: [KeySpec; 1] = [key(
    "dirty_bits",
    Map(&DIRTY_BITS),
    "",
    "More commands that test or build, and more files that are documentation, in addition to the built-in ones.",
)];

static DIRTY_BITS: MappingSpec = MappingSpec {
    id: "dirty_bits",
    label: "`dirty_bits`",
    doc: "Commands are programs and subcommands, as in `commands` of a tool, or names of tools. They are added to the built-in \
          ones: `cargo test`, `pytest`, `go test`, `npm test`, `make test`, `mvn verify` and so on, through `bash -c`, `uv run`, `npx` and the like.",
    entries: &[
        key("tests", List(0, &Text), "none", "Commands that test, such as `./test.sh`."),
        key("builds", List(0, &Text), "none", "Commands that build."),
        key(
            "docs",
            List(0, &Path),
            "none",
            "Files that are documentation and not code, in addition to `*.md` and `docs/**`.",
        ),
    ],
    required: &[],
};

/// The maximum number of patterns per key. The engine compares them at every call.
const PATTERNS_MAX: usize = 64;

/// A pattern, with the key that contains it.
pub(crate) type DirtyPattern = (&'static str, String);

pub(crate) struct DirtyBitsSection;

impl Section for DirtyBitsSection {
    type Part = Vec<Demand<DirtyPattern>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&DIRTY_BITS];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut bits = DirtyBits::default();
        for (key, node) in reader.fields(node, &DIRTY_BITS) {
            let what = format!("`dirty_bits.{key}`");
            let too_many =
                |count| format!("{count} patterns in {what}; at most {PATTERNS_MAX} are supported");
            let items = read_limited_list(node, &what, PATTERNS_MAX, too_many, reader).iter();
            match key {
                "docs" => bits.docs = items.filter_map(|item| pattern(item, reader)).collect(),
                _ => {
                    let words =
                        items.filter_map(|item| read_command_words(item, "a command", reader));
                    let slot = if key == "tests" { &mut bits.tests } else { &mut bits.builds };
                    *slot = words.collect();
                }
            }
        }
        lowering.definition.dirty_bits = bits;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let DirtyBits { tests, builds, docs } = source.definition.dirty_bits.clone();
        let under =
            |key: &'static str, list: Vec<String>| list.into_iter().map(move |text| (key, text));
        source.list(under("tests", tests).chain(under("builds", builds)).chain(under("docs", docs)))
    }

    /// If a demand of the higher layer relies on tests, the lower layer can't declare tests. It
    /// could declare `true` as a test, which always passes.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let Some(to) = layer_relying_on_tests(high).filter(|_| !join.overrides()) else {
            return union(&high.dirty_bits, &low.dirty_bits);
        };
        for Demand { value, layer } in &low.dirty_bits {
            if !high.dirty_bits.iter().any(|known| known.value == *value) {
                let text = format!("`{}`", text(value));
                join.report_ignored(
                    DemandSubject::Setting,
                    text,
                    *layer,
                    to,
                    "relies on what counts as a test",
                );
            }
        }
        high.dirty_bits.clone()
    }

    fn describe(patterns: &Self::Part, lines: &mut DemandLines<'_>) {
        for pattern in patterns {
            lines.add(DemandSubject::Setting, text(&pattern.value), pattern.layer);
        }
    }

    fn put(patterns: Self::Part, definition: &mut Definition) {
        let bits = &mut definition.dirty_bits;
        for Demand { value: (key, pattern), .. } in patterns {
            match key {
                "tests" => bits.tests.push(pattern),
                "builds" => bits.builds.push(pattern),
                _ => bits.docs.push(pattern),
            }
        }
    }
}

/// Reads a pattern of files in the workspace. A name alone matches at any depth, and a slash at
/// the end means everything below that directory.
fn pattern(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<String> {
    let text = reader.text(node, "a pattern of files")?;
    let below = text.ends_with('/');
    match canonical_path(text, None) {
        Ok(path) if path == "." => {
            reader.report(node.position, format!("`{text}` would make every file documentation"));
            None
        }
        Ok(path) if below => Some(format!("{path}/**")),
        Ok(path) if !path.contains('/') => Some(format!("**/{path}")),
        Ok(path) => Some(path),
        Err(error) => {
            reader.report_with_hint(
                node.position,
                error.to_string(),
                "write it as `docs/**` or `*.rst`",
            );
            None
        }
    }
}

/// Returns the layer with a demand that depends on changed files and passed tests, if any.
pub(crate) fn layer_relying_on_tests(demands: &LayerDemands) -> Option<usize> {
    let clean = demands.completion.checks.iter().find(|check| check.value.uses_dirty_bits());
    let progress = demands.progress.as_ref().map(|progress| progress.layer);
    clean.map(|check| check.layer).or(progress)
}

fn text((key, pattern): &DirtyPattern) -> String {
    format!("dirty_bits.{key}: {pattern}")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser("dirty_bits.tests", "completion: { clean: {} }", "dirty_bits: { tests: ['true'] }"),
        looser("dirty_bits.tests", "progress: {}", "dirty_bits: { tests: ['true'] }"),
        looser("dirty_bits.builds", "progress: {}", "dirty_bits: { builds: ['true'] }"),
        looser("dirty_bits.docs", "completion: { clean: {} }", "dirty_bits: { docs: ['src/**'] }"),
    ];
}
