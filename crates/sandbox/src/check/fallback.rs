//! Answers that are made up where a source has failed.
//!
//! Where a call that goes outside is tried, what is caught must not become a success with
//! a value that is written into the program. That there is nothing is no made-up value.

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{Known, Named};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{BoolOp, CmpOp, ExceptHandler, Expr, Stmt};
use ruff_text_size::Ranged;

use crate::check::Objections;
use crate::check::names::{Meaning, Names};
use crate::check::tree::{argument, is_empty, is_literal, name, text};

pub(super) fn look(body: &[Stmt], names: &Names, known: &Known, objections: &mut Objections<'_>) {
    let outside = Outside { names, known };
    if !outside.is_in(body) {
        return;
    }
    let mut made_up = MadeUp { outside: &outside, failed: 0, names: Vec::new() };
    made_up.visit_body(body);
    let names = made_up.names;
    Pass { outside: &outside, made_up: names, failed: 0, objections }.visit_body(body);
}

/// Which calls go outside.
struct Outside<'p> {
    names: &'p Names,
    known: &'p Known,
}

impl Outside<'_> {
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
            Meaning::Tool(name) => is_external(&self.known.tools, name.as_deref()),
            _ => false,
        }
    }

    /// Whether some call in these statements goes outside.
    fn is_in(&self, body: &[Stmt]) -> bool {
        let mut calls = Calls { outside: self, found: false };
        calls.visit_body(body);
        calls.found
    }
}

/// One that is not known by name may be any of them.
fn is_external(named: &[Named], name: Option<&str>) -> bool {
    named.iter().any(|it| it.external && name.is_none_or(|name| it.name == name))
}

struct Calls<'p> {
    outside: &'p Outside<'p>,
    found: bool,
}

impl<'a> Visitor<'a> for Calls<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        self.found |= self.outside.is_call(expr);
        visitor::walk_expr(self, expr);
    }
}

/// Whether a condition says that an outcome is an error.
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

/// Names that are given a made-up value where a source has failed.
struct MadeUp<'p> {
    outside: &'p Outside<'p>,
    failed: u32,
    names: Vec<String>,
}

impl<'a> Visitor<'a> for MadeUp<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Try(it) if self.outside.is_in(&it.body) => {
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

struct Pass<'p, 's> {
    outside: &'p Outside<'p>,
    made_up: Vec<String>,
    /// How many failures of a source the place is behind.
    failed: u32,
    objections: &'p mut Objections<'s>,
}

impl Pass<'_, '_> {
    /// Whether an answer is made up, here or where a source has failed before.
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

impl<'a> Visitor<'a> for Pass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Try(it) if self.outside.is_in(&it.body) => {
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
            let message = "a source has failed, and a value of the program is given as its answer";
            let at = call.start();
            self.objections.add(Subtype::HardcodedExternalFallbackSuccess, at, message);
        }
        visitor::walk_expr(self, expr);
    }
}
