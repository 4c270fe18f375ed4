//! A stream of events, taken up again where it breaks.

use std::io::{ErrorKind, Read as _};
use std::ops::RangeInclusive;
use std::time::Duration;

use jackline_http::{OverlongEvent, SseData, SseEvent, SseParser};
use ureq::Body;

use super::flight::{Flight, media};
use crate::wrap::clock::now_ms;
use crate::wrap::errors::Failure;
use crate::wrap::lines::{END_BYTES, LINE_BYTES_MAX, id_in_ends};
use crate::wrap::message::Id;
use crate::wrap::server::lock;

/// How often a stream is opened again that says nothing.
const TRIES_MAX: u32 = 5;

/// How long is waited before that; twice as long each time.
const WAIT_MS: u64 = 500;
const WAIT_MS_MAX: u64 = 10_000;

/// How long a server may have others wait, and what it can't have them do faster.
const RETRY_MS: RangeInclusive<u64> = 100..=60_000;

/// Who was heard for so long has not failed.
const LASTED_MS: u64 = 30_000;

/// How often is looked whether somebody still waits.
const TICK: Duration = Duration::from_millis(50);

/// How much of a stream is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Where a stream is taken up again.
#[derive(Default)]
pub(super) struct Mark {
    /// The last event that had a name.
    id: Option<String>,
    retry_ms: Option<u64>,
    /// How often nothing came of it.
    tries: u32,
}

impl Mark {
    /// Notes where a stream resumes after this event.
    fn note(&mut self, event: &SseEvent) {
        self.tries = 0;
        self.retry_ms = event.retry_ms.or(self.retry_ms);
        // An empty name takes back the one before.
        if let Some(id) = &event.id {
            self.id = Some(id.clone()).filter(|id| !id.is_empty());
        }
    }
}

/// What a server answers to somebody who wants to hear it.
pub(super) enum Opened {
    Stream(Body),
    /// It has no such streams, or not for us.
    Refused(String),
    /// It could not be asked.
    Unheard(Failure),
    /// Nobody wants to hear it any more.
    Over,
}

impl Flight<'_> {
    /// Hears the answers of a stream. One that breaks before is taken up again, if the
    /// server has said where.
    pub(super) fn follow(
        &self,
        body: Body,
        session: Option<&str>,
        resumes: bool,
    ) -> Result<(), Failure> {
        let mut mark = Mark::default();
        if self.hear(body, &mut mark) {
            return Ok(());
        }
        while resumes && mark.id.is_some() && self.pause(&mut mark) {
            match self.open(session, &mark) {
                Opened::Stream(body) => {
                    if self.hear(body, &mut mark) {
                        return Ok(());
                    }
                }
                Opened::Unheard(_) => {}
                Opened::Refused(_) => break,
                Opened::Over => return Ok(()),
            }
        }
        Err(self.remote.cut("the stream ended before the answer"))
    }

    /// Hears a stream to its end. Says whether everything asked is answered.
    pub(super) fn hear(&self, body: Body, mark: &mut Mark) -> bool {
        let began = now_ms();
        if self.read_stream(body, mark) {
            return true;
        }
        if now_ms().saturating_sub(began) >= LASTED_MS {
            mark.tries = 0;
        }
        false
    }

    /// Reads the events of a stream. Returns whether everything asked is answered.
    fn read_stream(&self, body: Body, mark: &mut Mark) -> bool {
        let mut reader = body.into_reader();
        let mut parser = SseParser::new(LINE_BYTES_MAX, OverlongEvent::KeepEnds(END_BYTES));
        let (mut chunk, mut events) = (vec![0; CHUNK_BYTES], Vec::new());
        loop {
            let bytes = match reader.read(&mut chunk) {
                Ok(count) if count > 0 => chunk.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(_) | Err(_) => return false,
            };
            if parser.feed(bytes, &mut events).is_err() {
                return false;
            }
            for event in events.drain(..) {
                mark.note(&event);
                if self.said(event) {
                    return true;
                }
            }
        }
    }

    /// Says whether an event was the last answer that somebody waits for.
    fn said(&self, event: SseEvent) -> bool {
        if event.name.is_some_and(|name| name != "message") {
            return false;
        }
        let asks = self.asks();
        match event.data {
            None => false,
            Some(SseData::Whole(data)) if data.is_empty() => false,
            Some(SseData::Whole(data)) => self.heard(data) && asks,
            Some(SseData::TooLong { head, tail, bytes }) => {
                let text = format!("the server sent an event of {bytes} bytes; it is dropped");
                self.shared.complain(&text);
                let named = id_in_ends(&head, &tail).as_ref().and_then(Id::of);
                let Some(id) = named.or_else(|| self.oldest()) else { return false };
                self.shared.fail(&id, Failure::TooLong { bytes });
                self.answered(&[id]) && asks
            }
        }
    }

    /// Waits before a stream is opened again; says whether it is worth it.
    pub(super) fn pause(&self, mark: &mut Mark) -> bool {
        let longer = (WAIT_MS << mark.tries.min(10)).min(WAIT_MS_MAX);
        let told = mark.retry_ms.map(|wait| wait.clamp(*RETRY_MS.start(), *RETRY_MS.end()));
        let wait = told.unwrap_or(longer);
        mark.tries += 1;
        let until = now_ms() + wait;
        while now_ms() < until && self.agent().is_some() {
            std::thread::sleep(TICK);
        }
        mark.tries <= TRIES_MAX
    }

    /// Asks for a stream.
    pub(super) fn open(&self, session: Option<&str>, mark: &Mark) -> Opened {
        let Some(agent) = self.agent() else { return Opened::Over };
        let request = agent.get(&self.remote.address.uri);
        let agreed = lock(&self.shared.agreed).clone();
        let request = self.remote.headed(request, session, agreed.as_deref());
        let mut request = request.header("accept", "text/event-stream");
        if let Some(id) = &mark.id {
            request = request.header("last-event-id", id);
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(_) if self.agent().is_none() => return Opened::Over,
            Err(error) => return Opened::Unheard(self.remote.trouble(&error, false)),
        };
        match response.status().as_u16() {
            404 if self.has_expired(session) => Opened::Over,
            200 if media(&response) == "text/event-stream" => Opened::Stream(response.into_body()),
            status => Opened::Refused(format!("HTTP status {status}")),
        }
    }
}
