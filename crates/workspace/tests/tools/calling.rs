//! What the calls of somebody else's tools did to files, kept by a process a call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jackline_workspace::undo::{self, Would, calls};
use tempfile::TempDir;

struct Place {
    home: TempDir,
}

impl Place {
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

    /// A call that writes a file, as its tool and the hooks around it do.
    fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        calls::before(&self.log(), &path, |_| None).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        calls::after(&self.log(), &path).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Why something is not kept.
    fn not_kept(&self) -> Vec<String> {
        let plan = undo::plan(&self.log()).unwrap();
        plan.not_kept.into_iter().map(|(_, why)| why).collect()
    }
}

#[test]
fn calls_beside_each_other_do_not_take_each_others_copies() {
    let place = Place::new();
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

#[test]
fn what_a_session_keeps_is_bounded_and_so_is_its_log() {
    let place = Place::new();
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
    assert_eq!(place.not_kept(), ["more than 256 MiB would be kept of this session"]);
    // A new file takes no room.
    place.write("b", "new");
    undo::roll_back(&place.log()).unwrap();
    assert_eq!(place.read("a"), "two");
    assert!(!place.work().join("b").exists());

    let filler = format!("{}\n", " ".repeat(8 << 20));
    fs::write(&log, fs::read_to_string(&log).unwrap() + &filler).unwrap();
    place.write("c", "new");
    let plan = undo::plan(&place.log()).unwrap();
    assert!(plan.is_full && plan.steps.is_empty(), "{plan:?}");
}

#[test]
fn what_is_no_file_is_named_and_never_waited_for() {
    let place = Place::new();
    let pipe = place.work().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    calls::before(&place.log(), &pipe, |now| now.map(<[u8]>::to_vec)).unwrap();
    calls::before(&place.log(), &pipe, |now| now.map(<[u8]>::to_vec)).unwrap();
    calls::after(&place.log(), &pipe).unwrap();
    assert_eq!(place.not_kept(), ["it is neither file, directory nor link"]);
}

#[test]
fn a_link_that_leads_nowhere_leads_to_a_file_that_is_made() {
    let place = Place::new();
    std::os::unix::fs::symlink("later/file", place.work().join("link")).unwrap();
    let path = place.work().join("link");
    calls::before(&place.log(), &path, |_| None).unwrap();
    fs::create_dir(place.work().join("later")).unwrap();
    fs::write(&path, "made").unwrap();
    calls::after(&place.log(), &path).unwrap();
    let plan = undo::plan(&place.log()).unwrap();
    assert!(plan.steps.iter().all(|step| step.would == Would::TakeAway), "{plan:?}");
    undo::roll_back(&place.log()).unwrap();
    assert_eq!(fs::read_link(&path).unwrap(), Path::new("later/file"));
    assert!(!place.work().join("later").exists());
    // A link to itself is nothing that can be written, and ends.
    let circle = place.work().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    calls::before(&place.log(), &circle, |_| None).unwrap();
    calls::after(&place.log(), &circle).unwrap();
}
