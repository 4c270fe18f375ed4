//! An approval code that a person types where they talk to the agent.

use jackline_engine::{Action, Control, Event, SessionId, Summary, Waiting};
use jackline_runtime::{ask_code, parse_ask_code, person};

/// A prompt of a person that can be the answer to a question of the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCode {
    code: String,
    action: Action,
}

impl TypedCode {
    /// A prompt that is nothing but a code, perhaps with what to do with it.
    pub fn parse(prompt: &str) -> Option<Self> {
        let mut words: Vec<&str> = prompt.split_whitespace().take(4).collect();
        let code = parse_ask_code(words.pop()?)?;
        let action = match words.as_slice() {
            [] | ["allow"] | ["jackline", "allow"] => Action::Grant,
            ["refuse"] | ["jackline", "refuse"] => Action::Refuse,
            _ => return None,
        };
        Some(Self { code, action })
    }
}

/// What a typed code means in a session.
pub(super) enum CodeAnswer {
    /// The event that answers the question, and the text for the agent.
    Control(Box<Event>, String),
    /// It answers no question: the text for the person.
    Unknown(String),
}

/// The answer that a code gives. What an agent sends in its client's name is
/// refused before it gets here.
pub(super) fn answer(
    summary: Option<Summary>,
    session: &SessionId,
    typed: &TypedCode,
) -> CodeAnswer {
    let TypedCode { code, action } = typed;
    let waiting = summary.map(|summary| summary.waiting).unwrap_or_default();
    let asked = |waiting: &Waiting| {
        let mut seqs = waiting.earlier.iter().chain([&waiting.seq]);
        seqs.any(|seq| ask_code(session, *seq) == *code)
    };
    let Some(waiting) = waiting.into_iter().find(asked) else {
        return CodeAnswer::Unknown(format!(
            "jackline: nothing waits under {code} in this session"
        ));
    };
    let what = format!("{} `{}`", waiting.tool, waiting.does);
    let told = match action {
        Action::Grant => {
            format!("A person lets exactly this call pass once: {what}. Make it again.")
        }
        _ => format!("A person refused exactly this call: {what}. Find another way."),
    };
    let control = Control {
        action: *action,
        by: Some(person()),
        why: Some("typed at the client".to_owned()),
        ask: Some(waiting.seq),
        ..Control::default()
    };
    CodeAnswer::Control(Box::new(Event::new(session.clone(), control)), told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_alone_is_an_answer_and_a_sentence_with_one_is_not() {
        let granted = TypedCode { code: "jl-4k7mpa".to_owned(), action: Action::Grant };
        for text in ["jl-4k7mpa", " JL-4K7MPA\n", "allow jl-4k7mpa", "jackline allow jl-4k7mpa"] {
            assert_eq!(TypedCode::parse(text), Some(granted.clone()), "{text}");
        }
        let refused = TypedCode { action: Action::Refuse, ..granted };
        assert_eq!(TypedCode::parse("refuse jl-4k7mpa"), Some(refused));
        for text in [
            "",
            "jl-",
            "jl-4k7mp",
            "jl-4k7mpaa",
            "what is jl-4k7mpa",
            "jl-4k7mpa please",
            "jl_4k7mpa",
        ] {
            assert_eq!(TypedCode::parse(text), None, "{text}");
        }
    }
}
