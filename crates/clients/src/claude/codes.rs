//! A code that a person types where they talk to the agent.

use jackline_engine::{Action, ActorId, Control, Event, EventKind, SessionId, Waiting};
use jackline_runtime::{Runtime, ask_code, parse_ask_code, person};

/// What a person typed that can be an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    code: String,
    action: Action,
}

impl Typed {
    /// A prompt that is nothing but a code, perhaps with what to do with it.
    pub(crate) fn parse(prompt: &str) -> Option<Self> {
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

/// What came of a code.
pub(crate) enum Said {
    /// It answers this question; the agent may be told.
    Answer(Box<Event>, String),
    /// It does not, and the person should know.
    Nothing(String),
}

/// The answer that a code gives. What an agent sends in its client's name is
/// refused before it gets here.
pub(crate) fn answer(runtime: &mut Runtime, session: &SessionId, typed: &Typed) -> Said {
    let Typed { code, action } = typed;
    let waiting = runtime.summary(session).map(|summary| summary.waiting).unwrap_or_default();
    let asked = |waiting: &Waiting| {
        let mut seqs = waiting.earlier.iter().chain([&waiting.seq]);
        seqs.any(|seq| ask_code(session, *seq) == *code)
    };
    let Some(waiting) = waiting.into_iter().find(asked) else {
        return Said::Nothing(format!("jackline: nothing waits under {code} in this session"));
    };
    let what = format!("{} `{}`", waiting.tool, waiting.does);
    let told = match action {
        Action::Grant => {
            format!("A person lets exactly this call pass once: {what}. Make it again.")
        }
        _ => format!("A person refused exactly this call: {what}. Find another way."),
    };
    let kind = EventKind::Control(Control {
        action: *action,
        by: Some(person()),
        why: Some("typed at the client".to_owned()),
        ask: Some(waiting.seq),
        ..Control::default()
    });
    let (session, actor) = (session.clone(), ActorId::main());
    let event = Event { session, id: None, at: None, actor, kind, meta: None };
    Said::Answer(Box::new(event), told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_alone_is_an_answer_and_a_sentence_with_one_is_not() {
        let granted = Typed { code: "jl-4k7mpa".to_owned(), action: Action::Grant };
        for text in ["jl-4k7mpa", " JL-4K7MPA\n", "allow jl-4k7mpa", "jackline allow jl-4k7mpa"] {
            assert_eq!(Typed::parse(text), Some(granted.clone()), "{text}");
        }
        let refused = Typed { action: Action::Refuse, ..granted };
        assert_eq!(Typed::parse("refuse jl-4k7mpa"), Some(refused));
        for text in [
            "",
            "jl-",
            "jl-4k7mp",
            "jl-4k7mpaa",
            "what is jl-4k7mpa",
            "jl-4k7mpa please",
            "jl_4k7mpa",
        ] {
            assert_eq!(Typed::parse(text), None, "{text}");
        }
    }
}
