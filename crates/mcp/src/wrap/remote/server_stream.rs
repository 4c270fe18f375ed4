//! The stream of messages that a server sends without a request, for a client with a handshake.

use std::sync::Arc;

use super::event_stream::{ResumePoint, StreamResponse};
use super::posted_line::PostedLine;
use super::{OpenPost, RemoteServer};
use crate::wrap::proxied_server::lock_ignoring_poison;
use crate::wrap::proxy_shared::ProxyShared;

/// Starts a thread that listens to the server. A server without such a stream is not asked again.
pub(super) fn start_listening(remote: &Arc<RemoteServer>, shared: &Arc<ProxyShared>) {
    let (number, session) = {
        let mut state = lock_ignoring_poison(&remote.state);
        // A client that starts again listens only with its new session.
        for flying in state.open_posts.values_mut().filter(|flying| flying.is_server_stream()) {
            flying.cancel();
        }
        if state.is_closing || state.is_closed {
            return;
        }
        state.count += 1;
        let number = state.count;
        let flying = OpenPost {
            waiting_ids: Vec::new(),
            agent: remote.address.agent(),
            stateless: false,
            is_listening: true,
            is_cancelled: false,
        };
        state.open_posts.insert(number, flying);
        (number, state.session.clone())
    };
    let (with, output) = (Arc::clone(remote), Arc::clone(shared));
    let work = move || {
        let flight = PostedLine { remote: &with, shared: &output, number };
        if let Some(why) = flight.listen_to_server(session.as_deref()) {
            output.warn(&format!(
                "messages that the server sends without a request are not received: {why}"
            ));
        }
        with.finish_post(&output, number, None);
    };
    if std::thread::Builder::new().spawn(work).is_err() {
        remote.finish_post(shared, number, None);
    }
}

impl PostedLine<'_> {
    /// Listens until it is cancelled. Returns the reason if it had to end before.
    fn listen_to_server(&self, session: Option<&str>) -> Option<String> {
        let mut mark = ResumePoint::default();
        loop {
            let why = match self.open_stream(session, &mark) {
                StreamResponse::Stream(body) => {
                    self.read_to_end(body, &mut mark);
                    "the stream ends repeatedly".to_owned()
                }
                // The server has no such stream, which the protocol allows.
                StreamResponse::Refused(status) if status.ends_with("405") => return None,
                StreamResponse::Refused(status) => return Some(status),
                StreamResponse::Failed(failure) => failure.text(),
                StreamResponse::Cancelled => return None,
            };
            if !self.wait_before_reopen(&mut mark) {
                return Some(why);
            }
        }
    }
}

impl OpenPost {
    /// Whether this is the stream of messages without a request.
    fn is_server_stream(&self) -> bool {
        self.is_listening && self.waiting_ids.is_empty()
    }
}
