//! A client that exists only in these tests. It shows that a new client needs one folder and one
//! entry in the list.

mod dialect;
mod installation;
mod live;

use jackline_clients::Client;
use jackline_engine::ClientId;

/// The id of the client.
pub(crate) const NAME: &str = "toy";

/// The entry for the list of clients.
pub(crate) static TOY: Client = Client {
    id: ClientId::from_static(NAME),
    title: "Toy",
    dialect: &dialect::ToyDialect,
    installation: &installation::ToyInstallation,
    live: &live::ToyLive,
    worker: None,
    resume_command: None,
    compact_command: None,
    transcripts: None,
};
