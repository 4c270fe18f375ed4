//! Finds constructs that reach outside, or hide what is called.

use jackline_attempt::Subtype;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::check::ViolationList;
use crate::check::names::ProgramNames;

/// Modules that only compute.
const MODULES: [&str; 12] = [
    "base64",
    "binascii",
    "collections",
    "dataclasses",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "typing",
    "unicodedata",
];

/// Python functions that run text, reach outside, or expose internals.
const FORBIDDEN_FUNCTIONS: [&str; 12] = [
    "__import__",
    "breakpoint",
    "compile",
    "eval",
    "exec",
    "exit",
    "globals",
    "input",
    "locals",
    "open",
    "quit",
    "vars",
];

/// Dunder attributes that expose no internals.
const ALLOWED_DUNDERS: [&str; 3] = ["__doc__", "__init__", "__name__"];

pub(super) fn check_forbidden(
    body: &[Stmt],
    names: &ProgramNames,
    objections: &mut ViolationList<'_>,
) {
    ForbiddenPass { names, objections }.visit_body(body);
}

struct ForbiddenPass<'p, 's> {
    names: &'p ProgramNames,
    objections: &'p mut ViolationList<'s>,
}

impl ForbiddenPass<'_, '_> {
    fn import(&mut self, module: &str, at: TextSize) {
        let top = module.split('.').next().unwrap_or_default();
        if MODULES.contains(&top) {
            return;
        }
        let correction =
            format!("Call a tool to reach outside; the only modules are {}.", MODULES.join(", "));
        let message = format!("a program can't import `{module}`");
        self.objections.add_with_correction(Subtype::ForbiddenConstruct, at, message, correction);
    }

    fn refuse_await(&mut self, at: TextSize) {
        let message = "a program can't await: its calls return when they are done";
        let correction = "Write plain functions, without `async` and `await`.";
        self.objections.add_with_correction(Subtype::ForbiddenConstruct, at, message, correction);
    }
}

impl<'a> Visitor<'a> for ForbiddenPass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(it) => {
                it.names.iter().for_each(|alias| self.import(alias.name.as_str(), alias.start()));
            }
            Stmt::ImportFrom(it) => {
                let module = it.module.as_ref().map_or(".", |module| module.as_str());
                self.import(if it.level > 0 { "." } else { module }, it.start());
            }
            Stmt::FunctionDef(it) if it.is_async => self.refuse_await(it.start()),
            Stmt::For(it) if it.is_async => self.refuse_await(it.start()),
            Stmt::With(it) if it.is_async => self.refuse_await(it.start()),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(it)
                if FORBIDDEN_FUNCTIONS.contains(&it.id.as_str())
                    && self.names.meaning(it.id.as_str()).is_none() =>
            {
                let message = format!("`{}` is not available in a program", it.id);
                self.objections.add(Subtype::ForbiddenConstruct, it.start(), message);
            }
            Expr::Attribute(it) => {
                let attribute = it.attr.as_str();
                let is_dunder = attribute.starts_with("__") && attribute.ends_with("__");
                if is_dunder && !ALLOWED_DUNDERS.contains(&attribute) {
                    let message = format!("a program must not use the attribute `{attribute}`");
                    self.objections.add(Subtype::ForbiddenConstruct, it.attr.start(), message);
                }
            }
            Expr::Await(it) => self.refuse_await(it.start()),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
