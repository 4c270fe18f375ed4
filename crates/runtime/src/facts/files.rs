//! What is at a path, how it looks, and what is in it.

use std::cell::OnceCell;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind, Tracked, Wants};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::links::{Landing, follow, is_missing};
use jackline_host::clock::from_system;

/// The largest file that is read to see whether it is JSON.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// The largest file that is told apart by its contents; a larger one is told
/// apart by how it looks.
const DIGEST_BYTES_MAX: u64 = 64 << 20;

/// The largest file whose lines are counted.
const LINES_BYTES_MAX: u64 = 1 << 30;

/// How much of a file is in memory while it is read.
const CHUNK_BYTES: usize = 64 << 10;

/// How many files are looked at for one question.
const TRACKED_MAX: usize = 1024;

/// The files of this machine, as a session names them.
pub(super) struct Files<'w> {
    workspace: Option<&'w Path>,
    /// Found when something is looked at first: most events look at nothing, and
    /// finding it is a system call for every directory on the way.
    root: OnceCell<Option<PathBuf>>,
}

impl<'w> Files<'w> {
    pub(super) fn of(workspace: Option<&'w Path>) -> Self {
        Self { workspace, root: OnceCell::new() }
    }

    /// The workspace, without links; none where there is none to look in.
    fn root(&self) -> Option<&Path> {
        let find = || {
            let root = self.workspace.and_then(|root| root.canonicalize().ok());
            root.filter(|root| root.is_dir())
        };
        self.root.get_or_init(find).as_deref()
    }

    /// Looks at a canonical path.
    pub(super) fn look_at(&self, path: &str, wants: Wants) -> FileFact {
        let absolute = path.starts_with('/');
        let base = match self.root() {
            Some(root) => root,
            None if absolute => Path::new("/"),
            None => return FileFact::of(FileKind::NoFilesystem),
        };
        let Ok(landing) = follow(base, Path::new(path)) else {
            return FileFact::of(FileKind::Unreadable);
        };
        let name = self.name(&landing.path);
        let leads_out = !absolute && name.starts_with('/');
        let fact = if leads_out {
            // Nobody who names a file of the workspace means what is out there.
            FileFact::of(FileKind::Escape)
        } else {
            fact_at(&landing, wants)
        };
        FileFact { real: (name != path).then_some(name), ..fact }
    }

    /// Which files do not look as they did. Costs one look at each that does.
    pub(super) fn changed<'a>(
        &self,
        files: &'a [Tracked],
    ) -> impl Iterator<Item = (String, FileFact)> {
        let differs = |file: &&'a Tracked| self.glance(&file.path) != Some(file.look);
        let thoroughly = Wants { contents: true, ..Wants::default() };
        files
            .iter()
            .take(TRACKED_MAX)
            .filter(differs)
            .map(move |file| (file.path.clone(), self.look_at(&file.path, thoroughly)))
    }

    /// How a file looks, wherever links lead; 0 where there is none, nothing where
    /// nobody can tell. One system call: the look knows the inode, so the way there
    /// need not be walked.
    pub(super) fn glance(&self, path: &str) -> Option<u64> {
        match fs::metadata(self.named(path)?) {
            Ok(found) => Some(if found.is_file() { look(&found) } else { 0 }),
            Err(error) => is_missing(error.kind()).then_some(0),
        }
    }

    /// The same path for the system, with links on the way.
    pub(super) fn named(&self, path: &str) -> Option<PathBuf> {
        match self.workspace {
            Some(workspace) => Some(workspace.join(path)),
            None => path.starts_with('/').then(|| PathBuf::from(path)),
        }
    }

    /// A canonical path as the system knows it.
    pub(super) fn absolute(&self, path: &str) -> Option<PathBuf> {
        match self.root() {
            // An absolute path stays what it is.
            Some(root) => Some(root.join(path)),
            None => path.starts_with('/').then(|| PathBuf::from(path)),
        }
    }

    /// The canonical name of a path without links.
    fn name(&self, path: &Path) -> String {
        let inside = self.root().and_then(|root| path.strip_prefix(root).ok());
        match inside.unwrap_or(path) {
            name if name.as_os_str().is_empty() => ".".to_owned(),
            name => name.to_string_lossy().into_owned(),
        }
    }
}

fn fact_at(landing: &Landing, wants: Wants) -> FileFact {
    let Some(metadata) = &landing.metadata else { return FileFact::of(FileKind::Missing) };
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { FileKind::Directory } else { FileKind::Other };
        return FileFact::of(kind);
    }
    // The look is taken before the contents: a change in between shows as one.
    let look = look(metadata);
    let contents =
        if wants.contents { contents(&landing.path, metadata.len(), look) } else { None };
    FileFact {
        bytes: metadata.len(),
        modified: metadata.modified().ok().map(from_system),
        json: wants.json.then(|| metadata.len() <= JSON_BYTES_MAX && is_json(&landing.path)),
        look: Some(look),
        digest: contents.as_ref().map(|contents| contents.digest),
        lines: contents.and_then(|contents| contents.lines),
        ..FileFact::of(FileKind::File)
    }
}

/// How a file looks from outside. A sha256, because an agent chooses some of
/// these numbers.
fn look(metadata: &Metadata) -> u64 {
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

struct Contents {
    digest: Digest128,
    lines: Option<u64>,
}

/// The fingerprint and the lines of a file, read once and in pieces.
fn contents(path: &Path, bytes: u64, look: u64) -> Option<Contents> {
    let by_look = Digest128::of(&look.to_le_bytes());
    if bytes > LINES_BYTES_MAX {
        return Some(Contents { digest: by_look, lines: None });
    }
    let mut file = open(path).ok()?.take(LINES_BYTES_MAX);
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
    Some(Contents { digest, lines: Some(newlines + u64::from(last != b'\n')) })
}

/// Opens a file for reading; never waits, whatever took its place meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn is_json(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(JSON_BYTES_MAX).read_to_end(&mut bytes));
    // Into values and not past them: only that looks into texts and numbers.
    read.is_ok() && serde_json::from_slice::<serde_json::Value>(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    const CONTENTS: Wants = Wants { json: false, contents: true };

    struct Place {
        _root: TempDir,
        work: PathBuf,
        outside: PathBuf,
    }

    fn place() -> Place {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (work, outside) = (base.join("work"), base.join("outside"));
        fs::create_dir_all(work.join("src")).unwrap();
        fs::create_dir(&outside).unwrap();
        Place { _root: root, work, outside }
    }

    impl Place {
        fn files(&self) -> Files<'_> {
            Files::of(Some(&self.work))
        }

        fn look_at(&self, path: &str) -> FileFact {
            self.files().look_at(path, Wants::default())
        }

        fn outside(&self, name: &str) -> String {
            self.outside.join(name).display().to_string()
        }
    }

    /// The kind and where it really is.
    fn led(fact: &FileFact) -> (FileKind, Option<&str>) {
        (fact.kind, fact.real.as_deref())
    }

    #[test]
    fn a_file_is_known_by_its_contents_and_lines() {
        let place = place();
        for (text, lines) in
            [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("a\r\nb\r\n", 2)]
        {
            fs::write(place.work.join("f"), text).unwrap();
            let fact = place.files().look_at("f", CONTENTS);
            assert_eq!((fact.kind, fact.bytes), (FileKind::File, text.len() as u64));
            assert_eq!(fact.digest, Some(Digest128::of(text.as_bytes())), "{text:?}");
            assert_eq!(fact.lines, Some(lines), "{text:?}");
            assert_eq!((fact.json, fact.real), (None, None));
        }
    }

    #[test]
    fn a_file_of_many_chunks_is_read_whole() {
        let place = place();
        let text = "line of text\n".repeat(20_000);
        fs::write(place.work.join("f"), &text).unwrap();
        let fact = place.files().look_at("f", CONTENTS);
        assert_eq!((fact.digest, fact.lines), (Some(Digest128::of(text.as_bytes())), Some(20_000)));
    }

    #[test]
    fn a_large_file_is_known_by_its_look() {
        let place = place();
        let file = File::create(place.work.join("f")).unwrap();
        file.set_len(DIGEST_BYTES_MAX + 1).unwrap();
        let fact = place.files().look_at("f", CONTENTS);
        let look = fact.look.unwrap();
        assert_eq!(fact.digest, Some(Digest128::of(&look.to_le_bytes())));
        assert_eq!(fact.lines, Some(1));
        file.set_len(LINES_BYTES_MAX + 1).unwrap();
        let fact = place.files().look_at("f", CONTENTS);
        assert!(fact.digest.is_some() && fact.lines.is_none());
    }

    #[test]
    fn nothing_is_read_that_nobody_wants() {
        let place = place();
        fs::write(place.work.join("f"), "{}").unwrap();
        let fact = place.look_at("f");
        assert_eq!((fact.json, fact.digest, fact.lines), (None, None, None));
        assert!(fact.look.is_some());
        let json = Wants { json: true, contents: false };
        assert_eq!(place.files().look_at("f", json).json, Some(true));
        fs::write(place.work.join("f"), "{").unwrap();
        assert_eq!(place.files().look_at("f", json).json, Some(false));
    }

    #[test]
    fn a_file_outside_is_looked_at_where_it_is_named_as_such() {
        let place = place();
        fs::write(place.outside.join("f"), "x").unwrap();
        let fact = place.files().look_at(&place.outside("f"), CONTENTS);
        assert_eq!((led(&fact), fact.lines), ((FileKind::File, None), Some(1)));
        assert_eq!(led(&place.look_at(&place.outside("none"))), (FileKind::Missing, None));
        assert_eq!(led(&place.look_at("/")), (FileKind::Directory, None));
        assert_eq!(led(&place.look_at("/dev/null")), (FileKind::Other, None));
        let nowhere = Files::of(None);
        assert_eq!(nowhere.look_at(&place.outside("f"), CONTENTS).kind, FileKind::File);
        assert_eq!(nowhere.look_at("f", CONTENTS), FileFact::of(FileKind::NoFilesystem));
    }

    #[test]
    fn links_inside_say_where_they_lead() {
        let place = place();
        fs::write(place.work.join("src/f"), "x").unwrap();
        symlink("src", place.work.join("dir")).unwrap();
        symlink("../new", place.work.join("src/dangling")).unwrap();
        symlink(".", place.work.join("here")).unwrap();
        assert_eq!(led(&place.look_at("dir/f")), (FileKind::File, Some("src/f")));
        assert_eq!(led(&place.look_at("dir")), (FileKind::Directory, Some("src")));
        assert_eq!(led(&place.look_at("here")), (FileKind::Directory, Some(".")));
        assert_eq!(led(&place.look_at(".")), (FileKind::Directory, None));
        assert_eq!(led(&place.look_at("dir/none")), (FileKind::Missing, Some("src/none")));
        assert_eq!(led(&place.look_at("dir/dangling")), (FileKind::Missing, Some("new")));
        let inside = place.work.join("dir/f").display().to_string();
        assert_eq!(led(&place.look_at(&inside)), (FileKind::File, Some("src/f")));
    }

    #[test]
    fn links_that_lead_out_are_an_escape_whether_or_not_something_is_there() {
        let place = place();
        fs::write(place.outside.join("f"), "x").unwrap();
        symlink(&place.outside, place.work.join("out")).unwrap();
        symlink(place.outside.join("new"), place.work.join("dangling")).unwrap();
        symlink(place.work.join("src"), place.outside.join("back")).unwrap();
        for (path, end) in [("out/f", "f"), ("out/none", "none"), ("dangling", "new")] {
            let (fact, end) = (place.files().look_at(path, CONTENTS), place.outside(end));
            assert_eq!(led(&fact), (FileKind::Escape, Some(end.as_str())), "{path}");
            assert_eq!((fact.look, fact.digest), (None, None), "{path}");
        }
        assert_eq!(led(&place.look_at("out/back/g")), (FileKind::Missing, Some("src/g")));
        let back = place.outside("back/g");
        assert_eq!(led(&place.look_at(&back)), (FileKind::Missing, Some("src/g")));
    }

    #[test]
    fn a_loop_of_links_is_unreadable() {
        let place = place();
        symlink("b", place.work.join("a")).unwrap();
        symlink("a", place.work.join("b")).unwrap();
        assert_eq!(place.look_at("a"), FileFact::of(FileKind::Unreadable));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let place = place();
        let made = std::process::Command::new("mkfifo").arg(place.work.join("pipe")).status();
        assert!(made.unwrap().success());
        assert_eq!(place.files().look_at("pipe", CONTENTS), FileFact::of(FileKind::Other));
        // Not even where it took the place of a file in the last moment.
        assert!(open(&place.work.join("pipe")).is_ok());
    }

    #[test]
    fn the_same_file_looks_the_same_and_another_one_does_not() {
        let place = place();
        fs::write(place.work.join("f"), "one").unwrap();
        let first = place.look_at("f").look;
        assert_eq!(place.look_at("f").look, first);
        fs::write(place.work.join("f"), "three").unwrap();
        let second = place.look_at("f").look;
        assert_ne!(second, first);
        fs::write(place.work.join("g"), "three").unwrap();
        assert_ne!(place.look_at("g").look, second);
    }

    #[test]
    fn what_changed_is_what_looks_different() {
        let place = place();
        for name in ["same", "other", "gone", "swapped"] {
            fs::write(place.work.join(name), "one").unwrap();
        }
        fs::write(place.outside.join("f"), "one").unwrap();
        let named = ["same", "other", "gone", "swapped"].map(str::to_owned);
        let tracked: Vec<Tracked> = named
            .into_iter()
            .chain([place.outside("f")])
            .map(|path| Tracked { look: place.look_at(&path).look.unwrap(), path })
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
