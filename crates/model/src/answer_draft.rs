//! An answer while it arrives, with the order of its parts.
//!
//! Providers need thoughts back at their exact position between text and calls. So the order is
//! stored next to the text and the calls, together with data that only the provider understands.
//! The text and the calls themselves are not stored twice.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conversation::{
    AnswerDelta, AnswerEnd, AssistantMessage, DeltaReceiver, ModelReply, ProviderData, TokenUsage,
    ToolCallRequest,
};

/// The prefix of ids that the provider did not assign.
const MADE_ID_PREFIX: &str = "made_";

/// Makes these ids unique within a process.
static MADE_ID_COUNT: AtomicU64 = AtomicU64::new(0);

/// Why a response is not a valid answer.
#[derive(Debug, PartialEq)]
pub(crate) enum AnswerError {
    /// The receiver stopped the answer.
    Cancelled,
    /// The server reported an error within the answer.
    Reported(Value),
    /// The answer is invalid.
    Invalid(String),
}

/// A part of an answer, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerPart {
    /// This many bytes of the text.
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
    /// Data that only the provider understands.
    Own(Value),
}

/// A part of an answer at its position.
#[derive(Debug, PartialEq)]
pub(crate) enum PositionedPart<'a> {
    Text(&'a str, Option<Value>),
    Call(&'a ToolCallRequest, Option<Value>),
    ProviderData(Value),
}

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct AnswerDraft {
    message: AssistantMessage,
    parts: Vec<AnswerPart>,
    pub(crate) usage: Option<TokenUsage>,
    pub(crate) end: Option<AnswerEnd>,
    /// The provider's id of the answer.
    pub(crate) id: Option<String>,
}

impl AnswerDraft {
    /// Adds text.
    pub(crate) fn add_text(
        &mut self,
        more: &str,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        if more.is_empty() {
            return Ok(());
        }
        self.message.text.push_str(more);
        match self.parts.last_mut() {
            Some(AnswerPart::Text { bytes, with: None }) => *bytes += more.len(),
            _ => self.parts.push(AnswerPart::Text { bytes: more.len(), with: None }),
        }
        pass_on(hear, AnswerDelta::Text(more))
    }

    /// Attaches provider data to the last text, or to an empty one.
    pub(crate) fn attach_to_text(&mut self, own: Value) {
        match self.parts.last_mut() {
            Some(AnswerPart::Text { with: with @ None, .. }) => *with = Some(own),
            _ => self.parts.push(AnswerPart::Text { bytes: 0, with: Some(own) }),
        }
    }

    /// Starts a call. Returns its number.
    pub(crate) fn start_call(
        &mut self,
        id: &str,
        name: &str,
        with: Option<Value>,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<usize, AnswerError> {
        let (id, name) = (id.to_owned(), name.to_owned());
        self.message.calls.push(ToolCallRequest {
            id,
            name: name.clone(),
            arguments: String::new(),
        });
        self.parts.push(AnswerPart::Call { with });
        pass_on(hear, AnswerDelta::Call(&name))?;
        Ok(self.message.calls.len() - 1)
    }

    /// Adds arguments to a call.
    pub(crate) fn add_arguments(
        &mut self,
        number: usize,
        more: &str,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        let Some(call) = self.message.calls.get_mut(number).filter(|_| !more.is_empty()) else {
            return Ok(());
        };
        call.arguments.push_str(more);
        pass_on(hear, AnswerDelta::Arguments(number, more))
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> &[ToolCallRequest] {
        &self.message.calls
    }

    /// Adds provider data. Returns its index.
    pub(crate) fn add_provider_data(&mut self, own: Value) -> usize {
        self.parts.push(AnswerPart::Own(own));
        self.parts.len() - 1
    }

    /// Appends text to a field of provider data.
    pub(crate) fn append_to_provider_data(&mut self, place: usize, name: &str, more: &str) {
        let Some(AnswerPart::Own(Value::Object(own))) = self.parts.get_mut(place) else { return };
        match own.get_mut(name) {
            Some(Value::String(text)) => text.push_str(more),
            _ => {
                own.insert(name.to_owned(), more.into());
            }
        }
    }

    /// The complete answer, if its end has arrived.
    pub(crate) fn into_reply(self, provider: &str) -> Option<ModelReply> {
        let Self { message: mut said, parts, usage, end, id } = self;
        let end = match end? {
            AnswerEnd::Turn if !said.calls.is_empty() => AnswerEnd::Calls,
            AnswerEnd::Calls if said.calls.is_empty() => AnswerEnd::Turn,
            end => end,
        };
        for call in &mut said.calls {
            if call.id.is_empty() {
                call.id = make_id();
            }
            complete_arguments(call);
        }
        let has_own = |part: &AnswerPart| {
            !matches!(part, AnswerPart::Text { with: None, .. } | AnswerPart::Call { with: None })
        };
        if parts.iter().any(has_own) {
            said.provider_data =
                Some(ProviderData { provider: provider.to_owned(), value: json!(parts) });
        }
        Some(ModelReply { message: said, end, usage, request: id })
    }
}

fn pass_on(hear: &mut DeltaReceiver<'_>, delta: AnswerDelta<'_>) -> Result<(), AnswerError> {
    if hear(delta).is_break() { Err(AnswerError::Cancelled) } else { Ok(()) }
}

/// A complete call without arguments gets an empty object.
pub(crate) fn complete_arguments(call: &mut ToolCallRequest) {
    if call.arguments.trim().is_empty() {
        "{}".clone_into(&mut call.arguments);
    }
}

/// Creates an id for a call without an id from the provider.
pub(crate) fn make_id() -> String {
    let number = MADE_ID_COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{MADE_ID_PREFIX}{:x}_{number}", std::process::id())
}

/// Whether the provider assigned this id.
pub(crate) fn is_provider_id(id: &str) -> bool {
    !id.starts_with(MADE_ID_PREFIX)
}

/// The parts of an answer in the order that the provider needs. Calls that the stored order lacks
/// come last. If the text has changed since, it is not split.
pub(crate) fn parts_in_order<'a>(
    said: &'a AssistantMessage,
    provider: &str,
) -> Vec<PositionedPart<'a>> {
    let provider_data =
        said.provider_data.as_ref().filter(|provider_data| provider_data.provider == provider);
    let parts: Vec<AnswerPart> = provider_data
        .and_then(|provider_data| serde_json::from_value(provider_data.value.clone()).ok())
        .unwrap_or_default();
    let text_bytes =
        |part: &AnswerPart| if let AnswerPart::Text { bytes, .. } = part { *bytes } else { 0 };
    let is_unchanged = parts.iter().map(text_bytes).sum::<usize>() == said.text.len();
    let (mut text, mut calls) = (said.text.as_str(), said.calls.iter());
    let mut placed = Vec::new();
    for part in parts {
        match part {
            AnswerPart::Text { bytes, with } => {
                let length = if is_unchanged { bytes } else { text.len() };
                let (piece, rest) = text.split_at_checked(length).unwrap_or((text, ""));
                text = rest;
                placed.push(PositionedPart::Text(piece, with));
            }
            AnswerPart::Call { with } => {
                placed.extend(calls.next().map(|call| PositionedPart::Call(call, with)));
            }
            AnswerPart::Own(own) => placed.push(PositionedPart::ProviderData(own)),
        }
    }
    if !text.is_empty() {
        placed.push(PositionedPart::Text(text, None));
    }
    placed.extend(calls.map(|call| PositionedPart::Call(call, None)));
    placed
}

/// Merges consecutive messages of the same role and leaves out empty ones, because some providers
/// require both.
pub(crate) fn merge_turns(
    messages: impl Iterator<Item = (&'static str, Vec<Value>)>,
) -> Vec<(&'static str, Vec<Value>)> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for (role, parts) in messages.filter(|(_, parts)| !parts.is_empty()) {
        match turns.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    turns
}

/// Parses arguments as an object. Invalid arguments are wrapped in an object, because providers
/// accept nothing else.
pub(crate) fn arguments_as_object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({ "unreadable": arguments }),
    }
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;

    use super::*;

    fn thoughtful() -> ModelReply {
        let mut draft = AnswerDraft { end: Some(AnswerEnd::Turn), ..AnswerDraft::default() };
        let hear: &mut DeltaReceiver<'_> = &mut |_| ControlFlow::Continue(());
        draft.add_provider_data(json!({ "thought": 1 }));
        draft.add_text("one", hear).unwrap();
        draft.attach_to_text(json!("sig"));
        draft.add_provider_data(json!({ "thought": 2 }));
        draft.add_text("two", hear).unwrap();
        draft.start_call("a", "Bash", None, hear).unwrap();
        draft.into_reply("p").unwrap()
    }

    #[test]
    fn thoughts_keep_their_position() {
        let reply = thoughtful();
        assert_eq!(
            (reply.end, reply.message.calls[0].arguments.as_str()),
            (AnswerEnd::Calls, "{}")
        );
        let own = |n: u8| PositionedPart::ProviderData(json!({ "thought": n }));
        let call = &reply.message.calls[0];
        let expected = [
            own(1),
            PositionedPart::Text("one", Some(json!("sig"))),
            own(2),
            PositionedPart::Text("two", None),
            PositionedPart::Call(call, None),
        ];
        assert_eq!(parts_in_order(&reply.message, "p"), expected);
        let elsewhere = [PositionedPart::Text("onetwo", None), PositionedPart::Call(call, None)];
        assert_eq!(parts_in_order(&reply.message, "q"), elsewhere);
    }

    #[test]
    fn a_changed_answer_is_sent_as_it_is_now() {
        let mut said = thoughtful().message;
        said.text = "cut".to_owned();
        said.calls.push(ToolCallRequest { id: "b".to_owned(), ..said.calls[0].clone() });
        let texts: Vec<String> = parts_in_order(&said, "p")
            .iter()
            .map(|it| match it {
                PositionedPart::Text(text, _) => (*text).to_owned(),
                PositionedPart::Call(call, _) => call.id.clone(),
                PositionedPart::ProviderData(_) => "own".to_owned(),
            })
            .collect();
        assert_eq!(texts, ["own", "cut", "own", "", "a", "b"]);
    }

    #[test]
    fn a_draft_without_an_end_is_no_answer_and_missing_ids_are_created() {
        assert_eq!(AnswerDraft::default().into_reply("p"), None);
        let hear: &mut DeltaReceiver<'_> = &mut |_| ControlFlow::Continue(());
        let mut draft = AnswerDraft { end: Some(AnswerEnd::Calls), ..AnswerDraft::default() };
        draft.start_call("", "a", None, hear).unwrap();
        draft.start_call("", "b", None, hear).unwrap();
        let calls = draft.into_reply("p").unwrap().message.calls;
        assert!(calls[0].id != calls[1].id && !is_provider_id(&calls[0].id));
        assert_eq!(arguments_as_object("{\"a\":"), json!({ "unreadable": "{\"a\":" }));
    }
}
