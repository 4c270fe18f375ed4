//! The list of supported agent clients.

use std::fmt;

use jackline_engine::ClientId;
use jackline_host::worker::WorkerProgram;

use crate::claude;
use crate::dialect::Dialect;
use crate::installation::Installation;
use crate::live_client::LiveClient;
use crate::transcripts::TranscriptStore;

/// One agent client.
pub struct Client {
    /// Its id on the command line, in definitions and in journals. Its program has the same name.
    pub id: ClientId,
    /// The name for people.
    pub title: &'static str,
    /// The format of its hooks.
    pub dialect: &'static dyn Dialect,
    /// Its settings.
    pub installation: &'static dyn Installation,
    /// How to run it with a scripted model.
    pub live: &'static dyn LiveClient,
    /// How `jackline run` starts it without a person, if it supports that.
    pub worker: Option<&'static dyn WorkerProgram>,
    /// The command that resumes a session of the client, without the session id.
    pub resume_command: Option<&'static str>,
    /// The command with which a person compacts the context in the client, if it has one.
    pub compact_command: Option<&'static str>,
    /// The client's own records of past sessions, if we can read them.
    pub transcripts: Option<&'static dyn TranscriptStore>,
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

/// The client with this id.
pub fn find_client(word: &str) -> Option<&'static Client> {
    CLIENTS.into_iter().find(|client| client.id.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_own_id() {
        for client in CLIENTS {
            assert_eq!(ClientId::parse(client.id.as_str()).as_ref(), Ok(&client.id));
            let same = CLIENTS.into_iter().filter(|other| other.id == client.id);
            assert_eq!(same.count(), 1, "{}", client.id);
        }
    }
}
