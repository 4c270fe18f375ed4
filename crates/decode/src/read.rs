//! A reader for JSON and for almost-JSON that models write.
//!
//! It has its own stack, so depth needs no recursion, and it reads each byte a fixed
//! number of times. In strict mode it accepts only JSON. In lenient mode it repairs a
//! mistake if only one reading is possible, and records the kind of the repair. It fails
//! if two readings are possible.

mod frame;
mod lookahead;
mod number;
mod string;
mod white_space;

use serde_json::Value;

use crate::limits::{DEPTH_MAX, VALUES_MAX};
use crate::outcome::{InvalidReason, TextRepair};
pub(crate) use frame::BracketAlternative;
use frame::ReadFrame;

/// How much the reader repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonReadMode {
    /// Nothing.
    Strict,
    /// Mistakes with only one possible reading.
    Lenient,
    /// Like `Lenient`, but open brackets at the end are not closed: the text was cut off.
    CutOff,
}

/// Why and where reading failed.
#[derive(Debug, Clone)]
pub(crate) struct JsonReadFailure {
    pub(crate) reason: InvalidReason,
    pub(crate) at: usize,
    pub(crate) path: String,
    pub(crate) expected: &'static str,
    pub(crate) got: String,
    /// Whether a document started here, and not only a bracket in prose.
    pub(crate) is_document: bool,
}

/// The result of reading one value.
#[derive(Debug, Clone)]
pub(crate) struct ReadDocument {
    pub(crate) value: Value,
    pub(crate) repairs: Vec<TextRepair>,
    /// Where the value ends in the text.
    pub(crate) end: usize,
    /// Other positions where inserted brackets could be.
    pub(crate) bracket_alternatives: Vec<BracketAlternative>,
}

impl ReadDocument {
    /// A value that needed no repair.
    pub(crate) fn unrepaired(value: Value) -> Self {
        Self { value, repairs: Vec::new(), end: 0, bracket_alternatives: Vec::new() }
    }
}

/// A position in a text, and the objects and arrays that are open there.
pub(crate) struct JsonReader<'t> {
    text: &'t str,
    at: usize,
    mode: JsonReadMode,
    frames: Vec<ReadFrame>,
    repairs: Vec<TextRepair>,
    bracket_alternatives: Vec<BracketAlternative>,
    value_count: usize,
    /// Whether the text ends inside a comment.
    ends_in_comment: bool,
}

/// What may come next.
enum ReadStep {
    Value,
    FirstMember,
    Member,
    AfterValue,
    Done(Value),
}

impl<'t> JsonReader<'t> {
    /// A reader for the value that starts at `at`.
    pub(crate) fn new(text: &'t str, at: usize, manner: JsonReadMode) -> Self {
        Self {
            text,
            at,
            mode: manner,
            frames: Vec::new(),
            repairs: Vec::new(),
            bracket_alternatives: Vec::new(),
            value_count: 0,
            ends_in_comment: false,
        }
    }

    /// Reads one value.
    pub(crate) fn read_document(&mut self) -> Result<ReadDocument, JsonReadFailure> {
        self.read_from(ReadStep::Value)
    }

    /// Reads the members of an object whose brace is missing.
    pub(crate) fn read_members(&mut self) -> Result<ReadDocument, JsonReadFailure> {
        self.record_repair(TextRepair::MissingOpen);
        self.frames.push(ReadFrame::object());
        self.read_from(ReadStep::Member)
    }

    /// The complete part of the document when reading failed, and its path.
    pub(crate) fn into_partial(mut self) -> (String, Option<Value>) {
        let path = self.path();
        let mut inner = None;
        while let Some(mut frame) = self.frames.pop() {
            if let Some(value) = inner {
                frame.add_value(value);
            }
            inner = Some(frame.into_value());
        }
        (path, inner)
    }

    fn read_from(&mut self, mut next: ReadStep) -> Result<ReadDocument, JsonReadFailure> {
        loop {
            if !matches!(next, ReadStep::Done(_)) {
                self.skip_space()?;
            }
            next = match next {
                ReadStep::Value => self.read_value()?,
                ReadStep::FirstMember => self.read_first_member()?,
                ReadStep::Member => self.read_member()?,
                ReadStep::AfterValue => self.read_after_value()?,
                ReadStep::Done(value) => {
                    return Ok(ReadDocument {
                        value,
                        repairs: std::mem::take(&mut self.repairs),
                        end: self.at,
                        bracket_alternatives: std::mem::take(&mut self.bracket_alternatives),
                    });
                }
            };
        }
    }

    fn read_value(&mut self) -> Result<ReadStep, JsonReadFailure> {
        self.value_count += 1;
        if self.value_count > VALUES_MAX {
            return Err(self.failure(InvalidReason::TooLong, "fewer values"));
        }
        let value = match self.peek() {
            Some('{') => return self.open_frame(ReadFrame::object()),
            Some('[') => return self.open_frame(ReadFrame::array()),
            Some(quote) if self.is_quote(quote) => Value::String(self.read_string_value()?),
            Some('-' | '+' | '.' | '0'..='9') => self.read_number()?,
            Some(letter) if letter.is_ascii_alphabetic() => self.read_literal()?,
            _ => return Err(self.failure(InvalidReason::Broken, "a value")),
        };
        Ok(self.add_value(value))
    }

    fn open_frame(&mut self, frame: ReadFrame) -> Result<ReadStep, JsonReadFailure> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(self.failure(InvalidReason::TooDeep, "at most 100 levels"));
        }
        self.at += 1;
        self.frames.push(frame);
        Ok(ReadStep::FirstMember)
    }

    /// Adds a value to the innermost object or array.
    fn add_value(&mut self, value: Value) -> ReadStep {
        match self.frames.last_mut() {
            Some(frame) => {
                frame.add_value(value);
                ReadStep::AfterValue
            }
            None => ReadStep::Done(value),
        }
    }

    fn read_first_member(&mut self) -> Result<ReadStep, JsonReadFailure> {
        match self.peek() {
            Some(bracket @ ('}' | ']')) => self.close_frame(bracket),
            _ => self.read_member(),
        }
    }

    /// Reads a member or item, or a closing bracket after an extra comma.
    fn read_member(&mut self) -> Result<ReadStep, JsonReadFailure> {
        match self.peek() {
            Some(bracket @ ('}' | ']')) if self.has_members() => {
                if !self.is_lenient() || self.is_in_object() != (bracket == '}') {
                    return Err(self.failure(InvalidReason::Broken, "another member or item"));
                }
                self.record_repair(TextRepair::ExtraComma);
                self.read_after_value()
            }
            Some(',') if self.is_lenient() && self.is_in_object() && self.has_members() => {
                self.record_repair(TextRepair::ExtraComma);
                self.at += 1;
                Ok(ReadStep::Member)
            }
            None => Err(self.failure(InvalidReason::Broken, "another member or item")),
            _ if self.is_in_object() => self.read_key(),
            _ => {
                self.record_column();
                self.read_value()
            }
        }
    }

    fn read_key(&mut self) -> Result<ReadStep, JsonReadFailure> {
        self.record_column();
        let key_start = self.at;
        let (key, quoted) = match self.peek() {
            Some(quote) if self.is_quote(quote) && quote != '`' => (self.read_string_key()?, true),
            Some(_) if self.is_lenient() => (self.read_bare_key()?, false),
            _ => return Err(self.failure(InvalidReason::Broken, "a key in double quotes")),
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.is_document |= quoted;
        }
        self.skip_space()?;
        self.read_colon()?;
        let Some(frame) = self.frames.last_mut() else { return Ok(ReadStep::Value) };
        frame.is_document = true;
        if frame.has_key(&key) {
            self.at = key_start;
            return Err(self.failure(InvalidReason::DuplicateKey, "each key once"));
        }
        frame.set_key(key);
        Ok(ReadStep::Value)
    }

    fn read_colon(&mut self) -> Result<(), JsonReadFailure> {
        let signs = [(":", false), ("：", true), ("=>", true)];
        for (sign, odd) in signs {
            if self.rest().starts_with(sign) && (!odd || self.is_lenient()) {
                self.at += sign.len();
                if odd {
                    self.record_repair(TextRepair::Punctuation);
                }
                return Ok(());
            }
        }
        Err(self.failure(InvalidReason::Broken, "a colon after the key"))
    }

    /// Reads what follows a value: a comma, a closing bracket, or a missing comma.
    fn read_after_value(&mut self) -> Result<ReadStep, JsonReadFailure> {
        match self.peek() {
            Some(',') => {
                self.at += 1;
                if let Some(frame) = self.frames.last_mut() {
                    frame.is_document = true;
                }
                Ok(ReadStep::Member)
            }
            Some('，') if self.is_lenient() => {
                self.record_repair(TextRepair::Punctuation);
                self.at += '，'.len_utf8();
                Ok(ReadStep::Member)
            }
            Some(bracket @ ('}' | ']')) => self.close_frame(bracket),
            None => self.close_at_end(),
            Some(_) if self.is_lenient() && self.is_at_document_end() => self.close_at_end(),
            Some(_) if self.is_lenient() && self.is_comma_missing() => {
                self.record_repair(TextRepair::MissingComma);
                Ok(ReadStep::Member)
            }
            Some(_) => Err(self.failure(InvalidReason::Broken, "a comma or a closing bracket")),
        }
    }

    fn close_frame(&mut self, bracket: char) -> Result<ReadStep, JsonReadFailure> {
        let object = bracket == '}';
        if self.is_in_object() != object {
            self.close_missing_bracket(object)?;
        }
        self.at += 1;
        Ok(self.pop_frame(false))
    }

    /// Closes the innermost object or array, because the bracket closes the outer one.
    fn close_missing_bracket(&mut self, object: bool) -> Result<(), JsonReadFailure> {
        let around = self.frames.iter().rev().nth(1).is_some_and(|frame| frame.object == object);
        if self.mode == JsonReadMode::Strict || !around || !self.has_members() {
            return Err(self
                .failure(InvalidReason::Broken, "the closing bracket that matches the open one"));
        }
        self.record_repair(TextRepair::MissingClose);
        self.pop_frame(true);
        self.find_alternatives(false);
        if self.bracket_alternatives.is_empty() {
            return Ok(());
        }
        Err(self.failure(InvalidReason::Ambiguous, "the missing closing bracket"))
    }

    fn close_at_end(&mut self) -> Result<ReadStep, JsonReadFailure> {
        // A number at the very end of the text may be incomplete.
        let before = self.text.get(..self.at).unwrap_or_default();
        let number = before.ends_with(|last: char| last.is_ascii_digit());
        if self.mode != JsonReadMode::Lenient || self.ends_in_comment || number {
            return Err(self.failure(InvalidReason::Broken, "a closing bracket"));
        }
        self.record_repair(TextRepair::MissingClose);
        while self.frames.len() > 1 {
            self.pop_frame(true);
        }
        Ok(self.pop_last_frame())
    }

    fn pop_last_frame(&mut self) -> ReadStep {
        self.find_alternatives(true);
        self.pop_frame(true)
    }

    /// Closes the innermost object or array and adds it to the outer one.
    fn pop_frame(&mut self, implicit: bool) -> ReadStep {
        let Some(mut frame) = self.frames.pop() else { return ReadStep::Done(Value::Null) };
        let tail = frame.take_closed(implicit);
        let value = frame.into_value();
        let next = self.add_value(value);
        if let Some(parent) = self.frames.last_mut() {
            parent.last_closed = Some(Box::new(tail));
        }
        next
    }

    /// Finds other positions for a missing bracket: see [`BracketAlternative`].
    fn find_alternatives(&mut self, implicit: bool) {
        if let Some(frame) = self.frames.last() {
            self.bracket_alternatives =
                frame::find_alternatives(frame, implicit, self.frames.iter().rev().skip(1));
        }
    }

    fn record_repair(&mut self, repair: TextRepair) {
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    fn record_column(&mut self) {
        let column = self.column();
        if let Some(frame) = self.frames.last_mut() {
            frame.record_member_start(column);
        }
    }

    fn is_lenient(&self) -> bool {
        self.mode != JsonReadMode::Strict
    }

    fn is_in_object(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.object)
    }

    fn has_members(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.count() > 0)
    }

    fn path(&self) -> String {
        let steps = self.frames.iter().filter_map(ReadFrame::pointer_token);
        steps.fold(String::new(), |path, step| path + "/" + &step)
    }

    fn failure(&self, reason: InvalidReason, expected: &'static str) -> JsonReadFailure {
        JsonReadFailure {
            reason,
            at: self.at,
            path: self.path(),
            expected,
            got: self.next_characters(),
            is_document: self.frames.iter().any(ReadFrame::is_committed),
        }
    }
}
