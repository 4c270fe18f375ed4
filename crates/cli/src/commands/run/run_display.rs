//! The display of a run: one short line per event, and on a terminal a footer with the current
//! activity.
//!
//! The words of the agent and the words of the guard look different: a bar (`│`) marks what the
//! agent says and calls, a symbol (`●`, `✗`, `✓`) marks what the guard says.

use std::io::{IsTerminal as _, Write as _};

use anstyle::AnsiColor;
use jackline_engine::CallStatus;
use jackline_engine::summary::BudgetSummary;
use jackline_supervisor::{RunEvent, WaitReason};
use rustix::termios::tcgetwinsize;

use crate::commands::attempt::attempt_display;
use crate::terminal::{
    bold, dim, format_duration, print_json_line, print_line, print_warning, sanitize, styled,
};

/// The maximum length of a shown message.
const MESSAGE_CHARS_MAX: usize = 160;

/// The maximum width of a footer line.
const FOOTER_CHARS_MAX: usize = 78;

/// How many budgets the footer shows.
const FOOTER_BUDGETS_MAX: usize = 4;

/// The width of the bar of a budget.
const BAR_CHARS: u64 = 12;

/// Shows the events of a run, as lines or as JSON.
pub(super) struct RunDisplay {
    as_json: bool,
    /// Whether the output is a terminal, on which the footer can be erased.
    is_live: bool,
    /// The number of footer lines on the screen.
    footer_lines: usize,
    footer: DisplayFooter,
}

/// The current activity of a run.
#[derive(Default)]
struct DisplayFooter {
    iteration: u64,
    activity: String,
    steps: u64,
    budgets: Vec<BudgetSummary>,
    context_pct: Option<u64>,
}

/// One message of the guard: its first line, and what the agent should do instead.
#[derive(Debug, PartialEq, Eq)]
struct GuardMessage {
    text: String,
    correction: Option<String>,
}

impl RunDisplay {
    pub(super) fn new(as_json: bool) -> Self {
        let is_live = !as_json && std::io::stdout().is_terminal();
        Self { as_json, is_live, footer_lines: 0, footer: DisplayFooter::default() }
    }

    pub(super) fn show(&mut self, event: &RunEvent) {
        if self.as_json {
            if let Ok(line) = serde_json::to_string(event) {
                print_json_line(line);
            }
            return;
        }
        self.erase_footer();
        for line in event_lines(event, self.footer.iteration) {
            print_line(line);
        }
        self.footer.update(event);
        self.draw_footer();
    }

    /// Erases the footer, so that only the lines of the events stay.
    pub(super) fn finish(&mut self) {
        self.erase_footer();
    }

    fn erase_footer(&mut self) {
        if self.footer_lines > 0 {
            let mut terminal = std::io::stdout().lock();
            // Moves the cursor to the first footer line and erases the rest of the screen. The
            // flush is needed because a warning that follows is written to standard error.
            let _ = write!(terminal, "\u{1b}[{}A\u{1b}[J", self.footer_lines);
            let _ = terminal.flush();
            self.footer_lines = 0;
        }
    }

    fn draw_footer(&mut self) {
        if self.is_live {
            let lines = self.footer.lines(footer_width());
            self.footer_lines = lines.len();
            lines.into_iter().for_each(print_line);
        }
    }
}

impl DisplayFooter {
    fn update(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Iteration { number } => self.iteration = *number,
            RunEvent::BudgetStatus { steps, budgets, context_pct } => {
                (self.steps, self.context_pct) = (*steps, *context_pct);
                self.budgets.clone_from(budgets);
            }
            RunEvent::Asking { model } => self.activity = format!("asking {model}"),
            RunEvent::AgentText { .. } | RunEvent::Program { .. } | RunEvent::Resumed {} => {
                "working".clone_into(&mut self.activity);
            }
            RunEvent::Waiting { waits } => self.activity = describe_wait(waits),
            _ => {}
        }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let context =
            self.context_pct.map_or_else(String::new, |pct| format!(" · context {pct} %"));
        let head = format!(
            "iteration {} · step {}{context} · {}",
            self.iteration, self.steps, self.activity
        );
        let mut lines = vec![dim("─".repeat(width)), bold(sanitize(&head, width))];
        let budgets = self.budgets.iter().take(FOOTER_BUDGETS_MAX);
        lines.extend(budgets.map(|budget| dim(sanitize(&budget_bar(budget), width))));
        lines
    }
}

/// The width of a footer line. It never exceeds the terminal, because a wrapped line would count as
/// two when the footer is erased.
fn footer_width() -> usize {
    let columns = tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { FOOTER_CHARS_MAX } else { columns.min(FOOTER_CHARS_MAX) }
}

/// "steps        ████░░░░░░░░  12 of 50".
fn budget_bar(budget: &BudgetSummary) -> String {
    let max = budget.max.max(1);
    let full = budget.used.min(max).saturating_mul(BAR_CHARS) / max;
    let cells =
        |from: u64, to: u64, cell: &str| cell.repeat(usize::try_from(to - from).unwrap_or(0));
    let bar = cells(0, full, "█") + &cells(full, BAR_CHARS, "░");
    let name = sanitize(&budget.key.to_string(), 14);
    format!("{name:<14} {bar}  {} of {}", budget.used, budget.max)
}

/// The lines for an event; `iteration` is the number of the current iteration.
fn event_lines(event: &RunEvent, iteration: u64) -> Vec<String> {
    match event {
        RunEvent::Started { session, model, resumed, workspace } => {
            let verb = if *resumed { "resumed" } else { "started" };
            let details = format!("({model}, in {})", sanitize(workspace, MESSAGE_CHARS_MAX));
            vec![format!("{} {}", bold(format!("session {session} {verb}")), dim(details))]
        }
        RunEvent::Iteration { number } if *number != iteration => {
            vec![bold(format!("iteration {number}"))]
        }
        RunEvent::AgentText { text } => vec![agent_line(&shorten(text))],
        RunEvent::ToolCall { tool, does, decision, why, status, exit_code, ms } => {
            let call = call_text(tool, does);
            let mut messages = guard_messages(why.as_deref().unwrap_or_default()).into_iter();
            let first = match status {
                Some(status) => {
                    agent_line(&format!("› {call}{}", result(*status, *exit_code, *ms)))
                }
                None => {
                    let decision = decision_label(decision);
                    let head = format!("{decision} {call}");
                    match messages.next() {
                        Some(message) => guard_line(&red("✗"), &head, &message),
                        None => format!("{} {head}", red("✗")),
                    }
                }
            };
            let others = messages.map(|message| guard_line(&yellow("●"), "", &message));
            std::iter::once(first).chain(others).collect()
        }
        RunEvent::Program { step } => {
            let lines = attempt_display::attempt_lines(step).into_iter();
            lines.map(|line| format!("  {line}")).collect()
        }
        RunEvent::Stopping { allowed: true, why } => {
            vec![format!("{} the agent may stop: {}", green("✓"), shorten(why))]
        }
        RunEvent::Stopping { allowed: false, why } => {
            let head = "the agent may not stop yet";
            let mut lines: Vec<String> = guard_messages(why)
                .iter()
                .map(|message| guard_line(&red("✗"), head, message))
                .collect();
            if lines.is_empty() {
                lines.push(format!("{} {head}", red("✗")));
            }
            lines
        }
        RunEvent::IterationEnded { failure: Some(failure), .. } => {
            vec![format!("{} no progress in this iteration: {failure}", yellow("●"))]
        }
        RunEvent::Waiting { waits: WaitReason::Verification {} }
        | RunEvent::IterationEnded { failure: None, .. }
        | RunEvent::Iteration { .. }
        | RunEvent::BudgetStatus { .. }
        | RunEvent::Asking { .. } => Vec::new(),
        RunEvent::Waiting { waits } => {
            let symbol = match waits {
                WaitReason::Person { .. } => red("●"),
                _ => yellow("●"),
            };
            vec![format!("{symbol} {}", shorten(&describe_wait(waits)))]
        }
        RunEvent::Resumed {} => vec![format!("{} continues", green("✓"))],
        RunEvent::EngineChanged { from, to, reason } => {
            vec![format!("{} {to} takes over from {from} ({reason})", yellow("●"))]
        }
        RunEvent::Advised { model, instruction } => {
            let advice = instruction.as_deref().unwrap_or("no answer");
            vec![format!("{} advisor {model}: {}", yellow("●"), shorten(advice))]
        }
        RunEvent::Restarted { pct } => {
            let fill = pct.map_or_else(String::new, |pct| format!(", it was {pct} % full"));
            vec![format!("{} conversation restarted with a briefing{fill}", yellow("●"))]
        }
        RunEvent::Notification { text } => {
            print_warning(sanitize(text, 2000));
            Vec::new()
        }
    }
}

/// A line of the agent.
fn agent_line(text: &str) -> String {
    format!("{} {text}", styled(AnsiColor::Cyan.on_default(), "│"))
}

/// A line of the guard: a symbol, the subject, the message, and what to do instead.
fn guard_line(symbol: &str, subject: &str, message: &GuardMessage) -> String {
    let separator = if subject.is_empty() { "" } else { ": " };
    let correction = message
        .correction
        .as_ref()
        .map_or_else(String::new, |text| dim(format!(" → {}", shorten(text))));
    format!("{symbol} {subject}{separator}{}{correction}", shorten(&message.text))
}

/// A call in a few words: the tool, and its command line or file.
fn call_text(tool: &str, does: &str) -> String {
    if does == "{}" { sanitize(tool, 60) } else { shorten(&format!("{tool} {does}")) }
}

/// How a call ended, if it failed or took long: " (exit code 101, 2 s)".
fn result(status: CallStatus, exit_code: Option<i64>, ms: u64) -> String {
    let failure = match exit_code {
        Some(code) if status == CallStatus::Ok && code != 0 => Some(format!("exit code {code}")),
        _ => (status != CallStatus::Ok).then(|| status.to_string()),
    };
    let failed = failure.is_some();
    let time = (ms >= 1000).then(|| format_duration(ms));
    let parts: Vec<String> = failure.into_iter().chain(time).collect();
    if parts.is_empty() {
        return String::new();
    }
    let text = format!("({})", parts.join(", "));
    format!(" {}", if failed { yellow(&text) } else { dim(text) })
}

/// What a decision means for a call that did not run.
fn decision_label(decision: &str) -> &str {
    match decision {
        "deny" => "denied",
        "ask" => "approval needed for",
        "pause" => "paused at",
        "stop" => "stopped at",
        other => other,
    }
}

/// The messages in a text that the guard wrote for the model. Of each message only the first line
/// and the first correction are returned, without the markup of feedback.
fn guard_messages(text: &str) -> Vec<GuardMessage> {
    let mut messages: Vec<GuardMessage> = Vec::new();
    let mut is_feedback = false;
    let mut is_start = true;
    for line in text.lines().map(str::trim) {
        if line.starts_with("<feedback ") {
            (is_feedback, is_start) = (true, true);
        } else if line == "</feedback>" {
            (is_feedback, is_start) = (false, true);
        } else if line.is_empty() {
            // Blank lines separate messages, but inside feedback they separate its parts.
            is_start |= !is_feedback;
        } else if let Some(correction) = line.strip_prefix("-> ") {
            if let Some(last) = messages.last_mut().filter(|last| last.correction.is_none()) {
                last.correction = Some(without_escapes(correction, is_feedback));
            }
            is_start |= !is_feedback;
        } else if is_start {
            let line = line.strip_prefix("jackline: ").unwrap_or(line);
            let text = without_escapes(line, is_feedback);
            messages.push(GuardMessage { text, correction: None });
            is_start = false;
        }
    }
    messages
}

/// A line of feedback without the escapes that its markup needs.
fn without_escapes(line: &str, is_feedback: bool) -> String {
    if !is_feedback {
        return line.to_owned();
    }
    let line = line.replace("&lt;", "<").replace("&gt;", ">");
    line.replace("&amp;", "&")
}

fn describe_wait(waits: &WaitReason) -> String {
    match waits {
        WaitReason::Person { why, how } => format!("waiting for a person: {why}; {how}"),
        WaitReason::Model { why, ms } => format!("waiting {}: {why}", format_duration(*ms)),
        WaitReason::Verification {} => "waiting for a verification command".to_owned(),
    }
}

fn shorten(text: &str) -> String {
    sanitize(text, MESSAGE_CHARS_MAX)
}

fn green(text: &str) -> String {
    styled(AnsiColor::Green.on_default(), text)
}

fn red(text: &str) -> String {
    styled(AnsiColor::Red.on_default(), text)
}

fn yellow(text: &str) -> String {
    styled(AnsiColor::Yellow.on_default(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of an event without styles.
    fn unstyled(event: &RunEvent) -> Vec<String> {
        let lines = event_lines(event, 0);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    fn called(why: Option<&str>, decision: &str, status: Option<CallStatus>) -> RunEvent {
        RunEvent::ToolCall {
            tool: "shell".to_owned(),
            does: "cargo test".to_owned(),
            decision: decision.to_owned(),
            why: why.map(ToOwned::to_owned),
            status,
            exit_code: status.map(|_| 101),
            ms: 2000,
        }
    }

    #[test]
    fn feedback_is_shown_without_its_markup_on_one_line() {
        let why = "<feedback provider='Loop'>\nThe same &lt;result&gt; 3 times.\n\n- repeat: 3 \
                   times\n\n-> try something else\n</feedback>";
        assert_eq!(
            unstyled(&called(Some(why), "allow", Some(CallStatus::Ok))),
            [
                "│ › shell cargo test (exit code 101, 2 s)",
                "● The same <result> 3 times. → try something else",
            ]
        );
    }

    #[test]
    fn a_denied_call_is_one_line_with_its_reason() {
        let why = "jackline: `a` was not read\n-> read `a`\nsecond reason\n-> second correction";
        assert_eq!(
            unstyled(&called(Some(why), "deny", None)),
            [
                "✗ denied shell cargo test: `a` was not read → read `a`",
                "● second reason → second correction",
            ]
        );
        assert_eq!(unstyled(&called(None, "deny", None)), ["✗ denied shell cargo test"]);
    }

    #[test]
    fn the_agent_and_the_guard_have_different_marks() {
        let text = unstyled(&RunEvent::AgentText { text: "I run\nthe tests.".to_owned() });
        assert_eq!(text, ["│ I run the tests."]);
        let why = "No tests were run.\n-> run `cargo test`".to_owned();
        let refused = unstyled(&RunEvent::Stopping { allowed: false, why });
        assert_eq!(
            refused,
            ["✗ the agent may not stop yet: No tests were run. → run `cargo test`"]
        );
    }

    #[test]
    fn an_incomplete_feedback_block_still_has_its_message() {
        let cut = guard_messages("<feedback provider='Deadline'>\nYou have 5 minu…");
        assert_eq!(cut.len(), 1);
        assert_eq!(cut[0].text, "You have 5 minu…");
        assert_eq!(guard_messages(""), []);
    }
}
