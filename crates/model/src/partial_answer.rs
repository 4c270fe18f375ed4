//! Collects the pieces of an answer that was stopped before its end.

use crate::answer_draft::{complete_arguments, make_id};
use crate::conversation::{AnswerDelta, AssistantMessage, ToolCallRequest};

/// Collects pieces of an answer.
#[derive(Debug, Default)]
pub struct PartialAnswer {
    said: AssistantMessage,
}

impl PartialAnswer {
    /// Adds a piece.
    pub fn add(&mut self, delta: AnswerDelta<'_>) {
        match delta {
            AnswerDelta::Text(more) => self.said.text.push_str(more),
            AnswerDelta::Call(name) => self.said.calls.push(ToolCallRequest {
                id: make_id(),
                name: name.to_owned(),
                arguments: String::new(),
            }),
            AnswerDelta::Arguments(number, more) => {
                if let Some(call) = self.said.calls.get_mut(number) {
                    call.arguments.push_str(more);
                }
            }
            AnswerDelta::Waiting => {}
            AnswerDelta::Again => self.said = AssistantMessage::default(),
        }
    }

    /// The answer so far, without provider data, as if another provider had sent it. The last call
    /// may be incomplete.
    pub fn into_message(mut self) -> AssistantMessage {
        if let Some((_, before)) = self.said.calls.split_last_mut() {
            before.iter_mut().for_each(complete_arguments);
        }
        self.said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_collected_and_dropped_after_a_broken_answer() {
        let mut partial = PartialAnswer::default();
        for delta in [
            AnswerDelta::Text("void"),
            AnswerDelta::Call("void"),
            AnswerDelta::Again,
            AnswerDelta::Text("Look"),
            AnswerDelta::Waiting,
            AnswerDelta::Text("ing."),
            AnswerDelta::Call("a"),
            AnswerDelta::Arguments(0, "{\"y\""),
            AnswerDelta::Call("none"),
            AnswerDelta::Call("b"),
            AnswerDelta::Arguments(2, "{\"x\""),
            AnswerDelta::Arguments(0, ":1}"),
            AnswerDelta::Arguments(2, ":"),
        ] {
            partial.add(delta);
        }
        let said = partial.into_message();
        let calls: Vec<(&str, &str)> =
            said.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        let expected = vec![("a", "{\"y\":1}"), ("none", "{}"), ("b", "{\"x\":")];
        assert_eq!((said.text.as_str(), calls), ("Looking.", expected));
        assert!(said.calls[0].id != said.calls[1].id && said.provider_data.is_none());
    }
}
