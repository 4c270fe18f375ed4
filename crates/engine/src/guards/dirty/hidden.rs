//! What a call may change where nobody sees it: scripts, patches, archives, and
//! programs that are told to rewrite files.
//!
//! Unknown is not clean. What looks as if it wrote counts as a change of code;
//! what only might is enough to say that something perhaps changed.

mod signs;

use jackline_shell::{Command, Line, Opaque, Reason};
use serde::{Deserialize, Serialize};

use crate::checks::{Found, runs};
use crate::guards::reads;
use crate::place::Place;
use crate::proposal::{Proposal, Run};
use crate::tool::Kind;

/// What may be changed unseen; the worst of all parts of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Hidden {
    /// Nothing.
    #[default]
    Nothing,
    /// Something, but nothing says so.
    Perhaps,
    /// Code, as far as anybody can tell.
    Code,
}

/// What a call may change where nobody sees it.
pub(super) fn of(place: &Place, proposal: &Proposal<'_>, found: &[Found]) -> Hidden {
    match (&proposal.run, proposal.tool.kind) {
        (Run::Line(line), Kind::Exec) => {
            let commits = line.commands.iter().any(|command| command.is("git commit"));
            let least = if commits { Hidden::Perhaps } else { Hidden::Nothing };
            let unknown = line.opaque.iter().filter(|part| {
                !proposal.is_recognised(part.command) && !only_checks(line, part.command, found)
            });
            unknown.map(|part| in_part(place, proposal, line, part)).fold(least, Ord::max)
        }
        (Run::Unseen, Kind::Exec) => Hidden::Code,
        (_, Kind::Other | Kind::Effect | Kind::Spawn) => Hidden::Perhaps,
        _ => Hidden::Nothing,
    }
}

/// Whether a command is a check, or run by one, and does not mend what it finds.
fn only_checks(line: &Line<'_>, command: Option<u32>, found: &[Found]) -> bool {
    let Some(number) = command else { return false };
    let mends = line.commands.get(number as usize).is_some_and(signs::asks_to_mend);
    let mut checks = found.iter().filter_map(|found| found.command);
    !mends && checks.any(|check| runs(line, check, number))
}

fn in_part(place: &Place, proposal: &Proposal<'_>, line: &Line<'_>, part: &Opaque<'_>) -> Hidden {
    let command = part.command.and_then(|number| line.commands.get(number as usize));
    let likely = match part.reason {
        Reason::Contents => {
            !names_what(proposal, part) && is_inside(place, proposal, command, part)
        }
        Reason::InlineScript => signs::of_writing(&part.text),
        Reason::ScriptFile => !is_known(line, part) && !prepares(command, &part.text),
        Reason::NoRow => command.is_some_and(signs::asks_to_write),
        Reason::Runner => command.is_some_and(signs::asks_to_rewrite),
        Reason::UnknownScript
        | Reason::UnknownProgram
        | Reason::Unparsable
        | Reason::TooLong
        | Reason::TooDeep
        | Reason::TooMany => true,
        Reason::UnknownArguments
        | Reason::Alias
        | Reason::Elsewhere
        | Reason::Environment
        | Reason::Nul => false,
    };
    if likely { Hidden::Code } else { Hidden::Perhaps }
}

/// Whether what a part changes is named elsewhere: by a patch in the line, as a
/// word of the command.
fn names_what(proposal: &Proposal<'_>, part: &Opaque<'_>) -> bool {
    let own = |command: Option<u32>| command.is_some() && command == part.command;
    proposal.touches.iter().any(|touch| own(touch.command) && reads::counts(proposal, touch))
}

/// Whether the directory into which something is put is in the workspace.
fn is_inside(
    place: &Place,
    proposal: &Proposal<'_>,
    command: Option<&Command<'_>>,
    part: &Opaque<'_>,
) -> bool {
    let base = command.and_then(|command| place.directory(&command.dir, &proposal.cwd));
    let Some(base) = base.filter(|_| !part.text.contains(['$', '`', '\n'])) else { return true };
    let path = place.locate(&part.text, &base);
    // From above the workspace everything in it can be reached.
    let above = |root: &str| root.starts_with(&*path);
    !path.starts_with('/') || place.workspace.as_deref().is_some_and(above)
}

/// Whether the line itself holds the script, so that it was read as what it is.
fn is_known(line: &Line<'_>, part: &Opaque<'_>) -> bool {
    let same =
        |other: &Opaque<'_>| other.command == part.command && other.reason == Reason::InlineScript;
    part.command.is_some()
        && (line.opaque.iter().any(same)
            || line.commands.iter().any(|command| command.parent == part.command))
}

/// Whether it only prepares an environment, or is a program that was installed or
/// built, and not a script of the project.
fn prepares(command: Option<&Command<'_>>, path: &str) -> bool {
    let sourced = command.is_some_and(|command| matches!(command.program(), "." | "source"));
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_environment = || {
        ["activate", "nvm.sh", "conda.sh", "profile", ".envrc", ".env", ".bashrc", ".zshrc"]
            .iter()
            .any(|known| name.ends_with(known))
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
    use crate::proposal::Heard;
    use crate::wire::parse_line;
    use alloc::string::ToString;
    use serde_json::json;

    fn hidden(line: &str) -> Hidden {
        let definition = Definition::default();
        let place = Place { workspace: Some("/home/u/w".into()), ..Place::default() };
        let event = json!({"session":"s","event":"tool_proposed","call":"c","tool":"Bash",
                           "args":{"command":line}});
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let heard = Heard::of(&definition, &event).unwrap();
        let proposal = Proposal::of(&definition, &place, &heard);
        of(&place, &proposal, proposal.checks(&definition))
    }

    #[test]
    fn what_looks_as_if_it_wrote_is_code() {
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
            assert_eq!(hidden(line), Hidden::Code, "{line}");
        }
    }

    #[test]
    fn what_only_looks_is_none() {
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
            assert_ne!(hidden(line), Hidden::Code, "{line}");
        }
    }
}
