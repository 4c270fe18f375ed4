//! Plays the conformance corpus on every surface, with one test per scenario and driver.

#[expect(clippy::unwrap_used, reason = "without the program, no test can run")]
#[path = "person/program.rs"]
mod person_program;

use std::process::ExitCode;
use std::sync::Arc;

use jackline_conformance::{
    EngineDriver, HookDriver, JacklineProgram, MemoryDriver, ProxyDriver, RunDriver, Scenario,
    ScenarioDriver, ServeDriver, StdioDriver, load_corpus, play_scenario, root,
};
use jackline_host::is_started_by_agent_tool;
use libtest_mimic::{Arguments, Failed, Trial};

/// Starts a program in a process namespace, so that it cannot see which program started it.
const ISOLATE: [&str; 7] =
    ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // The scenarios assume that a person and a client start the program, even if an agent runs these
    // tests.
    person_program::install_person_program();
    let program = JacklineProgram::new(person_program::JACKLINE);
    let program = if is_started_by_agent_tool() { program.started_by(&ISOLATE) } else { program };
    let drivers: [Arc<dyn ScenarioDriver + Send + Sync>; 7] = [
        Arc::new(EngineDriver),
        Arc::new(MemoryDriver),
        Arc::new(StdioDriver::new(program.clone())),
        Arc::new(HookDriver::new(program.clone())),
        Arc::new(ProxyDriver::new(program.clone())),
        Arc::new(ServeDriver::new(program.clone())),
        Arc::new(RunDriver::new(program)),
    ];
    let only_scenario = selected_scenario(&arguments);
    let trials = match load_corpus(&root().join("scenarios"), only_scenario.as_deref()) {
        Ok(corpus) => {
            let corpus: Vec<Arc<Scenario>> = corpus.into_iter().map(Arc::new).collect();
            drivers.iter().flat_map(|driver| trials(driver, &corpus)).collect()
        }
        // An unreadable corpus is one failing test, instead of no tests.
        Err(error) => {
            let problem = error.to_string();
            vec![Trial::test("corpus::loads", move || Err(Failed::from(problem)))]
        }
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Returns the scenario that the exact name of one test selects. A test runner may start one
/// process per test, and a process should not load the whole corpus for one scenario.
fn selected_scenario(arguments: &Arguments) -> Option<String> {
    let test = arguments.filter.as_ref().filter(|_| arguments.exact && !arguments.list)?;
    let (_driver, scenario) = test.split_once("::")?;
    scenario.contains("::").then(|| scenario.replace("::", "/"))
}

/// Returns the tests of one driver, with one test per scenario that its client takes part in.
fn trials(driver: &Arc<dyn ScenarioDriver + Send + Sync>, corpus: &[Arc<Scenario>]) -> Vec<Trial> {
    corpus.iter().filter_map(|scenario| trial(driver, scenario)).collect()
}

fn trial(
    driver: &Arc<dyn ScenarioDriver + Send + Sync>,
    scenario: &Arc<Scenario>,
) -> Option<Trial> {
    let test = format!("{}::{}", driver.name(), scenario.name.replace('/', "::"));
    if let Err(why) = driver.can_play(scenario) {
        return Some(match why.reason(driver.surface())? {
            Ok(reason) => Trial::test(test, || Ok(())).with_kind(reason).with_ignored_flag(true),
            Err(problem) => Trial::test(test, move || Err(Failed::from(problem))),
        });
    }
    let (driver, scenario) = (Arc::clone(driver), Arc::clone(scenario));
    Some(Trial::test(test, move || {
        let surface = driver.surface();
        let missing = scenario.needs.iter().find(|needed| !surface.supports(**needed));
        match (missing, play_scenario(driver.as_ref(), &scenario)) {
            (None, outcome) => outcome.map_err(Failed::from),
            (Some(_), Err(_)) => Ok(()),
            (Some(needed), Ok(())) => Err(Failed::from(format!(
                "`{}` passes, but the table says that `{}` has no `{}`",
                scenario.name,
                surface.name,
                needed.as_str()
            ))),
        }
    }))
}
