//! Protected files come back as they were, and nothing is lost on the way.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_journal::{FileStore, MemoryStore, Store};
use jackline_runtime::restore::{Replaced, Was, give_back, keep};
use tempfile::TempDir;

struct Place {
    root: TempDir,
    store: FileStore,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = FileStore::new(root.path().join("home"), 7);
        fs::create_dir_all(root.path().join("work/.client")).unwrap();
        Self { root, store }
    }

    /// The file that is protected.
    fn file(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work/.client/settings.json")
    }

    /// Writes the file with a mode, and keeps it.
    fn kept(&self, text: &str, mode: u32) -> Was {
        fs::write(self.file(), text).unwrap();
        fs::set_permissions(self.file(), Permissions::from_mode(mode)).unwrap();
        Was::File(keep(&self.store, &self.file()).unwrap())
    }

    fn give_back(&self, was: Was) -> Replaced {
        give_back(&self.store, &self.file(), was).unwrap()
    }

    fn text(&self) -> String {
        assert!(fs::symlink_metadata(self.file()).unwrap().is_file());
        fs::read_to_string(self.file()).unwrap()
    }

    fn mode(&self) -> u32 {
        self.file().metadata().unwrap().permissions().mode() & 0o7777
    }

    /// What is beside the file.
    fn beside(&self) -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let entries = fs::read_dir(self.file().parent().unwrap()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
        names.sort();
        names
    }

    /// What the store keeps of a version that was in the way.
    fn saved(&self, replaced: &Replaced) -> Vec<u8> {
        assert_eq!(replaced.aside, None);
        self.store.blob(&replaced.sha256.unwrap()).unwrap().unwrap()
    }
}

#[test]
fn what_is_kept_is_private_and_kept_once() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    assert_eq!(was, Was::File(Digest::of(b"{}")));
    assert_eq!(place.kept("{}", 0o644), was);
    let blobs: Vec<PathBuf> = fs::read_dir(place.root.path().join("home/blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(blobs.len(), 1);
    assert_eq!(blobs[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_changed_file_comes_back_with_its_mode_and_the_change_is_kept() {
    let place = Place::new();
    let was = place.kept("{}", 0o640);
    fs::write(place.file(), "changed").unwrap();
    let replaced = place.give_back(was);
    assert_eq!((place.text().as_str(), place.mode()), ("{}", 0o640));
    assert_eq!(place.saved(&replaced), b"changed");
    assert_eq!(place.beside(), ["settings.json"]);
}

#[test]
fn a_file_that_was_shut_can_be_read_again() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    fs::write(place.file(), "changed").unwrap();
    fs::set_permissions(place.file(), Permissions::from_mode(0o000)).unwrap();
    place.give_back(was);
    assert_eq!((place.text().as_str(), place.mode()), ("{}", 0o400));
}

#[test]
fn a_file_in_order_is_not_touched() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    let before = place.file().metadata().unwrap().modified().unwrap();
    assert_eq!(place.give_back(was), Replaced::default());
    assert_eq!(place.file().metadata().unwrap().modified().unwrap(), before);
    fs::remove_file(place.file()).unwrap();
    assert_eq!(place.give_back(Was::Missing), Replaced::default());
    assert_eq!(place.beside(), [""; 0]);
}

#[test]
fn a_removed_file_comes_back_with_its_directory() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    fs::remove_dir_all(place.file().parent().unwrap()).unwrap();
    assert_eq!(place.give_back(was), Replaced::default());
    assert_eq!((place.text().as_str(), place.mode()), ("{}", 0o600));
}

#[test]
fn a_file_that_was_not_there_goes_and_is_kept() {
    let place = Place::new();
    fs::write(place.file(), "new").unwrap();
    let replaced = place.give_back(Was::Missing);
    assert_eq!(place.saved(&replaced), b"new");
    assert_eq!(place.beside(), [""; 0]);
}

#[test]
fn a_link_in_its_place_is_replaced_and_never_followed() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    let elsewhere = place.root.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    for was in [was, Was::Missing] {
        let _ = fs::remove_file(place.file());
        symlink(&elsewhere, place.file()).unwrap();
        let replaced = place.give_back(was);
        assert_eq!(place.saved(&replaced), elsewhere.to_str().unwrap().as_bytes());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    }
    assert_eq!(place.beside(), [""; 0]);
    symlink(&elsewhere, place.file()).unwrap();
    place.give_back(was);
    assert_eq!(place.text(), "{}");
}

#[test]
fn a_directory_that_became_a_link_is_not_written_through() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    let (parent, elsewhere) = (place.root.path().join("work/.client"), place.root.path().join("e"));
    fs::rename(&parent, place.root.path().join("moved")).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("settings.json"), "precious").unwrap();
    symlink(&elsewhere, &parent).unwrap();
    for was in [was, Was::Missing] {
        let error =
            give_back(&place.store, &place.root.path().join("work/.client/settings.json"), was);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(fs::read_to_string(elsewhere.join("settings.json")).unwrap(), "precious");
}

#[test]
fn what_no_store_takes_is_put_aside() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    fs::remove_file(place.file()).unwrap();
    fs::create_dir(place.file()).unwrap();
    fs::write(place.file().join("x"), "kept").unwrap();
    let aside = place.file().with_file_name("settings.json.replaced-1");
    let replaced = Replaced { sha256: None, aside: Some(aside.clone()) };
    assert_eq!(place.give_back(was), replaced);
    assert_eq!(place.text(), "{}");
    assert_eq!(fs::read_to_string(aside.join("x")).unwrap(), "kept");

    File::create(place.file()).unwrap().set_len(1 << 30).unwrap();
    let aside = place.file().with_file_name("settings.json.replaced-2");
    assert_eq!(place.give_back(Was::Missing), Replaced { sha256: None, aside: Some(aside) });
    let names = ["settings.json.replaced-1", "settings.json.replaced-2"];
    assert_eq!(place.beside(), names);
}

#[test]
fn only_a_file_of_some_size_is_kept() {
    let place = Place::new();
    let kind = |path: &Path| keep(&place.store, path).unwrap_err().kind();
    assert_eq!(kind(&place.file()), ErrorKind::NotFound);
    assert_eq!(kind(place.file().parent().unwrap()), ErrorKind::InvalidInput);
    symlink("/etc/passwd", place.file()).unwrap();
    assert!(keep(&place.store, &place.file()).is_err());
    fs::remove_file(place.file()).unwrap();
    File::create(place.file()).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(kind(&place.file()), ErrorKind::FileTooLarge);
}

#[test]
fn without_the_kept_version_nothing_is_touched() {
    let place = Place::new();
    let was = place.kept("{}", 0o644);
    fs::write(place.file(), "changed").unwrap();
    let blob = place.root.path().join("home/blobs").join(Digest::of(b"{}").to_string());
    let stays_broken = || {
        let error = give_back(&place.store, &place.file(), was).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(place.text(), "changed");
    };
    fs::write(&blob, "other").unwrap();
    stays_broken();
    fs::remove_file(&blob).unwrap();
    stays_broken();
}

#[test]
fn any_store_will_do() {
    let place = Place::new();
    let store = MemoryStore::default();
    fs::write(place.file(), "{}").unwrap();
    let was = Was::File(keep(&store, &place.file()).unwrap());
    fs::write(place.file(), "changed").unwrap();
    give_back(&store, &place.file(), was).unwrap();
    assert_eq!(place.text(), "{}");
}
