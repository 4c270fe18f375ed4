//! Programs that take the tools in the context for something they are not.

use jackline_attempt::Subtype;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::check::Objections;
use crate::check::names::Names;
use crate::check::tree::{name, targets, text};
use crate::run::TOOLS;

/// What a mapping can be asked.
const ASKED: [&str; 5] = ["copy", "get", "items", "keys", "values"];

pub(super) fn look(body: &[Stmt], names: &Names, objections: &mut Objections<'_>) {
    Pass { names, objections, keys: Vec::new() }.visit_body(body);
}

struct Pass<'p, 's> {
    names: &'p Names,
    objections: &'p mut Objections<'s>,
    /// Names of loops over the registry, which stand for names of tools.
    keys: Vec<String>,
}

impl<'a> Pass<'_, '_> {
    fn found(&mut self, at: TextSize, message: impl Into<String>) {
        self.objections.add(Subtype::ContextToolsShapeMisuse, at, message);
    }

    fn change(&mut self, target: &'a Expr) {
        let mut changed = Vec::new();
        targets(target, &mut |it| changed.push(it));
        for target in changed {
            let Expr::Subscript(it) = target else { continue };
            let is_registry = self.names.is_context(&it.value) && text(&it.slice) == Some(TOOLS);
            if is_registry || self.names.is_registry(&it.value) {
                self.found(target.start(), "the tools in the context can't be changed");
            }
        }
    }

    fn loop_over(&mut self, iter: &Expr, target: &Expr) {
        if self.names.is_registry(iter)
            && let Some(name) = name(target)
        {
            self.keys.push(name.to_owned());
        }
    }

    fn call(&mut self, func: &'a Expr, at: TextSize) {
        // `context["tools"]["x"](…)`, and `context["tools"]["x"].call(…)`.
        let inner = match func {
            Expr::Attribute(it) => &it.value,
            other => other,
        };
        let described = match inner {
            Expr::Subscript(it) => self.names.is_registry(&it.value),
            _ => false,
        };
        let is_method_of_text = matches!(func, Expr::Attribute(it) if is_method(it.attr.as_str()));
        if described && !is_method_of_text {
            self.found(
                at,
                "what the context has for a tool is its description, and can't be called",
            );
        }
    }
}

/// What a description can be asked, which is a text.
fn is_method(name: &str) -> bool {
    let prefixes = ["is", "start", "end", "split", "strip", "lower", "upper", "find", "replace"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) || name == "format" || name == "count"
}

impl<'a> Visitor<'a> for Pass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(it) => it.targets.iter().for_each(|target| self.change(target)),
            Stmt::AnnAssign(it) => self.change(&it.target),
            Stmt::AugAssign(it) => self.change(&it.target),
            Stmt::Delete(it) => it.targets.iter().for_each(|target| self.change(target)),
            Stmt::For(it) => self.loop_over(&it.iter, &it.target),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        // What a comprehension gives stands before what it goes through.
        let generators = match expr {
            Expr::ListComp(it) => it.generators.as_slice(),
            Expr::SetComp(it) => it.generators.as_slice(),
            Expr::DictComp(it) => it.generators.as_slice(),
            Expr::Generator(it) => it.generators.as_slice(),
            _ => &[],
        };
        generators.iter().for_each(|it| self.loop_over(&it.iter, &it.target));
        match expr {
            Expr::Attribute(it)
                if self.names.is_context(&it.value) && it.attr.as_str() == TOOLS =>
            {
                self.found(it.start(), "the context is a dictionary, and has no attributes");
            }
            Expr::Attribute(it)
                if self.names.is_registry(&it.value) && !ASKED.contains(&it.attr.as_str()) =>
            {
                let message = format!("the tools in the context have no `{}`", it.attr);
                self.found(it.start(), message);
            }
            Expr::Attribute(it)
                if name(&it.value).is_some_and(|name| self.keys.iter().any(|key| key == name))
                    && !is_method(it.attr.as_str()) =>
            {
                let message =
                    format!("a loop over the tools gives names, which have no `{}`", it.attr);
                self.found(it.start(), message);
            }
            Expr::Subscript(it)
                if self.names.is_registry(&it.value)
                    && (it.slice.is_number_literal_expr() || it.slice.is_slice_expr()) =>
            {
                self.found(it.start(), "the tools in the context have names, and no order");
            }
            Expr::Subscript(it)
                if name(&it.value).is_some_and(|name| self.keys.iter().any(|key| key == name))
                    && text(&it.slice).is_some() =>
            {
                self.found(it.start(), "a loop over the tools gives names, which have no fields");
            }
            Expr::Call(it) => self.call(&it.func, it.start()),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
