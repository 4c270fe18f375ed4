//! An approval code that a person types where they talk to the agent.

use jackline_engine::Action;
use jackline_runtime::asks::parse_ask_code;

/// A prompt of a person that can be the answer to a question of the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCode {
    pub(crate) code: String,
    pub(crate) action: Action,
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
