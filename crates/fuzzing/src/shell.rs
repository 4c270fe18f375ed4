//! Command lines, as models write them.

use jackline_shell::{
    Access, COMMANDS_MAX, Dir, LINE_BYTES_MAX, Line, Lines, Reason, Span, WORDS_MAX, Word,
    is_valid, understand,
};

use crate::in_time;

/// A line is understood or opaque, in bounded time, and what is said about it
/// points into it.
pub fn shell(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let line = in_time(|| understand(&text));
    assert_eq!(line, understand(&text), "the same line is understood in the same way");
    assert_eq!(line.text, text);
    check_validity(&line, is_valid(&text));
    check_limits(&line);
    check_commands(&line);
    for opaque in &line.opaque {
        check_span(&text, opaque.span);
        let known = opaque.command.is_none_or(|number| (number as usize) < line.commands.len());
        assert!(known, "an opaque part belongs to a command of the line");
    }
}

/// What bash would refuse, and what is beyond a limit, is never taken as understood.
fn check_validity(line: &Line<'_>, valid: Option<bool>) {
    let understood = line.opaque.is_empty();
    assert!(valid == Some(true) || !understood, "valid is {valid:?}, yet nothing is opaque");
    let too_long = line.opaque.iter().any(|opaque| opaque.reason == Reason::TooLong);
    assert_eq!(too_long, line.text.len() > LINE_BYTES_MAX, "too long is said where it is so");
}

fn check_limits(line: &Line<'_>) {
    assert!(line.commands.len() <= COMMANDS_MAX, "{} commands", line.commands.len());
    for command in &line.commands {
        assert!(command.words.len() <= WORDS_MAX, "{} words", command.words.len());
    }
}

fn check_commands(line: &Line<'_>) {
    for (number, command) in line.commands.iter().enumerate() {
        check_span(line.text, command.span);
        let earlier = command.parent.is_none_or(|parent| (parent as usize) < number);
        assert!(earlier, "command {number} is run by a later one, {:?}", command.parent);
        command.words.iter().for_each(check_word);
        for effect in &command.effects {
            check_word(&effect.path);
            if let Access::Read(Lines::Range(from, to)) = effect.access {
                assert!(1 <= from && from <= to, "lines {from} to {to}");
            }
        }
        if let Dir::In(path) | Dir::Either(path) = &command.dir {
            assert!(!path.contains('\0'), "no directory is called {path:?}");
        }
        assert!(command.program().len() <= LINE_BYTES_MAX && !command.is("\0"));
    }
}

fn check_span(text: &str, span: Span) {
    let part = text.get(span.start as usize..span.end as usize);
    assert!(part.is_some(), "{span:?} is no part of the line");
}

/// No program can be given a NUL, so no word that is known has one.
fn check_word(word: &Word<'_>) {
    assert!(word.exact().is_none_or(|text| !text.contains('\0')), "{word:?}");
}
