//! A result that is too long for a context becomes its first page, and a way to the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_engine::Status;
use jackline_journal::StoreError;
use jackline_runtime::spill::{Cursor, Page, Spill, file_uri, first_part};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ledger::Open;
use super::result::{Item, ToolResult, own_answer, said, text_item};
use super::tools::PAGE;

/// What is left of a page for our own words.
const OWN_BYTES: usize = 2 << 10;

/// A field of a result that nobody knows is kept up to this length.
const FIELD_BYTES_MAX: usize = 4 << 10;

/// The shortest that a text within structured content is cut to.
const CUT_BYTES_MIN: usize = 128;

/// How long the words are that say so, at most.
const MARK_BYTES_MAX: usize = 112;

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
}

impl Pages {
    pub(super) fn new(spill: Spill, bytes_max: usize) -> Self {
        Self { spill, bytes_max }
    }

    /// The first page of a result; none where it is short enough. `insists` says that
    /// the client takes no result without structured content.
    pub(super) fn shorten(&mut self, result: &str, links: Links, insists: bool) -> Option<String> {
        if result.len() <= self.bytes_max {
            return None;
        }
        let parsed = ToolResult::parse(result).filter(ToolResult::is_readable)?;
        let items = parsed.items();
        let size =
            |(raw, item): &(&RawValue, Item<'_>)| item.text().map_or(raw.get().len(), str::len);
        let structured = parsed.structured.map_or(0, |raw| raw.get().len());
        if items.iter().map(size).sum::<usize>() + structured <= self.bytes_max {
            return None;
        }
        Some(self.first_page(result, &parsed, &items, links, insists))
    }

    fn first_page(
        &mut self,
        result: &str,
        parsed: &ToolResult<'_>,
        items: &[(&RawValue, Item<'_>)],
        links: Links,
        insists: bool,
    ) -> String {
        let mut room = self.bytes_max.saturating_sub(OWN_BYTES);
        let half = self.page_bytes();
        let structured = parsed.structured.filter(|raw| raw.get().len() <= half);
        room -= structured.map_or(0, |raw| raw.get().len());

        let mut others: Vec<Value> = Vec::new();
        let mut texts: Vec<&str> = Vec::new();
        for (raw, item) in items {
            match item.text() {
                Some(text) => texts.push(text),
                None if raw.get().len() <= room / 2 => {
                    room -= raw.get().len();
                    others.extend(serde_json::from_str::<Value>(raw.get()));
                }
                None => others.push(self.left_out(raw, item)),
            }
        }
        let whole = match texts.as_slice() {
            [] if items.is_empty() => Cow::Owned(said(parsed, items)),
            [one] => Cow::Borrowed(*one),
            texts => Cow::Owned(texts.join("\n")),
        };
        let cuts_structured = parsed.structured.is_some() && structured.is_none();
        let shown = first_part(&whole, half.min(room));
        let mut number = None;
        let cut = (shown.len() < whole.len()).then(|| {
            let kept = self.spill.keep(&whole);
            number = kept.as_ref().ok().map(|(number, _)| *number);
            rest_of(kept, &whole, shown, links)
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
        let mut fields = small_fields(result, half);
        if cuts_structured {
            let known = number.map(|number| (whole.as_ref(), number));
            match parsed.structured.and_then(|raw| self.cut_texts(raw, half, known)) {
                Some(short) => {
                    fields.insert("structuredContent".to_owned(), short);
                }
                None => {
                    content.push(text_item(
                        "jackline: the structured result is too long to be shown, and was left out",
                    ));
                    if insists {
                        fields.insert("isError".to_owned(), Value::Bool(true));
                    }
                }
            }
        }
        fields.insert("content".to_owned(), Value::Array(content));
        if let Some(meta) = fields.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
            meta.insert(META.to_owned(), Value::Object(page));
        }
        Value::Object(fields).to_string()
    }

    /// An item that is too long, and no text that could be cut.
    fn left_out(&mut self, raw: &RawValue, item: &Item<'_>) -> Value {
        let what = item.describe(raw.get().len());
        let kept = match self.spill.keep(raw.get()) {
            Ok((_, path)) => format!("it lies in `{}`, as the server sent it", path.display()),
            Err(error) => format!("it could not be kept: {error}"),
        };
        text_item(&format!("jackline: {what} is too long to be shown; {kept}"))
    }

    /// How long a page may be. The other half is for the same as structured content; and
    /// clients show no long ones: Claude Code puts above 50 000 characters into a file.
    fn page_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(OWN_BYTES) / 2
    }

    /// Structured content with its long texts cut: it keeps its shape, and most schemas
    /// still hold. Many clients show nothing else, so each text goes on where it was cut.
    /// None where that is not enough.
    fn cut_texts(
        &mut self,
        raw: &RawValue,
        most: usize,
        known: Option<(&str, u64)>,
    ) -> Option<Value> {
        let mut value: Value = serde_json::from_str(raw.get()).ok()?;
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
            let known = known.filter(|(whole, _)| *whole == text).map(|(_, number)| number);
            let kept = known.or_else(|| self.spill.keep(text).ok().map(|(number, _)| number));
            let Some(number) = kept else { return "\n[jackline: cut]".to_owned() };
            let next = Cursor { number, offset: shown as u64 };
            format!("\n[jackline: cut; go on with `{PAGE}` {{\"cursor\":\"{next}\"}}]")
        });
        Some(value)
    }

    /// The next page.
    pub(super) fn turn(&self, open: &Open, arguments: Option<&Value>) -> Turned {
        let cursor = arguments.and_then(|arguments| arguments.get("cursor")?.as_str());
        match self.spill.page(cursor.unwrap_or_default(), self.page_bytes()) {
            Ok(page) => {
                let rest = Rest::of(&page, None);
                let content = [vec![text_item(&page.text)], rest.items].concat();
                let mut result = own_answer(open, content, false);
                result.insert("_meta".to_owned(), json!({ META: rest.meta }));
                let (from, bytes) = (page.cursor.offset, page.bytes);
                let said = format!("bytes {from} to {} of {bytes}", from + page.text.len() as u64);
                Turned { result: Value::Object(result).to_string(), said, status: Status::Ok }
            }
            Err(error) => {
                let said = format!("jackline: {error}");
                let result = own_answer(open, vec![text_item(&said)], true);
                Turned { result: Value::Object(result).to_string(), said, status: Status::Error }
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

/// The fields of a result that are not replaced.
fn small_fields(result: &str, half: usize) -> Map<String, Value> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(result).unwrap_or_default();
    let keeps = |key: &str, raw: &RawValue| match key {
        "content" => false,
        "structuredContent" => raw.get().len() <= half,
        _ => raw.get().len() <= FIELD_BYTES_MAX,
    };
    let kept = fields.into_iter().filter(|(key, raw)| keeps(key, raw));
    kept.filter_map(|(key, raw)| Some((key, serde_json::from_str(raw.get()).ok()?))).collect()
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
