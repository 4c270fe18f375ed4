//! Writes and parses the command line with which a client starts our hook.
//!
//! The client runs this command line in a shell. So `program` in a command line is one word of a
//! shell command, already quoted. `parse_program` returns the program without this quoting.

use crate::hook_server::SEAL;

/// A command line that passes on everything that the hook prints, and its exit status. `program`
/// must be one quoted word of a shell command, see [`quote_shell_word`].
pub fn plain_command(program: &str, client: &str) -> String {
    format!("{program} hook {client}")
}

/// A command line that passes on only an answer that begins with the seal. Anything else becomes a
/// refusal with `text` as its reason. This is for clients that let a call run if they can't parse
/// the answer.
///
/// `program` must be one quoted word of a shell command, see [`quote_shell_word`]. `text` is put
/// between double quotes without a change, so it must not contain `"`, `$`, `` ` `` or `\`.
///
/// The command line ignores the exit status of the hook. This is safe, because the hook prints the
/// seal only together with an answer and the exit status 0. Without the seal, the command line
/// exits with 2, which clients treat as a refusal.
pub fn sealed_command(program: &str, client: &str, text: &str) -> String {
    format!(
        "r=$({program} hook {client} --sealed); case $r in {SEAL}*) printf %s \"${{r#{SEAL}}}\";; \
         *) echo \"{text}\" >&2; exit 2;; esac"
    )
}

/// The path or name of the program in a command line that we wrote, in this or an earlier version.
/// It is not quoted. `None` if we did not write the command line.
///
/// The command line itself is the only way to recognise our hooks in the settings, because clients
/// remove fields that they do not recognise.
pub fn parse_program(command: &str, client: &str) -> Option<String> {
    let command = command.trim();
    let inner = match command.strip_prefix("r=$(") {
        Some(rest) => rest.split_once(" --sealed)")?.0,
        None => command,
    };
    let program_word = inner.strip_suffix(client)?.strip_suffix(" hook ")?;
    let program_path =
        match program_word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            Some(quoted) => quoted.replace(r"'\''", "'"),
            // More words mean that another command wraps ours.
            None if program_word.contains(char::is_whitespace) => return None,
            None => program_word.to_owned(),
        };
    let file_name = program_path.rsplit('/').next()?;
    file_name.starts_with("jackline").then_some(program_path)
}

/// A text as one word of a shell command, with quotes if it needs them.
pub fn quote_shell_word(text: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if !text.is_empty() && text.chars().all(needs_no_quotes) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;
    use crate::test_program::write_program;

    const CLIENT: &str = "agent";
    const BROKEN: &str = "the guard is broken";

    #[test]
    fn our_own_lines_are_recognised_and_others_are_not() {
        for program in ["jackline", "/my tools/jackline", "/it's/jackline-2"] {
            let word = quote_shell_word(program);
            for line in [plain_command(&word, CLIENT), sealed_command(&word, CLIENT, BROKEN)] {
                assert_eq!(parse_program(&line, CLIENT).as_deref(), Some(program));
                assert_eq!(parse_program(&line, "other"), None);
            }
        }
        for foreign in [
            "",
            "hook agent",
            "echo jackline",
            "other hook agent",
            "timeout 5 jackline hook agent",
            "jackline hook agent | tee log",
            "r=$(jackline hook agent)",
            "my-jackline/run hook agent",
        ] {
            assert_eq!(parse_program(foreign, CLIENT), None, "{foreign}");
        }
    }

    #[test]
    fn the_shell_reads_a_quoted_word_unchanged() {
        for text in ["jackline", "/a b/c", "it's", "$(touch x)", "a;b", "`x`", "", "a\\b\"c", "ü"]
        {
            let line = format!("printf %s {}", quote_shell_word(text));
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    /// Runs the sealed command line with this script as the guard.
    fn gate(script: &str) -> Output {
        let scratch = tempfile::tempdir().unwrap();
        let text = format!("#!/bin/sh\n{script}\n");
        let guard = write_program(scratch.path(), "it's a jackline", &text);
        let line = sealed_command(&quote_shell_word(guard.to_str().unwrap()), CLIENT, BROKEN);
        Command::new("sh").args(["-c", &line]).output().unwrap()
    }

    #[test]
    fn only_a_sealed_answer_is_passed_on() {
        for (script, answer) in [
            ("printf 'jackline:1:'", ""),
            (
                r#"printf '%s\n' 'jackline:1:{"a":"b $HOME \n * `x`"}'"#,
                r#"{"a":"b $HOME \n * `x`"}"#,
            ),
        ] {
            let output = gate(script);
            assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{script}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), answer);
        }
    }

    #[test]
    fn any_other_output_or_failure_is_a_refusal_with_a_reason() {
        for script in [
            "",
            "exit 0",
            "exit 1",
            "kill -9 $$",
            "echo garbage",
            "echo '{}'",
            "echo warning; printf 'jackline:1:'",
            "printf 'jackline:2:{}'",
            "printf jackline",
        ] {
            let output = gate(script);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{script}");
            let text = String::from_utf8(output.stderr).unwrap();
            assert!(text.contains(BROKEN), "{script}: {text}");
        }
        let missing = sealed_command("/nowhere/jackline", CLIENT, BROKEN);
        let output = Command::new("sh").args(["-c", &missing]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}
