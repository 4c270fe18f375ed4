//! Evaluates conditions, and counts what it does.

use alloc::format;
use alloc::vec::Vec;

use super::operators::{Budget, broken, entries, negate, no_key, quoted};
use super::value::{Items, Text};
use super::{DEPTH_MAX, Id, Macro, Node, Scope, Test, Trouble, Value};

type Answer<'v> = Result<Value<'v>, Trouble>;

pub(super) fn holds(
    nodes: &[Node],
    scope: &dyn Scope<'_>,
    steps: &mut u32,
) -> Result<bool, Trouble> {
    let mut run = Run { nodes, scope, budget: Budget::new(*steps), depth: 0 };
    let whole = u16::try_from(nodes.len().wrapping_sub(1)).map_or(Id(u16::MAX), Id);
    let answer = run.truth(whole, None);
    *steps = run.budget.left();
    answer
}

struct Run<'v, 'a> {
    nodes: &'v [Node],
    scope: &'v dyn Scope<'a>,
    budget: Budget,
    depth: u16,
}

/// What the macros around a node are at, the innermost first.
#[derive(Clone, Copy)]
struct Frame<'f, 'v> {
    value: &'f Value<'v>,
    outer: Option<&'f Frame<'f, 'v>>,
}

type Locals<'f, 'v> = Option<&'f Frame<'f, 'v>>;

impl<'v, 'a: 'v> Run<'v, 'a> {
    fn eval(&mut self, id: Id, locals: Locals<'_, 'v>) -> Answer<'v> {
        self.budget.spend(1)?;
        if self.depth == DEPTH_MAX {
            return broken(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        self.depth += 1;
        let answer = self.node(id, locals);
        self.depth -= 1;
        answer
    }

    fn node(&mut self, id: Id, locals: Locals<'_, 'v>) -> Answer<'v> {
        let Some(node) = self.nodes.get(usize::from(id.0)) else {
            return broken("a part of it is missing");
        };
        match node {
            Node::Null => Ok(Value::Null),
            Node::Bool(truth) => Ok(Value::Bool(*truth)),
            Node::Int(number) => Ok(Value::Int(*number)),
            Node::Text(text) => Ok(Value::text(text)),
            Node::List(items) => self.list(items, locals),
            Node::Map(entries) => self.map(entries, locals),
            Node::Variable(variable) => self.scope.value(*variable).map(Value::plain),
            Node::Local(level) => local(*level, locals),
            Node::Not(a) => self.truth(*a, locals).map(|truth| Value::Bool(!truth)),
            Node::Negate(a) => negate(&self.eval(*a, locals)?),
            Node::And(parts) => self.until(false, parts, locals),
            Node::Or(parts) => self.until(true, parts, locals),
            Node::If(condition, then, otherwise) => {
                let branch = if self.truth(*condition, locals)? { then } else { otherwise };
                self.eval(*branch, locals)
            }
            Node::Compare(how, a, b) => {
                let (a, b) = (self.eval(*a, locals)?, self.eval(*b, locals)?);
                self.budget.compare(*how, &a, &b).map(Value::Bool)
            }
            Node::In(a, b) => self.is_in(*a, *b, locals).map(Value::Bool),
            Node::Arithmetic(operator, a, b) => {
                let (a, b) = (self.eval(*a, locals)?, self.eval(*b, locals)?);
                self.budget.arithmetic(*operator, &a, &b)
            }
            Node::Index(a, b) => {
                let (a, b) = (self.eval(*a, locals)?, self.eval(*b, locals)?);
                self.budget.index(&a, &b)
            }
            Node::Member(a, name) => {
                let a = self.eval(*a, locals)?;
                let found = entries(&a, name)?.get(name);
                found.ok_or_else(|| no_key(name))
            }
            Node::Has(a, name) => {
                let a = self.eval(*a, locals)?;
                Ok(Value::Bool(entries(&a, name)?.get(name).is_some()))
            }
            Node::Call(function, a) => {
                let a = self.eval(*a, locals)?;
                self.budget.call(*function, a)
            }
            Node::Test(test, a, b) => {
                let (a, b) = (self.text(*a, locals)?, self.text(*b, locals)?);
                self.budget.spend_bytes(a.len().saturating_add(b.len()))?;
                Ok(Value::Bool(match test {
                    Test::StartsWith => a.starts_with(&*b),
                    Test::EndsWith => a.ends_with(&*b),
                    Test::Contains => a.contains(&*b),
                }))
            }
            Node::Matches(a, pattern) => {
                let a = self.text(*a, locals)?;
                pattern.is_found(&a, |steps| self.budget.spend(steps)).map(Value::Bool)
            }
            Node::Ask(question, a) => {
                let a = self.text(*a, locals)?;
                self.budget.spend_bytes(a.len())?;
                self.scope.ask(*question, &a).map(Value::Bool)
            }
            Node::Each(what, a, body) => {
                let a = self.eval(*a, locals)?;
                self.each(*what, &a, *body, locals)
            }
        }
    }

    fn truth(&mut self, id: Id, locals: Locals<'_, 'v>) -> Result<bool, Trouble> {
        match self.eval(id, locals)? {
            Value::Bool(truth) => Ok(truth),
            other => broken(format!("{} stands where true or false must", other.describe())),
        }
    }

    fn text(&mut self, id: Id, locals: Locals<'_, 'v>) -> Result<Text<'v>, Trouble> {
        match self.eval(id, locals)? {
            Value::Text(text) => Ok(text),
            other => broken(format!("{} stands where a text must", other.describe())),
        }
    }

    fn list(&mut self, items: &[Id], locals: Locals<'_, 'v>) -> Answer<'v> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.eval(*item, locals)?);
        }
        Ok(Value::List(values.into()))
    }

    fn is_in(&mut self, a: Id, b: Id, locals: Locals<'_, 'v>) -> Result<bool, Trouble> {
        let a = self.eval(a, locals)?;
        // A list that is written out need not be made first.
        if let Some(Node::List(items)) = self.nodes.get(usize::from(b.0)) {
            let mut found = false;
            for item in items {
                let item = self.eval(*item, locals)?;
                found = found || self.budget.equal(&a, &item)?;
            }
            return Ok(found);
        }
        let b = self.eval(b, locals)?;
        self.budget.is_in(&a, &b)
    }

    fn map(&mut self, entries: &[(Id, Id)], locals: Locals<'_, 'v>) -> Answer<'v> {
        let mut sorted: Vec<(Text<'v>, Value<'v>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.text(*key, locals)?;
            let value = self.eval(*value, locals)?;
            self.budget.spend_bytes(key.len())?;
            match sorted.binary_search_by(|(known, _)| (**known).cmp(&*key)) {
                Ok(_) => return broken(format!("the key `{}` is there twice", quoted(&key))),
                Err(at) => sorted.insert(at, (key, value)),
            }
        }
        Ok(Value::Map(sorted.into()))
    }

    /// `&&` and `||`: a part that is `decisive` decides, whatever trouble the
    /// others are in. A missing fact comes before a broken part, since with the
    /// fact the part may not matter.
    fn until(&mut self, decisive: bool, parts: &[Id], locals: Locals<'_, 'v>) -> Answer<'v> {
        let mut trouble = None;
        for part in parts {
            match self.truth(*part, locals) {
                Ok(truth) if truth == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(found) => worse(&mut trouble, found),
            }
        }
        trouble.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn each(
        &mut self,
        what: Macro,
        over: &Value<'v>,
        body: Id,
        outer: Locals<'_, 'v>,
    ) -> Answer<'v> {
        let keys;
        let items = match (over.items(), over.entries()) {
            (Some(items), _) => items,
            (None, Some(entries)) => {
                self.budget.spend(entries.len())?;
                keys = entries.iter().map(|(key, _)| Value::Text(key)).collect::<Vec<_>>();
                Items::Values(&keys)
            }
            (None, None) => return broken(format!("{} has no items", over.describe())),
        };
        match what {
            Macro::Exists => self.any(true, items, body, outer),
            Macro::All => self.any(false, items, body, outer),
            Macro::ExistsOne => {
                let kept = self.filter(items, body, outer)?;
                Ok(Value::Bool(kept.len() == 1))
            }
            Macro::Filter => Ok(Value::List(self.filter(items, body, outer)?.into())),
            Macro::Map => {
                let mut made = Vec::new();
                for value in items.iter() {
                    made.push(self.eval(body, Some(&Frame { value: &value, outer }))?);
                }
                Ok(Value::List(made.into()))
            }
        }
    }

    /// `exists` and `all` are `||` and `&&` over the items.
    fn any(
        &mut self,
        decisive: bool,
        items: Items<'_, 'v>,
        body: Id,
        outer: Locals<'_, 'v>,
    ) -> Answer<'v> {
        let mut trouble = None;
        for value in items.iter() {
            match self.truth(body, Some(&Frame { value: &value, outer })) {
                Ok(truth) if truth == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(found) => {
                    worse(&mut trouble, found);
                    // The rest would only find that there are no steps left.
                    self.budget.spend(1)?;
                }
            }
        }
        trouble.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn filter(
        &mut self,
        items: Items<'_, 'v>,
        body: Id,
        outer: Locals<'_, 'v>,
    ) -> Result<Vec<Value<'v>>, Trouble> {
        let mut kept = Vec::new();
        for value in items.iter() {
            if self.truth(body, Some(&Frame { value: &value, outer }))? {
                kept.push(value);
            }
        }
        Ok(kept)
    }
}

fn local<'v>(level: u8, locals: Locals<'_, 'v>) -> Answer<'v> {
    let mut frame = locals;
    for _ in 0..level {
        frame = frame.and_then(|frame| frame.outer);
    }
    frame.map_or_else(|| broken("a part of it is missing"), |frame| Ok(frame.value.clone()))
}

/// Keeps the first trouble, but a missing fact before a broken part.
fn worse(known: &mut Option<Trouble>, found: Trouble) {
    if known.is_none() || found == Trouble::Missing {
        *known = Some(found);
    }
}
