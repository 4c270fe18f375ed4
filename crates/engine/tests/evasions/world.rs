//! An in-memory workspace and a session that works in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jackline_engine::facts::{
    DefinitionFact, FileFact, FileKind, GitChangeFact, GitFact, PinsFact, ROUNDS_MAX, TrackedFile,
    WatchedFact,
};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Definition, Digest, Facts, Now, Query, Record, Session, SessionId, SessionLocation, Timestamp,
    Verdict, observe,
};
use serde_json::{Value, json};

/// The directory of the workspace.
pub(crate) const ROOT: &str = "/srv/repo";

/// The home directory of the user. Some system directories exist too.
pub(crate) const HOME: &str = "/home/dana";

/// Directories, files and links, by absolute path.
#[derive(Default)]
pub(crate) struct MemoryWorkspace {
    directories: BTreeSet<String>,
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
    now: i64,
}

impl MemoryWorkspace {
    /// The repository in which every line of the tables runs.
    pub(crate) fn new() -> Self {
        let mut world = Self::default();
        for directory in [ROOT, HOME, "/tmp", "/proc/self", "/dev"] {
            world.directory(directory);
        }
        for name in ["d", "src", "sub"] {
            world.directory(&format!("{ROOT}/{name}"));
        }
        for name in ["jackline.yaml", "config.yaml", "x", "d/config.yaml", "src/config.yaml"] {
            world.write(&format!("{ROOT}/{name}"), "old\n");
        }
        world.link("/proc/self/cwd", ROOT);
        world.link("/proc/self/root", "/");
        world
    }

    pub(crate) fn directory(&mut self, path: &str) {
        let slashes = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        let above: Vec<String> =
            slashes.filter_map(|at| path.get(..at)).map(ToOwned::to_owned).collect();
        self.directories.extend(above);
        self.directories.insert(path.to_owned());
    }

    pub(crate) fn write(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.links.insert(path.to_owned(), target.to_owned());
    }

    /// The path with all links resolved, also if the last parts of the path do not exist.
    fn real(&self, path: &str) -> String {
        let mut real = String::new();
        let mut rest: Vec<String> = segments(path).rev().map(ToOwned::to_owned).collect();
        for _ in 0..200 {
            let Some(segment) = rest.pop() else { break };
            if segment == ".." {
                let parent = real.rfind('/').unwrap_or(0);
                real.truncate(parent);
                continue;
            }
            let next = format!("{real}/{segment}");
            match self.links.get(&next) {
                Some(target) => {
                    if target.starts_with('/') {
                        real.clear();
                    }
                    rest.extend(segments(target).rev().map(ToOwned::to_owned));
                }
                None => real = next,
            }
        }
        if real.is_empty() { "/".to_owned() } else { real }
    }

    fn file_fact(&self, path: &str) -> FileFact {
        let requested = absolute(path);
        let real = self.real(&requested);
        let kind = match self.files.get(&real) {
            Some(_) => FileKind::File,
            None if self.directories.contains(&real) => FileKind::Directory,
            None => FileKind::Missing,
        };
        let look = self.files.get(&real).map(|text| look_of(text));
        let inside =
            real.strip_prefix(ROOT).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let shown = inside.map_or(real.clone(), |rest| match rest.trim_start_matches('/') {
            "" => ".".to_owned(),
            rest => rest.to_owned(),
        });
        let real_path = (real != requested).then_some(shown);
        FileFact { stamp: look, real: real_path, ..FileFact::without_details(kind) }
    }

    fn watched(&self, tracked: &[TrackedFile]) -> BTreeMap<String, WatchedFact> {
        let changed = tracked.iter().filter_map(|file| {
            let text = self.files.get(&self.real(&absolute(&file.path)));
            let look = text.map_or(0, |text| look_of(text));
            let sha256 = text.map(|text| Digest::of(text.as_bytes()));
            (look != file.stamp).then(|| {
                (file.path.clone(), WatchedFact { stamp: look, sha256, ..WatchedFact::default() })
            })
        });
        changed.collect()
    }

    fn answer(&self, query: &Query, facts: &mut Facts) {
        match query {
            Query::File { path, .. } => {
                facts.files.insert(path.clone(), self.file_fact(path));
            }
            Query::Watched { files, .. } => facts.watched = Some(self.watched(files)),
            Query::Changed { .. } => facts.changed = Some(BTreeMap::new()),
            // A private branch with uncommitted work.
            Query::Git { dir } => {
                let branch = "work".to_owned();
                let fact = GitFact { repository: true, dirty: true, untracked: true, branch };
                facts.git.insert(dir.clone(), fact);
            }
            Query::Ignored { path } => {
                facts.ignored.insert(path.clone(), false);
            }
            // Git can't tell, and nothing tells how files changed.
            Query::GitChange { command, .. } => {
                facts.git_changes.insert(*command, GitChangeFact::Unknown);
            }
            Query::FileSearch { search } => {
                facts.found_files.insert(search.pattern.clone(), None);
            }
            Query::FileChanges { .. } => facts.file_changes = Some(BTreeMap::new()),
            Query::Definition => facts.definition = Some(DefinitionFact::Same),
            // No agent is approved, so no approval is required.
            Query::Pins { .. } => facts.pins = Some(PinsFact::default()),
            other => panic!("this world can't answer {other:?}"),
        }
    }
}

fn segments(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|segment| !matches!(*segment, "" | "."))
}

fn absolute(path: &str) -> String {
    match path {
        "." => ROOT.to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("{ROOT}/{path}"),
    }
}

fn look_of(text: &str) -> u64 {
    text.bytes().fold(1, |look, byte| look.wrapping_mul(31).wrapping_add(byte.into()))
}

/// A running session in a world that the test can change.
pub(crate) struct EvasionSession {
    pub(crate) world: MemoryWorkspace,
    session: Session,
}

impl EvasionSession {
    pub(crate) fn new(definition: &Arc<Definition>) -> Self {
        let place = SessionLocation {
            workspace: Some(ROOT.to_owned()),
            home: Some(HOME.to_owned()),
            state_home: Some(format!("{HOME}/.local/state/jackline")),
            definition: vec![format!("{ROOT}/jackline.yaml")],
            ..SessionLocation::default()
        };
        let session = Session::new(Arc::clone(definition), Arc::new(place));
        let mut play = Self { world: MemoryWorkspace::new(), session };
        play.send(&json!({"event": "session_started"}));
        play.send(&json!({"event": "prompt_submitted", "source": "human", "text": "go"}));
        play
    }

    /// Sends an event and applies the verdict, as the runtime does.
    pub(crate) fn send(&mut self, event: &Value) -> Verdict {
        self.world.now += 1_000;
        let id = SessionId::parse("s").unwrap();
        let event = parse_line(event.to_string().as_bytes(), Some(&id)).unwrap();
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(self.world.now)));
        facts.observed = observe(&event);
        for _ in 0..ROUNDS_MAX {
            let queries = self.session.needs(&event, &facts);
            queries.iter().for_each(|query| self.world.answer(query, &mut facts));
        }
        let verdict = self.session.decide(&event, &facts);
        let seq = self.session.seq() + 1;
        self.session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        verdict
    }

    /// Proposes a command line.
    pub(crate) fn bash(&mut self, line: &str) -> Verdict {
        self.call("Bash", &json!({"command": line}))
    }

    /// Proposes a call.
    pub(crate) fn call(&mut self, tool: &str, args: &Value) -> Verdict {
        self.send(&json!({"event": "tool_proposed", "call": "c", "tool": tool, "args": args}))
    }
}
