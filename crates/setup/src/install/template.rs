//! The definition that `jackline init` writes.

use std::path::Path;

/// The longest part of a definition's name.
const NAME_PART_CHARS_MAX: usize = 64;

/// The definition for a directory, or for all projects of the user.
///
/// It starts in mode `observe`: decisions are recorded and nothing is denied, until a person has
/// seen what would have been denied. The comment above the mode describes both modes, because
/// `jackline enforce` changes only the word. The definition has a name of its own, because a person approves agents for
/// the name of a definition.
pub(crate) fn definition_text(project: Option<&Path>) -> String {
    let (place, name) = match project {
        Some(project) => ("in this directory", directory_name(project)),
        None => ("of this user", "all-projects".to_owned()),
    };
    format!(
        "\
# What the agents {place} may not do. `jackline check` checks this file.
version: 1

# The name of this definition in journals. A person approves agents for this name
# (`jackline identity approve`).
name: local/{name}

# The packs `destructive`, `git`, `secrets` and `publish`: they deny actions that can't be undone,
# or ask a person about them. They limit nothing else.
extends: [coding-agent]

# enforce: a call that breaks a rule does not run.
# observe: every call is decided and recorded, and runs, except a call that would remove the guard
# itself. `jackline status` and `jackline log --objections` show what would have been denied.
# `jackline enforce` and `jackline observe` change the mode.
mode: observe

# A rule of your own (docs/guide/write-a-rule.md):
#
# rules:
#   - name: no-force-push
#     tool: exec
#     command: git push
#     when: 'argv.exists(a, a == \"--force\" || a == \"-f\")'
#     deny: Force pushes rewrite shared history. Push a new branch instead.
#     examples: {{ deny: [git push -f origin main], allow: [git push origin main] }}
"
    )
}

/// The name of a directory, in the characters that the name of a definition may have.
fn directory_name(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(allowed).take(NAME_PART_CHARS_MAX).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "agent".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_gives_a_valid_name() {
        for (directory, name) in [
            ("/home/you/web", "web"),
            ("/home/you/my web (new)", "my-web--new"),
            ("/home/you/.dots", ".dots"),
            ("/home/you/日本", "agent"),
            ("/", "agent"),
        ] {
            assert_eq!(directory_name(Path::new(directory)), name);
        }
        assert_eq!(directory_name(Path::new(&"x".repeat(90))).len(), 64);
    }
}
