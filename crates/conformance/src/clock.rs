//! The time of a scenario, when the product reads the real clock.

use std::fs;
use std::time::UNIX_EPOCH;

use jackline_engine::Timestamp;
use serde_json::{Map, Value, json};

use crate::journals::text_at;
use crate::scenario::{START, Scenario, ScenarioAction};
use crate::scenario_directories::ScenarioDirectories;

/// How far ahead of the real clock a scenario starts in which time passes.
const AHEAD_MS: u64 = 3_600_000;

/// Maps the scenario's clock to the real one.
pub(crate) struct ScenarioClock {
    /// The real time at which the scenario starts.
    pub(crate) start: Timestamp,
    pace: ClockPace,
}

/// How time passes while a scenario is played.
#[derive(Clone, Copy, PartialEq)]
enum ClockPace {
    /// The real clock is used, because the scenario does not depend on time. The first record shows
    /// when exactly the scenario started.
    Real,
    /// The real clock is used, and the start time is known.
    Started,
    /// The scenario sets the time. It starts ahead of the real clock, which then has no effect,
    /// because session time never goes back.
    Scenario,
}

impl ScenarioClock {
    pub(crate) fn starting(
        place: &ScenarioDirectories,
        scenario: &Scenario,
    ) -> Result<Self, String> {
        // The directory was just created, so its modification time is the current time.
        let modified = fs::metadata(place.workspace()).and_then(|found| found.modified());
        let since = modified.unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH);
        let ms = since.ok().and_then(|since| i64::try_from(since.as_millis()).ok());
        let now = Timestamp::from_ms(ms.ok_or("the clock is wrong")?);
        Ok(if depends_on_time(scenario) {
            Self { start: now.plus_ms(AHEAD_MS), pace: ClockPace::Scenario }
        } else {
            Self { start: now, pace: ClockPace::Real }
        })
    }

    /// Converts a time of the scenario to the real clock.
    pub(crate) fn real(&self, time: Timestamp) -> Timestamp {
        Timestamp::from_ms(self.start.as_ms() + (time.as_ms() - START.as_ms()))
    }

    /// The line with which the harness sets the time of a session.
    pub(crate) fn tick(&self, session: &str, now: Timestamp) -> Option<String> {
        let at = self.real(now).to_string();
        let nothing = json!({
            "event": "usage_reported", "session": session, "at": at, "input": 0, "output": 0,
        });
        (self.pace == ClockPace::Scenario).then(|| nothing.to_string())
    }

    /// Learns the start time of the scenario from a record.
    pub(crate) fn learn_start(&mut self, record: &Value) {
        if let Ok(wall) = Timestamp::parse(text_at(record, "/facts/now/wall"))
            && self.pace == ClockPace::Real
        {
            *self = Self { start: wall, pace: ClockPace::Started };
        }
    }

    /// Converts the times in a line to the real clock.
    pub(crate) fn to_real(&self, line: &str, now: Timestamp) -> Result<String, String> {
        let mut line: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let time = (self.pace == ClockPace::Scenario).then(|| self.real(now).to_string());
        line.insert("at".to_owned(), json!(time));
        if let Some(deadline) = line.get_mut("deadline") {
            shift(deadline, |time| self.real(time));
        }
        Ok(Value::Object(line).to_string())
    }

    /// Converts the times in a verdict to the scenario's clock.
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

/// Whether time passes in a scenario, or a deadline is set.
pub(crate) fn depends_on_time(scenario: &Scenario) -> bool {
    scenario.steps.iter().any(|step| {
        let ends = matches!(&step.act, ScenarioAction::Send { line, .. } if line.contains("\"deadline\":"));
        ends || step.at != START
    })
}
