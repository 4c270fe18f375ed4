//! Plays the conformance corpus on every surface, with one test per scenario and driver.

use std::process::ExitCode;
use std::sync::Arc;

use jackline_conformance::{
    Baseline, BaselineError, EngineDriver, HookDriver, JacklineProgram, MemoryDriver, ProxyDriver,
    Scenario, ScenarioDriver, StdioDriver, load_corpus, play_scenario, root,
};
use jackline_host::agent_above;
use libtest_mimic::{Arguments, Failed, Trial};

/// Starts a program in a process namespace, so that it cannot see which program started it.
const ISOLATE: [&str; 7] =
    ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let program = JacklineProgram::new(env!("CARGO_BIN_EXE_jackline"));
    // The scenarios assume that a person starts the program, even if an agent runs these tests.
    let program = match agent_above() {
        Some(_) => program.started_by(&ISOLATE),
        None => program,
    };
    let drivers: [Arc<dyn ScenarioDriver + Send + Sync>; 5] = [
        Arc::new(EngineDriver),
        Arc::new(MemoryDriver),
        Arc::new(StdioDriver::new(program.clone())),
        Arc::new(HookDriver::new(program.clone())),
        Arc::new(ProxyDriver::new(program)),
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

/// Returns the tests of one driver: a check of its baseline, and one test per scenario.
fn trials(driver: &Arc<dyn ScenarioDriver + Send + Sync>, corpus: &[Arc<Scenario>]) -> Vec<Trial> {
    let name = driver.name();
    let baseline = Arc::new(Baseline::load(name));
    let names: Vec<String> = corpus.iter().map(|scenario| scenario.name.clone()).collect();
    let checked_baseline = Arc::clone(&baseline);
    let mut trials = vec![Trial::test(format!("{name}::baseline"), move || {
        let baseline = loaded_baseline(&checked_baseline)?;
        baseline.check(names.iter().map(String::as_str)).map_err(Failed::from)
    })];
    trials.extend(corpus.iter().map(|scenario| {
        let (driver, baseline) = (Arc::clone(driver), Arc::clone(&baseline));
        let scenario = Arc::clone(scenario);
        let test = format!("{name}::{}", scenario.name.replace('/', "::"));
        let support = driver.can_play(&scenario);
        let trial = Trial::test(test, move || {
            let outcome = play_scenario(driver.as_ref(), &scenario);
            loaded_baseline(&baseline)?.judge(&scenario.name, outcome).map_err(Failed::from)
        });
        match support {
            Ok(()) => trial,
            Err(reason) => trial.with_kind(reason).with_ignored_flag(true),
        }
    }));
    trials
}

fn loaded_baseline(baseline: &Result<Baseline, BaselineError>) -> Result<&Baseline, Failed> {
    baseline.as_ref().map_err(|error| Failed::from(error.to_string()))
}
