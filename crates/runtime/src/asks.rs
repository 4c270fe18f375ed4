//! What waits for a person on this machine, and the short names by which they
//! answer it.
//!
//! A code is made of the session and the record in which the person was asked,
//! so nothing is stored: whoever can see the session's state can work it out.
//! It is a name, not a secret; who may answer is another question.

use std::path::PathBuf;

use jackline_engine::summary::Waiting;
use jackline_engine::{Digest, SessionId, SessionPhase, Summary};
use jackline_journal::{SessionFilter, Store, StoreError};

use crate::inspect::inspect;
use jackline_host::clock;

/// How codes begin.
const PREFIX: &str = "jl-";

/// How many letters follow.
const LETTERS: usize = 6;

/// Letters that nobody takes for one another.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Sessions that were silent for longer ask nobody any more.
const RECENT_MS: i64 = 24 * 3_600_000;

/// The code of a question.
pub fn ask_code(session: &SessionId, seq: u64) -> String {
    let mut bytes = session.as_str().as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&seq.to_be_bytes());
    let digest = Digest::of(&bytes);
    let mut number =
        digest.as_bytes().iter().take(5).fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let mut code = String::from(PREFIX);
    for _ in 0..LETTERS {
        let letter = usize::try_from(number % 32).unwrap_or_default();
        code.push(ALPHABET.get(letter).copied().map_or('0', char::from));
        number /= 32;
    }
    code
}

/// A code as a person may have written it: with capitals, and with letters that
/// look alike.
pub fn parse_ask_code(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let letters = text.strip_prefix(PREFIX)?;
    let plain = letters.chars().map(|letter| match letter {
        'o' => '0',
        'i' | 'l' => '1',
        letter => letter,
    });
    let letters: String = plain.collect();
    let known = |letter: char| u8::try_from(letter).is_ok_and(|byte| ALPHABET.contains(&byte));
    (letters.len() == LETTERS && letters.chars().all(known)).then(|| format!("{PREFIX}{letters}"))
}

/// One question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The name by which it is answered.
    pub code: String,
    /// The session that waits.
    pub session: SessionId,
    /// Where it works.
    pub workspace: Option<PathBuf>,
    /// The question.
    pub waiting: Waiting,
    /// Whether the session has ended; an answer is of use only if it comes back.
    pub ended: bool,
}

/// Everything that waits for a person.
#[derive(Debug, Default)]
pub struct Asking {
    /// The questions, those of the session that was at work last first.
    pub asked: Vec<Asked>,
    /// Those of sessions that have ended.
    pub left: Vec<Asked>,
    /// Sessions that can't be looked at, and why.
    pub unreadable: Vec<(String, StoreError)>,
}

/// Why there is nothing to answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It is no code.
    #[error("`{0}` is no code; one looks like `jl-4k7mpa`, and `jackline pending` lists them")]
    NoCode(String),
    /// Nothing that waits has this code.
    #[error(
        "nothing that waits has the code `{0}`; it was answered, or given up, or is older than a \
         day; `jackline pending` lists what waits"
    )]
    Unknown(String),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a session is there to hear an answer. One that has ended may come back, and what it
/// has asked stays with it until then; one that is over asks nobody any more.
pub fn still_asks(summary: &Summary) -> bool {
    summary.is_open()
}

/// What waits for a person in the sessions of a store.
pub fn pending(store: &dyn Store) -> Result<Asking, StoreError> {
    let since = clock::now().wall.as_ms().saturating_sub(RECENT_MS);
    let since = jackline_engine::Timestamp::from_ms(since);
    let mut asking = Asking::default();
    for found in store.list(&SessionFilter { since: Some(since) })? {
        let looked = inspect(store, &found)
            .and_then(|session| found.opened().map(|opened| (opened, session.summary())));
        let (opened, summary) = match looked {
            Ok(looked) => looked,
            Err(error) => {
                asking.unreadable.push((found.name.clone(), error));
                continue;
            }
        };
        if summary.phase == SessionPhase::Stopped {
            continue;
        }
        let ended = !still_asks(&summary);
        let asked = if ended { &mut asking.left } else { &mut asking.asked };
        // The latest question of a session first, as a person was asked it last.
        asked.extend(summary.waiting.into_iter().rev().map(|waiting| Asked {
            code: ask_code(&opened.session, waiting.seq),
            session: opened.session.clone(),
            workspace: opened.place.workspace.as_ref().map(PathBuf::from),
            waiting,
            ended,
        }));
    }
    Ok(asking)
}

/// The question that a person means by a code.
pub fn find_ask(store: &dyn Store, text: &str) -> Result<Asked, AskError> {
    let code = parse_ask_code(text).ok_or_else(|| AskError::NoCode(shown(text)))?;
    let is_it = |asked: &Asked| {
        let seqs = asked.waiting.earlier.iter().chain([&asked.waiting.seq]);
        seqs.into_iter().any(|seq| ask_code(&asked.session, *seq) == code)
    };
    let Asking { asked, left, .. } = pending(store)?;
    asked.into_iter().chain(left).find(is_it).ok_or(AskError::Unknown(code))
}

/// What somebody wrote, short enough for a message.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_whoever_works_it_out() {
        let session = |id: &str| SessionId::parse(id).unwrap();
        assert_eq!(ask_code(&session("s"), 7), ask_code(&session("s"), 7));
        assert_ne!(ask_code(&session("s"), 7), ask_code(&session("s"), 8));
        assert_ne!(ask_code(&session("s"), 7), ask_code(&session("t"), 7));
        let code = ask_code(&session("s"), 7);
        assert_eq!(code, "jl-n6vys9");
        assert_eq!(parse_ask_code(&code), Some(code));
    }

    #[test]
    fn a_code_is_read_as_it_was_meant() {
        assert_eq!(parse_ask_code(" JL-0O1ILM "), Some("jl-00111m".to_owned()));
        for odd in
            ["", "jl-", "4k7mpa", "jl-4k7mp", "jl-4k7mpaa", "jl-4k7mpu", "jl 4k7mpa", "jl-äöü"]
        {
            assert_eq!(parse_ask_code(odd), None, "{odd}");
        }
    }
}
