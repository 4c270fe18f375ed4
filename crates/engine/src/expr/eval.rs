//! Evaluates conditions, and counts what it does.

use alloc::format;
use alloc::vec::Vec;

use super::operators::{Budget, broken, entries, negate, no_key, quoted};
use super::value::{Items, Text};
use super::{Comparison, DEPTH_MAX, Id, Macro, Node, Scope, Test, Trouble, Value};

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
    /// The node to evaluate next, paid for.
    fn enter(&mut self, id: Id) -> Result<&'v Node, Trouble> {
        self.budget.spend(1)?;
        if self.depth == DEPTH_MAX {
            return Err(too_deep());
        }
        let node = self.nodes.get(usize::from(id.0)).ok_or_else(damaged)?;
        self.depth += 1;
        Ok(node)
    }

    /// The value of a node.
    fn eval(&mut self, id: Id, locals: Locals<'_, 'v>) -> Answer<'v> {
        let node = self.enter(id)?;
        let answer = self.value(node, locals);
        self.depth -= 1;
        answer
    }

    /// Whether a node is true.
    fn truth(&mut self, id: Id, locals: Locals<'_, 'v>) -> Result<bool, Trouble> {
        let node = self.enter(id)?;
        let answer = self.condition(node, locals);
        self.depth -= 1;
        answer
    }

    fn value(&mut self, node: &'v Node, locals: Locals<'_, 'v>) -> Answer<'v> {
        match node {
            Node::Null => Ok(Value::Null),
            Node::Bool(truth) => Ok(Value::Bool(*truth)),
            Node::Int(number) => Ok(Value::Int(*number)),
            Node::Text(text) => Ok(Value::text(text)),
            Node::List(items) => self.list(items, locals),
            Node::Map(entries) => self.map(entries, locals),
            Node::Variable(variable) => self.scope.value(*variable).map(Value::plain),
            Node::Local(level) => {
                frame(*level, locals).map(|frame| frame.value.clone()).ok_or_else(damaged)
            }
            Node::Negate(a) => negate(&self.eval(*a, locals)?),
            Node::If(condition, then, otherwise) => {
                let branch = if self.truth(*condition, locals)? { then } else { otherwise };
                self.eval(*branch, locals)
            }
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
            Node::Call(function, a) => {
                let a = self.eval(*a, locals)?;
                self.budget.call(*function, a)
            }
            Node::Each(Macro::Filter, a, body) => {
                let a = self.eval(*a, locals)?;
                Ok(Value::List(self.filter(&a, *body, locals)?.into()))
            }
            Node::Each(Macro::Map, a, body) => {
                let a = self.eval(*a, locals)?;
                self.each(&a, *body, locals)
            }
            Node::Not(_)
            | Node::And(_)
            | Node::Or(_)
            | Node::Compare(..)
            | Node::In(..)
            | Node::Has(..)
            | Node::Test(..)
            | Node::Matches(..)
            | Node::Ask(..)
            | Node::Each(Macro::Exists | Macro::All | Macro::ExistsOne, ..) => {
                self.condition(node, locals).map(Value::Bool)
            }
        }
    }

    fn condition(&mut self, node: &'v Node, locals: Locals<'_, 'v>) -> Result<bool, Trouble> {
        match node {
            Node::Not(a) => self.truth(*a, locals).map(|truth| !truth),
            Node::And(parts) => self.until(false, parts, locals),
            Node::Or(parts) => self.until(true, parts, locals),
            Node::Compare(how, a, b) => self.compare(*how, *a, *b, locals),
            Node::In(a, b) => self.is_in(*a, *b, locals),
            Node::Has(a, name) => {
                let a = self.eval(*a, locals)?;
                Ok(entries(&a, name)?.get(name).is_some())
            }
            Node::Test(test, a, b) => {
                let (a, b) = (self.text(*a, locals)?, self.text(*b, locals)?);
                self.budget.spend_bytes(a.len().saturating_add(b.len()))?;
                Ok(match test {
                    Test::StartsWith => a.starts_with(&*b),
                    Test::EndsWith => a.ends_with(&*b),
                    Test::Contains => a.contains(&*b),
                })
            }
            Node::Matches(a, pattern) => {
                let a = self.text(*a, locals)?;
                pattern.is_found(&a, |steps| self.budget.spend(steps))
            }
            Node::Ask(question, a) => {
                let a = self.text(*a, locals)?;
                self.budget.spend_bytes(a.len())?;
                self.scope.ask(*question, &a)
            }
            Node::Each(Macro::Exists, a, body) => self.any(true, *a, *body, locals),
            Node::Each(Macro::All, a, body) => self.any(false, *a, *body, locals),
            Node::Each(Macro::ExistsOne, a, body) => {
                let a = self.eval(*a, locals)?;
                Ok(self.filter(&a, *body, locals)?.len() == 1)
            }
            value => match self.value(value, locals)? {
                Value::Bool(truth) => Ok(truth),
                other => Err(misplaced(&other, "true or false")),
            },
        }
    }

    fn text(&mut self, id: Id, locals: Locals<'_, 'v>) -> Result<Text<'v>, Trouble> {
        match self.eval(id, locals)? {
            Value::Text(text) => Ok(text),
            other => Err(misplaced(&other, "a text")),
        }
    }

    fn compare(
        &mut self,
        how: Comparison,
        a: Id,
        b: Id,
        locals: Locals<'_, 'v>,
    ) -> Result<bool, Trouble> {
        // Most comparisons are of texts, and most of these need not be moved.
        if let (Some(a), Some(b)) = (self.ready(a, locals), self.ready(b, locals)) {
            self.budget.spend(2)?;
            self.budget.spend_bytes(a.len().min(b.len()))?;
            return Ok(match how {
                Comparison::Equal => a == b,
                Comparison::Unequal => a != b,
                _ => how.fits(a.cmp(b)),
            });
        }
        let (a, b) = (self.eval(a, locals)?, self.eval(b, locals)?);
        self.budget.compare(how, &a, &b)
    }

    /// A text that is written out, or that a macro is at.
    fn ready<'x>(&self, id: Id, locals: Locals<'x, 'v>) -> Option<&'x str>
    where
        'v: 'x,
    {
        match self.nodes.get(usize::from(id.0))? {
            Node::Text(text) => Some(text),
            Node::Local(level) => match frame(*level, locals)?.value {
                Value::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
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
        let Some(Node::List(items)) = self.nodes.get(usize::from(b.0)) else {
            let b = self.eval(b, locals)?;
            return self.budget.is_in(&a, &b);
        };
        // A list that is written out need not be made first.
        let mut found = false;
        for item in items {
            found |= match (&a, self.ready(*item, locals)) {
                (Value::Text(a), Some(item)) => {
                    self.budget.spend(1)?;
                    self.budget.spend_bytes(a.len().min(item.len()))?;
                    **a == *item
                }
                _ => {
                    let item = self.eval(*item, locals)?;
                    self.budget.equal(&a, &item)?
                }
            };
        }
        Ok(found)
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
    fn until(
        &mut self,
        decisive: bool,
        parts: &[Id],
        locals: Locals<'_, 'v>,
    ) -> Result<bool, Trouble> {
        let mut trouble = None;
        for part in parts {
            match self.truth(*part, locals) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(found) => worse(&mut trouble, found),
            }
        }
        trouble.map_or(Ok(!decisive), Err)
    }

    /// `exists` and `all` are `||` and `&&` over the items.
    fn any(
        &mut self,
        decisive: bool,
        over: Id,
        body: Id,
        outer: Locals<'_, 'v>,
    ) -> Result<bool, Trouble> {
        let over = self.eval(over, outer)?;
        let keys = self.keys(&over)?;
        let mut trouble = None;
        for value in items(&over, &keys)?.iter() {
            match self.truth(body, Some(&Frame { value: &value, outer })) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(found) => {
                    worse(&mut trouble, found);
                    // The rest would only find that there are no steps left.
                    self.budget.spend(1)?;
                }
            }
        }
        trouble.map_or(Ok(!decisive), Err)
    }

    fn filter(
        &mut self,
        over: &Value<'v>,
        body: Id,
        outer: Locals<'_, 'v>,
    ) -> Result<Vec<Value<'v>>, Trouble> {
        let keys = self.keys(over)?;
        let mut kept = Vec::new();
        for value in items(over, &keys)?.iter() {
            if self.truth(body, Some(&Frame { value: &value, outer }))? {
                kept.push(value);
            }
        }
        Ok(kept)
    }

    fn each(&mut self, over: &Value<'v>, body: Id, outer: Locals<'_, 'v>) -> Answer<'v> {
        let keys = self.keys(over)?;
        let mut made = Vec::new();
        for value in items(over, &keys)?.iter() {
            made.push(self.eval(body, Some(&Frame { value: &value, outer }))?);
        }
        Ok(Value::List(made.into()))
    }

    /// The keys of a map, over which macros go; of anything else none.
    fn keys(&mut self, of: &Value<'v>) -> Result<Vec<Value<'v>>, Trouble> {
        let Some(entries) = of.entries() else { return Ok(Vec::new()) };
        self.budget.spend(entries.len())?;
        Ok(entries.iter().map(|(key, _)| Value::Text(key)).collect())
    }
}

/// What a macro goes over: the items of a list, or the `keys` of a map.
fn items<'i, 'v>(over: &'i Value<'v>, keys: &'i [Value<'v>]) -> Result<Items<'i, 'v>, Trouble> {
    match (over.items(), over.entries()) {
        (Some(items), _) => Ok(items),
        (None, Some(_)) => Ok(Items::Values(keys)),
        (None, None) => broken(format!("{} has no items", over.describe())),
    }
}

fn frame<'f, 'v>(level: u8, locals: Locals<'f, 'v>) -> Locals<'f, 'v> {
    let mut frame = locals;
    for _ in 0..level {
        frame = frame?.outer;
    }
    frame
}

/// Keeps the first trouble, but a missing fact before a broken part.
fn worse(known: &mut Option<Trouble>, found: Trouble) {
    if known.is_none() || found == Trouble::Missing {
        *known = Some(found);
    }
}

#[cold]
fn misplaced(value: &Value<'_>, expected: &str) -> Trouble {
    Trouble::Broken(format!("{} stands where {expected} must", value.describe()))
}

#[cold]
fn too_deep() -> Trouble {
    Trouble::Broken(format!("it is nested deeper than {DEPTH_MAX}"))
}

/// Only a condition that was not made by our own parser is.
#[cold]
fn damaged() -> Trouble {
    Trouble::Broken("a part of it is missing".into())
}
