//! Conditions of rules, in a form that can be saved and is evaluated in a bounded number of steps.
//!
//! A condition is written in the part of CEL that rules need. The `definition` crate parses the
//! text and creates the nodes of this module. The nodes are in one list and not in a tree. So a
//! condition that is read from a damaged file can't be nested deeper than the stack allows, and
//! needs no check before it is evaluated.

mod decimal;
mod eval;
mod names;
mod operators;
mod pattern;
mod value;

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub use names::{FUNCTIONS, PathQuestion, ValueShape, Variable};
pub use pattern::{ExprPattern, PATTERN_INSTRUCTIONS_MAX, PatternAnchor, PatternInstruction};
pub use value::{ExprText, ExprValue};

/// How deep a condition may be nested.
pub const DEPTH_MAX: u16 = 48;

/// The values that a condition may use.
pub trait ConditionScope<'a> {
    /// The value of a variable.
    fn value(&self, variable: Variable) -> Result<ExprValue<'a>, EvaluationError>;

    /// The answer to a question about a path.
    fn answer(&self, question: PathQuestion, path: &str) -> Result<bool, EvaluationError>;
}

/// Why a condition is neither true nor false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvaluationError {
    /// It depends on a fact that the runtime has not gathered yet.
    MissingFact,
    /// It can't be evaluated: wrong types, a missing key, an overflow, too many steps.
    Failed(String),
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expr {
    // A node comes after the nodes it refers to, so the last node is the whole condition.
    nodes: Vec<ExprNode>,
}

/// The index of a node in its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExprNodeId(pub u16);

/// One part of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExprNode {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// `[a, b]`.
    List(Vec<ExprNodeId>),
    /// `{"a": b}`.
    Map(Vec<(ExprNodeId, ExprNodeId)>),
    /// A variable.
    Variable(Variable),
    /// The variable of a macro: 0 belongs to the innermost macro.
    Local(u8),
    /// `!a`.
    Not(ExprNodeId),
    /// `-a`.
    Negate(ExprNodeId),
    /// `a && b && …`.
    And(Vec<ExprNodeId>),
    /// `a || b || …`.
    Or(Vec<ExprNodeId>),
    /// `a ? b : c`.
    If(ExprNodeId, ExprNodeId, ExprNodeId),
    /// `a < b` and the other comparisons.
    Compare(Comparison, ExprNodeId, ExprNodeId),
    /// `a in b`.
    In(ExprNodeId, ExprNodeId),
    /// `a + b` and the other operators.
    Arithmetic(ArithmeticOperator, ExprNodeId, ExprNodeId),
    /// `a[b]`.
    Index(ExprNodeId, ExprNodeId),
    /// `a.b`.
    Member(ExprNodeId, String),
    /// `has(a.b)`.
    Has(ExprNodeId, String),
    /// `size(a)` and the other functions of one value.
    Call(ExprFunction, ExprNodeId),
    /// `a.startsWith(b)` and the other tests.
    Test(TextTest, ExprNodeId, ExprNodeId),
    /// `a.matches("…")`.
    Matches(ExprNodeId, ExprPattern),
    /// `exists(a)` and the other questions about a path.
    Ask(PathQuestion, ExprNodeId),
    /// `a.exists(x, b)` and the other macros.
    Each(ExprMacro, ExprNodeId, ExprNodeId),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Comparison {
    fn matches_ordering(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// What is computed from two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArithmeticOperator {
    /// `+`, which also joins texts and lists.
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExprFunction {
    /// How many characters, items or keys.
    Size,
    /// The whole number that a text or a decimal represents.
    Int,
    /// A number or a truth value as text.
    String,
    /// A text with `A` to `Z` in lower case.
    LowerAscii,
}

/// Where a text must occur in another text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextTest {
    /// At the beginning.
    StartsWith,
    /// At the end.
    EndsWith,
    /// Anywhere.
    Contains,
}

/// What a macro does with each item of a list, or each key of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExprMacro {
    /// True if the body is true for at least one item.
    Exists,
    /// True if the body is true for every item.
    All,
    /// True if the body is true for exactly one item.
    ExistsOne,
    /// The items for which the body is true.
    Filter,
    /// The value of the body for each item.
    Map,
}

impl Expr {
    /// Creates a condition from its nodes. The last one is the whole condition.
    pub fn new(nodes: Vec<ExprNode>) -> Self {
        Self { nodes }
    }

    /// A condition that is always true or always false.
    pub fn constant_condition(truth: bool) -> Self {
        Self::new(Vec::from([ExprNode::Bool(truth)]))
    }

    /// Evaluates the condition with the values of `scope`.
    ///
    /// Each of these uses one of the `steps`: a node that is evaluated, an item that is visited, 16
    /// bytes of text that are read, and 4 instructions of a pattern. When no steps are left, the
    /// evaluation fails.
    pub fn evaluate(
        &self,
        scope: &dyn ConditionScope<'_>,
        steps: &mut u32,
    ) -> Result<bool, EvaluationError> {
        eval::evaluate(&self.nodes, scope, steps)
    }

    /// The variables it uses, including repetitions.
    pub fn variables(&self) -> impl Iterator<Item = Variable> {
        self.nodes.iter().filter_map(|node| match node {
            ExprNode::Variable(variable) => Some(*variable),
            _ => None,
        })
    }

    /// The questions it asks, including repetitions.
    pub fn questions(&self) -> impl Iterator<Item = PathQuestion> {
        self.nodes.iter().filter_map(|node| match node {
            ExprNode::Ask(question, _) => Some(*question),
            _ => None,
        })
    }

    /// The value of the condition if it is the same for every call.
    pub fn constant_value(&self) -> Option<bool> {
        const STEPS_MAX: u32 = 10_000;
        self.evaluate(&EmptyScope, &mut { STEPS_MAX }).ok()
    }
}

/// A scope without any values.
struct EmptyScope;

impl ConditionScope<'_> for EmptyScope {
    fn value(&self, _: Variable) -> Result<ExprValue<'static>, EvaluationError> {
        Err(EvaluationError::MissingFact)
    }

    fn answer(&self, _: PathQuestion, _: &str) -> Result<bool, EvaluationError> {
        Err(EvaluationError::MissingFact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn broken(nodes: Vec<ExprNode>) -> String {
        match Expr::new(nodes).evaluate(&EmptyScope, &mut 1_000) {
            Err(EvaluationError::Failed(why)) => why,
            answer => panic!("{answer:?}"),
        }
    }

    #[test]
    fn an_invalid_condition_fails_and_does_not_panic() {
        let missing = "a part of it is missing";
        assert_eq!(broken(vec![]), missing);
        assert_eq!(broken(vec![ExprNode::Not(ExprNodeId(7))]), missing);
        assert_eq!(broken(vec![ExprNode::Local(3)]), missing);
        assert_eq!(broken(vec![ExprNode::Not(ExprNodeId(0))]), "it is nested deeper than 48");
        assert_eq!(
            broken(vec![ExprNode::And(vec![ExprNodeId(0), ExprNodeId(0), ExprNodeId(0)])]),
            "it is nested deeper than 48"
        );
        let list = vec![
            ExprNode::List(vec![ExprNodeId(0); 3]),
            ExprNode::Call(ExprFunction::Size, ExprNodeId(0)),
        ];
        assert_eq!(broken(list), "it is nested deeper than 48");
        // Each node doubles the cost of the node before it.
        let mut doubling = vec![ExprNode::Bool(true)];
        doubling.extend((0..30).map(|id| ExprNode::And(vec![ExprNodeId(id), ExprNodeId(id)])));
        assert_eq!(broken(doubling), "it takes more than 1000 steps");
    }

    #[test]
    fn an_invalid_pattern_terminates() {
        let found = |program| {
            let nodes = vec![
                ExprNode::Text("abc".into()),
                ExprNode::Matches(ExprNodeId(0), ExprPattern::new(program, vec![])),
            ];
            Expr::new(nodes).evaluate(&EmptyScope, &mut 1_000)
        };
        assert_eq!(found(vec![]), Ok(true));
        assert_eq!(found(vec![PatternInstruction::Jump(0)]), Ok(false));
        assert_eq!(
            found(vec![PatternInstruction::Fork(0), PatternInstruction::Jump(0)]),
            Ok(false)
        );
        assert_eq!(
            found(vec![PatternInstruction::Fork(9_999), PatternInstruction::Char('c')]),
            Ok(true)
        );
        assert_eq!(found(vec![PatternInstruction::Class(3)]), Ok(false));
    }
}
