//! Decides on an event in an open session.

use jackline_engine::facts::OffFact;
use jackline_engine::session::InterpretedEvent;
use jackline_engine::{Event, EventKind, Facts, Record, SessionStarted};
use jackline_journal::{EventRecord, JournalLine, StoreError, parse_record};
use serde_json::value::{RawValue, to_raw_value};

use super::{EventRequest, Runtime, RuntimeFault, StoredVerdict};
use crate::facts::{FactContext, FactDeadline, FactSource as _, gather};
use crate::live_session::LiveSession;
use jackline_host::clock;
use jackline_host::control_files;

/// One event until its verdict.
struct PendingDecision<'a> {
    event: &'a Event,
    facts: Facts,
    deadline: FactDeadline,
    /// Whether the sources gave their facts, and the session has not changed since.
    has_facts: bool,
    /// Whether the session is locked.
    is_locked: bool,
}

impl Runtime {
    /// Decides on an event in an open session.
    pub(super) fn handle_in(
        &mut self,
        live: &mut LiveSession,
        request: EventRequest,
    ) -> Result<StoredVerdict, RuntimeFault> {
        let EventRequest { mut event, offered_output } = request;
        let off = self.switch.current_period(live.workspace()).map(OffFact::from);
        // The caller has the result as it is, before secrets are removed and long texts are moved.
        let output = offered_output.or_else(|| self.offer_page(live, &event, off.as_ref()));
        let (mut facts, blobs) = self.intake.prepare(&live.session, &mut event);
        facts.output = output;
        facts.deadline = self.settings.deadline;
        facts.off = off;
        facts.other_workspace = self.other_workspace(live, &event);
        self.sessions.store().put_blobs(&blobs)?;

        let deadline = self.sources.deadline();
        let mut work =
            PendingDecision { event: &event, facts, deadline, has_facts: false, is_locked: false };
        let answer = self.decide_locked(live, &mut work);
        if work.is_locked {
            live.log.unlock();
        }
        answer
    }

    /// Interprets the event, and uses this interpretation for all other steps.
    fn decide_locked(
        &mut self,
        live: &mut LiveSession,
        work: &mut PendingDecision<'_>,
    ) -> Result<StoredVerdict, RuntimeFault> {
        let ground = live.session.event_interpreter();
        let read = ground.read_event(work.event);
        let understood = read.interpret();
        self.gather(live, &understood, work)?;
        live.log.lock()?;
        work.is_locked = true;
        if let Some(answered) = catch_up(live, work)? {
            return Ok(answered);
        }
        if ground.is_current_for(&live.session) {
            return self.decide_and_record(live, &understood, work);
        }
        // A person has reloaded the definition meanwhile, so the event may have another meaning.
        let ground = live.session.event_interpreter();
        let read = ground.read_event(work.event);
        self.decide_and_record(live, &read.interpret(), work)
    }

    /// Asks the sources for the facts that the engine needs.
    fn gather(
        &mut self,
        live: &LiveSession,
        understood: &InterpretedEvent<'_>,
        work: &mut PendingDecision<'_>,
    ) -> Result<(), RuntimeFault> {
        let scene = fact_context(&self.definitions, self.sessions.store(), live);
        let (sources, deadline) = (&mut self.sources, work.deadline);
        let ask = |batch: &[_]| sources.answer(&scene, batch, deadline);
        gather(&live.session, understood, &mut work.facts, ask)?;
        work.has_facts = true;
        Ok(())
    }

    /// Decides, writes the record, and applies it. Needs the lock.
    fn decide_and_record(
        &mut self,
        live: &mut LiveSession,
        understood: &InterpretedEvent<'_>,
        work: &mut PendingDecision<'_>,
    ) -> Result<StoredVerdict, RuntimeFault> {
        if !work.has_facts {
            self.gather(live, understood, work)?;
        }
        let facts = &mut work.facts;
        let scene = fact_context(&self.definitions, self.sessions.store(), live);
        self.sources.recheck(&scene, facts, work.deadline)?;
        facts.now = clock::now();
        facts.control_files = control_files::read_control_files(live.workspace());

        let event = work.event;
        let verdict = live.session.decide_interpreted(understood, facts);
        let json =
            to_raw_value(&verdict).map_err(|error| RuntimeFault::Panic(error.to_string()))?;
        // Protected files are restored before the record, because the record contains the result.
        // The record ends the call. A file that is still changed after that would count as a
        // person's work.
        let damaged = live.session.files_to_restore(event, facts);
        self.restore_files(live, &damaged);
        self.note_undelivered(facts.now.boot_ms);
        self.write_reports(live, understood, facts, &verdict);
        let record = Record { seq: live.session.seq() + 1, event, facts, verdict: &verdict };
        self.append(live, understood, &record, &json)?;
        self.log_safety(live, &record);
        self.notify(live, event, &verdict, facts.now.wall);
        Ok(StoredVerdict { json, verdict: Some(Box::new(verdict)) })
    }

    /// The workspace that an event names, if it is not the session's.
    fn other_workspace(&self, live: &LiveSession, event: &Event) -> Option<String> {
        let EventKind::SessionStarted(SessionStarted { workspace: Some(_), .. }) = &event.kind
        else {
            return None;
        };
        let named = self.settings.workspace_of(event);
        (live.workspace() != Some(&*named)).then(|| named.display().to_string())
    }
}

/// Applies the records of other processes. Returns the earlier answer if this event was sent
/// before.
fn catch_up(
    live: &mut LiveSession,
    work: &mut PendingDecision<'_>,
) -> Result<Option<StoredVerdict>, RuntimeFault> {
    let seq = live.session.seq();
    live.refresh()?;
    if let Some(id) = &work.event.id
        && let Some(line) = live.log.find_event(id)?
    {
        return resend(work.event, &line).map(Some);
    }
    if live.session.seq() != seq {
        forget_facts(&mut work.facts);
        work.has_facts = false;
    }
    Ok(None)
}

/// Removes facts that depend on an older state of the session. The new state may need other
/// queries.
fn forget_facts(facts: &mut Facts) {
    facts.policies.clear();
    facts.checkers.clear();
    facts.feedback.clear();
    facts.verifications.clear();
    facts.changed = None;
    facts.watched = None;
    facts.reload = None;
    facts.protects = None;
}

/// The context for queries of a session.
pub(super) fn fact_context<'a>(
    definitions: &'a crate::Definitions,
    store: &'a dyn jackline_journal::Store,
    live: &'a LiveSession,
) -> FactContext<'a> {
    FactContext {
        session: &live.id,
        workspace: live.workspace(),
        definitions,
        definition: live.session.definition(),
        definition_files: &live.session.location().definition,
        guard_links: &live.session.location().links,
        definition_checksum: live.definition_identity.checksum,
        definition_digest: live.definition_identity.stored,
        store,
        session_directory: live.log.directory(),
    }
}

/// The answer that was given when this event was first sent.
fn resend(event: &Event, line: &[u8]) -> Result<StoredVerdict, RuntimeFault> {
    let fault = |reason: &str| RuntimeFault::Panic(reason.to_owned());
    let JournalLine::Event(record) = parse_record(line).map_err(StoreError::from)? else {
        return Err(fault("an event id leads to a record that is not an event"));
    };
    let EventRecord { event: mut first, verdict_json, .. } = *record;
    if event.at.is_none() {
        first.at = None;
    }
    if first != *event {
        let id = event.id.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(RuntimeFault::IdReused(id));
    }
    let json = RawValue::from_string(verdict_json);
    let json = json.map_err(|_| fault("a record has no verdict"))?;
    Ok(StoredVerdict { json, verdict: None })
}
