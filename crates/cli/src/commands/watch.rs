//! `jackline watch`: shows running sessions, with keys to control them.
//!
//! Every half second it checks whether a journal has grown. Reading takes no lock, so an agent
//! never
//! waits for it. A key sends the same control as the command of that name.

mod app;
mod detail;
mod frame;
mod key_actions;
mod keys;
mod palette;
mod screen;
mod session_poller;
mod signals;
mod status_rows;
#[cfg(test)]
mod test_sessions;
#[cfg(test)]
mod tests;
mod text;
mod watched_session;

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;

use anstream::ColorChoice;
use jackline_host::check_person;
use jackline_host::clock::now;
use jackline_host::off_switch::current_off_period;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;

use self::app::{KeyAction, WatchApp, WatchView};
use self::frame::{as_print, draw};
use self::key_actions::perform_action;
use self::keys::{KeyDecoder, PressedKey};
use self::palette::WatchPalette;
use self::screen::{AnsiBackend, TerminalInput, TerminalScreen, size_of};
use self::session_poller::SessionPoller;
use self::signals::{WatchSignals, end_by_signal, suspend};
use self::text::clean;
use super::person::describe_off;
use crate::args::WatchArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, open_store, print_json_line};

/// How often the sessions are read again.
const REFRESH_MS: u32 = 500;

/// How long to wait for the rest of an escape sequence.
const ESCAPE_MS: u32 = 30;

pub(crate) fn run(args: &WatchArgs) -> ExitKind {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !args.once && !is_terminal {
        return fail(
            ExitKind::Usage,
            "`jackline watch` needs a terminal; use `jackline watch --once` to print one frame, or \
             `jackline status --json` in programs",
        );
    }
    let store = match open_store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let here = current_directory();
    let here = here.canonicalize().unwrap_or(here);
    let location = if args.all { "all workspaces".into() } else { clean(&here.to_string_lossy()) };
    let look = SessionPoller::new(store, (!args.all).then_some(here));
    let colours = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let mut app = WatchApp::new(WatchPalette::new(colours), location, now().wall);
    app.for_person = check_person().is_ok();
    let mut watch = WatchLoop { app, poller: look, by: args.by.clone(), due_ms: 0 };
    if args.once {
        return watch.print_once();
    }
    match watch.run_interactive() {
        Ok(None) => ExitKind::Success,
        Ok(Some(signal)) => {
            end_by_signal(signal);
            ExitKind::Success
        }
        Err(error) => fail(ExitKind::Broken, format!("can't draw on this terminal: {error}")),
    }
}

struct WatchLoop {
    app: WatchApp,
    poller: SessionPoller,
    by: Option<String>,
    /// When the sessions are read again, in milliseconds since boot.
    due_ms: u64,
}

impl WatchLoop {
    fn print_once(&mut self) -> ExitKind {
        self.app.view = WatchView::Printed;
        self.refresh();
        let size = size_of(io::stdout());
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.width, size.height));
        draw(&self.app, &mut buffer);
        print_json_line(as_print(&buffer));
        ExitKind::Success
    }

    /// Draws frames and handles keys until the user quits or a signal ends it.
    fn run_interactive(&mut self) -> io::Result<Option<i32>> {
        let signals = WatchSignals::listen()?;
        let screen = TerminalScreen::take(io::stdin(), io::stdout())?;
        screen.leave_on_panic();
        let mut terminal = Terminal::new(AnsiBackend::new(Arc::clone(&screen)))?;
        let mut decoder = KeyDecoder::default();
        let signal = loop {
            if let Some(signal) = signals.end() {
                break Some(signal);
            }
            if signals.take_continued() {
                screen.enter()?;
                terminal.clear()?;
            }
            if now().boot_ms >= self.due_ms {
                self.refresh();
            }
            terminal.draw(|frame| draw(&self.app, frame.buffer_mut()))?;
            let keys = match screen.wait(if decoder.is_waiting() { ESCAPE_MS } else { REFRESH_MS })
            {
                TerminalInput::Gone => break None,
                TerminalInput::Nothing => decoder.end_of_input().into_iter().collect(),
                TerminalInput::Bytes(bytes) => decoder.feed(&bytes),
            };
            if self.press(&keys, &screen) {
                break None;
            }
        };
        screen.leave();
        Ok(signal)
    }

    /// Performs the actions of the pressed keys. Returns whether to quit.
    fn press(&mut self, keys: &[PressedKey], screen: &TerminalScreen) -> bool {
        for key in keys {
            match self.app.press(*key, now().boot_ms) {
                None => {}
                Some(KeyAction::Quit) => return true,
                Some(KeyAction::Suspend) => {
                    screen.leave();
                    // The signal SIGCONT then takes the terminal again.
                    suspend();
                }
                Some(action) => {
                    let outcome = perform_action(self.poller.store(), &action, self.by.as_deref());
                    self.app.show_outcome(outcome);
                    // The remaining keys were pressed for the frame before, so they are dropped.
                    self.refresh();
                    return false;
                }
            }
            self.load_recent_records();
        }
        false
    }

    fn refresh(&mut self) {
        let now = now();
        self.app.now = now.wall;
        self.due_ms = now.boot_ms + u64::from(REFRESH_MS);
        match self.poller.refresh() {
            Ok(sessions) => self.app.update_sessions(sessions, now.boot_ms),
            Err(error) => self.app.show_outcome(Err(format!("{error}; {}", error.remedy()))),
        }
        self.load_recent_records();
    }

    /// Loads the recent records of the chosen session.
    fn load_recent_records(&mut self) {
        let Some(session) = self.app.chosen() else { return };
        let (name, status) = (session.name.clone(), session.status.as_ref().ok());
        let workspace = status.and_then(|status| status.workspace.clone());
        self.app.off =
            current_off_period(workspace.as_deref().map(Path::new)).as_ref().map(describe_off);
        self.app.recent = self.poller.recent(&name).map(<[_]>::to_vec).unwrap_or_default();
    }
}
