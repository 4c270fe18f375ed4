//! A client that exists only here: it shows that a client is one folder and one line.

mod dialect;
mod installation;
mod live;

use jackline_clients::Client;
use jackline_engine::ClientId;

/// The word of the client.
pub(crate) const NAME: &str = "toy";

/// The line that would stand in the list of clients.
pub(crate) static TOY: Client = Client {
    id: ClientId::from_static(NAME),
    title: "Toy",
    dialect: &dialect::ToyDialect,
    installation: &installation::ToyInstallation,
    live: &live::ToyLive,
    worker: None,
    resume: None,
    transcripts: None,
};
