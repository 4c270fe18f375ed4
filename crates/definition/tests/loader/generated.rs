//! Tests that the committed reference files are up to date, and that the schema accepts every
//! definition of the project.

use std::path::{Path, PathBuf};

use jackline_definition::{Diagnostics, reference, schema, yaml};

use crate::schema_accepts;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_committed_reference_is_the_generated_one() {
    let committed = |name: &str| {
        std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap_or_default()
    };
    for (name, generated) in
        [("definition.md", reference()), ("jackline.schema.json", format!("{:#}\n", schema()))]
    {
        assert!(committed(name) == generated, "{name} is out of date; run `cargo xtask generate`");
    }
}

#[test]
fn the_schema_accepts_every_definition_of_the_project() {
    let mut count = 0;
    for directory in
        ["examples", "crates/bench", "crates/definition/presets", "crates/definition/packs"]
    {
        for file in yaml_files(&root().join(directory)) {
            // An example of a task also has other YAML files.
            if directory == "examples" && !file.ends_with("jackline.yaml") {
                continue;
            }
            let source = std::fs::read(&file).unwrap();
            assert_eq!(schema_accepts(&source), Some(true), "{}", file.display());
            count += 1;
        }
    }
    assert!(count >= 9, "{count} files");
}

/// A scenario contains its definition as text; some scenarios have an invalid definition.
#[test]
fn the_schema_accepts_the_definitions_of_the_scenarios() {
    let mut count = 0;
    for file in yaml_files(&root().join("crates/conformance/scenarios")) {
        let source = std::fs::read(&file).unwrap();
        let tree = yaml::parse(&source, &mut Diagnostics::new("scenario")).unwrap().to_json();
        let definition = tree["definition"].as_str().unwrap().as_bytes();
        if jackline_definition::load(definition, "f").is_ok() {
            assert_eq!(schema_accepts(definition), Some(true), "{}", file.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count} definitions");
}

pub(crate) fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}
