//! How far it is, on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::Ordering;

use jackline_host::clock::now;

use super::play::Shop;

/// How wide the bar is.
const WIDTH: u64 = 30;

/// A line on standard error that is written over as it changes.
pub(super) struct Progress {
    shown: bool,
    total: u64,
    began_ms: u64,
    /// What is there, so that it is only written when it changes.
    last: String,
}

impl Progress {
    /// Shown where somebody looks, and the lines for programs don't go to the
    /// same place.
    pub(super) fn new(total: u64, as_json: bool, began_ms: u64) -> Self {
        let apart = !as_json || !std::io::stdout().is_terminal();
        let shown = apart && std::io::stderr().is_terminal();
        Self { shown, total, began_ms, last: String::new() }
    }

    pub(super) fn show(&mut self, shop: &Shop<'_>) {
        if !self.shown {
            return;
        }
        let read = shop.intake.read.load(Ordering::Relaxed).min(self.total);
        let calls = shop.calls.load(Ordering::Relaxed);
        let took_ms = now().boot_ms.saturating_sub(self.began_ms);
        let line = line(read, self.total, calls, took_ms);
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

fn line(read: u64, total: u64, calls: u64, took_ms: u64) -> String {
    let part = |of: u64| read.saturating_mul(of).checked_div(total).unwrap_or(of);
    let filled = usize::try_from(part(WIDTH)).unwrap_or(0);
    let rest = usize::try_from(WIDTH).unwrap_or(0).saturating_sub(filled);
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
    fn the_bar_fills_as_it_goes() {
        assert_eq!(
            line(1 << 20, 4 << 20, 500, 100),
            "[#######.......................]  25 % of 4 MB, 500 calls, 5000 a second"
        );
        assert_eq!(
            line(0, 0, 0, 0),
            "[##############################] 100 % of 0 MB, 0 calls, 0 a second"
        );
    }
}
