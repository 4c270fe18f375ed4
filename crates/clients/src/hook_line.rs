//! The command line by which a client starts its hook.

use crate::hook_server::SEAL;

/// A line that hands on whatever the hook prints.
pub fn plain_line(program: &str, client: &str) -> String {
    format!("{program} hook {client}")
}

/// A line that hands on only an answer under the seal, for a client that lets a call run on any
/// text that it can't read. Everything else is a refusal with `text` as its reason.
pub fn sealed_line(program: &str, client: &str, text: &str) -> String {
    format!(
        "r=$({program} hook {client} --sealed); case $r in {SEAL}*) printf %s \"${{r#{SEAL}}}\";; \
         *) echo \"{text}\" >&2; exit 2;; esac"
    )
}

/// The program in a line that we wrote, now or in an earlier version. Clients remove marks that
/// they do not know, so the line itself has to tell.
pub fn program_of(command: &str, client: &str) -> Option<String> {
    let command = command.trim();
    let inner = match command.strip_prefix("r=$(") {
        Some(rest) => rest.split_once(" --sealed)")?.0,
        None => command,
    };
    let word = inner.strip_suffix(client)?.strip_suffix(" hook ")?;
    let program = match word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(quoted) => quoted.replace(r"'\''", "'"),
        // Two words are another line around ours.
        None if word.contains(char::is_whitespace) => return None,
        None => word.to_owned(),
    };
    let name = program.rsplit('/').next()?;
    name.starts_with("jackline").then_some(program)
}

/// A text as one word of a shell line.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
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
    fn our_own_lines_are_known_and_others_are_not() {
        for program in ["jackline", "/my tools/jackline", "/it's/jackline-2"] {
            let word = shell_word(program);
            for line in [plain_line(&word, CLIENT), sealed_line(&word, CLIENT, BROKEN)] {
                assert_eq!(program_of(&line, CLIENT).as_deref(), Some(program));
                assert_eq!(program_of(&line, "other"), None);
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
            assert_eq!(program_of(foreign, CLIENT), None, "{foreign}");
        }
    }

    #[test]
    fn words_of_a_shell_line_come_back_as_they_were() {
        for text in ["jackline", "/a b/c", "it's", "$(touch x)", "a;b", "`x`", "", "a\\b\"c", "ü"]
        {
            let line = format!("printf %s {}", shell_word(text));
            let said = Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
    }

    /// What the gate's line does with a guard that is this script.
    fn gate(script: &str) -> Output {
        let scratch = tempfile::tempdir().unwrap();
        let text = format!("#!/bin/sh\n{script}\n");
        let guard = write_program(scratch.path(), "it's a jackline", &text);
        let line = sealed_line(&shell_word(guard.to_str().unwrap()), CLIENT, BROKEN);
        Command::new("sh").args(["-c", &line]).output().unwrap()
    }

    #[test]
    fn only_an_answer_under_the_seal_is_handed_on() {
        for (script, answer) in [
            ("printf 'jackline:1:'", ""),
            (
                r#"printf '%s\n' 'jackline:1:{"a":"b $HOME \n * `x`"}'"#,
                r#"{"a":"b $HOME \n * `x`"}"#,
            ),
        ] {
            let said = gate(script);
            assert_eq!((said.status.code(), said.stderr.len()), (Some(0), 0), "{script}");
            assert_eq!(String::from_utf8(said.stdout).unwrap(), answer);
        }
    }

    #[test]
    fn whatever_else_a_guard_does_is_a_refusal_that_says_so() {
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
            let said = gate(script);
            assert_eq!((said.status.code(), said.stdout.len()), (Some(2), 0), "{script}");
            let text = String::from_utf8(said.stderr).unwrap();
            assert!(text.contains(BROKEN), "{script}: {text}");
        }
        let missing = sealed_line("/nowhere/jackline", CLIENT, BROKEN);
        let said = Command::new("sh").args(["-c", &missing]).output().unwrap();
        assert_eq!(said.status.code(), Some(2));
    }
}
