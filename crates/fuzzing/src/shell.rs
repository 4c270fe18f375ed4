//! Checks the shell parser with command lines of models.

use jackline_shell::{
    Access, COMMANDS_MAX, LINE_BYTES_MAX, LineSpan, OpaqueReason, ReadExtent, ShellLine, ShellWord,
    WORDS_MAX, WorkingDir, is_valid, understand,
};

use crate::run_in_time;

/// A command line is either understood or opaque (Jackline cannot tell what it runs), in limited
/// time. Every span points into the line.
pub fn shell(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let line = run_in_time(|| understand(&text));
    assert_eq!(line, understand(&text), "parsing the same line twice gives the same result");
    assert_eq!(line.text, text);
    check_validity(&line, is_valid(&text));
    check_limits(&line);
    check_commands(&line);
    for opaque in &line.opaque_parts {
        check_span(&text, opaque.span);
        let is_in_line =
            opaque.command.is_none_or(|number| (number as usize) < line.commands.len());
        assert!(is_in_line, "an opaque part belongs to a command of the line");
    }
}

/// A line that bash rejects, or that exceeds a limit, is never fully understood.
fn check_validity(line: &ShellLine<'_>, valid: Option<bool>) {
    let understood = line.opaque_parts.is_empty();
    assert!(valid == Some(true) || !understood, "valid is {valid:?}, yet nothing is opaque");
    let too_long = line.opaque_parts.iter().any(|opaque| opaque.reason == OpaqueReason::TooLong);
    assert_eq!(
        too_long,
        line.text.len() > LINE_BYTES_MAX,
        "`TooLong` is reported exactly for long lines"
    );
}

fn check_limits(line: &ShellLine<'_>) {
    assert!(line.commands.len() <= COMMANDS_MAX, "{} commands", line.commands.len());
    for command in &line.commands {
        assert!(command.words.len() <= WORDS_MAX, "{} words", command.words.len());
    }
}

fn check_commands(line: &ShellLine<'_>) {
    for (number, command) in line.commands.iter().enumerate() {
        check_span(line.text, command.span);
        let earlier = command.parent.is_none_or(|parent| (parent as usize) < number);
        assert!(earlier, "command {number} is run by a later one, {:?}", command.parent);
        command.words.iter().for_each(check_word);
        for effect in &command.effects {
            check_word(&effect.path);
            if let Access::Read(ReadExtent::Range(from, to)) = effect.access {
                assert!(1 <= from && from <= to, "lines {from} to {to}");
            }
        }
        if let WorkingDir::Path(path) | WorkingDir::PathOrStart(path) = &command.dir {
            assert!(!path.contains('\0'), "the directory {path:?} contains NUL");
        }
        assert!(command.program().len() <= LINE_BYTES_MAX && !command.matches_pattern("\0"));
    }
}

fn check_span(text: &str, span: LineSpan) {
    let part = text.get(span.start as usize..span.end as usize);
    assert!(part.is_some(), "{span:?} is not a part of the line");
}

/// A program argument can't contain NUL, so no literal word does.
fn check_word(word: &ShellWord<'_>) {
    assert!(word.exact_text().is_none_or(|text| !text.contains('\0')), "{word:?}");
}
