//! Helpers for syntax trees that several checks use.

use ruff_python_ast::{Expr, ExprCall, ExprName};

/// The name, if the expression is one.
pub(super) fn name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(ExprName { id, .. }) => Some(id.as_str()),
        _ => None,
    }
}

/// The text, if the expression is a string literal.
pub(super) fn text(expr: &Expr) -> Option<&str> {
    expr.as_string_literal_expr().map(|literal| literal.value.to_str())
}

/// The argument at a position or under a keyword.
pub(super) fn argument<'a>(call: &'a ExprCall, position: usize, keyword: &str) -> Option<&'a Expr> {
    call.arguments
        .find_positional(position)
        .or_else(|| call.arguments.find_keyword(keyword).map(|keyword| &keyword.value))
}

/// Calls `each` for every single target of an assignment.
pub(super) fn targets<'a>(target: &'a Expr, each: &mut dyn FnMut(&'a Expr)) {
    match target {
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|it| targets(it, each)),
        Expr::List(list) => list.elts.iter().for_each(|it| targets(it, each)),
        Expr::Starred(starred) => targets(&starred.value, each),
        single => each(single),
    }
}

/// Whether an expression consists of literals only.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::StringLiteral(_)
        | Expr::BytesLiteral(_)
        | Expr::NumberLiteral(_)
        | Expr::BooleanLiteral(_)
        | Expr::NoneLiteral(_) => true,
        Expr::List(list) => list.elts.iter().all(is_literal),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_literal),
        Expr::Set(set) => set.elts.iter().all(is_literal),
        Expr::UnaryOp(unary) => is_literal(&unary.operand),
        Expr::BinOp(binary) => is_literal(&binary.left) && is_literal(&binary.right),
        Expr::Dict(dict) => dict
            .items
            .iter()
            .all(|item| item.key.as_ref().is_none_or(is_literal) && is_literal(&item.value)),
        _ => false,
    }
}

/// Whether a literal is empty, so that it is not a made-up answer.
pub(super) fn is_empty(expr: &Expr) -> bool {
    match expr {
        Expr::NoneLiteral(_) => true,
        Expr::BooleanLiteral(literal) => !literal.value,
        Expr::StringLiteral(literal) => literal.value.is_empty(),
        Expr::List(list) => list.elts.iter().all(is_empty),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_empty),
        Expr::Dict(dict) => dict.items.iter().all(|item| is_empty(&item.value)),
        _ => false,
    }
}
