//! What the names of a program stand for.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, ExceptHandler, Expr, ExprCall, Parameter, Stmt};

use crate::check::tree::{name, targets, text};
use crate::run::{ARGUMENTS, CONTEXT, FUNCTIONS, TOOLS};

/// How often aliases of aliases are followed.
const ROUNDS_MAX: usize = 4;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// A function of the host.
    Function(String),
    /// A tool, whose name may be known.
    Tool(Option<String>),
    /// What the host has in the context.
    Context,
    /// The tools in the context.
    Registry,
    /// An imported module, or something of it.
    Module,
    /// Something that the program made.
    Own,
}

/// What the names of a program stand for.
pub(super) struct Names {
    meanings: BTreeMap<String, Meaning>,
}

impl Names {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut bindings = Bindings::default();
        bindings.visit_body(body);
        let mut names = Self { meanings: BTreeMap::new() };
        for _ in 0..ROUNDS_MAX {
            let meanings = names.round(&bindings);
            if meanings == names.meanings {
                break;
            }
            names.meanings = meanings;
        }
        names
    }

    /// What a name stands for, unless nobody has said. The host's names are the host's
    /// wherever they are bound again: as parameters they are most often handed on.
    pub(super) fn meaning(&self, name: &str) -> Option<Meaning> {
        if name == CONTEXT {
            Some(Meaning::Context)
        } else if FUNCTIONS.contains(&name) {
            Some(Meaning::Function(name.to_owned()))
        } else if name == ARGUMENTS {
            Some(Meaning::Own)
        } else {
            self.meanings.get(name).cloned()
        }
    }

    /// What an expression gives, as far as that is certain.
    pub(super) fn value(&self, expr: &Expr) -> Meaning {
        if let Some(name) = name(expr) {
            return self.meaning(name).unwrap_or(Meaning::Own);
        }
        if let Some(call) = self.host_call(expr, "tool")
            && call.arguments.keywords.is_empty()
            && call.arguments.args.len() == 1
        {
            return Meaning::Tool(call.arguments.args.first().and_then(text).map(str::to_owned));
        }
        if self.is_tools(expr) { Meaning::Registry } else { Meaning::Own }
    }

    /// A call of a function of the host, under whatever name.
    pub(super) fn host_call<'a>(&self, expr: &'a Expr, function: &str) -> Option<&'a ExprCall> {
        let call = expr.as_call_expr()?;
        let called = self.meaning(name(&call.func)?)?;
        (called == Meaning::Function(function.to_owned())).then_some(call)
    }

    /// Whether it is `context["tools"]`.
    pub(super) fn is_registry(&self, expr: &Expr) -> bool {
        self.value(expr) == Meaning::Registry
    }

    /// Whether it is the context.
    pub(super) fn is_context(&self, expr: &Expr) -> bool {
        name(expr).and_then(|name| self.meaning(name)) == Some(Meaning::Context)
    }

    fn is_tools(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Subscript(it) => self.is_context(&it.value) && text(&it.slice) == Some(TOOLS),
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(get) if get.attr.as_str() == "get" => {
                    self.is_context(&get.value)
                        && call.arguments.find_positional(0).and_then(text) == Some(TOOLS)
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn round(&self, bindings: &Bindings<'_>) -> BTreeMap<String, Meaning> {
        let mut meanings: BTreeMap<String, Meaning> = BTreeMap::new();
        for (name, values) in &bindings.assigned {
            let mut given = values.iter().map(|value| self.value(value));
            let first = given.next().unwrap_or(Meaning::Own);
            let meaning = if given.all(|other| other == first) { first } else { Meaning::Own };
            meanings.insert(name.clone(), meaning);
        }
        for (name, meaning) in &bindings.others {
            let before = meanings.insert(name.clone(), meaning.clone());
            if before.is_some_and(|before| before != *meaning) {
                meanings.insert(name.clone(), Meaning::Own);
            }
        }
        meanings
    }
}

/// Everything that binds a name.
#[derive(Default)]
struct Bindings<'a> {
    assigned: BTreeMap<String, Vec<&'a Expr>>,
    others: BTreeSet<(String, Meaning)>,
}

impl<'a> Bindings<'a> {
    fn own(&mut self, name: &str) {
        self.others.insert((name.to_owned(), Meaning::Own));
    }

    fn all_own(&mut self, target: &Expr) {
        targets(target, &mut |it| {
            if let Some(name) = name(it) {
                self.own(name);
            }
        });
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr) {
        match name(target) {
            Some(name) => self.assigned.entry(name.to_owned()).or_default().push(value),
            None => self.all_own(target),
        }
    }
}

impl<'a> Visitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(it) => it.targets.iter().for_each(|target| self.assign(target, &it.value)),
            Stmt::AnnAssign(it) => {
                if let Some(value) = &it.value {
                    self.assign(&it.target, value);
                }
            }
            Stmt::AugAssign(it) => self.all_own(&it.target),
            Stmt::For(it) => self.all_own(&it.target),
            Stmt::With(it) => {
                let bound = it.items.iter().filter_map(|item| item.optional_vars.as_ref());
                bound.for_each(|target| self.all_own(target));
            }
            Stmt::FunctionDef(it) => self.own(it.name.as_str()),
            Stmt::ClassDef(it) => self.own(it.name.as_str()),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Named(it) = expr {
            self.assign(&it.target, &it.value);
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
        self.all_own(&comprehension.target);
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.own(parameter.name.as_str());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let bound = alias.asname.as_ref().map_or_else(
            || alias.name.as_str().split('.').next().unwrap_or_default(),
            |name| name.as_str(),
        );
        self.others.insert((bound.to_owned(), Meaning::Module));
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(it) = handler;
        if let Some(name) = &it.name {
            self.own(name.as_str());
        }
        visitor::walk_except_handler(self, handler);
    }
}
