//! A result that is too long for a context becomes its first page, and a way to the rest.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use jackline_engine::Status;
use jackline_engine::event::Seen;
use jackline_engine::facts::OutputFact;
use jackline_journal::StoreError;
use jackline_runtime::spill::{Cursor, Page, Spill, file_uri, first_part};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ledger::Open;
use super::lossy::lossy;
use super::result::{Item, ToolResult, own_answer, said, text_item};
use crate::page::{PAGE, cursor};

/// What is left of a page for our own words.
const OWN_BYTES: usize = 2 << 10;

/// A field of a result that nobody knows is kept up to this length.
const FIELD_BYTES_MAX: usize = 4 << 10;

/// The shortest that a text within structured content is cut to.
const CUT_BYTES_MIN: usize = 128;

/// How long the words are that say so, at most.
const MARK_BYTES_MAX: usize = 112;

/// How many items that are left out lie in a file of their own; the rest lie in one.
const LEFT_OUT_MAX: usize = 8;

/// How many results are remembered of which not all pages were turned to.
const UNREAD_MAX: usize = 64;

/// The code of an error whose own can't be read.
const INTERNAL_ERROR: i64 = -32603;

/// Where programs find what people read in the note.
const META: &str = "jackline/page";

/// Which words a client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// It knows items that point to a resource.
    Known,
    /// It is older.
    Unknown,
}

/// Shortens results, and turns their pages.
#[derive(Debug)]
pub(super) struct Pages {
    spill: Spill,
    bytes_max: usize,
    /// Results of which pages are left, the oldest first.
    unread: VecDeque<Unread>,
}

/// A result that is shown in pages.
#[derive(Debug)]
struct Unread {
    number: u64,
    bytes: u64,
    /// How far it was shown without a gap.
    to: u64,
    /// What it shows of files once all of it was shown.
    shows: Vec<Seen>,
}

/// A result that was too long.
#[derive(Debug)]
pub(super) struct Shortened {
    /// What the client gets instead.
    pub(super) result: String,
    /// The same in figures.
    pub(super) fact: OutputFact,
    /// Its text, where pages of it are left: its number, and how far it is shown.
    rest: Option<(u64, Cut)>,
}

/// How much is shown of a text.
#[derive(Debug, Clone, Copy)]
struct Cut {
    shown: usize,
    bytes: usize,
}

impl Pages {
    pub(super) fn new(spill: Spill, bytes_max: usize) -> Self {
        Self { spill, bytes_max, unread: VecDeque::new() }
    }

    /// Remembers what a result shows of files, once its last page was turned to.
    pub(super) fn remember(&mut self, shortened: &Shortened, shows: Vec<Seen>) {
        let Some((number, Cut { shown, bytes })) = shortened.rest else { return };
        if shows.is_empty() {
            return;
        }
        if self.unread.len() >= UNREAD_MAX {
            self.unread.pop_front();
        }
        let (bytes, to) = (bytes as u64, shown as u64);
        self.unread.push_back(Unread { number, bytes, to, shows });
    }

    /// A page was turned to; gives what was shown of files by all pages together.
    fn turned(&mut self, page: &Page) -> Vec<Seen> {
        let is_it = |unread: &Unread| unread.number == page.cursor.number;
        let Some(at) = self.unread.iter().position(is_it) else { return Vec::new() };
        let Some(unread) = self.unread.get_mut(at) else { return Vec::new() };
        if page.cursor.offset <= unread.to {
            unread.to = unread.to.max(page.cursor.offset + page.text.len() as u64);
        }
        if unread.to < unread.bytes {
            return Vec::new();
        }
        self.unread.remove(at).map(|unread| unread.shows).unwrap_or_default()
    }

    /// The first page of a result; none where it is short enough. `insists` says that
    /// the client takes no result without structured content.
    pub(super) fn shorten(
        &mut self,
        result: &str,
        links: Links,
        insists: bool,
    ) -> Option<Shortened> {
        if result.len() <= self.bytes_max {
            return None;
        }
        let parsed = ToolResult::parse(result)?;
        let items = parsed.items();
        let bytes = parsed.size(&items);
        if bytes <= self.bytes_max {
            return None;
        }
        let mut shortened = self.first_page(result, &parsed, &items, links, insists);
        shortened.fact.bytes = bytes as u64;
        shortened.fact.shown = shortened.result.len() as u64;
        Some(shortened)
    }

    fn first_page(
        &mut self,
        result: &str,
        parsed: &ToolResult<'_>,
        items: &[Item<'_>],
        links: Links,
        insists: bool,
    ) -> Shortened {
        let mut room = self.bytes_max.saturating_sub(OWN_BYTES);
        let half = self.page_bytes();
        let structured = parsed.structured.filter(|raw| raw.get().len() <= half);
        room -= structured.map_or(0, |raw| raw.get().len());

        let (mut others, mut left_out): (Vec<Value>, Vec<&Item<'_>>) = (Vec::new(), Vec::new());
        let mut texts: Vec<&str> = Vec::new();
        for item in items {
            match item.text() {
                Some(text) => texts.push(text),
                None if item.raw.len() <= room / 2 => {
                    room -= item.raw.len();
                    let value = serde_json::from_str(item.raw);
                    others.push(value.unwrap_or_else(|_| text_item(item.raw)));
                }
                None => left_out.push(item),
            }
        }
        others.extend(self.left_out(&left_out));
        let whole = match texts.as_slice() {
            [] if items.is_empty() => Cow::Owned(said(parsed, items)),
            [one] => Cow::Borrowed(*one),
            texts => Cow::Owned(texts.join("\n")),
        };
        let mut kept = None;
        let long = parsed.structured.filter(|_| structured.is_none());
        let short = long.map(|raw| self.cut_texts(raw, half, &whole, &mut kept));
        let shown = first_part(&whole, half.min(room));
        // Who sees only one of the two goes on where the other does.
        let same_to = short.as_ref().and_then(|short| short.as_ref()?.1);
        let shown = same_to.and_then(|to| shown.get(..to)).unwrap_or(shown);
        let cut = (shown.len() < whole.len()).then(|| {
            let tried = kept.take().map_or_else(|| self.spill.keep(&whole), Ok);
            kept = tried.as_ref().ok().cloned();
            rest_of(tried, &whole, shown, links)
        });

        let mut content: Vec<Value> = Vec::new();
        if !shown.is_empty() {
            content.push(text_item(shown));
        }
        content.append(&mut others);
        let mut page = Map::new();
        if let Some(rest) = cut {
            content.extend(rest.items);
            page = rest.meta;
        }
        let mut fields = Map::new();
        if parsed.is_readable() {
            let (small, large) = fields_by_size(result, half);
            fields = small;
            content.extend(large.into_iter().map(|(name, raw)| self.field_left_out(&name, raw)));
        } else if parsed.is_error() {
            fields.insert("isError".to_owned(), Value::Bool(true));
        }
        match short {
            Some(Some((short, _))) => {
                fields.insert("structuredContent".to_owned(), short);
            }
            Some(None) => {
                content.push(text_item(
                    "jackline: the structured result is too long to be shown, and was left out",
                ));
                if insists {
                    fields.insert("isError".to_owned(), Value::Bool(true));
                }
            }
            None => {}
        }
        fields.insert("content".to_owned(), Value::Array(content));
        if let Some(meta) = fields.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
            meta.insert(META.to_owned(), Value::Object(page));
        }
        let number = kept.as_ref().map(|(number, _)| *number);
        let file = kept.map(|(_, path)| path.display().to_string());
        Shortened {
            result: Value::Object(fields).to_string(),
            fact: OutputFact { file, ..OutputFact::default() },
            rest: number.map(|number| (number, Cut { shown: shown.len(), bytes: whole.len() })),
        }
    }

    /// Items that are too long, and no texts that could be cut.
    fn left_out(&mut self, items: &[&Item<'_>]) -> Vec<Value> {
        let alone = if items.len() > LEFT_OUT_MAX { LEFT_OUT_MAX - 1 } else { items.len() };
        let (alone, together) = items.split_at_checked(alone).unwrap_or((items, &[]));
        let mut notes: Vec<Value> =
            alone.iter().map(|item| self.kept_away(&item.describe(), item.raw)).collect();
        if !together.is_empty() {
            let raw = together.iter().map(|item| item.raw).collect::<Vec<_>>().join("\n");
            let what = format!("[{} more items, {} bytes]", together.len(), raw.len());
            notes.push(self.kept_away(&what, &raw));
        }
        notes
    }

    /// A field that nobody knows, and that is too long.
    fn field_left_out(&mut self, name: &str, raw: &RawValue) -> Value {
        let name: String = name.chars().take(64).collect();
        self.kept_away(&format!("[field `{name}`, {} bytes]", raw.get().len()), raw.get())
    }

    /// Says where something lies that is not shown.
    fn kept_away(&mut self, what: &str, raw: &str) -> Value {
        let kept = match self.spill.keep(raw) {
            Ok((_, path)) => format!("it lies in `{}`, as the server sent it", path.display()),
            Err(error) => format!("it could not be kept: {error}"),
        };
        text_item(&format!("jackline: {what} is too long to be shown; {kept}"))
    }

    /// An error that is short enough for a context; none where the server's own is.
    pub(super) fn shorten_error(&mut self, error: &str) -> Option<Value> {
        if error.len() <= self.bytes_max {
            return None;
        }
        let readable: Value = serde_json::from_str(&lossy(error)).unwrap_or_default();
        let code = readable.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR);
        let message = readable.get("message").and_then(Value::as_str).unwrap_or_default();
        let shown = first_part(message, self.page_bytes());
        let (next, note) = match self.spill.keep(error) {
            Ok((number, path)) => {
                let next = Cursor { number, offset: 0 }.to_string();
                let note = format!(
                    "read all of it with `{PAGE}` {{\"cursor\":\"{next}\"}}; it lies in `{}` for now",
                    path.display()
                );
                (Some(next), note)
            }
            Err(failed) => (None, format!("the rest could not be kept: {failed}")),
        };
        let bytes = error.len();
        let message = format!("{shown}\njackline: the error has {bytes} bytes; {note}");
        let data = json!({
            "by": "jackline", "kind": "error_cut", "bytes": bytes, "next_cursor": next,
        });
        Some(json!({ "code": code, "message": message, "data": data }))
    }

    /// How long a page may be. The other half is for the same as structured content; and
    /// clients show no long ones: some put more than 50 000 characters into a file.
    fn page_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(OWN_BYTES) / 2
    }

    /// Structured content with its long texts cut: it keeps its shape, and most schemas
    /// still hold. Many clients show nothing else, so each text goes on where it was cut.
    /// How far `whole` is shown comes with it, where that is one of them; it is kept once.
    /// None where that is not enough.
    fn cut_texts(
        &mut self,
        raw: &RawValue,
        most: usize,
        whole: &str,
        kept: &mut Option<(u64, PathBuf)>,
    ) -> Option<(Value, Option<usize>)> {
        let mut value: Value = serde_json::from_str(&lossy(raw.get())).ok()?;
        let mut whole_to = None;
        let mut texts_max = most - most / 4;
        loop {
            let mut short = value.clone();
            cut_each(&mut short, texts_max, &mut |_, _| "x".repeat(MARK_BYTES_MAX));
            if short.to_string().len() <= most {
                break;
            }
            texts_max /= 2;
            if texts_max < CUT_BYTES_MIN {
                return None;
            }
        }
        cut_each(&mut value, texts_max, &mut |text, shown| {
            let number = if text == whole {
                whole_to = Some(shown);
                *kept = kept.take().or_else(|| self.spill.keep(text).ok());
                kept.as_ref().map(|(number, _)| *number)
            } else {
                self.spill.keep(text).ok().map(|(number, _)| number)
            };
            let Some(number) = number else { return "\n[jackline: cut]".to_owned() };
            let next = Cursor { number, offset: shown as u64 };
            format!("\n[jackline: cut; go on with `{PAGE}` {{\"cursor\":\"{next}\"}}]")
        });
        Some((value, whole_to))
    }

    /// The next page.
    pub(super) fn turn(&mut self, open: &Open, arguments: Option<&Value>) -> Turned {
        let page = cursor(arguments).and_then(|cursor| {
            let page = self.spill.page(cursor, self.page_bytes());
            page.map_err(|error| error.to_string())
        });
        match page {
            Ok(page) => {
                let rest = Rest::of(&page, None);
                let content = [vec![text_item(&page.text)], rest.items].concat();
                let mut result = own_answer(open, content, false);
                result.insert("_meta".to_owned(), json!({ META: rest.meta }));
                let (from, bytes) = (page.cursor.offset, page.bytes);
                let said = format!("bytes {from} to {} of {bytes}", from + page.text.len() as u64);
                let (result, seen) = (Value::Object(result).to_string(), self.turned(&page));
                Turned { result, said, status: Status::Ok, seen }
            }
            Err(why) => {
                let said = format!("jackline: {why}");
                let result = own_answer(open, vec![text_item(&said)], true);
                let (result, seen) = (Value::Object(result).to_string(), Vec::new());
                Turned { result, said, status: Status::Error, seen }
            }
        }
    }

    /// Lets go of what was kept.
    pub(super) fn remove(&self) {
        self.spill.remove();
    }
}

/// Says where the second page of a text begins, if it was kept.
fn rest_of(
    kept: Result<(u64, PathBuf), StoreError>,
    whole: &str,
    shown: &str,
    links: Links,
) -> Rest {
    match kept {
        Ok((number, path)) => {
            let (text, cursor) = (shown.to_owned(), Cursor { number, offset: 0 });
            let page = Page { text, cursor, bytes: whole.len() as u64 };
            Rest::of(&page, Some((&path, links)))
        }
        Err(error) => {
            let text = format!(
                "jackline: only the first {} of {} bytes are shown, and the rest could not be \
                 kept: {error}",
                shown.len(),
                whole.len()
            );
            Rest { items: vec![text_item(&text)], meta: Map::new() }
        }
    }
}

/// A page that was turned to.
#[derive(Debug)]
pub(super) struct Turned {
    /// The result of the call.
    pub(super) result: String,
    /// What the guards are told of it: they have seen the whole.
    pub(super) said: String,
    pub(super) status: Status,
    /// What all pages together have shown of files, if this was the last.
    pub(super) seen: Vec<Seen>,
}

/// What is said behind a page.
struct Rest {
    items: Vec<Value>,
    meta: Map<String, Value>,
}

impl Rest {
    fn of(page: &Page, file: Option<(&Path, Links)>) -> Self {
        let (from, bytes) = (page.cursor.offset, page.bytes);
        let to = from + page.text.len() as u64;
        let next = page.next().map(|next| next.to_string());
        let go_on = next.as_ref().map_or_else(
            || "this is the end".to_owned(),
            |next| {
                format!("go on with `{PAGE}` {{\"cursor\":\"{next}\"}}, or ask the tool for less")
            },
        );
        let lies = file.map_or_else(String::new, |(path, _)| {
            format!("; all of it lies in `{}` for now", path.display())
        });
        let note = format!("jackline: bytes {from} to {to} of {bytes}; {go_on}{lies}");
        let link = file.filter(|(_, links)| *links == Links::Known).map(|(path, _)| {
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

/// The fields of a result that are not replaced: those that stay, and those too long for it.
fn fields_by_size(result: &str, half: usize) -> (Map<String, Value>, BTreeMap<String, &RawValue>) {
    let mut large: BTreeMap<String, &RawValue> = serde_json::from_str(result).unwrap_or_default();
    large.remove("content");
    let mut small = Map::new();
    large.retain(|key, raw| {
        let is_structured = key == "structuredContent";
        let most = if is_structured { half } else { FIELD_BYTES_MAX };
        if raw.get().len() > most {
            return !is_structured;
        }
        small.extend(serde_json::from_str(&lossy(raw.get())).ok().map(|it| (key.clone(), it)));
        false
    });
    (small, large)
}

/// Cuts the texts in a value, and adds what is to be said of each: it, and how much is shown.
fn cut_each(value: &mut Value, most: usize, mark: &mut dyn FnMut(&str, usize) -> String) {
    match value {
        Value::String(text) if text.len() > most => {
            let shown = first_part(text, most.saturating_sub(MARK_BYTES_MAX));
            *text = format!("{shown}{}", mark(text, shown.len()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_each(item, most, mark)),
        Value::Object(fields) => fields.values_mut().for_each(|item| cut_each(item, most, mark)),
        _ => {}
    }
}
