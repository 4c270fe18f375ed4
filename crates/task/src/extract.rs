//! Extracts a program from the answer of a model.

use jackline_attempt::ProviderError;
use jackline_model::{AnswerEnd, ModelReply};

use crate::author::provider_error;

const THOUGHT_ENDS: [&str; 2] = ["</think>", "</thinking>"];

/// The program in an answer: its only code block, or else the whole text.
pub(crate) fn extract_program(reply: &ModelReply) -> Result<String, ProviderError> {
    let said = answer_text(reply)?;
    let blocks = code_blocks(said);
    match blocks.as_slice() {
        [] => Ok(said.trim().to_owned()),
        [only] => Ok((*only).to_owned()),
        // It is not clear which block is the program.
        several => {
            let count = several.len();
            Err(provider_error(
                "invalid_code",
                format!("the answer has {count} code blocks; write only one"),
            ))
        }
    }
}

/// The text without the thoughts of the model. Fails if it is empty or was cut off.
pub(crate) fn answer_text(reply: &ModelReply) -> Result<&str, ProviderError> {
    let text = &reply.message.text;
    let end = THOUGHT_ENDS.iter().filter_map(|mark| Some(text.rfind(mark)? + mark.len())).max();
    let said = end.and_then(|end| text.get(end..)).unwrap_or(text);
    if said.trim().is_empty() {
        return Err(provider_error("empty_answer", "the model sent an empty answer"));
    }
    if reply.end == AnswerEnd::Length {
        let message = "the model's answer was cut off at its length limit";
        return Err(provider_error("invalid_code", message));
    }
    Ok(said)
}

/// The contents of all code blocks.
fn code_blocks(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let (mut at, mut open) = (0, None);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if line.trim_start().starts_with("```") {
            match open.take() {
                None => open = Some(next),
                Some(begins) => blocks.extend(text.get(begins..at)),
            }
        }
        at = next;
    }
    blocks.extend(open.and_then(|begins| text.get(begins..)));
    blocks
}

#[cfg(test)]
mod tests {
    use jackline_model::AssistantMessage;

    use super::*;

    fn reply(text: &str, end: AnswerEnd) -> ModelReply {
        let said = AssistantMessage { text: text.to_owned(), ..AssistantMessage::default() };
        ModelReply { message: said, end, usage: None, request: None }
    }

    fn extract_from(text: &str) -> Result<String, String> {
        extract_program(&reply(text, AnswerEnd::Turn)).map_err(|error| error.error_type)
    }

    #[test]
    fn a_program_is_found_with_or_without_a_fence() {
        assert_eq!(extract_from("ok(1)\n").unwrap(), "ok(1)");
        assert_eq!(extract_from("Here:\n```python\nok(1)\n```\nDone.").unwrap(), "ok(1)\n");
        assert_eq!(extract_from("```\nok(1)").unwrap(), "ok(1)");
        assert_eq!(
            extract_from("<think>```\nx\n```</think>\n```py\nok(2)\n```").unwrap(),
            "ok(2)\n"
        );
    }

    #[test]
    fn an_answer_without_a_program_is_an_error() {
        assert_eq!(extract_from("").unwrap_err(), "empty_answer");
        assert_eq!(extract_from("<think>so</think> \n").unwrap_err(), "empty_answer");
        assert_eq!(extract_from("```\na\n```\n```\nb\n```").unwrap_err(), "invalid_code");
        let cut = reply("ok(", AnswerEnd::Length);
        assert_eq!(extract_program(&cut).unwrap_err().error_type, "invalid_code");
    }
}
