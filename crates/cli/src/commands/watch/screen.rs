//! The terminal in raw mode. Its earlier state is restored in every case, also after a panic.
//!
//! The usual backend would add fifteen crates. A frame needs only a few escape sequences, and
//! `rustix` is already a dependency.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Switches to the alternate screen, hides the cursor, and marks pasted text.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J";

/// Undoes `ENTER_SEQUENCE` and resets the style.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// The default size for a terminal that does not report its size.
const DEFAULT_SIZE: Size = Size { width: 80, height: 24 };

/// A terminal in raw mode, and its earlier settings.
pub(super) struct TerminalScreen {
    input: File,
    output: File,
    before: Mutex<Option<Termios>>,
}

/// Input from the keyboard.
pub(super) enum TerminalInput {
    Bytes(Vec<u8>),
    Nothing,
    /// The terminal was closed.
    Gone,
}

impl TerminalScreen {
    /// Puts a terminal in raw mode. Dropping the result restores it.
    pub(super) fn take(input: impl AsFd, output: impl AsFd) -> io::Result<Arc<Self>> {
        let duplicate = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map(File::from);
        let screen = Self {
            input: duplicate(&input)?,
            output: duplicate(&output)?,
            before: Mutex::new(None),
        };
        screen.enter()?;
        Ok(Arc::new(screen))
    }

    /// Enters raw mode: keys arrive one by one and without echo.
    pub(super) fn enter(&self) -> io::Result<()> {
        let current = tcgetattr(&self.input)?;
        let mut raw = current.clone();
        raw.make_raw();
        tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        // After a suspension this is called again; the first settings must be kept.
        self.before.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(current);
        (&self.output).write_all(ENTER_SEQUENCE)
    }

    /// Restores the terminal. A second call does nothing.
    pub(super) fn leave(&self) {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before {
            let _ = (&self.output).write_all(LEAVE_SEQUENCE);
            let _ = tcsetattr(&self.input, OptionalActions::Now, &before);
        }
    }

    /// Restores the terminal before a panic message is printed, so that it can be read.
    pub(super) fn leave_on_panic(self: &Arc<Self>) {
        let screen = Arc::clone(self);
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            screen.leave();
            previous_hook(panic);
        }));
    }

    /// Waits for keys, with a timeout. A signal ends the wait.
    pub(super) fn wait(&self, ms: u32) -> TerminalInput {
        let timeout =
            Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 };
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return TerminalInput::Nothing,
            Ok(_) => {}
            Err(_) => return TerminalInput::Gone,
        }
        let mut bytes = vec![0; 256];
        match rustix::io::read(&self.input, bytes.as_mut_slice()) {
            Ok(0) => TerminalInput::Gone,
            Ok(read) => {
                bytes.truncate(read);
                TerminalInput::Bytes(bytes)
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => TerminalInput::Nothing,
            Err(_) => TerminalInput::Gone,
        }
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The size of a terminal.
pub(super) fn size_of(terminal: impl AsFd) -> Size {
    let size = tcgetwinsize(terminal).map(|size| Size::new(size.ws_col, size.ws_row));
    size.ok().filter(|size| size.width > 0 && size.height > 0).unwrap_or(DEFAULT_SIZE)
}

/// Writes frames as escape sequences, each frame in one write.
pub(super) struct AnsiBackend {
    screen: Arc<TerminalScreen>,
    bytes: Vec<u8>,
}

impl AnsiBackend {
    pub(super) fn new(screen: Arc<TerminalScreen>) -> Self {
        Self { screen, bytes: Vec::new() }
    }
}

impl Backend for AnsiBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, cells: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut style = None;
        for (x, y, cell) in cells {
            if next != Some((x, y)) {
                self.set_cursor_position(Position { x, y })?;
            }
            // After a wide character the cursor is elsewhere, so the next cell sets it again.
            next = Some((x + 1, y));
            if style != Some((cell.fg, cell.modifier)) {
                style = Some((cell.fg, cell.modifier));
                self.bytes.extend_from_slice(sequence(cell.fg, cell.modifier).as_bytes());
            }
            self.bytes.extend_from_slice(cell.symbol().as_bytes());
        }
        if style.is_some() {
            self.bytes.extend_from_slice(b"\x1b[0m");
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.bytes.extend_from_slice(b"\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.bytes.extend_from_slice(b"\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // Frames fill the screen, so the position is never used.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.bytes, "\x1b[{};{}H", u32::from(y) + 1, u32::from(x) + 1)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        let sequence: &[u8] = match region {
            ClearType::All => b"\x1b[2J",
            ClearType::AfterCursor => b"\x1b[J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[K",
        };
        self.bytes.extend_from_slice(sequence);
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(size_of(&self.screen.output))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.screen.output).write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// The escape sequence for a style. Styles that the palette does not use are ignored.
fn sequence(colour: Color, modifier: Modifier) -> String {
    let colour = match colour {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        _ => "",
    };
    let marks = [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")];
    let marks = marks.iter().filter(|(mark, _)| modifier.contains(*mark)).map(|(_, code)| *code);
    format!("\x1b[0{colour}{}m", marks.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    use rustix::termios::LocalModes;

    use super::*;

    fn pseudo_terminal() -> (OwnedFd, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        (master, slave)
    }

    fn echoes(terminal: &OwnedFd) -> bool {
        tcgetattr(terminal).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    #[test]
    fn a_terminal_is_restored_after_a_panic() {
        let (master, slave) = pseudo_terminal();
        assert!(echoes(&slave));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _screen = TerminalScreen::take(&slave, &slave).unwrap();
            assert!(!echoes(&slave));
            panic!("something is broken");
        }));
        assert!(panicked.is_err() && echoes(&slave));
        let mut output = Vec::new();
        while !output.ends_with(LEAVE_SEQUENCE) {
            let mut bytes = [0; 256];
            let read = rustix::io::read(&master, &mut bytes).unwrap();
            output.extend_from_slice(&bytes[..read]);
        }
        assert!(output.starts_with(ENTER_SEQUENCE));
    }

    #[test]
    fn a_terminal_is_restored_to_its_first_settings() {
        let (_master, slave) = pseudo_terminal();
        let screen = TerminalScreen::take(&slave, &slave).unwrap();
        screen.enter().unwrap();
        screen.leave();
        assert!(echoes(&slave), "entered twice, left once");
        screen.leave();
        assert!(echoes(&slave));
    }

    #[test]
    fn only_the_styles_of_the_palette_are_written() {
        assert_eq!(sequence(Color::Reset, Modifier::empty()), "\x1b[0m");
        assert_eq!(sequence(Color::Red, Modifier::BOLD | Modifier::REVERSED), "\x1b[0;31;1;7m");
        assert_eq!(sequence(Color::Magenta, Modifier::ITALIC), "\x1b[0m");
    }
}
