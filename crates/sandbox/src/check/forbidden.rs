//! What a program may not have, because it reaches outside or hides what is called.

use jackline_attempt::Subtype;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::check::Objections;
use crate::check::names::Names;

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

/// Functions of Python that run text, reach outside, or get at what is inside.
const FUNCTIONS: [&str; 12] = [
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

/// Attributes between underscores that say nothing of the inside.
const DUNDERS: [&str; 3] = ["__doc__", "__init__", "__name__"];

pub(super) fn look(body: &[Stmt], names: &Names, objections: &mut Objections<'_>) {
    Pass { names, objections }.visit_body(body);
}

struct Pass<'p, 's> {
    names: &'p Names,
    objections: &'p mut Objections<'s>,
}

impl Pass<'_, '_> {
    fn import(&mut self, module: &str, at: TextSize) {
        let top = module.split('.').next().unwrap_or_default();
        if MODULES.contains(&top) {
            return;
        }
        let correction =
            format!("Call a tool for what reaches outside; there are only {}.", MODULES.join(", "));
        let message = format!("a program can't import `{module}`");
        self.objections.correct(Subtype::ForbiddenConstruct, at, message, correction);
    }

    fn awaits(&mut self, at: TextSize) {
        let message = "a program awaits nothing: its calls wait by themselves";
        let correction = "Write plain functions, and leave `async` and `await` out.";
        self.objections.correct(Subtype::ForbiddenConstruct, at, message, correction);
    }
}

impl<'a> Visitor<'a> for Pass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(it) => {
                it.names.iter().for_each(|alias| self.import(alias.name.as_str(), alias.start()));
            }
            Stmt::ImportFrom(it) => {
                let module = it.module.as_ref().map_or(".", |module| module.as_str());
                self.import(if it.level > 0 { "." } else { module }, it.start());
            }
            Stmt::FunctionDef(it) if it.is_async => self.awaits(it.start()),
            Stmt::For(it) if it.is_async => self.awaits(it.start()),
            Stmt::With(it) if it.is_async => self.awaits(it.start()),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(it)
                if FUNCTIONS.contains(&it.id.as_str())
                    && self.names.meaning(it.id.as_str()).is_none() =>
            {
                let message = format!("a program has no `{}`", it.id);
                self.objections.add(Subtype::ForbiddenConstruct, it.start(), message);
            }
            Expr::Attribute(it) => {
                let attribute = it.attr.as_str();
                let is_dunder = attribute.starts_with("__") && attribute.ends_with("__");
                if is_dunder && !DUNDERS.contains(&attribute) {
                    let message = format!("a program does not look into `{attribute}`");
                    self.objections.add(Subtype::ForbiddenConstruct, it.attr.start(), message);
                }
            }
            Expr::Await(it) => self.awaits(it.start()),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
