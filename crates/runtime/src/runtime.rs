//! Event in, verdict out: the order of things around a decision.

mod opening;
mod output;
mod standing;
mod telling;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jackline_decode::Decoder;
use jackline_engine::definition::{Definition, Redact, SchemaText, UnknownTools};
use jackline_engine::{
    Digest, Event, EventKind, Facts, FaultKind, OffFact, OutputFact, PAGE_TURN, Record, SessionId,
    SessionStarted, Timestamp, ToolProposed, Understood, Verdict, elide, observe, wire::WireError,
};
use jackline_journal::{
    Body, EventRecord, Line, Note, Retention, Snapshot, Store, StoreError, parse_record,
};
use serde_json::value::{RawValue, to_raw_value};

use crate::clock;
use crate::definitions::{DefinitionError, Definitions};
use crate::extensions::Extensions;
use crate::facts::{Absences, World, gather};
use crate::live::Live;
use crate::markers;
use crate::notify::{Notice, Notices};
use crate::off::Switch;
use crate::redact::{redact, redact_text};
use crate::restore::{self, Was};
use crate::spool::{self, Left};
use crate::verification::Verifications;

pub use output::Bounds;
pub use standing::Standing;

/// A record carries a snapshot this often, which bounds a rebuild.
const SNAPSHOT_EVERY: u64 = 4096;

/// How many sessions are kept open at once.
const OPEN_MAX: usize = 64;

/// How many notes one record carries.
const NOTES_MAX: usize = 16;

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The store can't keep the record.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no definition to decide by.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The id of the event belongs to another one.
    #[error("event id `{0}` was used before, for another event")]
    IdReused(String),
    /// The event is none that could be read again.
    #[error("the event is none: {0}")]
    NoEvent(#[from] WireError),
    /// Records are text, and so are the paths in them.
    #[error("the workspace `{}` is not UTF-8", .0.display())]
    Workspace(PathBuf),
    /// A bug of ours.
    #[error("an internal fault: {0}")]
    Panic(String),
}

/// A verdict, as it is in the journal.
pub(crate) struct Said {
    pub(crate) json: Box<RawValue>,
    /// The same, unless it was said before.
    pub(crate) verdict: Option<Box<Verdict>>,
}

/// Runs the engine for many sessions.
pub struct Runtime {
    store: Box<dyn Store>,
    definitions: Definitions,
    extensions: Extensions,
    verifications: Verifications,
    decoder: Decoder,
    /// Which tools there are, where whoever asks has them.
    tools: Vec<String>,
    /// Tools of whoever asks, which are known where nobody lists any.
    known: Vec<String>,
    switch: Switch,
    absences: Absences,
    notices: Notices,
    deadline: Option<Timestamp>,
    saves_late: bool,
    /// What an adapter can show instead of the output of the next event.
    offered: Option<OutputFact>,
    directory: PathBuf,
    /// The sessions at work, the one that was asked last at the end.
    live: Vec<(SessionId, Live)>,
    notes: Vec<Note>,
    notes_dropped: u64,
    warnings: Vec<String>,
    /// Which reports could not be written with the last event that wanted some, and why.
    unwritten: Vec<String>,
    /// When was looked for what could not be sent to people.
    undelivered_at_ms: Option<u64>,
    /// What to tidy up once the answer is out.
    untidy: Option<Retention>,
    /// Where is kept what could not be written down.
    spool: Vec<spool::Place>,
    /// What earlier processes could not write down.
    left: Left,
}

impl Runtime {
    /// A runtime on a store. `directory` is the workspace of sessions that name none.
    pub fn new(store: Box<dyn Store>, definitions: Definitions, directory: PathBuf) -> Self {
        Self {
            store,
            switch: definitions.switch(),
            definitions,
            extensions: Extensions::default(),
            verifications: Verifications::default(),
            decoder: Decoder::default(),
            tools: Vec::new(),
            known: Vec::new(),
            absences: Absences::default(),
            notices: Notices::default(),
            deadline: None,
            saves_late: false,
            offered: None,
            directory,
            live: Vec::new(),
            notes: Vec::new(),
            notes_dropped: 0,
            warnings: Vec::new(),
            unwritten: Vec::new(),
            undelivered_at_ms: None,
            untidy: None,
            spool: Vec::new(),
            left: Left::default(),
        }
    }

    /// For an adapter that can't run a call with other arguments than it was proposed with.
    #[must_use]
    pub fn keeping_arguments(mut self) -> Self {
        self.decoder = self.decoder.keeping_arguments();
        self
    }

    /// For an adapter that has the tools itself: there are no others, and this is what they
    /// take, unless the definition says so.
    #[must_use]
    pub fn with_tools(mut self, tools: BTreeMap<String, SchemaText>) -> Self {
        // To turn a page is nothing that a model calls by this name.
        self.tools = tools.keys().filter(|name| *name != PAGE_TURN).cloned().collect();
        self.decoder = self.decoder.with_tools(tools);
        let known = self.tools.clone();
        self.knowing(known)
    }

    /// For an adapter that has tools itself, and perhaps not only these: where unknown tools
    /// are denied and the definition lists none, these are known.
    #[must_use]
    pub fn knowing(mut self, tools: Vec<String>) -> Self {
        self.known = tools;
        self
    }

    /// Adds policies and checkers written in Rust.
    #[must_use]
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// Sets the program that runs verifications by command: given the words
    /// `verification` and a directory, it calls [`supervise`](crate::supervise).
    #[must_use]
    pub fn with_verifier(mut self, program: PathBuf) -> Self {
        self.verifications = Verifications::by(program);
        self
    }

    /// Sets the program that sends notices: given the word `notify`, it calls
    /// [`deliver`](crate::deliver) on its standard input.
    #[must_use]
    pub fn with_notifier(mut self, program: PathBuf) -> Self {
        self.notices = Notices::by(program);
        self
    }

    /// Sets when the work of every session must be over.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Option<Timestamp>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Saves states in [`Self::tidy`], and not before the answer: for a process that
    /// calls it soon. Of what it answered since, a cut can't be found once it is killed.
    #[must_use]
    pub fn saving_late(mut self) -> Self {
        self.saves_late = true;
        self
    }

    /// Keeps faults for the next process, where every event is one of its own.
    #[must_use]
    pub fn with_spool(mut self) -> Self {
        self.spool = spool::places();
        self
    }

    /// Has something written down with the next record.
    pub fn note(&mut self, mut note: Note) {
        // Notes quote what came from outside.
        if let Note::Fault { reason, .. } | Note::Malformed { reason, .. } = &mut note
            && let Some(redacted) = redact_text(reason)
        {
            *reason = redacted;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.notes_dropped += 1;
        }
    }

    /// What a person should be told since this was last asked.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// What the client may show on the person's desktop, since this was last
    /// asked. Commands and webhooks are not waiting here; [`Self::tidy`] has
    /// them sent.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }

    /// Does what may wait until after an answer: saves states, has notices sent, and
    /// makes room for new sessions.
    pub fn tidy(&mut self) {
        let unsaved = self.live.iter_mut().filter(|(_, live)| live.unsaved);
        let saved: Vec<_> = unsaved.map(|(_, live)| live.save_late()).collect();
        saved.into_iter().for_each(|saved| self.note_failed(saved));
        self.send_notices();
        if let Some(keep) = self.untidy.take() {
            let pruned = self.store.prune(&keep, clock::now().wall);
            self.note_failed(pruned.map(drop));
        }
    }

    /// Has notices sent: of all that [`Self::tidy`] does, what people wait for.
    pub fn send_notices(&mut self) {
        if let Err(reason) = self.notices.send(self.definitions.given_home()) {
            self.note(Note::Fault { kind: FaultKind::Notify, reason });
        }
    }

    /// Writes down that something failed which nobody waits for. A state that could not be
    /// saved is in the journal; the next one who looks reads it from there.
    fn note_failed(&mut self, done: Result<(), StoreError>) {
        if let Err(error) = done {
            let (kind, reason) = (error.kind(), error.to_string());
            self.note(Note::Fault { kind, reason });
        }
    }

    /// Takes up what an earlier process could not write down; it goes into the
    /// next record. Says whether the agent has stopped meanwhile, and no gate looked.
    pub fn recall(&mut self, session: &SessionId) -> bool {
        self.left = Left::read(&self.spool, session);
        self.left.stopped
    }

    /// Ends the work of a process that answers one event: what could not be
    /// written down is kept for the next one.
    pub fn leave(&mut self, session: &SessionId, stopped: bool) {
        let notes = std::mem::take(&mut self.notes);
        spool::keep(&self.spool, Some(session), notes, stopped);
    }

    /// Keeps a session at hand, in the place of the one that was asked longest ago.
    fn keep(&mut self, id: SessionId, live: Live) {
        if self.live.len() >= OPEN_MAX {
            self.live.remove(0);
        }
        self.live.push((id, live));
    }

    /// Forgets what is in memory; everything is in the journals.
    pub(crate) fn forget(&mut self) {
        self.live.clear();
    }

    /// Decides on an event and makes the record durable.
    pub(crate) fn handle(&mut self, event: Event) -> Result<Said, Fault> {
        let session = event.session.clone();
        let offered = self.offered.take();
        let (mut live, behind) = match self.live.iter().position(|(id, _)| *id == session) {
            Some(at) => (self.live.remove(at).1, true),
            None => (self.open(&event)?, false),
        };
        // What becomes of secrets hangs on the definition, which a person may
        // have reloaded since.
        let answer = match if behind { live.catch_up() } else { Ok(()) } {
            Ok(()) => self.handle_in(&mut live, event, offered),
            Err(error) => Err(error.into()),
        };
        // After a fault the session is read again from its journal. One whose
        // journal was removed stays, and stays shut: it must not begin anew
        // with new budgets because somebody deleted it.
        if matches!(answer, Ok(_) | Err(Fault::Store(StoreError::Removed))) {
            self.keep(session, live);
        }
        answer
    }

    /// The same in a session that is open.
    fn handle_in(
        &mut self,
        live: &mut Live,
        mut event: Event,
        offered: Option<OutputFact>,
    ) -> Result<Said, Fault> {
        if live.session.definition().journal.redact == Redact::BuiltIn {
            redact(&mut event, live.session.definition());
        }
        let of = live.session.tool_of(&event).map(ToOwned::to_owned);
        let definition = live.session.definition();
        let decoded = self.decoder.decode(&mut event, definition, of.as_deref());
        let observed = observe(&event);
        let blobs = elide(&mut event, live.session.definition());
        let mut facts = Facts::at(clock::now());
        facts.observed = observed;
        facts.decoded = decoded;
        facts.tools = self.tools_there(&event, live.session.definition());
        facts.output = offered;
        facts.deadline = self.deadline;
        facts.off = self.switch.now(live.workspace()).map(OffFact::from);
        facts.elsewhere = self.elsewhere(live, &event);
        self.gather(live, &event, &mut facts);

        self.store.put_blobs(&blobs)?;
        live.log.lock()?;
        let answer = self.decide(live, &event, facts);
        live.log.unlock();
        answer
    }

    /// Which tools there are, where that matters: all of them where a call is for another
    /// one, and the one that is called where unknown ones are denied.
    fn tools_there(&self, event: &Event, definition: &Definition) -> Vec<String> {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &event.kind else {
            return Vec::new();
        };
        let is_in = |tools: &[String]| tools.iter().any(|known| known == tool.as_str());
        if tool.as_str() == PAGE_TURN {
            Vec::new()
        } else if !is_in(&self.tools) && !self.tools.is_empty() {
            self.tools.clone()
        } else if definition.unknown_tools == UnknownTools::Deny && is_in(&self.known) {
            vec![tool.as_str().to_owned()]
        } else {
            Vec::new()
        }
    }

    fn world<'a>(&'a self, live: &'a Live) -> World<'a> {
        World {
            session: &live.id,
            workspace: live.workspace(),
            definitions: &self.definitions,
            definition: live.session.definition(),
            definition_files: &live.session.place().definition,
            definition_checksum: live.defined.checksum,
            extensions: &self.extensions,
            store: self.store.as_ref(),
            verifications: &self.verifications,
            session_directory: live.log.directory(),
            absences: &self.absences,
        }
    }

    fn gather(&self, live: &Live, event: &Event, facts: &mut Facts) {
        gather(&live.session, event, facts, &self.world(live));
    }

    /// The workspace that an event names, where it is not the session's.
    fn elsewhere(&self, live: &Live, event: &Event) -> Option<String> {
        let EventKind::SessionStarted(SessionStarted { workspace: Some(_), .. }) = &event.kind
        else {
            return None;
        };
        let named = self.workspace_of(event);
        (live.workspace() != Some(&*named)).then(|| named.display().to_string())
    }

    /// The part that holds the lock.
    fn decide(&mut self, live: &mut Live, event: &Event, mut facts: Facts) -> Result<Said, Fault> {
        let seq = live.session.seq();
        live.refresh()?;
        if let Some(id) = &event.id
            && let Some(line) = live.log.find(id)?
        {
            return resend(event, &line);
        }
        if live.session.seq() != seq {
            // Somebody was faster, so the questions may be others. What was
            // answered here rested on an older state.
            facts.policies.clear();
            facts.checkers.clear();
            facts.feedback.clear();
            facts.verifications.clear();
            facts.changed = None;
            facts.watched = None;
            facts.reload = None;
            facts.protects = None;
            self.gather(live, event, &mut facts);
        }
        self.world(live).recheck(&mut facts);
        facts.now = clock::now();
        facts.markers = markers::look(live.workspace());

        let ground = live.session.ground();
        ground.understand(event, |understood| self.settle(live, event, understood, facts))
    }

    /// Decides, writes down, and goes on from there.
    fn settle(
        &mut self,
        live: &mut Live,
        event: &Event,
        understood: &Understood<'_>,
        mut facts: Facts,
    ) -> Result<Said, Fault> {
        let verdict = live.session.decide_on(understood, &facts);
        let json = to_raw_value(&verdict).map_err(|error| Fault::Panic(error.to_string()))?;
        // Before the record, which says what became of it. Once that has ended
        // the call, a file that is still changed would pass for a person's work.
        let damaged = live.session.gives_back(event, &facts);
        self.give_back(live, &damaged);
        self.note_undelivered(facts.now.boot_ms);
        self.report(live, event, &mut facts, &verdict);
        let record =
            Record { seq: live.session.seq() + 1, event, facts: &facts, verdict: &verdict };
        self.append(live, understood, &record, &json)?;
        self.log_safety(live, event, &facts, &verdict);
        self.notice(live, event, &verdict, facts.now.wall);
        Ok(Said { json, verdict: Some(Box::new(verdict)) })
    }

    /// Gives protected files back.
    fn give_back(&mut self, live: &Live, damaged: &[(String, Option<Digest>)]) {
        for (path, contents) in damaged {
            let Some(absolute) = live.workspace().map(|workspace| workspace.join(path)) else {
                continue;
            };
            let was = contents.map_or(Was::Missing, Was::File);
            let path = path.clone();
            self.note(match restore::give_back(self.store.as_ref(), &absolute, was) {
                Ok(replaced) => Note::GivenBack { path, kept: replaced.sha256 },
                Err(error) => {
                    let reason = format!("can't give `{path}` back: {error}");
                    Note::Fault { kind: FaultKind::Protected, reason }
                }
            });
        }
    }

    fn append(
        &mut self,
        live: &mut Live,
        understood: &Understood<'_>,
        record: &Record<'_>,
        json: &RawValue,
    ) -> Result<(), Fault> {
        let &Record { seq, event, facts, .. } = record;
        let defined = live.defined.after(record, live.head.map_or(0, |head| head.bytes));
        let after = (seq.is_multiple_of(SNAPSHOT_EVERY)).then(|| {
            let mut after = live.session.clone();
            after.apply_on(understood, record);
            Snapshot { state: after.snapshot(), defined_at: defined.at }
        });
        if let Some(bytes) = live.log.take_repaired() {
            // Kept with the others, so that it outlasts an append that fails.
            self.notes.insert(0, Note::Repaired { bytes });
        }
        let count = self.notes_dropped + self.left.more;
        let dropped = (count > 0).then_some(Note::Dropped { count });
        let notes: Vec<Note> =
            self.left.notes.iter().chain(&self.notes).cloned().chain(dropped).collect();
        let mut bodies: Vec<Body> = live.opening.iter().map(Body::opened).collect();
        bodies.push(Body::event(seq, event, facts, json, &notes, after.as_ref()));
        let head = live.log.append(&bodies)?;
        self.notes.clear();
        self.notes_dropped = 0;
        self.left.remove();

        if live.opening.take().is_some() {
            let journal = &live.session.definition().journal;
            self.untidy = Some(Retention {
                workspace: live.session.place().workspace.clone().unwrap_or_default(),
                bytes: journal.retain_bytes,
                days: journal.retain_days,
            });
        }
        live.session.apply_on(understood, record);
        live.defined = defined;
        live.head = Some(head);
        live.unsaved = true;
        if !self.saves_late {
            let saved = live.save();
            self.note_failed(saved);
        }
        Ok(())
    }

    /// Whether a person has switched the guard off in a workspace, for events
    /// that found no session.
    pub(crate) fn is_off(&self, named: Option<&str>) -> bool {
        self.switch.now(Some(&self.workspace_at(named))).is_some()
    }
}

/// The workspace that an event names.
pub(crate) fn named_workspace(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::SessionStarted(SessionStarted { workspace, .. }) => workspace.as_deref(),
        _ => None,
    }
}

/// The answer that was given when this event was sent first.
fn resend(event: &Event, line: &[u8]) -> Result<Said, Fault> {
    let fault = |reason: &str| Fault::Panic(reason.to_owned());
    let Line::Event(record) = parse_record(line).map_err(StoreError::from)? else {
        return Err(fault("an id that leads to no event"));
    };
    let EventRecord { event: mut first, verdict_json, .. } = *record;
    if event.at.is_none() {
        first.at = None;
    }
    if first != *event {
        let id = event.id.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(Fault::IdReused(id));
    }
    let json = RawValue::from_string(verdict_json);
    let json = json.map_err(|_| fault("a record without a verdict"))?;
    Ok(Said { json, verdict: None })
}
