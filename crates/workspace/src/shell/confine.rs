//! Keeps a command from writing outside of the workspace, where the kernel can.
//!
//! The rules hold for the thread that takes them and for all it starts. The
//! supervisor takes them on a thread that only starts the shell, and stays free
//! itself; so a command can't send a signal to the one who is to end it.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::{Confine, Confinement};

/// The newest rules that are asked for; an older kernel keeps what it knows.
const RULES: ABI = ABI::V6;

/// Devices that nobody is hurt by: writing there writes nothing, or to a terminal.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Confines the calling thread and all it starts from now on.
pub(super) fn confine(
    how: Confine,
    workspace: &Path,
    writable: &[PathBuf],
) -> Result<Confinement, String> {
    let level = match how {
        Confine::Off => return Ok(Confinement::None),
        Confine::WherePossible => CompatLevel::BestEffort,
        Confine::Required => CompatLevel::HardRequirement,
    };
    match restrict(level, workspace, writable) {
        Ok(RulesetStatus::FullyEnforced) => Ok(Confinement::Full),
        Ok(RulesetStatus::PartiallyEnforced) => Ok(Confinement::Partial),
        Ok(RulesetStatus::NotEnforced) => Ok(Confinement::None),
        Err(error) => Err(error.to_string()),
    }
}

fn restrict(
    level: CompatLevel,
    workspace: &Path,
    writable: &[PathBuf],
) -> Result<RulesetStatus, RulesetError> {
    let access = AccessFs::from_write(RULES);
    let temporary = std::env::temp_dir();
    let places = [workspace, Path::new("/tmp"), &temporary];
    let places = places.into_iter().chain(writable.iter().map(PathBuf::as_path));
    let places = places.chain(DEVICES.iter().map(Path::new));
    let ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(access)?
        .scope(Scope::Signal)?
        .create()?
        // A place that is not there needs no rule.
        .add_rules(path_beneath_rules(places, access))?;
    Ok(ruleset.restrict_self()?.ruleset)
}
