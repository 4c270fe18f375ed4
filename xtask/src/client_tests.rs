//! Runs tests that need files which are not in the repository and are fetched into a cache
//! directory: the real agent clients, MCP servers, and the official test suite of JSON Schema.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::schema_suite::{self, suite};
use crate::shell::{self, cargo, has_cargo};

/// The version of the client with which the hooks were tested. It is pinned, because its behaviour
/// is a part of the tests.
const PACKAGE: &str = "@anthropic-ai/claude-code-linux-x64";
const VERSION: &str = "2.1.325";

/// The name of its program in the package.
const PROGRAM: &str = "claude";

/// The variable with the path of the client, for the tests.
const VARIABLE: &str = "JACKLINE_TEST_CLAUDE";

/// MCP servers and their client, pinned for the same reason.
const MCP_VERSION: &str = "2026.8.31";
const MCP_PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
];

/// The variable with the directory of the MCP packages, for the tests.
const MCP_VARIABLE: &str = "JACKLINE_TEST_MCP";

/// How many clients run at the same time. Each uses one core.
const PARALLEL_TESTS: &str = "2";

/// The packages and test targets.
const TEST_TARGETS: [&str; 9] = [
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

/// Installs what is missing, and runs the tests.
pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    let mut command = if has_cargo("nextest") {
        let mut command = cargo(&["nextest", "run"]);
        command.args(TEST_TARGETS).args([
            "--run-ignored",
            "ignored-only",
            "--test-threads",
            PARALLEL_TESTS,
        ]);
        command
    } else {
        let mut command = cargo(&["test"]);
        command.args(TEST_TARGETS).arg("--").args(["--ignored", "--test-threads", PARALLEL_TESTS]);
        command
    };
    command.args(filter).env(VARIABLE, client()?).env(MCP_VARIABLE, mcp_servers()?);
    shell::run(command.env(schema_suite::VARIABLE, suite()?))
}

/// The program of the client. It is installed if it is missing.
fn client() -> Result<PathBuf, String> {
    if let Some(path) = variable(VARIABLE) {
        return Ok(path);
    }
    let cache = cache()?;
    let directory = cache.join(format!("claude-{VERSION}"));
    let program = directory.join("node_modules").join(PACKAGE).join(PROGRAM);
    if !program.is_file() {
        install(&cache, &directory, &[&format!("{PACKAGE}@{VERSION}")])?;
    }
    if !program.is_file() {
        return Err(format!("{PACKAGE}@{VERSION} has no program `{PROGRAM}`"));
    }
    Ok(program)
}

/// The directory of the MCP servers. They are installed if they are missing.
fn mcp_servers() -> Result<PathBuf, String> {
    if let Some(path) = variable(MCP_VARIABLE) {
        return Ok(path);
    }
    let cache = cache()?;
    let directory = cache.join(format!("mcp-{MCP_VERSION}"));
    if !directory.is_dir() {
        install(&cache, &directory, &MCP_PACKAGES)?;
    }
    Ok(directory)
}

fn install(cache: &Path, directory: &Path, packages: &[&str]) -> Result<(), String> {
    ensure_npm()?;
    let installed = make_directory(cache, directory, |unfinished| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
        shell::run(npm.arg(unfinished).args(packages))
    });
    installed.map_err(|error| {
        format!("{error}; install {}, or set {VARIABLE} and {MCP_VARIABLE}", packages.join(", "))
    })
}

/// Makes a directory under a temporary name and then renames it, so that it is never incomplete.
pub(crate) fn make_directory(
    cache: &Path,
    directory: &Path,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let unfinished = cache.join(format!("unfinished-{}", std::process::id()));
    let cannot = |what: &Path, error| format!("can't use `{}`: {error}", what.display());
    fs::create_dir_all(&unfinished).map_err(|error| cannot(&unfinished, error))?;
    let made = make(&unfinished).and_then(|()| {
        // An incomplete directory of an earlier run must not stay.
        let _ = fs::remove_dir_all(directory);
        fs::rename(&unfinished, directory).map_err(|error| cannot(directory, error))
    });
    let _ = fs::remove_dir_all(&unfinished);
    made
}

/// npm installs the client. A fresh Debian has no npm, but can install it.
fn ensure_npm() -> Result<(), String> {
    if Command::new("npm").arg("--version").output().is_ok() {
        return Ok(());
    }
    install_debian_packages(&["npm"])
}

/// Installs Debian packages.
pub(crate) fn install_debian_packages(packages: &[&str]) -> Result<(), String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut apt = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        apt.args(["-n", "apt-get"]);
    }
    apt.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    shell::run(&mut apt)
        .map_err(|error| format!("{error}; install {}, then run this again", packages.join(", ")))
}

/// The cache directory for fetched test files.
pub(crate) fn cache() -> Result<PathBuf, String> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = cache.ok_or("no cache directory: set XDG_CACHE_HOME or HOME")?;
    Ok(cache.join("jackline").join("clients"))
}

pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "xtask runs on the machine of a developer and is not part of the product"
    )]
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
