//! The time of a scenario, where the product reads the real clock.

use std::fs;
use std::time::UNIX_EPOCH;

use jackline_engine::Timestamp;
use serde_json::{Map, Value, json};

use crate::journals::text;
use crate::place::Place;
use crate::scenario::{Act, START, Scenario};

/// How far ahead of the real clock a scenario plays that looks at the time.
const AHEAD_MS: u64 = 3_600_000;

/// The scenario's clock, on the real one.
pub(crate) struct Clock {
    /// What the real clock says when the scenario starts.
    pub(crate) start: Timestamp,
    pace: Pace,
}

/// How time passes in a play.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// As it does; the scenario does not look at it. The first record says when
    /// exactly the scenario started.
    Real,
    /// As it does, and it has started.
    Started,
    /// By the scenario. It starts ahead of the real clock, which has nothing to
    /// say then: session time never runs back.
    Told,
}

impl Clock {
    pub(crate) fn starting(place: &Place, scenario: &Scenario) -> Result<Self, String> {
        // Made just now, so it says what time it is.
        let modified = fs::metadata(place.workspace()).and_then(|found| found.modified());
        let since = modified.unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH);
        let ms = since.ok().and_then(|since| i64::try_from(since.as_millis()).ok());
        let now = Timestamp::from_ms(ms.ok_or("the clock is wrong")?);
        Ok(if looks_at_time(scenario) {
            Self { start: now.plus_ms(AHEAD_MS), pace: Pace::Told }
        } else {
            Self { start: now, pace: Pace::Real }
        })
    }

    /// A time of the scenario on the real clock.
    pub(crate) fn real(&self, time: Timestamp) -> Timestamp {
        Timestamp::from_ms(self.start.as_ms() + (time.as_ms() - START.as_ms()))
    }

    /// The line with which the harness tells a session the time.
    pub(crate) fn tick(&self, session: &str, now: Timestamp) -> Option<String> {
        let at = self.real(now).to_string();
        let nothing = json!({
            "event": "usage_reported", "session": session, "at": at, "input": 0, "output": 0,
        });
        (self.pace == Pace::Told).then(|| nothing.to_string())
    }

    /// Learns from a record when the scenario started.
    pub(crate) fn learn(&mut self, record: &Value) {
        if let Ok(wall) = Timestamp::parse(text(record, "/facts/now/wall"))
            && self.pace == Pace::Real
        {
            *self = Self { start: wall, pace: Pace::Started };
        }
    }

    /// A line with the times that the real clock has for them.
    pub(crate) fn to_real(&self, line: &str, now: Timestamp) -> Result<String, String> {
        let mut line: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let told = (self.pace == Pace::Told).then(|| self.real(now).to_string());
        line.insert("at".to_owned(), json!(told));
        if let Some(deadline) = line.get_mut("deadline") {
            shift(deadline, |time| self.real(time));
        }
        Ok(Value::Object(line).to_string())
    }

    /// A verdict with the times that the scenario has for them.
    pub(crate) fn to_scenario(&self, mut verdict: Value) -> Value {
        let ms = START.as_ms() - self.start.as_ms();
        for (list, field) in [("constraints", "expires_at"), ("feedback", "timestamp")] {
            let items = verdict.get_mut(list).and_then(Value::as_array_mut);
            for time in items.into_iter().flatten().filter_map(|item| item.get_mut(field)) {
                shift(time, |time| Timestamp::from_ms(time.as_ms() + ms));
            }
        }
        verdict
    }
}

fn shift(text: &mut Value, by: impl FnOnce(Timestamp) -> Timestamp) {
    let time = text.as_str().and_then(|text| Timestamp::parse(text).ok());
    if let Some(time) = time {
        *text = json!(by(time).to_string());
    }
}

/// Whether time passes in a scenario, or somebody sets an end to it.
pub(crate) fn looks_at_time(scenario: &Scenario) -> bool {
    scenario.steps.iter().any(|step| {
        let ends = matches!(&step.act, Act::Send { line, .. } if line.contains("\"deadline\":"));
        ends || step.at != START
    })
}
