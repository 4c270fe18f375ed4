//! Parses an approval code that a person types as a prompt to the agent.

use jackline_engine::ControlAction;
use jackline_runtime::open_questions::parse_approval_code;

/// A prompt of a person that answers a question of the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCode {
    pub(crate) code: String,
    pub(crate) action: ControlAction,
}

impl TypedCode {
    /// Parses a prompt that consists of a code, optionally with an action before it.
    pub fn parse(prompt: &str) -> Option<Self> {
        let mut words: Vec<&str> = prompt.split_whitespace().take(4).collect();
        let code = parse_approval_code(words.pop()?)?;
        let action = match words.as_slice() {
            [] | ["allow"] | ["jackline", "allow"] => ControlAction::Grant,
            ["refuse"] | ["jackline", "refuse"] => ControlAction::Refuse,
            _ => return None,
        };
        Some(Self { code, action })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_code_is_an_answer_and_a_sentence_with_a_code_is_not() {
        let granted = TypedCode { code: "jl-4k7mpa".to_owned(), action: ControlAction::Grant };
        for text in ["jl-4k7mpa", " JL-4K7MPA\n", "allow jl-4k7mpa", "jackline allow jl-4k7mpa"] {
            assert_eq!(TypedCode::parse(text), Some(granted.clone()), "{text}");
        }
        let refused = TypedCode { action: ControlAction::Refuse, ..granted };
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
