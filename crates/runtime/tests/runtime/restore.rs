//! Protected files are restored, and every replaced version is stored.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_journal::{FileStore, MemoryStore, Store};
use jackline_runtime::restore::{OriginalFile, ReplacedVersion, restore_file, store_file};
use tempfile::TempDir;

struct RestoreTest {
    root: TempDir,
    store: FileStore,
}

impl RestoreTest {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = FileStore::new(root.path().join("home"), 7);
        fs::create_dir_all(root.path().join("work/.client")).unwrap();
        Self { root, store }
    }

    /// The protected file.
    fn file(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work/.client/settings.json")
    }

    /// Writes the file with a mode, and stores it.
    fn store_with_mode(&self, text: &str, mode: u32) -> OriginalFile {
        fs::write(self.file(), text).unwrap();
        fs::set_permissions(self.file(), Permissions::from_mode(mode)).unwrap();
        OriginalFile::File(store_file(&self.store, &self.file()).unwrap())
    }

    fn restore(&self, was: OriginalFile) -> ReplacedVersion {
        restore_file(&self.store, &self.file(), was).unwrap()
    }

    fn text(&self) -> String {
        assert!(fs::symlink_metadata(self.file()).unwrap().is_file());
        fs::read_to_string(self.file()).unwrap()
    }

    fn mode(&self) -> u32 {
        self.file().metadata().unwrap().permissions().mode() & 0o7777
    }

    /// The names in the directory of the file.
    fn sibling_names(&self) -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let entries = fs::read_dir(self.file().parent().unwrap()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
        names.sort();
        names
    }

    /// The stored copy of a replaced version.
    fn stored_version(&self, replaced: &ReplacedVersion) -> Vec<u8> {
        assert_eq!(replaced.renamed_to, None);
        self.store.blob(&replaced.sha256.unwrap()).unwrap().unwrap()
    }
}

#[test]
fn stored_contents_are_private_and_stored_once() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    assert_eq!(was, OriginalFile::File(Digest::of(b"{}")));
    assert_eq!(place.store_with_mode("{}", 0o644), was);
    let blobs: Vec<PathBuf> = fs::read_dir(place.root.path().join("home/blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(blobs.len(), 1);
    assert_eq!(blobs[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_changed_file_is_restored_with_its_mode_and_the_change_is_stored() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o640);
    fs::write(place.file(), "changed").unwrap();
    let replaced = place.restore(was);
    assert_eq!((place.text().as_str(), place.mode()), ("{}", 0o640));
    assert_eq!(place.stored_version(&replaced), b"changed");
    assert_eq!(place.sibling_names(), ["settings.json"]);
}

#[test]
fn a_restored_file_is_readable() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    fs::write(place.file(), "changed").unwrap();
    fs::set_permissions(place.file(), Permissions::from_mode(0o000)).unwrap();
    place.restore(was);
    assert_eq!((place.text().as_str(), place.mode()), ("{}", 0o400));
}

#[test]
fn an_unchanged_file_is_not_touched() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    let before = place.file().metadata().unwrap().modified().unwrap();
    assert_eq!(place.restore(was), ReplacedVersion::default());
    assert_eq!(place.file().metadata().unwrap().modified().unwrap(), before);
    fs::remove_file(place.file()).unwrap();
    assert_eq!(place.restore(OriginalFile::Missing), ReplacedVersion::default());
    assert_eq!(place.sibling_names(), [""; 0]);
}

#[test]
fn a_removed_file_is_restored_with_its_directory() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    fs::remove_dir_all(place.file().parent().unwrap()).unwrap();
    assert_eq!(place.restore(was), ReplacedVersion::default());
    assert_eq!((place.text().as_str(), place.mode()), ("{}", 0o600));
}

#[test]
fn a_new_file_is_removed_and_stored() {
    let place = RestoreTest::new();
    fs::write(place.file(), "new").unwrap();
    let replaced = place.restore(OriginalFile::Missing);
    assert_eq!(place.stored_version(&replaced), b"new");
    assert_eq!(place.sibling_names(), [""; 0]);
}

#[test]
fn a_link_at_the_path_is_replaced_and_never_followed() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    let elsewhere = place.root.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    for was in [was, OriginalFile::Missing] {
        let _ = fs::remove_file(place.file());
        symlink(&elsewhere, place.file()).unwrap();
        let replaced = place.restore(was);
        assert_eq!(place.stored_version(&replaced), elsewhere.to_str().unwrap().as_bytes());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    }
    assert_eq!(place.sibling_names(), [""; 0]);
    symlink(&elsewhere, place.file()).unwrap();
    place.restore(was);
    assert_eq!(place.text(), "{}");
}

#[test]
fn a_directory_that_became_a_link_is_not_followed() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    let (parent, elsewhere) = (place.root.path().join("work/.client"), place.root.path().join("e"));
    fs::rename(&parent, place.root.path().join("moved")).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("settings.json"), "precious").unwrap();
    symlink(&elsewhere, &parent).unwrap();
    for was in [was, OriginalFile::Missing] {
        let error =
            restore_file(&place.store, &place.root.path().join("work/.client/settings.json"), was);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(fs::read_to_string(elsewhere.join("settings.json")).unwrap(), "precious");
}

#[test]
fn a_version_that_the_store_cannot_take_is_renamed() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    fs::remove_file(place.file()).unwrap();
    fs::create_dir(place.file()).unwrap();
    fs::write(place.file().join("x"), "kept").unwrap();
    let aside = place.file().with_file_name("settings.json.replaced-1");
    let replaced = ReplacedVersion { sha256: None, renamed_to: Some(aside.clone()) };
    assert_eq!(place.restore(was), replaced);
    assert_eq!(place.text(), "{}");
    assert_eq!(fs::read_to_string(aside.join("x")).unwrap(), "kept");

    File::create(place.file()).unwrap().set_len(1 << 30).unwrap();
    let aside = place.file().with_file_name("settings.json.replaced-2");
    assert_eq!(
        place.restore(OriginalFile::Missing),
        ReplacedVersion { sha256: None, renamed_to: Some(aside) }
    );
    let names = ["settings.json.replaced-1", "settings.json.replaced-2"];
    assert_eq!(place.sibling_names(), names);
}

#[test]
fn only_a_regular_file_of_bounded_size_is_stored() {
    let place = RestoreTest::new();
    let kind = |path: &Path| store_file(&place.store, path).unwrap_err().kind();
    assert_eq!(kind(&place.file()), ErrorKind::NotFound);
    assert_eq!(kind(place.file().parent().unwrap()), ErrorKind::InvalidInput);
    symlink("/etc/passwd", place.file()).unwrap();
    assert!(store_file(&place.store, &place.file()).is_err());
    fs::remove_file(place.file()).unwrap();
    File::create(place.file()).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(kind(&place.file()), ErrorKind::FileTooLarge);
}

#[test]
fn without_the_stored_version_no_file_is_touched() {
    let place = RestoreTest::new();
    let was = place.store_with_mode("{}", 0o644);
    fs::write(place.file(), "changed").unwrap();
    let blob = place.root.path().join("home/blobs").join(Digest::of(b"{}").to_string());
    let stays_broken = || {
        let error = restore_file(&place.store, &place.file(), was).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(place.text(), "changed");
    };
    fs::write(&blob, "other").unwrap();
    stays_broken();
    fs::remove_file(&blob).unwrap();
    stays_broken();
}

#[test]
fn every_store_can_restore_files() {
    let place = RestoreTest::new();
    let store = MemoryStore::default();
    fs::write(place.file(), "{}").unwrap();
    let was = OriginalFile::File(store_file(&store, &place.file()).unwrap());
    fs::write(place.file(), "changed").unwrap();
    restore_file(&store, &place.file(), was).unwrap();
    assert_eq!(place.text(), "{}");
}
