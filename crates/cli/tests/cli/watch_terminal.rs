//! The binary on a pseudo-terminal, and what a person would see on it.

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

/// How long anything may take; machines are slow when they are busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much may be written before a text appears; there are two frames a second.
const PIECES_MAX: usize = 60;

/// A program on a terminal of its own.
pub(crate) struct OnTerminal {
    child: Child,
    keyboard: File,
    /// Kept open, so that the terminal outlives the program.
    slave: OwnedFd,
    output: Receiver<Vec<u8>>,
    written: Vec<u8>,
    /// Where lines are broken; whoever sets the cursor itself needs none of that.
    breaks_at: usize,
}

/// What a terminal shows after some bytes.
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) alternate: bool,
    pub(crate) cursor: bool,
    pub(crate) pastes_marked: bool,
}

impl OnTerminal {
    pub(crate) fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        let own = |fd: &OwnedFd| fd.try_clone().unwrap();
        command.stdin(own(&slave)).stdout(own(&slave)).stderr(own(&slave));
        let mut reader = File::from(own(&master));
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
        Self { child, keyboard, slave, output, written: Vec::new(), breaks_at: usize::MAX }
    }

    /// The same on a terminal that breaks lines, for a program that writes one after the other.
    pub(crate) fn by_lines(command: &mut Command, columns: u16, rows: u16) -> Self {
        let breaks_at = usize::from(columns);
        Self { breaks_at, ..Self::start(command, columns, rows) }
    }

    /// What is on the screen once everything was written, and how the program ended.
    pub(crate) fn last(self) -> (ExitStatus, String) {
        let breaks_at = self.breaks_at;
        let (status, written) = self.end();
        (status, shown(&written, breaks_at).text)
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        resize(&self.slave, columns, rows);
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for(&mut self, text: &str) -> Shown {
        for _ in 0..PIECES_MAX {
            let shown = shown(&self.written, self.breaks_at);
            if shown.text.contains(text) {
                return shown;
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.written.extend(bytes),
                Err(error) => panic!("`{text}` does not appear, {error}:\n{}", shown.text),
            }
        }
        panic!("`{text}` does not appear:\n{}", shown(&self.written, self.breaks_at).text);
    }

    /// Sends a signal to the program itself, whatever stands around it.
    pub(crate) fn signal(&self, signal: Signal) {
        let mut pid = self.child.id();
        while let Some(child) = child_of(pid) {
            pid = child;
        }
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the end, and checks that the terminal is as it was.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<u8>) {
        let status = self.child.wait().unwrap();
        // Everything that was written is read once this comes back.
        (&self.keyboard).write_all(b"end\r").unwrap();
        while !self.written.ends_with(b"end\r\n") {
            self.written.extend(self.output.recv_timeout(PATIENCE).unwrap());
        }
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG));
        let shown = shown(&self.written, self.breaks_at);
        let restored = !shown.alternate && shown.cursor && !shown.pastes_marked;
        assert!(restored, "{}", shown.text);
        (status, self.written)
    }
}

/// Whether a program ended by a signal, also where a shell or another program
/// around it passes that on as a number.
pub(crate) fn ended_by(status: ExitStatus, signal: Signal) -> bool {
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

/// A terminal that knows what the binary uses.
fn shown(bytes: &[u8], breaks_at: usize) -> Shown {
    let mut grid = vec![vec![' '; 200]; 80];
    let (mut x, mut y) = (0usize, 0usize);
    let mut shown =
        Shown { text: String::new(), alternate: false, cursor: true, pastes_marked: false };
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
                    let ends = ('@'..='~').contains(letter);
                    if !ends {
                        numbers.push(*letter);
                    }
                    ends
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
