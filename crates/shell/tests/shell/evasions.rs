//! Ways to evade a rule. The analysis must show the effect of each, or report it as opaque.

use jackline_shell::{
    Access, FileEffect, OpaqueReason, ShellLine, ShellOpaquePart, WordKind, understand,
};

use crate::lines::read_cases;

/// Whether a path may be `config.yaml`.
fn may_be_config(effect: &FileEffect<'_>) -> bool {
    let path = &*effect.path.text;
    let name = path.rsplit('/').next().unwrap_or(path);
    match effect.path.kind {
        WordKind::Unknown | WordKind::Repository => true,
        WordKind::Glob => path.ends_with("**") || glob(name.as_bytes(), b"config.yaml"),
        // The home directory is not the project directory.
        WordKind::Home => false,
        WordKind::Literal => name == "config.yaml" || effect.recursive,
    }
}

/// Whether a pattern of `*`, `?` and `[x]` matches a name.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            glob(rest, name) || name.split_first().is_some_and(|(_, name)| glob(pattern, name))
        }
        ([b'?', rest @ ..], [_, name @ ..]) => glob(rest, name),
        ([b'[', one, b']', rest @ ..] | [one, rest @ ..], [first, name @ ..]) => {
            one == first && glob(rest, name)
        }
        _ => false,
    }
}

fn writes(effect: &FileEffect<'_>) -> bool {
    !matches!(effect.access, Access::Read(_)) && may_be_config(effect)
}

fn deletes(effect: &FileEffect<'_>) -> bool {
    effect.access == Access::Delete && may_be_config(effect)
}

/// Whether an opaque part warns about more than a program without a row.
fn is_warning(part: &ShellOpaquePart<'_>) -> bool {
    part.reason != OpaqueReason::NoRow
}

/// Checks one table. Returns how many lines show the effect and how many are opaque.
fn check_table(file: &str, shown: impl Fn(&ShellLine<'_>) -> bool) -> (usize, usize) {
    let mut counts = (0, 0);
    let mut missed = Vec::new();
    for case in read_cases("evasions").iter().filter(|case| case.location.starts_with(file)) {
        let line = understand(&case.line);
        if shown(&line) {
            counts.0 += 1;
        } else if line.opaque_parts.iter().any(is_warning) {
            counts.1 += 1;
        } else {
            missed.push(format!("{} {}", case.location, case.line));
        }
    }
    println!("{file}: {} shown, {} opaque", counts.0, counts.1);
    assert!(missed.is_empty(), "{} lines hide their effect:\n{}", missed.len(), missed.join("\n"));
    counts
}

#[test]
fn every_way_to_remove_a_file_is_shown_or_opaque() {
    let (shown, opaque) = check_table("remove", |line| {
        let runs = line.commands.iter().any(|command| command.program() == "rm");
        runs || line.commands.iter().any(|command| command.effects.iter().any(deletes))
    });
    assert!(shown + opaque >= 150 && shown > opaque);
}

#[test]
fn every_way_to_write_a_file_is_shown_or_opaque() {
    let (shown, opaque) = check_table("write", |line| {
        line.commands.iter().any(|command| command.effects.iter().any(writes))
    });
    assert!(shown + opaque >= 100 && shown > opaque);
}

#[test]
fn every_way_to_push_is_shown_or_opaque() {
    let (shown, opaque) = check_table("push", |line| {
        line.commands.iter().any(|command| command.matches_pattern("git push"))
    });
    assert!(shown + opaque >= 40 && shown > opaque);
}

#[test]
fn a_line_that_only_mentions_a_command_is_harmless() {
    for line in [
        "git commit -m 'git push -f'",
        "echo git push -f",
        "echo 'rm config.yaml'",
        "grep -rn 'rm -rf' src",
        "cat <<'EOF' > notes.md\nrm config.yaml\ngit push -f\nEOF",
        "git log --grep 'git push'",
        "printf '%s' 'rm x' > notes.md",
        "# rm config.yaml",
        "ls # rm config.yaml",
        "echo \"don't rm config.yaml\"",
        "x='rm config.yaml'; echo \"$x\"",
        "git commit -F - <<'EOF'\nrm config.yaml\nEOF",
    ] {
        let line = understand(line);
        assert!(line.opaque_parts.is_empty(), "{line:?}");
        for command in &line.commands {
            assert!(!command.matches_pattern("git push") && command.program() != "rm", "{line:?}");
            assert!(!command.effects.iter().any(writes), "{line:?}");
        }
    }
}
