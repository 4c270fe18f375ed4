//! Plays a scenario on the engine itself, with a workspace in memory.
//!
//! This is the strictest host. After every event, the session is saved, dropped and restored. At
//! the end, a session that was never saved replays all records from their JSON and must produce the
//! same bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_decode::EventDecoder;
use jackline_definition::{FILE_NAME, load};
use jackline_engine::bounds::STATE_BYTES_MAX;
use jackline_engine::definition::StoredDefinition;
use jackline_engine::facts::{
    DefinitionFact, DefinitionFile, GitChangeFact, GitFact, NewDefinition, OffFact, PinsFact,
    ReloadFact,
};
use jackline_engine::observe::elide;
use jackline_engine::summary::ReportChange;
use jackline_engine::verdict::WireFault;
use jackline_engine::wire::{WireError, parse_line, parse_recorded};
use jackline_engine::{
    Digest, Event, EventKind, Fact, Facts, Now, Query, Record, Session, SessionId, SessionLocation,
    SessionStarted, Timestamp, Verdict, observe,
};
use jackline_runtime::surfaces::{ENGINE, SurfaceProfile};
use serde_json::Value;

use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::scenario::{FILE_AGE_MS, OFF_MS, PERSON, SESSION, START, Scenario};
use crate::workspace_model::{self, ROOT, WorkspaceModel};

/// A driver for the engine without a runtime.
pub struct EngineDriver;

impl ScenarioDriver for EngineDriver {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        &ENGINE
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        let before = Timestamp::from_ms(START.as_ms() - FILE_AGE_MS);
        let mut files = WorkspaceModel::new(&scenario.links);
        files.write(FILE_NAME, &scenario.definition, before);
        scenario.files.iter().for_each(|(path, text)| files.write(path, text, before));
        let current = default_session()?;
        Ok(Box::new(EngineStage {
            files,
            sessions: BTreeMap::new(),
            current,
            off: None,
            approved: Vec::new(),
        }))
    }
}

fn default_session() -> Result<SessionId, String> {
    SessionId::parse(SESSION).map_err(|error| error.to_string())
}

struct EngineStage {
    files: WorkspaceModel,
    sessions: BTreeMap<SessionId, PlayedSession>,
    /// The session of lines that name none: the latest one, as with `stdio`.
    current: SessionId,
    /// The period in which the guard is off.
    off: Option<OffFact>,
    /// The checksums of the agents that a person has approved.
    approved: Vec<Digest>,
}

/// The settings of a person outside of any session.
struct PersonSettings<'a> {
    off: Option<OffFact>,
    approved: &'a [Digest],
}

/// A session and its records.
struct PlayedSession {
    session: Session,
    /// The session before its first event.
    opened: Session,
    /// The checksum of the definition in force.
    checksum: Digest,
    workspace: String,
    records: Vec<PlayedRecord>,
}

/// A record as a journal stores it.
struct PlayedRecord {
    event: String,
    facts: String,
    verdict: String,
    /// The definition that the record refers to, as a store stores it.
    definition: Option<StoredDefinition>,
}

impl ScenarioStage for EngineStage {
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String> {
        let event = match parse_line(line.as_bytes(), Some(&self.current)) {
            Ok(event) => event,
            Err(error) => return refusal(&error),
        };
        self.current = event.session.clone();
        if !self.sessions.contains_key(&event.session) {
            let played = PlayedSession::open(&event, &self.files)?;
            self.sessions.insert(event.session.clone(), played);
        }
        let played = self.sessions.get_mut(&event.session).ok_or("the session is gone")?;
        let settings = PersonSettings { off: self.off.clone(), approved: &self.approved };
        played.play_event(event, &mut self.files, settings, now)
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.files
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        self
    }

    fn restart(&mut self) -> Result<(), String> {
        // Every session is restored after every event anyway.
        self.current = default_session()?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        self.sessions.values().try_for_each(PlayedSession::replay)
    }
}

impl ScenarioPerson for EngineStage {
    fn off(&mut self, why: &str, now: Timestamp) -> Result<(), String> {
        let (by, why) = ("person".to_owned(), why.to_owned());
        self.off = Some(OffFact { until: now.plus_ms(OFF_MS), by, why });
        Ok(())
    }

    fn on(&mut self) -> Result<(), String> {
        self.off = None;
        Ok(())
    }

    fn approve(&mut self, session: &str) -> Result<(), String> {
        let session = SessionId::parse(session).map_err(|error| error.to_string())?;
        let played = self.sessions.get(&session).ok_or("there is no such session")?;
        self.approved.push(played.session.agent_checksum());
        Ok(())
    }
}

impl WorkspaceFiles for WorkspaceModel {
    fn write(&mut self, path: &str, text: &str, modified: Timestamp) -> Result<(), String> {
        WorkspaceModel::write(self, path, text, modified);
        Ok(())
    }

    fn read(&self, path: &str) -> Result<Option<String>, String> {
        Ok(self.text(path).map(ToOwned::to_owned))
    }

    fn remove(&mut self, path: &str) -> Result<(), String> {
        WorkspaceModel::remove(self, path).ok_or_else(|| format!("there is no `{path}` to remove"))
    }

    fn workspace(&self) -> String {
        ROOT.to_owned()
    }
}

/// The denial of a line that is not an event.
fn refusal(error: &WireError) -> Result<Value, String> {
    let (kind, reason) = (error.kind(), error.to_string());
    let verdict = Verdict::from_fault(WireFault { kind, reason, line: None });
    serde_json::to_value(verdict).map_err(|error| error.to_string())
}

impl PlayedSession {
    fn open(event: &Event, files: &WorkspaceModel) -> Result<Self, String> {
        let source = files.text(FILE_NAME).ok_or("there is no definition")?;
        let definition = load(source.as_bytes(), FILE_NAME).map_err(|e| e.to_string())?;
        let workspace = match &event.kind {
            EventKind::SessionStarted(SessionStarted { workspace: Some(workspace), .. }) => {
                workspace.as_str()
            }
            _ => ".",
        };
        let workspace = jackline_engine::path::canonical_path(workspace, Some(ROOT))
            .map_err(|e| e.to_string())?;
        let place = SessionLocation {
            workspace: Some(workspace_model::absolute(&workspace)),
            home: Some(PERSON.to_owned()),
            state_home: Some("/home".to_owned()),
            own: vec!["/run/jackline".to_owned()],
            links: BTreeMap::new(),
            definition: vec![workspace_model::absolute(FILE_NAME)],
        };
        let opened = Session::new(Arc::new(definition), Arc::new(place));
        Ok(Self {
            session: opened.clone(),
            opened,
            checksum: Digest::of(source.as_bytes()),
            workspace,
            records: Vec::new(),
        })
    }

    fn play_event(
        &mut self,
        mut event: Event,
        files: &mut WorkspaceModel,
        settings: PersonSettings<'_>,
        now: Timestamp,
    ) -> Result<Value, String> {
        let of = self.session.finished_tool(&event).map(ToOwned::to_owned);
        let definition = self.session.definition();
        let decoded = EventDecoder::default().decode(&mut event, definition, of.as_deref());
        let output = self.session.first_page(&event);
        let observed = observe(&event);
        elide(&mut event, self.session.definition());
        let mut facts = Facts::at(Now::wall(now));
        facts.observed = observed;
        facts.decoded = decoded;
        facts.output = output;
        facts.off = settings.off;
        facts.control_files = files.markers(&self.workspace);
        let ground = self.session.event_interpreter();
        let verdict = ground.with_interpreted(&event, |understood| {
            let ask = |query: &Query| self.fact(query, files, settings.approved);
            self.session.gather_facts(understood, &mut facts, ask);
            self.session.decide_interpreted(understood, &facts)
        });
        let seq = self.session.seq() + 1;
        for (path, contents) in self.session.files_to_restore(&event, &facts) {
            files.restore(&self.workspace, &path, contents, now);
        }
        self.report(seq, &event, &verdict, &mut facts, files, now);
        self.session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        self.checksum = self.session.reloaded_checksum().unwrap_or(self.checksum);
        self.restore()?;
        self.records.push(PlayedRecord {
            event: render(&event)?,
            facts: render(&facts)?,
            verdict: render(&verdict)?,
            definition: match &facts.reload {
                Some(ReloadFact::New(new)) => Some(new.lowered.clone()),
                _ => None,
            },
        });
        serde_json::to_value(verdict).map_err(|error| error.to_string())
    }

    /// Writes and removes reports. Only their names matter here.
    fn report(
        &self,
        seq: u64,
        event: &Event,
        verdict: &Verdict,
        facts: &mut Facts,
        files: &mut WorkspaceModel,
        now: Timestamp,
    ) {
        let record = Record { seq, event, facts, verdict };
        let orders = self.session.event_interpreter().with_interpreted(event, |understood| {
            self.session.report_changes_after(understood, &record).map(|(orders, _)| orders)
        });
        let Some(orders) = orders else { return };
        for order in orders {
            let path = order.report().path();
            let text = format!("{order:?} in record {seq}");
            let text = matches!(order, ReportChange::Write(_)).then_some(text);
            facts.written.insert(path.to_owned(), files.put(&self.workspace, path, text, now));
        }
    }

    /// The fact for a query.
    fn fact(&self, query: &Query, files: &mut WorkspaceModel, approved: &[Digest]) -> Fact {
        match query {
            Query::File { path, wants } => {
                Fact::File(files.file_fact(&self.workspace, path, *wants))
            }
            Query::Changed { files: tracked } => {
                Fact::Changed(files.changed(&self.workspace, tracked))
            }
            Query::Watched { files: tracked, .. } => {
                Fact::Watched(files.watched(&self.workspace, tracked))
            }
            // There is no repository.
            Query::Git { .. } => Fact::Git(GitFact::default()),
            Query::Ignored { .. } => Fact::Ignored(false),
            Query::GitChange { .. } => Fact::GitChange(GitChangeFact::Unknown),
            Query::Hook { path } => Fact::Hook(files.hook_state(&self.workspace, path)),
            Query::FileSearch { search } => {
                Fact::FileSearch(files.find_file(&self.workspace, search))
            }
            Query::FileChanges { files: changed } => {
                Fact::FileChanges(files.file_changes(&self.workspace, changed))
            }
            Query::Definition => {
                let source = files.text(FILE_NAME);
                let checksum = source.map(|source| Digest::of(source.as_bytes()));
                Fact::Definition(match checksum {
                    None => DefinitionFact::Missing,
                    Some(checksum) if checksum == self.checksum => DefinitionFact::Same,
                    Some(checksum) => DefinitionFact::Changed { checksum },
                })
            }
            Query::Reload => Fact::Reload(self.reload(files)),
            Query::Protect { files: tracked } => {
                Fact::Protect(files.watched(&self.workspace, tracked))
            }
            Query::Pins { .. } => {
                let (demanded, checksums) = (!approved.is_empty(), approved.to_vec());
                Fact::Pins(PinsFact { demanded, checksums, broken: None })
            }
            // No definition file can name an extension, and no checks run here.
            Query::PolicyCheck { .. }
            | Query::PolicyResult { .. }
            | Query::Checker { .. }
            | Query::Feedback { .. }
            | Query::Verification { .. } => Fact::Unknown,
        }
    }

    /// The current definition.
    fn reload(&self, files: &WorkspaceModel) -> ReloadFact {
        let Some(source) = files.text(FILE_NAME) else {
            return ReloadFact::Broken { reason: format!("no `{FILE_NAME}`") };
        };
        let (checksum, path) =
            (Digest::of(source.as_bytes()), workspace_model::absolute(FILE_NAME));
        match load(source.as_bytes(), FILE_NAME) {
            Ok(_) if checksum == self.checksum => ReloadFact::Same,
            Ok(lowered) => {
                let lowered = StoredDefinition::new(lowered.into());
                let files = vec![DefinitionFile { path, sha256: checksum, by_person: false }];
                ReloadFact::New(Box::new(NewDefinition { checksum, files, lowered }))
            }
            Err(problems) => ReloadFact::Broken { reason: problems.to_string() },
        }
    }

    /// Replaces the session by one that is restored from its saved state.
    fn restore(&mut self) -> Result<(), String> {
        let saved = self.session.snapshot();
        if saved.len() > STATE_BYTES_MAX {
            return Err(format!("the state has {} bytes, which is too many", saved.len()));
        }
        let restored = Session::restore(
            Arc::clone(self.session.definition()),
            Arc::clone(self.session.location()),
            &saved,
        )
        .map_err(|error| format!("can't restore the saved state: {error}"))?;
        if restored.snapshot() != saved {
            return Err("the restored state differs from the saved one".to_owned());
        }
        self.session = restored;
        Ok(())
    }

    /// Decides every record again, as `jackline replay` does.
    fn replay(&self) -> Result<(), String> {
        let mut fresh = self.opened.clone();
        for (number, record) in self.records.iter().enumerate() {
            let seq = number as u64 + 1;
            let unreadable = |error: String| format!("record {seq} can't be read back: {error}");
            let event = parse(&record.event)
                .and_then(|value| parse_recorded(value).map_err(|error| error.to_string()));
            let event = event.map_err(unreadable)?;
            let mut facts: Facts = parse(&record.facts).map_err(unreadable)?;
            if let (Some(ReloadFact::New(new)), Some(stored)) =
                (&mut facts.reload, &record.definition)
            {
                new.lowered.clone_from(stored);
            }
            let verdict: Verdict = parse(&record.verdict).map_err(unreadable)?;
            let decided = render(&fresh.decide(&event, &facts))?;
            if decided != record.verdict {
                let recorded = &record.verdict;
                return Err(format!(
                    "replay: record {seq} differs\nrecorded {recorded}\ndecided  {decided}"
                ));
            }
            fresh.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        }
        if fresh.snapshot() != self.session.snapshot() {
            return Err("replay: the final state differs".to_owned());
        }
        Ok(())
    }
}

fn render<T: serde::Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
