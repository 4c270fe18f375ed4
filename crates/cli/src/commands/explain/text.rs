//! The explanation for people: first the decision, then the reasons, then how the call was parsed.

use jackline_analysis::{Explainer, Explanation, ViolationReason};
use jackline_engine::call_description::{
    CallDescription, CommandWord, DescribedRun, OpaquePart, PathEffect, PathMeaning, SimpleCommand,
    TouchedPath,
};
use jackline_engine::verdict::ViolationType;
use jackline_engine::{Decision, Verdict};

use super::kind_name;
use crate::terminal::{bold, decision_style, dim, print_line, sanitize, styled};

/// The maximum length of a shown line.
const LINE_MAX: usize = 400;

/// The maximum length of a shown opaque part.
const PART_MAX: usize = 120;

/// How many commands, and how many opaque parts, are shown.
const SHOWN_MAX: usize = 40;

/// How many paths of one command are shown.
const PATHS_MAX: usize = 8;

pub(super) fn show(explainer: &Explainer, explained: &Explanation) {
    let verdict = &explained.verdict;
    print_line(styled(
        decision_style(verdict.decision).bold(),
        decision_text(verdict.decision, verdict.enforced),
    ));
    if let Some(next) = next_step(verdict) {
        print_line(format!("  {next}"));
    }
    for reason in &explained.reasons {
        show_reason(verdict, reason);
    }
    if let Some(understanding) = &explained.understanding {
        show_understanding(understanding);
    }
    print_line("");
    print_line(dim(describe_basis(explainer)));
}

/// `deny`, or `would deny (observe)`.
fn decision_text(decision: Decision, enforced: Option<bool>) -> String {
    match (decision, enforced) {
        (Decision::Allow, _) => "allow".to_owned(),
        (decision, Some(false)) => format!("would {} (observe)", decision.as_str()),
        (decision, _) => decision.as_str().to_owned(),
    }
}

/// What the decision means for the call, if the reasons do not explain it.
fn next_step(verdict: &Verdict) -> Option<&'static str> {
    match verdict.decision {
        Decision::Allow if verdict.violations.is_empty() => Some("no violation"),
        _ if verdict.enforced == Some(false) => {
            Some("the call runs: the violations are only observed, not enforced")
        }
        Decision::Ask => Some("the call does not run until a person allows exactly this call"),
        _ => None,
    }
}

fn show_reason(verdict: &Verdict, reason: &ViolationReason) {
    let violation = &reason.violation;
    let own = match (violation.decision, violation.enforced) {
        (Decision::Allow, _) => "warn".to_owned(),
        (decision, enforced) => decision_text(decision, Some(enforced)),
    };
    let is_the_answer =
        (violation.decision, Some(violation.enforced)) == (verdict.decision, verdict.enforced);
    let own = if is_the_answer && violation.decision > Decision::Allow {
        String::new()
    } else {
        format!(": {}", styled(decision_style(violation.decision), own))
    };
    let (name, origin) = match &reason.rule {
        Some(rule) => (rule.name.as_str(), format!(" ({})", sanitize(&rule.origin, LINE_MAX))),
        None => (violation.subtype.as_str(), String::new()),
    };
    let name = bold(sanitize(name, LINE_MAX));
    print_line(format!(
        "  {}: {name}{}{own}",
        sanitize(violation.guard.as_str(), LINE_MAX),
        dim(origin)
    ));
    let rule = reason.rule.as_ref().filter(|_| violation.kind == ViolationType::RuleViolation);
    let message = rule.map_or(&violation.message, |rule| &rule.message);
    if let Some(at) = violation.location.as_ref().filter(|at| !message.contains(*at)) {
        print_line(format!("    at `{}`", sanitize(at, LINE_MAX)));
    }
    print_line(format!("    {}", sanitize(message, LINE_MAX)));
    match (&reason.instead, &violation.correction) {
        (Some(instead), _) => {
            let result = instead.verdict.as_ref().map_or_else(String::new, |verdict| {
                format!(" {}", dim(format!("({})", recommendation_result(verdict))))
            });
            print_line(format!("    -> {}{result}", sanitize(&instead.text, LINE_MAX)));
        }
        (None, Some(correction)) => {
            print_line(format!("    -> {}", sanitize(correction, LINE_MAX)));
        }
        (None, None) => {}
    }
}

/// The decision on the recommended alternative.
fn recommendation_result(verdict: &Verdict) -> String {
    if verdict.allows_run() {
        return "allowed".to_owned();
    }
    let enforced = verdict.violations.iter().find(|violation| violation.enforced);
    let origin = enforced.map_or_else(String::new, |violation| {
        sanitize(&format!(" by {} ({})", violation.guard, violation.subtype), LINE_MAX)
    });
    format!("not allowed either: {}{origin}", verdict.decision.as_str())
}

fn show_understanding(understood: &CallDescription) {
    print_line("");
    match &understood.runs {
        DescribedRun::Nothing => {
            print_line(bold("what the call does"));
            let tool = sanitize(&understood.tool, LINE_MAX);
            print_line(format!(
                "  {tool} {}",
                dim(format!("(kind {})", kind_name(understood.kind)))
            ));
            show_touches(&understood.touches);
            if understood.touches.is_empty() {
                print_line("    no effects on files, according to its arguments");
            }
        }
        DescribedRun::Unseen => {
            print_line(bold("what the call does"));
            print_line("  unknown: the command line is missing or too long");
        }
        DescribedRun::Line { commands, hidden } => {
            print_line(bold("what the command line does"));
            if commands.is_empty() && hidden.is_empty() {
                print_line("  nothing");
            }
            commands.iter().take(SHOWN_MAX).for_each(|it| show_command(it, commands, understood));
            show_more(commands.len());
            if !hidden.is_empty() {
                print_line(bold("opaque parts: Jackline cannot tell what they run"));
            }
            hidden.iter().take(SHOWN_MAX).for_each(show_hidden);
            show_more(hidden.len());
        }
    }
}

fn show_more(count: usize) {
    if count > SHOWN_MAX {
        print_line(dim(format!("  and {} more; --json shows all", count - SHOWN_MAX)));
    }
}

fn show_command(command: &SimpleCommand, all: &[SimpleCommand], understood: &CallDescription) {
    let words: Vec<String> = command.words.iter().map(quoted).collect();
    let words = if words.is_empty() {
        "only redirections".to_owned()
    } else {
        sanitize(&words.join(" "), LINE_MAX)
    };
    let mut notes = Vec::new();
    match &command.dir {
        None => notes.push("in an unknown directory".to_owned()),
        Some(dir) if *dir != understood.cwd => {
            let condition = if command.dir_certain { "" } else { " if `cd` succeeds" };
            notes.push(format!("in {}{condition}", sanitize(dir, LINE_MAX)));
        }
        Some(_) => {}
    }
    let parent = command.parent.and_then(|number| all.get(number as usize));
    notes.extend(parent.map(|parent| format!("run by {}", program(parent))));
    notes
        .extend(command.tools.iter().map(|tool| format!("counts as {}", sanitize(tool, LINE_MAX))));
    let notes =
        if notes.is_empty() { String::new() } else { dim(format!("  ({})", notes.join(", "))) };
    print_line(format!("  {words}{notes}"));
    show_touches(&command.touches);
}

fn program(command: &SimpleCommand) -> String {
    let first = command.words.first().map_or("a redirection", |word| &word.text);
    sanitize(if command.program.is_empty() { first } else { &command.program }, PART_MAX)
}

fn show_touches(touches: &[TouchedPath]) {
    for (how, verb) in [
        (PathEffect::Reads, "reads"),
        (PathEffect::Writes, "writes"),
        (PathEffect::Deletes, "deletes"),
    ] {
        let mut paths: Vec<String> =
            touches.iter().filter(|touch| touch.effect == how).map(path).collect();
        paths.dedup();
        let more = match paths.len().saturating_sub(PATHS_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        paths.truncate(PATHS_MAX);
        if !paths.is_empty() {
            print_line(format!("    {verb} {}{more}", paths.join(", ")));
        }
    }
}

/// A path, and how it is meant.
fn path(touch: &TouchedPath) -> String {
    let shown = sanitize(&touch.path, LINE_MAX);
    let shown = match touch.meaning {
        PathMeaning::Path => shown,
        PathMeaning::Pattern => format!("{shown} (a pattern)"),
        PathMeaning::Repository => format!("the repository at {shown}"),
        PathMeaning::Unknown => format!("{shown} (unknown path)"),
    };
    if touch.recursive && touch.meaning != PathMeaning::Repository {
        return format!("{shown} and everything below");
    }
    shown
}

fn show_hidden(hidden: &OpaquePart) {
    print_line(format!("  `{}`: {}", sanitize(hidden.text.trim(), PART_MAX), hidden.why));
}

/// A word with the quotes that a shell needs. A word with expansions is shown unchanged.
fn quoted(word: &CommandWord) -> String {
    let needs_no_quotes = |c: char| c.is_alphanumeric() || "-_./=:,@%+^".contains(c);
    if !word.exact || (!word.text.is_empty() && word.text.chars().all(needs_no_quotes)) {
        return word.text.clone();
    }
    format!("'{}'", word.text.replace('\'', r"'\''"))
}

/// The definition, session and workspace that the decision is based on.
fn describe_basis(explainer: &Explainer) -> String {
    let place = explainer.place();
    let file = place.definition.first().map_or("built in Rust", String::as_str);
    let workspace = place.workspace.as_deref().unwrap_or("no workspace");
    let when = match explainer.seq() {
        0 => "a new session".to_owned(),
        seq => format!("the session after record {seq}"),
    };
    let name = &explainer.definition().name;
    sanitize(&format!("decided by {name} ({file}), for {when} in {workspace}"), LINE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_split_it() {
        let exact = |text: &str| quoted(&CommandWord { text: text.to_owned(), exact: true });
        let shown = ["a", "--x=1", "old file", "", "it's", "*.log"].map(exact);
        assert_eq!(shown, ["a", "--x=1", "'old file'", "''", r"'it'\''s'", "'*.log'"]);
        let pattern = CommandWord { text: "$DIR/*.log".to_owned(), exact: false };
        assert_eq!(quoted(&pattern), "$DIR/*.log");
    }

    #[test]
    fn an_observed_decision_is_marked() {
        assert_eq!(decision_text(Decision::Deny, Some(true)), "deny");
        assert_eq!(decision_text(Decision::Ask, Some(false)), "would ask (observe)");
        assert_eq!(decision_text(Decision::Allow, Some(false)), "allow");
    }
}
