//! Ways around a rule: each must show what it does, or be opaque.

use jackline_shell::{Access, Effect, Known, Line, Opaque, Reason, understand};

use crate::lines::cases;

/// Whether a path may be `config.yaml`.
fn may_be_config(effect: &Effect<'_>) -> bool {
    let path = &*effect.path.text;
    let name = path.rsplit('/').next().unwrap_or(path);
    match effect.path.known {
        Known::Unknown | Known::Repository => true,
        Known::Glob => path.ends_with("**") || glob(name.as_bytes(), b"config.yaml"),
        // The home directory is another place.
        Known::Home => false,
        Known::Literal => name == "config.yaml" || effect.recursive,
    }
}

/// A pattern of `*`, `?` and `[x]` against a name.
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

fn writes(effect: &Effect<'_>) -> bool {
    !matches!(effect.access, Access::Read(_)) && may_be_config(effect)
}

fn deletes(effect: &Effect<'_>) -> bool {
    effect.access == Access::Delete && may_be_config(effect)
}

/// Whether an opaque part is more than a program nobody knows.
fn tells(part: &Opaque<'_>) -> bool {
    part.reason != Reason::NoRow
}

/// Checks one table; answers how many lines were shown and how many opaque.
fn check(file: &str, shown: impl Fn(&Line<'_>) -> bool) -> (usize, usize) {
    let mut counts = (0, 0);
    let mut missed = Vec::new();
    for case in cases("evasions").iter().filter(|case| case.place.starts_with(file)) {
        let line = understand(&case.line);
        if shown(&line) {
            counts.0 += 1;
        } else if line.opaque.iter().any(tells) {
            counts.1 += 1;
        } else {
            missed.push(format!("{} {}", case.place, case.line));
        }
    }
    println!("{file}: {} shown, {} opaque", counts.0, counts.1);
    assert!(missed.is_empty(), "{} got through:\n{}", missed.len(), missed.join("\n"));
    counts
}

#[test]
fn no_way_to_remove_a_file_goes_unseen() {
    let (shown, opaque) = check("remove", |line| {
        let runs = line.commands.iter().any(|command| command.program() == "rm");
        runs || line.commands.iter().any(|command| command.effects.iter().any(deletes))
    });
    assert!(shown + opaque >= 150 && shown > opaque);
}

#[test]
fn no_way_to_write_a_file_goes_unseen() {
    let (shown, opaque) = check("write", |line| {
        line.commands.iter().any(|command| command.effects.iter().any(writes))
    });
    assert!(shown + opaque >= 100 && shown > opaque);
}

#[test]
fn no_way_to_push_goes_unseen() {
    let (shown, opaque) =
        check("push", |line| line.commands.iter().any(|command| command.is("git push")));
    assert!(shown + opaque >= 40 && shown > opaque);
}

#[test]
fn what_only_looks_like_it_is_left_alone() {
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
        assert!(line.opaque.is_empty(), "{line:?}");
        for command in &line.commands {
            assert!(!command.is("git push") && command.program() != "rm", "{line:?}");
            assert!(!command.effects.iter().any(writes), "{line:?}");
        }
    }
}
