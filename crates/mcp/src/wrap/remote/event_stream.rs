//! Reads a stream of events, and resumes it if it breaks.

use std::io::{ErrorKind, Read as _};
use std::ops::RangeInclusive;
use std::time::Duration;

use jackline_http::{OverlongEvent, SseData, SseEvent, SseParser};
use ureq::Body;

use super::posted_line::{PostedLine, media_type};
use crate::wrap::bounded_lines::{END_BYTES, LINE_BYTES_MAX, find_id_in_ends};
use crate::wrap::clock::now_ms;
use crate::wrap::proxied_server::lock_ignoring_poison;
use crate::wrap::proxy_failure::ProxyFailure;
use crate::wrap::rpc_message::RpcId;

/// How often a stream is opened again without receiving anything.
const REOPENS_MAX: u32 = 5;

/// The delay before that, which doubles each time.
const REOPEN_DELAY_MS: u64 = 500;
const REOPEN_DELAY_MS_MAX: u64 = 10_000;

/// The range in which the server may set the delay.
const SERVER_RETRY_MS_RANGE: RangeInclusive<u64> = 100..=60_000;

/// A stream that lasted this long did not fail.
const STABLE_STREAM_MS: u64 = 30_000;

/// How often the wait checks whether the request was cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// How many bytes are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Where and when to resume a stream.
#[derive(Default)]
pub(super) struct ResumePoint {
    /// The id of the last event that had one.
    id: Option<String>,
    retry_ms: Option<u64>,
    /// How often in a row nothing was received.
    tries: u32,
}

impl ResumePoint {
    /// Notes where the stream resumes after this event.
    fn note(&mut self, event: &SseEvent) {
        self.tries = 0;
        self.retry_ms = event.retry_ms.or(self.retry_ms);
        // An empty id clears the previous one.
        if let Some(id) = &event.id {
            self.id = Some(id.clone()).filter(|id| !id.is_empty());
        }
    }
}

/// The response to the request for a stream.
pub(super) enum StreamResponse {
    Stream(Body),
    /// The server has no stream, or refuses it.
    Refused(String),
    /// The server could not be reached.
    Failed(ProxyFailure),
    /// The request was cancelled.
    Cancelled,
}

impl PostedLine<'_> {
    /// Reads the answers of a stream. If the stream breaks, resumes it, provided that the server
    /// sent an event id.
    pub(super) fn follow_stream(
        &self,
        body: Body,
        session: Option<&str>,
        resumes: bool,
    ) -> Result<(), ProxyFailure> {
        let mut mark = ResumePoint::default();
        if self.read_to_end(body, &mut mark) {
            return Ok(());
        }
        while resumes && mark.id.is_some() && self.wait_before_reopen(&mut mark) {
            match self.open_stream(session, &mark) {
                StreamResponse::Stream(body) => {
                    if self.read_to_end(body, &mut mark) {
                        return Ok(());
                    }
                }
                StreamResponse::Failed(_) => {}
                StreamResponse::Refused(_) => break,
                StreamResponse::Cancelled => return Ok(()),
            }
        }
        Err(self.remote.connection_lost("the stream ended before the answer"))
    }

    /// Reads a stream to its end. Returns whether all ids are answered.
    pub(super) fn read_to_end(&self, body: Body, mark: &mut ResumePoint) -> bool {
        let began = now_ms();
        if self.read_stream(body, mark) {
            return true;
        }
        if now_ms().saturating_sub(began) >= STABLE_STREAM_MS {
            mark.tries = 0;
        }
        false
    }

    /// Reads the events of a stream. Returns whether all ids are answered.
    fn read_stream(&self, body: Body, mark: &mut ResumePoint) -> bool {
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
                if self.handle_event(event) {
                    return true;
                }
            }
        }
    }

    /// Handles an event. Returns whether it answers the last open id.
    fn handle_event(&self, event: SseEvent) -> bool {
        if event.name.is_some_and(|name| name != "message") {
            return false;
        }
        let asks = self.has_waiting_ids();
        match event.data {
            None => false,
            Some(SseData::Whole(data)) if data.is_empty() => false,
            Some(SseData::Whole(data)) => self.handle_message(data) && asks,
            Some(SseData::TooLong { head, tail, bytes }) => {
                let text = format!("the server sent an event of {bytes} bytes, which was dropped");
                self.shared.warn(&text);
                let named = find_id_in_ends(&head, &tail).as_ref().and_then(RpcId::from_value);
                let Some(id) = named.or_else(|| self.oldest_waiting_id()) else { return false };
                self.shared.fail(&id, ProxyFailure::TooLong { bytes });
                self.remove_answered(&[id]) && asks
            }
        }
    }

    /// Waits before a stream is opened again. Returns whether to try again.
    pub(super) fn wait_before_reopen(&self, mark: &mut ResumePoint) -> bool {
        let longer = (REOPEN_DELAY_MS << mark.tries.min(10)).min(REOPEN_DELAY_MS_MAX);
        let server_wait = mark
            .retry_ms
            .map(|wait| wait.clamp(*SERVER_RETRY_MS_RANGE.start(), *SERVER_RETRY_MS_RANGE.end()));
        let wait = server_wait.unwrap_or(longer);
        mark.tries += 1;
        let until = now_ms() + wait;
        while now_ms() < until && self.agent().is_some() {
            std::thread::sleep(CANCEL_CHECK_INTERVAL);
        }
        mark.tries <= REOPENS_MAX
    }

    /// Requests a stream.
    pub(super) fn open_stream(&self, session: Option<&str>, mark: &ResumePoint) -> StreamResponse {
        let Some(agent) = self.agent() else { return StreamResponse::Cancelled };
        let request = agent.get(&self.remote.address.uri);
        let agreed = lock_ignoring_poison(&self.shared.protocol_version).clone();
        let request = self.remote.with_headers(request, session, agreed.as_deref());
        let mut request = request.header("accept", "text/event-stream");
        if let Some(id) = &mark.id {
            request = request.header("last-event-id", id);
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(_) if self.agent().is_none() => return StreamResponse::Cancelled,
            Err(error) => {
                return StreamResponse::Failed(self.remote.connection_failure(&error, false));
            }
        };
        match response.status().as_u16() {
            404 if self.handle_expired_session(session) => StreamResponse::Cancelled,
            200 if media_type(&response) == "text/event-stream" => {
                StreamResponse::Stream(response.into_body())
            }
            status => StreamResponse::Refused(format!("HTTP status {status}")),
        }
    }
}
