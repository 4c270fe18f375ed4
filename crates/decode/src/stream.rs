//! Checks, while a document arrives, whether it can still become valid.
//!
//! A model writes its text byte by byte. Waiting for the end before reporting an error
//! at the start costs tokens. This check reads the text as it arrives and refuses the
//! first byte after which no valid document is possible. Some rules cannot be decided
//! on a prefix. They are left to full validation, see docs/reference/streaming-check.md.
//!
//! ```
//! use jackline_decode::stream::{StreamCheck, StreamSchema};
//! use serde_json::json;
//!
//! let schema = StreamSchema::compile(&json!({
//!     "type": "object",
//!     "properties": { "path": { "type": "string" }, "limit": { "type": "integer" } },
//!     "required": ["path"],
//!     "additionalProperties": false,
//! }))?;
//! let mut stream = StreamCheck::new(&schema);
//! stream.feed(br#"{"path": "src/li"#)?;
//! stream.feed(br#"b.rs", "#)?;
//! let refusal = stream.feed(br#""line": 3}"#).unwrap_err();
//! assert_eq!(refusal.position, 26);
//! assert_eq!(refusal.expected, "a key, one of `limit`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decimal_literal;
mod evaluation_plan;
mod keyword_rules;
mod listed_values;
mod node_compiler;
mod number_scanner;
mod refusal;
mod refusal_reason;
mod satisfiable_types;
mod schema_alternatives;
mod schema_node;
mod stream_cutter;
mod stream_schema;
mod string_scanner;

use number_scanner::{ByteInNumber, NumberScanner};
use refusal_reason::RefusalReason;
use schema_alternatives::{RuleOutCause, SchemaAlternatives, StreamValueShape};
use schema_node::{NodeId, SchemaNode, types};
use string_scanner::{StringProgress, StringScanner};

pub use number_scanner::NUMBER_BYTES_MAX;
pub use refusal::{Refusal, RefusalKind, StreamSchemaError};
pub use stream_cutter::StreamCutter;
pub use stream_schema::StreamSchema;

/// How deep objects and arrays may nest.
pub const DEPTH_MAX: usize = 100;

/// The check of one document that arrives in pieces.
///
/// Its memory does not depend on the length of the document. It depends on the depth, on
/// the keys of the open objects, and on the current string if its schema needs the whole
/// string.
#[derive(Debug, Clone)]
pub struct StreamCheck<'s> {
    schema: &'s StreamSchema,
    alternatives: SchemaAlternatives<'s>,
    stage: StreamStage,
    text: StringScanner,
    number: NumberScanner,
    position: u64,
    refused: Option<Refusal>,
}

/// What the check expects next.
#[derive(Debug, Clone, Copy)]
enum StreamStage {
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
    /// A comma, or the end of the open object or array.
    AfterValue,
    Done,
}

impl<'s> StreamCheck<'s> {
    /// A check of a document of which nothing has arrived yet.
    pub fn new(schema: &'s StreamSchema) -> Self {
        Self::at_node(schema, schema.root)
    }

    fn at_node(schema: &'s StreamSchema, root: NodeId) -> Self {
        Self {
            schema,
            alternatives: SchemaAlternatives::new(schema, root),
            stage: StreamStage::Value,
            text: StringScanner::default(),
            number: NumberScanner::default(),
            position: 0,
            refused: None,
        }
    }

    /// Checks the next bytes. The document may be split at any byte. After a refusal,
    /// every call returns the same refusal.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if let Some(refusal) = &self.refused {
            return Err(refusal.clone());
        }
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            let mut length = match self.stage {
                StreamStage::Text | StreamStage::KeyText => self.text.read_plain_run(rest),
                _ => 0,
            };
            if length == 0 {
                self.alternatives.ruled_out.clear();
                self.read_byte(*byte).map_err(|why| self.refuse(why))?;
                length = 1;
            }
            self.position += length as u64;
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    /// Ends the document. An error means that it is incomplete or invalid.
    pub fn finish(&mut self) -> Result<(), Refusal> {
        if let Some(refusal) = &self.refused {
            return Err(refusal.clone());
        }
        self.alternatives.ruled_out.clear();
        self.check_end().map_err(|why| self.refuse(why))
    }

    fn check_end(&mut self) -> Result<(), RefusalReason> {
        if matches!(self.stage, StreamStage::Number) && self.number.can_end() {
            self.end_number()?;
        }
        Err(RefusalReason::Incomplete(match self.stage {
            StreamStage::Done => return Ok(()),
            StreamStage::Value => "a value",
            StreamStage::FirstItem => "an item or `]`",
            StreamStage::FirstKey => "a key or `}`",
            StreamStage::Key => "a key",
            StreamStage::Colon => "`:`",
            StreamStage::KeyText | StreamStage::Text => "the rest of the string",
            StreamStage::Number => "the rest of the number",
            StreamStage::Word(_) => "the rest of the word",
            StreamStage::AfterValue => "the rest of the document",
        }))
    }

    fn refuse(&mut self, why: RefusalReason) -> Refusal {
        let refusal = Refusal {
            position: self.position,
            pointer: self.pointer(),
            kind: why.kind(),
            expected: why.expected_text(self.schema, &self.alternatives),
        };
        self.refused = Some(refusal.clone());
        refusal
    }

    fn pointer(&self) -> String {
        let open = self.alternatives.open_frames();
        // The frames around a value give its path. A value that is expected next already has
        // a path. The frame of an open value and of a key that is being read adds nothing.
        let unnamed = match (self.alternatives.top().map(|frame| frame.shape), self.stage) {
            (Some(StreamValueShape::Key), _) => 2,
            (_, StreamStage::Value | StreamStage::Colon | StreamStage::FirstItem) => 0,
            _ => 1,
        };
        let mut pointer = String::new();
        for frame in open.iter().take(open.len().saturating_sub(unnamed)) {
            pointer.push('/');
            match frame.shape {
                StreamValueShape::Array => pointer.push_str(&frame.count.to_string()),
                _ => pointer.push_str(&frame.key.replace('~', "~0").replace('/', "~1")),
            }
        }
        pointer
    }

    fn read_byte(&mut self, byte: u8) -> Result<(), RefusalReason> {
        match self.stage {
            StreamStage::Text => {
                if self.text.read_byte(byte, &mut self.alternatives)? == StringProgress::Closed {
                    self.end_value()?;
                }
            }
            StreamStage::KeyText => {
                if self.text.read_byte(byte, &mut self.alternatives)? == StringProgress::Closed {
                    self.end_key()?;
                }
            }
            StreamStage::Number => {
                if self.number.read_byte(byte, &mut self.alternatives)? == ByteInNumber::No {
                    self.end_number()?;
                    self.read_byte(byte)?;
                }
            }
            StreamStage::Word(word) => self.read_word(byte, word)?,
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
            StreamStage::FirstItem if byte == b']' => self.end_array()?,
            StreamStage::FirstItem => {
                self.next_item()?;
                self.begin_value(byte)?;
            }
            StreamStage::Value => self.begin_value(byte)?,
            StreamStage::FirstKey if byte == b'}' => self.end_object()?,
            StreamStage::FirstKey if byte == b'"' => {
                self.next_key()?;
                self.begin_key()?;
            }
            StreamStage::FirstKey => return Err(RefusalReason::Syntax("a key or `}`")),
            StreamStage::Key if byte == b'"' => self.begin_key()?,
            StreamStage::Key => return Err(RefusalReason::Syntax("a key")),
            StreamStage::Colon if byte == b':' => self.stage = StreamStage::Value,
            StreamStage::Colon => return Err(RefusalReason::Syntax("`:`")),
            StreamStage::AfterValue => self.read_after_value(byte)?,
            StreamStage::Done => return Err(RefusalReason::Syntax("the end of the document")),
        }
        Ok(())
    }

    fn read_word(&mut self, byte: u8, word: &'static [u8]) -> Result<(), RefusalReason> {
        match word.split_first() {
            Some((next, rest)) if *next == byte => {
                self.stage = StreamStage::Word(rest);
                if rest.is_empty() { self.end_value() } else { Ok(()) }
            }
            _ => Err(RefusalReason::Syntax("the rest of `true`, `false` or `null`")),
        }
    }

    fn begin_value(&mut self, byte: u8) -> Result<(), RefusalReason> {
        let (kind, shape, stage) = match byte {
            b'"' => (types::STRING, StreamValueShape::Scalar, StreamStage::Text),
            b'{' => (types::OBJECT, StreamValueShape::Object, StreamStage::FirstKey),
            b'[' => (types::ARRAY, StreamValueShape::Array, StreamStage::FirstItem),
            b't' => (types::TRUE, StreamValueShape::Scalar, StreamStage::Word(b"rue")),
            b'f' => (types::FALSE, StreamValueShape::Scalar, StreamStage::Word(b"alse")),
            b'n' => (types::NULL, StreamValueShape::Scalar, StreamStage::Word(b"ull")),
            b'-' | b'0'..=b'9' => (types::NUMBER, StreamValueShape::Scalar, StreamStage::Number),
            _ => return Err(RefusalReason::Value),
        };
        if shape != StreamValueShape::Scalar && self.alternatives.depth() >= DEPTH_MAX {
            return Err(RefusalReason::TooDeep);
        }
        self.alternatives.enter_value(shape);
        self.stage = StreamStage::AfterValue;
        self.alternatives.rule_out_schemas(|node, _, _| {
            (node.types & kind == 0).then_some(RuleOutCause::Type)
        })?;
        self.stage = stage;
        match stage {
            StreamStage::Text => self.text.begin_string(false, &self.alternatives),
            StreamStage::Number => {
                self.number.begin_number(&self.alternatives);
                self.number.read_byte(byte, &mut self.alternatives)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end_value(&mut self) -> Result<(), RefusalReason> {
        self.alternatives.leave_value()?;
        self.stage = match self.alternatives.top_mut() {
            None => StreamStage::Done,
            Some(frame) => {
                frame.count += 1;
                StreamStage::AfterValue
            }
        };
        Ok(())
    }

    fn end_number(&mut self) -> Result<(), RefusalReason> {
        self.number.check_number(&mut self.alternatives)?;
        self.end_value()
    }

    fn read_after_value(&mut self, byte: u8) -> Result<(), RefusalReason> {
        let object =
            self.alternatives.top().is_some_and(|frame| frame.shape == StreamValueShape::Object);
        match (object, byte) {
            (true, b',') => {
                self.next_key()?;
                self.stage = StreamStage::Key;
                Ok(())
            }
            (true, b'}') => self.end_object(),
            (true, _) => Err(RefusalReason::Syntax("`,` or `}`")),
            (false, b',') => {
                self.next_item()?;
                self.stage = StreamStage::Value;
                Ok(())
            }
            (false, b']') => self.end_array(),
            (false, _) => Err(RefusalReason::Syntax("`,` or `]`")),
        }
    }

    /// Checks that another item is allowed and that one can be valid.
    fn next_item(&mut self) -> Result<(), RefusalReason> {
        self.alternatives.rule_out_schemas(|node, _, facts| {
            let max = node.array.as_ref()?.max?;
            (facts.count >= max).then_some(RuleOutCause::ItemsMax)
        })?;
        self.alternatives.prepare_part(RuleOutCause::Item, |node, frame, parts| {
            parts.extend(node.array.as_ref().map(|rules| rules.item_schema(frame.count)));
        })?;
        Ok(())
    }

    fn end_array(&mut self) -> Result<(), RefusalReason> {
        self.alternatives.rule_out_schemas(|node, _, facts| {
            let min = node.array.as_ref()?.min;
            (facts.count < min).then_some(RuleOutCause::ItemsMin)
        })?;
        self.end_value()
    }

    /// Checks that another key is allowed and that an unused key is left.
    fn next_key(&mut self) -> Result<(), RefusalReason> {
        let schema = self.schema;
        self.alternatives.rule_out_schemas(|node, _, facts| {
            let rules = node.object.as_ref()?;
            if rules.max.is_some_and(|max| facts.count >= max) {
                return Some(RuleOutCause::PropertiesMax);
            }
            let closed = schema.nodes.get(rules.all_keys?)?.text.literals.as_ref()?;
            closed.iter().all(|name| facts.keys.contains(name)).then_some(RuleOutCause::Key)
        })?;
        Ok(())
    }

    fn begin_key(&mut self) -> Result<(), RefusalReason> {
        self.alternatives.prepare_part(RuleOutCause::Key, |node: &SchemaNode, _, parts| {
            parts.extend(node.object.iter().flat_map(|rules| &rules.key_schemas));
        })?;
        self.alternatives.enter_value(StreamValueShape::Key);
        self.stage = StreamStage::KeyText;
        self.alternatives.rule_out_schemas(|node, _, _| {
            (node.types & types::STRING == 0).then_some(RuleOutCause::Type)
        })?;
        self.text.begin_string(true, &self.alternatives);
        Ok(())
    }

    fn end_key(&mut self) -> Result<(), RefusalReason> {
        self.alternatives.leave_value()?;
        let Some(frame) = self.alternatives.top_mut() else { return Ok(()) };
        frame.key.clear();
        frame.key.push_str(&String::from_utf8_lossy(&self.text.decoded));
        self.stage = StreamStage::Colon;
        if !frame.keys.insert(frame.key.clone()) {
            return Err(RefusalReason::DuplicateKey);
        }
        self.alternatives.rule_out_schemas(|node, _, facts| {
            let rules = node.object.as_ref()?;
            let missing = rules.required.iter().filter(|name| !facts.keys.contains(*name));
            let needed = rules.max.map(|max| (max, facts.count + 1 + missing.count() as u64));
            needed.is_some_and(|(max, needed)| needed > max).then_some(RuleOutCause::PropertiesMax)
        })?;
        self.alternatives.prepare_part(RuleOutCause::Property, |node, frame, parts| {
            if let Some(rules) = &node.object {
                rules.visit_value_schemas(&frame.key, |part| parts.push(part));
            }
        })?;
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), RefusalReason> {
        self.alternatives.rule_out_schemas(|node, _, facts| {
            let rules = node.object.as_ref()?;
            if facts.count < rules.min {
                return Some(RuleOutCause::PropertiesMin);
            }
            let whole = rules.required.iter().all(|name| facts.keys.contains(name));
            (!whole).then_some(RuleOutCause::Required)
        })?;
        self.end_value()
    }
}
