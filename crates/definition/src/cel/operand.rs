//! What is known of a part of a condition before any call: a mistake that would
//! break at every call is refused when the definition is loaded.

use jackline_engine::expr::{Comparison, Id, Operator, Shape};

use super::Wrong;

/// A part that has been read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) id: Id,
    pub(super) kind: Kind,
    /// How deep it is nested.
    pub(super) height: u16,
    /// Where it begins.
    pub(super) at: usize,
}

/// What kind of value a part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Known only at the call.
    Any,
    Null,
    Bool,
    Number,
    Text,
    List,
    /// A list of texts.
    Texts,
    Map,
}

impl From<Shape> for Kind {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Bool => Self::Bool,
            Shape::Number => Self::Number,
            Shape::Text => Self::Text,
            Shape::Texts => Self::Texts,
            Shape::Map => Self::Map,
        }
    }
}

impl Kind {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Texts => "a list of texts",
            Self::Map => "a map",
        }
    }

    /// Whether a value of this kind can be of the other kind too.
    fn fits(self, other: Self) -> bool {
        self == other
            || self == Self::Any
            || other == Self::Any
            || matches!((self, other), (Self::List, Self::Texts) | (Self::Texts, Self::List))
    }

    /// What one of two values is.
    pub(super) fn either(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::List | Self::Texts, Self::List | Self::Texts) => Self::List,
            _ => Self::Any,
        }
    }

    /// What an item of it is, where it has items.
    pub(super) fn item(self) -> Option<Self> {
        match self {
            Self::Any | Self::List => Some(Self::Any),
            Self::Texts | Self::Map => Some(Self::Text),
            Self::Null | Self::Bool | Self::Number | Self::Text => None,
        }
    }
}

impl Operand {
    /// Refuses what can't be of the kind that must stand here.
    pub(super) fn must_be(self, kind: Kind) -> Result<(), Wrong> {
        if self.kind.fits(kind) {
            return Ok(());
        }
        let message = format!("this is {}, not {}", self.kind.words(), kind.words());
        Err(Wrong::new(self.at, message))
    }
}

/// Refuses a comparison whose answer does not depend on the call, or is none.
pub(super) fn compare(how: Comparison, a: Kind, b: Kind, at: usize) -> Result<(), Wrong> {
    let (left, right) = (a.words(), b.words());
    if !a.fits(b) {
        return Err(match how {
            Comparison::Equal | Comparison::Unequal => {
                Wrong::new(at, format!("{left} is never equal to {right}"))
            }
            _ => Wrong::new(at, format!("{left} can't be compared with {right}")),
        });
    }
    let has_order = |kind| matches!(kind, Kind::Any | Kind::Bool | Kind::Number | Kind::Text);
    match how {
        Comparison::Equal | Comparison::Unequal => Ok(()),
        _ if has_order(a) && has_order(b) => Ok(()),
        _ => Err(Wrong::new(at, format!("{left} can't be compared with {right}"))
            .hint("compare with `==` or `!=`")),
    }
}

/// Refuses to look into what holds nothing, or never this.
pub(super) fn look_into(item: Kind, within: Kind, at: usize) -> Result<(), Wrong> {
    match within.item() {
        Some(held) if held.fits(item) => Ok(()),
        Some(_) => {
            let (item, within) = (item.words(), within.words());
            Err(Wrong::new(at, format!("{item} is never in {within}")))
        }
        None => {
            let wrong = Wrong::new(at, format!("`in` can't look into {}", within.words()));
            Err(if within == Kind::Text { wrong.hint("write `a.contains(b)`") } else { wrong })
        }
    }
}

/// What an operator makes of two values.
pub(super) fn arithmetic(
    operator: Operator,
    sign: &str,
    a: Kind,
    b: Kind,
    at: usize,
) -> Result<Kind, Wrong> {
    let fits = |kind: Kind| match kind {
        Kind::Any | Kind::Number => true,
        Kind::Text | Kind::List | Kind::Texts => operator == Operator::Add,
        Kind::Null | Kind::Bool | Kind::Map => false,
    };
    if !(fits(a) && fits(b) && a.fits(b)) {
        let message = format!("`{sign}` can't be used on {} and {}", a.words(), b.words());
        let wrong = Wrong::new(at, message);
        let mixes_text = operator == Operator::Add && (a == Kind::Text || b == Kind::Text);
        return Err(if mixes_text { wrong.hint("make a text with `string(…)`") } else { wrong });
    }
    Ok(match (a, b) {
        (Kind::Any, Kind::Any) if operator != Operator::Add => Kind::Number,
        (Kind::Any, Kind::List | Kind::Texts) | (Kind::List | Kind::Texts, Kind::Any) => Kind::List,
        (Kind::Any, known) | (known, Kind::Any) => known,
        (a, b) => a.either(b),
    })
}
