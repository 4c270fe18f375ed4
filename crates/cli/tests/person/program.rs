//! `jackline` as tests start it: as if a person at a terminal had typed the command. The directory
//! looks like an installation, so that programs find each other.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The binary as it is released. It refuses to open the gate, because no terminal started the tests.
pub(crate) const RELEASED: &str = env!("CARGO_BIN_EXE_jackline");

/// The same program with recorded processes: `examples/with_person.rs`.
pub(crate) const JACKLINE: &str = concat!(env!("CARGO_BIN_EXE_jackline"), ".with-person/jackline");

/// Makes the directory of [`JACKLINE`]. Several test processes may do this at the same time.
pub(crate) fn install_person_program() {
    let to = Path::new(JACKLINE);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    link(&Path::new(RELEASED).with_file_name("examples").join("jackline"), to);
    let sandbox = Path::new(RELEASED).with_file_name("jackline-sandbox");
    if sandbox.is_file() {
        link(&sandbox, &to.with_file_name("jackline-sandbox"));
    }
}

fn link(from: &Path, to: &Path) {
    let number = |path: &Path| fs::metadata(path).map(|file| file.ino()).ok();
    if number(from) == number(to) {
        return;
    }
    let new = to.with_file_name(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    fs::hard_link(from, &new).unwrap();
    fs::rename(&new, to).unwrap();
    // Renaming one link of a file to another link of the same file leaves both.
    let _ = fs::remove_file(&new);
}
