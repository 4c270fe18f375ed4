//! The next prompt of an agent program and its conversation id, stored so that a killed run can
//! resume.
//!
//! The file is written before the program starts. Text counts as delivered once the program has
//! answered. Until then it is part of each prompt.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

use crate::model_loop::CONTINUE_TEXT;

/// The file name in the session directory.
const FILE: &str = "worker.json";

/// The text for a program that was ended during its work.
const INTERRUPTED_TEXT: &str =
    "The work continues after an interruption. Check the current state before you repeat anything.";

/// How many characters of its last output are stored.
const LAST_OUTPUT_CHARS_MAX: usize = 32 << 10;

/// The stored state of the agent program.
#[derive(Debug)]
pub(crate) struct WorkerInbox {
    path: PathBuf,
    state: WorkerInboxState,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct WorkerInboxState {
    /// The label of the engine that the texts are for.
    whom: String,
    /// The texts that are not delivered yet.
    news: Vec<String>,
    /// Whether the first of them is the task, so that they are a complete prompt.
    whole: bool,
    /// The conversation to resume, as its client names it.
    conversation: Option<String>,
    /// Whether a start has no recorded end.
    under_way: bool,
    /// The last output.
    said: String,
    /// How many times each program was started, by label.
    starts: BTreeMap<String, u64>,
}

impl WorkerInbox {
    /// Reads the state from a session directory. If the file can't be read, the state is empty, and
    /// the program gets the full task again.
    pub(crate) fn open(directory: &Path) -> Self {
        let path = directory.join(FILE);
        let kept = std::fs::read(&path).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { path, state: kept }
    }

    /// Starts with a new engine; the text is the complete task.
    pub(crate) fn start_over(&mut self, whom: &str, text: String) -> io::Result<()> {
        let starts = std::mem::take(&mut self.state.starts);
        let (whom, news) = (whom.to_owned(), vec![text]);
        self.state =
            WorkerInboxState { whom, news, whole: true, starts, ..WorkerInboxState::default() };
        self.save()
    }

    /// Continues with an engine after a restart of the supervisor. Returns whether there is a
    /// stored state for this engine.
    pub(crate) fn resume(&mut self, whom: &str) -> io::Result<bool> {
        if self.state.whom != whom {
            return Ok(false);
        }
        if self.state.under_way {
            self.record_interruption()?;
        }
        Ok(true)
    }

    /// Adds a text for the next prompt.
    pub(crate) fn add_text(&mut self, text: String) -> io::Result<()> {
        self.state.news.push(text);
        self.save()
    }

    /// The next prompt. `None` if it has to contain the task, because the program does not remember
    /// it.
    pub(crate) fn next_prompt(&self, remembers: bool) -> Option<String> {
        let knows = self.state.whole || (remembers && self.state.conversation.is_some());
        knows.then(|| self.pending_text().unwrap_or_else(|| CONTINUE_TEXT.to_owned()))
    }

    /// The texts that are not delivered yet.
    pub(crate) fn pending_text(&self) -> Option<String> {
        (!self.state.news.is_empty()).then(|| self.state.news.join("\n\n"))
    }

    /// How many questions each engine got, from the journal and the stored starts. The journal does
    /// not contain starts that failed.
    pub(crate) fn merge_question_counts(
        &self,
        journal: &BTreeMap<String, u64>,
    ) -> BTreeMap<String, u64> {
        let mut asked = journal.clone();
        for (label, starts) in &self.state.starts {
            let known = asked.entry(label.clone()).or_default();
            *known = (*known).max(*starts);
        }
        asked
    }

    /// The last output of the program.
    pub(crate) fn last_output(&self) -> &str {
        &self.state.said
    }

    /// Whether the next prompt contains the complete task.
    pub(super) fn has_full_task(&self) -> bool {
        self.state.whole
    }

    pub(super) fn conversation(&self) -> Option<&str> {
        self.state.conversation.as_deref()
    }

    /// Records a start, with the conversation if there is one.
    pub(super) fn record_start(&mut self, conversation: Option<String>) -> io::Result<()> {
        *self.state.starts.entry(self.state.whom.clone()).or_default() += 1;
        (self.state.conversation, self.state.under_way) = (conversation, true);
        self.save()
    }

    /// Records that the texts were delivered, and the conversation to resume.
    pub(super) fn record_delivery(&mut self, conversation: Option<String>) -> io::Result<()> {
        self.state.news.clear();
        (self.state.whole, self.state.under_way) = (false, false);
        self.state.conversation = conversation;
        self.save()
    }

    /// Records an interruption. The texts count as not delivered.
    pub(super) fn record_interruption(&mut self) -> io::Result<()> {
        self.state.under_way = false;
        if self.state.news.last().is_none_or(|last| last != INTERRUPTED_TEXT) {
            self.state.news.push(INTERRUPTED_TEXT.to_owned());
        }
        self.save()
    }

    /// Records a start that did nothing, so that the next start gets the same texts.
    pub(super) fn record_failed_start(&mut self, conversation: Option<String>) -> io::Result<()> {
        (self.state.conversation, self.state.under_way) = (conversation, false);
        self.save()
    }

    /// Remembers the end of the last output.
    pub(super) fn set_last_output(&mut self, said: &str) {
        let skipped = said.chars().count().saturating_sub(LAST_OUTPUT_CHARS_MAX);
        self.state.said = said.chars().skip(skipped).collect();
    }

    fn save(&self) -> io::Result<()> {
        write_private(&self.path, &serde_json::to_vec(&self.state)?).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(home: &tempfile::TempDir) -> WorkerInbox {
        WorkerInbox::open(home.path())
    }

    #[test]
    fn undelivered_text_is_in_the_prompt_of_the_next_process() {
        let home = tempfile::tempdir().unwrap();
        let mut first = told(&home);
        first.start_over("agent", "do it".into()).unwrap();
        first.record_start(Some("c1".into())).unwrap();
        let mut again = told(&home);
        assert!(again.resume("agent").unwrap());
        assert_eq!(again.next_prompt(true).unwrap(), format!("do it\n\n{INTERRUPTED_TEXT}"));
        assert_eq!((again.conversation(), again.state.starts["agent"]), (Some("c1"), 1));
        again.record_delivery(Some("c1".into())).unwrap();
        assert_eq!(told(&home).next_prompt(true).unwrap(), CONTINUE_TEXT);
    }

    #[test]
    fn only_a_program_that_remembers_gets_new_text_without_the_task() {
        let home = tempfile::tempdir().unwrap();
        let mut told = told(&home);
        told.start_over("sh", "do it".into()).unwrap();
        told.record_start(Some("c1".into())).unwrap();
        told.record_delivery(Some("c1".into())).unwrap();
        told.add_text("not yet".into()).unwrap();
        assert_eq!(told.next_prompt(true).unwrap(), "not yet");
        assert_eq!(
            (told.next_prompt(false), told.pending_text().unwrap()),
            (None, "not yet".into())
        );
        told.record_failed_start(None).unwrap();
        assert_eq!(told.next_prompt(true), None, "the conversation is lost");
    }

    #[test]
    fn another_engine_does_not_get_the_stored_state() {
        let home = tempfile::tempdir().unwrap();
        told(&home).start_over("agent", "do it".into()).unwrap();
        assert!(!told(&home).resume("sh").unwrap());
        std::fs::write(home.path().join(FILE), "{").unwrap();
        assert!(!told(&home).resume("agent").unwrap());
    }
}
