//! Plays a scenario on any surface.

use std::fmt;

use jackline_engine::Timestamp;
use jackline_runtime::surfaces::SurfaceProfile;
use serde_json::Value;

use crate::matching::find_mismatches;
use crate::scenario::{Scenario, ScenarioAction, ScenarioStep};
use crate::unplayable::Unplayable;

/// One surface of the product.
pub trait ScenarioDriver {
    /// Its name, in test names.
    fn name(&self) -> &'static str;

    /// What the surface can do.
    fn surface(&self) -> &'static SurfaceProfile;

    /// The scenario with the names that the tools have on this surface.
    fn in_own_words(&self, scenario: &Scenario) -> Scenario {
        scenario.clone()
    }

    /// Whether the events of a scenario can be sent on this surface.
    fn can_play(&self, _: &Scenario) -> Result<(), Unplayable> {
        Ok(())
    }

    /// Prepares the first step of a scenario.
    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String>;
}

/// A scenario while it is played. `now` is always the scenario's clock.
pub trait ScenarioStage {
    /// Sends a line and returns the verdict.
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String>;

    /// The files of the workspace.
    fn files(&mut self) -> &mut dyn WorkspaceFiles;

    /// The person of the scenario.
    fn person(&mut self) -> &mut dyn ScenarioPerson;

    /// The modification time of a file that is written now, if the surface uses another clock.
    fn file_time(&self, now: Timestamp) -> Timestamp {
        now
    }

    /// Ends all processes and starts them again with the same state.
    fn restart(&mut self) -> Result<(), String>;

    /// Ends the scenario and checks every journal that was written.
    fn finish(self: Box<Self>) -> Result<(), String>;
}

/// The files of a workspace, as the agent's tools change them.
pub trait WorkspaceFiles {
    /// Writes a file with this modification time.
    fn write(&mut self, path: &str, text: &str, modified: Timestamp) -> Result<(), String>;

    /// The text of a file, if it exists.
    fn read(&self, path: &str) -> Result<Option<String>, String>;

    /// Removes a file.
    fn remove(&mut self, path: &str) -> Result<(), String>;

    /// The absolute path of the workspace.
    fn workspace(&self) -> String;
}

/// The actions of the person in a scenario.
pub trait ScenarioPerson {
    /// Turns the guard off, with a reason.
    fn off(&mut self, why: &str, now: Timestamp) -> Result<(), String>;

    /// Turns the guard on again.
    fn on(&mut self) -> Result<(), String>;

    /// Approves the agent of a session.
    fn approve(&mut self, session: &str) -> Result<(), String>;
}

/// Why a scenario did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFailure {
    /// The driver that played it.
    pub driver: &'static str,
    /// The scenario, as `area/name`.
    pub scenario: String,
    /// Its story.
    pub story: String,
    /// The number and text of the step, from 1; `None` before the first step and after the last.
    pub step: Option<(usize, String)>,
    /// The expected and the actual result.
    pub problem: String,
}

impl fmt::Display for ScenarioFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}` on {}: {}", self.scenario, self.driver, self.story)?;
        if let Some((number, step)) = &self.step {
            writeln!(f, "step {number}: {step}")?;
        }
        f.write_str(&self.problem)
    }
}

/// Plays a scenario, from its first step to the check of its journals.
pub fn play_scenario(
    driver: &dyn ScenarioDriver,
    scenario: &Scenario,
) -> Result<(), Box<ScenarioFailure>> {
    let failure = |step: Option<(usize, String)>, problem: String| {
        Box::new(ScenarioFailure {
            driver: driver.name(),
            scenario: scenario.name.clone(),
            story: scenario.story.clone(),
            step,
            problem,
        })
    };
    let scenario = &driver.in_own_words(scenario);
    let mut stage = driver.stage(scenario).map_err(|problem| failure(None, problem))?;
    for (number, step) in scenario.steps.iter().enumerate() {
        play_step(stage.as_mut(), step)
            .map_err(|problem| failure(Some((number + 1, step.act.to_string())), problem))?;
    }
    stage.finish().map_err(|problem| failure(None, problem))
}

fn play_step(stage: &mut dyn ScenarioStage, step: &ScenarioStep) -> Result<(), String> {
    match &step.act {
        ScenarioAction::Send { line, expect } => {
            let line = line.replace("{workspace}", &stage.files().workspace());
            let verdict = stage.send(&line, step.at)?;
            let wrong = find_mismatches(expect, &verdict);
            let mut listed: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            // A denial because of a fault is not a denial by a guard.
            if verdict.get("error").is_some() && expect.get("error").is_none() {
                listed.push("`error` is present, but not expected".to_owned());
            }
            if listed.is_empty() {
                return Ok(());
            }
            Err(format!("{}\nexpected {expect}\nactual   {verdict}", listed.join("\n")))
        }
        ScenarioAction::Write(files) => {
            let modified = stage.file_time(step.at);
            let mut write =
                |(path, text): (&String, &String)| stage.files().write(path, text, modified);
            files.iter().try_for_each(&mut write)
        }
        ScenarioAction::Contains(files) => files.iter().try_for_each(|(path, expected)| {
            let actual = stage.files().read(path)?;
            if actual == *expected {
                return Ok(());
            }
            Err(format!("`{path}` contains {actual:?}, expected {expected:?}"))
        }),
        ScenarioAction::Remove(paths) => {
            paths.iter().try_for_each(|path| stage.files().remove(path))
        }
        ScenarioAction::Restart => stage.restart(),
        ScenarioAction::Off(why) => stage.person().off(why, step.at),
        ScenarioAction::On => stage.person().on(),
        ScenarioAction::Approve(session) => stage.person().approve(session),
    }
}
