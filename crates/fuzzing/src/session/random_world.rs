//! The world of a session: its clocks, and the answers to queries.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::digest::Digest128;
use jackline_engine::facts::{
    CheckFact, DefinitionFact, DefinitionFile, FeedbackFact, FileChangeFact, FileDetails, FileFact,
    FileKind, GitChangeFact, GitFact, GitFileChange, HookState, NewDefinition, PinsFact,
    PolicyFact, ReloadFact, TrackedFile, VerificationFact, WatchedFact,
};
use jackline_engine::verdict::Severity;
use jackline_engine::{Digest, Event, Fact, Facts, Now, Query, Timestamp, observe};

use super::DEFINITIONS;
use super::session_moves::SessionMove;

/// The calendar time at the start.
const START_MS: i64 = 1_700_000_000_000;

const FILE_KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Missing,
    FileKind::Directory,
    FileKind::Other,
    FileKind::Unreadable,
    FileKind::Escape,
    FileKind::NoFilesystem,
];

/// The state of the world at one moment.
#[derive(Debug, Default)]
pub(super) struct RandomWorld {
    /// A byte of the move. Every answer depends on it.
    seed: u8,
    wall_ms: i64,
    boot: u8,
    boot_ms: u64,
}

impl RandomWorld {
    /// Moves the clocks in steps, sometimes backwards.
    pub(super) fn advance(&mut self, next: SessionMove) {
        self.seed = next.world;
        let (wall, boot) = match next.world >> 3 {
            0..=15 => (50, 50),
            16..=21 => (2_000, 2_000),
            22..=26 => (600_000, 600_000),
            27 => (-3_600_000, 10),
            28 => (86_400_000, 0),
            29 => (i64::MAX / 4, u64::MAX / 4),
            _ => {
                self.boot = self.boot.wrapping_add(1);
                self.boot_ms = 0;
                (1_000, 1)
            }
        };
        self.wall_ms = self.wall_ms.saturating_add(wall);
        self.boot_ms = self.boot_ms.saturating_add(boot);
    }

    pub(super) fn wall(&self) -> Timestamp {
        Timestamp::from_ms(self.wall_ms.saturating_add(START_MS))
    }

    /// The facts that are available without a query.
    pub(super) fn facts(&self, event: &Event) -> Facts {
        let boot_id = if self.boot % 4 == 3 { String::new() } else { format!("boot{}", self.boot) };
        let mut facts = Facts::at(Now { wall: self.wall(), boot_id, boot_ms: self.boot_ms });
        facts.observed = observe(event);
        facts.deadline = (self.seed % 32 == 30).then(|| self.wall().plus_ms(60_000));
        facts.other_workspace = (self.seed % 64 == 62).then(|| "/elsewhere".to_owned());
        facts
    }

    pub(super) fn answer(&self, query: &Query) -> Fact {
        match query {
            Query::File { path, wants } => Fact::File(self.file(path, *wants)),
            Query::Changed { files } => {
                let changed = files.iter().filter(|file| self.coin(&file.path));
                let contents = FileDetails { contents: true, ..FileDetails::default() };
                let fact =
                    |file: &TrackedFile| (file.path.clone(), self.file(&file.path, contents));
                Fact::Changed(changed.map(fact).collect())
            }
            Query::Git { .. } => Fact::Git(self.repository()),
            Query::Ignored { path } => Fact::Ignored(self.coin(path)),
            Query::GitChange { files, .. } => Fact::GitChange(self.git_change(files)),
            Query::Hook { .. } => Fact::Hook(self.hook_state()),
            Query::FileSearch { search } => {
                Fact::FileSearch(self.coin(&search.pattern).then(|| search.pattern.clone()))
            }
            Query::FileChanges { files } => {
                let changed = files.iter().filter(|file| self.coin(&file.path));
                Fact::FileChanges(
                    changed.map(|file| (file.path.clone(), self.file_change())).collect(),
                )
            }
            Query::Verification { .. } => Fact::Verification(self.verification()),
            Query::Watched { files, .. } => Fact::Watched(self.watched_of(files)),
            Query::Feedback { .. } => Fact::Feedback(self.feedback()),
            Query::PolicyCheck { .. } => Fact::Policy(self.policy_check()),
            Query::PolicyResult { .. } => Fact::Policy(self.policy_result()),
            Query::Checker { .. } => Fact::Checker(self.checker()),
            Query::Definition => Fact::Definition(self.definition()),
            Query::Pins { definition, .. } => {
                // The session does not run under the approved agent in this state.
                let demanded = self.coin(definition) && self.seed % 8 == 5;
                Fact::Pins(PinsFact { demanded, ..PinsFact::default() })
            }
            Query::Reload => Fact::Reload(self.reload()),
            Query::Protect { files } => Fact::Protect(self.watched_of(files)),
        }
    }

    fn git_change(&self, files: &[String]) -> GitChangeFact {
        if self.seed.is_multiple_of(4) {
            return GitChangeFact::Unknown;
        }
        let change = GitFileChange {
            removed: self.seed.is_multiple_of(2),
            kept: self.seed.is_multiple_of(5),
            before: self.hook_state(),
            after: HookState::Absent,
        };
        let changed = files.iter().filter(|file| self.coin(file));
        GitChangeFact::Known { files: changed.map(|file| (file.clone(), change)).collect() }
    }

    fn hook_state(&self) -> HookState {
        match self.seed % 3 {
            0 => HookState::Absent,
            1 => HookState::Present,
            _ => HookState::Disabled,
        }
    }

    fn file_change(&self) -> FileChangeFact {
        let by_git = self.seed.is_multiple_of(2);
        FileChangeFact {
            by_git,
            before: self.hook_state(),
            after: HookState::Absent,
            unrestorable: self.seed.is_multiple_of(7),
        }
    }

    fn watched_of(&self, files: &[TrackedFile]) -> BTreeMap<String, WatchedFact> {
        let changed = files.iter().filter(|file| self.coin(&file.path));
        changed.map(|file| (file.path.clone(), self.watched())).collect()
    }

    fn watched(&self) -> WatchedFact {
        let sha256 = (self.seed % 4 != 3).then(|| Digest::of(&[self.seed % 4]));
        WatchedFact { stamp: u64::from(self.seed), sha256, ..WatchedFact::default() }
    }

    fn file(&self, path: &str, wants: FileDetails) -> FileFact {
        // Usually all files exist. In some states one of them is something else.
        let odd = self.seed.is_multiple_of(3) && self.coin(path);
        let number = if odd { usize::from(self.seed / 3) % FILE_KINDS.len() } else { 0 };
        let kind = FILE_KINDS.get(number).copied().unwrap_or(FileKind::File);
        if kind != FileKind::File {
            return FileFact::without_details(kind);
        }
        FileFact {
            bytes: u64::from(self.seed),
            modified: (self.seed % 8 != 7).then(|| self.wall()),
            json: wants.json.then_some(self.seed % 5 != 4),
            declares_tests: wants.declares_tests.then_some(self.seed % 6 != 5),
            real: (self.seed % 16 == 9).then(|| format!("real/{path}")),
            stamp: (self.seed % 16 != 11).then_some(u64::from(self.seed % 4)),
            digest: wants.contents.then(|| Digest128::of(&[self.seed % 4])),
            lines: wants.contents.then_some(u64::from(self.seed)),
            ..FileFact::without_details(kind)
        }
    }

    fn repository(&self) -> GitFact {
        GitFact {
            repository: !self.seed.is_multiple_of(4),
            dirty: self.seed & 2 != 0,
            untracked: self.seed & 8 != 0,
            branch: if self.seed & 16 == 0 { String::new() } else { "main".to_owned() },
        }
    }

    fn verification(&self) -> VerificationFact {
        match self.seed % 5 {
            0 => VerificationFact::Running,
            1 => VerificationFact::Passed,
            2 => VerificationFact::Failed { exit: Some(1), tail: "2 failed".to_owned() },
            3 => VerificationFact::TimedOut { tail: String::new() },
            _ => VerificationFact::Broken { reason: "no shell".to_owned() },
        }
    }

    fn feedback(&self) -> FeedbackFact {
        match self.seed % 3 {
            0 => FeedbackFact::Silent,
            1 => FeedbackFact::Message {
                severity: Severity::Warning,
                summary: "<&'\">".to_owned(),
                observations: Vec::new(),
                suggestions: vec!["go on".to_owned()],
            },
            _ => FeedbackFact::Broken { reason: "x".to_owned() },
        }
    }

    fn policy_check(&self) -> PolicyFact {
        match self.seed % 8 {
            0 => PolicyFact::Denied { reason: None },
            1 => PolicyFact::Denied { reason: Some("not now".to_owned()) },
            2 => PolicyFact::Broken { reason: "x".to_owned() },
            3 => PolicyFact::State { text: "an answer to another question".to_owned() },
            4 => PolicyFact::Allowed { carry: Some("c".repeat(usize::from(self.seed) * 4)) },
            _ => PolicyFact::Allowed { carry: None },
        }
    }

    fn policy_result(&self) -> PolicyFact {
        match self.seed % 4 {
            0 => PolicyFact::Broken { reason: "x".to_owned() },
            1 => PolicyFact::Allowed { carry: None },
            _ => PolicyFact::State { text: "s".repeat(usize::from(self.seed) * 16) },
        }
    }

    fn checker(&self) -> CheckFact {
        match self.seed % 4 {
            0 => CheckFact::Incomplete { feedback: None },
            1 => CheckFact::Incomplete { feedback: Some("write the report".to_owned()) },
            2 => CheckFact::Broken { reason: "x".to_owned() },
            _ => CheckFact::Complete,
        }
    }

    fn definition(&self) -> DefinitionFact {
        match self.seed % 8 {
            0 => DefinitionFact::Missing,
            1 => DefinitionFact::Changed { checksum: Digest::of(&[self.seed]) },
            2 => DefinitionFact::Broken { reason: "line 1".to_owned() },
            _ => DefinitionFact::Same,
        }
    }

    fn reload(&self) -> ReloadFact {
        let number = usize::from(self.seed / 8) % DEFINITIONS.len();
        match (self.seed % 8, DEFINITIONS.get(number)) {
            (0, _) | (_, None) => ReloadFact::Broken { reason: "line 1".to_owned() },
            (1, _) => ReloadFact::Same,
            (_, Some(definition)) => {
                let (checksum, path) = (Digest::of(&[self.seed / 8]), "/jackline.yaml".to_owned());
                let files = vec![DefinitionFile {
                    path,
                    sha256: checksum,
                    by_person: self.seed.is_multiple_of(2),
                }];
                let lowered = StoredDefinition::new(Arc::clone(definition));
                ReloadFact::New(Box::new(NewDefinition { checksum, files, lowered }))
            }
        }
    }

    /// A coin toss that gives the same result for the same name and state.
    fn coin(&self, name: &str) -> bool {
        name.bytes().fold(self.seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte)) % 2 == 0
    }
}
