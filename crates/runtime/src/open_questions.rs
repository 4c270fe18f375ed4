//! The questions on this machine that wait for a person's answer, and the short codes by which a
//! person answers them.
//!
//! A code is computed from the session id and the number of the record that asked, so no code is
//! stored. Every program that can read the state of the session can compute it. A code is a name
//! and not a secret: other checks decide who may answer.

use std::path::{Path, PathBuf};

use jackline_engine::summary::WaitingCall;
use jackline_engine::{Digest, SessionId, SessionPhase, SessionSummary, Timestamp};
use jackline_journal::{SessionEntry, SessionFilter, Store, StoreError};

use crate::inspect::load_session;
use crate::session_process::was_left;
use jackline_host::clock;

/// The prefix of every code.
const CODE_PREFIX: &str = "jl-";

/// The number of characters after the prefix.
const CODE_CHARS: usize = 6;

/// Characters that people do not confuse with one another.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Questions of sessions that were silent for longer are not listed.
const LISTED_AGE_MS_MAX: i64 = 24 * 3_600_000;

/// The code of a question.
pub fn approval_code(session: &SessionId, seq: u64) -> String {
    let mut bytes = session.as_str().as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&seq.to_be_bytes());
    let digest = Digest::of(&bytes);
    let mut number =
        digest.as_bytes().iter().take(5).fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let mut code = String::from(CODE_PREFIX);
    for _ in 0..CODE_CHARS {
        let letter = usize::try_from(number % 32).unwrap_or_default();
        code.push(ALPHABET.get(letter).copied().map_or('0', char::from));
        number /= 32;
    }
    code
}

/// Parses a code as a person may write it: with capitals, or with a character that looks like
/// another one.
pub fn parse_approval_code(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let letters = text.strip_prefix(CODE_PREFIX)?;
    let plain = letters.chars().map(|letter| match letter {
        'o' => '0',
        'i' | 'l' => '1',
        letter => letter,
    });
    let letters: String = plain.collect();
    let is_in_alphabet =
        |letter: char| u8::try_from(letter).is_ok_and(|byte| ALPHABET.contains(&byte));
    (letters.len() == CODE_CHARS && letters.chars().all(is_in_alphabet))
        .then(|| format!("{CODE_PREFIX}{letters}"))
}

/// One question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The code by which a person answers it.
    pub code: String,
    /// The session that asked.
    pub session: SessionId,
    /// The client of the session, if its first event names one.
    pub client: Option<String>,
    /// The workspace of the session.
    pub workspace: Option<PathBuf>,
    /// The question.
    pub waiting: WaitingCall,
    /// Whether the session has ended. An answer then takes effect only if the session resumes.
    pub is_session_ended: bool,
    /// Whether the process that worked on the session is gone, although the session did not end.
    pub was_session_left: bool,
}

/// All questions that wait for a person.
#[derive(Debug, Default)]
pub struct OpenQuestions {
    /// The questions of open sessions. Those of the most recently active session come first.
    pub open: Vec<OpenQuestion>,
    /// The questions of ended sessions.
    pub of_ended_sessions: Vec<OpenQuestion>,
    /// The questions of sessions whose process is gone.
    pub of_left_sessions: Vec<OpenQuestion>,
    /// The questions of open sessions that work elsewhere than in the directory of the list.
    pub elsewhere: Vec<OpenQuestion>,
    /// Sessions that can't be read, and why.
    pub unreadable: Vec<(String, StoreError)>,
}

/// Why a code leads to no question.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// The text is not a code.
    #[error(
        "`{0}` is not a code; a code looks like `jl-4k7mpa`; `jackline pending` lists all codes"
    )]
    InvalidCode(String),
    /// No waiting question has this code.
    #[error(
        "no waiting question has the code `{0}`; it was answered or withdrawn, or is older than a \
         day; `jackline pending` lists the questions that wait"
    )]
    UnknownCode(String),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a session can still use an answer. An ended session may resume, and its questions wait
/// until then. A finished session no longer uses answers.
pub fn is_answerable(summary: &SessionSummary) -> bool {
    summary.is_open()
}

/// Lists the questions that wait for a person in the sessions of a store. `directory` separates the
/// questions of sessions that work there from the others.
pub fn list_open_questions(
    store: &dyn Store,
    directory: Option<&Path>,
) -> Result<OpenQuestions, StoreError> {
    let now = clock::now().wall;
    let since = Timestamp::from_ms(now.as_ms().saturating_sub(LISTED_AGE_MS_MAX));
    let here = directory.map(|it| it.canonicalize().unwrap_or_else(|_| it.to_owned()));
    let is_here =
        |entry: &SessionEntry| here.as_ref().is_none_or(|here| entry.distance_from(here).is_some());
    let mut asking = OpenQuestions::default();
    for entry in store.list(&SessionFilter { since: Some(since) })? {
        let inspected = load_session(store, &entry)
            .and_then(|session| entry.opening().map(|opened| (opened, session.summary())));
        let (opened, summary) = match inspected {
            Ok(inspected) => inspected,
            Err(error) => {
                asking.unreadable.push((entry.name.clone(), error));
                continue;
            }
        };
        if summary.phase == SessionPhase::Stopped {
            continue;
        }
        let ended = !is_answerable(&summary);
        let left = !ended && was_left(&entry, now);
        let questions = match (ended, left) {
            (true, _) => &mut asking.of_ended_sessions,
            (false, true) => &mut asking.of_left_sessions,
            (false, false) if is_here(&entry) => &mut asking.open,
            (false, false) => &mut asking.elsewhere,
        };
        // The latest question of a session comes first, because the person saw it last.
        questions.extend(summary.waiting.into_iter().rev().map(|waiting| OpenQuestion {
            code: approval_code(&opened.session, waiting.seq),
            session: opened.session.clone(),
            client: entry.client().map(ToOwned::to_owned),
            workspace: opened.place.workspace.as_ref().map(PathBuf::from),
            waiting,
            is_session_ended: ended,
            was_session_left: left,
        }));
    }
    Ok(asking)
}

/// Finds the question for a code that a person has typed.
pub fn find_question(store: &dyn Store, text: &str) -> Result<OpenQuestion, QuestionError> {
    let code =
        parse_approval_code(text).ok_or_else(|| QuestionError::InvalidCode(shorten_code(text)))?;
    let is_it = |asked: &OpenQuestion| {
        let seqs = asked.waiting.earlier.iter().chain([&asked.waiting.seq]);
        seqs.into_iter().any(|seq| approval_code(&asked.session, *seq) == code)
    };
    let OpenQuestions { open, of_ended_sessions, of_left_sessions, elsewhere, .. } =
        list_open_questions(store, None)?;
    let all = [open, elsewhere, of_left_sessions, of_ended_sessions];
    all.into_iter().flatten().find(is_it).ok_or(QuestionError::UnknownCode(code))
}

/// Cuts the user's text to a length that fits into a message.
fn shorten_code(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_depends_only_on_session_and_record() {
        let session = |id: &str| SessionId::parse(id).unwrap();
        assert_eq!(approval_code(&session("s"), 7), approval_code(&session("s"), 7));
        assert_ne!(approval_code(&session("s"), 7), approval_code(&session("s"), 8));
        assert_ne!(approval_code(&session("s"), 7), approval_code(&session("t"), 7));
        let code = approval_code(&session("s"), 7);
        assert_eq!(code, "jl-n6vys9");
        assert_eq!(parse_approval_code(&code), Some(code));
    }

    #[test]
    fn a_code_is_read_despite_case_and_similar_letters() {
        assert_eq!(parse_approval_code(" JL-0O1ILM "), Some("jl-00111m".to_owned()));
        for odd in
            ["", "jl-", "4k7mpa", "jl-4k7mp", "jl-4k7mpaa", "jl-4k7mpu", "jl 4k7mpa", "jl-äöü"]
        {
            assert_eq!(parse_approval_code(odd), None, "{odd}");
        }
    }
}
