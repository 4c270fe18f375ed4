//! Checks the types of a condition when the definition is loaded, so that a condition that would
//! fail at every call is refused early.

use jackline_engine::expr::{ArithmeticOperator, Comparison, ExprNodeId, ValueShape};

use super::ConditionError;

/// A parsed part of a condition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) id: ExprNodeId,
    pub(super) value_type: OperandType,
    /// The nesting depth.
    pub(super) height: u16,
    /// The offset in bytes of the start of the part.
    pub(super) offset: usize,
}

/// The type of the value of a part, as far as it is known before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandType {
    /// The type depends on the call.
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

impl From<ValueShape> for OperandType {
    fn from(shape: ValueShape) -> Self {
        match shape {
            ValueShape::Bool => Self::Bool,
            ValueShape::Number => Self::Number,
            ValueShape::Text => Self::Text,
            ValueShape::Texts => Self::Texts,
            ValueShape::Map => Self::Map,
        }
    }
}

impl OperandType {
    pub(super) fn describe(self) -> &'static str {
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

    /// Whether a value of this type can also have the other type.
    fn can_be(self, other: Self) -> bool {
        self == other
            || self == Self::Any
            || other == Self::Any
            || matches!((self, other), (Self::List, Self::Texts) | (Self::Texts, Self::List))
    }

    /// Returns the type of a value that is one of two values.
    pub(super) fn common_type(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::List | Self::Texts, Self::List | Self::Texts) => Self::List,
            _ => Self::Any,
        }
    }

    /// Returns the type of the items, if the type has items.
    pub(super) fn item_type(self) -> Option<Self> {
        match self {
            Self::Any | Self::List => Some(Self::Any),
            Self::Texts | Self::Map => Some(Self::Text),
            Self::Null | Self::Bool | Self::Number | Self::Text => None,
        }
    }
}

impl Operand {
    /// Refuses a value that can't have the required type.
    pub(super) fn require_type(self, kind: OperandType) -> Result<(), ConditionError> {
        if self.value_type.can_be(kind) {
            return Ok(());
        }
        let message = format!("this is {}, not {}", self.value_type.describe(), kind.describe());
        Err(ConditionError::new(self.offset, message))
    }
}

/// Refuses a comparison that always has the same result, or that is not defined.
pub(super) fn check_comparison(
    how: Comparison,
    a: OperandType,
    b: OperandType,
    at: usize,
) -> Result<(), ConditionError> {
    let (left, right) = (a.describe(), b.describe());
    if !a.can_be(b) {
        return Err(match how {
            Comparison::Equal | Comparison::Unequal => {
                ConditionError::new(at, format!("{left} is never equal to {right}"))
            }
            _ => ConditionError::new(at, format!("{left} can't be compared with {right}")),
        });
    }
    let has_order = |kind| {
        matches!(
            kind,
            OperandType::Any | OperandType::Bool | OperandType::Number | OperandType::Text
        )
    };
    match how {
        Comparison::Equal | Comparison::Unequal => Ok(()),
        _ if has_order(a) && has_order(b) => Ok(()),
        _ => Err(ConditionError::new(at, format!("{left} can't be compared with {right}"))
            .hint("compare with `==` or `!=`")),
    }
}

/// Refuses `in` on a value without items, or whose items never have this type.
pub(super) fn check_membership(
    item: OperandType,
    within: OperandType,
    at: usize,
) -> Result<(), ConditionError> {
    match within.item_type() {
        Some(own) if own.can_be(item) => Ok(()),
        Some(_) => {
            let (item, within) = (item.describe(), within.describe());
            Err(ConditionError::new(at, format!("{item} is never in {within}")))
        }
        None => {
            let wrong =
                ConditionError::new(at, format!("`in` can't be used on {}", within.describe()));
            Err(if within == OperandType::Text {
                wrong.hint("write `a.contains(b)`")
            } else {
                wrong
            })
        }
    }
}

/// Returns the type of the result of an arithmetic operator, or refuses its operands.
pub(super) fn check_arithmetic(
    operator: ArithmeticOperator,
    sign: &str,
    a: OperandType,
    b: OperandType,
    at: usize,
) -> Result<OperandType, ConditionError> {
    let fits = |kind: OperandType| match kind {
        OperandType::Any | OperandType::Number => true,
        OperandType::Text | OperandType::List | OperandType::Texts => {
            operator == ArithmeticOperator::Add
        }
        OperandType::Null | OperandType::Bool | OperandType::Map => false,
    };
    if !(fits(a) && fits(b) && a.can_be(b)) {
        let message = format!("`{sign}` can't be used on {} and {}", a.describe(), b.describe());
        let wrong = ConditionError::new(at, message);
        let mixes_text = operator == ArithmeticOperator::Add
            && (a == OperandType::Text || b == OperandType::Text);
        return Err(if mixes_text {
            wrong.hint("convert to a text with `string(…)`")
        } else {
            wrong
        });
    }
    Ok(match (a, b) {
        (OperandType::Any, OperandType::Any) if operator != ArithmeticOperator::Add => {
            OperandType::Number
        }
        (OperandType::Any, OperandType::List | OperandType::Texts)
        | (OperandType::List | OperandType::Texts, OperandType::Any) => OperandType::List,
        (OperandType::Any, known) | (known, OperandType::Any) => known,
        (a, b) => a.common_type(b),
    })
}
