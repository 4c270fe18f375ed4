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

/// A command line that we wrote, with the role in which the agent acts.
pub fn with_role(command: &str, role: &str) -> String {
    let word = quote_shell_word(role);
    match command.split_once(SEALED_END) {
        Some((inner, rest)) => format!("{inner}{ROLE_OPTION}{word}{SEALED_END}{rest}"),
        None => format!("{command}{ROLE_OPTION}{word}"),
    }
}

/// The option that names the role of the agent, as a part of a command line.
const ROLE_OPTION: &str = " --role ";

/// The end of the hook's own command in a sealed command line.
const SEALED_END: &str = " --sealed)";

/// The parts of a command line that we wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    /// The path or name of the program. It is not quoted.
    pub program: String,
    /// The role of the agent.
    pub role: Option<String>,
}

impl HookLine {
    /// Parses a command line that we wrote, in this or an earlier version. `None` if we did not
    /// write it.
    ///
    /// The command line itself is the only way to recognise our hooks in the settings, because
    /// clients remove fields that they do not recognise.
    pub fn parse(command: &str, client: &str) -> Option<Self> {
        let command = command.trim();
        let inner = match command.strip_prefix("r=$(") {
            Some(rest) => rest.split_once(SEALED_END)?.0,
            None => command,
        };
        let end = format!(" hook {client}");
        let (program_word, role) = match inner.strip_suffix(&end) {
            Some(program_word) => (program_word, None),
            None => {
                let (line, role_word) = inner.rsplit_once(ROLE_OPTION)?;
                (line.strip_suffix(&end)?, Some(unquote_shell_word(role_word)?))
            }
        };
        let program = unquote_shell_word(program_word)?;
        let file_name = program.rsplit('/').next()?;
        file_name.starts_with("jackline").then_some(Self { program, role })
    }
}

/// The program in a command line that we wrote; see [`HookLine::parse`].
pub fn parse_program(command: &str, client: &str) -> Option<String> {
    HookLine::parse(command, client).map(|line| line.program)
}

/// The text of one word of a shell command that [`quote_shell_word`] wrote. `None` if it has more
/// words, because then another command wraps ours.
fn unquote_shell_word(word: &str) -> Option<String> {
    match word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(quoted) => Some(quoted.replace(r"'\''", "'")),
        None => (!word.contains(char::is_whitespace)).then(|| word.to_owned()),
    }
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
        for role in ["tester", "release manager", "it's"] {
            for line in
                [plain_command("jackline", CLIENT), sealed_command("jackline", CLIENT, BROKEN)]
            {
                let parsed = HookLine::parse(&with_role(&line, role), CLIENT).unwrap();
                assert_eq!(
                    (parsed.program.as_str(), parsed.role.as_deref()),
                    ("jackline", Some(role))
                );
            }
        }
        for foreign in [
            "jackline hook agent --role a b",
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
