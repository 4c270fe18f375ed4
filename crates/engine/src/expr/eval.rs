//! Evaluates conditions and counts the steps.

use alloc::format;
use alloc::vec::Vec;

use super::operators::{StepBudget, fail, missing_key, negate, quote_text, require_entries};
use super::value::{ExprText, ListItems};
use super::{
    Comparison, ConditionScope, DEPTH_MAX, EvaluationError, ExprMacro, ExprNode, ExprNodeId,
    ExprValue, TextTest,
};

type EvalResult<'v> = Result<ExprValue<'v>, EvaluationError>;

pub(super) fn evaluate(
    nodes: &[ExprNode],
    scope: &dyn ConditionScope<'_>,
    steps: &mut u32,
) -> Result<bool, EvaluationError> {
    let mut evaluator = Evaluator { nodes, scope, budget: StepBudget::new(*steps), depth: 0 };
    let whole = u16::try_from(nodes.len().wrapping_sub(1)).map_or(ExprNodeId(u16::MAX), ExprNodeId);
    let answer = evaluator.eval_bool(whole, None);
    *steps = evaluator.budget.left();
    answer
}

struct Evaluator<'v, 'a> {
    nodes: &'v [ExprNode],
    scope: &'v dyn ConditionScope<'a>,
    budget: StepBudget,
    depth: u16,
}

/// The current value of each macro around a node, the innermost first.
#[derive(Clone, Copy)]
struct MacroFrame<'f, 'v> {
    value: &'f ExprValue<'v>,
    outer: Option<&'f MacroFrame<'f, 'v>>,
}

type Locals<'f, 'v> = Option<&'f MacroFrame<'f, 'v>>;

impl<'v, 'a: 'v> Evaluator<'v, 'a> {
    /// Returns the node to evaluate next and spends its step.
    fn enter_node(&mut self, id: ExprNodeId) -> Result<&'v ExprNode, EvaluationError> {
        self.budget.spend(1)?;
        if self.depth == DEPTH_MAX {
            return Err(too_deep());
        }
        let node = self.nodes.get(usize::from(id.0)).ok_or_else(damaged_condition)?;
        self.depth += 1;
        Ok(node)
    }

    /// Evaluates a node.
    fn eval_node(&mut self, id: ExprNodeId, locals: Locals<'_, 'v>) -> EvalResult<'v> {
        let node = self.enter_node(id)?;
        let answer = self.eval_value(node, locals);
        self.depth -= 1;
        answer
    }

    /// Evaluates a node that must be true or false.
    fn eval_bool(
        &mut self,
        id: ExprNodeId,
        locals: Locals<'_, 'v>,
    ) -> Result<bool, EvaluationError> {
        let node = self.enter_node(id)?;
        let answer = self.eval_condition(node, locals);
        self.depth -= 1;
        answer
    }

    fn eval_value(&mut self, node: &'v ExprNode, locals: Locals<'_, 'v>) -> EvalResult<'v> {
        match node {
            ExprNode::Null => Ok(ExprValue::Null),
            ExprNode::Bool(truth) => Ok(ExprValue::Bool(*truth)),
            ExprNode::Int(number) => Ok(ExprValue::Int(*number)),
            ExprNode::Text(text) => Ok(ExprValue::text(text)),
            ExprNode::List(items) => self.build_list(items, locals),
            ExprNode::Map(entries) => self.build_map(entries, locals),
            ExprNode::Variable(variable) => {
                self.scope.value(*variable).map(ExprValue::without_json_scalar)
            }
            ExprNode::Local(level) => macro_frame(*level, locals)
                .map(|frame| frame.value.clone())
                .ok_or_else(damaged_condition),
            ExprNode::Negate(a) => negate(&self.eval_node(*a, locals)?),
            ExprNode::If(condition, then, otherwise) => {
                let branch = if self.eval_bool(*condition, locals)? { then } else { otherwise };
                self.eval_node(*branch, locals)
            }
            ExprNode::Arithmetic(operator, a, b) => {
                let (a, b) = (self.eval_node(*a, locals)?, self.eval_node(*b, locals)?);
                self.budget.arithmetic(*operator, &a, &b)
            }
            ExprNode::Index(a, b) => {
                let (a, b) = (self.eval_node(*a, locals)?, self.eval_node(*b, locals)?);
                self.budget.index(&a, &b)
            }
            ExprNode::Member(a, name) => {
                let a = self.eval_node(*a, locals)?;
                let found = require_entries(&a, name)?.get(name);
                found.ok_or_else(|| missing_key(name))
            }
            ExprNode::Call(function, a) => {
                let a = self.eval_node(*a, locals)?;
                self.budget.call_function(*function, a)
            }
            ExprNode::Each(ExprMacro::Filter, a, body) => {
                let a = self.eval_node(*a, locals)?;
                Ok(ExprValue::List(self.filter_items(&a, *body, locals)?.into()))
            }
            ExprNode::Each(ExprMacro::Map, a, body) => {
                let a = self.eval_node(*a, locals)?;
                self.map_items(&a, *body, locals)
            }
            ExprNode::Not(_)
            | ExprNode::And(_)
            | ExprNode::Or(_)
            | ExprNode::Compare(..)
            | ExprNode::In(..)
            | ExprNode::Has(..)
            | ExprNode::Test(..)
            | ExprNode::Matches(..)
            | ExprNode::Ask(..)
            | ExprNode::Each(ExprMacro::Exists | ExprMacro::All | ExprMacro::ExistsOne, ..) => {
                self.eval_condition(node, locals).map(ExprValue::Bool)
            }
        }
    }

    fn eval_condition(
        &mut self,
        node: &'v ExprNode,
        locals: Locals<'_, 'v>,
    ) -> Result<bool, EvaluationError> {
        match node {
            ExprNode::Not(a) => self.eval_bool(*a, locals).map(|truth| !truth),
            ExprNode::And(parts) => self.eval_logical(false, parts, locals),
            ExprNode::Or(parts) => self.eval_logical(true, parts, locals),
            ExprNode::Compare(how, a, b) => self.eval_comparison(*how, *a, *b, locals),
            ExprNode::In(a, b) => self.is_in(*a, *b, locals),
            ExprNode::Has(a, name) => {
                let a = self.eval_node(*a, locals)?;
                Ok(require_entries(&a, name)?.get(name).is_some())
            }
            ExprNode::Test(test, a, b) => {
                let (a, b) = (self.eval_text(*a, locals)?, self.eval_text(*b, locals)?);
                self.budget.spend_bytes(a.len().saturating_add(b.len()))?;
                Ok(match test {
                    TextTest::StartsWith => a.starts_with(&*b),
                    TextTest::EndsWith => a.ends_with(&*b),
                    TextTest::Contains => a.contains(&*b),
                })
            }
            ExprNode::Matches(a, pattern) => {
                let a = self.eval_text(*a, locals)?;
                pattern.matches_somewhere(&a, |steps| self.budget.spend(steps))
            }
            ExprNode::Ask(question, a) => {
                let a = self.eval_text(*a, locals)?;
                self.budget.spend_bytes(a.len())?;
                self.scope.answer(*question, &a)
            }
            ExprNode::Each(ExprMacro::Exists, a, body) => {
                self.eval_quantifier(true, *a, *body, locals)
            }
            ExprNode::Each(ExprMacro::All, a, body) => {
                self.eval_quantifier(false, *a, *body, locals)
            }
            ExprNode::Each(ExprMacro::ExistsOne, a, body) => {
                let a = self.eval_node(*a, locals)?;
                Ok(self.filter_items(&a, *body, locals)?.len() == 1)
            }
            value => match self.eval_value(value, locals)? {
                ExprValue::Bool(truth) => Ok(truth),
                other => Err(wrong_type(&other, "true or false")),
            },
        }
    }

    fn eval_text(
        &mut self,
        id: ExprNodeId,
        locals: Locals<'_, 'v>,
    ) -> Result<ExprText<'v>, EvaluationError> {
        match self.eval_node(id, locals)? {
            ExprValue::Text(text) => Ok(text),
            other => Err(wrong_type(&other, "a text")),
        }
    }

    fn eval_comparison(
        &mut self,
        how: Comparison,
        a: ExprNodeId,
        b: ExprNodeId,
        locals: Locals<'_, 'v>,
    ) -> Result<bool, EvaluationError> {
        // Most comparisons are of two texts, and most of these texts need not be copied.
        if let (Some(a), Some(b)) = (self.borrow_text(a, locals), self.borrow_text(b, locals)) {
            self.budget.spend(2)?;
            self.budget.spend_bytes(a.len().min(b.len()))?;
            return Ok(match how {
                Comparison::Equal => a == b,
                Comparison::Unequal => a != b,
                _ => how.matches_ordering(a.cmp(b)),
            });
        }
        let (a, b) = (self.eval_node(a, locals)?, self.eval_node(b, locals)?);
        self.budget.compare(how, &a, &b)
    }

    /// A text literal, or the text of a macro variable.
    fn borrow_text<'x>(&self, id: ExprNodeId, locals: Locals<'x, 'v>) -> Option<&'x str>
    where
        'v: 'x,
    {
        match self.nodes.get(usize::from(id.0))? {
            ExprNode::Text(text) => Some(text),
            ExprNode::Local(level) => match macro_frame(*level, locals)?.value {
                ExprValue::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    fn build_list(&mut self, items: &[ExprNodeId], locals: Locals<'_, 'v>) -> EvalResult<'v> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.eval_node(*item, locals)?);
        }
        Ok(ExprValue::List(values.into()))
    }

    fn is_in(
        &mut self,
        a: ExprNodeId,
        b: ExprNodeId,
        locals: Locals<'_, 'v>,
    ) -> Result<bool, EvaluationError> {
        let a = self.eval_node(a, locals)?;
        let Some(ExprNode::List(items)) = self.nodes.get(usize::from(b.0)) else {
            let b = self.eval_node(b, locals)?;
            return self.budget.is_in(&a, &b);
        };
        // The items of a list literal are compared one by one, without building the list.
        let mut found = false;
        for item in items {
            found |= match (&a, self.borrow_text(*item, locals)) {
                (ExprValue::Text(a), Some(item)) => {
                    self.budget.spend(1)?;
                    self.budget.spend_bytes(a.len().min(item.len()))?;
                    **a == *item
                }
                _ => {
                    let item = self.eval_node(*item, locals)?;
                    self.budget.equal(&a, &item)?
                }
            };
        }
        Ok(found)
    }

    fn build_map(
        &mut self,
        entries: &[(ExprNodeId, ExprNodeId)],
        locals: Locals<'_, 'v>,
    ) -> EvalResult<'v> {
        let mut sorted: Vec<(ExprText<'v>, ExprValue<'v>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.eval_text(*key, locals)?;
            let value = self.eval_node(*value, locals)?;
            self.budget.spend_bytes(key.len())?;
            match sorted.binary_search_by(|(existing, _)| (**existing).cmp(&*key)) {
                Ok(_) => return fail(format!("duplicate key `{}`", quote_text(&key))),
                Err(at) => sorted.insert(at, (key, value)),
            }
        }
        Ok(ExprValue::Map(sorted.into()))
    }

    /// Evaluates `&&` and `||`. A part that equals `decisive` decides, whatever errors the other
    /// parts have. A missing fact takes precedence over another error, because with the fact that
    /// part may not matter.
    fn eval_logical(
        &mut self,
        decisive: bool,
        parts: &[ExprNodeId],
        locals: Locals<'_, 'v>,
    ) -> Result<bool, EvaluationError> {
        let mut error = None;
        for part in parts {
            match self.eval_bool(*part, locals) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(new) => record_error(&mut error, new),
            }
        }
        error.map_or(Ok(!decisive), Err)
    }

    /// `exists` and `all` are `||` and `&&` over the items.
    fn eval_quantifier(
        &mut self,
        decisive: bool,
        over: ExprNodeId,
        body: ExprNodeId,
        outer: Locals<'_, 'v>,
    ) -> Result<bool, EvaluationError> {
        let over = self.eval_node(over, outer)?;
        let keys = self.map_keys(&over)?;
        let mut error = None;
        for value in macro_items(&over, &keys)?.iter() {
            match self.eval_bool(body, Some(&MacroFrame { value: &value, outer })) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(new) => {
                    record_error(&mut error, new);
                    // If no steps are left, evaluating the other items is pointless.
                    self.budget.spend(1)?;
                }
            }
        }
        error.map_or(Ok(!decisive), Err)
    }

    fn filter_items(
        &mut self,
        over: &ExprValue<'v>,
        body: ExprNodeId,
        outer: Locals<'_, 'v>,
    ) -> Result<Vec<ExprValue<'v>>, EvaluationError> {
        let keys = self.map_keys(over)?;
        let mut matching = Vec::new();
        for value in macro_items(over, &keys)?.iter() {
            if self.eval_bool(body, Some(&MacroFrame { value: &value, outer }))? {
                matching.push(value);
            }
        }
        Ok(matching)
    }

    fn map_items(
        &mut self,
        over: &ExprValue<'v>,
        body: ExprNodeId,
        outer: Locals<'_, 'v>,
    ) -> EvalResult<'v> {
        let keys = self.map_keys(over)?;
        let mut values = Vec::new();
        for value in macro_items(over, &keys)?.iter() {
            values.push(self.eval_node(body, Some(&MacroFrame { value: &value, outer }))?);
        }
        Ok(ExprValue::List(values.into()))
    }

    /// The keys of a map, which macros iterate over. The list is empty for other values.
    fn map_keys(&mut self, of: &ExprValue<'v>) -> Result<Vec<ExprValue<'v>>, EvaluationError> {
        let Some(entries) = of.entries() else { return Ok(Vec::new()) };
        self.budget.spend(entries.len())?;
        Ok(entries.iter().map(|(key, _)| ExprValue::Text(key)).collect())
    }
}

/// The values that a macro iterates over: the items of a list, or the `keys` of a map.
fn macro_items<'i, 'v>(
    over: &'i ExprValue<'v>,
    keys: &'i [ExprValue<'v>],
) -> Result<ListItems<'i, 'v>, EvaluationError> {
    match (over.items(), over.entries()) {
        (Some(items), _) => Ok(items),
        (None, Some(_)) => Ok(ListItems::Values(keys)),
        (None, None) => fail(format!("{} has no items", over.describe())),
    }
}

fn macro_frame<'f, 'v>(level: u8, locals: Locals<'f, 'v>) -> Locals<'f, 'v> {
    let mut frame = locals;
    for _ in 0..level {
        frame = frame?.outer;
    }
    frame
}

/// Records the first error, but replaces it with a missing fact.
fn record_error(recorded: &mut Option<EvaluationError>, new: EvaluationError) {
    if recorded.is_none() || new == EvaluationError::MissingFact {
        *recorded = Some(new);
    }
}

#[cold]
fn wrong_type(value: &ExprValue<'_>, expected: &str) -> EvaluationError {
    EvaluationError::Failed(format!("expected {expected}, but got {}", value.describe()))
}

#[cold]
fn too_deep() -> EvaluationError {
    EvaluationError::Failed(format!("it is nested deeper than {DEPTH_MAX}"))
}

/// Only a condition that Jackline's own parser did not create can be damaged.
#[cold]
fn damaged_condition() -> EvaluationError {
    EvaluationError::Failed("a part of it is missing".into())
}
