//! Signals that a frame has to know of.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::signal::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

/// What signals have said so far.
pub(super) struct Signals {
    end: Arc<AtomicUsize>,
    woken: Arc<AtomicBool>,
}

impl Signals {
    /// Listens to those that end a program, change a terminal, or wake it up.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self { end: Arc::default(), woken: Arc::default() };
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&signals.end), number)?;
        }
        flag::register(SIGCONT, Arc::clone(&signals.woken))?;
        // The size is asked for with each frame; this only ends a wait.
        flag::register(SIGWINCH, Arc::default())?;
        Ok(signals)
    }

    /// The one by which this is to end.
    pub(super) fn end(&self) -> Option<i32> {
        let number = self.end.load(Ordering::Relaxed);
        i32::try_from(number).ok().filter(|number| *number != 0)
    }

    /// Whether it was stopped and goes on, since this was asked last.
    pub(super) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::Relaxed)
    }
}

/// Ends as if nobody had listened, so that whoever waits sees by what.
pub(super) fn end_by(signal: i32) {
    let _ = emulate_default_handler(signal);
}

/// Stops until somebody has this go on.
pub(super) fn suspend() {
    let _ = emulate_default_handler(SIGTSTP);
}
