//! An answer while it arrives, and the order in which its parts came.
//!
//! Providers want thoughts back exactly where they were between text and calls. So the
//! order is kept beside the text and the calls, with what only the provider understands;
//! the text and the calls themselves are not kept twice.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::{Call, Delta, End, Hearer, Kept, Reply, Said, Usage};

/// What ids begin with that the provider did not give.
const MADE: &str = "made_";

/// Makes these ids differ within a process.
static MADE_COUNT: AtomicU64 = AtomicU64::new(0);

/// Why what came is no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Trouble {
    /// Whoever listens does not want more.
    Cancelled,
    /// The server said in the middle of it that it failed.
    Complaint(Value),
    /// It makes no sense.
    Bad(String),
}

/// A part of an answer, without what is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    /// So much of the text.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<Value>,
    },
    /// The next call.
    Call {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<Value>,
    },
    /// Something of the provider's own.
    Own(Value),
}

/// A part of what was said, in its place.
#[derive(Debug, PartialEq)]
pub(crate) enum Placed<'a> {
    Text(&'a str, Option<Value>),
    Call(&'a Call, Option<Value>),
    Own(Value),
}

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    said: Said,
    parts: Vec<Part>,
    pub(crate) usage: Option<Usage>,
    pub(crate) end: Option<End>,
    /// What the provider calls the answer.
    pub(crate) id: Option<String>,
}

impl Draft {
    /// More of the text.
    pub(crate) fn text(&mut self, more: &str, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        if more.is_empty() {
            return Ok(());
        }
        self.said.text.push_str(more);
        match self.parts.last_mut() {
            Some(Part::Text { bytes, with: None }) => *bytes += more.len(),
            _ => self.parts.push(Part::Text { bytes: more.len(), with: None }),
        }
        tell(hear, Delta::Text(more))
    }

    /// Keeps something with the text that came last, or with none.
    pub(crate) fn text_with(&mut self, own: Value) {
        match self.parts.last_mut() {
            Some(Part::Text { with: with @ None, .. }) => *with = Some(own),
            _ => self.parts.push(Part::Text { bytes: 0, with: Some(own) }),
        }
    }

    /// A call begins; gives its number.
    pub(crate) fn call(
        &mut self,
        id: &str,
        name: &str,
        with: Option<Value>,
        hear: &mut Hearer<'_>,
    ) -> Result<usize, Trouble> {
        let (id, name) = (id.to_owned(), name.to_owned());
        self.said.calls.push(Call { id, name: name.clone(), arguments: String::new() });
        self.parts.push(Part::Call { with });
        tell(hear, Delta::Call(&name))?;
        Ok(self.said.calls.len() - 1)
    }

    /// More of the arguments of a call.
    pub(crate) fn arguments(
        &mut self,
        number: usize,
        more: &str,
        hear: &mut Hearer<'_>,
    ) -> Result<(), Trouble> {
        let Some(call) = self.said.calls.get_mut(number).filter(|_| !more.is_empty()) else {
            return Ok(());
        };
        call.arguments.push_str(more);
        tell(hear, Delta::Arguments(number, more))
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.said.calls
    }

    /// Keeps something of the provider's own; gives its place.
    pub(crate) fn own(&mut self, own: Value) -> usize {
        self.parts.push(Part::Own(own));
        self.parts.len() - 1
    }

    /// More of a text in what was kept at a place.
    pub(crate) fn more_of_own(&mut self, place: usize, name: &str, more: &str) {
        let Some(Part::Own(Value::Object(own))) = self.parts.get_mut(place) else { return };
        match own.get_mut(name) {
            Some(Value::String(text)) => text.push_str(more),
            _ => {
                own.insert(name.to_owned(), more.into());
            }
        }
    }

    /// The whole answer, if its end has come.
    pub(crate) fn reply(self, provider: &str) -> Option<Reply> {
        let Self { mut said, parts, usage, end, id } = self;
        let end = match end? {
            End::Turn if !said.calls.is_empty() => End::Calls,
            End::Calls if said.calls.is_empty() => End::Turn,
            end => end,
        };
        for call in &mut said.calls {
            if call.id.is_empty() {
                call.id = made_id();
            }
            complete(call);
        }
        let has_own = |part: &Part| {
            !matches!(part, Part::Text { with: None, .. } | Part::Call { with: None })
        };
        if parts.iter().any(has_own) {
            said.kept = Some(Kept { provider: provider.to_owned(), value: json!(parts) });
        }
        Some(Reply { said, end, usage, request: id })
    }
}

fn tell(hear: &mut Hearer<'_>, delta: Delta<'_>) -> Result<(), Trouble> {
    if hear(delta).is_break() { Err(Trouble::Cancelled) } else { Ok(()) }
}

/// A call that is whole and has no arguments has none of them.
pub(crate) fn complete(call: &mut Call) {
    if call.arguments.trim().is_empty() {
        "{}".clone_into(&mut call.arguments);
    }
}

/// An id for a call that the provider gave none.
pub(crate) fn made_id() -> String {
    let number = MADE_COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{MADE}{:x}_{number}", std::process::id())
}

/// Whether the provider itself gave this id.
pub(crate) fn is_given(id: &str) -> bool {
    !id.starts_with(MADE)
}

/// What was said as a provider wants it back. Calls that are not in the order come last,
/// and a text that is not what it was comes whole.
pub(crate) fn placed<'a>(said: &'a Said, provider: &str) -> Vec<Placed<'a>> {
    let kept = said.kept.as_ref().filter(|kept| kept.provider == provider);
    let parts: Vec<Part> =
        kept.and_then(|kept| serde_json::from_value(kept.value.clone()).ok()).unwrap_or_default();
    let told = |part: &Part| if let Part::Text { bytes, .. } = part { *bytes } else { 0 };
    let as_it_was = parts.iter().map(told).sum::<usize>() == said.text.len();
    let (mut text, mut calls) = (said.text.as_str(), said.calls.iter());
    let mut placed = Vec::new();
    for part in parts {
        match part {
            Part::Text { bytes, with } => {
                let length = if as_it_was { bytes } else { text.len() };
                let (piece, rest) = text.split_at_checked(length).unwrap_or((text, ""));
                text = rest;
                placed.push(Placed::Text(piece, with));
            }
            Part::Call { with } => placed.extend(calls.next().map(|call| Placed::Call(call, with))),
            Part::Own(own) => placed.push(Placed::Own(own)),
        }
    }
    if !text.is_empty() {
        placed.push(Placed::Text(text, None));
    }
    placed.extend(calls.map(|call| Placed::Call(call, None)));
    placed
}

/// What each side says in turn. What comes from the same side is one message, and a side
/// that says nothing is left out: some providers insist on both.
pub(crate) fn turns(
    said: impl Iterator<Item = (&'static str, Vec<Value>)>,
) -> Vec<(&'static str, Vec<Value>)> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for (role, parts) in said.filter(|(_, parts)| !parts.is_empty()) {
        match turns.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    turns
}

/// Arguments as an object. What is none is told in one, because no provider takes
/// anything else back.
pub(crate) fn as_object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({ "unreadable": arguments }),
    }
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;

    use super::*;

    fn thoughtful() -> Reply {
        let mut draft = Draft { end: Some(End::Turn), ..Draft::default() };
        let hear: &mut Hearer<'_> = &mut |_| ControlFlow::Continue(());
        draft.own(json!({ "thought": 1 }));
        draft.text("one", hear).unwrap();
        draft.text_with(json!("sig"));
        draft.own(json!({ "thought": 2 }));
        draft.text("two", hear).unwrap();
        draft.call("a", "Bash", None, hear).unwrap();
        draft.reply("p").unwrap()
    }

    #[test]
    fn thoughts_go_back_where_they_were() {
        let reply = thoughtful();
        assert_eq!((reply.end, reply.said.calls[0].arguments.as_str()), (End::Calls, "{}"));
        let own = |n: u8| Placed::Own(json!({ "thought": n }));
        let call = &reply.said.calls[0];
        let expected = [
            own(1),
            Placed::Text("one", Some(json!("sig"))),
            own(2),
            Placed::Text("two", None),
            Placed::Call(call, None),
        ];
        assert_eq!(placed(&reply.said, "p"), expected);
        let elsewhere = [Placed::Text("onetwo", None), Placed::Call(call, None)];
        assert_eq!(placed(&reply.said, "q"), elsewhere);
    }

    #[test]
    fn what_was_changed_since_is_told_as_it_is_now() {
        let mut said = thoughtful().said;
        said.text = "cut".to_owned();
        said.calls.push(Call { id: "b".to_owned(), ..said.calls[0].clone() });
        let texts: Vec<String> = placed(&said, "p")
            .iter()
            .map(|it| match it {
                Placed::Text(text, _) => (*text).to_owned(),
                Placed::Call(call, _) => call.id.clone(),
                Placed::Own(_) => "own".to_owned(),
            })
            .collect();
        assert_eq!(texts, ["own", "cut", "own", "", "a", "b"]);
    }

    #[test]
    fn a_draft_without_an_end_is_no_answer_and_ids_are_made_where_none_came() {
        assert_eq!(Draft::default().reply("p"), None);
        let hear: &mut Hearer<'_> = &mut |_| ControlFlow::Continue(());
        let mut draft = Draft { end: Some(End::Calls), ..Draft::default() };
        draft.call("", "a", None, hear).unwrap();
        draft.call("", "b", None, hear).unwrap();
        let calls = draft.reply("p").unwrap().said.calls;
        assert!(calls[0].id != calls[1].id && !is_given(&calls[0].id));
        assert_eq!(as_object("{\"a\":"), json!({ "unreadable": "{\"a\":" }));
    }
}
