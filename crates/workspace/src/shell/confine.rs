//! Prevents a command from writing outside of the workspace, if the kernel supports it (Landlock).
//!
//! The rules apply to the thread that sets them and to every process it starts. The supervisor sets
//! them on a thread that only starts the shell, so the supervisor itself stays unrestricted. The
//! command then can't send signals to the supervisor that must end it.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::{ConfineMode, Confinement};

/// The newest version of the rules. An older kernel applies the rules that it supports.
const LANDLOCK_ABI: ABI = ABI::V6;

/// Harmless devices: writing to them writes nothing, or only to a terminal or to memory.
const HARMLESS_DEVICES: [&str; 9] = [
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

/// Confines the calling thread and every process that it starts from now on.
pub(super) fn confine_thread(
    how: ConfineMode,
    workspace: &Path,
    writable: &[PathBuf],
) -> Result<Confinement, String> {
    let level = match how {
        ConfineMode::Off => return Ok(Confinement::None),
        ConfineMode::WherePossible => CompatLevel::BestEffort,
        ConfineMode::Required => CompatLevel::HardRequirement,
    };
    match apply_rules(level, workspace, writable) {
        Ok(RulesetStatus::FullyEnforced) => Ok(Confinement::Full),
        Ok(RulesetStatus::PartiallyEnforced) => Ok(Confinement::Partial),
        Ok(RulesetStatus::NotEnforced) => Ok(Confinement::None),
        Err(error) => Err(error.to_string()),
    }
}

fn apply_rules(
    level: CompatLevel,
    workspace: &Path,
    writable: &[PathBuf],
) -> Result<RulesetStatus, RulesetError> {
    let access = AccessFs::from_write(LANDLOCK_ABI);
    let temporary = std::env::temp_dir();
    let paths = [workspace, Path::new("/tmp"), &temporary];
    let paths = paths.into_iter().chain(writable.iter().map(PathBuf::as_path));
    let paths = paths.chain(HARMLESS_DEVICES.iter().map(Path::new));
    let ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(access)?
        .scope(Scope::Signal)?
        .create()?
        // A missing directory needs no rule.
        .add_rules(path_beneath_rules(paths, access))?;
    Ok(ruleset.restrict_self()?.ruleset)
}
