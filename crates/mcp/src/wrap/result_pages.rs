//! Shortens a result that is too long for a model's context to its first page, with a cursor for
//! the rest.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use jackline_engine::CallStatus;
use jackline_engine::event::ShownLines;
use jackline_engine::facts::OutputFact;
use jackline_engine::output_page::{PageLimits, describe_page, first_part};
use jackline_journal::StoreError;
use jackline_runtime::spill::{OutputPage, PageCursor, Spill, file_uri};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::lone_surrogates::replace_lone_surrogates;
use super::open_requests::OpenRequest;
use super::tool_result::{McpToolResult, ResultItem, own_answer, result_text, text_item};
use crate::page_tool::{PAGE_TOOL, parse_cursor_argument};

/// How many bytes of a page are reserved for Jackline's own text.
const OWN_TEXT_BYTES: usize = 2 << 10;

/// The longest unknown field of a result that is passed on.
const UNKNOWN_FIELD_BYTES_MAX: usize = 4 << 10;

/// The shortest length to which a text in structured content is cut.
const CUT_BYTES_MIN: usize = 128;

/// The maximum length of the text that marks a cut.
const CUT_NOTE_BYTES_MAX: usize = 112;

/// How many left-out items get their own file; the rest share one file.
const LEFT_OUT_FILES_MAX: usize = 8;

/// How many results are remembered whose pages were not all shown.
const UNREAD_RESULTS_MAX: usize = 64;

/// The code of an error whose own code can't be parsed.
const INTERNAL_ERROR: i64 = -32603;

/// The metadata key of the page information for programs.
const PAGE_META_KEY: &str = "jackline/page";

/// Whether the client supports resource links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkSupport {
    /// The client supports items that link to a resource.
    Supported,
    /// The client uses an older version.
    Unsupported,
}

/// What the client and the tool need of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRequirements {
    pub(super) links: LinkSupport,
    /// Whether the client accepts no result without structured content.
    pub(super) insists: bool,
    /// The largest number of lines, if lines are limited.
    pub(super) lines_max: Option<u64>,
}

/// Shortens results and shows their pages.
#[derive(Debug)]
pub(super) struct ResultPages {
    spill: Spill,
    bytes_max: usize,
    /// Results with pages that were not shown yet, the oldest first.
    unread: VecDeque<UnreadResult>,
    /// The results whose pages have a limited number of lines, and the limit; the oldest first.
    line_limits: VecDeque<(u64, u64)>,
}

/// A result that is shown in pages.
#[derive(Debug)]
struct UnreadResult {
    number: u64,
    bytes: u64,
    /// How many bytes from the start were shown without a gap.
    shown_bytes: u64,
    /// The file contents that the result shows, once all of it was shown.
    shows: Vec<ShownLines>,
}

/// A shortened result.
#[derive(Debug)]
pub(super) struct ShortenedResult {
    /// The result for the client.
    pub(super) result: String,
    /// The sizes, for the guards.
    pub(super) fact: OutputFact,
    /// The number of the stored text, and how much of it is shown, if pages are left.
    unread_text: Option<(u64, ShownLength)>,
}

/// How much of a text is shown.
#[derive(Debug, Clone, Copy)]
struct ShownLength {
    shown: usize,
    bytes: usize,
}

impl ResultPages {
    pub(super) fn new(spill: Spill, bytes_max: usize) -> Self {
        Self { spill, bytes_max, unread: VecDeque::new(), line_limits: VecDeque::new() }
    }

    /// Remembers which file contents a result shows. They count once its last page was shown.
    pub(super) fn remember_unread(&mut self, shortened: &ShortenedResult, shows: Vec<ShownLines>) {
        let Some((number, ShownLength { shown, bytes })) = shortened.unread_text else { return };
        if shows.is_empty() {
            return;
        }
        if self.unread.len() >= UNREAD_RESULTS_MAX {
            self.unread.pop_front();
        }
        let (bytes, to) = (bytes as u64, shown as u64);
        self.unread.push_back(UnreadResult { number, bytes, shown_bytes: to, shows });
    }

    /// Notes that a page was shown. Returns the file contents that all pages together have shown.
    fn note_shown_page(&mut self, page: &OutputPage) -> Vec<ShownLines> {
        let is_same_result = |unread: &UnreadResult| unread.number == page.cursor.number;
        let Some(at) = self.unread.iter().position(is_same_result) else { return Vec::new() };
        let Some(unread) = self.unread.get_mut(at) else { return Vec::new() };
        if page.cursor.offset <= unread.shown_bytes {
            unread.shown_bytes =
                unread.shown_bytes.max(page.cursor.offset + page.text.len() as u64);
        }
        if unread.shown_bytes < unread.bytes {
            return Vec::new();
        }
        self.unread.remove(at).map(|unread| unread.shows).unwrap_or_default()
    }

    /// The first page of a result; `None` if the result is short enough.
    pub(super) fn shorten(
        &mut self,
        result: &str,
        asked: PageRequirements,
    ) -> Option<ShortenedResult> {
        // A line end in a text of a message has two characters.
        let lines_max = asked.lines_max.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        let may_have_many_lines = lines_max.is_some_and(|max| result.matches("\\n").count() >= max);
        if result.len() <= self.bytes_max && !may_have_many_lines {
            return None;
        }
        let parsed = McpToolResult::parse(result)?;
        let items = parsed.items();
        let bytes = parsed.size(&items);
        let text = joined_text(&parsed, &items);
        let line_limit = PageLimits { lines_max: asked.lines_max, bytes_max: usize::MAX };
        if bytes <= self.bytes_max && !line_limit.is_exceeded_by(&text) {
            return None;
        }
        let mut shortened = self.first_page(result, (&parsed, &items), &text, asked);
        shortened.fact.bytes = bytes as u64;
        shortened.fact.shown = shortened.result.len() as u64;
        if let (Some(max), Some((number, _))) = (asked.lines_max, shortened.unread_text) {
            if self.line_limits.len() >= UNREAD_RESULTS_MAX {
                self.line_limits.pop_front();
            }
            self.line_limits.push_back((number, max));
        }
        Some(shortened)
    }

    fn first_page(
        &mut self,
        result: &str,
        (parsed, items): (&McpToolResult<'_>, &[ResultItem<'_>]),
        full_text: &str,
        asked: PageRequirements,
    ) -> ShortenedResult {
        let PageRequirements { links, insists, lines_max } = asked;
        let mut room = self.bytes_max.saturating_sub(OWN_TEXT_BYTES);
        let half = self.page_bytes();
        let line_limit = PageLimits { lines_max, bytes_max: usize::MAX };
        let whole_max = line_limit.first_page(full_text).len();
        let repeats_text = whole_max < full_text.len() && parsed.structured.is_some();
        let structured = parsed.structured.filter(|raw| raw.get().len() <= half && !repeats_text);
        room -= structured.map_or(0, |raw| raw.get().len());

        let (mut others, mut left_out): (Vec<Value>, Vec<&ResultItem<'_>>) =
            (Vec::new(), Vec::new());
        for item in items {
            match item.text() {
                Some(_) => {}
                None if item.raw.len() <= room / 2 => {
                    room -= item.raw.len();
                    let value = serde_json::from_str(item.raw);
                    others.push(value.unwrap_or_else(|_| text_item(item.raw)));
                }
                None => left_out.push(item),
            }
        }
        others.extend(self.store_left_out_items(&left_out));
        let mut stored = None;
        let long = parsed.structured.filter(|_| structured.is_none());
        let whole = (full_text, whole_max);
        let short = long.map(|raw| self.cut_texts(raw, half, whole, &mut stored));
        let limits = PageLimits { lines_max, bytes_max: half.min(room) };
        let shown = limits.first_page(full_text);
        // Some clients show only one of the two, so both must continue at the same position.
        let same_to = short.as_ref().and_then(|short| short.as_ref()?.1);
        let shown = same_to.and_then(|to| shown.get(..to)).unwrap_or(shown);
        let cut = (shown.len() < full_text.len()).then(|| {
            let result_of_storing = stored.take().map_or_else(|| self.spill.store(full_text), Ok);
            stored = result_of_storing.as_ref().ok().cloned();
            note_for_rest(result_of_storing, full_text, shown, links)
        });

        let mut content: Vec<Value> = Vec::new();
        if !shown.is_empty() {
            content.push(text_item(shown));
        }
        content.append(&mut others);
        let mut page = Map::new();
        let described = describe_page(full_text, shown, 1);
        if let Some(rest) = cut {
            content.extend(rest.items);
            page = rest.meta;
            if let Some(lines) = described.lines {
                page.insert("lines_shown".to_owned(), json!(lines.shown));
                page.insert(
                    "lines_remaining".to_owned(),
                    json!(lines.total.saturating_sub(lines.shown)),
                );
            }
        }
        let mut fields = Map::new();
        if parsed.has_content_field() {
            let (small, large) = fields_by_size(result, half);
            fields = small;
            content
                .extend(large.into_iter().map(|(name, raw)| self.store_left_out_field(&name, raw)));
        } else if parsed.is_error() {
            fields.insert("isError".to_owned(), Value::Bool(true));
        }
        match short {
            Some(Some((short, _))) => {
                fields.insert("structuredContent".to_owned(), short);
            }
            Some(None) => {
                content.push(text_item(
                    "jackline: the structured result is too long and was left out",
                ));
                if insists {
                    fields.insert("isError".to_owned(), Value::Bool(true));
                }
            }
            None => {}
        }
        fields.insert("content".to_owned(), Value::Array(content));
        if let Some(meta) = fields.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
            meta.insert(PAGE_META_KEY.to_owned(), Value::Object(page));
        }
        let number = stored.as_ref().map(|(number, _)| *number);
        let file = stored.map(|(_, path)| path.display().to_string());
        ShortenedResult {
            result: Value::Object(fields).to_string(),
            fact: OutputFact { file, ..described },
            unread_text: number
                .map(|number| (number, ShownLength { shown: shown.len(), bytes: full_text.len() })),
        }
    }

    /// Handles items that are too long and are not text, so that they can't be cut.
    fn store_left_out_items(&mut self, items: &[&ResultItem<'_>]) -> Vec<Value> {
        let own_files =
            if items.len() > LEFT_OUT_FILES_MAX { LEFT_OUT_FILES_MAX - 1 } else { items.len() };
        let (own_files, shared_file) = items.split_at_checked(own_files).unwrap_or((items, &[]));
        let mut notes: Vec<Value> =
            own_files.iter().map(|item| self.store_with_note(&item.describe(), item.raw)).collect();
        if !shared_file.is_empty() {
            let raw = shared_file.iter().map(|item| item.raw).collect::<Vec<_>>().join("\n");
            let what = format!("[{} more items, {} bytes]", shared_file.len(), raw.len());
            notes.push(self.store_with_note(&what, &raw));
        }
        notes
    }

    /// Handles an unknown field that is too long.
    fn store_left_out_field(&mut self, name: &str, raw: &RawValue) -> Value {
        let name: String = name.chars().take(64).collect();
        self.store_with_note(&format!("[field `{name}`, {} bytes]", raw.get().len()), raw.get())
    }

    /// Stores data that is not shown, and returns a note with its file.
    fn store_with_note(&mut self, what: &str, raw: &str) -> Value {
        let location = match self.spill.store(raw) {
            Ok((_, path)) => format!("it is stored in `{}` as the server sent it", path.display()),
            Err(error) => format!("it could not be stored: {error}"),
        };
        text_item(&format!("jackline: {what} is too long to be shown; {location}"))
    }

    /// A shortened error; `None` if the server's own error is short enough.
    pub(super) fn shorten_error(&mut self, error: &str) -> Option<Value> {
        if error.len() <= self.bytes_max {
            return None;
        }
        let readable: Value =
            serde_json::from_str(&replace_lone_surrogates(error)).unwrap_or_default();
        let code = readable.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR);
        let message = readable.get("message").and_then(Value::as_str).unwrap_or_default();
        let shown = first_part(message, self.page_bytes());
        let (next, note) = match self.spill.store(error) {
            Ok((number, path)) => {
                let next = PageCursor { number, offset: 0 }.to_string();
                let note = format!(
                    "read all of it with `{PAGE_TOOL}` {{\"cursor\":\"{next}\"}}; it is stored in `{}`",
                    path.display()
                );
                (Some(next), note)
            }
            Err(failed) => (None, format!("the rest could not be stored: {failed}")),
        };
        let bytes = error.len();
        let message = format!("{shown}\njackline: the error has {bytes} bytes; {note}");
        let data = json!({
            "by": "jackline", "kind": "error_cut", "bytes": bytes, "next_cursor": next,
        });
        Some(json!({ "code": code, "message": message, "data": data }))
    }

    /// The maximum size of a page. The other half is reserved for the structured content. Clients
    /// also have limits: some write more than 50 000 characters to a file.
    fn page_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(OWN_TEXT_BYTES) / 2
    }

    /// Cuts the long texts of structured content, which keeps its shape, so that most schemas still
    /// accept it. Each cut text ends with a cursor, because many clients show only the structured
    /// content. If one of the texts is the whole text, it is stored only once and cut after
    /// `whole_max` bytes, and the result contains how much of it is shown. Returns `None` if the
    /// content is still too long.
    fn cut_texts(
        &mut self,
        raw: &RawValue,
        most: usize,
        (whole, whole_max): (&str, usize),
        stored: &mut Option<(u64, PathBuf)>,
    ) -> Option<(Value, Option<usize>)> {
        let mut value: Value = serde_json::from_str(&replace_lone_surrogates(raw.get())).ok()?;
        let mut whole_shown = None;
        let mut texts_max = most - most / 4;
        loop {
            let mut short = value.clone();
            let cut = LongTextCut { most: texts_max, whole, whole_max };
            cut_long_texts(&mut short, cut, &mut |_, _| "x".repeat(CUT_NOTE_BYTES_MAX));
            if short.to_string().len() <= most {
                break;
            }
            texts_max /= 2;
            if texts_max < CUT_BYTES_MIN {
                return None;
            }
        }
        let cut = LongTextCut { most: texts_max, whole, whole_max };
        cut_long_texts(&mut value, cut, &mut |text, shown| {
            let number = if text == whole {
                whole_shown = Some(shown);
                *stored = stored.take().or_else(|| self.spill.store(text).ok());
                stored.as_ref().map(|(number, _)| *number)
            } else {
                self.spill.store(text).ok().map(|(number, _)| number)
            };
            let Some(number) = number else { return "\n[jackline: cut]".to_owned() };
            let next = PageCursor { number, offset: shown as u64 };
            format!("\n[jackline: cut; continue with `{PAGE_TOOL}` {{\"cursor\":\"{next}\"}}]")
        });
        Some((value, whole_shown))
    }

    /// Shows the next page.
    pub(super) fn show_page(
        &mut self,
        open: &OpenRequest,
        arguments: Option<&Value>,
    ) -> ResultPageAnswer {
        let page = parse_cursor_argument(arguments).and_then(|cursor| {
            let page = self.spill.page(cursor, self.page_bytes());
            page.map(|page| self.limit_lines(page)).map_err(|error| error.to_string())
        });
        match page {
            Ok(page) => {
                let rest = PageNote::of(&page, None);
                let content = [vec![text_item(&page.text)], rest.items].concat();
                let mut result = own_answer(open, content, false);
                result.insert("_meta".to_owned(), json!({ PAGE_META_KEY: rest.meta }));
                let (from, bytes) = (page.cursor.offset, page.bytes);
                let summary =
                    format!("bytes {from} to {} of {bytes}", from + page.text.len() as u64);
                let (result, seen) =
                    (Value::Object(result).to_string(), self.note_shown_page(&page));
                ResultPageAnswer { result, text: summary, status: CallStatus::Ok, seen }
            }
            Err(why) => {
                let error_text = format!("jackline: {why}");
                let result = own_answer(open, vec![text_item(&error_text)], true);
                let (result, seen) = (Value::Object(result).to_string(), Vec::new());
                ResultPageAnswer { result, text: error_text, status: CallStatus::Error, seen }
            }
        }
    }

    /// Limits a page to the lines that the result may show at once.
    fn limit_lines(&self, page: OutputPage) -> OutputPage {
        let limited = self.line_limits.iter().find(|(number, _)| *number == page.cursor.number);
        let Some((_, lines_max)) = limited else { return page };
        let limits = PageLimits { lines_max: Some(*lines_max), bytes_max: page.text.len() };
        OutputPage { text: limits.first_page(&page.text).to_owned(), ..page }
    }

    /// Removes the stored texts.
    pub(super) fn remove(&self) {
        self.spill.remove();
    }
}

/// The note about the second page of a text, if the text could be stored.
fn note_for_rest(
    stored: Result<(u64, PathBuf), StoreError>,
    whole: &str,
    shown: &str,
    links: LinkSupport,
) -> PageNote {
    match stored {
        Ok((number, path)) => {
            let (text, cursor) = (shown.to_owned(), PageCursor { number, offset: 0 });
            let page = OutputPage { text, cursor, bytes: whole.len() as u64 };
            PageNote::of(&page, Some((&path, links)))
        }
        Err(error) => {
            let text = format!(
                "jackline: only the first {} of {} bytes are shown; the rest could not be \
                stored: {error}",
                shown.len(),
                whole.len()
            );
            PageNote { items: vec![text_item(&text)], meta: Map::new() }
        }
    }
}

/// A page that was shown.
#[derive(Debug)]
pub(super) struct ResultPageAnswer {
    /// The result of the call.
    pub(super) result: String,
    /// The text for the guards, which have seen the complete result before.
    pub(super) text: String,
    pub(super) status: CallStatus,
    /// The file contents that all pages together have shown, if this was the last page.
    pub(super) seen: Vec<ShownLines>,
}

/// The note after a page.
struct PageNote {
    items: Vec<Value>,
    meta: Map<String, Value>,
}

impl PageNote {
    fn of(page: &OutputPage, file: Option<(&Path, LinkSupport)>) -> Self {
        let (from, bytes) = (page.cursor.offset, page.bytes);
        let to = from + page.text.len() as u64;
        let next = page.next().map(|next| next.to_string());
        let how_to_continue = next.as_ref().map_or_else(
            || "end of the output".to_owned(),
            |next| {
                format!(
                    "continue with `{PAGE_TOOL}` {{\"cursor\":\"{next}\"}}, or request less data"
                )
            },
        );
        let stored_in = file.map_or_else(String::new, |(path, _)| {
            format!("; all of it is stored in `{}`", path.display())
        });
        let note =
            format!("jackline: bytes {from} to {to} of {bytes}; {how_to_continue}{stored_in}");
        let link = file.filter(|(_, links)| *links == LinkSupport::Supported).map(|(path, _)| {
            json!({
                "type": "resource_link",
                "uri": file_uri(path),
                "name": path.file_name().unwrap_or_default().to_string_lossy(),
                "mimeType": "text/plain",
                "size": bytes,
            })
        });
        let mut meta = Map::new();
        meta.insert("bytes_shown".to_owned(), json!(page.text.len()));
        meta.insert("bytes_remaining".to_owned(), json!(bytes - to.min(bytes)));
        meta.insert("has_more".to_owned(), json!(next.is_some()));
        meta.insert("next_cursor".to_owned(), json!(next));
        Self { items: std::iter::once(text_item(&note)).chain(link).collect(), meta }
    }
}

/// Splits the other fields of a result into those that are passed on and those that are too long.
fn fields_by_size(result: &str, half: usize) -> (Map<String, Value>, BTreeMap<String, &RawValue>) {
    let mut large: BTreeMap<String, &RawValue> = serde_json::from_str(result).unwrap_or_default();
    large.remove("content");
    let mut small = Map::new();
    large.retain(|key, raw| {
        let is_structured = key == "structuredContent";
        let most = if is_structured { half } else { UNKNOWN_FIELD_BYTES_MAX };
        if raw.get().len() > most {
            return !is_structured;
        }
        small.extend(
            serde_json::from_str(&replace_lone_surrogates(raw.get()))
                .ok()
                .map(|it| (key.clone(), it)),
        );
        false
    });
    (small, large)
}

/// How texts are cut.
#[derive(Clone, Copy)]
struct LongTextCut<'t> {
    /// The longest text that is not cut.
    most: usize,
    /// The text of the whole result, of which at most `whole_max` bytes are shown.
    whole: &'t str,
    whole_max: usize,
}

impl LongTextCut<'_> {
    /// The part of a text that is shown, if the text is cut.
    fn shown_part<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_long = text.len() > self.most;
        let bytes_max =
            if is_long { self.most.saturating_sub(CUT_NOTE_BYTES_MAX) } else { text.len() };
        let lines_end = if text == self.whole { self.whole_max } else { text.len() };
        let shown = first_part(text.get(..lines_end).unwrap_or(text), bytes_max);
        (shown.len() < text.len()).then_some(shown)
    }
}

/// Cuts the long texts in a value. `mark` returns the text that follows the cut; it gets the text
/// and how much of it is shown.
fn cut_long_texts(
    value: &mut Value,
    cut: LongTextCut<'_>,
    mark: &mut dyn FnMut(&str, usize) -> String,
) {
    match value {
        Value::String(text) => {
            if let Some(shown) = cut.shown_part(text) {
                *text = format!("{shown}{}", mark(text, shown.len()));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_long_texts(item, cut, mark)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|item| cut_long_texts(item, cut, mark));
        }
        _ => {}
    }
}

/// The texts of a result, joined. A result without items is its structured content.
fn joined_text<'t>(parsed: &McpToolResult<'_>, items: &'t [ResultItem<'_>]) -> Cow<'t, str> {
    let texts: Vec<&str> = items.iter().filter_map(ResultItem::text).collect();
    match texts.as_slice() {
        [] if items.is_empty() => Cow::Owned(result_text(parsed, items)),
        [one] => Cow::Borrowed(*one),
        texts => Cow::Owned(texts.join("\n")),
    }
}
