//! Tests with the real agent clients, which are installed into a cache directory.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, cargo, has_cargo};

/// The client whose hooks were tried, pinned: what it does with a hook is part of
/// what is proven.
const PACKAGE: &str = "@anthropic-ai/claude-code-linux-x64";
const VERSION: &str = "2.1.325";

/// Where its program is in the package.
const PROGRAM: &str = "claude";

/// What tells the tests where it is.
const VARIABLE: &str = "JACKLINE_TEST_CLAUDE";

/// How many clients run at once; each takes a core.
const AT_ONCE: &str = "2";

/// Installs the client where it is not yet, and runs the tests that want it.
pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    let client = client()?;
    let what = ["--package", "jackline", "--test", "clients", "--locked"];
    if has_cargo("nextest") {
        let mut command = cargo(&["nextest", "run"]);
        command.args(what).args(["--run-ignored", "ignored-only", "--test-threads", AT_ONCE]);
        return shell::run(command.args(filter).env(VARIABLE, client));
    }
    let mut command = cargo(&["test"]);
    command.args(what).arg("--").args(["--ignored", "--test-threads", AT_ONCE]);
    shell::run(command.args(filter).env(VARIABLE, client))
}

/// The client's program, installed if need be.
fn client() -> Result<PathBuf, String> {
    if let Some(named) = variable(VARIABLE) {
        return Ok(named);
    }
    let cache = cache()?;
    let place = cache.join(format!("claude-{VERSION}"));
    let program = place.join("node_modules").join(PACKAGE).join(PROGRAM);
    if !program.is_file() {
        install(&cache, &place)?;
    }
    if !program.is_file() {
        return Err(format!("{PACKAGE}@{VERSION} has no program `{PROGRAM}`"));
    }
    Ok(program)
}

/// Installs under another name, so that what is there is there completely.
fn install(cache: &Path, place: &Path) -> Result<(), String> {
    let unfinished = cache.join(format!("unfinished-{}", std::process::id()));
    let cannot = |what: &Path, error| format!("can't use `{}`: {error}", what.display());
    get_npm()?;
    fs::create_dir_all(&unfinished).map_err(|error| cannot(&unfinished, error))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
    npm.arg(&unfinished).arg(format!("{PACKAGE}@{VERSION}"));
    let installed = shell::run(&mut npm).and_then(|()| {
        // Half an installation from before can't be used, nor stay in the way.
        let _ = fs::remove_dir_all(place);
        fs::rename(&unfinished, place).map_err(|error| cannot(place, error))
    });
    let _ = fs::remove_dir_all(&unfinished);
    installed
        .map_err(|error| format!("{error}; the client is needed, or its program in {VARIABLE}"))
}

/// The client comes from npm's registry. A fresh Debian has no npm, but can get it.
fn get_npm() -> Result<(), String> {
    if Command::new("npm").arg("--version").output().is_ok() {
        return Ok(());
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut apt = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        apt.args(["-n", "apt-get"]);
    }
    apt.args(["install", "--yes", "--no-install-recommends", "npm"]);
    shell::run(&mut apt).map_err(|error| format!("{error}; install npm, then run this again"))
}

/// Where clients are kept between runs.
fn cache() -> Result<PathBuf, String> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = cache.ok_or("no cache directory: set XDG_CACHE_HOME or HOME")?;
    Ok(cache.join("jackline").join("clients"))
}

fn variable(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a developer's machine, not the product")]
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
