//! Runs the binary on a pseudo-terminal, and renders the screen that a person would see.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// How long a test waits for output. A busy machine may be slow.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many chunks of output may arrive before an expected text. There are two frames per second.
const OUTPUT_CHUNKS_MAX: usize = 60;

/// A program on its own pseudo-terminal.
pub(crate) struct PseudoTerminal {
    child: Child,
    keyboard: File,
    /// Stays open, so that the terminal exists longer than the program.
    slave: OwnedFd,
    output: Receiver<Vec<u8>>,
    written: Vec<u8>,
    /// The column at which lines wrap. A program that moves the cursor itself needs no wrapping.
    wrap_columns: usize,
}

/// The screen of a terminal after some output.
pub(crate) struct ScreenContent {
    pub(crate) text: String,
    pub(crate) alternate: bool,
    pub(crate) cursor: bool,
    pub(crate) pastes_marked: bool,
}

impl PseudoTerminal {
    pub(crate) fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        let clone_of = |fd: &OwnedFd| fd.try_clone().unwrap();
        command.stdin(clone_of(&slave)).stdout(clone_of(&slave)).stderr(clone_of(&slave));
        let mut reader = File::from(clone_of(&master));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = reader.read(&mut bytes)
                && sender.send(bytes[..read].to_vec()).is_ok()
            {}
        });
        let keyboard = File::from(master);
        resize(&slave, columns, rows);
        let child = command.spawn().unwrap();
        Self { child, keyboard, slave, output, written: Vec::new(), wrap_columns: usize::MAX }
    }

    /// Starts a program on a terminal that wraps lines, for a program that prints line by line.
    pub(crate) fn start_wrapping(command: &mut Command, columns: u16, rows: u16) -> Self {
        let breaks_at = usize::from(columns);
        Self { wrap_columns: breaks_at, ..Self::start(command, columns, rows) }
    }

    /// Waits for the program to exit. Returns its exit status and the final screen.
    pub(crate) fn final_screen(self) -> (ExitStatus, String) {
        let breaks_at = self.wrap_columns;
        let (status, written) = self.wait();
        (status, render_screen(&written, breaks_at).text)
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        resize(&self.slave, columns, rows);
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for(&mut self, text: &str) -> ScreenContent {
        for _ in 0..OUTPUT_CHUNKS_MAX {
            let shown = render_screen(&self.written, self.wrap_columns);
            if shown.text.contains(text) {
                return shown;
            }
            match self.output.recv_timeout(OUTPUT_TIMEOUT) {
                Ok(bytes) => self.written.extend(bytes),
                Err(error) => panic!("`{text}` did not appear: {error}:\n{}", shown.text),
            }
        }
        panic!(
            "`{text}` did not appear:\n{}",
            render_screen(&self.written, self.wrap_columns).text
        );
    }

    /// Sends a signal to the program itself, not to a program that started it.
    pub(crate) fn signal(&self, signal: Signal) {
        let mut pid = self.child.id();
        while let Some(child) = child_of(pid) {
            pid = child;
        }
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the program to exit, and checks that it restored the terminal.
    pub(crate) fn wait(mut self) -> (ExitStatus, Vec<u8>) {
        let status = self.child.wait().unwrap();
        // When this text comes back, all earlier output was read.
        (&self.keyboard).write_all(b"end\r").unwrap();
        while !self.written.ends_with(b"end\r\n") {
            self.written.extend(self.output.recv_timeout(OUTPUT_TIMEOUT).unwrap());
        }
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG));
        let shown = render_screen(&self.written, self.wrap_columns);
        let restored = !shown.alternate && shown.cursor && !shown.pastes_marked;
        assert!(restored, "{}", shown.text);
        (status, self.written)
    }
}

/// Returns whether a program was ended by a signal. A shell reports the signal as an exit status.
pub(crate) fn is_ended_by(status: ExitStatus, signal: Signal) -> bool {
    let number = signal.as_raw();
    status.signal() == Some(number) || status.code() == Some(128 + number)
}

fn resize(terminal: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

fn child_of(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Renders the control sequences that the binary uses.
fn render_screen(bytes: &[u8], breaks_at: usize) -> ScreenContent {
    let mut grid = vec![vec![' '; 200]; 80];
    let (mut x, mut y) = (0usize, 0usize);
    let mut shown =
        ScreenContent { text: String::new(), alternate: false, cursor: true, pastes_marked: false };
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                if letters.next() != Some('[') {
                    continue;
                }
                let mut numbers = String::new();
                let end = letters.by_ref().find(|letter| {
                    let is_final = ('@'..='~').contains(letter);
                    if !is_final {
                        numbers.push(*letter);
                    }
                    is_final
                });
                let set = end == Some('h');
                match (numbers.as_str(), end) {
                    ("?1049", _) => shown.alternate = set,
                    ("?25", _) => shown.cursor = set,
                    ("?2004", _) => shown.pastes_marked = set,
                    ("2", Some('J')) => grid.iter_mut().for_each(|row| row.fill(' ')),
                    ("", Some('J')) => {
                        grid[y.min(79)][x.min(199)..].fill(' ');
                        grid.iter_mut().skip(y + 1).for_each(|row| row.fill(' '));
                    }
                    (lines, Some('A')) => y -= lines.parse::<usize>().unwrap().min(y),
                    (at, Some('H')) => {
                        let (row, column) = at.split_once(';').unwrap();
                        y = row.parse::<usize>().unwrap() - 1;
                        x = column.parse::<usize>().unwrap() - 1;
                    }
                    (_, Some('m') | None) => {}
                    (other, end) => panic!("unknown sequence {other:?} {end:?}"),
                }
            }
            '\r' => x = 0,
            '\n' => y += 1,
            letter => {
                if x == breaks_at {
                    (x, y) = (0, y + 1);
                }
                grid[y.min(79)][x.min(199)] = letter;
                x += 1;
            }
        }
    }
    let rows = grid.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n").trim_end().clone_into(&mut shown.text);
    shown
}
