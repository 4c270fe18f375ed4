//! Conditions of rules, in a form that can be saved and is evaluated in bounded steps.
//!
//! A condition is written in the part of CEL that rules need; the `definition`
//! crate reads the text and makes the nodes here. They lie in one list instead
//! of a tree, so that one read back from a damaged file can't be nested deeper
//! than the stack, and nothing needs to be checked before it is evaluated.

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

pub use names::{FUNCTIONS, Question, Shape, Variable};
pub use pattern::{Inst, Look, PROGRAM_MAX, Pattern};
pub use value::{Text, Value};

/// How deep a condition may be nested.
pub const DEPTH_MAX: u16 = 48;

/// What a condition may look at.
pub trait Scope<'a> {
    /// The value of a variable.
    fn value(&self, variable: Variable) -> Result<Value<'a>, Trouble>;

    /// The answer to a question about a path.
    fn ask(&self, question: Question, path: &str) -> Result<bool, Trouble>;
}

/// Why a condition is neither true nor false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It depends on a fact that has not been gathered yet.
    Missing,
    /// It can't be answered: wrong types, no such key, an overflow, too many steps.
    Broken(String),
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expr {
    // Parts come before what they are part of, so the last node is the whole.
    nodes: Vec<Node>,
}

/// The place of a node in its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(pub u16);

/// One part of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// `[a, b]`.
    List(Vec<Id>),
    /// `{"a": b}`.
    Map(Vec<(Id, Id)>),
    /// A variable.
    Variable(Variable),
    /// What a macro is at: 0 is the innermost macro.
    Local(u8),
    /// `!a`.
    Not(Id),
    /// `-a`.
    Negate(Id),
    /// `a && b && …`.
    And(Vec<Id>),
    /// `a || b || …`.
    Or(Vec<Id>),
    /// `a ? b : c`.
    If(Id, Id, Id),
    /// `a < b` and its like.
    Compare(Comparison, Id, Id),
    /// `a in b`.
    In(Id, Id),
    /// `a + b` and its like.
    Arithmetic(Operator, Id, Id),
    /// `a[b]`.
    Index(Id, Id),
    /// `a.b`.
    Member(Id, String),
    /// `has(a.b)`.
    Has(Id, String),
    /// `size(a)` and its like.
    Call(Function, Id),
    /// `a.startsWith(b)` and its like.
    Test(Test, Id, Id),
    /// `a.matches("…")`.
    Matches(Id, Pattern),
    /// `exists(a)` and its like.
    Ask(Question, Id),
    /// `a.exists(x, b)` and its like.
    Each(Macro, Id, Id),
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
    fn fits(self, order: Ordering) -> bool {
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

/// What is done with two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
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
pub enum Function {
    /// How many characters, items or keys.
    Size,
    /// The whole number a text or a decimal stands for.
    Int,
    /// A number or a truth value as text.
    String,
    /// A text with `A` to `Z` in lower case.
    LowerAscii,
}

/// Where a text is looked for in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// At the beginning.
    StartsWith,
    /// At the end.
    EndsWith,
    /// Anywhere.
    Contains,
}

/// What is done with each item of a list, or each key of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Macro {
    /// True for one at least.
    Exists,
    /// True for every one.
    All,
    /// True for exactly one.
    ExistsOne,
    /// Those for which it is true.
    Filter,
    /// What becomes of each.
    Map,
}

impl Expr {
    /// A condition from its parts; the last one is the whole.
    pub fn new(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// A condition that is always true, or always false.
    pub fn always(truth: bool) -> Self {
        Self::new(Vec::from([Node::Bool(truth)]))
    }

    /// Whether the condition is true of what `scope` shows.
    ///
    /// Every part evaluated, every item visited, every 16 bytes of text looked at
    /// and every 4 instructions of a pattern take one from `steps`; with none left
    /// the condition is broken.
    pub fn holds(&self, scope: &dyn Scope<'_>, steps: &mut u32) -> Result<bool, Trouble> {
        eval::holds(&self.nodes, scope, steps)
    }

    /// The variables it uses, each time it uses them.
    pub fn variables(&self) -> impl Iterator<Item = Variable> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Variable(variable) => Some(*variable),
            _ => None,
        })
    }

    /// The questions it asks, each time it asks them.
    pub fn questions(&self) -> impl Iterator<Item = Question> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Ask(question, _) => Some(*question),
            _ => None,
        })
    }

    /// What it comes to whatever the call is, where that can be seen.
    pub fn constant(&self) -> Option<bool> {
        const STEPS_MAX: u32 = 10_000;
        self.holds(&Nothing, &mut { STEPS_MAX }).ok()
    }
}

/// A scope that knows nothing yet.
struct Nothing;

impl Scope<'_> for Nothing {
    fn value(&self, _: Variable) -> Result<Value<'static>, Trouble> {
        Err(Trouble::Missing)
    }

    fn ask(&self, _: Question, _: &str) -> Result<bool, Trouble> {
        Err(Trouble::Missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn broken(nodes: Vec<Node>) -> String {
        match Expr::new(nodes).holds(&Nothing, &mut 1_000) {
            Err(Trouble::Broken(why)) => why,
            answer => panic!("{answer:?}"),
        }
    }

    #[test]
    fn a_condition_that_no_parser_made_is_broken_at_worst() {
        let missing = "a part of it is missing";
        assert_eq!(broken(vec![]), missing);
        assert_eq!(broken(vec![Node::Not(Id(7))]), missing);
        assert_eq!(broken(vec![Node::Local(3)]), missing);
        assert_eq!(broken(vec![Node::Not(Id(0))]), "it is nested deeper than 48");
        assert_eq!(
            broken(vec![Node::And(vec![Id(0), Id(0), Id(0)])]),
            "it is nested deeper than 48"
        );
        let list = vec![Node::List(vec![Id(0); 3]), Node::Call(Function::Size, Id(0))];
        assert_eq!(broken(list), "it is nested deeper than 48");
        // Each doubles what the one before takes.
        let mut doubling = vec![Node::Bool(true)];
        doubling.extend((0..30).map(|id| Node::And(vec![Id(id), Id(id)])));
        assert_eq!(broken(doubling), "it takes more than 1000 steps");
    }

    #[test]
    fn a_pattern_that_no_parser_made_ends() {
        let found = |program| {
            let nodes =
                vec![Node::Text("abc".into()), Node::Matches(Id(0), Pattern::new(program, vec![]))];
            Expr::new(nodes).holds(&Nothing, &mut 1_000)
        };
        assert_eq!(found(vec![]), Ok(true));
        assert_eq!(found(vec![Inst::Jump(0)]), Ok(false));
        assert_eq!(found(vec![Inst::Fork(0), Inst::Jump(0)]), Ok(false));
        assert_eq!(found(vec![Inst::Fork(9_999), Inst::Char('c')]), Ok(true));
        assert_eq!(found(vec![Inst::Class(3)]), Ok(false));
    }
}
