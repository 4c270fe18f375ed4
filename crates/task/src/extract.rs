//! Finds the program in what a model wrote around it.

use jackline_attempt::ProviderError;
use jackline_model::{End, Reply};

use crate::author::provider_error;

const THOUGHTS: [&str; 2] = ["</think>", "</thinking>"];

/// The program in an answer: the only block of code, or else all of it.
pub(crate) fn program(reply: &Reply) -> Result<String, ProviderError> {
    let said = said(reply)?;
    let blocks = blocks(said);
    match blocks.as_slice() {
        [] => Ok(said.trim().to_owned()),
        [only] => Ok((*only).to_owned()),
        // Which one was meant nobody knows.
        several => {
            let count = several.len();
            Err(provider_error("invalid_code", format!("there are {count} blocks of code")))
        }
    }
}

/// What was said, without thoughts; an error where that is nothing, or not all.
pub(crate) fn said(reply: &Reply) -> Result<&str, ProviderError> {
    let text = &reply.said.text;
    let end = THOUGHTS.iter().filter_map(|mark| Some(text.rfind(mark)? + mark.len())).max();
    let said = end.and_then(|end| text.get(end..)).unwrap_or(text);
    if said.trim().is_empty() {
        return Err(provider_error("empty_answer", "the model said nothing"));
    }
    if reply.end == End::Length {
        let message = "the model's answer was cut off at its limit of length";
        return Err(provider_error("invalid_code", message));
    }
    Ok(said)
}

/// What stands between fences.
fn blocks(text: &str) -> Vec<&str> {
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
    use jackline_model::Said;

    use super::*;

    fn reply(text: &str, end: End) -> Reply {
        let said = Said { text: text.to_owned(), ..Said::default() };
        Reply { said, end, usage: None, request: None }
    }

    fn of(text: &str) -> Result<String, String> {
        program(&reply(text, End::Turn)).map_err(|error| error.error_type)
    }

    #[test]
    fn a_program_is_found_with_or_without_a_fence() {
        assert_eq!(of("ok(1)\n").unwrap(), "ok(1)");
        assert_eq!(of("Here:\n```python\nok(1)\n```\nDone.").unwrap(), "ok(1)\n");
        assert_eq!(of("```\nok(1)").unwrap(), "ok(1)");
        assert_eq!(of("<think>```\nx\n```</think>\n```py\nok(2)\n```").unwrap(), "ok(2)\n");
    }

    #[test]
    fn what_is_none_is_said() {
        assert_eq!(of("").unwrap_err(), "empty_answer");
        assert_eq!(of("<think>so</think> \n").unwrap_err(), "empty_answer");
        assert_eq!(of("```\na\n```\n```\nb\n```").unwrap_err(), "invalid_code");
        let cut = reply("ok(", End::Length);
        assert_eq!(program(&cut).unwrap_err().error_type, "invalid_code");
    }
}
