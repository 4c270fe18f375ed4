//! Rules: conditions over a call that say deny, ask, warn or observe.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::definition::Mode;
use crate::expr::Expr;
use crate::tool::Kind;

/// The rules of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    list: Vec<Rule>,
    /// Numbers of the rules that look for a program, sorted by it.
    by_program: Vec<(String, Vec<u32>)>,
    /// Numbers of the rules that look at every call.
    others: Vec<u32>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name; one of a pack begins with the pack's name and a slash.
    pub name: String,
    /// Where it comes from: a file, `preset coding-agent`, `pack git`.
    pub origin: String,
    /// Which calls it looks at.
    pub scope: RuleScope,
    /// The programs with their subcommands it looks for; none is any.
    pub commands: Vec<String>,
    /// What must be true.
    pub when: Option<Expr>,
    /// What it does.
    pub effect: Effect,
    /// Whether it holds.
    pub mode: Mode,
    /// What the agent is told.
    pub message: String,
    /// What passes instead.
    pub instead: Option<String>,
}

/// Which calls a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// Every call.
    Any,
    /// Calls of a tool, by its declared name.
    Tool(String),
    /// Calls of a kind.
    Kind(Kind),
}

/// What a rule does when it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Writes it down.
    Observe,
    /// Tells the agent.
    Warn,
    /// Asks a person.
    Ask,
    /// Refuses.
    Deny,
}

impl Rules {
    /// Puts rules together.
    pub fn new(list: Vec<Rule>) -> Self {
        let mut by_program: Vec<(String, Vec<u32>)> = Vec::new();
        let mut others = Vec::new();
        for (number, rule) in (0..).zip(&list) {
            if rule.commands.is_empty() {
                others.push(number);
            }
            for command in &rule.commands {
                let program = command.split_whitespace().next().unwrap_or_default();
                match by_program.binary_search_by(|(known, _)| known.as_str().cmp(program)) {
                    Ok(at) => {
                        if let Some((_, numbers)) = by_program.get_mut(at)
                            && numbers.last() != Some(&number)
                        {
                            numbers.push(number);
                        }
                    }
                    Err(at) => by_program.insert(at, (program.into(), Vec::from([number]))),
                }
            }
        }
        Self { list, by_program, others }
    }

    /// The rules in their order.
    pub fn iter(&self) -> core::slice::Iter<'_, Rule> {
        self.list.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'a> IntoIterator for &'a Rules {
    type Item = &'a Rule;
    type IntoIter = core::slice::Iter<'a, Rule>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
