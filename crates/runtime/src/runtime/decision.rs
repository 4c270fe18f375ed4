//! From an event in an open session to its verdict.

use jackline_engine::facts::OffFact;
use jackline_engine::session::Understood;
use jackline_engine::{Event, EventKind, Facts, Record, SessionStarted};
use jackline_journal::{EventRecord, Line, StoreError, parse_record};
use serde_json::value::{RawValue, to_raw_value};

use super::{Fault, Request, Runtime, StoredVerdict};
use crate::facts::{Deadline, FactSource as _, Scene, gather};
use crate::live::Live;
use jackline_host::clock;
use jackline_host::markers;

/// One event on its way to a verdict.
struct Work<'a> {
    event: &'a Event,
    facts: Facts,
    deadline: Deadline,
    /// Whether the sources of facts were asked, and nothing has changed since.
    is_asked: bool,
    /// Whether the session is locked.
    is_locked: bool,
}

impl Runtime {
    /// Decides on an event in a session that is open.
    pub(super) fn handle_in(
        &mut self,
        live: &mut Live,
        request: Request,
    ) -> Result<StoredVerdict, Fault> {
        let Request { mut event, offered_output } = request;
        let (mut facts, blobs) = self.intake.prepare(&live.session, &mut event);
        facts.output = offered_output;
        facts.deadline = self.settings.deadline;
        facts.off = self.switch.now(live.workspace()).map(OffFact::from);
        facts.elsewhere = self.elsewhere(live, &event);
        self.sessions.store().put_blobs(&blobs)?;

        let deadline = self.sources.deadline();
        let mut work = Work { event: &event, facts, deadline, is_asked: false, is_locked: false };
        let answer = self.work_through(live, &mut work);
        if work.is_locked {
            live.log.unlock();
        }
        answer
    }

    /// Understands the event, and does everything else with that understanding.
    fn work_through(
        &mut self,
        live: &mut Live,
        work: &mut Work<'_>,
    ) -> Result<StoredVerdict, Fault> {
        let ground = live.session.ground();
        let read = ground.read(work.event);
        let understood = read.understand();
        self.gather(live, &understood, work)?;
        live.log.lock()?;
        work.is_locked = true;
        if let Some(answered) = catch_up(live, work)? {
            return Ok(answered);
        }
        if ground.is_of(&live.session) {
            return self.decide_and_record(live, &understood, work);
        }
        // A person has replaced the definition meanwhile, so the event may mean something else.
        let ground = live.session.ground();
        let read = ground.read(work.event);
        self.decide_and_record(live, &read.understand(), work)
    }

    /// Asks the sources of facts what the engine wants to know.
    fn gather(
        &mut self,
        live: &Live,
        understood: &Understood<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), Fault> {
        let scene = scene(&self.definitions, self.sessions.store(), live);
        let (sources, deadline) = (&mut self.sources, work.deadline);
        let ask = |batch: &[_]| sources.answer(&scene, batch, deadline);
        gather(&live.session, understood, &mut work.facts, ask)?;
        work.is_asked = true;
        Ok(())
    }

    /// Decides, writes down, and goes on from there. Needs the lock.
    fn decide_and_record(
        &mut self,
        live: &mut Live,
        understood: &Understood<'_>,
        work: &mut Work<'_>,
    ) -> Result<StoredVerdict, Fault> {
        if !work.is_asked {
            self.gather(live, understood, work)?;
        }
        let facts = &mut work.facts;
        let scene = scene(&self.definitions, self.sessions.store(), live);
        self.sources.recheck(&scene, facts, work.deadline)?;
        facts.now = clock::now();
        facts.markers = markers::look(live.workspace());

        let event = work.event;
        let verdict = live.session.decide_on(understood, facts);
        let json = to_raw_value(&verdict).map_err(|error| Fault::Panic(error.to_string()))?;
        // Before the record, which says what became of it. Once that has ended
        // the call, a file that is still changed would pass for a person's work.
        let damaged = live.session.gives_back(event, facts);
        self.give_back(live, &damaged);
        self.note_undelivered(facts.now.boot_ms);
        self.report(live, understood, facts, &verdict);
        let record = Record { seq: live.session.seq() + 1, event, facts, verdict: &verdict };
        self.append(live, understood, &record, &json)?;
        self.log_safety(live, &record);
        self.notify(live, event, &verdict, facts.now.wall);
        Ok(StoredVerdict { json, verdict: Some(Box::new(verdict)) })
    }

    /// The workspace that an event names, where it is not the session's.
    fn elsewhere(&self, live: &Live, event: &Event) -> Option<String> {
        let EventKind::SessionStarted(SessionStarted { workspace: Some(_), .. }) = &event.kind
        else {
            return None;
        };
        let named = self.settings.workspace_of(event);
        (live.workspace() != Some(&*named)).then(|| named.display().to_string())
    }
}

/// Takes up what other processes have added to the session. Gives the answer that this event
/// got already, where it was sent before.
fn catch_up(live: &mut Live, work: &mut Work<'_>) -> Result<Option<StoredVerdict>, Fault> {
    let seq = live.session.seq();
    live.refresh()?;
    if let Some(id) = &work.event.id
        && let Some(line) = live.log.find(id)?
    {
        return resend(work.event, &line).map(Some);
    }
    if live.session.seq() != seq {
        forget_answers(&mut work.facts);
        work.is_asked = false;
    }
    Ok(None)
}

/// What was answered rested on an older state, and the queries may be others.
fn forget_answers(facts: &mut Facts) {
    facts.policies.clear();
    facts.checkers.clear();
    facts.feedback.clear();
    facts.verifications.clear();
    facts.changed = None;
    facts.watched = None;
    facts.reload = None;
    facts.protects = None;
}

/// What queries of a session are about.
pub(super) fn scene<'a>(
    definitions: &'a crate::Definitions,
    store: &'a dyn jackline_journal::Store,
    live: &'a Live,
) -> Scene<'a> {
    Scene {
        session: &live.id,
        workspace: live.workspace(),
        definitions,
        definition: live.session.definition(),
        definition_files: &live.session.place().definition,
        definition_checksum: live.defined.checksum,
        definition_digest: live.defined.stored,
        store,
        session_directory: live.log.directory(),
    }
}

/// The answer that was given when this event was sent first.
fn resend(event: &Event, line: &[u8]) -> Result<StoredVerdict, Fault> {
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
    Ok(StoredVerdict { json, verdict: None })
}
