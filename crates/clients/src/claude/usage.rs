//! Reads the latest token counts from the end of a transcript: what an agent used, and how full its
//! context is.
//!
//! The client writes the record of an answer late, often only after its call has finished. So the
//! record of the current answer may be missing, and the record of an earlier answer may be new. We
//! report every record that is not counted yet, so none is lost.
//!
//! A transcript may have hundreds of megabytes, and a gate waits for us. So we read it from its end
//! and only up to a limit. If the last answer of the model is beyond the limit, after one enormous
//! tool result, its usage is unknown. Unknown is not the same as zero.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jackline_engine::Timestamp;
use serde::Deserialize;

use super::raw_value::{OptionalRaw, open_regular_file, parse_raw, raw_flag, raw_text};

/// How many bytes at the end are read. Usually the first size is enough, and we never read more
/// than the last.
const WINDOW_BYTES: [u64; 3] = [64 << 10, 512 << 10, 4 << 20];

/// How many characters of a model name are reported.
const MODEL_CHARS_MAX: usize = 200;

/// How many records are reported at once.
const RECORDS_MAX: usize = 16;

/// The model name of messages that the client wrote itself.
const CLIENT_MODEL: &str = "<synthetic>";

/// The token counts of one model answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerUsage {
    /// The message that was counted. Several lines of one message repeat its counts.
    pub request: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Input tokens, without those read from or written to the cache.
    pub input: u64,
    /// Input tokens that the model read from the cache.
    pub cache_read: u64,
    /// Input tokens that the model wrote to the cache.
    pub cache_creation: u64,
    /// Output tokens.
    pub output: u64,
    /// Whether the counts can't be read. The numbers above are then zero.
    pub unknown: bool,
}

/// Which agent's answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptOwner {
    /// The main agent, in the transcript of a session.
    MainAgent,
    /// A sub-agent, in its own transcript.
    SubAgent,
}

/// The token counts at the end of a transcript that are not counted yet, oldest first.
///
/// It calls `is_counted` for the latest record first, with the time at which the client wrote it.
/// It reads only the last 4 MiB. If they contain no answer, it returns one record of unknown usage.
/// A missing or unreadable file has no records.
pub fn uncounted_usage(
    path: &Path,
    whose: TranscriptOwner,
    mut is_counted: impl FnMut(&AnswerUsage, Option<Timestamp>) -> bool,
) -> Vec<AnswerUsage> {
    let mut records: Vec<AnswerUsage> = Vec::new();
    let mut any_record = false;
    let end = read_backwards(path, whose, &mut |usage, written_at| {
        any_record = true;
        // A message has several lines. The last one has the counts of the whole message.
        let is_of = |later: &AnswerUsage| match &usage.request {
            Some(request) => later.request.as_ref() == Some(request),
            None => *later == usage,
        };
        if records.last().is_some_and(is_of) {
            return ControlFlow::Continue(());
        }
        if is_counted(&usage, written_at) {
            return ControlFlow::Break(());
        }
        records.push(usage);
        if records.len() < RECORDS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if end == ReadEnd::LimitReached && !any_record && !is_counted(&AnswerUsage::unreadable(), None)
    {
        records.push(AnswerUsage::unreadable());
    }
    records.reverse();
    records
}

/// Why reading backwards ended.
#[derive(PartialEq)]
enum ReadEnd {
    /// All needed records were read, or the beginning was reached.
    Done,
    /// The limit was reached, and the file has more before it.
    LimitReached,
}

/// Passes the usage records of a transcript to `see`, the latest first, until `see` breaks.
fn read_backwards(
    path: &Path,
    whose: TranscriptOwner,
    see: &mut dyn FnMut(AnswerUsage, Option<Timestamp>) -> ControlFlow<()>,
) -> ReadEnd {
    let Ok(file) = open_regular_file(path) else { return ReadEnd::Done };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return ReadEnd::Done };
    // The bytes after `end` are read already.
    let mut end = length;
    for size in WINDOW_BYTES {
        let start = length.saturating_sub(size);
        let window = read_window(&file, start, end);
        let mut open = window.as_slice();
        loop {
            let newline = last_newline(open);
            if newline.is_none() && start > 0 {
                // The line begins before this window.
                break;
            }
            let (before, line) = match newline.and_then(|at| open.split_at_checked(at)) {
                Some((before, line)) => (Some(before), line.get(1..).unwrap_or_default()),
                None => (None, open),
            };
            if let Some((usage, written_at)) = line_usage(line, whose)
                && see(usage, written_at).is_break()
            {
                return ReadEnd::Done;
            }
            let Some(before) = before else { return ReadEnd::Done };
            open = before;
        }
        end = start + open.len() as u64;
    }
    ReadEnd::LimitReached
}

/// The bytes from `start` to `end`, or fewer if the file has shrunk.
fn read_window(file: &File, start: u64, end: u64) -> Vec<u8> {
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let mut window = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = window.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, start + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    window.truncate(filled);
    window
}

/// The position of the last newline. Checking pieces is faster than checking single bytes.
fn last_newline(bytes: &[u8]) -> Option<usize> {
    let mut end = bytes.len();
    for piece in bytes.rchunks(256) {
        end -= piece.len();
        if piece.contains(&b'\n') {
            return piece.iter().rposition(|byte| *byte == b'\n').map(|at| end + at);
        }
    }
    None
}

#[derive(Deserialize)]
struct UsageLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: OptionalRaw<'a>,
    #[serde(borrow, rename = "isSidechain")]
    sidechain: OptionalRaw<'a>,
    #[serde(borrow)]
    timestamp: OptionalRaw<'a>,
    // Parsed in one pass, because an answer may be long.
    #[serde(borrow)]
    message: UsageMessage<'a>,
}

/// A message of the model.
#[derive(Deserialize)]
pub(super) struct UsageMessage<'a> {
    #[serde(borrow)]
    id: OptionalRaw<'a>,
    #[serde(borrow)]
    model: OptionalRaw<'a>,
    #[serde(borrow)]
    usage: OptionalRaw<'a>,
}

#[derive(Deserialize)]
struct TokenCounts<'a> {
    #[serde(borrow, rename = "input_tokens")]
    input: OptionalRaw<'a>,
    #[serde(borrow, rename = "cache_creation_input_tokens")]
    cache_creation: OptionalRaw<'a>,
    #[serde(borrow, rename = "cache_read_input_tokens")]
    cache_read: OptionalRaw<'a>,
    #[serde(borrow, rename = "output_tokens")]
    output: OptionalRaw<'a>,
}

/// The usage that a line reports for this agent, and when the client wrote it.
fn line_usage(line: &[u8], whose: TranscriptOwner) -> Option<(AnswerUsage, Option<Timestamp>)> {
    let line = String::from_utf8_lossy(line);
    // Most lines are something else, and some of them have megabytes.
    if !(line.contains("\"usage\"") && line.contains("\"assistant\"")) {
        return None;
    }
    let line: UsageLine = serde_json::from_str(&line).ok()?;
    let is_counted_agent = match whose {
        TranscriptOwner::MainAgent => !raw_flag(line.sidechain),
        TranscriptOwner::SubAgent => true,
    };
    if !is_counted_agent || raw_text(line.kind)? != "assistant" {
        return None;
    }
    let written_at = raw_text(line.timestamp).and_then(|at| Timestamp::parse(&at).ok());
    Some((message_usage(&line.message)?, written_at))
}

/// The usage that a message reports. A message that the client wrote itself has none. Counts that
/// exist but can't be read are unknown.
pub(super) fn message_usage(message: &UsageMessage<'_>) -> Option<AnswerUsage> {
    message.usage?;
    let model = raw_text(message.model);
    if model.as_deref() == Some(CLIENT_MODEL) {
        return None;
    }
    let unread = AnswerUsage { request: raw_text(message.id), model, ..AnswerUsage::unreadable() };
    let usage = parse_raw(message.usage).and_then(|counts| unread.clone().with_counts(&counts));
    match usage {
        Some(usage) if usage.is_zero() => None,
        Some(usage) => Some(usage),
        None => Some(unread),
    }
}

impl AnswerUsage {
    /// Usage with counts that can't be read.
    fn unreadable() -> Self {
        Self {
            request: None,
            model: None,
            input: 0,
            cache_read: 0,
            cache_creation: 0,
            output: 0,
            unknown: true,
        }
    }

    /// Adds the counts: input and output are required, the cache counts are optional.
    fn with_counts(self, counts: &TokenCounts<'_>) -> Option<Self> {
        let cached = |raw: OptionalRaw<'_>| raw.map_or(Some(0), |_| parse_raw(raw));
        Some(Self {
            input: parse_raw(counts.input)?,
            cache_read: cached(counts.cache_read)?,
            cache_creation: cached(counts.cache_creation)?,
            output: parse_raw(counts.output)?,
            unknown: false,
            ..self
        })
    }

    /// The model name, cut to the length that an event accepts. A transcript may contain anything.
    pub(super) fn short_model(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.chars().take(MODEL_CHARS_MAX).collect())
    }

    fn is_zero(&self) -> bool {
        (self.input, self.cache_read, self.cache_creation, self.output) == (0, 0, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Seek as _, SeekFrom, Write as _};

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn answer(id: &str, input: u64) -> String {
        line(&json!({"type": "assistant", "isSidechain": false, "message": message(id, input)}))
    }

    fn message(id: &str, input: u64) -> Value {
        json!({"id": id, "type": "message", "role": "assistant", "model": "claude-x",
            "content": [{"type": "text", "text": "…"}],
            "usage": {"input_tokens": input, "cache_creation_input_tokens": 2,
                "cache_read_input_tokens": 3, "output_tokens": 4, "service_tier": "standard"}})
    }

    fn line(value: &Value) -> String {
        format!("{value}\n")
    }

    fn in_file<T>(contents: impl AsRef<[u8]>, test: impl FnOnce(&Path) -> T) -> T {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.jsonl");
        fs::write(&path, contents).unwrap();
        test(&path)
    }

    /// The latest record.
    fn last_usage(path: &Path, whose: TranscriptOwner) -> Option<AnswerUsage> {
        let mut calls = 0;
        let records = uncounted_usage(path, whose, |_, _| {
            calls += 1;
            calls > 1
        });
        records.into_iter().next()
    }

    fn found(contents: impl AsRef<[u8]>) -> Option<AnswerUsage> {
        in_file(contents, |path| last_usage(path, TranscriptOwner::MainAgent))
    }

    fn request(contents: impl AsRef<[u8]>) -> Option<String> {
        found(contents).and_then(|usage| usage.request)
    }

    #[test]
    fn the_latest_record_is_returned() {
        let usage = AnswerUsage {
            request: Some("m2".to_owned()),
            model: Some("claude-x".to_owned()),
            input: 20,
            cache_read: 3,
            cache_creation: 2,
            output: 4,
            unknown: false,
        };
        let after =
            line(&json!({"type": "user", "message": {"content": "\"usage\" \"assistant\""}}));
        assert_eq!(found(answer("m1", 10) + &answer("m2", 20) + &after), Some(usage));
    }

    /// The client writes late: two answers may appear at once between two reads.
    #[test]
    fn uncounted_records_are_reported_oldest_first() {
        let reported = |contents: &str, counted: &[&str]| {
            in_file(contents, |path| {
                let is_counted = |usage: &AnswerUsage, _: Option<Timestamp>| {
                    usage.request.as_deref().is_some_and(|request| counted.contains(&request))
                };
                let records = uncounted_usage(path, TranscriptOwner::MainAgent, is_counted);
                records
                    .into_iter()
                    .map(|usage| (usage.request.unwrap(), usage.input))
                    .collect::<Vec<_>>()
            })
        };
        let record = |id: &str, input| (id.to_owned(), input);
        let three = answer("m1", 1) + &answer("m2", 2) + &answer("m3", 3);
        let none: Vec<(String, u64)> = Vec::new();
        assert_eq!(reported(&three, &["m1"]), [record("m2", 2), record("m3", 3)]);
        assert_eq!(reported(&three, &["m1", "m2", "m3"]), none);
        // A record before a counted one was counted earlier, or belongs to another agent.
        assert_eq!(reported(&three, &["m2"]), [record("m3", 3)]);
        // Several lines of a message are one record.
        let lines = answer("m1", 1) + &answer("m2", 2) + &answer("m2", 7);
        assert_eq!(reported(&lines, &["m1"]), [record("m2", 7)]);
        let many: String = (0..99).map(|n| answer(&format!("n{n}"), n)).collect();
        let last: Vec<_> = (83..99).map(|n| record(&format!("n{n}"), n)).collect();
        assert_eq!(reported(&many, &[]), last);
    }

    #[test]
    fn messages_without_an_id_are_distinguished_by_their_numbers() {
        let without_id = |input| {
            let mut message = message("", input);
            message["id"] = json!(null);
            line(&json!({"type": "assistant", "message": message}))
        };
        let contents = without_id(1) + &without_id(2) + &without_id(2);
        let inputs: Vec<u64> = in_file(contents, |path| {
            let records = uncounted_usage(path, TranscriptOwner::MainAgent, |_, _| false);
            records.into_iter().map(|usage| usage.input).collect()
        });
        assert_eq!(inputs, [1, 2]);
    }

    #[test]
    fn a_record_has_the_time_at_which_it_was_written() {
        let at = |timestamp: &Value| {
            let line = line(&json!({"type": "assistant", "message": message("m", 1),
                "timestamp": timestamp}));
            let mut written_at = None;
            in_file(line, |path| {
                uncounted_usage(path, TranscriptOwner::MainAgent, |_, at| {
                    written_at = at;
                    true
                })
            });
            written_at
        };
        let written_at = at(&json!("2026-01-31T12:00:00.500Z"));
        assert_eq!(written_at, Timestamp::parse("2026-01-31T12:00:00.500Z").ok());
        assert!(written_at.is_some());
        for odd in [json!(null), json!("yesterday"), json!(7)] {
            assert_eq!(at(&odd), None, "{odd}");
        }
    }

    #[test]
    fn a_file_that_is_not_a_transcript_has_no_usage() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for path in [&root.path().join("missing"), root.path(), &pipe, Path::new("/dev/null")] {
            assert_eq!(last_usage(path, TranscriptOwner::MainAgent), None, "{}", path.display());
        }
        assert_eq!(found(""), None);
        assert_eq!(found("\n\n\n"), None);
        assert_eq!(found("\0\u{1}{}"), None);
    }

    #[test]
    fn a_symbolic_link_to_a_transcript_is_followed() {
        in_file(answer("m1", 1), |path| {
            let link = path.with_extension("link");
            std::os::unix::fs::symlink(path, &link).unwrap();
            assert_eq!(
                last_usage(&link, TranscriptOwner::MainAgent),
                last_usage(path, TranscriptOwner::MainAgent)
            );
            assert!(last_usage(&link, TranscriptOwner::MainAgent).is_some());
        });
    }

    #[test]
    fn a_partial_line_is_ignored_and_a_last_line_needs_no_newline() {
        let (first, second) = (answer("m1", 1), answer("m2", 2));
        assert_eq!(request(first.clone() + second.trim_end()), Some("m2".to_owned()));
        for cut in 1..second.len() - 1 {
            let half = second.as_bytes().get(..cut).unwrap();
            assert_eq!(request([first.as_bytes(), half].concat()), Some("m1".to_owned()), "{cut}");
        }
        // The beginning of the line is missing, as after a log rotation.
        assert_eq!(request(second.get(9..).unwrap()), None);
    }

    #[test]
    fn sub_agents_are_counted_only_in_their_own_transcripts() {
        let sub =
            line(&json!({"type": "assistant", "isSidechain": true, "message": message("s", 9)}));
        in_file(answer("m1", 1) + &sub, |path| {
            let request_of = |whose| last_usage(path, whose).and_then(|usage| usage.request);
            assert_eq!(request_of(TranscriptOwner::MainAgent), Some("m1".to_owned()));
            assert_eq!(request_of(TranscriptOwner::SubAgent), Some("s".to_owned()));
        });
    }

    #[test]
    fn records_of_another_format_are_skipped() {
        let mut odd = vec![json!([]), json!("\"usage\" \"assistant\""), json!({"type": 1})];
        odd.push(json!({"type": "assistant", "message": "usage"}));
        odd.push(json!({"type": ["assistant"], "message": message("t", 9)}));
        odd.push(json!({"type": "user", "role": "assistant", "message": message("u", 9)}));
        for usage in [json!(null), json!({"input_tokens": 0, "output_tokens": 0})] {
            odd.push(json!({"type": "assistant", "message": {"id": "odd", "usage": usage}}));
        }
        let mut synthetic = message("synthetic", 9);
        synthetic["model"] = json!("<synthetic>");
        odd.push(json!({"type": "assistant", "message": synthetic}));
        let odd: String = odd.iter().map(line).collect();
        let deep = format!("{{\"type\":\"assistant\",\"usage\":{}\n", "[".repeat(99_999));
        assert_eq!(request(answer("m1", 1) + &odd + &deep), Some("m1".to_owned()));
        // A field of the wrong type elsewhere does not affect the counts.
        let mut odd = message("m2", 2);
        odd["id"] = json!(7);
        let usage = found(line(&json!({"type": "assistant", "message": odd}))).unwrap();
        assert_eq!((usage.request, usage.input, usage.cache_read), (None, 2, 3));
    }

    #[test]
    fn unreadable_counts_are_unknown_and_not_zero() {
        let mut odd =
            vec![json!("10"), json!(10), json!([1]), json!({}), json!({"input_tokens": 1})];
        let huge = serde_json::from_str("1180591620717411303424").unwrap();
        for count in [json!(-5), json!("9"), json!(1.5), json!(1e308), json!({}), huge] {
            odd.push(json!({"input_tokens": count, "output_tokens": 1}));
            odd.push(json!({"input_tokens": 1, "output_tokens": count}));
            odd.push(
                json!({"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": count}),
            );
        }
        for usage in odd {
            let message = json!({"id": "odd", "usage": usage});
            let contents =
                answer("m1", 1) + &line(&json!({"type": "assistant", "message": message}));
            let expected =
                AnswerUsage { request: Some("odd".to_owned()), ..AnswerUsage::unreadable() };
            assert_eq!(found(contents), Some(expected), "{usage}");
        }
    }

    #[test]
    fn an_answer_beyond_the_limit_is_unknown_once() {
        let enormous = line(&json!({"type": "user", "result": "x".repeat(5 << 20)}));
        in_file(answer("m1", 1) + &enormous, |path| {
            let reported =
                |counted: bool| uncounted_usage(path, TranscriptOwner::MainAgent, |_, _| counted);
            assert_eq!(reported(false), [AnswerUsage::unreadable()]);
            assert_eq!(reported(true), []);
        });
        in_file(answer("m1", 1) + &enormous + &answer("m2", 2), |path| {
            assert_eq!(uncounted_usage(path, TranscriptOwner::MainAgent, |_, _| true), []);
        });
    }

    #[test]
    fn invalid_utf8_does_not_stop_the_reader() {
        let mut bytes = answer("m1", 1).into_bytes();
        let at = bytes.windows(3).position(|three| three == "…".as_bytes()).unwrap();
        bytes.splice(at..at + 3, [0xff, 0xfe, 0x80]);
        assert_eq!(request([bytes.as_slice(), b"\xff\xff\n\xc3"].concat()), Some("m1".to_owned()));
    }

    #[test]
    fn megabytes_of_results_are_read_up_to_a_limit() {
        let result = |bytes: usize| {
            line(&json!({"type": "user", "message": {"content": "x".repeat(bytes)}}))
        };
        for bytes in [65_000, 66_000, 600_000, 3 << 20] {
            let contents = answer("m1", 1) + &result(bytes) + &result(10);
            assert_eq!(request(contents), Some("m1".to_owned()), "{bytes}");
        }
        assert_eq!(request(answer("m1", 1) + &result(5 << 20)), None);
        // A long answer counts too.
        let mut long = message("m2", 2);
        long["content"] = json!("y".repeat(1 << 20));
        let long = line(&json!({"type": "assistant", "message": long}));
        assert_eq!(request(answer("m1", 1) + &long), Some("m2".to_owned()));
    }

    #[test]
    fn a_file_may_shrink_or_grow_while_it_is_read() {
        in_file(answer("m1", 1), |path| {
            let file = File::open(path).unwrap();
            let length = file.metadata().unwrap().len();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(10).unwrap();
            assert_eq!(read_window(&file, 0, length).len(), 10);
            assert_eq!(read_window(&file, 20, length).len(), 0);
            fs::write(path, answer("m1", 1) + &answer("m2", 2)).unwrap();
            assert_eq!(read_window(&file, 0, length).len() as u64, length);
        });
    }

    #[test]
    fn a_hole_of_500_megabytes_is_never_read() {
        in_file("", |path| {
            let mut file = File::create(path).unwrap();
            file.seek(SeekFrom::Start(500 << 20)).unwrap();
            write!(file, "\n{}", answer("m1", 1)).unwrap();
            assert_eq!(last_usage(path, TranscriptOwner::MainAgent).unwrap().input, 1);
        });
    }

    /// A simple reference implementation: reads everything from the beginning.
    fn read_all(contents: &[u8], whose: TranscriptOwner) -> Option<AnswerUsage> {
        let mut last = None;
        for line in contents.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_str::<Value>(&String::from_utf8_lossy(line)) else {
                continue;
            };
            let (message, usage) = (&line["message"], &line["message"]["usage"]);
            let mine = whose == TranscriptOwner::SubAgent || line["isSidechain"] != json!(true);
            let synthetic = message["model"] == json!("<synthetic>");
            if line["type"] != json!("assistant") || !mine || synthetic || usage.is_null() {
                continue;
            }
            let word = |name: &str| message[name].as_str().map(ToOwned::to_owned);
            let unread = AnswerUsage {
                request: word("id"),
                model: word("model"),
                ..AnswerUsage::unreadable()
            };
            let cached = |name: &str| match &usage[name] {
                Value::Null => Some(0),
                count => count.as_u64(),
            };
            let counts = (
                usage["input_tokens"].as_u64(),
                usage["output_tokens"].as_u64(),
                cached("cache_read_input_tokens"),
                cached("cache_creation_input_tokens"),
            );
            last = match counts {
                (Some(0), Some(0), Some(0), Some(0)) => last,
                (Some(input), Some(output), Some(cache_read), Some(cache_creation)) => {
                    Some(AnswerUsage {
                        input,
                        output,
                        cache_read,
                        cache_creation,
                        unknown: false,
                        ..unread
                    })
                }
                _ => Some(unread),
            };
        }
        last
    }

    fn any_line() -> impl Strategy<Value = Vec<u8>> {
        let count = prop_oneof![
            4 => (0..4_u64).prop_map(|count| json!(count)),
            1 => Just(json!(null)),
            1 => Just(json!("1")),
            1 => Just(json!(-1)),
        ];
        let word = |words: &'static [&'static str]| prop::sample::select(words);
        let sides = prop::option::of(any::<bool>());
        let parts = (
            word(&["assistant", "assistant", "assistant", "user", "system"]),
            sides,
            word(&["m1", "m2"]),
            word(&["claude-x", "claude-x", "<synthetic>"]),
            prop::collection::vec(count, 4),
            prop_oneof![8 => 0..40_usize, 1 => 60_000..70_000_usize, 1 => 500_000..600_000_usize],
        );
        let valid = parts.prop_map(|(kind, side, id, model, counts, pad)| {
            let usage = json!({"input_tokens": counts[0], "cache_read_input_tokens": counts[1],
                "cache_creation_input_tokens": counts[2], "output_tokens": counts[3]});
            let message = json!({"id": id, "model": model, "usage": usage,
                "content": "é".repeat(pad / 2)});
            let mut line = json!({"type": kind, "message": message});
            if let Some(side) = side {
                line["isSidechain"] = json!(side);
            }
            line.to_string().into_bytes()
        });
        let noise = prop::collection::vec(any::<u8>(), 0..80);
        prop_oneof![6 => valid, 1 => noise]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn both_readers_find_the_same_record(
            lines in prop::collection::vec(any_line(), 0..12),
            cut in 0..200_usize,
        ) {
            let mut contents = lines.join(&b'\n');
            // The last line may be incomplete.
            contents.truncate(contents.len().saturating_sub(cut.saturating_sub(100)));
            for whose in [TranscriptOwner::MainAgent, TranscriptOwner::SubAgent] {
                let last = in_file(&contents, |path| last_usage(path, whose));
                if contents.len() < 4 << 20 {
                    prop_assert_eq!(&last, &read_all(&contents, whose));
                }
            }
        }
    }
}
