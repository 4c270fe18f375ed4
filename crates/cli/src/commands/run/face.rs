//! What is shown of a run while it goes on: lines, and on a terminal below them what is
//! going on right now.

use std::io::{IsTerminal as _, Write as _};

use anstyle::AnsiColor;
use jackline_engine::Status;
use jackline_engine::summary::BudgetSummary;
use jackline_supervisor::{Told, Waits};
use rustix::termios::tcgetwinsize;

use crate::commands::attempt::shown;
use crate::terminal::{bold, dim, duration, plain, say, say_json, styled, warn};

/// How much of a message is shown.
const MESSAGE_CHARS_MAX: usize = 300;

/// How wide a line of the foot may be.
const FOOT_CHARS_MAX: usize = 78;

/// How wide the bar of a budget is.
const BAR_CHARS: u64 = 12;

/// Shows what is told.
pub(super) struct Face {
    as_json: bool,
    /// Whether there is a terminal on which lines can be taken back.
    live: bool,
    /// How many lines the foot has.
    foot_lines: usize,
    foot: Foot,
}

/// What is going on right now.
#[derive(Default)]
struct Foot {
    iteration: u64,
    now: String,
    steps: u64,
    budgets: Vec<BudgetSummary>,
    context_pct: Option<u64>,
}

impl Face {
    pub(super) fn new(as_json: bool) -> Self {
        let live = !as_json && std::io::stdout().is_terminal();
        Self { as_json, live, foot_lines: 0, foot: Foot::default() }
    }

    pub(super) fn tell(&mut self, told: &Told) {
        if self.as_json {
            if let Ok(line) = serde_json::to_string(told) {
                say_json(line);
            }
            return;
        }
        self.take_back();
        for line in lines(told, self.foot.iteration) {
            say(line);
        }
        self.foot.follow(told);
        self.draw();
    }

    /// Leaves only the lines.
    pub(super) fn end(&mut self) {
        self.take_back();
    }

    fn take_back(&mut self) {
        if self.foot_lines > 0 {
            let mut terminal = std::io::stdout().lock();
            // Up to where the foot begins, and nothing from there on; at once, because a warning
            // that comes next goes another way.
            let _ = write!(terminal, "\u{1b}[{}A\u{1b}[J", self.foot_lines);
            let _ = terminal.flush();
            self.foot_lines = 0;
        }
    }

    fn draw(&mut self) {
        if self.live {
            let lines = self.foot.lines(width());
            self.foot_lines = lines.len();
            lines.into_iter().for_each(say);
        }
    }
}

impl Foot {
    fn follow(&mut self, told: &Told) {
        match told {
            Told::Iteration { number } => self.iteration = *number,
            Told::Standing { steps, budgets, context_pct } => {
                (self.steps, self.context_pct) = (*steps, *context_pct);
                self.budgets.clone_from(budgets);
            }
            Told::Asking { model } => self.now = format!("asking {model}"),
            Told::Said { .. } | Told::Program { .. } | Told::GoesOn {} => {
                "working".clone_into(&mut self.now);
            }
            Told::Waiting { waits } => self.now = format!("waiting: {}", waiting(waits)),
            _ => {}
        }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let context =
            self.context_pct.map_or_else(String::new, |pct| format!(" · context {pct} %"));
        let head =
            format!("iteration {} · step {}{context} · {}", self.iteration, self.steps, self.now);
        let mut lines = vec![dim("─".repeat(width)), bold(plain(&head, width))];
        lines.extend(self.budgets.iter().take(4).map(|budget| dim(plain(&bar(budget), width))));
        lines
    }
}

/// How wide a line of the foot is: one that is broken by the terminal would be two to take back.
fn width() -> usize {
    let columns = tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { FOOT_CHARS_MAX } else { columns.min(FOOT_CHARS_MAX) }
}

/// "steps        ████░░░░░░░░  12 of 50".
fn bar(budget: &BudgetSummary) -> String {
    let max = budget.max.max(1);
    let full = budget.used.min(max).saturating_mul(BAR_CHARS) / max;
    let mark =
        |from: u64, to: u64, mark: &str| mark.repeat(usize::try_from(to - from).unwrap_or(0));
    let bar = mark(0, full, "█") + &mark(full, BAR_CHARS, "░");
    let name = plain(&budget.key.to_string(), 14);
    format!("{name:<14} {bar}  {} of {}", budget.used, budget.max)
}

/// What is said about it; `iteration` is the one at hand.
fn lines(told: &Told, iteration: u64) -> Vec<String> {
    let short = |text: &str| plain(text, MESSAGE_CHARS_MAX);
    match told {
        Told::Started { session, model, resumed, workspace } => {
            let verb = if *resumed { "goes on" } else { "begins" };
            vec![
                bold(format!("session {session} {verb}")),
                dim(format!("  {model}, in {}", plain(workspace, MESSAGE_CHARS_MAX))),
            ]
        }
        Told::Iteration { number } if *number != iteration => {
            vec![bold(format!("iteration {number}"))]
        }
        Told::Said { text } => vec![format!("  {}", dim(format!("“{}”", short(text))))],
        Told::Called { tool, does, decision, why, status, exit_code, ms } => {
            let mut lines = vec![match status {
                Some(status) => {
                    let how = match exit_code {
                        Some(code) if *status == Status::Ok && *code != 0 => {
                            Some(format!("exit code {code}"))
                        }
                        _ => (*status != Status::Ok).then(|| status.to_string()),
                    };
                    let mark = if how.is_none() { green("✓") } else { red("✗") };
                    let took = (*ms >= 1000).then(|| duration(*ms));
                    let more: Vec<String> = how.into_iter().chain(took).collect();
                    let more = if more.is_empty() {
                        String::new()
                    } else {
                        format!(" ({})", more.join(", "))
                    };
                    format!("  {mark} {tool} {}{more}", short(does))
                }
                None => format!("  {} {decision}: {tool} {}", red("✗"), short(does)),
            }];
            lines.extend(
                why.iter()
                    .flat_map(|why| why.lines())
                    .map(|line| dim(format!("      {}", short(line.trim())))),
            );
            lines
        }
        Told::Program { step } => {
            let steps = shown::lines(step).into_iter();
            steps.map(|line| format!("  {line}")).collect()
        }
        Told::Stopping { allowed: true, why } => {
            vec![format!("  {} wants to stop: {}", green("✓"), short(why))]
        }
        Told::Stopping { allowed: false, why } => {
            let mut lines = vec![format!("  {} wants to stop, and may not yet", red("✗"))];
            lines.extend(why.lines().map(|line| dim(format!("      {}", short(line.trim())))));
            lines
        }
        Told::IterationEnded { failure: Some(failure), .. } => {
            vec![dim(format!("  this iteration brought nothing: {failure}"))]
        }
        Told::Waiting { waits: Waits::Verification {} }
        | Told::IterationEnded { failure: None, .. }
        | Told::Iteration { .. }
        | Told::Standing { .. }
        | Told::Asking { .. } => Vec::new(),
        Told::Waiting { waits } => {
            vec![format!("  {} {}", yellow("…"), short(&waiting(waits)))]
        }
        Told::GoesOn {} => vec![format!("  {} goes on", green("✓"))],
        Told::Changed { from, to, reason } => {
            vec![format!("  {} {to} takes over from {from} ({reason})", yellow("↻"))]
        }
        Told::Advised { model, instruction } => {
            let said = instruction.as_deref().unwrap_or("no answer");
            vec![format!("  {} advisor {model}: {}", yellow("?"), short(said))]
        }
        Told::Restarted { pct } => {
            let full = pct.map_or_else(String::new, |pct| format!(" at {pct} %"));
            vec![format!("  {} begins anew with a briefing{full}", yellow("↻"))]
        }
        Told::Aside { text } => {
            warn(plain(text, 2000));
            Vec::new()
        }
    }
}

fn waiting(waits: &Waits) -> String {
    match waits {
        Waits::Person { why, how } => format!("waits for a person: {why}; {how}"),
        Waits::Model { why, ms } => format!("waits {}: {why}", duration(*ms)),
        Waits::Verification {} => "a check by command is at work".to_owned(),
    }
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
