//! What our own commands have written for a person, so that the gate knows it
//! for theirs.
//!
//! A protected file that changes while a call is under way counts as the agent's
//! doing. A person who runs `jackline enforce` meanwhile must not have it taken
//! back: the command leaves the checksum of what it writes in the state home,
//! where no agent writes.

use std::fs;
use std::path::Path;

use jackline_engine::Digest;
use jackline_journal::write_private;

/// How many are remembered; the oldest give way.
const EDITS_MAX: usize = 64;

/// Remembers contents that one of our commands is about to write. What can't be
/// remembered is only compared more strictly.
pub fn vouch_for(home: &Path, contents: &[u8]) {
    let directory = home.join("edits");
    let Ok(()) = fs::create_dir_all(&directory) else { return };
    let name = Digest::of(contents).to_string();
    let _ = write_private(&directory.join(name), b"");
    let mut known: Vec<_> = fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    known.sort();
    for (_, path) in known.iter().rev().skip(EDITS_MAX) {
        let _ = fs::remove_file(path);
    }
}

/// Whether one of our commands has written these contents.
pub(crate) fn is_vouched_for(home: &Path, contents: &Digest) -> bool {
    home.join("edits").join(contents.to_string()).exists()
}
