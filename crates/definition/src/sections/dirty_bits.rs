//! `dirty_bits`: which commands test and build, and which files are documentation.

use jackline_engine::definition::DirtyBits;
use jackline_engine::path::canonical;

use super::prelude::*;
use crate::values::{command_words, limited_list};

static KEYS: [Key; 1] = [key(
    "dirty_bits",
    Map(&DIRTY_BITS),
    "",
    "What counts as a test, a build and documentation, besides what is known everywhere.",
)];

static DIRTY_BITS: Keys = Keys {
    id: "dirty_bits",
    of: "`dirty_bits`",
    doc: "Commands are programs and subcommands, as in `commands` of a tool, or names of tools. They are added to those that \
          are known: `cargo test`, `pytest`, `go test`, `npm test`, `make test`, `mvn verify` and so on, through `bash -c`, `uv run`, `npx` and the like.",
    known: &[
        key("tests", List(0, &Text), "none", "Commands that test, such as `./test.sh`."),
        key("builds", List(0, &Text), "none", "Commands that build."),
        key(
            "docs",
            List(0, &Path),
            "none",
            "Files that are documentation and not code, besides `*.md` and `docs/**`.",
        ),
    ],
    needs: &[],
};

/// How many patterns each key may have: the engine compares them at every call.
const PATTERNS_MAX: usize = 64;

/// A pattern, and the key that has it.
pub(crate) type DirtyPattern = (&'static str, String);

pub(crate) struct DirtyBitsSection;

impl Section for DirtyBitsSection {
    type Part = Vec<Demand<DirtyPattern>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&DIRTY_BITS];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mut bits = DirtyBits::default();
        for (key, node) in reader.fields(node, &DIRTY_BITS) {
            let what = format!("`dirty_bits.{key}`");
            let too_many =
                |count| format!("{count} in {what}; at most {PATTERNS_MAX} are looked at");
            let items = limited_list(node, &what, PATTERNS_MAX, too_many, reader).iter();
            match key {
                "docs" => bits.docs = items.filter_map(|item| pattern(item, reader)).collect(),
                _ => {
                    let words = items.filter_map(|item| command_words(item, "a command", reader));
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

    /// Where a demand of the higher layer rests on tests, the lower layer can't say what a test
    /// is: `true` would be a test that always passes.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let Some(to) = rests_on_tests(high).filter(|_| !join.overrides()) else {
            return union(&high.dirty_bits, &low.dirty_bits);
        };
        for Demand { value, layer } in &low.dirty_bits {
            if !high.dirty_bits.iter().any(|known| known.value == *value) {
                let text = format!("`{}`", text(value));
                join.ignore(Subject::Setting, text, *layer, to, "rests on what counts as a test");
            }
        }
        high.dirty_bits.clone()
    }

    fn describe(patterns: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for pattern in patterns {
            lines.add(Subject::Setting, text(&pattern.value), pattern.layer);
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

/// A pattern of files in the workspace. A name alone matches at any depth, and a slash at the
/// end means everything below.
fn pattern(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "a pattern of files")?;
    let below = text.ends_with('/');
    match canonical(text, None) {
        Ok(path) if path == "." => {
            reader.complain(node.at, format!("`{text}` would take everything for documentation"));
            None
        }
        Ok(path) if below => Some(format!("{path}/**")),
        Ok(path) if !path.contains('/') => Some(format!("**/{path}")),
        Ok(path) => Some(path),
        Err(error) => {
            reader.complain_hint(node.at, error.to_string(), "write it as `docs/**` or `*.rst`");
            None
        }
    }
}

/// The layer whose demand depends on which files changed and which tests passed, if there is one.
pub(crate) fn rests_on_tests(demands: &LayerDemands) -> Option<usize> {
    let clean = demands.completion.checks.iter().find(|check| check.value.wants_clean());
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
