//! Finds changes of objects that belong to the host: host functions, tools and modules.

use jackline_attempt::Subtype;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, ExceptHandler, Expr, Identifier, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::check::ViolationList;
use crate::check::names::{NameMeaning, ProgramNames};
use crate::check::tree::{name, targets};
use crate::run::{CONTEXT, HOST_FUNCTIONS};

/// Functions that change an attribute by its name.
const ATTRIBUTE_FUNCTIONS: [&str; 2] = ["delattr", "setattr"];

pub(super) fn check_mutations(
    body: &[Stmt],
    names: &ProgramNames,
    objections: &mut ViolationList<'_>,
) {
    MutationPass { names, objections }.visit_body(body);
}

struct MutationPass<'p, 's> {
    names: &'p ProgramNames,
    objections: &'p mut ViolationList<'s>,
}

impl<'a> MutationPass<'_, '_> {
    fn bind(&mut self, target: &'a Expr) {
        let mut single = Vec::new();
        targets(target, &mut |it| single.push(it));
        for target in single {
            match target {
                Expr::Name(it) => self.rebind(it.id.as_str(), it.start()),
                Expr::Attribute(it) if !self.is_own(&it.value) => {
                    let message = format!(
                        "`{}` is assigned on an object that the program did not create",
                        it.attr
                    );
                    self.objections.add(Subtype::SingletonMethodMutation, it.start(), message);
                }
                _ => {}
            }
        }
    }

    fn bind_name(&mut self, name: Option<&Identifier>) {
        if let Some(name) = name {
            self.rebind(name.as_str(), name.start());
        }
    }

    fn rebind(&mut self, name: &str, at: TextSize) {
        if HOST_FUNCTIONS.contains(&name) || name == CONTEXT {
            let message = format!("`{name}` belongs to the host and must not be redefined");
            let correction = format!("Choose another name than `{name}` for your own value.");
            self.objections.add_with_correction(
                Subtype::SingletonMethodMutation,
                at,
                message,
                correction,
            );
        }
    }

    /// Whether the program created the value of an expression.
    fn is_own(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Name(it) => self.names.meaning(it.id.as_str()) == Some(NameMeaning::Own),
            Expr::Attribute(it) => self.is_own(&it.value),
            Expr::Call(call) => {
                let called = name(&call.func).and_then(|name| self.names.meaning(name));
                !matches!(called, Some(NameMeaning::Function(_)))
                    && !matches!(self.names.value(&call.func), NameMeaning::Tool(_))
            }
            _ => true,
        }
    }
}

impl<'a> Visitor<'a> for MutationPass<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(it) => it.targets.iter().for_each(|target| self.bind(target)),
            Stmt::AnnAssign(it) => self.bind(&it.target),
            Stmt::AugAssign(it) => self.bind(&it.target),
            Stmt::Delete(it) => it.targets.iter().for_each(|target| self.bind(target)),
            Stmt::For(it) => self.bind(&it.target),
            Stmt::With(it) => {
                let bound = it.items.iter().filter_map(|item| item.optional_vars.as_ref());
                bound.for_each(|target| self.bind(target));
            }
            Stmt::FunctionDef(it) => self.bind_name(Some(&it.name)),
            Stmt::ClassDef(it) => self.bind_name(Some(&it.name)),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        self.bind_name(alias.asname.as_ref());
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(it) = handler;
        self.bind_name(it.name.as_ref());
        visitor::walk_except_handler(self, handler);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Named(it) => self.bind(&it.target),
            Expr::Name(it)
                if ATTRIBUTE_FUNCTIONS.contains(&it.id.as_str())
                    && self.names.meaning(it.id.as_str()).is_none() =>
            {
                let message =
                    format!("`{}` can change objects that the program did not create", it.id);
                self.objections.add(Subtype::SingletonMethodMutation, it.start(), message);
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
