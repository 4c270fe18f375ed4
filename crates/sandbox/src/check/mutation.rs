//! Changes of what the program did not make: functions of the host, tools, modules.

use jackline_attempt::Subtype;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, ExceptHandler, Expr, Identifier, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::check::Objections;
use crate::check::names::{Meaning, Names};
use crate::check::tree::{name, targets};
use crate::run::{CONTEXT, FUNCTIONS};

/// What changes an attribute by its name.
const BY_NAME: [&str; 2] = ["delattr", "setattr"];

pub(super) fn look(body: &[Stmt], names: &Names, objections: &mut Objections<'_>) {
    Pass { names, objections }.visit_body(body);
}

struct Pass<'p, 's> {
    names: &'p Names,
    objections: &'p mut Objections<'s>,
}

impl<'a> Pass<'_, '_> {
    fn bind(&mut self, target: &'a Expr) {
        let mut single = Vec::new();
        targets(target, &mut |it| single.push(it));
        for target in single {
            match target {
                Expr::Name(it) => self.rebind(it.id.as_str(), it.start()),
                Expr::Attribute(it) if !self.is_own(&it.value) => {
                    let message = format!(
                        "`{}` is assigned on something that the program did not make",
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
        if FUNCTIONS.contains(&name) || name == CONTEXT {
            let message = format!("`{name}` is the host's, and is given another meaning");
            let correction = format!("Choose another name than `{name}` for what is yours.");
            self.objections.correct(Subtype::SingletonMethodMutation, at, message, correction);
        }
    }

    /// Whether the program made what an expression gives.
    fn is_own(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Name(it) => self.names.meaning(it.id.as_str()) == Some(Meaning::Own),
            Expr::Attribute(it) => self.is_own(&it.value),
            Expr::Call(call) => {
                let called = name(&call.func).and_then(|name| self.names.meaning(name));
                !matches!(called, Some(Meaning::Function(_)))
                    && !matches!(self.names.value(&call.func), Meaning::Tool(_))
            }
            _ => true,
        }
    }
}

impl<'a> Visitor<'a> for Pass<'_, '_> {
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
                if BY_NAME.contains(&it.id.as_str())
                    && self.names.meaning(it.id.as_str()).is_none() =>
            {
                let message = format!("`{}` changes what the program may not have made", it.id);
                self.objections.add(Subtype::SingletonMethodMutation, it.start(), message);
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
