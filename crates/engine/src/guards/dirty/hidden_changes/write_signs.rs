//! Signs that a program or a script writes files.

use jackline_shell::ShellCommand;

/// Words of script languages that change files or run other programs.
const WRITE_WORDS: &[&str] = &[
    "write_text",
    "write_bytes",
    "writelines",
    "writeFile",
    "writeTextFile",
    "appendFile",
    "WriteStream",
    "file_put_contents",
    "File.write",
    "IO.write",
    "FileUtils",
    "fwrite",
    "fputs",
    "fileinput",
    "shutil.",
    "truncate(",
    "unlink",
    "rename",
    "os.remove",
    "os.replace",
    "os.makedirs",
    "os.symlink",
    ".touch(",
    "copyFile",
    "rmSync",
    "subprocess",
    "os.system",
    "popen",
    "os.exec",
    "os.spawn",
    "child_process",
    "system(",
    "exec(",
    "eval(",
    "__import__",
    "importlib",
    "base64",
    "getattr(",
    "np.save",
    "to_csv(",
    ".dump(",
    ".save(",
    "extractall",
    "sed -i",
];

/// Standard streams; writing to them changes no file.
const STANDARD_STREAMS: &[&str] =
    &["stdout", "stderr", "stdout.buffer", "stderr.buffer", "STDOUT", "STDERR"];

/// Returns whether a script shows a sign of writing.
pub(super) fn has_write_sign(script: &str) -> bool {
    WRITE_WORDS.iter().any(|word| script.contains(word))
        || script.match_indices(".write(").any(|(at, _)| !is_stream(script.get(..at)))
        || script.match_indices("open(").any(|(at, _)| opens_to_write(script, at))
        || has_redirection(script)
}

fn is_stream(before: Option<&str>) -> bool {
    let before = before.unwrap_or("");
    STANDARD_STREAMS.iter().any(|stream| before.ends_with(stream))
}

/// Returns whether the `open(` at byte `at` opens for more than reading: `open(p, "w")`,
/// `p.open("a")`, `open(p, mode)`.
fn opens_to_write(script: &str, at: usize) -> bool {
    let before = script.get(..at).unwrap_or("");
    let arguments = script.get(at + "open(".len()..).unwrap_or("");
    let arguments = arguments.get(..closing_position(arguments)).unwrap_or("");
    let modules = ["io", "codecs", "os", "gzip", "Image", "File", "webbrowser"];
    let is_method = before
        .strip_suffix('.')
        .is_some_and(|owner| !modules.iter().any(|module| owner.ends_with(module)));
    let mut arguments = arguments.split(',').map(str::trim);
    if !is_method {
        arguments.next();
    }
    arguments.any(|argument| {
        let argument = argument.strip_prefix("mode=").unwrap_or(argument).trim();
        let only_reads =
            matches!(argument.trim_matches(['"', '\'']), "" | "r" | "rb" | "rt" | "br");
        let other = ["encoding", "errors", "newline", "buffering", "\"utf", "'utf"];
        // A path that is passed to a method such as `Image.open`.
        let is_path = is_method && argument.trim_matches(['"', '\'']).contains(['/', '.']);
        !only_reads && !is_path && !other.iter().any(|name| argument.starts_with(name))
    })
}

/// Returns the position of the closing parenthesis.
fn closing_position(text: &str) -> usize {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns whether an awk or perl script redirects output: `print > "file"`.
fn has_redirection(script: &str) -> bool {
    script.match_indices('>').any(|(at, _)| {
        let before = script.get(..at).unwrap_or("");
        let after = script.get(at + 1..).unwrap_or("").trim_start_matches('>').trim_start();
        let statement = before.trim_end().rsplit(['{', ';', '\n']).next().unwrap_or("");
        statement.trim_start().starts_with("print")
            && !statement.contains('(')
            && after.starts_with(['"', '\''])
            && !after.get(1..).unwrap_or("").starts_with("/dev/std")
    })
}

/// Returns whether an unrecognised program has an option that writes.
pub(super) fn has_write_option(command: &ShellCommand<'_>) -> bool {
    let short = |word: &str| matches!(word, "-i" | "-w" | "-o");
    is_asked_to_rewrite(command)
        || has_argument(command, |word| short(word) || word.starts_with("--out"))
}

/// Returns whether a program that works on a project is asked to rewrite its files: `cargo fmt`,
/// `npm run lint:fix`, `eslint --fix`.
pub(super) fn is_asked_to_rewrite(command: &ShellCommand<'_>) -> bool {
    let is_read_only = |word: &str| {
        matches!(word, "--check" | "--dry-run" | "--diff" | "--check-only" | "-n" | "--list")
    };
    // The subcommands of these programs do not rewrite local files.
    let elsewhere = matches!(command.program(), "gh" | "apt" | "apt-get" | "brew" | "helm");
    if elsewhere || has_argument(command, is_read_only) {
        return false;
    }
    has_fix_option(command) || has_argument(command, is_rewrite_job)
}

/// Returns whether an option makes the program write files.
pub(super) fn has_fix_option(command: &ShellCommand<'_>) -> bool {
    let options = ["--fix", "--write", "--in-place", "--inplace", "--autofix", "--overwrite"];
    has_argument(command, |word| options.iter().any(|option| word.starts_with(option)))
}

fn has_argument(command: &ShellCommand<'_>, is: impl Fn(&str) -> bool) -> bool {
    command.arguments().iter().any(|word| is(&word.text))
}

/// Returns whether a word names a job that rewrites files: `fmt`, `lint:fix`, `generate`.
fn is_rewrite_job(word: &str) -> bool {
    if word.starts_with('-') || word.contains(['/', '.', '=']) {
        return false;
    }
    let part = |names: &[&str]| word.split([':', '-', '_']).any(|part| names.contains(&part));
    part(&["fix", "fmt", "format", "reformat", "generate", "codegen", "gen", "tidy"])
        && !part(&["check", "dry"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_write_are_detected() {
        for script in [
            "open('a.py','w').write(s)",
            "open(\"a.py\", mode=\"a\")",
            "with open(path, 'r+') as f: pass",
            "open(p, m)",
            "Path('a').open('w')",
            "Path('a').write_text('x')",
            "require('fs').writeFileSync('a', 'b')",
            "f.write('x')",
            "import subprocess",
            "exec(code)",
            "{ print $1 > \"out.txt\" }",
        ] {
            assert!(has_write_sign(script), "{script}");
        }
    }

    #[test]
    fn scripts_that_only_read_are_not_reported() {
        for script in [
            "print(1)",
            "print(open('a.py').read())",
            "print(open('a.py', encoding='utf-8').read())",
            "json.load(open(p, 'rb'))",
            "print(a > 'b')",
            "import sys; sys.stdout.write('x')",
            "$1 > 3 { print $2 }",
            "console.log(1 > 2)",
        ] {
            assert!(!has_write_sign(script), "{script}");
        }
    }
}
