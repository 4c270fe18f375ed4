//! Parses YAML into a tree whose nodes have positions.
//!
//! A definition is plain data, so the parser refuses the other features of YAML: anchors and
//! aliases (a small file can expand without limit), tags, and several documents in a file.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Value;

use crate::diagnostic::{Diagnostics, SourcePosition};

/// The maximum size of a file in bytes.
const SOURCE_BYTES_MAX: usize = 4 << 20;

/// The maximum nesting depth of lists and mappings.
const DEPTH_MAX: usize = 32;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    /// The position of the first character.
    pub position: SourcePosition,
    /// The value.
    pub value: YamlValue,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum YamlValue {
    /// `null`, or no value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Text, or a number with decimals.
    Text(String),
    /// A list.
    List(Vec<YamlNode>),
    /// A mapping, in the order of the file.
    Map(Vec<(YamlKey, YamlNode)>),
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlKey {
    /// The position of the first character.
    pub position: SourcePosition,
    /// The text of the key.
    pub text: String,
}

impl YamlNode {
    /// Names the type of the value for messages.
    pub fn describe(&self) -> &'static str {
        match self.value {
            YamlValue::Null => "nothing",
            YamlValue::Bool(_) => "a boolean",
            YamlValue::Integer(_) => "a number",
            YamlValue::Text(_) => "text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a mapping",
        }
    }

    /// Converts the value to JSON.
    pub fn to_json(&self) -> Value {
        match &self.value {
            YamlValue::Null => Value::Null,
            YamlValue::Bool(b) => Value::Bool(*b),
            YamlValue::Integer(n) => Value::from(*n),
            YamlValue::Text(text) => Value::String(text.clone()),
            YamlValue::List(items) => items.iter().map(YamlNode::to_json).collect(),
            YamlValue::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.text.clone(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Parses one document. An empty document becomes an empty mapping.
pub fn parse(source: &[u8], diagnostics: &mut Diagnostics) -> Option<YamlNode> {
    parse_file(source, 0, diagnostics)
}

/// Parses the document of the file with this number.
pub(crate) fn parse_file(
    source: &[u8],
    file: u16,
    diagnostics: &mut Diagnostics,
) -> Option<YamlNode> {
    if source.len() > SOURCE_BYTES_MAX {
        let message =
            format!("the file has {} bytes; the maximum is {SOURCE_BYTES_MAX}", source.len());
        diagnostics.push(SourcePosition::start_of(file), message, None);
        return None;
    }
    let source = source.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source);
    let text = match std::str::from_utf8(source) {
        Ok(text) => text,
        Err(error) => {
            let at = position_after(file, source, error.valid_up_to());
            diagnostics.push(at, "invalid UTF-8", None);
            return None;
        }
    };
    if let Some(at) = text.find('\0') {
        diagnostics.push(
            position_after(file, source, at),
            "the file contains a NUL character",
            None,
        );
        return None;
    }
    TreeBuilder { file, diagnostics, stack: Vec::new(), root: None, broken: false }.build(text)
}

/// Returns the line and column of the byte at `offset`. All text before it is valid UTF-8.
fn position_after(file: u16, source: &[u8], offset: usize) -> SourcePosition {
    let before = String::from_utf8_lossy(source.get(..offset).unwrap_or(source));
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    SourcePosition::new(file, before.split('\n').count(), column)
}

struct TreeBuilder<'a> {
    file: u16,
    diagnostics: &'a mut Diagnostics,
    stack: Vec<OpenContainer>,
    root: Option<YamlNode>,
    broken: bool,
}

/// A list or mapping that is not closed yet.
enum OpenContainer {
    List(SourcePosition, Vec<YamlNode>),
    Map(OpenMapping),
}

/// A mapping that is not closed yet.
struct OpenMapping {
    position: SourcePosition,
    entries: Vec<(YamlKey, YamlNode)>,
    /// The key whose value comes next.
    key: Option<YamlKey>,
    /// The line of each key. A map, because a file can contain very many keys.
    lines: HashMap<String, u32>,
}

impl TreeBuilder<'_> {
    fn build(mut self, text: &str) -> Option<YamlNode> {
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => {
                    let at = self.position_of(span);
                    self.event(event, at);
                }
                Err(error) => {
                    let marker = error.marker();
                    let message = format!("not valid YAML: {}", error.info());
                    let at = SourcePosition::new(self.file, marker.line(), marker.col() + 1);
                    self.fail(at, message, None);
                }
            }
            if self.broken {
                return None;
            }
        }
        let empty = YamlNode {
            position: SourcePosition::start_of(self.file),
            value: YamlValue::Map(Vec::new()),
        };
        Some(self.root.unwrap_or(empty))
    }

    fn position_of(&self, span: Span) -> SourcePosition {
        SourcePosition::new(self.file, span.start.line(), span.start.col() + 1)
    }

    fn fail(&mut self, at: SourcePosition, message: impl Into<String>, hint: Option<&str>) {
        self.diagnostics.push(at, message, hint.map(ToOwned::to_owned));
        self.broken = true;
    }

    fn event(&mut self, event: Event<'_>, at: SourcePosition) {
        let hint = Some("write the value itself");
        match event {
            Event::Alias(_) => self.fail(at, "aliases are not supported", hint),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor != 0 =>
            {
                self.fail(at, "anchors are not supported", hint);
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                self.fail(at, "tags are not supported", hint);
            }
            Event::Scalar(text, style, ..) => self.scalar(&text, style, at),
            Event::SequenceStart(..) => self.open(OpenContainer::List(at, Vec::new()), at),
            Event::MappingStart(..) => {
                let map = OpenMapping {
                    position: at,
                    entries: Vec::new(),
                    key: None,
                    lines: HashMap::new(),
                };
                self.open(OpenContainer::Map(map), at);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentStart(_) if self.root.is_some() => {
                self.fail(
                    at,
                    "a second document starts here",
                    Some("put one document in each file"),
                );
            }
            _ => {}
        }
    }

    fn open(&mut self, open: OpenContainer, at: SourcePosition) {
        if self.stack.len() >= DEPTH_MAX {
            self.fail(
                at,
                format!("lists and mappings are nested deeper than {DEPTH_MAX} levels"),
                None,
            );
            return;
        }
        // This also refuses a list or mapping that is used as a key.
        if let Some(OpenContainer::Map(OpenMapping { key: None, .. })) = self.stack.last() {
            self.fail(at, "a key must be text", None);
            return;
        }
        self.stack.push(open);
    }

    fn close(&mut self) {
        let node = match self.stack.pop() {
            Some(OpenContainer::List(at, items)) => {
                YamlNode { position: at, value: YamlValue::List(items) }
            }
            Some(OpenContainer::Map(map)) => {
                YamlNode { position: map.position, value: YamlValue::Map(map.entries) }
            }
            None => return,
        };
        self.add(node);
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: SourcePosition) {
        if let Some(OpenContainer::Map(OpenMapping { key: key @ None, lines, .. })) =
            self.stack.last_mut()
        {
            if let Some(first) = lines.get(text) {
                let message = format!("duplicate key `{text}`; it is first used at line {first}");
                self.diagnostics.push(at, message, None);
            } else {
                lines.insert(text.to_owned(), at.line);
            }
            *key = Some(YamlKey { position: at, text: text.to_owned() });
            return;
        }
        let value = match style {
            ScalarStyle::Plain => parse_plain_scalar(text),
            _ => YamlValue::Text(text.to_owned()),
        };
        self.add(YamlNode { position: at, value });
    }

    fn add(&mut self, node: YamlNode) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(OpenContainer::List(_, items)) => items.push(node),
            Some(OpenContainer::Map(map)) => {
                if let Some(key) = map.key.take() {
                    map.entries.push((key, node));
                }
            }
        }
    }
}

/// Interprets an unquoted scalar by the YAML core schema, as far as a definition needs it.
fn parse_plain_scalar(text: &str) -> YamlValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => YamlValue::Null,
        "true" | "True" | "TRUE" => YamlValue::Bool(true),
        "false" | "False" | "FALSE" => YamlValue::Bool(false),
        _ => text.parse().map_or_else(|_| YamlValue::Text(text.to_owned()), YamlValue::Integer),
    }
}
