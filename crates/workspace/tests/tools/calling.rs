//! The undo log of a client's own tools, where each call is recorded by its own process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jackline_workspace::undo::{self, UndoEffect, calls};
use tempfile::TempDir;

struct RecordedCalls {
    home: TempDir,
}

impl RecordedCalls {
    fn new() -> Self {
        let place = Self { home: TempDir::new().unwrap() };
        fs::create_dir(place.work()).unwrap();
        place
    }

    fn work(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("work")
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("state/undo/calls")
    }

    /// Writes a file as a client tool does, with the recording before and after it.
    fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        calls::record_before_call(&self.log(), &path, |_| None).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        calls::record_after_call(&self.log(), &path).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// The reasons why files were not copied.
    fn not_kept(&self) -> Vec<String> {
        let plan = undo::plan_undo(&self.log()).unwrap();
        plan.not_kept.into_iter().map(|(_, why)| why).collect()
    }
}

#[test]
fn parallel_calls_use_different_copies() {
    let place = RecordedCalls::new();
    for number in 0..24 {
        fs::write(place.work().join(number.to_string()), format!("{number} before")).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let place = &place;
            scope.spawn(move || {
                for number in 0..6 {
                    let name = (thread * 6 + number).to_string();
                    place.write(&name, "changed");
                    place.write(&name, "changed again");
                    place.write(&format!("new/{thread}/{number}"), "made");
                }
            });
        }
    });
    undo::roll_back(&place.log()).unwrap();
    for number in 0..24 {
        assert_eq!(place.read(&number.to_string()), format!("{number} before"));
    }
    assert!(!place.work().join("new").exists());
}

/// Writes a file as another program does.
fn write_elsewhere(place: &RecordedCalls, name: &str, content: &str) {
    fs::write(place.work().join(name), content).unwrap();
}

#[test]
fn an_undo_on_another_branch_does_not_use_up_the_undo() {
    let place = RecordedCalls::new();
    for name in ["f", "g"] {
        write_elsewhere(&place, name, "old");
        place.write(name, "new");
    }
    place.write("other", "made");
    // The other branch has the old files, and one file that a person wrote.
    write_elsewhere(&place, "f", "old");
    write_elsewhere(&place, "g", "old");
    write_elsewhere(&place, "other", "of a person");
    assert!(undo::undo_for_person(&place.log()).unwrap().restored.is_empty());
    // Here one file is restored, and the rest still waits.
    write_elsewhere(&place, "f", "new");
    assert_eq!(undo::undo_for_person(&place.log()).unwrap().restored.len(), 1);
    write_elsewhere(&place, "g", "new");
    write_elsewhere(&place, "other", "made");
    assert_eq!(undo::undo_for_person(&place.log()).unwrap().restored.len(), 2);
    assert_eq!((place.read("f"), place.read("g")), ("old".to_owned(), "old".to_owned()));
    assert!(!place.work().join("other").exists());
    assert!(undo::undo_for_person(&place.log()).unwrap().restored.is_empty());
}

#[test]
fn the_copies_and_the_log_of_a_session_are_bounded() {
    let place = RecordedCalls::new();
    fs::write(place.work().join("a"), "one").unwrap();
    place.write("first", "x");
    let log = place.log().join("log");
    let text = fs::read_to_string(&log).unwrap();
    let large = text.lines().nth(1).unwrap();
    let bytes = calls::SESSION_BYTES_MAX - 2;
    let large = large
        .replace("/first", "/large")
        .replace("\"copy\":0", &format!("\"copy\":1,\"bytes\":{bytes}"));
    fs::write(&log, format!("{text}{large}\n")).unwrap();
    place.write("a", "two");
    assert_eq!(place.not_kept(), ["the copies of this session would exceed 256 MiB"]);
    // A new file needs no copy.
    place.write("b", "new");
    undo::roll_back(&place.log()).unwrap();
    assert_eq!(place.read("a"), "two");
    assert!(!place.work().join("b").exists());

    let filler = format!("{}\n", " ".repeat(8 << 20));
    fs::write(&log, fs::read_to_string(&log).unwrap() + &filler).unwrap();
    place.write("c", "new");
    let plan = undo::plan_undo(&place.log()).unwrap();
    assert!(plan.is_full && plan.steps.is_empty(), "{plan:?}");
}

#[test]
fn a_special_file_is_reported_and_never_blocks() {
    let place = RecordedCalls::new();
    let pipe = place.work().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    calls::record_before_call(&place.log(), &pipe, |now| now.map(<[u8]>::to_vec)).unwrap();
    calls::record_before_call(&place.log(), &pipe, |now| now.map(<[u8]>::to_vec)).unwrap();
    calls::record_after_call(&place.log(), &pipe).unwrap();
    assert_eq!(place.not_kept(), ["it is not a file, directory or link"]);
}

#[test]
fn writing_a_dangling_link_creates_its_target() {
    let place = RecordedCalls::new();
    std::os::unix::fs::symlink("later/file", place.work().join("link")).unwrap();
    let path = place.work().join("link");
    calls::record_before_call(&place.log(), &path, |_| None).unwrap();
    fs::create_dir(place.work().join("later")).unwrap();
    fs::write(&path, "made").unwrap();
    calls::record_after_call(&place.log(), &path).unwrap();
    let plan = undo::plan_undo(&place.log()).unwrap();
    assert!(plan.steps.iter().all(|step| step.effect == UndoEffect::Remove), "{plan:?}");
    undo::roll_back(&place.log()).unwrap();
    assert_eq!(fs::read_link(&path).unwrap(), Path::new("later/file"));
    assert!(!place.work().join("later").exists());
    // A link to itself can't be written, and following it ends.
    let circle = place.work().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    calls::record_before_call(&place.log(), &circle, |_| None).unwrap();
    calls::record_after_call(&place.log(), &circle).unwrap();
}
