//! Plays the conformance corpus on every surface: one test a scenario and driver.

use std::process::ExitCode;
use std::sync::Arc;

use jackline_conformance::{
    Baseline, BaselineError, Driver, EngineDriver, HookDriver, MemoryDriver, Program, ProxyDriver,
    Scenario, StdioDriver, load_corpus, play, root,
};
use jackline_host::agent_above;
use libtest_mimic::{Arguments, Failed, Trial};

/// Starts a program that sees nothing of who started it.
const ALONE: [&str; 7] =
    ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let program = Program::new(env!("CARGO_BIN_EXE_jackline"));
    // The stories have a person in them, whoever plays them.
    let program = match agent_above() {
        Some(_) => program.started_by(&ALONE),
        None => program,
    };
    let drivers: [Arc<dyn Driver + Send + Sync>; 5] = [
        Arc::new(EngineDriver),
        Arc::new(MemoryDriver),
        Arc::new(StdioDriver::new(program.clone())),
        Arc::new(HookDriver::new(program.clone())),
        Arc::new(ProxyDriver::new(program)),
    ];
    let wanted = wanted(&arguments);
    let trials = match load_corpus(&root().join("scenarios"), wanted.as_deref()) {
        Ok(corpus) => {
            let corpus: Vec<Arc<Scenario>> = corpus.into_iter().map(Arc::new).collect();
            drivers.iter().flat_map(|driver| trials(driver, &corpus)).collect()
        }
        // A corpus that can't be read is one test that fails, not no tests.
        Err(error) => {
            let problem = error.to_string();
            vec![Trial::test("corpus::loads", move || Err(Failed::from(problem)))]
        }
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The one scenario that is asked for by the exact name of its test: a runner
/// that starts a process a test should not read the whole corpus in each.
fn wanted(arguments: &Arguments) -> Option<String> {
    let test = arguments.filter.as_ref().filter(|_| arguments.exact && !arguments.list)?;
    let (_driver, scenario) = test.split_once("::")?;
    scenario.contains("::").then(|| scenario.replace("::", "/"))
}

/// The tests of one driver: its baseline, and every scenario against it.
fn trials(driver: &Arc<dyn Driver + Send + Sync>, corpus: &[Arc<Scenario>]) -> Vec<Trial> {
    let name = driver.name();
    let baseline = Arc::new(Baseline::load(name));
    let names: Vec<String> = corpus.iter().map(|scenario| scenario.name.clone()).collect();
    let fits = Arc::clone(&baseline);
    let mut trials = vec![Trial::test(format!("{name}::baseline"), move || {
        let baseline = loaded(&fits)?;
        baseline.check(names.iter().map(String::as_str)).map_err(Failed::from)
    })];
    trials.extend(corpus.iter().map(|scenario| {
        let (driver, baseline) = (Arc::clone(driver), Arc::clone(&baseline));
        let scenario = Arc::clone(scenario);
        let test = format!("{name}::{}", scenario.name.replace('/', "::"));
        let plays = driver.plays(&scenario);
        let trial = Trial::test(test, move || {
            let played = play(driver.as_ref(), &scenario);
            loaded(&baseline)?.judge(&scenario.name, played).map_err(Failed::from)
        });
        match plays {
            Ok(()) => trial,
            Err(why) => trial.with_kind(why).with_ignored_flag(true),
        }
    }));
    trials
}

fn loaded(baseline: &Result<Baseline, BaselineError>) -> Result<&Baseline, Failed> {
    baseline.as_ref().map_err(|error| Failed::from(error.to_string()))
}
