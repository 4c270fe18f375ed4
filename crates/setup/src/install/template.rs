//! The definition that a newcomer starts with.

/// Quiet from the first day: everything is decided and nothing is refused,
/// until a person has seen what would have been.
pub const DEFINITION: &str = "\
# What the agents in this directory may not do. `jackline check` checks this file.
version: 1

# The packs `destructive`, `git`, `secrets` and `publish`: what can't be undone is refused, or asked
# about. They limit nothing else.
extends: [coding-agent]

# observe: every call is decided and written down, and none is refused but writes to the guard's
# own files. `jackline status` and `jackline log --objections` show what would have been denied.
# When you are happy: `jackline enforce`, or write `enforce` here.
mode: observe

# A rule of your own (docs/guide/write-a-rule.md):
#
# rules:
#   - name: no-force-push
#     tool: exec
#     command: git push
#     when: 'argv.exists(a, a == \"--force\" || a == \"-f\")'
#     deny: Force pushes rewrite shared history. Push a new branch instead.
#     examples: { deny: [git push -f origin main], allow: [git push origin main] }
";
