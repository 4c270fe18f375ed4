//! Output for people: colours on a terminal, tables, relative times.

use std::fmt::Display;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anstyle::{AnsiColor, Style};
use jackline_engine::{Decision, Timestamp};
use jackline_host::clock::{boot_number, now};
use jackline_host::{FileStateHome, HostAccess, StateHome, state_home};
use jackline_journal::{FileStore, JournalView, SessionEntry, StoreError};
use jackline_runtime::{Definitions, Sessions};

use crate::exit::ExitKind;

/// Why a part of the output is lost, if it is.
static LOST_OUTPUT: OnceLock<String> = OnceLock::new();

/// Prints a line.
pub(crate) fn print_line(text: impl Display) {
    note_output(writeln!(anstream::stdout().lock(), "{text}"));
}

/// Prints a line for programs, without styles.
pub(crate) fn print_json_line(text: impl Display) {
    note_output(writeln!(std::io::stdout().lock(), "{text}"));
}

/// Prints a text as it is.
pub(crate) fn print_raw(text: &str) {
    note_output(std::io::stdout().lock().write_all(text.as_bytes()));
}

/// Notes whether output could be written, for [`finish_output`]. A reader that closes the pipe
/// early is not a failure.
pub(crate) fn note_output(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST_OUTPUT.set(error.to_string());
    }
}

/// Writes the rest of the output. Returns the exit code of the command: a command whose output is
/// lost has not succeeded.
pub(crate) fn finish_output(exit: ExitKind) -> ExitKind {
    note_output(io::stdout().lock().flush());
    match LOST_OUTPUT.get() {
        Some(error) => fail(ExitKind::Broken, format!("can't write to standard output: {error}")),
        None => exit,
    }
}

/// Prints an error.
pub(crate) fn print_error(text: impl Display) {
    let red = AnsiColor::Red.on_default().bold();
    let _ = writeln!(anstream::stderr().lock(), "{red}error:{red:#} {text}");
}

/// Prints a warning: something to know although the command did not fail.
pub(crate) fn print_warning(text: impl Display) {
    let yellow = AnsiColor::Yellow.on_default().bold();
    let _ = writeln!(anstream::stderr().lock(), "{yellow}warning:{yellow:#} {text}");
}

/// Prints a remark on standard error, apart from the requested output.
pub(crate) fn print_note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints an error and returns the exit code.
pub(crate) fn fail(exit: ExitKind, text: impl Display) -> ExitKind {
    print_error(text);
    exit
}

/// Asks a yes-or-no question on the terminal. No answer means no.
pub(crate) fn confirm(question: &str) -> bool {
    let mut output = io::stdout().lock();
    let _ = write!(output, "{question} [y/N] ");
    let _ = output.flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Opens the session store of this machine.
pub(crate) fn open_store() -> Result<FileStore, ExitKind> {
    let home = state_home().map_err(|error| fail(ExitKind::Usage, error))?;
    Ok(FileStore::new(home, boot_number()))
}

/// Opens the journal of a session on this machine.
pub(crate) fn open_journal(entry: &SessionEntry) -> Result<JournalView, StoreError> {
    let file = entry.file().ok_or(StoreError::Empty)?;
    JournalView::open(&file)
}

/// The documents in the state home of this machine.
pub(crate) fn state_documents(store: &FileStore) -> Arc<dyn StateHome> {
    Arc::new(FileStateHome::new(store.home()))
}

/// Definitions of this machine: from the named file, else those of the workspace.
pub(crate) fn machine_definitions(file: Option<PathBuf>, store: &FileStore) -> Definitions {
    Definitions::new(file, HostAccess::of_machine(Some(store.home())))
}

/// Opens the store and the sessions in it.
pub(crate) fn load_sessions() -> Result<(FileStore, Sessions<FileStore>), ExitKind> {
    let store = open_store()?;
    Ok((store.clone(), Sessions::new(store)))
}

/// The directory that the command was started in.
pub(crate) fn current_directory() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// The style of a decision. Normal decisions are grey.
pub(crate) fn decision_style(decision: Decision) -> Style {
    match decision {
        Decision::Allow => Style::new().dimmed(),
        Decision::Rewrite | Decision::Ask | Decision::Pause => AnsiColor::Yellow.on_default(),
        Decision::Deny => AnsiColor::Red.on_default(),
        Decision::Stop => AnsiColor::Red.on_default().bold(),
    }
}

/// Text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Text in grey, for normal and secondary information.
pub(crate) fn dim(text: impl Display) -> String {
    styled(Style::new().dimmed(), text)
}

/// Text in bold.
pub(crate) fn bold(text: impl Display) -> String {
    styled(Style::new().bold(), text)
}

/// An added line of a diff.
pub(crate) fn paint_added(text: impl Display) -> String {
    styled(AnsiColor::Green.on_default(), text)
}

/// A removed line of a diff.
pub(crate) fn paint_removed(text: impl Display) -> String {
    styled(AnsiColor::Red.on_default(), text)
}

/// Makes untrusted text safe for a terminal and cuts it to a number of characters.
pub(crate) fn sanitize(text: &str, width: usize) -> String {
    let acts = |c: char| {
        // Characters that change the writing direction are as harmful as escape sequences.
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let clean: String = text.chars().map(|c| if acts(c) { ' ' } else { c }).collect();
    if clean.chars().count() <= width {
        return clean;
    }
    clean.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The age of a point in time: "3 min ago".
pub(crate) fn format_age(at: Timestamp) -> String {
    format_age_at(at, now().wall)
}

/// The age of a point in time, relative to the given `now`.
pub(crate) fn format_age_at(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        return format!("in {}", format_duration(at.ms_since(now)));
    }
    match now.ms_since(at) {
        0..1000 => "now".to_owned(),
        ms => format!("{} ago", format_duration(ms)),
    }
}

/// A number with its noun: "1 call", "2 calls".
pub(crate) fn format_count(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A duration in its largest suitable unit: "3 min".
pub(crate) fn format_duration(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms} ms"),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86400),
    }
}

/// A size in its largest suitable unit: "7.2 MB".
pub(crate) fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format_count(bytes, "byte"),
        1000..1_000_000 => format!("{} kB", format_thousandths(bytes)),
        _ => format!("{} MB", format_thousandths(bytes / 1000)),
    }
}

/// A number of thousandths as a decimal: 1234 is "1.2".
pub(crate) fn format_thousandths(number: u64) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 100)
}

/// Prints rows in columns. Escape sequences do not count for the widths.
pub(crate) fn print_table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            rows.iter()
                .filter_map(|row| row.get(at))
                .map(|cell| visible_width(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if at + 1 < row.len() {
                let pad =
                    widths.get(at).copied().unwrap_or(0).saturating_sub(visible_width(cell)) + 2;
                line.extend(std::iter::repeat_n(' ', pad));
            }
        }
        print_line(line.trim_end());
    }
}

/// The number of characters in a cell, without escape sequences.
fn visible_width(cell: &str) -> usize {
    let mut letters = 0;
    let mut escape = false;
    for c in cell.chars() {
        match (escape, c) {
            (false, '\u{1b}') => escape = true,
            (true, 'm') => escape = false,
            (false, _) => letters += 1,
            (true, _) => {}
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_do_not_count_as_characters() {
        assert_eq!(visible_width(&bold("abc")), 3);
        assert_eq!(visible_width("grün"), 4);
    }

    #[test]
    fn text_from_outside_cannot_move_the_cursor() {
        assert_eq!(sanitize("a\u{1b}[2Jb\nc", 80), "a [2Jb c");
        assert_eq!(sanitize("abcdef", 4), "abc…");
    }

    #[test]
    fn sizes_use_the_largest_unit() {
        let shown: Vec<String> = [1, 999, 1500, 7_200_000].into_iter().map(format_bytes).collect();
        assert_eq!(shown, ["1 byte", "999 bytes", "1.5 kB", "7.2 MB"]);
    }

    #[test]
    fn durations_use_the_largest_unit_that_keeps_precision() {
        let shown: Vec<String> =
            [5, 61_000, 125_000, 7_300_000, 200_000_000].into_iter().map(format_duration).collect();
        assert_eq!(shown, ["5 ms", "61 s", "2 min", "2 h", "2 d"]);
    }
}
