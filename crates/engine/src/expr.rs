//! Conditions of rules, in a form that can be saved and is evaluated in bounded steps.

use serde::{Deserialize, Serialize};

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expr {
    /// A constant.
    Bool(bool),
}
