//! How a scenario is played, whatever surface it is played on.

use std::fmt;

use jackline_engine::Timestamp;
use serde_json::Value;

use crate::matching::mismatches;
use crate::scenario::{Act, Scenario, Step};

/// One surface of the product.
pub trait Driver {
    /// Its name, in test names and as the name of its baseline.
    fn name(&self) -> &'static str;

    /// Whether a scenario can be told on this surface; if not, why.
    fn plays(&self, _: &Scenario) -> Result<(), String> {
        Ok(())
    }

    /// Makes everything ready for a scenario's first step.
    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn Stage>, String>;
}

/// A scenario at play. `now` is always the scenario's clock.
pub trait Stage {
    /// Sends a line and gives back the verdict.
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String>;

    /// The files of the workspace.
    fn files(&mut self) -> &mut dyn WorkspaceFiles;

    /// The person of the scenario.
    fn person(&mut self) -> &mut dyn ScenarioPerson;

    /// The time that a file written now has, where the surface has another clock.
    fn file_time(&self, now: Timestamp) -> Timestamp {
        now
    }

    /// Ends whatever runs and starts it again on the same state.
    fn restart(&mut self) -> Result<(), String>;

    /// Ends the play and proves every journal that was written.
    fn finish(self: Box<Self>) -> Result<(), String>;
}

/// The files of a workspace, as the agent's tools change them.
pub trait WorkspaceFiles {
    /// Writes a file with this time of its last change.
    fn write(&mut self, path: &str, text: &str, modified: Timestamp) -> Result<(), String>;

    /// The text of a file, if it is there.
    fn read(&self, path: &str) -> Result<Option<String>, String>;

    /// Removes a file.
    fn remove(&mut self, path: &str) -> Result<(), String>;

    /// The absolute path of the workspace.
    fn workspace(&self) -> String;
}

/// What the person of a scenario does.
pub trait ScenarioPerson {
    /// Switches the guard off, and says why.
    fn off(&mut self, why: &str, now: Timestamp) -> Result<(), String>;

    /// Switches the guard on again.
    fn on(&mut self) -> Result<(), String>;

    /// Approves the agent of a session.
    fn approve(&mut self, session: &str) -> Result<(), String>;
}

/// Why a scenario did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The driver that played it.
    pub driver: &'static str,
    /// The scenario, as `area/name`.
    pub scenario: String,
    /// What it shows.
    pub story: String,
    /// The number of the step, from 1, and the step; none before the first and after the last.
    pub step: Option<(usize, String)>,
    /// What was expected and what came.
    pub problem: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}` on {}: {}", self.scenario, self.driver, self.story)?;
        if let Some((number, step)) = &self.step {
            writeln!(f, "step {number}: {step}")?;
        }
        f.write_str(&self.problem)
    }
}

/// Plays a scenario from its first step to the proof of its journals.
pub fn play(driver: &dyn Driver, scenario: &Scenario) -> Result<(), Box<Failure>> {
    let failure = |step: Option<(usize, String)>, problem: String| {
        Box::new(Failure {
            driver: driver.name(),
            scenario: scenario.name.clone(),
            story: scenario.story.clone(),
            step,
            problem,
        })
    };
    let mut stage = driver.stage(scenario).map_err(|problem| failure(None, problem))?;
    for (number, step) in scenario.steps.iter().enumerate() {
        take(stage.as_mut(), step)
            .map_err(|problem| failure(Some((number + 1, step.act.to_string())), problem))?;
    }
    stage.finish().map_err(|problem| failure(None, problem))
}

fn take(stage: &mut dyn Stage, step: &Step) -> Result<(), String> {
    match &step.act {
        Act::Send { line, expect } => {
            let line = line.replace("{workspace}", &stage.files().workspace());
            let verdict = stage.send(&line, step.at)?;
            let wrong = mismatches(expect, &verdict);
            let mut listed: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            // A denial because something is broken is no denial by a guard.
            if verdict.get("error").is_some() && expect.get("error").is_none() {
                listed.push("`error` is there, and nobody expects it".to_owned());
            }
            if listed.is_empty() {
                return Ok(());
            }
            Err(format!("{}\nexpected {expect}\nactual   {verdict}", listed.join("\n")))
        }
        Act::Write(files) => {
            let modified = stage.file_time(step.at);
            let mut write =
                |(path, text): (&String, &String)| stage.files().write(path, text, modified);
            files.iter().try_for_each(&mut write)
        }
        Act::Holds(files) => files.iter().try_for_each(|(path, expected)| {
            let actual = stage.files().read(path)?;
            if actual == *expected {
                return Ok(());
            }
            Err(format!("`{path}` holds {actual:?}, expected {expected:?}"))
        }),
        Act::Remove(paths) => paths.iter().try_for_each(|path| stage.files().remove(path)),
        Act::Restart => stage.restart(),
        Act::Off(why) => stage.person().off(why, step.at),
        Act::On => stage.person().on(),
        Act::Approve(session) => stage.person().approve(session),
    }
}
