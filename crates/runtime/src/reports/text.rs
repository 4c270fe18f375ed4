//! The texts of the reports: the reason, the activity so far, the last actions, and how to
//! continue.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jackline_engine::definition::LimitDimension;
use jackline_engine::event::IterationEnded;
use jackline_engine::models::format_usd;
use jackline_engine::summary::{ActionEnd, BudgetSummary, LastAction, ReportFile};
use jackline_engine::{CallStatus, Decision, EventKind, SessionSummary};

use super::{ReportInput, SAFETY_LOG, summary_lines};

/// The text for a value that was neither reported nor observed.
const UNKNOWN: &str = "unknown";

/// The largest number of files that are named.
const FILES_SHOWN: usize = 8;

/// The longest text that is shown.
const TEXT_CHARS_MAX: usize = 300;

/// The whole text of a report.
pub(super) fn render(report: ReportFile, input: &ReportInput<'_>) -> String {
    match report {
        ReportFile::Blocker => blocker(input),
        ReportFile::Checkpoint => checkpoint(input),
        ReportFile::Briefing => briefing(input),
    }
}

fn blocker(input: &ReportInput<'_>) -> String {
    let session = session_name(input);
    let mut text = format!("# Blocked - {}\n\nSession `{session}` ", input.at);
    let stopped = input.summary.stop.as_ref().map(ToString::to_string);
    match &stopped {
        Some(code) => drop(writeln!(text, "was stopped: {code}.")),
        None => text.push_str("is paused and waits for you.\n"),
    }
    section(&mut text, "Reason", &reasons(input));
    section(&mut text, "Goal", &goal(input));
    section(&mut text, "Activity so far", &activity(input));
    for (part, title) in
        [("loops", "Loops"), ("progress", "Progress"), ("dirty_bits", "Dirty bits")]
    {
        section(&mut text, title, &summary_lines::lines(input.summary, part));
    }
    section(&mut text, "Last actions", &actions(&input.summary.last_actions));
    section(&mut text, "Active constraints", &constraints(input));
    let path = ReportFile::Blocker.path();
    let options = match stopped {
        Some(_) => vec![
            format!("Open the session again: `jackline reset {session}`"),
            "Or start a new session; this one stays stopped".to_owned(),
        ],
        None => vec![
            format!(
                "Resume the session: `jackline clear {session}`, or delete this file: `rm {path}`"
            ),
            "Or give the agent new instructions; your next message also resumes the session"
                .to_owned(),
            format!("End the session: `jackline stop {session}`"),
        ],
    };
    section(&mut text, "To Continue", &[options, details(input)].concat());
    text
}

fn checkpoint(input: &ReportInput<'_>) -> String {
    let session = session_name(input);
    let mut text = format!("# Checkpoint - {}\n", input.at);
    section(&mut text, "Reason", &checkpoint_reasons(input));
    section(&mut text, "Current State", &state(input));
    let mut progress = completed_work(input);
    for part in ["progress", "dirty_bits"] {
        // The lines above show the tests already, in more detail.
        let is_shown_already = |line: &String| part == "dirty_bits" && line.starts_with("tests ");
        let lines = summary_lines::lines(input.summary, part).into_iter();
        progress.extend(lines.filter(|line| !is_shown_already(line)));
    }
    progress.extend(budgets(input.summary));
    progress.extend(activity(input));
    section(&mut text, "Progress Summary", &progress);
    section(&mut text, "Last actions", &actions(&input.summary.last_actions));
    let path = ReportFile::Checkpoint.path();
    let options = vec![
        format!(
            "Acknowledge and resume: `jackline ack {session}`, or delete this file to resume: `rm {path}`"
        ),
        format!("End the session: `jackline stop {session}`"),
    ];
    section(&mut text, "To Continue", &[options, details(input)].concat());
    text
}

fn briefing(input: &ReportInput<'_>) -> String {
    let mut text = format!("# Mission briefing - {}\n", input.at);
    section(&mut text, "Goal", &goal(input));
    section(&mut text, "State", &state(input));
    section(&mut text, "Dirty bits", &summary_lines::lines(input.summary, "dirty_bits"));
    let mut counters = activity(input);
    for part in ["progress", "loops"] {
        counters.extend(summary_lines::lines(input.summary, part));
    }
    counters.extend(budgets(input.summary));
    counters.extend(summary_lines::lines(input.summary, "context"));
    section(&mut text, "Counters", &counters);
    let active = constraints(input);
    let none = vec!["none".to_owned()];
    section(&mut text, "Active constraints", if active.is_empty() { &none } else { &active });
    section(&mut text, "Last actions", &actions(&input.summary.last_actions));
    section(&mut text, "Next step", &[next_step(input.summary)]);
    text
}

/// A heading with a list. An empty list has no heading.
fn section(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n## {title}\n");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
}

/// The violations that paused or stopped the session, else the reason of its pause.
fn reasons(input: &ReportInput<'_>) -> Vec<String> {
    let blocks = |decision: Decision| decision >= Decision::Pause;
    let found = input.verdict.violations.iter().filter(|it| it.enforced && blocks(it.decision));
    let mut reasons: Vec<String> = found
        .map(|it| {
            format!(
                "{} ({})",
                one_line(&it.message, TEXT_CHARS_MAX),
                one_line(it.subtype.as_str(), 60)
            )
        })
        .collect();
    if reasons.is_empty() {
        reasons
            .extend(input.summary.paused_why.as_deref().map(|why| one_line(why, TEXT_CHARS_MAX)));
    }
    if let Some(signature) = input.summary.stop.as_ref().and_then(|stop| stop.signature.as_deref())
    {
        reasons.push(format!("repeated call: `{}`", one_line(signature, TEXT_CHARS_MAX)));
    }
    reasons
}

/// Why the session waits at a checkpoint: the cap, if it is reached, else as for other pauses.
fn checkpoint_reasons(input: &ReportInput<'_>) -> Vec<String> {
    let mut budgets = input.summary.budgets.iter();
    let cap = budgets.find(|budget| budget.key.dimension == LimitDimension::Iterations);
    match cap.filter(|cap| cap.used >= cap.max) {
        Some(cap) => vec![format!("Reached iteration cap: {}/{}", cap.used, cap.max)],
        None => reasons(input),
    }
}

/// Every limit and its use, a line each.
fn budgets(summary: &SessionSummary) -> Vec<String> {
    let line = |budget: &BudgetSummary| {
        let (used, max) = match budget.key.dimension {
            LimitDimension::CostUsd => (format_usd(budget.used), format_usd(budget.max)),
            _ => (budget.used.to_string(), budget.max.to_string()),
        };
        let soft = if budget.soft { ", warns only" } else { "" };
        let name = budget.key.to_string().replace('_', " ");
        let line = format!("Used {name}: {used} of {max} per {}{soft}", budget.per.as_str());
        one_line(&line, TEXT_CHARS_MAX)
    };
    summary.budgets.iter().map(line).collect()
}

fn goal(input: &ReportInput<'_>) -> Vec<String> {
    input.summary.goal.iter().map(|goal| one_line(goal, 500)).collect()
}

fn state(input: &ReportInput<'_>) -> Vec<String> {
    let mut lines = vec![format!("Session: {}", session_name(input))];
    let (phase, task) = match &input.event.kind {
        EventKind::IterationEnded(IterationEnded { phase, task, .. }) => {
            (phase.as_deref(), task.as_deref())
        }
        _ => (None, None),
    };
    let SessionSummary { progress, goal, .. } = input.summary;
    let phase = phase.or(progress.phase.as_deref());
    let task = task.or(progress.task.as_deref()).or(goal.as_deref());
    for (name, text) in [("Phase", phase), ("Task", task)] {
        lines.push(format!("{name}: {}", one_line(text.unwrap_or(UNKNOWN), 120)));
    }
    if let Some(last) = input.summary.last_actions.last() {
        lines.push(format!("Last action: {}", action(last)));
    }
    let running = input.summary.in_flight.iter().map(|(_, tool)| tool.as_str());
    let running: Vec<String> = running.map(|tool| one_line(tool, 60)).collect();
    if !running.is_empty() {
        lines.push(format!("Running: {}", running.join(", ")));
    }
    lines
}

/// The work done: as the iteration reported it, else as the guards observed it.
fn completed_work(input: &ReportInput<'_>) -> Vec<String> {
    let SessionSummary { dirty_bits, epoch, tests: seen, .. } = input.summary;
    let changed = input.changed_files.as_ref().filter(|changed| !changed.is_empty());
    let (reported, files) = match &input.event.kind {
        EventKind::IterationEnded(IterationEnded { tests, files_changed, .. }) => {
            (tests.as_ref(), *files_changed)
        }
        _ => (None, None),
    };
    let files = match (files, changed) {
        (Some(files), _) => files.to_string(),
        (None, Some(changed)) => file_list(changed),
        (None, None) if *epoch == 0 && !dirty_bits.code_modified => "none seen".to_owned(),
        (None, None) => {
            let times = if *epoch == 1 { "once".to_owned() } else { format!("{epoch} times") };
            format!("{UNKNOWN} (the workspace changed {times})")
        }
    };
    let reported = reported.map(|it| (it.passed.saturating_add(it.failed), it.passed));
    let counted = reported.or(seen.map(|it| (it.run, it.passing)));
    let (run, passing) = match counted {
        Some((run, passing)) if reported.is_some() || dirty_bits.tests_run => {
            (run.to_string(), passing.to_string())
        }
        Some((run, passing)) => {
            let before = "before the last code change";
            (format!("{run}, {before}"), format!("{passing}, {before}"))
        }
        None if dirty_bits.tests_run => {
            (format!("yes, number {UNKNOWN}"), dirty_bits.tests_passing.to_string())
        }
        None => ("none seen".to_owned(), UNKNOWN.to_owned()),
    };
    vec![
        format!("Files modified: {files}"),
        format!("Tests run: {run}"),
        format!("Tests passing: {passing}"),
    ]
}

/// The number of files, and the first of them.
fn file_list(files: &BTreeSet<String>) -> String {
    let shown: Vec<String> =
        files.iter().take(FILES_SHOWN).map(|file| format!("`{}`", one_line(file, 80))).collect();
    let more = if files.len() > FILES_SHOWN { ", …" } else { "" };
    format!("{}: {}{more}", files.len(), shown.join(", "))
}

fn activity(input: &ReportInput<'_>) -> Vec<String> {
    let SessionSummary { steps, epoch, invocations: calls, usage, .. } = input.summary;
    let mut lines = vec![
        format!("Calls: {calls}"),
        format!("Steps: {steps}"),
        format!("Workspace changes: {epoch}"),
    ];
    if usage.total() > 0 {
        lines.push(format!("Tokens: {}", usage.total()));
    }
    lines
}

fn actions(actions: &[LastAction]) -> Vec<String> {
    actions.iter().map(|it| format!("record {}: {}", it.seq, action(it))).collect()
}

fn action(action: &LastAction) -> String {
    let ended = match action.ended {
        ActionEnd::Open => "no result yet",
        ended => ended.as_str(),
    };
    let exit = action.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    format!("{} `{}`: {ended}{exit}", one_line(&action.tool, 60), one_line(&action.does, 120))
}

fn constraints(input: &ReportInput<'_>) -> Vec<String> {
    let is_active = |expiry: Option<_>| expiry.is_none_or(|expiry| input.at < expiry);
    let active = input.summary.constraints.iter().filter(|it| is_active(it.expires_at));
    active
        .map(|it| {
            let until =
                it.expires_at.map_or_else(String::new, |expiry| format!(", until {expiry}"));
            let kind = serde_json::to_value(it.kind).unwrap_or_default();
            let kind = kind.as_str().unwrap_or_default();
            format!("{} {kind}: {}{until}", it.id, one_line(&it.reason, TEXT_CHARS_MAX))
        })
        .collect()
}

fn details(input: &ReportInput<'_>) -> Vec<String> {
    let session = session_name(input);
    vec![format!("Details: `jackline log {session}`, `jackline show {session}`, `{SAFETY_LOG}`")]
}

/// The first step of an agent that knows only this report.
fn next_step(summary: &SessionSummary) -> String {
    match summary.last_actions.last() {
        None => "Start with the goal.".to_owned(),
        Some(last) => match last.ended {
            ActionEnd::Returned(CallStatus::Ok) => format!("Continue after {}.", action(last)),
            ActionEnd::Open => {
                format!("Find out whether this took effect: {}; it may have run.", action(last))
            }
            ActionEnd::NotRun(Decision::Ask | Decision::Pause) => {
                format!("{} waits for a person; do something else.", action(last))
            }
            ActionEnd::NotRun(Decision::Deny) => {
                format!("{} is not allowed; find an alternative.", action(last))
            }
            _ => format!("Find out the cause before you repeat this: {}.", action(last)),
        },
    }
}

fn session_name(input: &ReportInput<'_>) -> String {
    one_line(input.session.as_str(), 128)
}

/// Makes a text one line that stays inside its backticks.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let shown = |letter: char| match letter {
        '`' => '\'',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    let mut line: String = text.trim().chars().map(shown).take(chars_max).collect();
    if text.trim().chars().nth(chars_max).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jackline_engine::definition::{LimitKey, LimitPeriod};
    use jackline_engine::summary::TestCounts;
    use jackline_engine::verdict::{
        GuardName, SessionStop, StopDetail, ViolationClass, ViolationSubtype, ViolationType,
    };
    use jackline_engine::{
        Definition, Event, Facts, Now, Record, Session, SessionId, SessionLocation, StopCode,
        Timestamp, Verdict, Violation, observe, wire::parse_line,
    };

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_769_860_800_000);

    /// A session with some activity.
    fn worked() -> (Session, SessionId) {
        let id = SessionId::parse("s").unwrap();
        let mut session =
            Session::new(Arc::new(Definition::default()), Arc::new(SessionLocation::default()));
        let lines = [
            r#"{"event":"prompt_submitted","text":"Make the tests\npass"}"#,
            r#"{"event":"tool_proposed","call":"c1","tool":"Bash","args":{"command":"cargo test `x`"}}"#,
            r#"{"event":"tool_finished","call":"c1","status":"error"}"#,
            r#"{"event":"tool_proposed","call":"c2","tool":"Read","args":{"file_path":"a.rs"}}"#,
            r#"{"event":"tool_finished","call":"c2","status":"ok"}"#,
            r#"{"event":"control","action":"pause","by":"dana","why":"it goes in circles"}"#,
        ];
        for (seq, line) in (1..).zip(lines) {
            let event = parse_line(line.as_bytes(), Some(&id)).unwrap();
            let mut facts = Facts::at(Now::wall(NOW));
            facts.observed = observe(&event);
            let verdict = session.decide(&event, &facts);
            session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        }
        (session, id)
    }

    fn rendered(
        report: ReportFile,
        line: &str,
        change: impl FnOnce(&mut SessionSummary),
    ) -> String {
        let (session, id) = worked();
        let event: Event = parse_line(line.as_bytes(), Some(&id)).unwrap();
        let verdict = Verdict {
            violations: vec![Violation {
                id: "v7.1".to_owned(),
                guard: GuardName::Loops,
                kind: ViolationType::Loop,
                subtype: ViolationSubtype::Repeat,
                class: ViolationClass::Recoverable,
                message: "5 times the same".to_owned(),
                location: None,
                correction: None,
                decision: Decision::Pause,
                enforced: true,
            }],
            ..Verdict::allow()
        };
        let mut summary = session.summary();
        change(&mut summary);
        let input = ReportInput {
            session: &id,
            at: NOW,
            event: &event,
            verdict: &verdict,
            summary: &summary,
            changed_files: None,
        };
        render(report, &input)
    }

    #[test]
    fn a_blocker_gives_the_reason_the_activity_and_the_options() {
        let text = rendered(ReportFile::Blocker, r#"{"event":"session_ended"}"#, |_| {});
        assert_eq!(
            text,
            "# Blocked - 2026-01-31T12:00:00Z

Session `s` is paused and waits for you.

## Reason
- 5 times the same (repeat)

## Goal
- Make the tests pass

## Activity so far
- Calls: 2: 1 ok, 1 failed
- Steps: 2
- Workspace changes: 0

## Progress
- consecutive failures: 0
- iteration count: 0

## Dirty bits
- code modified: no
- docs updated: no
- skipped: no
- tests passing: no
- tests run: yes

## Last actions
- record 2: Bash `cargo test 'x'`: error
- record 4: Read `a.rs`: ok

## To Continue
- Resume the session: `jackline clear s`, or delete this file: `rm .jackline/BLOCKER_REPORT.md`
- Or give the agent new instructions; your next message also resumes the session
- End the session: `jackline stop s`
- Details: `jackline log s`, `jackline show s`, `.jackline/safety_log.json`
"
        );
    }

    #[test]
    fn a_blocker_of_a_stopped_session_names_the_repeated_call() {
        let text = rendered(ReportFile::Blocker, r#"{"event":"session_ended"}"#, |summary| {
            let stop = SessionStop::with_code(StopCode::SystemError).with_detail(StopDetail::Loop);
            summary.stop = Some(SessionStop { signature: Some("Bash:ls".to_owned()), ..stop });
        });
        assert!(text.contains("was stopped: SYSTEM_ERROR{loop}."), "{text}");
        assert!(text.contains("- repeated call: `Bash:ls`"), "{text}");
        assert!(text.contains("`jackline reset s`") && !text.contains("jackline clear"), "{text}");
    }

    #[test]
    fn a_checkpoint_has_the_headings_that_people_know() {
        let line = r#"{"event":"iteration_ended","phase":"P","task":"P.2.2","tests":{"failed":2,"passed":10},"files_changed":5}"#;
        let text = rendered(ReportFile::Checkpoint, line, |_| {});
        assert!(text.starts_with("# Checkpoint - 2026-01-31T12:00:00Z\n\n## Reason\n- 5 times"));
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in {text}"));
        let parts = [
            "## Reason\n",
            "## Current State\n",
            "- Phase: P\n- Task: P.2.2\n- Last action: Read `a.rs`: ok\n",
            "## Progress Summary\n- Files modified: 5\n- Tests run: 12\n- Tests passing: 10\n",
            "## To Continue\n- Acknowledge and resume: `jackline ack s`, or delete this file to resume: `rm .jackline/CHECKPOINT.md`\n",
        ];
        assert!(parts.map(at).is_sorted());
    }

    #[test]
    fn the_reason_of_a_checkpoint_is_the_iteration_cap() {
        let reason = |used| {
            let run = r#"{"event":"iteration_ended"}"#;
            let text = rendered(ReportFile::Checkpoint, run, |summary| {
                summary.budgets.push(BudgetSummary {
                    key: LimitKey { dimension: LimitDimension::Iterations, tool: None },
                    used,
                    max: 100,
                    per: LimitPeriod::Session,
                    soft: false,
                    unpriced: Vec::new(),
                });
            });
            let (_, text) = text.split_once("## Reason\n").unwrap();
            text.split_once("\n\n").unwrap().0.to_owned()
        };
        assert_eq!(reason(100), "- Reached iteration cap: 100/100");
        assert_eq!(reason(101), "- Reached iteration cap: 101/100");
        // Something else paused the session.
        assert_eq!(reason(99), "- 5 times the same (repeat)");
    }

    #[test]
    fn a_checkpoint_uses_observations_if_the_event_reports_nothing() {
        let run = r#"{"event":"iteration_ended"}"#;
        let text = rendered(ReportFile::Checkpoint, run, |summary| {
            summary.epoch = 3;
            summary.dirty_bits.code_modified = true;
            summary.tests = Some(TestCounts { run: 12, passing: 10 });
        });
        for part in [
            "- Phase: unknown\n- Task: Make the tests pass\n",
            "- Files modified: unknown (the workspace changed 3 times)\n",
            "- Tests run: 12\n- Tests passing: 10\n",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        let text = rendered(ReportFile::Checkpoint, run, |summary| {
            summary.dirty_bits.tests_run = false;
            summary.goal = None;
        });
        for part in ["- Task: unknown\n", "- Files modified: none seen\n- Tests run: none seen\n"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        let tests = text.lines().filter(|line| line.to_lowercase().contains("tests run"));
        assert_eq!(tests.count(), 1, "no line is repeated: {text}");
        let text = rendered(ReportFile::Checkpoint, run, |summary| summary.epoch = 1);
        assert!(text.contains("unknown (the workspace changed once)"), "{text}");
    }

    #[test]
    fn a_briefing_contains_what_a_new_agent_needs() {
        let line = r#"{"event":"usage_reported","input":1,"output":1}"#;
        let text = rendered(ReportFile::Briefing, line, |_| {});
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in {text}"));
        let parts = [
            "# Mission briefing - 2026-01-31T12:00:00Z\n",
            "## Goal\n- Make the tests pass\n",
            "## State\n",
            "## Counters\n",
            "## Active constraints\n- none\n",
            "## Next step\n- Continue after Read `a.rs`: ok.\n",
        ];
        assert!(parts.map(at).is_sorted());
    }

    #[test]
    fn text_of_an_agent_stays_on_its_line() {
        assert_eq!(
            one_line(" a\n## To Continue\n`rm` \u{1b}[2J ", 40),
            "a ## To Continue 'rm'  [2J"
        );
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
