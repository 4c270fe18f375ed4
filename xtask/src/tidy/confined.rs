//! Words that only listed files may contain. A list shrinks: an unlisted file with the word breaks
//! the rule, and so does a listed file without it.

use std::path::Path;

use super::{product_part, read, show};
use crate::shell::root;

/// A word, and the only product files that may contain it.
struct Confined {
    /// In lower case; files are searched without regard to case.
    word: &'static str,
    /// What the rule is for.
    rule: &'static str,
    /// Names of crates with spaces between them; all crates where it is empty.
    crates: &'static str,
    /// The files, relative to `crates`, each with a reason.
    files: &'static [(&'static str, &'static str)],
}

const RULES: [Confined; 2] = [
    Confined {
        word: "claude",
        rule: "crates below `clients` know no agent client",
        crates: "attempt decode definition engine host journal mcp model \
                 runtime sandbox sandbox-host shell supervisor task workspace",
        files: &[
            ("definition/data/models.yaml", "prices and context windows of models"),
            ("definition/packs/secrets.yaml", "paths of credentials"),
            ("definition/src/layers/held_as_hard/any.rs", "baseline: client names of tests"),
            ("definition/src/layers/held_as_hard/stories.rs", "baseline: client names of tests"),
            ("definition/src/sections/models/tests.rs", "baseline: an example of each key"),
            ("engine/src/guards/protected/paths.rs", "paths of settings that are protected"),
            ("host/src/agent_names.rs", "tables of programs, variables and settings of agents"),
        ],
    },
    Confined {
        word: "catch_unwind",
        rule: "a panic is caught at the door of an adapter or around code that users wrote",
        crates: "",
        files: &[
            ("clients/src/hook_server.rs", "the door of the hook"),
            ("mcp/src/serve.rs", "a tool of the server"),
            ("analysis/src/backtest.rs", "a recorded run that breaks the engine"),
            ("analysis/src/backtest/journal.rs", "a recorded session that breaks the engine"),
            ("runtime/src/door.rs", "baseline: the runtime's own door"),
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
            let Confined { word, rule, .. } = rule;
            problems.push(format!("crates/{path} contains `{word}`, but {rule}"));
        }
        for (file, _) in
            rule.files.iter().filter(|(file, _)| !with_word.iter().any(|it| it == file))
        {
            let word = rule.word;
            problems.push(format!("crates/{file} has no `{word}` any more; remove it from the list in xtask/src/tidy/confined.rs"));
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
