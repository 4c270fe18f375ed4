//! Tools and delegates that are not there.

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{Known, Named};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use crate::check::Objections;
use crate::check::names::Names;
use crate::check::tree::{argument, text};

/// How many names a correction lists.
const LISTED_MAX: usize = 20;

pub(super) fn look(body: &[Stmt], names: &Names, known: &Known, objections: &mut Objections<'_>) {
    let mut forged = Forged { names, forged: Vec::new() };
    forged.visit_body(body);
    Pass { names, known, forged: forged.forged, objections }.visit_body(body);
}

/// The tools that the program itself forges.
struct Forged<'p> {
    names: &'p Names,
    forged: Vec<String>,
}

impl<'a> Visitor<'a> for Forged<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Some(call) = self.names.host_call(expr, "forge")
            && let Some(name) = argument(call, 0, "name").and_then(text)
        {
            self.forged.push(name.to_owned());
        }
        visitor::walk_expr(self, expr);
    }
}

struct Pass<'p, 's> {
    names: &'p Names,
    known: &'p Known,
    forged: Vec<String>,
    objections: &'p mut Objections<'s>,
}

impl<'a> Visitor<'a> for Pass<'_, '_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        for (function, listed, forged) in [
            ("tool", &self.known.tools, self.forged.as_slice()),
            ("delegate", &self.known.delegates, &[]),
        ] {
            let Some(call) = self.names.host_call(expr, function) else { continue };
            let Some(named) = call.arguments.args.first() else { continue };
            let Some(name) = text(named) else { continue };
            if listed.iter().all(|it| it.name != name) && forged.iter().all(|it| it != name) {
                let message = format!("there is no {function} `{name}`");
                let correction = correction(function, listed);
                let at = named.start();
                self.objections.correct(Subtype::UnknownTool, at, message, correction);
            }
        }
        visitor::walk_expr(self, expr);
    }
}

fn correction(function: &str, listed: &[Named]) -> String {
    if listed.is_empty() {
        return format!("There is nothing to call with {function}(); leave it out.");
    }
    let names: Vec<&str> = listed.iter().take(LISTED_MAX).map(|it| it.name.as_str()).collect();
    let more = if listed.len() > LISTED_MAX { ", …" } else { "" };
    format!("Call only what is there: {}{more}.", names.join(", "))
}
