//! What an agent used, and how full its context is: the latest usage records of
//! its transcript.
//!
//! The client writes an answer down some time after it came, often only when the
//! call in it is over. So the record of the answer at hand may be missing, and
//! that of an earlier one new: all that nobody has counted are told, and none is
//! lost.
//!
//! A transcript may have hundreds of megabytes, and this is asked at a gate. So
//! it is read from its end, and no further than a bound: where the last answer
//! of the model lies deeper, below one enormous tool result, the usage is not
//! known. That is never the same as none.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jackline_engine::Timestamp;
use serde::Deserialize;

use super::lines::{Raw, flag, open_file, read, text};

/// How much of the end is looked at: mostly the first is enough, and beyond
/// the last nobody looks.
const WINDOWS: [u64; 3] = [64 << 10, 512 << 10, 4 << 20];

/// How much of a model's name is told.
const MODEL_CHARS_MAX: usize = 200;

/// How many records are told at once.
const RECORDS_MAX: usize = 16;

/// The name the client gives to what it wrote itself in the model's place.
const SYNTHETIC: &str = "<synthetic>";

/// One usage record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The message it belongs to; several lines of it say the same.
    pub request: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens read, without those of the cache.
    pub input: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_creation: u64,
    /// Tokens written.
    pub output: u64,
    /// Whether there are counts that can't be read; those above are then none.
    pub unknown: bool,
}

/// Whose answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The main agent's, in the transcript of a session.
    Main,
    /// A sub-agent's, in a transcript of its own.
    SubAgent,
}

/// The usage records at the end of a transcript that are not counted yet, oldest
/// first; `is_counted` is asked about the latest first, with the time it was written
/// down. Only the last 4 MiB are looked at; where no answer is in them, there is one of
/// unknown usage. A file that is missing, unreadable or no file has none.
pub fn uncounted(
    path: &Path,
    whose: Whose,
    mut is_counted: impl FnMut(&Usage, Option<Timestamp>) -> bool,
) -> Vec<Usage> {
    let mut found: Vec<Usage> = Vec::new();
    let mut met = false;
    let ended = backwards(path, whose, &mut |usage, said| {
        met = true;
        // A message has several lines, and the last says what all of it took.
        let is_of = |later: &Usage| match &usage.request {
            Some(request) => later.request.as_ref() == Some(request),
            None => *later == usage,
        };
        if found.last().is_some_and(is_of) {
            return ControlFlow::Continue(());
        }
        if is_counted(&usage, said) {
            return ControlFlow::Break(());
        }
        found.push(usage);
        if found.len() < RECORDS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if ended == Ended::Beyond && !met && !is_counted(&Usage::unread(), None) {
        found.push(Usage::unread());
    }
    found.reverse();
    found
}

/// Where the looking backwards ended.
#[derive(PartialEq)]
enum Ended {
    /// Where enough was seen, or at the beginning.
    Seen,
    /// Where nobody looks any further, and something lies beyond.
    Beyond,
}

/// Shows the usage records of a transcript, the latest first, until `see` has seen
/// enough.
fn backwards(
    path: &Path,
    whose: Whose,
    see: &mut dyn FnMut(Usage, Option<Timestamp>) -> ControlFlow<()>,
) -> Ended {
    let Ok(file) = open_file(path) else { return Ended::Seen };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return Ended::Seen };
    // What lies beyond was looked at.
    let mut end = length;
    for size in WINDOWS {
        let start = length.saturating_sub(size);
        let window = read_window(&file, start, end);
        let mut open = window.as_slice();
        loop {
            let newline = last_newline(open);
            if newline.is_none() && start > 0 {
                // The line began earlier.
                break;
            }
            let (before, line) = match newline.and_then(|at| open.split_at_checked(at)) {
                Some((before, line)) => (Some(before), line.get(1..).unwrap_or_default()),
                None => (None, open),
            };
            if let Some((usage, said)) = usage_of(line, whose)
                && see(usage, said).is_break()
            {
                return Ended::Seen;
            }
            let Some(before) = before else { return Ended::Seen };
            open = before;
        }
        end = start + open.len() as u64;
    }
    Ended::Beyond
}

/// The bytes from `start` to `end`, or as many of them as are still there.
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

/// Where the last newline is. Pieces without one are passed over quickly.
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
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow, rename = "isSidechain")]
    sidechain: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
    // Read in one go: the contents of an answer may be long.
    #[serde(borrow)]
    message: Message<'a>,
}

/// A message of the model.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    model: Raw<'a>,
    #[serde(borrow)]
    usage: Raw<'a>,
}

#[derive(Deserialize)]
struct Counts<'a> {
    #[serde(borrow, rename = "input_tokens")]
    input: Raw<'a>,
    #[serde(borrow, rename = "cache_creation_input_tokens")]
    cache_creation: Raw<'a>,
    #[serde(borrow, rename = "cache_read_input_tokens")]
    cache_read: Raw<'a>,
    #[serde(borrow, rename = "output_tokens")]
    output: Raw<'a>,
}

/// The usage that a line reports, if it is an answer of the one who is meant, and
/// when it was written down.
fn usage_of(line: &[u8], whose: Whose) -> Option<(Usage, Option<Timestamp>)> {
    let line = String::from_utf8_lossy(line);
    // Most lines are something else, and some of those are megabytes long.
    if !(line.contains("\"usage\"") && line.contains("\"assistant\"")) {
        return None;
    }
    let line: Line = serde_json::from_str(&line).ok()?;
    let counts = match whose {
        Whose::Main => !flag(line.sidechain),
        Whose::SubAgent => true,
    };
    if !counts || text(line.kind)? != "assistant" {
        return None;
    }
    let said = text(line.timestamp).and_then(|said| Timestamp::parse(&said).ok());
    Some((reported(&line.message)?, said))
}

/// The usage that a message reports. What the client wrote itself counts
/// nothing; counts that are there and can't be read are unknown.
pub(super) fn reported(message: &Message<'_>) -> Option<Usage> {
    message.usage?;
    let model = text(message.model);
    if model.as_deref() == Some(SYNTHETIC) {
        return None;
    }
    let unread = Usage { request: text(message.id), model, ..Usage::unread() };
    let usage = read(message.usage).and_then(|counts| unread.clone().counted(&counts));
    match usage {
        Some(usage) if usage.is_nothing() => None,
        Some(usage) => Some(usage),
        None => Some(unread),
    }
}

impl Usage {
    /// What an answer used that can't be read.
    fn unread() -> Self {
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

    /// The same with its counts: both directions, and of the cache what is there.
    fn counted(self, counts: &Counts<'_>) -> Option<Self> {
        let cached = |raw: Raw<'_>| raw.map_or(Some(0), |_| read(raw));
        Some(Self {
            input: read(counts.input)?,
            cache_read: cached(counts.cache_read)?,
            cache_creation: cached(counts.cache_creation)?,
            output: read(counts.output)?,
            unknown: false,
            ..self
        })
    }

    /// The model by a name that an event takes. A transcript may hold anything.
    pub(super) fn short_model(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.chars().take(MODEL_CHARS_MAX).collect())
    }

    fn is_nothing(&self) -> bool {
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
    fn last_usage(path: &Path, whose: Whose) -> Option<Usage> {
        let mut asked = 0;
        let found = uncounted(path, whose, |_, _| {
            asked += 1;
            asked > 1
        });
        found.into_iter().next()
    }

    fn found(contents: impl AsRef<[u8]>) -> Option<Usage> {
        in_file(contents, |path| last_usage(path, Whose::Main))
    }

    fn request(contents: impl AsRef<[u8]>) -> Option<String> {
        found(contents).and_then(|usage| usage.request)
    }

    #[test]
    fn the_latest_record_counts() {
        let usage = Usage {
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

    /// The client writes late: two answers may lie there at once that were not there
    /// when it was asked before.
    #[test]
    fn all_that_is_not_counted_is_told_oldest_first() {
        let told = |contents: &str, counted: &[&str]| {
            in_file(contents, |path| {
                let known = |usage: &Usage, _: Option<Timestamp>| {
                    usage.request.as_deref().is_some_and(|request| counted.contains(&request))
                };
                let found = uncounted(path, Whose::Main, known);
                found
                    .into_iter()
                    .map(|usage| (usage.request.unwrap(), usage.input))
                    .collect::<Vec<_>>()
            })
        };
        let of = |id: &str, input| (id.to_owned(), input);
        let three = answer("m1", 1) + &answer("m2", 2) + &answer("m3", 3);
        let none: Vec<(String, u64)> = Vec::new();
        assert_eq!(told(&three, &["m1"]), [of("m2", 2), of("m3", 3)]);
        assert_eq!(told(&three, &["m1", "m2", "m3"]), none);
        // What is below a counted one was counted before, or is another's.
        assert_eq!(told(&three, &["m2"]), [of("m3", 3)]);
        // Several lines of a message are one record.
        let lines = answer("m1", 1) + &answer("m2", 2) + &answer("m2", 7);
        assert_eq!(told(&lines, &["m1"]), [of("m2", 7)]);
        let many: String = (0..99).map(|n| answer(&format!("n{n}"), n)).collect();
        let last: Vec<_> = (83..99).map(|n| of(&format!("n{n}"), n)).collect();
        assert_eq!(told(&many, &[]), last);
    }

    #[test]
    fn messages_without_a_name_are_told_apart_by_their_numbers() {
        let nameless = |input| {
            let mut message = message("", input);
            message["id"] = json!(null);
            line(&json!({"type": "assistant", "message": message}))
        };
        let contents = nameless(1) + &nameless(2) + &nameless(2);
        let inputs: Vec<u64> = in_file(contents, |path| {
            let found = uncounted(path, Whose::Main, |_, _| false);
            found.into_iter().map(|usage| usage.input).collect()
        });
        assert_eq!(inputs, [1, 2]);
    }

    #[test]
    fn a_record_says_when_it_was_written_down() {
        let at = |said: &Value| {
            let line = line(&json!({"type": "assistant", "message": message("m", 1),
                "timestamp": said}));
            let mut seen = None;
            in_file(line, |path| {
                uncounted(path, Whose::Main, |_, said| {
                    seen = said;
                    true
                })
            });
            seen
        };
        let said = at(&json!("2026-01-31T12:00:00.500Z"));
        assert_eq!(said, Timestamp::parse("2026-01-31T12:00:00.500Z").ok());
        assert!(said.is_some());
        for odd in [json!(null), json!("yesterday"), json!(7)] {
            assert_eq!(at(&odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_no_transcript_has_no_usage() {
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
            assert_eq!(last_usage(path, Whose::Main), None, "{}", path.display());
        }
        assert_eq!(found(""), None);
        assert_eq!(found("\n\n\n"), None);
        assert_eq!(found("\0\u{1}{}"), None);
    }

    #[test]
    fn a_link_leads_to_the_transcript() {
        in_file(answer("m1", 1), |path| {
            let link = path.with_extension("link");
            std::os::unix::fs::symlink(path, &link).unwrap();
            assert_eq!(last_usage(&link, Whose::Main), last_usage(path, Whose::Main));
            assert!(last_usage(&link, Whose::Main).is_some());
        });
    }

    #[test]
    fn half_a_line_does_not_count_and_a_whole_one_does_without_its_newline() {
        let (first, second) = (answer("m1", 1), answer("m2", 2));
        assert_eq!(request(first.clone() + second.trim_end()), Some("m2".to_owned()));
        for cut in 1..second.len() - 1 {
            let half = second.as_bytes().get(..cut).unwrap();
            assert_eq!(request([first.as_bytes(), half].concat()), Some("m1".to_owned()), "{cut}");
        }
        // The beginning of a line is missing, as after a rotation.
        assert_eq!(request(second.get(9..).unwrap()), None);
    }

    #[test]
    fn sub_agents_count_in_their_own_transcripts_only() {
        let sub =
            line(&json!({"type": "assistant", "isSidechain": true, "message": message("s", 9)}));
        in_file(answer("m1", 1) + &sub, |path| {
            let whose = |whose| last_usage(path, whose).and_then(|usage| usage.request);
            assert_eq!(whose(Whose::Main), Some("m1".to_owned()));
            assert_eq!(whose(Whose::SubAgent), Some("s".to_owned()));
        });
    }

    #[test]
    fn records_of_another_shape_are_passed_over() {
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
        // What is only beside the counts does not matter.
        let mut odd = message("m2", 2);
        odd["id"] = json!(7);
        let usage = found(line(&json!({"type": "assistant", "message": odd}))).unwrap();
        assert_eq!((usage.request, usage.input, usage.cache_read), (None, 2, 3));
    }

    #[test]
    fn counts_that_nobody_can_read_are_unknown_and_not_none() {
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
            let expected = Usage { request: Some("odd".to_owned()), ..Usage::unread() };
            assert_eq!(found(contents), Some(expected), "{usage}");
        }
    }

    #[test]
    fn an_answer_that_nobody_looks_for_is_unknown_once() {
        let enormous = line(&json!({"type": "user", "result": "x".repeat(5 << 20)}));
        in_file(answer("m1", 1) + &enormous, |path| {
            let told = |counted: bool| uncounted(path, Whose::Main, |_, _| counted);
            assert_eq!(told(false), [Usage::unread()]);
            assert_eq!(told(true), []);
        });
        in_file(answer("m1", 1) + &enormous + &answer("m2", 2), |path| {
            assert_eq!(uncounted(path, Whose::Main, |_, _| true), []);
        });
    }

    #[test]
    fn text_that_is_no_text_is_no_hindrance() {
        let mut bytes = answer("m1", 1).into_bytes();
        let at = bytes.windows(3).position(|three| three == "…".as_bytes()).unwrap();
        bytes.splice(at..at + 3, [0xff, 0xfe, 0x80]);
        assert_eq!(request([bytes.as_slice(), b"\xff\xff\n\xc3"].concat()), Some("m1".to_owned()));
    }

    #[test]
    fn megabytes_of_results_are_looked_through_up_to_a_bound() {
        let result = |bytes: usize| {
            line(&json!({"type": "user", "message": {"content": "x".repeat(bytes)}}))
        };
        for bytes in [65_000, 66_000, 600_000, 3 << 20] {
            let contents = answer("m1", 1) + &result(bytes) + &result(10);
            assert_eq!(request(contents), Some("m1".to_owned()), "{bytes}");
        }
        assert_eq!(request(answer("m1", 1) + &result(5 << 20)), None);
        // A long answer is one too.
        let mut long = message("m2", 2);
        long["content"] = json!("y".repeat(1 << 20));
        let long = line(&json!({"type": "assistant", "message": long}));
        assert_eq!(request(answer("m1", 1) + &long), Some("m2".to_owned()));
    }

    #[test]
    fn a_file_may_shrink_or_grow_meanwhile() {
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
            assert_eq!(last_usage(path, Whose::Main).unwrap().input, 1);
        });
    }

    /// The same, by reading everything from the beginning.
    fn plainly(contents: &[u8], whose: Whose) -> Option<Usage> {
        let mut last = None;
        for line in contents.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_str::<Value>(&String::from_utf8_lossy(line)) else {
                continue;
            };
            let (message, usage) = (&line["message"], &line["message"]["usage"]);
            let mine = whose == Whose::SubAgent || line["isSidechain"] != json!(true);
            let synthetic = message["model"] == json!("<synthetic>");
            if line["type"] != json!("assistant") || !mine || synthetic || usage.is_null() {
                continue;
            }
            let word = |name: &str| message[name].as_str().map(ToOwned::to_owned);
            let unread = Usage { request: word("id"), model: word("model"), ..Usage::unread() };
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
                    Some(Usage {
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
        let made = parts.prop_map(|(kind, side, id, model, counts, pad)| {
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
        prop_oneof![6 => made, 1 => noise]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn it_is_what_a_plain_reader_finds(
            lines in prop::collection::vec(any_line(), 0..12),
            cut in 0..200_usize,
        ) {
            let mut contents = lines.join(&b'\n');
            // The last line may be half a line.
            contents.truncate(contents.len().saturating_sub(cut.saturating_sub(100)));
            for whose in [Whose::Main, Whose::SubAgent] {
                let found = in_file(&contents, |path| last_usage(path, whose));
                if contents.len() < 4 << 20 {
                    prop_assert_eq!(&found, &plainly(&contents, whose));
                }
            }
        }
    }
}
