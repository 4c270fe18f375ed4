//! What people read of an explanation: the answer first, then why, then what
//! was understood.

use jackline_analysis::{Explained, Explainer, Reason};
use jackline_engine::understanding::{
    Argument, Hidden, How, Points, Runs, SimpleCommand, Touched, Understanding,
};
use jackline_engine::verdict::ViolationType;
use jackline_engine::{Decision, Verdict};

use super::kind_name;
use crate::terminal::{bold, dim, plain, say, style_of, styled};

/// How much of one line is shown.
const LINE_MAX: usize = 400;

/// How much of a part that can't be seen into is shown.
const PART_MAX: usize = 120;

/// How many commands, and how many hidden parts, are shown.
const SHOWN_MAX: usize = 40;

/// How many paths of one command are shown.
const PATHS_MAX: usize = 8;

pub(super) fn show(explainer: &Explainer, explained: &Explained) {
    let verdict = &explained.verdict;
    say(styled(style_of(verdict.decision).bold(), answer(verdict.decision, verdict.enforced)));
    if let Some(next) = next(verdict) {
        say(format!("  {next}"));
    }
    for reason in &explained.reasons {
        show_reason(verdict, reason);
    }
    if let Some(understanding) = &explained.understanding {
        show_understanding(understanding);
    }
    say("");
    say(dim(rested_on(explainer)));
}

/// `deny`, or `would deny (observe)`.
fn answer(decision: Decision, enforced: Option<bool>) -> String {
    match (decision, enforced) {
        (Decision::Allow, _) => "allow".to_owned(),
        (decision, Some(false)) => format!("would {} (observe)", decision.word()),
        (decision, _) => decision.word().to_owned(),
    }
}

/// What the answer means for the call, where the reasons don't say so.
fn next(verdict: &Verdict) -> Option<&'static str> {
    match verdict.decision {
        Decision::Allow if verdict.violations.is_empty() => Some("no objection"),
        _ if verdict.enforced == Some(false) => Some("it runs: what objects only observes"),
        Decision::Ask => Some("it does not run until a person has granted exactly this call"),
        _ => None,
    }
}

fn show_reason(verdict: &Verdict, reason: &Reason) {
    let violation = &reason.violation;
    let own = match (violation.decision, violation.enforced) {
        (Decision::Allow, _) => "warn".to_owned(),
        (decision, enforced) => answer(decision, Some(enforced)),
    };
    let is_the_answer =
        (violation.decision, Some(violation.enforced)) == (verdict.decision, verdict.enforced);
    let own = if is_the_answer && violation.decision > Decision::Allow {
        String::new()
    } else {
        format!(": {}", styled(style_of(violation.decision), own))
    };
    let (name, origin) = match &reason.rule {
        Some(rule) => (rule.name.as_str(), format!(" ({})", plain(&rule.origin, LINE_MAX))),
        None => (violation.subtype.word(), String::new()),
    };
    let name = bold(plain(name, LINE_MAX));
    say(format!("  {}: {name}{}{own}", plain(violation.guard.word(), LINE_MAX), dim(origin)));
    let said = reason.rule.as_ref().filter(|_| violation.kind == ViolationType::RuleViolation);
    let message = said.map_or(&violation.message, |rule| &rule.message);
    if let Some(at) = violation.location.as_ref().filter(|at| !message.contains(*at)) {
        say(format!("    at `{}`", plain(at, LINE_MAX)));
    }
    say(format!("    {}", plain(message, LINE_MAX)));
    match (&reason.instead, &violation.correction) {
        (Some(instead), _) => {
            let passes = instead.verdict.as_ref().map_or_else(String::new, |verdict| {
                format!(" {}", dim(format!("({})", how_it_fares(verdict))))
            });
            say(format!("    -> {}{passes}", plain(&instead.text, LINE_MAX)));
        }
        (None, Some(correction)) => say(format!("    -> {}", plain(correction, LINE_MAX))),
        (None, None) => {}
    }
}

/// What would become of the recommendation itself.
fn how_it_fares(verdict: &Verdict) -> String {
    if verdict.lets_run() {
        return "passes".to_owned();
    }
    let against = verdict.violations.iter().find(|violation| violation.enforced);
    let whose = against.map_or_else(String::new, |violation| {
        plain(&format!(" by {} ({})", violation.guard, violation.subtype), LINE_MAX)
    });
    format!("does not pass either: {}{whose}", verdict.decision.word())
}

fn show_understanding(understood: &Understanding) {
    say("");
    match &understood.runs {
        Runs::Nothing => {
            say(bold("what the call does"));
            let tool = plain(&understood.tool, LINE_MAX);
            say(format!("  {tool} {}", dim(format!("(kind {})", kind_name(understood.kind)))));
            show_touches(&understood.touches);
            if understood.touches.is_empty() {
                say("    nothing to files that its arguments would show");
            }
        }
        Runs::Unseen => {
            say(bold("what the call does"));
            say("  it can't be seen: the command line is missing, or too long");
        }
        Runs::Line { commands, hidden } => {
            say(bold("what the line does"));
            if commands.is_empty() && hidden.is_empty() {
                say("  nothing");
            }
            commands.iter().take(SHOWN_MAX).for_each(|it| show_command(it, commands, understood));
            show_more(commands.len());
            if !hidden.is_empty() {
                say(bold("what can't be seen into"));
            }
            hidden.iter().take(SHOWN_MAX).for_each(show_hidden);
            show_more(hidden.len());
        }
    }
}

fn show_more(count: usize) {
    if count > SHOWN_MAX {
        say(dim(format!("  and {} more; --json shows them all", count - SHOWN_MAX)));
    }
}

fn show_command(command: &SimpleCommand, all: &[SimpleCommand], understood: &Understanding) {
    let words: Vec<String> = command.words.iter().map(quoted).collect();
    let words = if words.is_empty() {
        "redirections alone".to_owned()
    } else {
        plain(&words.join(" "), LINE_MAX)
    };
    let mut notes = Vec::new();
    match &command.dir {
        None => notes.push("in a directory that can't be told".to_owned()),
        Some(dir) if *dir != understood.cwd => {
            let perhaps = if command.dir_certain { "" } else { " if `cd` succeeds" };
            notes.push(format!("in {}{perhaps}", plain(dir, LINE_MAX)));
        }
        Some(_) => {}
    }
    let parent = command.parent.and_then(|number| all.get(number as usize));
    notes.extend(parent.map(|parent| format!("run by {}", program(parent))));
    notes.extend(command.tools.iter().map(|tool| format!("counts as {}", plain(tool, LINE_MAX))));
    let notes =
        if notes.is_empty() { String::new() } else { dim(format!("  ({})", notes.join(", "))) };
    say(format!("  {words}{notes}"));
    show_touches(&command.touches);
}

fn program(command: &SimpleCommand) -> String {
    let first = command.words.first().map_or("a redirection", |word| &word.text);
    plain(if command.program.is_empty() { first } else { &command.program }, PART_MAX)
}

fn show_touches(touches: &[Touched]) {
    for (how, verb) in [(How::Reads, "reads"), (How::Writes, "writes"), (How::Deletes, "deletes")] {
        let mut paths: Vec<String> =
            touches.iter().filter(|touch| touch.how == how).map(path).collect();
        paths.dedup();
        let more = match paths.len().saturating_sub(PATHS_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        paths.truncate(PATHS_MAX);
        if !paths.is_empty() {
            say(format!("    {verb} {}{more}", paths.join(", ")));
        }
    }
}

/// A path, and what it stands for.
fn path(touch: &Touched) -> String {
    let shown = plain(&touch.path, LINE_MAX);
    let shown = match touch.points {
        Points::Path => shown,
        Points::Pattern => format!("{shown} (a pattern)"),
        Points::Repository => format!("the repository at {shown}"),
        Points::Unknown => format!("{shown} (which can't be told)"),
    };
    if touch.recursive && touch.points != Points::Repository {
        return format!("{shown} and all below");
    }
    shown
}

fn show_hidden(hidden: &Hidden) {
    say(format!("  `{}`: {}", plain(hidden.text.trim(), PART_MAX), hidden.why));
}

/// A word as it would have to be written. One that is no exact text is shown
/// as it is.
fn quoted(word: &Argument) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "-_./=:,@%+^".contains(c);
    if !word.exact || (!word.text.is_empty() && word.text.chars().all(harmless)) {
        return word.text.clone();
    }
    format!("'{}'", word.text.replace('\'', r"'\''"))
}

/// What the answer rests on, besides the call.
fn rested_on(explainer: &Explainer) -> String {
    let place = explainer.place();
    let file = place.definition.first().map_or("made in Rust", String::as_str);
    let workspace = place.workspace.as_deref().unwrap_or("no workspace");
    let when = match explainer.seq() {
        0 => "a new session".to_owned(),
        seq => format!("the session after record {seq}"),
    };
    let name = &explainer.definition().name;
    plain(&format!("by {name} ({file}), for {when} in {workspace}"), LINE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_split_it() {
        let exact = |text: &str| quoted(&Argument { text: text.to_owned(), exact: true });
        let shown = ["a", "--x=1", "old file", "", "it's", "*.log"].map(exact);
        assert_eq!(shown, ["a", "--x=1", "'old file'", "''", r"'it'\''s'", "'*.log'"]);
        let pattern = Argument { text: "$DIR/*.log".to_owned(), exact: false };
        assert_eq!(quoted(&pattern), "$DIR/*.log");
    }

    #[test]
    fn what_is_only_observed_is_said_so() {
        assert_eq!(answer(Decision::Deny, Some(true)), "deny");
        assert_eq!(answer(Decision::Ask, Some(false)), "would ask (observe)");
        assert_eq!(answer(Decision::Allow, Some(false)), "allow");
    }
}
