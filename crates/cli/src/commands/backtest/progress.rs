//! A progress bar on the terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::Ordering;

use jackline_host::clock::now;

use super::play::BacktestContext;

/// The width of the bar.
const BAR_CHARS: u64 = 30;

/// A progress line on standard error, which is overwritten when it changes.
pub(super) struct ProgressBar {
    shown: bool,
    total: u64,
    began_ms: u64,
    /// The line on the screen, so that only changes are written.
    last: String,
}

impl ProgressBar {
    /// The bar is shown only on a terminal, and not if JSON goes to the same terminal.
    pub(super) fn new(total: u64, as_json: bool, began_ms: u64) -> Self {
        let is_separate = !as_json || !std::io::stdout().is_terminal();
        let shown = is_separate && std::io::stderr().is_terminal();
        Self { shown, total, began_ms, last: String::new() }
    }

    pub(super) fn show(&mut self, shop: &BacktestContext<'_>) {
        if !self.shown {
            return;
        }
        let read = shop.intake.read.load(Ordering::Relaxed).min(self.total);
        let calls = shop.calls.load(Ordering::Relaxed);
        let took_ms = now().boot_ms.saturating_sub(self.began_ms);
        let line = progress_line(read, self.total, calls, took_ms);
        if line != self.last {
            let _ = write!(std::io::stderr(), "\r{line}\u{1b}[K");
            self.last = line;
        }
    }

    pub(super) fn clear(&mut self) {
        if !self.last.is_empty() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
            self.last.clear();
        }
    }
}

fn progress_line(read: u64, total: u64, calls: u64, took_ms: u64) -> String {
    let part = |of: u64| read.saturating_mul(of).checked_div(total).unwrap_or(of);
    let filled = usize::try_from(part(BAR_CHARS)).unwrap_or(0);
    let rest = usize::try_from(BAR_CHARS).unwrap_or(0).saturating_sub(filled);
    let speed = calls.saturating_mul(1000).checked_div(took_ms).unwrap_or(0);
    format!(
        "[{}{}] {:3} % of {} MB, {calls} calls, {speed} a second",
        "#".repeat(filled),
        ".".repeat(rest),
        part(100),
        total >> 20,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_the_progress() {
        assert_eq!(
            progress_line(1 << 20, 4 << 20, 500, 100),
            "[#######.......................]  25 % of 4 MB, 500 calls, 5000 a second"
        );
        assert_eq!(
            progress_line(0, 0, 0, 0),
            "[##############################] 100 % of 0 MB, 0 calls, 0 a second"
        );
    }
}
