//! Reads files of a workspace: their kind, stamp and contents.

use std::cell::OnceCell;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileDetails, FileFact, FileKind, TrackedFile, declares_tests};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::links::{RealPath, is_missing, resolve_path};
use jackline_host::clock::from_system;

/// The largest file that is checked for being JSON.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// How much of a project file is read.
const PROJECT_FILE_BYTES_MAX: u64 = 1 << 20;

/// The largest file that is identified by a digest of its contents. A larger one is identified by
/// its file stamp.
const DIGEST_BYTES_MAX: u64 = 64 << 20;

/// The largest file whose lines are counted.
const LINES_BYTES_MAX: u64 = 1 << 30;

/// How much of a file is in memory while it is read.
const CHUNK_BYTES: usize = 64 << 10;

/// The largest number of files that one query may check.
const TRACKED_MAX: usize = 1024;

/// The files of this machine, with paths as a session names them.
pub(super) struct FileInspector<'w> {
    workspace: Option<&'w Path>,
    /// Resolved only when a file is read. Most events read none, and resolving needs a system call
    /// for every directory of the path.
    root: OnceCell<Option<PathBuf>>,
}

impl<'w> FileInspector<'w> {
    pub(super) fn of(workspace: Option<&'w Path>) -> Self {
        Self { workspace, root: OnceCell::new() }
    }

    /// The workspace without links; `None` if there is no such directory.
    fn root(&self) -> Option<&Path> {
        let find = || {
            let root = self.workspace.and_then(|root| root.canonicalize().ok());
            root.filter(|root| root.is_dir())
        };
        self.root.get_or_init(find).as_deref()
    }

    /// Reads a canonical path.
    pub(super) fn inspect(&self, path: &str, wants: FileDetails) -> FileFact {
        let absolute = path.starts_with('/');
        let base = match self.root() {
            Some(root) => root,
            None if absolute => Path::new("/"),
            None => return FileFact::without_details(FileKind::NoFilesystem),
        };
        let Ok(landing) = resolve_path(base, Path::new(path)) else {
            return FileFact::without_details(FileKind::Unreadable);
        };
        let name = self.canonical_name(&landing.path);
        let leads_out = !absolute && name.starts_with('/');
        let fact = if leads_out {
            // A path that names a file of the workspace must not lead to a file outside of it.
            FileFact::without_details(FileKind::Escape)
        } else {
            fact_at(&landing, wants)
        };
        FileFact { real: (name != path).then_some(name), ..fact }
    }

    /// The files whose stamp changed. Costs one system call for each unchanged file.
    pub(super) fn changed<'a>(
        &self,
        files: &'a [TrackedFile],
    ) -> impl Iterator<Item = (String, FileFact)> {
        let differs = |file: &&'a TrackedFile| self.stamp(&file.path) != Some(file.stamp);
        let thoroughly = FileDetails { contents: true, ..FileDetails::default() };
        files
            .iter()
            .take(TRACKED_MAX)
            .filter(differs)
            .map(move |file| (file.path.clone(), self.inspect(&file.path, thoroughly)))
    }

    /// The stamp of a file, following links: 0 if there is no file, `None` if it can't be read.
    /// This is one system call. The stamp contains the inode, so the links of the path need not be
    /// resolved.
    pub(super) fn stamp(&self, path: &str) -> Option<u64> {
        match fs::metadata(self.system_path(path)?) {
            Ok(found) => Some(if found.is_file() { file_stamp(&found) } else { 0 }),
            Err(error) => is_missing(error.kind()).then_some(0),
        }
    }

    /// The path for the system, with its links.
    pub(super) fn system_path(&self, path: &str) -> Option<PathBuf> {
        match self.workspace {
            Some(workspace) => Some(workspace.join(path)),
            None => path.starts_with('/').then(|| PathBuf::from(path)),
        }
    }

    /// The absolute path of a canonical path, below the resolved workspace.
    pub(super) fn absolute_path(&self, path: &str) -> Option<PathBuf> {
        match self.root() {
            // An absolute path is unchanged by `join`.
            Some(root) => Some(root.join(path)),
            None => path.starts_with('/').then(|| PathBuf::from(path)),
        }
    }

    /// The canonical name of a path without links.
    fn canonical_name(&self, path: &Path) -> String {
        let inside = self.root().and_then(|root| path.strip_prefix(root).ok());
        match inside.unwrap_or(path) {
            name if name.as_os_str().is_empty() => ".".to_owned(),
            name => name.to_string_lossy().into_owned(),
        }
    }
}

fn fact_at(landing: &RealPath, wants: FileDetails) -> FileFact {
    let Some(metadata) = &landing.metadata else {
        return FileFact::without_details(FileKind::Missing);
    };
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { FileKind::Directory } else { FileKind::Other };
        return FileFact::without_details(kind);
    }
    // The stamp is read before the contents, so a change in between changes the stamp.
    let look = file_stamp(metadata);
    let contents =
        if wants.contents { read_digest(&landing.path, metadata.len(), look) } else { None };
    FileFact {
        bytes: metadata.len(),
        modified: metadata.modified().ok().map(from_system),
        json: wants.json.then(|| metadata.len() <= JSON_BYTES_MAX && is_json(&landing.path)),
        declares_tests: wants.declares_tests.then(|| declares_tests_at(&landing.path)),
        stamp: Some(look),
        digest: contents.as_ref().map(|contents| contents.digest),
        lines: contents.and_then(|contents| contents.lines),
        ..FileFact::without_details(FileKind::File)
    }
}

/// The file stamp of a file. It uses SHA-256, because an agent can choose some of these numbers.
fn file_stamp(metadata: &Metadata) -> u64 {
    let numbers = [
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime().cast_unsigned(),
        metadata.mtime_nsec().cast_unsigned(),
        metadata.ctime().cast_unsigned(),
        metadata.ctime_nsec().cast_unsigned(),
    ];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let digest = Digest128::of(&bytes);
    digest.as_bytes().iter().take(8).fold(0, |look, byte| look << 8 | u64::from(*byte))
}

struct FileDigest {
    digest: Digest128,
    lines: Option<u64>,
}

/// The digest and the number of lines of a file, read once in chunks.
fn read_digest(path: &Path, bytes: u64, look: u64) -> Option<FileDigest> {
    let by_look = Digest128::of(&look.to_le_bytes());
    if bytes > LINES_BYTES_MAX {
        return Some(FileDigest { digest: by_look, lines: None });
    }
    let mut file = open_nonblocking(path).ok()?.take(LINES_BYTES_MAX);
    let mut hasher = (bytes <= DIGEST_BYTES_MAX).then(Sha256::new);
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut newlines, mut last) = (0, b'\n');
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => chunk.get(..read)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        if let Some(hasher) = &mut hasher {
            hasher.update(read);
        }
        newlines += read.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        last = *read.last()?;
    }
    let digest =
        hasher.map_or(by_look, |hasher| Digest::from_bytes(hasher.finalize().into()).half());
    Some(FileDigest { digest, lines: Some(newlines + u64::from(last != b'\n')) })
}

/// Opens a file for reading. It never waits, even if the file was replaced by a pipe.
fn open_nonblocking(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether a project file declares tests. A file that can't be read, or is too long, declares none.
fn declares_tests_at(path: &Path) -> bool {
    let mut text = String::new();
    let read = open_nonblocking(path)
        .and_then(|file| file.take(PROJECT_FILE_BYTES_MAX).read_to_string(&mut text));
    read.is_ok() && declares_tests(&path.to_string_lossy(), &text)
}

fn is_json(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read =
        open_nonblocking(path).and_then(|file| file.take(JSON_BYTES_MAX).read_to_end(&mut bytes));
    // Parse into values, because skipping does not check texts and numbers.
    read.is_ok() && serde_json::from_slice::<serde_json::Value>(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    const CONTENTS: FileDetails =
        FileDetails { json: false, contents: true, declares_tests: false };

    struct TestFiles {
        _root: TempDir,
        work: PathBuf,
        outside: PathBuf,
    }

    fn test_files() -> TestFiles {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (work, outside) = (base.join("work"), base.join("outside"));
        fs::create_dir_all(work.join("src")).unwrap();
        fs::create_dir(&outside).unwrap();
        TestFiles { _root: root, work, outside }
    }

    impl TestFiles {
        fn files(&self) -> FileInspector<'_> {
            FileInspector::of(Some(&self.work))
        }

        fn look_at(&self, path: &str) -> FileFact {
            self.files().inspect(path, FileDetails::default())
        }

        fn outside(&self, name: &str) -> String {
            self.outside.join(name).display().to_string()
        }
    }

    /// The kind of a file and its real path.
    fn kind_and_target(fact: &FileFact) -> (FileKind, Option<&str>) {
        (fact.kind, fact.real.as_deref())
    }

    #[test]
    fn a_file_is_identified_by_its_contents_and_lines() {
        let place = test_files();
        for (text, lines) in
            [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("a\r\nb\r\n", 2)]
        {
            fs::write(place.work.join("f"), text).unwrap();
            let fact = place.files().inspect("f", CONTENTS);
            assert_eq!((fact.kind, fact.bytes), (FileKind::File, text.len() as u64));
            assert_eq!(fact.digest, Some(Digest128::of(text.as_bytes())), "{text:?}");
            assert_eq!(fact.lines, Some(lines), "{text:?}");
            assert_eq!((fact.json, fact.real), (None, None));
        }
    }

    #[test]
    fn a_file_of_many_chunks_is_read_whole() {
        let place = test_files();
        let text = "line of text\n".repeat(20_000);
        fs::write(place.work.join("f"), &text).unwrap();
        let fact = place.files().inspect("f", CONTENTS);
        assert_eq!((fact.digest, fact.lines), (Some(Digest128::of(text.as_bytes())), Some(20_000)));
    }

    #[test]
    fn a_large_file_is_identified_by_its_stamp() {
        let place = test_files();
        let file = File::create(place.work.join("f")).unwrap();
        file.set_len(DIGEST_BYTES_MAX + 1).unwrap();
        let fact = place.files().inspect("f", CONTENTS);
        let look = fact.stamp.unwrap();
        assert_eq!(fact.digest, Some(Digest128::of(&look.to_le_bytes())));
        assert_eq!(fact.lines, Some(1));
        file.set_len(LINES_BYTES_MAX + 1).unwrap();
        let fact = place.files().inspect("f", CONTENTS);
        assert!(fact.digest.is_some() && fact.lines.is_none());
    }

    #[test]
    fn only_requested_facts_are_read() {
        let place = test_files();
        fs::write(place.work.join("f"), "{}").unwrap();
        let fact = place.look_at("f");
        assert_eq!((fact.json, fact.digest, fact.lines), (None, None, None));
        assert!(fact.stamp.is_some());
        let json = FileDetails { json: true, ..FileDetails::default() };
        assert_eq!(place.files().inspect("f", json).json, Some(true));
        fs::write(place.work.join("f"), "{").unwrap();
        assert_eq!(place.files().inspect("f", json).json, Some(false));
    }

    #[test]
    fn a_project_file_is_searched_for_tests() {
        let place = test_files();
        let wants = FileDetails { declares_tests: true, ..FileDetails::default() };
        for (name, text, expected) in [
            ("package.json", "{\"scripts\":{\"test\":\"jest\"}}", true),
            ("package.json", "{\"scripts\":{}}", false),
            ("Makefile", "test:\n\ttrue\n", true),
            ("Makefile", "all:\n\ttrue\n", false),
        ] {
            fs::write(place.work.join(name), text).unwrap();
            assert_eq!(place.files().inspect(name, wants).declares_tests, Some(expected), "{text}");
        }
        fs::write(place.work.join("Makefile"), [0xff, 0xfe]).unwrap();
        assert_eq!(place.files().inspect("Makefile", wants).declares_tests, Some(false));
        assert_eq!(place.files().inspect("none", wants).declares_tests, None);
    }

    #[test]
    fn a_file_outside_is_read_if_its_path_is_absolute() {
        let place = test_files();
        fs::write(place.outside.join("f"), "x").unwrap();
        let fact = place.files().inspect(&place.outside("f"), CONTENTS);
        assert_eq!((kind_and_target(&fact), fact.lines), ((FileKind::File, None), Some(1)));
        assert_eq!(
            kind_and_target(&place.look_at(&place.outside("none"))),
            (FileKind::Missing, None)
        );
        assert_eq!(kind_and_target(&place.look_at("/")), (FileKind::Directory, None));
        assert_eq!(kind_and_target(&place.look_at("/dev/null")), (FileKind::Other, None));
        let nowhere = FileInspector::of(None);
        assert_eq!(nowhere.inspect(&place.outside("f"), CONTENTS).kind, FileKind::File);
        assert_eq!(
            nowhere.inspect("f", CONTENTS),
            FileFact::without_details(FileKind::NoFilesystem)
        );
    }

    #[test]
    fn links_inside_report_their_target() {
        let place = test_files();
        fs::write(place.work.join("src/f"), "x").unwrap();
        symlink("src", place.work.join("dir")).unwrap();
        symlink("../new", place.work.join("src/dangling")).unwrap();
        symlink(".", place.work.join("here")).unwrap();
        assert_eq!(kind_and_target(&place.look_at("dir/f")), (FileKind::File, Some("src/f")));
        assert_eq!(kind_and_target(&place.look_at("dir")), (FileKind::Directory, Some("src")));
        assert_eq!(kind_and_target(&place.look_at("here")), (FileKind::Directory, Some(".")));
        assert_eq!(kind_and_target(&place.look_at(".")), (FileKind::Directory, None));
        assert_eq!(
            kind_and_target(&place.look_at("dir/none")),
            (FileKind::Missing, Some("src/none"))
        );
        assert_eq!(
            kind_and_target(&place.look_at("dir/dangling")),
            (FileKind::Missing, Some("new"))
        );
        let inside = place.work.join("dir/f").display().to_string();
        assert_eq!(kind_and_target(&place.look_at(&inside)), (FileKind::File, Some("src/f")));
    }

    #[test]
    fn links_that_lead_out_are_an_escape_even_if_the_target_is_missing() {
        let place = test_files();
        fs::write(place.outside.join("f"), "x").unwrap();
        symlink(&place.outside, place.work.join("out")).unwrap();
        symlink(place.outside.join("new"), place.work.join("dangling")).unwrap();
        symlink(place.work.join("src"), place.outside.join("back")).unwrap();
        for (path, end) in [("out/f", "f"), ("out/none", "none"), ("dangling", "new")] {
            let (fact, end) = (place.files().inspect(path, CONTENTS), place.outside(end));
            assert_eq!(kind_and_target(&fact), (FileKind::Escape, Some(end.as_str())), "{path}");
            assert_eq!((fact.stamp, fact.digest), (None, None), "{path}");
        }
        assert_eq!(
            kind_and_target(&place.look_at("out/back/g")),
            (FileKind::Missing, Some("src/g"))
        );
        let back = place.outside("back/g");
        assert_eq!(kind_and_target(&place.look_at(&back)), (FileKind::Missing, Some("src/g")));
    }

    #[test]
    fn a_loop_of_links_is_unreadable() {
        let place = test_files();
        symlink("b", place.work.join("a")).unwrap();
        symlink("a", place.work.join("b")).unwrap();
        assert_eq!(place.look_at("a"), FileFact::without_details(FileKind::Unreadable));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let place = test_files();
        let made = std::process::Command::new("mkfifo").arg(place.work.join("pipe")).status();
        assert!(made.unwrap().success());
        assert_eq!(
            place.files().inspect("pipe", CONTENTS),
            FileFact::without_details(FileKind::Other)
        );
        // Not even if it replaced a file at the last moment.
        assert!(open_nonblocking(&place.work.join("pipe")).is_ok());
    }

    #[test]
    fn the_stamp_changes_with_the_file() {
        let place = test_files();
        fs::write(place.work.join("f"), "one").unwrap();
        let first = place.look_at("f").stamp;
        assert_eq!(place.look_at("f").stamp, first);
        fs::write(place.work.join("f"), "three").unwrap();
        let second = place.look_at("f").stamp;
        assert_ne!(second, first);
        fs::write(place.work.join("g"), "three").unwrap();
        assert_ne!(place.look_at("g").stamp, second);
    }

    #[test]
    fn changed_files_have_a_different_stamp() {
        let place = test_files();
        for name in ["same", "other", "gone", "swapped"] {
            fs::write(place.work.join(name), "one").unwrap();
        }
        fs::write(place.outside.join("f"), "one").unwrap();
        let named = ["same", "other", "gone", "swapped"].map(str::to_owned);
        let tracked: Vec<TrackedFile> = named
            .into_iter()
            .chain([place.outside("f")])
            .map(|path| TrackedFile { stamp: place.look_at(&path).stamp.unwrap(), path })
            .collect();
        assert_eq!(place.files().changed(&tracked).count(), 0);

        fs::write(place.work.join("other"), "two\nlines").unwrap();
        fs::remove_file(place.work.join("gone")).unwrap();
        fs::remove_file(place.work.join("swapped")).unwrap();
        fs::create_dir(place.work.join("swapped")).unwrap();
        fs::write(place.outside.join("f"), "three").unwrap();
        let changed: Vec<(String, FileFact)> = place.files().changed(&tracked).collect();
        let kinds: Vec<(&str, FileKind, Option<u64>)> =
            changed.iter().map(|(path, fact)| (path.as_str(), fact.kind, fact.lines)).collect();
        let outside = place.outside("f");
        assert_eq!(
            kinds,
            [
                ("other", FileKind::File, Some(2)),
                ("gone", FileKind::Missing, None),
                ("swapped", FileKind::Directory, None),
                (outside.as_str(), FileKind::File, Some(1)),
            ]
        );
        assert_eq!(changed[0].1.digest, Some(Digest128::of(b"two\nlines")));
    }
}
