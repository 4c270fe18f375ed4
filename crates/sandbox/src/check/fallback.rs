//! Finds answers that are made up after a source failed.
//!
//! If a call for external data fails, the program must not return a success with a value that is
//! written into the program. An empty value is allowed, because it does not pretend to be data.

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{CallableSpec, Callables};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{BoolOp, CmpOp, ExceptHandler, Expr, Stmt};
use ruff_text_size::Ranged;

use crate::check::ViolationList;
use crate::check::names::{NameMeaning, ProgramNames};
use crate::check::tree::{argument, is_empty, is_literal, name, text};

pub(super) fn check_fallbacks(
    body: &[Stmt],
    names: &ProgramNames,
    known: &Callables,
    objections: &mut ViolationList<'_>,
) {
    let outside = ExternalCalls { names, known };
    if !outside.contains_call(body) {
        return;
    }
    let mut made_up = FallbackNames { outside: &outside, failed: 0, names: Vec::new() };
    made_up.visit_body(body);
    let names = made_up.names;
    FallbackPass { outside: &outside, made_up: names, failed: 0, objections }.visit_body(body);
}

/// Which calls return external data.
struct ExternalCalls<'p> {
    names: &'p ProgramNames,
    known: &'p Callables,
}

impl ExternalCalls<'_> {
    fn is_call(&self, expr: &Expr) -> bool {
        if let Some(call) = self.names.host_call(expr, "delegate") {
            let name = call.arguments.args.first().and_then(text);
            return is_external(&self.known.delegates, name);
        }
        if let Some(call) = self.names.host_call(expr, "tool") {
            let name = call.arguments.args.first().and_then(text);
            return !call.arguments.keywords.is_empty() && is_external(&self.known.tools, name);
        }
        let Expr::Call(call) = expr else { return false };
        match self.names.value(&call.func) {
            NameMeaning::Tool(name) => is_external(&self.known.tools, name.as_deref()),
            _ => false,
        }
    }

    /// Whether these statements contain a call for external data.
    fn contains_call(&self, body: &[Stmt]) -> bool {
        let mut calls = ExternalCallFinder { outside: self, found: false };
        calls.visit_body(body);
        calls.found
    }
}

/// A call with an unknown name counts as external if any entry is.
fn is_external(named: &[CallableSpec], name: Option<&str>) -> bool {
    named.iter().any(|it| it.external && name.is_none_or(|name| it.name == name))
}

struct ExternalCallFinder<'p> {
    outside: &'p ExternalCalls<'p>,
    found: bool,
}

impl<'a> Visitor<'a> for ExternalCallFinder<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        self.found |= self.outside.is_call(expr);
        visitor::walk_expr(self, expr);
    }
}

/// Whether a condition is true for an outcome with an error.
fn is_failure_test(test: &Expr) -> bool {
    let Expr::Compare(it) = test else { return false };
    let says = |word: &str| it.comparators.iter().any(|other| text(other) == Some(word));
    match it.ops.first() {
        Some(CmpOp::Eq) => says("error"),
        Some(CmpOp::NotEq) => says("ok"),
        _ => false,
    }
}

fn is_made_up(value: &Expr) -> bool {
    is_literal(value) && !is_empty(value)
}

/// Collects the names that get a made-up value after a source failed.
struct FallbackNames<'p> {
    outside: &'p ExternalCalls<'p>,
    failed: u32,
    names: Vec<String>,
}

impl<'a> Visitor<'a> for FallbackNames<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Try(it) if self.outside.contains_call(&it.body) => {
                self.visit_body(&it.body);
                self.failed += 1;
                it.handlers.iter().for_each(|handler| self.visit_except_handler(handler));
                self.failed -= 1;
                self.visit_body(&it.orelse);
                self.visit_body(&it.finalbody);
                return;
            }
            Stmt::Assign(it) if self.failed > 0 && is_made_up(&it.value) => {
                self.names.extend(it.targets.iter().filter_map(name).map(str::to_owned));
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }
}

struct FallbackPass<'p, 's> {
    outside: &'p ExternalCalls<'p>,
    made_up: Vec<String>,
    /// How many failed sources surround the current position.
    failed: u32,
    objections: &'p mut ViolationList<'s>,
}

impl FallbackPass<'_, '_> {
    /// Whether an answer is made up, here or at an earlier assignment.
    fn is_answer_made_up(&self, value: &Expr) -> bool {
        match value {
            Expr::Name(it) => self.made_up.iter().any(|name| name == it.id.as_str()),
            Expr::Dict(it) if !is_literal(value) => it.items.iter().any(|item| {
                matches!(item.value, Expr::Name(_)) && self.is_answer_made_up(&item.value)
            }),
            Expr::BoolOp(it) if it.op == BoolOp::Or => {
                it.values.iter().any(|value| self.outside.is_call(value))
                    && it.values.last().is_some_and(is_made_up)
            }
            _ => self.failed > 0 && is_made_up(value),
        }
    }

    fn visit_failed(&mut self, body: &[Stmt]) {
        self.failed += 1;
        self.visit_body(body);
        self.failed -= 1;
    }
}

impl<'a> Visitor<'a> for FallbackPass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Try(it) if self.outside.contains_call(&it.body) => {
                self.visit_body(&it.body);
                for handler in &it.handlers {
                    let ExceptHandler::ExceptHandler(handler) = handler;
                    self.visit_failed(&handler.body);
                }
                self.visit_body(&it.orelse);
                self.visit_body(&it.finalbody);
            }
            Stmt::If(it) if is_failure_test(&it.test) => {
                self.visit_failed(&it.body);
                for clause in &it.elif_else_clauses {
                    self.visit_body(&clause.body);
                }
            }
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Some(call) = self.outside.names.host_call(expr, "ok")
            && let Some(value) = argument(call, 0, "value")
            && self.is_answer_made_up(value)
        {
            let message =
                "a source failed, and the program returns a value of its own as the answer";
            let at = call.start();
            self.objections.add(Subtype::HardcodedExternalFallbackSuccess, at, message);
        }
        visitor::walk_expr(self, expr);
    }
}
