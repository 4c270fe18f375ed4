//! What people read: colours where there is a terminal, tables, relative times.

use std::fmt::Display;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use jackline_engine::{Decision, Timestamp};
use jackline_host::clock::{boot_number, now};
use jackline_host::{FileStateHome, HostAccess, StateHome, state_home};
use jackline_journal::{FileStore, JournalView, SessionEntry, StoreError};
use jackline_runtime::{Definitions, Sessions};

use crate::exit::Exit;

/// Prints a line. Whoever reads may leave early; that is no failure.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// Prints a line for programs, exactly as it is.
pub(crate) fn say_json(text: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints a complaint.
pub(crate) fn complain(text: impl Display) {
    let red = AnsiColor::Red.on_default().bold();
    let _ = writeln!(anstream::stderr().lock(), "{red}error:{red:#} {text}");
}

/// Says what a person should know although nothing failed.
pub(crate) fn warn(text: impl Display) {
    let yellow = AnsiColor::Yellow.on_default().bold();
    let _ = writeln!(anstream::stderr().lock(), "{yellow}warning:{yellow:#} {text}");
}

/// Says what is going on, beside what is asked for.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Complains and says how to end.
pub(crate) fn fail(exit: Exit, text: impl Display) -> Exit {
    complain(text);
    exit
}

/// Asks a person at a terminal; no answer is a no.
pub(crate) fn ask(question: &str) -> bool {
    let mut output = io::stdout().lock();
    let _ = write!(output, "{question} [y/N] ");
    let _ = output.flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// The store of this machine.
pub(crate) fn store() -> Result<FileStore, Exit> {
    let home = state_home().map_err(|error| fail(Exit::Usage, error))?;
    Ok(FileStore::new(home, boot_number()))
}

/// The journal of a session that was found on this machine.
pub(crate) fn open_journal(entry: &SessionEntry) -> Result<JournalView, StoreError> {
    let file = entry.file().ok_or(StoreError::Unopened)?;
    JournalView::open(&file)
}

/// The state home of this machine.
pub(crate) fn state_documents(store: &FileStore) -> Arc<dyn StateHome> {
    Arc::new(FileStateHome::new(store.home()))
}

/// The definitions of this machine: from a file that a person named, else those of the workspace.
pub(crate) fn definitions(file: Option<PathBuf>, store: &FileStore) -> Definitions {
    Definitions::new(file, HostAccess::of_machine(Some(store.home())))
}

/// The store and the sessions in it.
pub(crate) fn sessions() -> Result<(FileStore, Sessions<FileStore>), Exit> {
    let store = store()?;
    Ok((store.clone(), Sessions::new(store)))
}

/// The directory a command was started in.
pub(crate) fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// The style of a decision.
pub(crate) fn style_of(decision: Decision) -> Style {
    match decision {
        Decision::Allow => AnsiColor::Green.on_default(),
        Decision::Rewrite | Decision::Ask | Decision::Pause => AnsiColor::Yellow.on_default(),
        Decision::Deny => AnsiColor::Red.on_default(),
        Decision::Stop => AnsiColor::Red.on_default().bold(),
    }
}

/// A text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A text that matters less.
pub(crate) fn dim(text: impl Display) -> String {
    styled(Style::new().dimmed(), text)
}

/// A text that matters more.
pub(crate) fn bold(text: impl Display) -> String {
    styled(Style::new().bold(), text)
}

/// A line that was added.
pub(crate) fn paint_added(text: impl Display) -> String {
    styled(AnsiColor::Green.on_default(), text)
}

/// A line that was taken out.
pub(crate) fn paint_removed(text: impl Display) -> String {
    styled(AnsiColor::Red.on_default(), text)
}

/// Text from outside, made harmless for a terminal and cut to a width.
pub(crate) fn plain(text: &str, width: usize) -> String {
    let acts = |c: char| {
        // Letters that turn the direction of writing are no better than escapes.
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let clean: String = text.chars().map(|c| if acts(c) { ' ' } else { c }).collect();
    if clean.chars().count() <= width {
        return clean;
    }
    clean.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// "3 min ago".
pub(crate) fn ago(at: Timestamp) -> String {
    ago_at(at, now().wall)
}

/// The same, at another time than now.
pub(crate) fn ago_at(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        return format!("in {}", duration(at.ms_since(now)));
    }
    match now.ms_since(at) {
        0..1000 => "now".to_owned(),
        ms => format!("{} ago", duration(ms)),
    }
}

/// "1 call", "2 calls".
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// "3 min".
pub(crate) fn duration(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms} ms"),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86400),
    }
}

/// A thousandth of a number, with one decimal.
pub(crate) fn thousandth(number: u64) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 100)
}

/// Rows in columns. The widths ignore styles.
pub(crate) fn table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if at + 1 < row.len() {
                let pad = widths.get(at).copied().unwrap_or(0).saturating_sub(width(cell)) + 2;
                line.extend(std::iter::repeat_n(' ', pad));
            }
        }
        say(line.trim_end());
    }
}

/// The letters of a cell without its escape sequences.
fn width(cell: &str) -> usize {
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
    fn styles_do_not_count_as_letters() {
        assert_eq!(width(&bold("abc")), 3);
        assert_eq!(width("grün"), 4);
    }

    #[test]
    fn text_from_outside_cannot_move_the_cursor() {
        assert_eq!(plain("a\u{1b}[2Jb\nc", 80), "a [2Jb c");
        assert_eq!(plain("abcdef", 4), "abc…");
    }

    #[test]
    fn durations_keep_two_digits_or_more() {
        let shown: Vec<String> =
            [5, 61_000, 125_000, 7_300_000, 200_000_000].into_iter().map(duration).collect();
        assert_eq!(shown, ["5 ms", "61 s", "2 min", "2 h", "2 d"]);
    }
}
