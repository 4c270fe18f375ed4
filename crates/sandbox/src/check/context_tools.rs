//! Finds programs that use the tools in the context as anything other than a mapping.

use jackline_attempt::Subtype;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::check::ViolationList;
use crate::check::names::ProgramNames;
use crate::check::tree::{name, targets, text};
use crate::run::TOOLS;

/// The methods of a mapping that only read.
const READING_METHODS: [&str; 5] = ["copy", "get", "items", "keys", "values"];

pub(super) fn check_context_tools(
    body: &[Stmt],
    names: &ProgramNames,
    objections: &mut ViolationList<'_>,
) {
    ContextToolsPass { names, objections, keys: Vec::new() }.visit_body(body);
}

struct ContextToolsPass<'p, 's> {
    names: &'p ProgramNames,
    objections: &'p mut ViolationList<'s>,
    /// Loop variables over the mapping, which are names of tools.
    keys: Vec<String>,
}

impl<'a> ContextToolsPass<'_, '_> {
    fn add_violation(&mut self, at: TextSize, message: impl Into<String>) {
        self.objections.add(Subtype::ContextToolsShapeMisuse, at, message);
    }

    fn check_change(&mut self, target: &'a Expr) {
        let mut changed = Vec::new();
        targets(target, &mut |it| changed.push(it));
        for target in changed {
            let Expr::Subscript(it) = target else { continue };
            let is_registry = self.names.is_context(&it.value) && text(&it.slice) == Some(TOOLS);
            if is_registry || self.names.is_registry(&it.value) {
                self.add_violation(
                    target.start(),
                    "the mapping of tools in the context can't be changed",
                );
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

    fn check_call(&mut self, func: &'a Expr, at: TextSize) {
        // `context["tools"]["x"](…)`, and `context["tools"]["x"].call(…)`.
        let inner = match func {
            Expr::Attribute(it) => &it.value,
            other => other,
        };
        let described = match inner {
            Expr::Subscript(it) => self.names.is_registry(&it.value),
            _ => false,
        };
        let is_method_of_text =
            matches!(func, Expr::Attribute(it) if is_string_method(it.attr.as_str()));
        if described && !is_method_of_text {
            self.add_violation(
                at,
                "the context maps a tool to its description, which can't be called",
            );
        }
    }
}

/// Whether a name is a method of a string, such as a description.
fn is_string_method(name: &str) -> bool {
    let prefixes = ["is", "start", "end", "split", "strip", "lower", "upper", "find", "replace"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) || name == "format" || name == "count"
}

impl<'a> Visitor<'a> for ContextToolsPass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(it) => it.targets.iter().for_each(|target| self.check_change(target)),
            Stmt::AnnAssign(it) => self.check_change(&it.target),
            Stmt::AugAssign(it) => self.check_change(&it.target),
            Stmt::Delete(it) => it.targets.iter().for_each(|target| self.check_change(target)),
            Stmt::For(it) => self.loop_over(&it.iter, &it.target),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        // A comprehension has its element before its loop, so the loop is read first.
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
                self.add_violation(
                    it.start(),
                    "the context is a dictionary and has no attribute for the tools",
                );
            }
            Expr::Attribute(it)
                if self.names.is_registry(&it.value)
                    && !READING_METHODS.contains(&it.attr.as_str()) =>
            {
                let message = format!("the mapping of tools in the context has no `{}`", it.attr);
                self.add_violation(it.start(), message);
            }
            Expr::Attribute(it)
                if name(&it.value).is_some_and(|name| self.keys.iter().any(|key| key == name))
                    && !is_string_method(it.attr.as_str()) =>
            {
                let message =
                    format!("a loop over the tools yields names, and a name has no `{}`", it.attr);
                self.add_violation(it.start(), message);
            }
            Expr::Subscript(it)
                if self.names.is_registry(&it.value)
                    && (it.slice.is_number_literal_expr() || it.slice.is_slice_expr()) =>
            {
                self.add_violation(
                    it.start(),
                    "the tools in the context are looked up by name, not by position",
                );
            }
            Expr::Subscript(it)
                if name(&it.value).is_some_and(|name| self.keys.iter().any(|key| key == name))
                    && text(&it.slice).is_some() =>
            {
                self.add_violation(
                    it.start(),
                    "a loop over the tools yields names, and a name has no fields",
                );
            }
            Expr::Call(it) => self.check_call(&it.func, it.start()),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
