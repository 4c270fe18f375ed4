//! Restricts words to listed files. The lists only shrink: an unlisted file with the word breaks
//! the rule, and so does a listed file without it.

use std::path::Path;

use super::{product_part, read, show};
use crate::shell::root;

/// A word, and the only product files that may contain it.
struct ConfinedWord {
    /// In lower case. Upper and lower case count as equal.
    word: &'static str,
    /// What the rule says.
    rule: &'static str,
    /// Names of crates, separated by spaces; empty for all crates.
    crates: &'static str,
    /// The files, relative to `crates`, each with a reason.
    files: &'static [(&'static str, &'static str)],
}

const RULES: [ConfinedWord; 2] = [
    ConfinedWord {
        word: "claude",
        rule: "crates below `clients` must not depend on an agent client",
        crates: "attempt decode definition engine host journal mcp model \
                 runtime sandbox sandbox-host shell supervisor task workspace",
        files: &[
            ("definition/data/models.yaml", "prices and context windows of models"),
            ("definition/packs/secrets.yaml", "paths of credentials"),
            (
                "definition/src/layers/session_strictness/random_cases.rs",
                "baseline: client names of tests",
            ),
            (
                "definition/src/layers/session_strictness/stories.rs",
                "baseline: client names of tests",
            ),
            ("definition/src/sections/models/tests.rs", "baseline: an example of each key"),
            ("engine/src/guards/protected/paths.rs", "paths of protected settings"),
            ("host/src/person/tests.rs", "names of agents in recorded processes"),
            ("host/src/agent_names.rs", "tables of programs, variables and settings of agents"),
        ],
    },
    ConfinedWord {
        word: "catch_unwind",
        rule: "a panic is caught only at the entry of an adapter or around code of users",
        crates: "",
        files: &[
            ("clients/src/hook_server.rs", "the entry of the hook"),
            ("mcp/src/serve.rs", "a tool of the server"),
            ("analysis/src/backtest.rs", "a recorded run that breaks the engine"),
            ("analysis/src/backtest/journal.rs", "a recorded session that breaks the engine"),
            ("runtime/src/door.rs", "baseline: the entry of the runtime"),
            ("analysis/src/explain.rs", "an explanation that breaks the engine"),
            ("runtime/src/extensions.rs", "custom guards, checks and feedback"),
        ],
    },
];

pub(super) fn check(problems: &mut Vec<String>) {
    let crates = root().join("crates");
    for rule in &RULES {
        let mut with_word = Vec::new();
        for directory in super::children(&crates) {
            if rule.crates.is_empty()
                || rule.crates.split(' ').any(|name| name == super::name(&directory))
            {
                collect(&directory, rule.word, &mut with_word);
            }
        }
        let listed = |path: &str| rule.files.iter().any(|(file, _)| *file == path);
        for path in with_word.iter().filter(|path| !listed(path)) {
            let ConfinedWord { word, rule, .. } = rule;
            problems.push(format!("crates/{path} contains `{word}`, but {rule}"));
        }
        for (file, _) in
            rule.files.iter().filter(|(file, _)| !with_word.iter().any(|it| it == file))
        {
            let word = rule.word;
            problems.push(format!("crates/{file} does not contain `{word}`; remove the file from the list in xtask/src/tidy/confined_words.rs"));
        }
    }
}

/// Adds the product files of a directory that contain a word, relative to `crates`.
fn collect(directory: &Path, word: &str, with_word: &mut Vec<String>) {
    for path in super::children(directory) {
        let is_test = super::name(&path) == "tests";
        if path.is_dir() && !is_test {
            collect(&path, word, with_word);
        } else if path.is_file() && product_part(&read(&path)).to_lowercase().contains(word) {
            let path = show(&path);
            with_word.push(path.strip_prefix("crates/").unwrap_or(&path).to_owned());
        }
    }
}
