//! Finds calls of tools and delegates that do not exist.

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{CallableSpec, Callables};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use crate::check::ViolationList;
use crate::check::names::ProgramNames;
use crate::check::tree::{argument, text};

/// How many names a correction lists.
const LISTED_MAX: usize = 20;

pub(super) fn check_calls(
    body: &[Stmt],
    names: &ProgramNames,
    known: &Callables,
    objections: &mut ViolationList<'_>,
) {
    let mut forged = GeneratedToolNames { names, forged: Vec::new() };
    forged.visit_body(body);
    CallsPass { names, known, forged: forged.forged, objections }.visit_body(body);
}

/// Collects the tools that the program itself generates.
struct GeneratedToolNames<'p> {
    names: &'p ProgramNames,
    forged: Vec<String>,
}

impl<'a> Visitor<'a> for GeneratedToolNames<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Some(call) = self.names.host_call(expr, "forge")
            && let Some(name) = argument(call, 0, "name").and_then(text)
        {
            self.forged.push(name.to_owned());
        }
        visitor::walk_expr(self, expr);
    }
}

struct CallsPass<'p, 's> {
    names: &'p ProgramNames,
    known: &'p Callables,
    forged: Vec<String>,
    objections: &'p mut ViolationList<'s>,
}

impl<'a> Visitor<'a> for CallsPass<'_, '_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        for (function, listed, forged) in [
            ("tool", &self.known.tools, self.forged.as_slice()),
            ("delegate", &self.known.delegates, &[]),
        ] {
            let Some(call) = self.names.host_call(expr, function) else { continue };
            let Some(named) = call.arguments.args.first() else { continue };
            let Some(name) = text(named) else { continue };
            if listed.iter().all(|it| it.name != name) && forged.iter().all(|it| it != name) {
                let message = format!("{function} `{name}` does not exist");
                let correction = correction(function, listed);
                let at = named.start();
                self.objections.add_with_correction(Subtype::UnknownTool, at, message, correction);
            }
        }
        visitor::walk_expr(self, expr);
    }
}

fn correction(function: &str, listed: &[CallableSpec]) -> String {
    if listed.is_empty() {
        return format!("Nothing can be called with {function}(); leave it out.");
    }
    let names: Vec<&str> = listed.iter().take(LISTED_MAX).map(|it| it.name.as_str()).collect();
    let more = if listed.len() > LISTED_MAX { ", …" } else { "" };
    format!("Call only what exists: {}{more}.", names.join(", "))
}
