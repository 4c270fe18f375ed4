//! The summary of a run: its outcome and the evidence.

use anstyle::AnsiColor;
use jackline_attempt::{PublicOutcome, not_started_outcome};
use jackline_engine::StopCode;
use jackline_engine::summary::TestsPassing;
use jackline_supervisor::{Evidence, RunReport};
use serde_json::{Value, json};

use super::RunRefusal;
use crate::status_label::StatusLabel;
use crate::terminal::{
    bold, dim, format_count, format_duration, print_json_line, print_line, sanitize, styled,
};

/// How many characters of the reason for leaving a run are shown, with what a person can do.
const LEFT_CHARS_MAX: usize = 600;

/// How many changed files are named.
const FILES_MAX: usize = 8;

pub(super) fn show(report: &RunReport, as_json: bool) {
    let resume = report.stop.is_none().then(|| format!("jackline run --resume {}", report.session));
    if as_json {
        print_json_line(json!({
            "event": "ended",
            "session": report.session,
            "workspace": report.workspace,
            "stop": report.stop,
            "left": report.suspend_reason,
            "resume": resume,
            "outcome": report.public,
            "evidence": report.evidence,
        }));
        return;
    }
    let head = match (&report.stop, &report.suspend_reason) {
        (Some(stop), _) => {
            let label = StatusLabel::of_stop(stop);
            styled(label.style().bold(), label)
        }
        (None, left) => {
            let why = left.as_deref().unwrap_or("the run was interrupted");
            let head = styled(AnsiColor::Yellow.on_default().bold(), "not finished:");
            format!("{head} {}", sanitize(why, LEFT_CHARS_MAX))
        }
    };
    print_line(format!("\n{head}"));
    let unproven = report.stop.as_ref().filter(|stop| stop.code == StopCode::NoEvidence);
    match unproven.map(|stop| stop.detail.is_some()) {
        Some(true) => print_line("  the completion check did not pass, and did not block the stop"),
        Some(false) => print_line(
            "  to check when the task is done, add a `completion` section to the definition",
        ),
        None => {}
    }
    outcome(&report.public)
        .lines()
        .for_each(|line| print_line(format!("  {}", sanitize(line, 400))));
    for (name, value) in rows(&report.evidence) {
        print_line(format!("  {} {value}", dim(format!("{name:<12}"))));
    }
    print_line(format!("  {} {}", dim(format!("{:<12}", "workspace")), report.workspace.display()));
    let session = &report.session;
    if let Some(resume) = resume {
        print_line(format!("  resume with {}", bold(resume)));
    }
    print_line(dim(format!("  details: jackline log {session}; proof: jackline replay {session}")));
}

/// Prints the last JSON object of a run without a report.
pub(super) fn show_refused(refused: &RunRefusal) {
    print_json_line(json!({
        "event": "ended",
        "session": refused.session,
        "stop": null,
        "left": null,
        "error": { "kind": refused.kind, "message": refused.text },
        "outcome": not_started_outcome(),
    }));
}

/// The public outcome as text.
fn outcome(public: &PublicOutcome) -> String {
    match (&public.value, &public.error_message) {
        (Some(Value::String(answer)), _) => answer.clone(),
        (Some(Value::Null), _) => String::new(),
        (Some(value), _) => serde_json::to_string_pretty(value).unwrap_or_default(),
        (None, message) => message.clone().unwrap_or_default(),
    }
}

fn rows(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let counts = |map: &std::collections::BTreeMap<String, u64>| {
        map.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    };
    let tests = match (evidence.tests_run, evidence.tests_passing) {
        (true, TestsPassing::Yes) => "run since the last change, and pass".to_owned(),
        (true, passing) => format!("run since the last change; passing: {passing}"),
        (false, _) if evidence.code_modified && evidence.tokens_unknown => {
            "no test run was observed since the last change".to_owned()
        }
        (false, _) if evidence.code_modified => "not run since the last change".to_owned(),
        (false, _) => "no code was changed".to_owned(),
    };
    let mut files: Vec<String> =
        evidence.files_changed.iter().take(FILES_MAX).map(|file| sanitize(file, 80)).collect();
    if evidence.files_changed.len() > FILES_MAX {
        files.push(format!("and {} more", evidence.files_changed.len() - FILES_MAX));
    }
    if evidence.files_cut {
        files.push("(too many files to compare all)".to_owned());
    }
    let mut rows = vec![
        ("tests", tests),
        ("changed", if files.is_empty() { "nothing".to_owned() } else { files.join(", ") }),
        ("verdicts", counts(&evidence.verdicts)),
    ];
    if !evidence.violations.is_empty() {
        rows.push(("violations", counts(&evidence.violations)));
    }
    rows.push((
        "used",
        format!(
            "{}, {}, {}, {}",
            iterations(evidence),
            format_count(evidence.steps, "step"),
            spent(evidence),
            format_duration(evidence.elapsed_ms)
        ),
    ));
    rows
}

/// "3 iterations (2 of them ended)". The last iteration may not have ended, and `jackline status`
/// counts only those that have.
fn iterations(evidence: &Evidence) -> String {
    let (started, ended) = (evidence.iterations, evidence.iterations_ended);
    let text = format_count(started, "iteration");
    if started == ended { text } else { format!("{text} ({ended} of them ended)") }
}

/// Tokens and cost, as far as they are known.
fn spent(evidence: &Evidence) -> String {
    let (read, written) = evidence.tokens;
    let tokens = format!("{read} tokens read, {written} written");
    match (evidence.tokens_unknown, evidence.cost_micros) {
        (true, _) if evidence.tokens == (0, 0) => "tokens and cost unknown".to_owned(),
        (true, _) => format!("{tokens} without those of a program, cost unknown"),
        (false, None) => format!("{tokens}, cost unknown"),
        (false, Some(micros)) => {
            format!("{tokens}, {}.{:06} $", micros / 1_000_000, micros % 1_000_000)
        }
    }
}
