//! Whether what has come so far can still become a valid document.
//!
//! A model writes one byte after the other; waiting for the last one to say that
//! the third was wrong costs tokens. This reads as it comes and refuses the first
//! byte with which no valid document goes on. What a prefix can't decide is left
//! to full validation; docs/reference/streaming-check.md has the list.
//!
//! ```
//! use jackline_decode::stream::{Stream, StreamSchema};
//! use serde_json::json;
//!
//! let schema = StreamSchema::compile(&json!({
//!     "type": "object",
//!     "properties": { "path": { "type": "string" }, "limit": { "type": "integer" } },
//!     "required": ["path"],
//!     "additionalProperties": false,
//! }))?;
//! let mut stream = Stream::new(&schema);
//! stream.feed(br#"{"path": "src/li"#)?;
//! stream.feed(br#"b.rs", "#)?;
//! let refusal = stream.feed(br#""line": 3}"#).unwrap_err();
//! assert_eq!(refusal.position, 26);
//! assert_eq!(refusal.expected, "a key, one of `limit`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alternatives;
mod compile;
mod cut;
mod decimal;
mod inhabited;
mod leaf;
mod literal;
mod node;
mod number;
mod plan;
mod refusal;
mod schema;
mod text;
mod why;

use alternatives::{Alternatives, Cause, Shape};
use node::{Node, NodeId, types};
use number::{Number, Taken};
use text::{Progress, Text};
use why::Why;

pub use cut::Cutter;
pub use number::NUMBER_BYTES_MAX;
pub use refusal::{Refusal, RefusalKind, SchemaError};
pub use schema::StreamSchema;

/// How deep objects and arrays may lie in each other.
pub const DEPTH_MAX: usize = 100;

/// A document while it comes.
///
/// Its memory hangs on how deep the document is, on the string that is being
/// read as far as its schema wants it whole, and on the keys of the objects that
/// are open; not on how long the document is.
#[derive(Debug, Clone)]
pub struct Stream<'s> {
    schema: &'s StreamSchema,
    alternatives: Alternatives<'s>,
    stage: Stage,
    text: Text,
    number: Number,
    position: u64,
    refused: Option<Refusal>,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Value,
    /// An item, or the end of the array.
    FirstItem,
    /// A key, or the end of the object.
    FirstKey,
    Key,
    KeyText,
    Colon,
    Text,
    Number,
    /// The rest of `true`, `false` or `null`.
    Word(&'static [u8]),
    /// A comma, or the end of what is open.
    After,
    Done,
}

impl<'s> Stream<'s> {
    /// A document of which nothing has come yet.
    pub fn new(schema: &'s StreamSchema) -> Self {
        Self::at(schema, schema.root)
    }

    fn at(schema: &'s StreamSchema, root: NodeId) -> Self {
        Self {
            schema,
            alternatives: Alternatives::new(schema, root),
            stage: Stage::Value,
            text: Text::default(),
            number: Number::default(),
            position: 0,
            refused: None,
        }
    }

    /// Takes the next bytes, however the document is cut. Once refused, it stays refused.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if let Some(refusal) = &self.refused {
            return Err(refusal.clone());
        }
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            let mut took = match self.stage {
                Stage::Text | Stage::KeyText => self.text.run(rest),
                _ => 0,
            };
            if took == 0 {
                self.alternatives.blame.clear();
                self.step(*byte).map_err(|why| self.refuse(why))?;
                took = 1;
            }
            self.position += took as u64;
            rest = rest.get(took..).unwrap_or_default();
        }
        Ok(())
    }

    /// Says that nothing more comes.
    pub fn finish(&mut self) -> Result<(), Refusal> {
        if let Some(refusal) = &self.refused {
            return Err(refusal.clone());
        }
        self.alternatives.blame.clear();
        self.end().map_err(|why| self.refuse(why))
    }

    fn end(&mut self) -> Result<(), Why> {
        if matches!(self.stage, Stage::Number) && self.number.may_end() {
            self.end_number()?;
        }
        Err(Why::Incomplete(match self.stage {
            Stage::Done => return Ok(()),
            Stage::Value => "a value",
            Stage::FirstItem => "an item or `]`",
            Stage::FirstKey => "a key or `}`",
            Stage::Key => "a key",
            Stage::Colon => "`:`",
            Stage::KeyText | Stage::Text => "the rest of the string",
            Stage::Number => "the rest of the number",
            Stage::Word(_) => "the rest of the word",
            Stage::After => "the rest of the document",
        }))
    }

    fn refuse(&mut self, why: Why) -> Refusal {
        let refusal = Refusal {
            position: self.position,
            pointer: self.pointer(),
            kind: why.kind(),
            expected: why.expected(self.schema, &self.alternatives),
        };
        self.refused = Some(refusal.clone());
        refusal
    }

    fn pointer(&self) -> String {
        let open = self.alternatives.open();
        // A value that is awaited has a name already; what is open is named by what is around
        // it, and a key that is being read names nothing yet.
        let unnamed = match (self.alternatives.top().map(|frame| frame.shape), self.stage) {
            (Some(Shape::Key), _) => 2,
            (_, Stage::Value | Stage::Colon | Stage::FirstItem) => 0,
            _ => 1,
        };
        let mut pointer = String::new();
        for frame in open.iter().take(open.len().saturating_sub(unnamed)) {
            pointer.push('/');
            match frame.shape {
                Shape::Array => pointer.push_str(&frame.count.to_string()),
                _ => pointer.push_str(&frame.key.replace('~', "~0").replace('/', "~1")),
            }
        }
        pointer
    }

    fn step(&mut self, byte: u8) -> Result<(), Why> {
        match self.stage {
            Stage::Text => {
                if self.text.step(byte, &mut self.alternatives)? == Progress::Closed {
                    self.end_value()?;
                }
            }
            Stage::KeyText => {
                if self.text.step(byte, &mut self.alternatives)? == Progress::Closed {
                    self.end_key()?;
                }
            }
            Stage::Number => {
                if self.number.step(byte, &mut self.alternatives)? == Taken::No {
                    self.end_number()?;
                    self.step(byte)?;
                }
            }
            Stage::Word(word) => self.word(byte, word)?,
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
            Stage::FirstItem if byte == b']' => self.end_array()?,
            Stage::FirstItem => {
                self.next_item()?;
                self.begin_value(byte)?;
            }
            Stage::Value => self.begin_value(byte)?,
            Stage::FirstKey if byte == b'}' => self.end_object()?,
            Stage::FirstKey if byte == b'"' => {
                self.next_key()?;
                self.begin_key()?;
            }
            Stage::FirstKey => return Err(Why::Syntax("a key or `}`")),
            Stage::Key if byte == b'"' => self.begin_key()?,
            Stage::Key => return Err(Why::Syntax("a key")),
            Stage::Colon if byte == b':' => self.stage = Stage::Value,
            Stage::Colon => return Err(Why::Syntax("`:`")),
            Stage::After => self.after(byte)?,
            Stage::Done => return Err(Why::Syntax("nothing more")),
        }
        Ok(())
    }

    fn word(&mut self, byte: u8, word: &'static [u8]) -> Result<(), Why> {
        match word.split_first() {
            Some((next, rest)) if *next == byte => {
                self.stage = Stage::Word(rest);
                if rest.is_empty() { self.end_value() } else { Ok(()) }
            }
            _ => Err(Why::Syntax("the rest of `true`, `false` or `null`")),
        }
    }

    fn begin_value(&mut self, byte: u8) -> Result<(), Why> {
        let (kind, shape, stage) = match byte {
            b'"' => (types::STRING, Shape::Scalar, Stage::Text),
            b'{' => (types::OBJECT, Shape::Object, Stage::FirstKey),
            b'[' => (types::ARRAY, Shape::Array, Stage::FirstItem),
            b't' => (types::TRUE, Shape::Scalar, Stage::Word(b"rue")),
            b'f' => (types::FALSE, Shape::Scalar, Stage::Word(b"alse")),
            b'n' => (types::NULL, Shape::Scalar, Stage::Word(b"ull")),
            b'-' | b'0'..=b'9' => (types::NUMBER, Shape::Scalar, Stage::Number),
            _ => return Err(Why::Value),
        };
        if shape != Shape::Scalar && self.alternatives.depth() >= DEPTH_MAX {
            return Err(Why::Depth);
        }
        self.alternatives.enter(shape);
        self.stage = Stage::After;
        self.alternatives.sift(|node, _, _| (node.types & kind == 0).then_some(Cause::Type))?;
        self.stage = stage;
        match stage {
            Stage::Text => self.text.begin(false, &self.alternatives),
            Stage::Number => {
                self.number.begin(&self.alternatives);
                self.number.step(byte, &mut self.alternatives)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end_value(&mut self) -> Result<(), Why> {
        self.alternatives.leave()?;
        self.stage = match self.alternatives.top_mut() {
            None => Stage::Done,
            Some(frame) => {
                frame.count += 1;
                Stage::After
            }
        };
        Ok(())
    }

    fn end_number(&mut self) -> Result<(), Why> {
        self.number.end(&mut self.alternatives)?;
        self.end_value()
    }

    fn after(&mut self, byte: u8) -> Result<(), Why> {
        let object = self.alternatives.top().is_some_and(|frame| frame.shape == Shape::Object);
        match (object, byte) {
            (true, b',') => {
                self.next_key()?;
                self.stage = Stage::Key;
                Ok(())
            }
            (true, b'}') => self.end_object(),
            (true, _) => Err(Why::Syntax("`,` or `}`")),
            (false, b',') => {
                self.next_item()?;
                self.stage = Stage::Value;
                Ok(())
            }
            (false, b']') => self.end_array(),
            (false, _) => Err(Why::Syntax("`,` or `]`")),
        }
    }

    /// Another item has to come: is there room, and can one be valid?
    fn next_item(&mut self) -> Result<(), Why> {
        self.alternatives.sift(|node, _, facts| {
            let max = node.array.as_ref()?.max?;
            (facts.count >= max).then_some(Cause::ItemsMax)
        })?;
        self.alternatives.prepare(Cause::Item, |node, frame, parts| {
            parts.extend(node.array.as_ref().map(|rules| rules.item(frame.count)));
        })?;
        Ok(())
    }

    fn end_array(&mut self) -> Result<(), Why> {
        self.alternatives.sift(|node, _, facts| {
            let min = node.array.as_ref()?.min;
            (facts.count < min).then_some(Cause::ItemsMin)
        })?;
        self.end_value()
    }

    /// Another key has to come: is there room, and is one left?
    fn next_key(&mut self) -> Result<(), Why> {
        let schema = self.schema;
        self.alternatives.sift(|node, _, facts| {
            let rules = node.object.as_ref()?;
            if rules.max.is_some_and(|max| facts.count >= max) {
                return Some(Cause::PropertiesMax);
            }
            let closed = schema.nodes.get(rules.closed?)?.text.literals.as_ref()?;
            closed.iter().all(|name| facts.keys.contains(name)).then_some(Cause::Key)
        })?;
        Ok(())
    }

    fn begin_key(&mut self) -> Result<(), Why> {
        self.alternatives.prepare(Cause::Key, |node: &Node, _, parts| {
            parts.extend(node.object.iter().flat_map(|rules| &rules.names));
        })?;
        self.alternatives.enter(Shape::Key);
        self.stage = Stage::KeyText;
        self.alternatives
            .sift(|node, _, _| (node.types & types::STRING == 0).then_some(Cause::Type))?;
        self.text.begin(true, &self.alternatives);
        Ok(())
    }

    fn end_key(&mut self) -> Result<(), Why> {
        self.alternatives.leave()?;
        let Some(frame) = self.alternatives.top_mut() else { return Ok(()) };
        frame.key.clear();
        frame.key.push_str(&String::from_utf8_lossy(&self.text.decoded));
        self.stage = Stage::Colon;
        if !frame.keys.insert(frame.key.clone()) {
            return Err(Why::Duplicate);
        }
        self.alternatives.sift(|node, _, facts| {
            let rules = node.object.as_ref()?;
            let missing = rules.required.iter().filter(|name| !facts.keys.contains(*name));
            let needed = rules.max.map(|max| (max, facts.count + 1 + missing.count() as u64));
            needed.is_some_and(|(max, needed)| needed > max).then_some(Cause::PropertiesMax)
        })?;
        self.alternatives.prepare(Cause::Property, |node, frame, parts| {
            if let Some(rules) = &node.object {
                rules.children(&frame.key, |part| parts.push(part));
            }
        })?;
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), Why> {
        self.alternatives.sift(|node, _, facts| {
            let rules = node.object.as_ref()?;
            if facts.count < rules.min {
                return Some(Cause::PropertiesMin);
            }
            let whole = rules.required.iter().all(|name| facts.keys.contains(name));
            (!whole).then_some(Cause::Required)
        })?;
        self.end_value()
    }
}
