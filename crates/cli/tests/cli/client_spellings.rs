//! Tests of `jackline check` for tools that the client calls by another name.

use crate::init::InitProject;
use crate::support::{CliWorld, run_with_input};

/// The warnings of `check` for a definition with one entry.
fn warnings(entry: &str) -> Vec<String> {
    let world = CliWorld::new(&format!("version: 1\n{entry}\n"));
    let run = world.jackline(&["check"]);
    assert_eq!(run.code, Some(0), "{entry}: {run:?}");
    let lines = run.stdout.lines().filter_map(|line| line.strip_prefix("warning: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_tool_that_the_client_calls_otherwise_is_named_with_its_spelling() {
    for (entry, place, spelling) in [
        ("tools: { bash: { kind: exec, idempotent: false } }", "`tools` names `bash`", "`Bash`"),
        ("limits: { tool_calls: { bash: 1 } }", "`limits.tool_calls` names `bash`", "`Bash`"),
        (
            "limits: { tool_calls: { run_shell_command: 1 } }",
            "`limits.tool_calls` names `run_shell_command`",
            "`Bash`",
        ),
        (
            "rules: [{ name: r, tool: create_file, deny: no, examples: { deny: [{ path: x }] } }]",
            "rule `r` names `create_file`",
            "`Write`",
        ),
        (
            "policies: [{ sequential_dependency: { Edit: [read_many_files] } }]",
            "`sequential_dependency` names `read_many_files`",
            "`Read`",
        ),
    ] {
        let found = warnings(entry);
        let is_it = |text: &String| text.starts_with(place) && text.contains(spelling);
        assert!(found.iter().any(is_it), "{entry}: {found:?}");
    }
}

#[test]
fn a_misspelt_tool_is_named_with_the_tool_that_is_meant() {
    let found = warnings("limits: { tool_calls: { Bsah: 1 } }");
    assert!(found.iter().any(|text| text.contains("did you mean `Bash`?")), "{found:?}");
    let found = warnings("policies: [{ sequential_dependency: { Bash: [tset] } }]");
    assert!(found.iter().any(|text| text.contains("`tset`")), "{found:?}");
}

#[test]
fn names_of_the_client_and_of_jackline_give_no_warning() {
    for entry in [
        "tools: { Bash: { idempotent: false } }",
        "tools: { run: { kind: exec, aliases: [Bash] } }",
        "tools: { Write: {}, tests: { commands: [make test] } }\npolicies: [{ sequential_dependency: { Write: [tests] } }]",
        "limits: { tool_calls: { mcp__db__query: 1 } }",
        "limits: { tool_calls: { write_file: 3 } }",
        "extends: [coding-agent]",
        "extends: [strict]",
    ] {
        assert_eq!(warnings(entry), Vec::<String>::new(), "{entry}");
    }
}

#[test]
fn where_the_client_is_installed_its_spelling_counts_for_all_tools() {
    let project = InitProject::in_git();
    project.write("jackline.yaml", "version: 1\nlimits: { tool_calls: { write_file: 3 } }\n");
    assert_eq!(project.run_init(&["claude", "--yes"]).code, Some(0));
    let run = run_with_input(project.command().arg("check"), b"");
    assert!(run.stdout.contains("Claude Code calls this tool `Write`"), "{run:?}");
}
