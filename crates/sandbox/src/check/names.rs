//! Finds out what the names of a program mean.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, ExceptHandler, Expr, ExprCall, Parameter, Stmt};

use crate::check::tree::{name, targets, text};
use crate::run::{ARGUMENTS, CONTEXT, HOST_FUNCTIONS, TOOLS};

/// How many levels of aliases are followed.
const ROUNDS_MAX: usize = 4;

/// The meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameMeaning {
    /// A host function.
    Function(String),
    /// A tool, with its name if it is a literal.
    Tool(Option<String>),
    /// The context.
    Context,
    /// The mapping of tools in the context.
    Registry,
    /// An imported module, or a member of one.
    Module,
    /// A value that the program created.
    Own,
}

/// The meanings of the names of a program.
pub(super) struct ProgramNames {
    meanings: BTreeMap<String, NameMeaning>,
}

impl ProgramNames {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut bindings = NameBindings::default();
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

    /// The meaning of a name; `None` if it is not bound. The names of the host keep their meaning
    /// even where they are bound again, for example as parameters.
    pub(super) fn meaning(&self, name: &str) -> Option<NameMeaning> {
        if name == CONTEXT {
            Some(NameMeaning::Context)
        } else if HOST_FUNCTIONS.contains(&name) {
            Some(NameMeaning::Function(name.to_owned()))
        } else if name == ARGUMENTS {
            Some(NameMeaning::Own)
        } else {
            self.meanings.get(name).cloned()
        }
    }

    /// The meaning of an expression, as far as it is certain.
    pub(super) fn value(&self, expr: &Expr) -> NameMeaning {
        if let Some(name) = name(expr) {
            return self.meaning(name).unwrap_or(NameMeaning::Own);
        }
        if let Some(call) = self.host_call(expr, "tool")
            && call.arguments.keywords.is_empty()
            && call.arguments.args.len() == 1
        {
            return NameMeaning::Tool(
                call.arguments.args.first().and_then(text).map(str::to_owned),
            );
        }
        if self.is_tools(expr) { NameMeaning::Registry } else { NameMeaning::Own }
    }

    /// The call, if the expression calls this host function under any name.
    pub(super) fn host_call<'a>(&self, expr: &'a Expr, function: &str) -> Option<&'a ExprCall> {
        let call = expr.as_call_expr()?;
        let called = self.meaning(name(&call.func)?)?;
        (called == NameMeaning::Function(function.to_owned())).then_some(call)
    }

    /// Whether it is `context["tools"]`.
    pub(super) fn is_registry(&self, expr: &Expr) -> bool {
        self.value(expr) == NameMeaning::Registry
    }

    /// Whether it is the context.
    pub(super) fn is_context(&self, expr: &Expr) -> bool {
        name(expr).and_then(|name| self.meaning(name)) == Some(NameMeaning::Context)
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

    fn round(&self, bindings: &NameBindings<'_>) -> BTreeMap<String, NameMeaning> {
        let mut meanings: BTreeMap<String, NameMeaning> = BTreeMap::new();
        for (name, values) in &bindings.assigned {
            let mut given = values.iter().map(|value| self.value(value));
            let first = given.next().unwrap_or(NameMeaning::Own);
            let meaning = if given.all(|other| other == first) { first } else { NameMeaning::Own };
            meanings.insert(name.clone(), meaning);
        }
        for (name, meaning) in &bindings.others {
            let before = meanings.insert(name.clone(), meaning.clone());
            if before.is_some_and(|before| before != *meaning) {
                meanings.insert(name.clone(), NameMeaning::Own);
            }
        }
        meanings
    }
}

/// All bindings of names.
#[derive(Default)]
struct NameBindings<'a> {
    assigned: BTreeMap<String, Vec<&'a Expr>>,
    others: BTreeSet<(String, NameMeaning)>,
}

impl<'a> NameBindings<'a> {
    fn own(&mut self, name: &str) {
        self.others.insert((name.to_owned(), NameMeaning::Own));
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

impl<'a> Visitor<'a> for NameBindings<'a> {
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
        self.others.insert((bound.to_owned(), NameMeaning::Module));
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(it) = handler;
        if let Some(name) = &it.name {
            self.own(name.as_str());
        }
        visitor::walk_except_handler(self, handler);
    }
}
