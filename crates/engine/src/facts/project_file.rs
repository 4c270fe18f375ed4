//! Finds out whether a project file declares tests.

use serde_json::Value;

/// The start of the script that `npm init` writes for a project without tests.
const NPM_PLACEHOLDER: &str = "echo \"Error: no test specified\"";

/// Returns whether a project file declares tests: a `package.json` with a script `test`, or a
/// makefile with a target `test`.
pub fn declares_tests(path: &str, text: &str) -> bool {
    let is_package = path.rsplit('/').next() == Some("package.json");
    if is_package { has_test_script(text) } else { has_test_target(text) }
}

fn has_test_script(text: &str) -> bool {
    let Ok(package) = serde_json::from_str::<Value>(text) else { return false };
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    !script.trim().is_empty() && !script.trim().starts_with(NPM_PLACEHOLDER)
}

fn has_test_target(text: &str) -> bool {
    text.lines().any(|line| {
        let Some((targets, rest)) = line.split_once(':') else { return false };
        // Commands of a rule begin with a tab, and `.PHONY` is no target.
        let is_rule = !line.starts_with(['\t', ' ', '#', '.']);
        // `test := x` and `test ::= x` are variables.
        let is_variable = rest.starts_with('=') || rest.starts_with(":=");
        is_rule && !is_variable && targets.split_whitespace().any(|name| name == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_declares_tests_by_its_script() {
        for (text, expected) in [
            (r#"{"scripts":{"test":"vitest run"}}"#, true),
            (r#"{"scripts":{"test":" "}}"#, false),
            (r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#, false),
            (r#"{"scripts":{"tests":"x"}}"#, false),
            (r#"{"scripts":{"test":1}}"#, false),
            ("{}", false),
            ("no JSON", false),
        ] {
            assert_eq!(declares_tests("package.json", text), expected, "{text}");
        }
    }

    #[test]
    fn a_makefile_declares_tests_by_its_target() {
        for (text, expected) in [
            ("all:\n\ttrue\ntest:\n\tpytest", true),
            ("check test: build", true),
            ("test:: build", true),
            ("test : build", true),
            ("tests: build", false),
            (".PHONY: test", false),
            ("all: test", false),
            ("test := 1", false),
            ("test ::= 1", false),
            ("# test: nothing", false),
            ("all:\n\ttest: x", false),
            ("", false),
        ] {
            assert_eq!(declares_tests("Makefile", text), expected, "{text}");
        }
    }
}
