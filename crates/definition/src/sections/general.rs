//! `version`, `name` and `extends`: what the file is.

use super::prelude::*;

// `extends.rs` reads `version` and `extends`, before the files are merged.
static KEYS: [Key; 3] = [
    key("version", Count(1, 1), "1", "The version of this format."),
    key(
        "name",
        Form("^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,64}$", "`namespace/key`"),
        "`local/agent`",
        "What the definition is called in verdicts and journals.",
    ),
    key(
        "extends",
        OneOf(&[Text, List(0, &Text)]),
        "none",
        "What this file builds on: presets, packs (`pack/git`) and files (`./base.yaml`); see below.",
    ),
];

pub(crate) struct GeneralSection;

impl Section for GeneralSection {
    /// None for a file without a name.
    type Part = Option<Demand<String>>;

    const KEYS: &'static [Key] = &KEYS;

    fn lower(key: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
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

    /// The name of the lower layer is closer to the agent.
    fn join(high: &LayerDemands, low: &mut LayerDemands, _join: &mut LayerJoin) -> Self::Part {
        low.name.clone().or_else(|| high.name.clone())
    }

    fn describe(name: &Self::Part, lines: &mut EffectiveLines<'_>) {
        if let Some(name) = name {
            lines.general(format!("name: {}", name.value), name.layer);
        }
    }

    fn put(name: Self::Part, definition: &mut Definition) {
        if let Some(name) = name {
            definition.name = name.value;
        }
    }
}

fn name(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "`name`")?;
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let fits = text.split_once('/').is_some_and(|(space, key)| part(space) && part(key));
    if !fits {
        let message = format!("`{text}` is not a name");
        reader.complain_hint(node.at, message, "write it as namespace/key, such as acme/coder");
    }
    fits.then(|| text.to_owned())
}
