//! What an agent program is told next, and which conversation of its goes on, kept so that a
//! run that was killed goes on where it was.
//!
//! It is written down before the program is started. What it is told counts as heard once it
//! has answered; until then it is told again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

use crate::own::GO_ON;

/// The file in the directory of a session.
const FILE: &str = "worker.json";

/// Told to a program that was ended in the middle of its work.
const CUT_OFF: &str =
    "The work goes on after it was cut off. Look at what is there before you do anything again.";

/// How much of what it said last is kept, from its end.
const SAID_CHARS_MAX: usize = 32 << 10;

/// What an agent program is told, and what it said last.
#[derive(Debug)]
pub(crate) struct Told {
    path: PathBuf,
    kept: Kept,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Who is told, by its label.
    whom: String,
    /// What it has not heard yet.
    news: Vec<String>,
    /// Whether that begins with the task, so that nobody has to know anything else.
    whole: bool,
    /// The conversation that goes on, as its client calls it.
    conversation: Option<String>,
    /// Whether it was started, and nobody has seen its end.
    under_way: bool,
    /// What it said last.
    said: String,
    /// How often programs were started, by their labels.
    starts: BTreeMap<String, u64>,
}

impl Told {
    /// What was kept in the directory of a session. What can't be read is as good as nothing:
    /// the program is told everything then.
    pub(crate) fn open(directory: &Path) -> Self {
        let path = directory.join(FILE);
        let kept = std::fs::read(&path).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { path, kept }
    }

    /// Begins with somebody who knows nothing: the text says all there is.
    pub(crate) fn begin(&mut self, whom: &str, text: String) -> io::Result<()> {
        let starts = std::mem::take(&mut self.kept.starts);
        let (whom, news) = (whom.to_owned(), vec![text]);
        self.kept = Kept { whom, news, whole: true, starts, ..Kept::default() };
        self.save()
    }

    /// Goes on with somebody after the supervisor was started again; whether that can be,
    /// because it was told something before.
    pub(crate) fn go_on(&mut self, whom: &str) -> io::Result<bool> {
        if self.kept.whom != whom {
            return Ok(false);
        }
        if self.kept.under_way {
            self.cut_off()?;
        }
        Ok(true)
    }

    /// Tells it something more.
    pub(crate) fn tell(&mut self, text: String) -> io::Result<()> {
        self.kept.news.push(text);
        self.save()
    }

    /// What it is told now. None where it has to be told the task besides, because it does
    /// not remember it.
    pub(crate) fn next(&self, remembers: bool) -> Option<String> {
        let knows = self.kept.whole || (remembers && self.kept.conversation.is_some());
        knows.then(|| self.news().unwrap_or_else(|| GO_ON.to_owned()))
    }

    /// What it has not heard yet.
    pub(crate) fn news(&self) -> Option<String> {
        (!self.kept.news.is_empty()).then(|| self.kept.news.join("\n\n"))
    }

    /// How often engines were asked, with what the journal says of them. A start that came
    /// to nothing is not in the journal.
    pub(crate) fn asked(&self, journal: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut asked = journal.clone();
        for (label, starts) in &self.kept.starts {
            let known = asked.entry(label.clone()).or_default();
            *known = (*known).max(*starts);
        }
        asked
    }

    /// What it said last.
    pub(crate) fn said(&self) -> &str {
        &self.kept.said
    }

    /// Whether what it is told next says all there is.
    pub(super) fn is_whole(&self) -> bool {
        self.kept.whole
    }

    pub(super) fn conversation(&self) -> Option<&str> {
        self.kept.conversation.as_deref()
    }

    /// It is started now, in this conversation where it has one.
    pub(super) fn start(&mut self, conversation: Option<String>) -> io::Result<()> {
        *self.kept.starts.entry(self.kept.whom.clone()).or_default() += 1;
        (self.kept.conversation, self.kept.under_way) = (conversation, true);
        self.save()
    }

    /// It has heard what it was told, and goes on in this conversation.
    pub(super) fn heard(&mut self, conversation: Option<String>) -> io::Result<()> {
        self.kept.news.clear();
        (self.kept.whole, self.kept.under_way) = (false, false);
        self.kept.conversation = conversation;
        self.save()
    }

    /// It was ended in the middle, and is told so with what it may not have heard.
    pub(super) fn cut_off(&mut self) -> io::Result<()> {
        self.kept.under_way = false;
        if self.kept.news.last().is_none_or(|last| last != CUT_OFF) {
            self.kept.news.push(CUT_OFF.to_owned());
        }
        self.save()
    }

    /// It has ended without having done anything, so it is told the same again.
    pub(super) fn again(&mut self, conversation: Option<String>) -> io::Result<()> {
        (self.kept.conversation, self.kept.under_way) = (conversation, false);
        self.save()
    }

    /// Keeps what it says.
    pub(super) fn says(&mut self, said: &str) {
        let skipped = said.chars().count().saturating_sub(SAID_CHARS_MAX);
        self.kept.said = said.chars().skip(skipped).collect();
    }

    fn save(&self) -> io::Result<()> {
        write_private(&self.path, &serde_json::to_vec(&self.kept)?).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(home: &tempfile::TempDir) -> Told {
        Told::open(home.path())
    }

    #[test]
    fn what_was_not_heard_is_told_again_by_the_next_process() {
        let home = tempfile::tempdir().unwrap();
        let mut first = told(&home);
        first.begin("agent", "do it".into()).unwrap();
        first.start(Some("c1".into())).unwrap();
        let mut again = told(&home);
        assert!(again.go_on("agent").unwrap());
        assert_eq!(again.next(true).unwrap(), format!("do it\n\n{CUT_OFF}"));
        assert_eq!((again.conversation(), again.kept.starts["agent"]), (Some("c1"), 1));
        again.heard(Some("c1".into())).unwrap();
        assert_eq!(told(&home).next(true).unwrap(), GO_ON);
    }

    #[test]
    fn only_who_remembers_is_told_the_news_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut told = told(&home);
        told.begin("sh", "do it".into()).unwrap();
        told.start(Some("c1".into())).unwrap();
        told.heard(Some("c1".into())).unwrap();
        told.tell("not yet".into()).unwrap();
        assert_eq!(told.next(true).unwrap(), "not yet");
        assert_eq!((told.next(false), told.news().unwrap()), (None, "not yet".into()));
        told.again(None).unwrap();
        assert_eq!(told.next(true), None, "its conversation is gone");
    }

    #[test]
    fn somebody_else_goes_on_with_nothing_of_it() {
        let home = tempfile::tempdir().unwrap();
        told(&home).begin("agent", "do it".into()).unwrap();
        assert!(!told(&home).go_on("sh").unwrap());
        std::fs::write(home.path().join(FILE), "{").unwrap();
        assert!(!told(&home).go_on("agent").unwrap());
    }
}
