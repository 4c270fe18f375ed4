//! Who tells a scenario on a surface that is not made for scenarios.
//!
//! Not everything that happens to a session comes from the client: a person
//! steers, and a harness that runs the client sets deadlines, makes attempts and
//! counts tokens. Those speak as they do in life, through `jackline stdio` on the
//! same state home.

use jackline_engine::wire::parse_line;
use jackline_engine::{Event, FaultKind};

use crate::scenario::Step;

/// Who tells a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    /// The client tells all of it.
    Client,
    /// A person or a harness has a part in it, or time passes.
    Together,
}

impl Telling {
    /// Who tells a scenario in which these have a part.
    pub(crate) fn by(client: bool, others: bool) -> Result<Self, String> {
        match (client, others) {
            (false, _) => Err("the client has no part in it".to_owned()),
            (true, false) => Ok(Self::Client),
            (true, true) => Ok(Self::Together),
        }
    }
}

/// The event of a line; an error says why it is none that a client could tell.
pub(crate) fn event(line: &str) -> Result<Event, String> {
    parse_line(line.as_bytes(), None).map_err(|error| match error.kind() {
        FaultKind::Missing if error.to_string().contains("session") => {
            "a line belongs to no session by name".to_owned()
        }
        _ => "a line is no event".to_owned(),
    })
}

/// The same, for one that happens at a step; a client tells things when they happen.
pub(crate) fn event_at(step: &Step, line: &str) -> Result<Event, String> {
    let event = event(line)?;
    if event.at.is_some_and(|at| at != step.at) {
        return Err("an event is told at another time than it happens".to_owned());
    }
    Ok(event)
}

/// How much of the corpus a surface can tell.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) by_client: usize,
    pub(crate) together: usize,
    /// The others, by the reason.
    pub(crate) untold: std::collections::BTreeMap<String, Vec<String>>,
}

#[cfg(test)]
impl Tally {
    /// Asks a surface about every story.
    pub(crate) fn of(
        telling: impl Fn(&crate::scenario::Scenario) -> Result<Telling, String>,
    ) -> Self {
        let corpus = crate::load_corpus(&crate::root().join("scenarios"), None).unwrap();
        let mut tally = Self::default();
        for scenario in &corpus {
            match telling(scenario) {
                Ok(Telling::Client) => tally.by_client += 1,
                Ok(Telling::Together) => tally.together += 1,
                Err(why) => tally.untold.entry(why).or_default().push(scenario.name.clone()),
            }
        }
        println!("{tally:#?}");
        tally
    }
}
