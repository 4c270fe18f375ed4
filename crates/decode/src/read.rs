//! One reader for JSON and for what models write instead of it.
//!
//! It keeps its own stack, so depth costs no recursion, and looks at each byte
//! a fixed number of times. Strictly it takes JSON and nothing else. Leniently it
//! mends a slip where only one reading is left, notes which kind it was, and stops
//! where two are.

mod frame;
mod look;
mod number;
mod space;
mod string;

use serde_json::Value;

use crate::decoded::{Reason, Repair};
use crate::limits::{DEPTH_MAX, VALUES_MAX};
use frame::Frame;
pub(crate) use frame::Split;

/// How much is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Nothing.
    Strict,
    /// What has one reading.
    Lenient,
    /// The same, but what is open at the end stays open: the text was cut off.
    Cut,
}

/// Why and where reading stopped.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) reason: Reason,
    pub(crate) at: usize,
    pub(crate) path: String,
    pub(crate) expected: &'static str,
    pub(crate) got: String,
    /// Whether this was the beginning of a document, and not a bracket in prose.
    pub(crate) committed: bool,
}

/// A value that was read.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) repairs: Vec<Repair>,
    /// Where it ends.
    pub(crate) end: usize,
    /// Other places where brackets that were put in could stand as well.
    pub(crate) splits: Vec<Split>,
}

impl Read {
    /// A value that nothing had to be done for.
    pub(crate) fn plain(value: Value) -> Self {
        Self { value, repairs: Vec::new(), end: 0, splits: Vec::new() }
    }
}

/// A place in a text, with what is open there.
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
    manner: Manner,
    frames: Vec<Frame>,
    repairs: Vec<Repair>,
    splits: Vec<Split>,
    values: usize,
    /// Whether the end of the text was reached inside a comment.
    comment_ends: bool,
}

/// What may come next.
enum Next {
    Value,
    First,
    Member,
    After,
    Done(Value),
}

impl<'t> Reader<'t> {
    /// A reader of the value that begins at `at`.
    pub(crate) fn new(text: &'t str, at: usize, manner: Manner) -> Self {
        Self {
            text,
            at,
            manner,
            frames: Vec::new(),
            repairs: Vec::new(),
            splits: Vec::new(),
            values: 0,
            comment_ends: false,
        }
    }

    /// Reads one value.
    pub(crate) fn read(&mut self) -> Result<Read, Stop> {
        self.run(Next::Value)
    }

    /// Reads the members of an object whose brace is missing.
    pub(crate) fn read_members(&mut self) -> Result<Read, Stop> {
        self.note(Repair::MissingOpen);
        self.frames.push(Frame::object());
        self.run(Next::Member)
    }

    /// What was complete when reading stopped, and where that was.
    pub(crate) fn into_partial(mut self) -> (String, Option<Value>) {
        let path = self.path();
        let mut inner = None;
        while let Some(mut frame) = self.frames.pop() {
            if let Some(value) = inner {
                frame.place(value);
            }
            inner = Some(frame.into_value());
        }
        (path, inner)
    }

    fn run(&mut self, mut next: Next) -> Result<Read, Stop> {
        loop {
            if !matches!(next, Next::Done(_)) {
                self.skip_space()?;
            }
            next = match next {
                Next::Value => self.value()?,
                Next::First => self.first()?,
                Next::Member => self.member()?,
                Next::After => self.after()?,
                Next::Done(value) => {
                    return Ok(Read {
                        value,
                        repairs: std::mem::take(&mut self.repairs),
                        end: self.at,
                        splits: std::mem::take(&mut self.splits),
                    });
                }
            };
        }
    }

    fn value(&mut self) -> Result<Next, Stop> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(self.stop(Reason::TooLong, "fewer values"));
        }
        let value = match self.peek() {
            Some('{') => return self.open(Frame::object()),
            Some('[') => return self.open(Frame::array()),
            Some(quote) if self.is_quote(quote) => Value::String(self.string_value()?),
            Some('-' | '+' | '.' | '0'..='9') => self.number()?,
            Some(letter) if letter.is_ascii_alphabetic() => self.word()?,
            _ => return Err(self.stop(Reason::Broken, "a value")),
        };
        Ok(self.place(value))
    }

    fn open(&mut self, frame: Frame) -> Result<Next, Stop> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(self.stop(Reason::TooDeep, "at most 100 levels"));
        }
        self.at += 1;
        self.frames.push(frame);
        Ok(Next::First)
    }

    /// Puts a value where it belongs.
    fn place(&mut self, value: Value) -> Next {
        match self.frames.last_mut() {
            Some(frame) => {
                frame.place(value);
                Next::After
            }
            None => Next::Done(value),
        }
    }

    fn first(&mut self) -> Result<Next, Stop> {
        match self.peek() {
            Some(bracket @ ('}' | ']')) => self.close(bracket),
            _ => self.member(),
        }
    }

    /// A member or item, or a close after a comma that is one too many.
    fn member(&mut self) -> Result<Next, Stop> {
        match self.peek() {
            Some(bracket @ ('}' | ']')) if self.has_members() => {
                if !self.lenient() || self.in_object() != (bracket == '}') {
                    return Err(self.stop(Reason::Broken, "another member or item"));
                }
                self.note(Repair::ExtraComma);
                self.after()
            }
            Some(',') if self.lenient() && self.in_object() && self.has_members() => {
                self.note(Repair::ExtraComma);
                self.at += 1;
                Ok(Next::Member)
            }
            None => Err(self.stop(Reason::Broken, "another member or item")),
            _ if self.in_object() => self.key(),
            _ => {
                self.mark_layout();
                self.value()
            }
        }
    }

    fn key(&mut self) -> Result<Next, Stop> {
        self.mark_layout();
        let began = self.at;
        let (key, quoted) = match self.peek() {
            Some(quote) if self.is_quote(quote) && quote != '`' => (self.string_key()?, true),
            Some(_) if self.lenient() => (self.bare_key()?, false),
            _ => return Err(self.stop(Reason::Broken, "a key in double quotes")),
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.committed |= quoted;
        }
        self.skip_space()?;
        self.colon()?;
        let Some(frame) = self.frames.last_mut() else { return Ok(Next::Value) };
        frame.committed = true;
        if frame.has(&key) {
            self.at = began;
            return Err(self.stop(Reason::DuplicateKey, "each key once"));
        }
        frame.begin(key);
        Ok(Next::Value)
    }

    fn colon(&mut self) -> Result<(), Stop> {
        let signs = [(":", false), ("：", true), ("=>", true)];
        for (sign, odd) in signs {
            if self.rest().starts_with(sign) && (!odd || self.lenient()) {
                self.at += sign.len();
                if odd {
                    self.note(Repair::Punctuation);
                }
                return Ok(());
            }
        }
        Err(self.stop(Reason::Broken, "a colon after the key"))
    }

    /// What follows a value: a comma, a close, or a comma that is missing.
    fn after(&mut self) -> Result<Next, Stop> {
        match self.peek() {
            Some(',') => {
                self.at += 1;
                if let Some(frame) = self.frames.last_mut() {
                    frame.committed = true;
                }
                Ok(Next::Member)
            }
            Some('，') if self.lenient() => {
                self.note(Repair::Punctuation);
                self.at += '，'.len_utf8();
                Ok(Next::Member)
            }
            Some(bracket @ ('}' | ']')) => self.close(bracket),
            None => self.close_at_end(),
            Some(_) if self.lenient() && self.document_ends() => self.close_at_end(),
            Some(_) if self.lenient() && self.comma_is_missing() => {
                self.note(Repair::MissingComma);
                Ok(Next::Member)
            }
            Some(_) => Err(self.stop(Reason::Broken, "a comma or a closing bracket")),
        }
    }

    fn close(&mut self, bracket: char) -> Result<Next, Stop> {
        let object = bracket == '}';
        if self.in_object() != object {
            self.close_forgotten(object)?;
        }
        self.at += 1;
        Ok(self.pop(false))
    }

    /// A bracket that closes what is around the innermost: that one was forgotten.
    fn close_forgotten(&mut self, object: bool) -> Result<(), Stop> {
        let around = self.frames.iter().rev().nth(1).is_some_and(|frame| frame.object == object);
        if self.manner == Manner::Strict || !around || !self.has_members() {
            return Err(self.stop(Reason::Broken, "the bracket that fits the one that is open"));
        }
        self.note(Repair::MissingClose);
        self.pop(true);
        self.find_splits(false);
        if self.splits.is_empty() {
            return Ok(());
        }
        Err(self.stop(Reason::Ambiguous, "the closing bracket that is missing"))
    }

    fn close_at_end(&mut self) -> Result<Next, Stop> {
        // A number may go on where nothing, not even a line break, follows it.
        let before = self.text.get(..self.at).unwrap_or_default();
        let number = before.ends_with(|last: char| last.is_ascii_digit());
        if self.manner != Manner::Lenient || self.comment_ends || number {
            return Err(self.stop(Reason::Broken, "a closing bracket"));
        }
        self.note(Repair::MissingClose);
        while self.frames.len() > 1 {
            self.pop(true);
        }
        Ok(self.pop_with_splits())
    }

    fn pop_with_splits(&mut self) -> Next {
        self.find_splits(true);
        self.pop(true)
    }

    /// Closes the innermost, and puts it where it belongs.
    fn pop(&mut self, implicit: bool) -> Next {
        let Some(mut frame) = self.frames.pop() else { return Next::Done(Value::Null) };
        let tail = frame.take_tail(implicit);
        let value = frame.into_value();
        let next = self.place(value);
        if let Some(parent) = self.frames.last_mut() {
            parent.tail = Some(Box::new(tail));
        }
        next
    }

    /// Where else a bracket that is missing could stand: see [`Split`].
    fn find_splits(&mut self, implicit: bool) {
        if let Some(frame) = self.frames.last() {
            self.splits = frame::splits(frame, implicit, self.frames.iter().rev().skip(1));
        }
    }

    fn note(&mut self, repair: Repair) {
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    fn mark_layout(&mut self) {
        let column = self.column();
        if let Some(frame) = self.frames.last_mut() {
            frame.mark(column);
        }
    }

    fn lenient(&self) -> bool {
        self.manner != Manner::Strict
    }

    fn in_object(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.object)
    }

    fn has_members(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.count() > 0)
    }

    fn path(&self) -> String {
        let steps = self.frames.iter().filter_map(Frame::step);
        steps.fold(String::new(), |path, step| path + "/" + &step)
    }

    fn stop(&self, reason: Reason, expected: &'static str) -> Stop {
        Stop {
            reason,
            at: self.at,
            path: self.path(),
            expected,
            got: self.shown(),
            committed: self.frames.iter().any(Frame::is_committed),
        }
    }
}
