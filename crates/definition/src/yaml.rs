//! YAML as a tree that knows where everything stands.
//!
//! A definition is data, so what makes YAML more than data is refused:
//! anchors and aliases (they can blow up), tags, and several documents.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Value;

use crate::diagnostic::{At, Diagnostics};

/// The largest file that is read.
const SOURCE_BYTES_MAX: usize = 4 << 20;

/// How deep lists and mappings may nest.
const DEPTH_MAX: usize = 32;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub at: At,
    /// What it is.
    pub value: NodeValue,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Text, or a number that is not whole.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Where it stands.
    pub at: At,
    /// Its text.
    pub text: String,
}

impl Node {
    /// What it is, in words.
    pub fn describe(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Integer(_) => "a number",
            NodeValue::Text(_) => "text",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a mapping",
        }
    }

    /// The same value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(b) => Value::Bool(*b),
            NodeValue::Integer(n) => Value::from(*n),
            NodeValue::Text(text) => Value::String(text.clone()),
            NodeValue::List(items) => items.iter().map(Node::to_json).collect(),
            NodeValue::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.text.clone(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Reads one document; an empty one is an empty mapping.
pub fn parse(source: &[u8], diagnostics: &mut Diagnostics) -> Option<Node> {
    parse_file(source, 0, diagnostics)
}

/// Reads the document of one of several files.
pub(crate) fn parse_file(source: &[u8], file: u16, diagnostics: &mut Diagnostics) -> Option<Node> {
    if source.len() > SOURCE_BYTES_MAX {
        let message =
            format!("the file has {} bytes; at most {SOURCE_BYTES_MAX} are read", source.len());
        diagnostics.push(At::start_of(file), message, None);
        return None;
    }
    let source = source.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source);
    let text = match std::str::from_utf8(source) {
        Ok(text) => text,
        Err(error) => {
            let at = position(file, source, error.valid_up_to());
            diagnostics.push(at, "invalid UTF-8", None);
            return None;
        }
    };
    if let Some(at) = text.find('\0') {
        diagnostics.push(position(file, source, at), "the file holds a NUL", None);
        return None;
    }
    Builder { file, diagnostics, stack: Vec::new(), root: None, broken: false }.build(text)
}

/// Line and column, in letters, of what follows `offset` bytes of good text.
fn position(file: u16, source: &[u8], offset: usize) -> At {
    let before = String::from_utf8_lossy(source.get(..offset).unwrap_or(source));
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    At::new(file, before.split('\n').count(), column)
}

struct Builder<'a> {
    file: u16,
    diagnostics: &'a mut Diagnostics,
    stack: Vec<Open>,
    root: Option<Node>,
    broken: bool,
}

/// A list or mapping that is not closed yet.
enum Open {
    List(At, Vec<Node>),
    Map(OpenMap),
}

/// A mapping that is not closed yet.
struct OpenMap {
    at: At,
    entries: Vec<(Key, Node)>,
    /// The key whose value comes next.
    key: Option<Key>,
    /// The line of each key; a file may hold very many.
    lines: HashMap<String, u32>,
}

impl Builder<'_> {
    fn build(mut self, text: &str) -> Option<Node> {
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => {
                    let at = self.at(span);
                    self.event(event, at);
                }
                Err(error) => {
                    let marker = error.marker();
                    let message = format!("not valid YAML: {}", error.info());
                    let at = At::new(self.file, marker.line(), marker.col() + 1);
                    self.complain(at, message, None);
                }
            }
            if self.broken {
                return None;
            }
        }
        let empty = Node { at: At::start_of(self.file), value: NodeValue::Map(Vec::new()) };
        Some(self.root.unwrap_or(empty))
    }

    fn at(&self, span: Span) -> At {
        At::new(self.file, span.start.line(), span.start.col() + 1)
    }

    fn complain(&mut self, at: At, message: impl Into<String>, hint: Option<&str>) {
        self.diagnostics.push(at, message, hint.map(ToOwned::to_owned));
        self.broken = true;
    }

    fn event(&mut self, event: Event<'_>, at: At) {
        let hint = Some("write the value out");
        match event {
            Event::Alias(_) => self.complain(at, "aliases are not accepted", hint),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor != 0 =>
            {
                self.complain(at, "anchors are not accepted", hint);
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                self.complain(at, "tags are not accepted", hint);
            }
            Event::Scalar(text, style, ..) => self.scalar(&text, style, at),
            Event::SequenceStart(..) => self.open(Open::List(at, Vec::new()), at),
            Event::MappingStart(..) => {
                let map = OpenMap { at, entries: Vec::new(), key: None, lines: HashMap::new() };
                self.open(Open::Map(map), at);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentStart(_) if self.root.is_some() => {
                self.complain(
                    at,
                    "a second document begins here",
                    Some("keep one document a file"),
                );
            }
            _ => {}
        }
    }

    fn open(&mut self, open: Open, at: At) {
        if self.stack.len() >= DEPTH_MAX {
            self.complain(at, format!("nested deeper than {DEPTH_MAX}"), None);
            return;
        }
        // A mapping as a key ends up here too.
        if let Some(Open::Map(OpenMap { key: None, .. })) = self.stack.last() {
            self.complain(at, "a key must be text", None);
            return;
        }
        self.stack.push(open);
    }

    fn close(&mut self) {
        let node = match self.stack.pop() {
            Some(Open::List(at, items)) => Node { at, value: NodeValue::List(items) },
            Some(Open::Map(map)) => Node { at: map.at, value: NodeValue::Map(map.entries) },
            None => return,
        };
        self.add(node);
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: At) {
        if let Some(Open::Map(OpenMap { key: key @ None, lines, .. })) = self.stack.last_mut() {
            if let Some(first) = lines.get(text) {
                let message = format!("duplicate key `{text}`; it is given first at line {first}");
                self.diagnostics.push(at, message, None);
            } else {
                lines.insert(text.to_owned(), at.line);
            }
            *key = Some(Key { at, text: text.to_owned() });
            return;
        }
        let value = match style {
            ScalarStyle::Plain => plain(text),
            _ => NodeValue::Text(text.to_owned()),
        };
        self.add(Node { at, value });
    }

    fn add(&mut self, node: Node) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Map(map)) => {
                if let Some(key) = map.key.take() {
                    map.entries.push((key, node));
                }
            }
        }
    }
}

/// The core schema, as far as a definition needs it.
fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ => text.parse().map_or_else(|_| NodeValue::Text(text.to_owned()), NodeValue::Integer),
    }
}
