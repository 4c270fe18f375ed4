//! The agent clients that this program knows, one line each.

use std::fmt;

use jackline_engine::ClientId;
use jackline_host::worker::WorkerProgram;

use crate::claude;
use crate::dialect::Dialect;
use crate::installation::Installation;
use crate::live_client::LiveClient;
use crate::transcripts::Transcripts;

/// One agent client: everything that is known of it.
pub struct Client {
    /// Its word on the command line, in definitions and in journals; its program has the same
    /// name.
    pub id: ClientId,
    /// What people call it.
    pub title: &'static str,
    /// How its hooks speak.
    pub dialect: &'static dyn Dialect,
    /// Where its settings are.
    pub installation: &'static dyn Installation,
    /// How a scripted model drives it.
    pub live: &'static dyn LiveClient,
    /// How its program works without a person, where it can.
    pub worker: Option<&'static dyn WorkerProgram>,
    /// The words before a session's id that go on with that session, where the client can.
    pub resume: Option<&'static str>,
    /// Its own records of past sessions, where they can be read.
    pub transcripts: Option<&'static dyn Transcripts>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).finish_non_exhaustive()
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Client {}

/// All clients.
pub static CLIENTS: [&Client; 1] = [&claude::CLIENT];

/// The client with this word.
pub fn find_client(word: &str) -> Option<&'static Client> {
    CLIENTS.into_iter().find(|client| client.id.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_word_of_its_own() {
        for client in CLIENTS {
            assert_eq!(ClientId::parse(client.id.as_str()).as_ref(), Ok(&client.id));
            let same = CLIENTS.into_iter().filter(|other| other.id == client.id);
            assert_eq!(same.count(), 1, "{}", client.id);
        }
    }
}
