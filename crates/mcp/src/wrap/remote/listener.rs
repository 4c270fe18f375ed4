//! What a server says without having been asked, to a client with a handshake.

use std::sync::Arc;

use super::flight::Flight;
use super::stream::{Mark, Opened};
use super::{Flying, Remote};
use crate::wrap::server::lock;
use crate::wrap::shared::Shared;

/// Hears a server from now on, in a thread of its own. One that has no such stream is
/// not asked again.
pub(super) fn listen(remote: &Arc<Remote>, shared: &Arc<Shared>) {
    let (number, session) = {
        let mut state = lock(&remote.state);
        // A client that begins anew is heard by the session it has now.
        for flying in state.flying.values_mut().filter(|flying| flying.is_listener()) {
            flying.call_back();
        }
        if state.closing || state.ended {
            return;
        }
        state.count += 1;
        let number = state.count;
        let flying = Flying {
            asked: Vec::new(),
            agent: remote.address.agent(),
            stateless: false,
            listens: true,
            called_back: false,
        };
        state.flying.insert(number, flying);
        (number, state.session.clone())
    };
    let (with, speaker) = (Arc::clone(remote), Arc::clone(shared));
    let work = move || {
        let flight = Flight { remote: &with, shared: &speaker, number };
        if let Some(why) = flight.listen(session.as_deref()) {
            speaker.complain(&format!("what the server says by itself is not heard: {why}"));
        }
        with.land(&speaker, number, None);
    };
    if std::thread::Builder::new().spawn(work).is_err() {
        remote.land(shared, number, None);
    }
}

impl Flight<'_> {
    /// Hears until nobody wants to; says why it has to end before.
    fn listen(&self, session: Option<&str>) -> Option<String> {
        let mut mark = Mark::default();
        loop {
            let why = match self.open(session, &mark) {
                Opened::Stream(body) => {
                    self.hear(body, &mut mark);
                    "the stream ends again and again".to_owned()
                }
                // It has none, which is its right.
                Opened::Refused(status) if status.ends_with("405") => return None,
                Opened::Refused(status) => return Some(status),
                Opened::Unheard(failure) => failure.text(),
                Opened::Over => return None,
            };
            if !self.pause(&mut mark) {
                return Some(why);
            }
        }
    }
}

impl Flying {
    /// Whether nobody asked for what is heard here.
    fn is_listener(&self) -> bool {
        self.listens && self.asked.is_empty()
    }
}
