//! The senders of a scenario on a surface that is made for one client.
//!
//! Not all events of a session come from the client. A person controls the session. A harness that
//! runs the client sets deadlines, makes attempts and counts tokens. Their events are sent as in a
//! real run: through `jackline stdio` with the same state home.

use jackline_engine::Event;
use jackline_engine::wire::parse_line;
use jackline_runtime::surfaces::SurfaceCapability;

use crate::scenario::ScenarioStep;
use crate::unplayable::Unplayable;

/// The senders of a scenario's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSenders {
    /// The client sends all events.
    Client,
    /// A person or a harness sends some events, or time passes.
    ClientAndOthers,
}

impl EventSenders {
    /// The senders of a scenario in which these take part.
    pub(crate) fn from_parts(client: bool, others: bool) -> Result<Self, Unplayable> {
        match (client, others) {
            (false, _) => Err(Unplayable::NoEvents),
            (true, false) => Ok(Self::Client),
            (true, true) => Ok(Self::ClientAndOthers),
        }
    }
}

/// Parses the event of a line. The error is the reason why no client could send it.
pub(crate) fn parse_client_event(line: &str) -> Result<Event, Unplayable> {
    parse_line(line.as_bytes(), None).map_err(|_| SurfaceCapability::AnyLine.into())
}

/// Parses the event of a line at a step. A client can send an event only when it happens.
pub(crate) fn parse_client_event_at(step: &ScenarioStep, line: &str) -> Result<Event, Unplayable> {
    let event = parse_client_event(line)?;
    if event.at.is_some_and(|at| at != step.at) {
        return Err(SurfaceCapability::EventTimes.into());
    }
    Ok(event)
}

/// How much of the corpus a surface can play.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct CorpusTally {
    pub(crate) by_client: usize,
    pub(crate) together: usize,
    /// The other scenarios, by the reason.
    pub(crate) unplayable: std::collections::BTreeMap<Unplayable, Vec<String>>,
}

#[cfg(test)]
impl CorpusTally {
    /// Counts all scenarios for a surface.
    pub(crate) fn count(
        telling: impl Fn(&crate::scenario::Scenario) -> Result<EventSenders, Unplayable>,
    ) -> Self {
        let corpus = crate::load_corpus(&crate::root().join("scenarios"), None).unwrap();
        let mut tally = Self::default();
        for scenario in &corpus {
            match telling(scenario) {
                Ok(EventSenders::Client) => tally.by_client += 1,
                Ok(EventSenders::ClientAndOthers) => tally.together += 1,
                Err(why) => tally.unplayable.entry(why).or_default().push(scenario.name.clone()),
            }
        }
        println!("{tally:#?}");
        tally
    }
}
