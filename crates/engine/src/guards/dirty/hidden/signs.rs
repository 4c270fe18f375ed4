//! Signs that a program or a script writes files.

use jackline_shell::Command;

/// What scripts of any language say where they change files or run other programs.
const WORDS: &[&str] = &[
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

/// Streams that may be written to; nobody minds.
const STREAMS: &[&str] =
    &["stdout", "stderr", "stdout.buffer", "stderr.buffer", "STDOUT", "STDERR"];

/// Whether a script in another language shows a sign of writing.
pub(super) fn of_writing(script: &str) -> bool {
    WORDS.iter().any(|word| script.contains(word))
        || script.match_indices(".write(").any(|(at, _)| !is_stream(script.get(..at)))
        || script.match_indices("open(").any(|(at, _)| opens_to_write(script, at))
        || redirects(script)
}

fn is_stream(before: Option<&str>) -> bool {
    let before = before.unwrap_or("");
    STREAMS.iter().any(|stream| before.ends_with(stream))
}

/// Whether the `open(` at a place is for more than reading: `open(p, "w")`,
/// `p.open("a")`, `open(p, mode)`.
fn opens_to_write(script: &str, at: usize) -> bool {
    let before = script.get(..at).unwrap_or("");
    let arguments = script.get(at + "open(".len()..).unwrap_or("");
    let arguments = arguments.get(..end_of(arguments)).unwrap_or("");
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
        // A path that is handed to a method such as `Image.open`.
        let is_path = is_method && argument.trim_matches(['"', '\'']).contains(['/', '.']);
        !only_reads && !is_path && !other.iter().any(|name| argument.starts_with(name))
    })
}

/// Where the parenthesis that is open closes.
fn end_of(text: &str) -> usize {
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

/// `print > "file"`, of awk and perl.
fn redirects(script: &str) -> bool {
    script.match_indices('>').any(|(at, _)| {
        let before = script.get(..at).unwrap_or("");
        let after = script.get(at + 1..).unwrap_or("").trim_start_matches('>').trim_start();
        let said = before.trim_end().rsplit(['{', ';', '\n']).next().unwrap_or("");
        said.trim_start().starts_with("print")
            && !said.contains('(')
            && after.starts_with(['"', '\''])
            && !after.get(1..).unwrap_or("").starts_with("/dev/std")
    })
}

/// Whether a program that nobody described is told to write.
pub(super) fn asks_to_write(command: &Command<'_>) -> bool {
    let short = |word: &str| matches!(word, "-i" | "-w" | "-o");
    asks_to_rewrite(command) || has(command, |word| short(word) || word.starts_with("--out"))
}

/// Whether a program that works on a project is told to rewrite its files:
/// `cargo fmt`, `npm run lint:fix`, `eslint --fix`.
pub(super) fn asks_to_rewrite(command: &Command<'_>) -> bool {
    let only_looks = |word: &str| {
        matches!(word, "--check" | "--dry-run" | "--diff" | "--check-only" | "-n" | "--list")
    };
    // Their subcommands are about something else than the files here.
    let elsewhere = matches!(command.program(), "gh" | "apt" | "apt-get" | "brew" | "helm");
    if elsewhere || has(command, only_looks) {
        return false;
    }
    asks_to_mend(command) || has(command, is_target)
}

/// Whether an option says that files are written.
pub(super) fn asks_to_mend(command: &Command<'_>) -> bool {
    let options = ["--fix", "--write", "--in-place", "--inplace", "--autofix", "--overwrite"];
    has(command, |word| options.iter().any(|option| word.starts_with(option)))
}

fn has(command: &Command<'_>, is: impl Fn(&str) -> bool) -> bool {
    command.arguments().iter().any(|word| is(&word.text))
}

/// Whether a word names a step that rewrites: `fmt`, `lint:fix`, `generate`.
fn is_target(word: &str) -> bool {
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
    fn a_script_that_writes_shows_it() {
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
            assert!(of_writing(script), "{script}");
        }
    }

    #[test]
    fn a_script_that_looks_does_not() {
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
            assert!(!of_writing(script), "{script}");
        }
    }
}
