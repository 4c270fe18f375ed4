//! Detects the format of a file from its contents.

use std::io::{self, BufRead};

use jackline_analysis::{LineEnd, read_line};
use jackline_clients::Client;
use jackline_clients::transcripts::find_transcript_client;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// How many lines are examined before the format counts as unknown.
const LINES_MAX: usize = 64;

/// Text that only runs contain.
const RUN_MARKER: &[u8] = b"\"steps\"";

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordingFormat {
    /// One run per line.
    Trajectories,
    /// The journal of a guarded session.
    Journal,
    /// A transcript of an agent client.
    Transcript(&'static Client),
    /// An empty file.
    Empty,
    /// Another format.
    Unknown,
}

/// The fields that identify a format.
#[derive(Deserialize)]
struct FormatFields {
    steps: Option<IgnoredAny>,
    record: Option<IgnoredAny>,
    seq: Option<IgnoredAny>,
}

/// Reads the first lines until one identifies the format.
pub(super) fn detect_format(source: &mut impl BufRead) -> io::Result<RecordingFormat> {
    let mut line = Vec::new();
    let (mut has_text, mut is_broken) = (false, false);
    for _ in 0..LINES_MAX {
        line.clear();
        let Some(end) = read_line(source, &mut line)? else { break };
        let line = line.trim_ascii();
        has_text |= !line.is_empty() || end == LineEnd::TooLong;
        match serde_json::from_slice::<FormatFields>(line) {
            Ok(FormatFields { steps: Some(_), .. }) => return Ok(RecordingFormat::Trajectories),
            Ok(FormatFields { record: Some(_), seq: Some(_), .. }) => {
                return Ok(RecordingFormat::Journal);
            }
            // A broken line that looks like a run shows the format. Any other broken line is
            // skipped, because a later line can show the format.
            Err(_) if looks_like_run(line) => is_broken = true,
            _ => {
                if let Some(client) = find_transcript_client(line) {
                    return Ok(RecordingFormat::Transcript(client));
                }
            }
        }
        is_broken |= end == LineEnd::TooLong;
    }
    Ok(match (has_text, is_broken) {
        (_, true) => RecordingFormat::Trajectories,
        (true, false) => RecordingFormat::Unknown,
        (false, false) => RecordingFormat::Empty,
    })
}

/// Whether a line that is not valid JSON looks like the beginning of a run.
fn looks_like_run(line: &[u8]) -> bool {
    line.starts_with(b"{") && line.windows(RUN_MARKER.len()).any(|part| part == RUN_MARKER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> RecordingFormat {
        detect_format(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn the_format_is_detected_from_the_contents() {
        assert_eq!(of("{\"id\":1,\"steps\":[]}\n"), RecordingFormat::Trajectories);
        assert_eq!(of("{\"v\":1,\"seq\":0,\"record\":\"opened\"}"), RecordingFormat::Journal);
        let claude = jackline_clients::find_client("claude").unwrap();
        assert_eq!(of("{\"type\":\"summary\"}\n"), RecordingFormat::Transcript(claude));
        assert_eq!(of(""), RecordingFormat::Empty);
        assert_eq!(of("\n \n"), RecordingFormat::Empty);
        assert_eq!(of("{}\nhello\n"), RecordingFormat::Unknown);
    }

    #[test]
    fn a_broken_line_does_not_hide_the_next() {
        assert_eq!(of("{\"id\":1,\"ste\n\n{\"steps\":[]}\n"), RecordingFormat::Trajectories);
        // An incomplete run is detected as a broken run.
        assert_eq!(of("{\"id\":1,\"steps\": ["), RecordingFormat::Trajectories);
        assert_eq!(of(&("x\n".repeat(LINES_MAX) + "{\"steps\":[]}\n")), RecordingFormat::Unknown);
    }
}
