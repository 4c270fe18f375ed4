//! What the reports say: why, what was tried, the last actions, how to go on.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jackline_engine::event::IterationEnded;
use jackline_engine::summary::{ActionEnd, LastAction, ReportFile};
use jackline_engine::{Decision, EventKind, Status, Summary};

use super::{SAFETY_LOG, Told, figures};

/// What nobody has said and nobody has seen.
const UNKNOWN: &str = "unknown";

/// How many files are named.
const FILES_SHOWN: usize = 8;

/// How much of one text is shown.
const TEXT_CHARS_MAX: usize = 300;

/// The whole text of a report.
pub(super) fn render(report: ReportFile, told: &Told<'_>) -> String {
    match report {
        ReportFile::Blocker => blocker(told),
        ReportFile::Checkpoint => checkpoint(told),
        ReportFile::Briefing => briefing(told),
    }
}

fn blocker(told: &Told<'_>) -> String {
    let session = name(told);
    let mut text = format!("# Blocked - {}\n\nSession `{session}` ", told.at);
    let over = told.summary.stop.as_ref().map(ToString::to_string);
    match &over {
        Some(code) => drop(writeln!(text, "was stopped: {code}.")),
        None => text.push_str("is paused, and waits for you.\n"),
    }
    section(&mut text, "Reason", &reasons(told));
    section(&mut text, "Goal", &goal(told));
    section(&mut text, "What was tried", &tried(told));
    for (part, title) in
        [("loops", "Loops"), ("progress", "Progress"), ("dirty_bits", "Dirty bits")]
    {
        section(&mut text, title, &figures::lines(told.summary, part));
    }
    section(&mut text, "Last actions", &actions(&told.summary.last_actions));
    section(&mut text, "In force", &constraints(told));
    let path = ReportFile::Blocker.path();
    let way = match over {
        Some(_) => vec![
            format!("Open the session anew: `jackline reset {session}`"),
            "Or start another one; this one stays stopped".to_owned(),
        ],
        None => vec![
            format!("Let it go on: `jackline clear {session}`, or delete this file: `rm {path}`"),
            "Tell the agent what to do otherwise; your next message goes on, too".to_owned(),
            format!("End it: `jackline stop {session}`"),
        ],
    };
    section(&mut text, "To Continue", &[way, look_closer(told)].concat());
    text
}

fn checkpoint(told: &Told<'_>) -> String {
    let session = name(told);
    let mut text = format!("# Checkpoint - {}\n", told.at);
    section(&mut text, "Reason", &reasons(told));
    section(&mut text, "Current State", &state(told));
    let mut progress = done(told);
    for part in ["progress", "dirty_bits", "budgets"] {
        // Of tests was told already, and with more than yes and no.
        let told_already = |line: &String| part == "dirty_bits" && line.starts_with("tests ");
        let lines = figures::lines(told.summary, part).into_iter();
        progress.extend(lines.filter(|line| !told_already(line)));
    }
    progress.extend(tried(told));
    section(&mut text, "Progress Summary", &progress);
    section(&mut text, "Last actions", &actions(&told.summary.last_actions));
    let path = ReportFile::Checkpoint.path();
    let way = vec![
        format!(
            "Acknowledge: `jackline ack {session}`, or delete this file to resume: `rm {path}`"
        ),
        format!("End it: `jackline stop {session}`"),
    ];
    section(&mut text, "To Continue", &[way, look_closer(told)].concat());
    text
}

fn briefing(told: &Told<'_>) -> String {
    let mut text = format!("# Mission briefing - {}\n", told.at);
    section(&mut text, "Goal", &goal(told));
    section(&mut text, "State", &state(told));
    section(&mut text, "Dirty bits", &figures::lines(told.summary, "dirty_bits"));
    let mut counters = tried(told);
    for part in ["progress", "loops", "budgets", "context"] {
        counters.extend(figures::lines(told.summary, part));
    }
    section(&mut text, "Counters", &counters);
    let active = constraints(told);
    let none = vec!["none".to_owned()];
    section(&mut text, "Active constraints", if active.is_empty() { &none } else { &active });
    section(&mut text, "Last actions", &actions(&told.summary.last_actions));
    section(&mut text, "Next step", &[next_step(told.summary)]);
    text
}

/// A heading with a list, where there is anything to list.
fn section(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n## {title}\n");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
}

/// What was objected to, or what the session is paused for.
fn reasons(told: &Told<'_>) -> Vec<String> {
    let holds = |decision: Decision| decision >= Decision::Pause;
    let found = told.verdict.violations.iter().filter(|it| it.enforced && holds(it.decision));
    let mut reasons: Vec<String> = found
        .map(|it| {
            format!("{} ({})", plain(&it.message, TEXT_CHARS_MAX), plain(it.subtype.word(), 60))
        })
        .collect();
    if reasons.is_empty() {
        reasons.extend(told.summary.paused_why.as_deref().map(|why| plain(why, TEXT_CHARS_MAX)));
    }
    if let Some(signature) = told.summary.stop.as_ref().and_then(|stop| stop.signature.as_deref()) {
        reasons.push(format!("what was repeated: `{}`", plain(signature, TEXT_CHARS_MAX)));
    }
    reasons
}

fn goal(told: &Told<'_>) -> Vec<String> {
    told.summary.goal.iter().map(|goal| plain(goal, 500)).collect()
}

fn state(told: &Told<'_>) -> Vec<String> {
    let mut lines = vec![format!("Session: {}", name(told))];
    let (phase, task) = match &told.event.kind {
        EventKind::IterationEnded(IterationEnded { phase, task, .. }) => {
            (phase.as_deref(), task.as_deref())
        }
        _ => (None, None),
    };
    let Summary { progress, goal, .. } = told.summary;
    let phase = phase.or(progress.phase.as_deref());
    let task = task.or(progress.task.as_deref()).or(goal.as_deref());
    for (name, text) in [("Phase", phase), ("Task", task)] {
        lines.push(format!("{name}: {}", plain(text.unwrap_or(UNKNOWN), 120)));
    }
    if let Some(last) = told.summary.last_actions.last() {
        lines.push(format!("Last action: {}", action(last)));
    }
    let running = told.summary.in_flight.iter().map(|(_, tool)| tool.as_str());
    let running: Vec<String> = running.map(|tool| plain(tool, 60)).collect();
    if !running.is_empty() {
        lines.push(format!("Under way: {}", running.join(", ")));
    }
    lines
}

/// What was done: as the iteration reported it, else as the guards saw it.
fn done(told: &Told<'_>) -> Vec<String> {
    let Summary { dirty_bits, epoch, tests: seen, .. } = told.summary;
    let changed = told.changed.as_ref().filter(|changed| !changed.is_empty());
    let (reported, files) = match &told.event.kind {
        EventKind::IterationEnded(IterationEnded { tests, files_changed, .. }) => {
            (tests.as_ref(), *files_changed)
        }
        _ => (None, None),
    };
    let files = match (files, changed) {
        (Some(files), _) => files.to_string(),
        (None, Some(changed)) => listed(changed),
        (None, None) if *epoch == 0 && !dirty_bits.code_modified => "none that was seen".to_owned(),
        (None, None) => {
            let times = if *epoch == 1 { "once".to_owned() } else { format!("{epoch} times") };
            format!("{UNKNOWN} (the workspace was changed {times})")
        }
    };
    let reported = reported.map(|it| (it.passed.saturating_add(it.failed), it.passed));
    let counted = reported.or(seen.map(|it| (it.run, it.passing)));
    let (run, passing) = match counted {
        Some((run, passing)) if reported.is_some() || dirty_bits.tests_run => {
            (run.to_string(), passing.to_string())
        }
        Some((run, passing)) => {
            let before = "before the code was changed last";
            (format!("{run}, {before}"), format!("{passing}, {before}"))
        }
        None if dirty_bits.tests_run => {
            (format!("yes, {UNKNOWN} how many"), dirty_bits.tests_passing.to_string())
        }
        None => ("none that was seen".to_owned(), UNKNOWN.to_owned()),
    };
    vec![
        format!("Files modified: {files}"),
        format!("Tests run: {run}"),
        format!("Tests passing: {passing}"),
    ]
}

/// How many files, and the first of them.
fn listed(files: &BTreeSet<String>) -> String {
    let shown: Vec<String> =
        files.iter().take(FILES_SHOWN).map(|file| format!("`{}`", plain(file, 80))).collect();
    let more = if files.len() > FILES_SHOWN { ", …" } else { "" };
    format!("{}: {}{more}", files.len(), shown.join(", "))
}

fn tried(told: &Told<'_>) -> Vec<String> {
    let Summary { steps, epoch, invocations: calls, usage, .. } = told.summary;
    let mut lines = vec![
        format!("Calls: {calls}"),
        format!("Steps: {steps}"),
        format!("Changes of the workspace: {epoch}"),
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
        ended => ended.word(),
    };
    let exit = action.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    format!("{} `{}`: {ended}{exit}", plain(&action.tool, 60), plain(&action.does, 120))
}

fn constraints(told: &Told<'_>) -> Vec<String> {
    let holds = |expiry: Option<_>| expiry.is_none_or(|expiry| told.at < expiry);
    let held = told.summary.constraints.iter().filter(|it| holds(it.expires_at));
    held.map(|it| {
        let until = it.expires_at.map_or_else(String::new, |expiry| format!(", until {expiry}"));
        let kind = serde_json::to_value(it.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default();
        format!("{} {kind}: {}{until}", it.id, plain(&it.reason, TEXT_CHARS_MAX))
    })
    .collect()
}

fn look_closer(told: &Told<'_>) -> Vec<String> {
    let session = name(told);
    vec![format!(
        "Look closer: `jackline log {session}`, `jackline show {session}`, `{SAFETY_LOG}`"
    )]
}

/// What an agent that knows nothing else should begin with.
fn next_step(summary: &Summary) -> String {
    match summary.last_actions.last() {
        None => "Begin with the goal.".to_owned(),
        Some(last) => match last.ended {
            ActionEnd::With(Status::Ok) => format!("Go on after {}.", action(last)),
            ActionEnd::Open => {
                format!("Find out what came of {}; it may have run.", action(last))
            }
            ActionEnd::Held(Decision::Ask | Decision::Pause) => {
                format!("{} waits for a person; do something else.", action(last))
            }
            ActionEnd::Held(Decision::Deny) => {
                format!("{} is not allowed; find another way.", action(last))
            }
            _ => format!("Find out why {}, before you repeat it.", action(last)),
        },
    }
}

fn name(told: &Told<'_>) -> String {
    plain(told.session.as_str(), 128)
}

/// One line that stays one line, and stays inside its backticks.
pub(super) fn plain(text: &str, chars_max: usize) -> String {
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

    use jackline_engine::summary::TestCounts;
    use jackline_engine::verdict::{
        Class, GuardName, Stop, StopDetail, ViolationSubtype, ViolationType,
    };
    use jackline_engine::{
        Definition, Event, Facts, Now, Place, Record, Session, SessionId, StopCode, Timestamp,
        Verdict, Violation, observe, wire::parse_line,
    };

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_769_860_800_000);

    /// A session in which something was tried.
    fn worked() -> (Session, SessionId) {
        let id = SessionId::parse("s").unwrap();
        let mut session = Session::new(Arc::new(Definition::default()), Arc::new(Place::default()));
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

    fn rendered(report: ReportFile, line: &str, change: impl FnOnce(&mut Summary)) -> String {
        let (session, id) = worked();
        let event: Event = parse_line(line.as_bytes(), Some(&id)).unwrap();
        let verdict = Verdict {
            violations: vec![Violation {
                id: "v7.1".to_owned(),
                guard: GuardName::Loops,
                kind: ViolationType::Loop,
                subtype: ViolationSubtype::Repeat,
                class: Class::Recoverable,
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
        let told = Told {
            session: &id,
            at: NOW,
            event: &event,
            verdict: &verdict,
            summary: &summary,
            changed: None,
        };
        render(report, &told)
    }

    #[test]
    fn a_blocker_says_why_what_was_tried_and_how_to_go_on() {
        let text = rendered(ReportFile::Blocker, r#"{"event":"session_ended"}"#, |_| {});
        assert_eq!(
            text,
            "# Blocked - 2026-01-31T12:00:00Z

Session `s` is paused, and waits for you.

## Reason
- 5 times the same (repeat)

## Goal
- Make the tests pass

## What was tried
- Calls: 2: 1 ok, 1 failed
- Steps: 2
- Changes of the workspace: 0

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
- Let it go on: `jackline clear s`, or delete this file: `rm .jackline/BLOCKER_REPORT.md`
- Tell the agent what to do otherwise; your next message goes on, too
- End it: `jackline stop s`
- Look closer: `jackline log s`, `jackline show s`, `.jackline/safety_log.json`
"
        );
    }

    #[test]
    fn a_blocker_of_a_session_that_is_over_names_what_was_repeated() {
        let text = rendered(ReportFile::Blocker, r#"{"event":"session_ended"}"#, |summary| {
            let stop = Stop::of(StopCode::SystemError).because(StopDetail::Loop);
            summary.stop = Some(Stop { signature: Some("Bash:ls".to_owned()), ..stop });
        });
        assert!(text.contains("was stopped: SYSTEM_ERROR{loop}."), "{text}");
        assert!(text.contains("- what was repeated: `Bash:ls`"), "{text}");
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
            "## To Continue\n- Acknowledge: `jackline ack s`, or delete this file to resume: `rm .jackline/CHECKPOINT.md`\n",
        ];
        assert!(parts.map(at).is_sorted());
    }

    #[test]
    fn a_checkpoint_says_what_the_guards_saw_where_the_event_says_nothing() {
        let run = r#"{"event":"iteration_ended"}"#;
        let text = rendered(ReportFile::Checkpoint, run, |summary| {
            summary.epoch = 3;
            summary.dirty_bits.code_modified = true;
            summary.tests = Some(TestCounts { run: 12, passing: 10 });
        });
        for part in [
            "- Phase: unknown\n- Task: Make the tests pass\n",
            "- Files modified: unknown (the workspace was changed 3 times)\n",
            "- Tests run: 12\n- Tests passing: 10\n",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        let text = rendered(ReportFile::Checkpoint, run, |summary| {
            summary.dirty_bits.tests_run = false;
            summary.goal = None;
        });
        for part in [
            "- Task: unknown\n",
            "- Files modified: none that was seen\n- Tests run: none that was seen\n",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        let tests = text.lines().filter(|line| line.to_lowercase().contains("tests run"));
        assert_eq!(tests.count(), 1, "nothing is said twice: {text}");
        let text = rendered(ReportFile::Checkpoint, run, |summary| summary.epoch = 1);
        assert!(text.contains("unknown (the workspace was changed once)"), "{text}");
    }

    #[test]
    fn a_briefing_says_what_an_agent_has_to_know() {
        let line = r#"{"event":"usage_reported","input":1,"output":1}"#;
        let text = rendered(ReportFile::Briefing, line, |_| {});
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in {text}"));
        let parts = [
            "# Mission briefing - 2026-01-31T12:00:00Z\n",
            "## Goal\n- Make the tests pass\n",
            "## State\n",
            "## Counters\n",
            "## Active constraints\n- none\n",
            "## Next step\n- Go on after Read `a.rs`: ok.\n",
        ];
        assert!(parts.map(at).is_sorted());
    }

    #[test]
    fn what_an_agent_wrote_stays_on_its_line() {
        assert_eq!(plain(" a\n## To Continue\n`rm` \u{1b}[2J ", 40), "a ## To Continue 'rm'  [2J");
        assert_eq!(plain("abcdef", 3), "abc…");
    }
}
