//! `version`, `name` and `extends`: the identity of the file.

use super::prelude::*;

// `extends.rs` reads `version` and `extends`, before the files are merged.
static KEYS: [KeySpec; 3] = [
    key("version", Count(1, 1), "1", "The version of the file format."),
    key(
        "name",
        Form("^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,64}$", "`namespace/key`"),
        "`local/agent`",
        "The name of the definition in verdicts and journals.",
    ),
    key(
        "extends",
        OneOf(&[Text, List(0, &Text)]),
        "none",
        "The presets, packs (`pack/git`) and files (`./base.yaml`) that this file builds on; see below.",
    ),
];

pub(crate) struct GeneralSection;

impl Section for GeneralSection {
    /// None if the file has no name.
    type Part = Option<Demand<String>>;

    const KEYS: &'static [KeySpec] = &KEYS;

    fn lower(
        key: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        if key == "name"
            && let Some(name) = name(node, reader)
        {
            lowering.definition.name = name;
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let name = &source.definition.name;
        source.option(Some(name).filter(|name| **name != Definition::default().name))
    }

    /// The name of the lower layer wins, because that layer is closer to the agent.
    fn join(high: &LayerDemands, low: &mut LayerDemands, _join: &mut LayerJoin) -> Self::Part {
        low.name.clone().or_else(|| high.name.clone())
    }

    fn describe(name: &Self::Part, lines: &mut DemandLines<'_>) {
        if let Some(name) = name {
            lines.add_general(format!("name: {}", name.value), name.layer);
        }
    }

    fn put(name: Self::Part, definition: &mut Definition) {
        if let Some(name) = name {
            definition.name = name.value;
        }
    }
}

fn name(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<String> {
    let text = reader.text(node, "`name`")?;
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let fits = text.split_once('/').is_some_and(|(space, key)| part(space) && part(key));
    if !fits {
        let message = format!("`{text}` is not a name");
        reader.report_with_hint(
            node.position,
            message,
            "write it as namespace/key, such as acme/coder",
        );
    }
    fits.then(|| text.to_owned())
}
