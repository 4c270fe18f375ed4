//! Links and directories that another thread swaps while tools run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::WorkspaceTrial;

const SECRET: &str = "TOP-SECRET";

/// How often each tool is called during the swaps.
const ROUNDS: usize = 400;

/// Swaps two paths atomically, again and again, until `done` is set.
fn swap(one: &Path, other: &Path, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }
}

fn workspace_with_swap_targets() -> WorkspaceTrial {
    let trial = WorkspaceTrial::new(&[("dir/file.txt", "fine\n"), ("dir/sub/file.txt", "fine\n")]);
    let vault = trial.outside().join("vault");
    fs::create_dir_all(vault.join("sub")).unwrap();
    for path in ["file.txt", "sub/file.txt", "only-there.txt"] {
        fs::write(vault.join(path), format!("{SECRET}\n")).unwrap();
    }
    // The targets are inside or outside of the workspace: `dir` is a directory at one time and a
    // link to the outside at another.
    symlink(&vault, trial.root().join("trap")).unwrap();
    symlink("../vault", trial.root().join("trap-relative")).unwrap();
    trial.put("plain.txt", b"fine\n");
    symlink(vault.join("file.txt"), trial.root().join("plain-trap")).unwrap();
    trial
}

fn assert_vault_unchanged(trial: &WorkspaceTrial) {
    let vault = trial.outside().join("vault");
    for path in ["file.txt", "sub/file.txt", "only-there.txt"] {
        assert_eq!(fs::read_to_string(vault.join(path)).unwrap(), format!("{SECRET}\n"));
    }
    let mut names: Vec<_> =
        fs::read_dir(&vault).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["file.txt", "only-there.txt", "sub"]);
    assert_eq!(fs::read_dir(vault.join("sub")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(trial.outside()).unwrap().count(), 2);
}

fn attack(trial: &WorkspaceTrial, one: &str, other: &str) {
    let done = AtomicBool::new(false);
    let (one, other) = (trial.root().join(one), trial.root().join(other));
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&one, &other, &done));
        // The other thread must end even after a panic.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..ROUNDS {
                for (tool, args) in [
                    ("read_file", json!({ "path": "dir/file.txt" })),
                    ("read_file", json!({ "path": "dir/sub/file.txt" })),
                    ("read_file", json!({ "path": "plain.txt" })),
                    ("list_dir", json!({ "path": "dir" })),
                    ("search", json!({ "pattern": "TOP|fine" })),
                    ("search", json!({ "pattern": "TOP|fine", "path": "dir" })),
                    ("find_files", json!({ "glob": "*.txt" })),
                    ("find_files", json!({ "glob": "*.txt", "path": "dir" })),
                    ("write_file", json!({ "path": "dir/file.txt", "content": "fine\n" })),
                    ("write_file", json!({ "path": "plain.txt", "content": "fine\n" })),
                    ("write_file", json!({ "path": "dir/sub/new.txt", "content": "fine\n" })),
                    (
                        "edit_file",
                        json!({ "path": "dir/sub/file.txt", "old": "fine", "new": "fine " }),
                    ),
                    (
                        "edit_file",
                        json!({ "path": "dir/sub/file.txt", "old": "fine ", "new": "fine" }),
                    ),
                ] {
                    // Some tools are slow, and one call in eight is sufficient.
                    if round % 8 != 0 && !matches!(tool, "read_file" | "list_dir" | "edit_file") {
                        continue;
                    }
                    let shown = match trial.call(tool, &args) {
                        Ok(output) => {
                            let mut fields = output.structured;
                            fields["pattern"] = json!(null);
                            fields.to_string()
                        }
                        Err(error) => error.render_text(),
                    };
                    assert!(!shown.contains("SECRET"), "{tool} {args}: {shown}");
                    assert!(!shown.contains("only-there"), "{tool} {args}: {shown}");
                }
            }
        }));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
    assert_vault_unchanged(trial);
}

#[test]
fn a_directory_swapped_with_a_link_leads_nowhere() {
    attack(&workspace_with_swap_targets(), "dir", "trap");
}

#[test]
fn a_relative_link_leads_nowhere_either() {
    attack(&workspace_with_swap_targets(), "dir", "trap-relative");
}

#[test]
fn a_nested_directory_leads_nowhere_either() {
    attack(&workspace_with_swap_targets(), "dir/sub", "trap");
}

#[test]
fn a_file_swapped_with_a_link_is_neither_read_nor_written_through() {
    attack(&workspace_with_swap_targets(), "plain.txt", "plain-trap");
}
