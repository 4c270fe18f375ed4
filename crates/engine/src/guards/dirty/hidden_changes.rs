//! Files that a call may change unseen: through scripts, patches, archives, and programs with an
//! option that rewrites files.
//!
//! An unknown effect does not count as clean. A part that looks like a write counts as a change of
//! code. A part that merely could write is recorded as a possible change.

mod write_signs;

use jackline_shell::{OpaqueReason, ShellCommand, ShellLine, ShellOpaquePart};
use serde::{Deserialize, Serialize};

use crate::checks::{LocatedCheck, runs_command};
use crate::guards::read_before_write;
use crate::proposal::{Proposal, ProposedRun};
use crate::session_location::SessionLocation;
use crate::tool::ToolKind;

/// What a call may change unseen. The worst part of the call counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum HiddenChange {
    /// Nothing.
    #[default]
    Nothing,
    /// Something may change, without any sign of a write.
    Perhaps,
    /// Code probably changes.
    Code,
}

/// Returns what a call may change unseen.
pub(super) fn find_hidden_change(
    place: &SessionLocation,
    proposal: &Proposal<'_>,
    found: &[LocatedCheck],
) -> HiddenChange {
    match (&proposal.run, proposal.tool.kind) {
        (ProposedRun::Line(line), ToolKind::Exec) => {
            let commits = line.commands.iter().any(|command| command.matches_pattern("git commit"));
            let least = if commits { HiddenChange::Perhaps } else { HiddenChange::Nothing };
            let unknown = line.opaque_parts.iter().filter(|part| {
                !proposal.is_recognised(part.command) && !is_only_check(line, part.command, found)
            });
            unknown
                .map(|part| hidden_change_in_part(place, proposal, line, part))
                .fold(least, Ord::max)
        }
        (ProposedRun::Unseen, ToolKind::Exec) => HiddenChange::Code,
        (_, ToolKind::Other | ToolKind::Effect | ToolKind::Spawn) => HiddenChange::Perhaps,
        _ => HiddenChange::Nothing,
    }
}

/// Returns whether a command is a check, or runs inside one, and does not fix the findings.
fn is_only_check(line: &ShellLine<'_>, command: Option<u32>, found: &[LocatedCheck]) -> bool {
    let Some(number) = command else { return false };
    let fixes = line.commands.get(number as usize).is_some_and(write_signs::has_fix_option);
    let mut checks = found.iter().filter_map(|found| found.command);
    !fixes && checks.any(|check| runs_command(line, check, number))
}

fn hidden_change_in_part(
    place: &SessionLocation,
    proposal: &Proposal<'_>,
    line: &ShellLine<'_>,
    part: &ShellOpaquePart<'_>,
) -> HiddenChange {
    let command = part.command.and_then(|number| line.commands.get(number as usize));
    let likely = match part.reason {
        OpaqueReason::Contents => {
            !names_target(proposal, part) && is_in_workspace(place, proposal, command, part)
        }
        OpaqueReason::InlineScript => write_signs::has_write_sign(&part.text),
        OpaqueReason::ScriptFile => {
            !has_script_text(line, part) && !is_setup_or_program(command, &part.text)
        }
        OpaqueReason::NoRow => command.is_some_and(write_signs::has_write_option),
        OpaqueReason::Runner => command.is_some_and(write_signs::is_asked_to_rewrite),
        OpaqueReason::UnknownScript
        | OpaqueReason::UnknownProgram
        | OpaqueReason::Unparsable
        | OpaqueReason::TooLong
        | OpaqueReason::TooDeep
        | OpaqueReason::TooMany
        | OpaqueReason::StartsItself => true,
        OpaqueReason::UnknownArguments
        | OpaqueReason::Alias
        | OpaqueReason::Elsewhere
        | OpaqueReason::Environment
        | OpaqueReason::Nul => false,
    };
    if likely { HiddenChange::Code } else { HiddenChange::Perhaps }
}

/// Returns whether the changes of an opaque part are named elsewhere: by a patch in the command
/// line, or as a word of the command.
fn names_target(proposal: &Proposal<'_>, part: &ShellOpaquePart<'_>) -> bool {
    let own = |command: Option<u32>| command.is_some() && command == part.command;
    proposal
        .touches
        .iter()
        .any(|touch| own(touch.command) && read_before_write::changes_workspace(proposal, touch))
}

/// Returns whether the target directory is in the workspace.
fn is_in_workspace(
    place: &SessionLocation,
    proposal: &Proposal<'_>,
    command: Option<&ShellCommand<'_>>,
    part: &ShellOpaquePart<'_>,
) -> bool {
    let base = command.and_then(|command| place.command_directory(&command.dir, &proposal.cwd));
    let Some(base) = base.filter(|_| !part.text.contains(['$', '`', '\n'])) else { return true };
    let path = place.resolve_path(&part.text, &base);
    // A directory above the workspace contains every file in it.
    let above = |root: &str| root.starts_with(&*path);
    !path.starts_with('/') || place.workspace.as_deref().is_some_and(above)
}

/// Returns whether the command line contains the script text, so that the script was parsed.
fn has_script_text(line: &ShellLine<'_>, part: &ShellOpaquePart<'_>) -> bool {
    let same = |other: &ShellOpaquePart<'_>| {
        other.command == part.command && other.reason == OpaqueReason::InlineScript
    };
    part.command.is_some()
        && (line.opaque_parts.iter().any(same)
            || line.commands.iter().any(|command| command.parent == part.command))
}

/// Returns whether a script only sets up an environment, or is an installed or built program
/// instead of a project script.
fn is_setup_or_program(command: Option<&ShellCommand<'_>>, path: &str) -> bool {
    let sourced = command.is_some_and(|command| matches!(command.program(), "." | "source"));
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_environment = || {
        ["activate", "nvm.sh", "conda.sh", "profile", ".envrc", ".env", ".bashrc", ".zshrc"]
            .iter()
            .any(|file| name.ends_with(file))
    };
    let installed = [
        "venv/bin/",
        "env/bin/",
        "vendor/bin/",
        "node_modules/",
        "target/debug/",
        "target/release/",
    ];
    let is_program = || {
        let called = command.and_then(|command| command.words.first());
        called.is_some_and(|word| word.text == path)
            && (installed.iter().any(|dir| path.contains(dir))
                || matches!(name, "gradlew" | "mvnw"))
    };
    (sourced && is_environment()) || is_program()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Definition;
    use crate::proposal::ProposalSource;
    use crate::wire::parse_line;
    use alloc::string::ToString;
    use serde_json::json;

    fn hidden(line: &str) -> HiddenChange {
        let definition = Definition::default();
        let place =
            SessionLocation { workspace: Some("/home/u/w".into()), ..SessionLocation::default() };
        let event = json!({"session":"s","event":"tool_proposed","call":"c","tool":"Bash",
                           "args":{"command":line}});
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let heard = ProposalSource::of(&definition, &event).unwrap();
        let proposal = Proposal::of(&definition, &place, &heard);
        find_hidden_change(&place, &proposal, proposal.checks(&definition))
    }

    #[test]
    fn commands_that_look_like_writes_count_as_code_changes() {
        for line in [
            "git merge x",
            "git -C sub pull --rebase",
            "git am < x.patch",
            "tar -xzf x.tgz -C /home/u/w/src",
            "tar xf x.tar -C /home/u",
            "cd /tmp && ./gen.sh",
            "bash -c './gen.sh'",
            "sh < gen.sh",
            "python3 gen.py --check",
            "python3 < gen.py",
            "uv run gen.py",
            "cat gen.py | python3",
            "perl -e 'open(F, \">a\"); print F 1'",
            "ruby -e 'File.write(\"a\", 1)'",
            "php -r 'file_put_contents(\"a\", 1);'",
            "awk '{ print > \"out\" }' a",
            "eval \"$X\"",
            "source gen.sh",
            "cargo +nightly fmt --all",
            "cargo clippy --fix --allow-dirty",
            "npx prettier --write .",
            "pre-commit run --fix",
            "go generate ./...",
            "go mod tidy",
            "just fmt",
            "cat > g.py <<'E'\nopen('a', 'w')\nE\npython g.py",
        ] {
            assert_eq!(hidden(line), HiddenChange::Code, "{line}");
        }
    }

    #[test]
    fn read_only_commands_do_not_count_as_code_changes() {
        for line in [
            "pytest -q",
            "cargo test --no-fail-fast",
            "cargo build",
            "cargo clippy",
            "cargo fmt --check",
            "npm test",
            "npm run build",
            "make",
            "make test",
            ".venv/bin/python -c 'print(1)'",
            ".venv/bin/pytest",
            "node_modules/.bin/eslint src",
            "./gradlew test",
            "./target/debug/app",
            "ls",
            "git status && git diff",
            "git commit -m 'write_text'",
            "git log --oneline | head",
            "tar xf x.tar -C /tmp/x",
            "cat > g.py <<'E'\nprint(1)\nE\npython g.py",
            "python -m pip list",
            "grep -rn write_text .",
            "find . -name '*.py' | xargs wc -l",
            "psql -c 'select 1'",
            "docker ps",
            "gh pr view 1",
            "node -e 'console.log(1)'",
        ] {
            assert_ne!(hidden(line), HiddenChange::Code, "{line}");
        }
    }
}
