//! What a file is, told by what is in it.

use std::io::{self, BufRead};

use jackline_analysis::{LineEnd, read_line};
use jackline_clients::Client;
use jackline_clients::transcripts::client_of_transcript;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// How many lines are looked at before nobody knows.
const LINES_MAX: usize = 64;

/// What only runs have.
const MARK: &[u8] = b"\"steps\"";

/// What can be decided again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A run a line.
    Trajectories,
    /// A session that was guarded.
    Journal,
    /// What an agent client wrote down for itself.
    Transcript(&'static Client),
    /// Nothing at all.
    Empty,
    /// Something else.
    Unknown,
}

/// The fields that give a format away.
#[derive(Deserialize)]
struct Fields {
    steps: Option<IgnoredAny>,
    record: Option<IgnoredAny>,
    seq: Option<IgnoredAny>,
}

/// Looks at the first lines until one says what this is.
pub(super) fn recognise(source: &mut impl BufRead) -> io::Result<Format> {
    let mut line = Vec::new();
    let (mut seen, mut broken) = (false, false);
    for _ in 0..LINES_MAX {
        line.clear();
        let Some(end) = read_line(source, &mut line)? else { break };
        let line = line.trim_ascii();
        seen |= !line.is_empty() || end == LineEnd::TooLong;
        match serde_json::from_slice::<Fields>(line) {
            Ok(Fields { steps: Some(_), .. }) => return Ok(Format::Trajectories),
            Ok(Fields { record: Some(_), seq: Some(_), .. }) => return Ok(Format::Journal),
            // A line that can't be read says nothing, unless it is sure what it
            // was to become; the next one may.
            Err(_) if is_run(line) => broken = true,
            _ => {
                if let Some(client) = client_of_transcript(line) {
                    return Ok(Format::Transcript(client));
                }
            }
        }
        broken |= end == LineEnd::TooLong;
    }
    Ok(match (seen, broken) {
        (_, true) => Format::Trajectories,
        (true, false) => Format::Unknown,
        (false, false) => Format::Empty,
    })
}

/// Whether a line that is no JSON was to be a run.
fn is_run(line: &[u8]) -> bool {
    line.starts_with(b"{") && line.windows(MARK.len()).any(|part| part == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Format {
        recognise(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn a_file_is_what_is_in_it() {
        assert_eq!(of("{\"id\":1,\"steps\":[]}\n"), Format::Trajectories);
        assert_eq!(of("{\"v\":1,\"seq\":0,\"record\":\"opened\"}"), Format::Journal);
        let claude = jackline_clients::find_client("claude").unwrap();
        assert_eq!(of("{\"type\":\"summary\"}\n"), Format::Transcript(claude));
        assert_eq!(of(""), Format::Empty);
        assert_eq!(of("\n \n"), Format::Empty);
        assert_eq!(of("{}\nhello\n"), Format::Unknown);
    }

    #[test]
    fn a_broken_line_does_not_hide_the_next() {
        assert_eq!(of("{\"id\":1,\"ste\n\n{\"steps\":[]}\n"), Format::Trajectories);
        // A run that is cut off is a broken run, and not something else.
        assert_eq!(of("{\"id\":1,\"steps\": ["), Format::Trajectories);
        assert_eq!(of(&("x\n".repeat(LINES_MAX) + "{\"steps\":[]}\n")), Format::Unknown);
    }
}
