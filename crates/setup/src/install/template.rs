//! The definition that `jackline init` writes.

/// It starts in mode `observe`: decisions are recorded and nothing is denied, until a person has
/// seen what would have been denied.
pub const DEFINITION: &str = "\
# What the agents in this directory may not do. `jackline check` checks this file.
version: 1

# The packs `destructive`, `git`, `secrets` and `publish`: they deny actions that can't be undone,
# or ask a person about them. They limit nothing else.
extends: [coding-agent]

# observe: every call is decided and recorded, and nothing is denied, except changes of the guard's
# own files. `jackline status` and `jackline log --objections` show what would have been denied.
# To start denying, run `jackline enforce`, or write `enforce` here.
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
