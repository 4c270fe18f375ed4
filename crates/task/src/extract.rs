//! Extracts a program from the answer of a model.

use jackline_attempt::ProviderError;
use jackline_model::{AnswerEnd, ModelReply};

use crate::author::provider_error;

const THOUGHT_ENDS: [&str; 2] = ["</think>", "</thinking>"];

/// The program in an answer: its only code block, or else the whole text. `check_syntax` returns why
/// a text is no program. Prose without a code block is no artifact, as an empty answer is none.
pub(crate) fn extract_program(
    reply: &ModelReply,
    check_syntax: impl FnOnce(&str) -> Result<(), String>,
) -> Result<String, ProviderError> {
    let said = answer_text(reply)?;
    let blocks = code_blocks(said);
    match blocks.as_slice() {
        [] => {
            let text = said.trim();
            check_syntax(text).map_err(|why| {
                let message =
                    format!("the answer has no code block, and its text is no program: {why}");
                provider_error("invalid_code", message)
            })?;
            Ok(text.to_owned())
        }
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

/// The text of a plan. Prose that contains no JSON is no artifact.
pub(crate) fn extract_plan(reply: &ModelReply) -> Result<String, ProviderError> {
    let text = answer_text(reply)?;
    if text.contains('{') {
        // The decoder removes fences and prose around the plan.
        Ok(text.to_owned())
    } else {
        Err(provider_error("invalid_code", "the answer contains no plan"))
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
        let check = |text: &str| {
            if text.contains('(') { Ok(()) } else { Err("1:3: expected a newline".to_owned()) }
        };
        extract_program(&reply(text, AnswerEnd::Turn), check).map_err(|error| error.error_type)
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
        assert_eq!(extract_from("I am done.").unwrap_err(), "invalid_code");
        let prose = extract_plan(&reply("I am done.", AnswerEnd::Turn));
        assert_eq!(prose.unwrap_err().error_type, "invalid_code");
        assert_eq!(extract_from("```\nI am done.\n```").unwrap(), "I am done.\n", "code");
        let cut = reply("ok(", AnswerEnd::Length);
        assert_eq!(extract_program(&cut, |_| Ok(())).unwrap_err().error_type, "invalid_code");
    }
}
