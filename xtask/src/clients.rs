//! Tests with what is not part of the repository, and is fetched into a cache directory: the
//! real agent clients, MCP servers, and the official test suite of JSON Schema.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::schema_suite::{self, suite};
use crate::shell::{self, cargo, has_cargo};

/// The client whose hooks were tried, pinned: what it does with a hook is part of
/// what is proven.
const PACKAGE: &str = "@anthropic-ai/claude-code-linux-x64";
const VERSION: &str = "2.1.325";

/// Where its program is in the package.
const PROGRAM: &str = "claude";

/// What tells the tests where it is.
const VARIABLE: &str = "JACKLINE_TEST_CLAUDE";

/// MCP servers, and the client that asks them, pinned for the same reason.
const MCP_VERSION: &str = "2026.8.31";
const MCP_PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
];

/// What tells the tests where they are.
const MCP_VARIABLE: &str = "JACKLINE_TEST_MCP";

/// How many clients run at once; each takes a core.
const AT_ONCE: &str = "2";

/// What is tested.
const WHAT: [&str; 9] = [
    "--package",
    "jackline",
    "--package",
    "jackline-decode",
    "--test",
    "clients",
    "--test",
    "suite",
    "--locked",
];

/// Installs what is not there yet, and runs the tests that want it.
pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    let mut command = if has_cargo("nextest") {
        let mut command = cargo(&["nextest", "run"]);
        command.args(WHAT).args(["--run-ignored", "ignored-only", "--test-threads", AT_ONCE]);
        command
    } else {
        let mut command = cargo(&["test"]);
        command.args(WHAT).arg("--").args(["--ignored", "--test-threads", AT_ONCE]);
        command
    };
    command.args(filter).env(VARIABLE, client()?).env(MCP_VARIABLE, mcp_servers()?);
    shell::run(command.env(schema_suite::VARIABLE, suite()?))
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
        install(&cache, &place, &[&format!("{PACKAGE}@{VERSION}")])?;
    }
    if !program.is_file() {
        return Err(format!("{PACKAGE}@{VERSION} has no program `{PROGRAM}`"));
    }
    Ok(program)
}

/// Where the MCP servers are, installed if need be.
fn mcp_servers() -> Result<PathBuf, String> {
    if let Some(named) = variable(MCP_VARIABLE) {
        return Ok(named);
    }
    let cache = cache()?;
    let place = cache.join(format!("mcp-{MCP_VERSION}"));
    if !place.is_dir() {
        install(&cache, &place, &MCP_PACKAGES)?;
    }
    Ok(place)
}

fn install(cache: &Path, place: &Path, packages: &[&str]) -> Result<(), String> {
    get_npm()?;
    let installed = kept(cache, place, |unfinished| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
        shell::run(npm.arg(unfinished).args(packages))
    });
    installed.map_err(|error| {
        format!("{error}; {} is needed, or {VARIABLE} and {MCP_VARIABLE}", packages.join(", "))
    })
}

/// Keeps what is made in a directory. It is made under another name, so that what is there is
/// there completely.
pub(crate) fn kept(
    cache: &Path,
    place: &Path,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let unfinished = cache.join(format!("unfinished-{}", std::process::id()));
    let cannot = |what: &Path, error| format!("can't use `{}`: {error}", what.display());
    fs::create_dir_all(&unfinished).map_err(|error| cannot(&unfinished, error))?;
    let made = make(&unfinished).and_then(|()| {
        // Half of it from before can't be used, nor stay in the way.
        let _ = fs::remove_dir_all(place);
        fs::rename(&unfinished, place).map_err(|error| cannot(place, error))
    });
    let _ = fs::remove_dir_all(&unfinished);
    made
}

/// The client comes from npm's registry. A fresh Debian has no npm, but can get it.
fn get_npm() -> Result<(), String> {
    if Command::new("npm").arg("--version").output().is_ok() {
        return Ok(());
    }
    debian(&["npm"])
}

/// Has packages of the system installed.
pub(crate) fn debian(packages: &[&str]) -> Result<(), String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut apt = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        apt.args(["-n", "apt-get"]);
    }
    apt.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    shell::run(&mut apt)
        .map_err(|error| format!("{error}; install {}, then run this again", packages.join(", ")))
}

/// Where what is fetched for tests is kept between runs.
pub(crate) fn cache() -> Result<PathBuf, String> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = cache.ok_or("no cache directory: set XDG_CACHE_HOME or HOME")?;
    Ok(cache.join("jackline").join("clients"))
}

pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a developer's machine, not the product")]
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
