//! The signals that the display handles.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::signal::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

/// The signals that have arrived.
pub(super) struct WatchSignals {
    end: Arc<AtomicUsize>,
    continued: Arc<AtomicBool>,
}

impl WatchSignals {
    /// Registers the signals that end the program, resize the terminal, or continue the program.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self { end: Arc::default(), continued: Arc::default() };
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&signals.end), number)?;
        }
        flag::register(SIGCONT, Arc::clone(&signals.continued))?;
        // Each frame reads the size; the handler only ends a wait.
        flag::register(SIGWINCH, Arc::default())?;
        Ok(signals)
    }

    /// The signal that asks the program to end, if any.
    pub(super) fn end(&self) -> Option<i32> {
        let number = self.end.load(Ordering::Relaxed);
        i32::try_from(number).ok().filter(|number| *number != 0)
    }

    /// Whether the program was suspended and continued since the last call.
    pub(super) fn take_continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }
}

/// Ends the program with the default action of the signal, so that the parent process sees it.
pub(super) fn end_by_signal(signal: i32) {
    let _ = emulate_default_handler(signal);
}

/// Suspends the program until it gets SIGCONT.
pub(super) fn suspend() {
    let _ = emulate_default_handler(SIGTSTP);
}
