//! What is left of a run: how it ended, and what can be checked.

use anstyle::AnsiColor;
use jackline_attempt::PublicOutcome;
use jackline_engine::StopCode;
use jackline_engine::summary::TestsPassing;
use jackline_supervisor::{Evidence, Report, not_completed};
use serde_json::{Value, json};

use super::Refused;
use crate::terminal::{bold, counted, dim, duration, plain, say, say_json, styled};

/// How many files are named.
const FILES_MAX: usize = 8;

pub(super) fn show(report: &Report, as_json: bool) {
    if as_json {
        say_json(json!({
            "event": "ended",
            "session": report.session,
            "workspace": report.workspace,
            "stop": report.stop,
            "left": report.left,
            "outcome": report.public,
            "evidence": report.evidence,
        }));
        return;
    }
    let head = match (&report.stop, &report.left) {
        (Some(stop), _) if stop.code == StopCode::ObjectiveAchieved => {
            styled(AnsiColor::Green.on_default().bold(), stop)
        }
        (Some(stop), _) => styled(AnsiColor::Red.on_default().bold(), stop),
        (None, left) => {
            let why = left.as_deref().unwrap_or("it was left");
            format!(
                "{} {}",
                styled(AnsiColor::Yellow.on_default().bold(), "left:"),
                plain(why, 400)
            )
        }
    };
    say(format!("\n{head}"));
    if report.stop.as_ref().is_some_and(|stop| stop.code == StopCode::NoEvidence) {
        say("  nothing says when it is done: give the definition a `completion`");
    }
    outcome(&report.public).lines().for_each(|line| say(format!("  {}", plain(line, 400))));
    for (name, value) in rows(&report.evidence) {
        say(format!("  {} {value}", dim(format!("{name:<12}"))));
    }
    say(format!("  {} {}", dim(format!("{:<12}", "workspace")), report.workspace.display()));
    let session = &report.session;
    if report.stop.is_none() {
        say(format!("  go on with {}", bold(format!("jackline run --resume {session}"))));
    }
    say(dim(format!("  prove it: jackline replay {session}; look closer: jackline log {session}")));
}

/// The last object of a run that has nothing to report.
pub(super) fn show_refused(refused: &Refused) {
    say_json(json!({
        "event": "ended",
        "session": refused.session,
        "stop": null,
        "left": null,
        "error": { "kind": refused.kind, "message": refused.text },
        "outcome": not_completed(),
    }));
}

/// What whoever asked is told, in words.
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
            "not seen to run since the last change".to_owned()
        }
        (false, _) if evidence.code_modified => "not run since the last change".to_owned(),
        (false, _) => "no code was changed".to_owned(),
    };
    let mut files: Vec<String> =
        evidence.files_changed.iter().take(FILES_MAX).map(|file| plain(file, 80)).collect();
    if evidence.files_changed.len() > FILES_MAX {
        files.push(format!("and {} more", evidence.files_changed.len() - FILES_MAX));
    }
    if evidence.files_cut {
        files.push("(too many to look at all)".to_owned());
    }
    let mut rows = vec![
        ("tests", tests),
        ("changed", if files.is_empty() { "nothing".to_owned() } else { files.join(", ") }),
        ("verdicts", counts(&evidence.verdicts)),
    ];
    if !evidence.objections.is_empty() {
        rows.push(("objections", counts(&evidence.objections)));
    }
    rows.push((
        "used",
        format!(
            "{}, {}, {}, {}",
            iterations(evidence),
            counted(evidence.steps, "step"),
            spent(evidence),
            duration(evidence.elapsed_ms)
        ),
    ));
    rows
}

/// "3 iterations (2 of them ended)": with the last the run is over, and `jackline status` counts
/// those that have ended.
fn iterations(evidence: &Evidence) -> String {
    let (begun, ended) = (evidence.iterations, evidence.iterations_ended);
    let begun_in_words = counted(begun, "iteration");
    if begun == ended {
        begun_in_words
    } else {
        format!("{begun_in_words} ({ended} of them ended)")
    }
}

/// Tokens and cost, as far as anybody knows them.
fn spent(evidence: &Evidence) -> String {
    let (read, written) = evidence.tokens;
    let tokens = format!("{read} tokens read, {written} written");
    match (evidence.tokens_unknown, evidence.cost_micros) {
        (true, _) if evidence.tokens == (0, 0) => "tokens and cost unknown".to_owned(),
        (true, _) => format!("{tokens} besides what a program did, cost unknown"),
        (false, None) => format!("{tokens}, cost unknown"),
        (false, Some(micros)) => {
            format!("{tokens}, {}.{:06} $", micros / 1_000_000, micros % 1_000_000)
        }
    }
}
