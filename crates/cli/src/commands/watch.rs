//! `jackline watch`: the sessions as they go on, and keys to steer them.
//!
//! Every half second it looks whether a journal has grown. It takes no lock to
//! look, so nothing an agent does waits for it; what a person presses is written
//! down by the same door as the commands of that name.

mod act;
mod app;
mod detail;
mod frame;
mod keys;
mod look;
mod palette;
mod parts;
#[cfg(test)]
mod played;
mod screen;
mod seen;
mod signals;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;

use anstream::ColorChoice;
use jackline_host::agent_above;
use jackline_host::clock::now;
use jackline_host::off::off_now;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;

use self::act::act;
use self::app::{App, View, Wish};
use self::frame::{as_print, draw};
use self::keys::{Decoder, Key};
use self::look::Look;
use self::palette::Palette;
use self::screen::{Ansi, Input, Screen, size_of};
use self::signals::{Signals, end_by, suspend};
use self::text::clean;
use super::person::off_in_words;
use crate::args::WatchArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, say_json, store};

/// How often it is looked again.
const REFRESH_MS: u32 = 500;

/// How long an escape may be the beginning of something longer.
const ESCAPE_MS: u32 = 30;

pub(crate) fn run(args: &WatchArgs) -> Exit {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !args.once && !is_terminal {
        return fail(
            Exit::Usage,
            "`jackline watch` needs a terminal; `jackline watch --once` prints one frame, and \
             `jackline status --json` is for programs",
        );
    }
    let store = match store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let here = here();
    let here = here.canonicalize().unwrap_or(here);
    let place = if args.all { "all workspaces".into() } else { clean(&here.to_string_lossy()) };
    let look = Look::new(store, (!args.all).then_some(here));
    let colours = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let mut app = App::new(Palette::new(colours), place, now().wall);
    app.for_person = agent_above().is_none();
    let mut watch = Watch { app, look, by: args.by.clone(), due_ms: 0 };
    if args.once {
        return watch.once();
    }
    match watch.go() {
        Ok(None) => Exit::Fine,
        Ok(Some(signal)) => {
            end_by(signal);
            Exit::Fine
        }
        Err(error) => fail(Exit::Broken, format!("this terminal can't be drawn on: {error}")),
    }
}

struct Watch {
    app: App,
    look: Look,
    by: Option<String>,
    /// When it is looked again.
    due_ms: u64,
}

impl Watch {
    fn once(&mut self) -> Exit {
        self.app.view = View::Printed;
        self.refresh();
        let size = size_of(io::stdout());
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.width, size.height));
        draw(&self.app, &mut buffer);
        say_json(as_print(&buffer));
        Exit::Fine
    }

    /// Draws and listens until a person has enough, or a signal says so.
    fn go(&mut self) -> io::Result<Option<i32>> {
        let signals = Signals::listen()?;
        let screen = Screen::take(io::stdin(), io::stdout())?;
        screen.leave_on_panic();
        let mut terminal = Terminal::new(Ansi::new(Arc::clone(&screen)))?;
        let mut decoder = Decoder::default();
        let signal = loop {
            if let Some(signal) = signals.end() {
                break Some(signal);
            }
            if signals.take_woken() {
                screen.enter()?;
                terminal.clear()?;
            }
            if now().boot_ms >= self.due_ms {
                self.refresh();
            }
            terminal.draw(|frame| draw(&self.app, frame.buffer_mut()))?;
            let keys = match screen.wait(if decoder.is_waiting() { ESCAPE_MS } else { REFRESH_MS })
            {
                Input::Gone => break None,
                Input::Nothing => decoder.settle().into_iter().collect(),
                Input::Bytes(bytes) => decoder.feed(&bytes),
            };
            if self.press(&keys, &screen) {
                break None;
            }
        };
        screen.leave();
        Ok(signal)
    }

    /// Does what keys wish; says whether that was to quit.
    fn press(&mut self, keys: &[Key], screen: &Screen) -> bool {
        for key in keys {
            match self.app.press(*key, now().boot_ms) {
                None => {}
                Some(Wish::Quit) => return true,
                Some(Wish::Suspend) => {
                    screen.leave();
                    // Who goes on gets a signal, and with it the terminal again.
                    suspend();
                }
                Some(wish) => {
                    let outcome = act(self.look.store(), &wish, self.by.as_deref());
                    self.app.tell(outcome);
                    // What was pressed for the frame before is not for this one.
                    self.refresh();
                    return false;
                }
            }
            self.take_lately();
        }
        false
    }

    fn refresh(&mut self) {
        let now = now();
        self.app.now = now.wall;
        self.due_ms = now.boot_ms + u64::from(REFRESH_MS);
        match self.look.refresh() {
            Ok(sessions) => self.app.take(sessions, now.boot_ms),
            Err(error) => self.app.tell(Err(format!("{error}; {}", error.remedy()))),
        }
        self.take_lately();
    }

    /// What belongs to the chosen session alone.
    fn take_lately(&mut self) {
        let Some(seen) = self.app.chosen() else { return };
        let (name, standing) = (seen.name.clone(), seen.standing.as_ref().ok());
        let workspace = standing.and_then(|standing| standing.workspace.clone());
        self.app.off = off_now(workspace.as_deref().map(Path::new)).as_ref().map(off_in_words);
        self.app.lately = self.look.lately(&name).map(<[_]>::to_vec).unwrap_or_default();
    }
}
