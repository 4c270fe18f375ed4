//! What the calls of an agent's own tools do to files, kept so that it can be undone.
//!
//! The tools are somebody else's: a client's `Write` and `Edit`. So what is at a path is
//! kept before such a call runs, and what it became is looked at when it has run. Every
//! call is a process of its own, which knows what the log tells and nothing else.
//!
//! This observes. What can't be kept is said in the log, or else by the caller, and holds
//! up no call.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use super::log::{Entry, Log, SHARED_BYTES_MAX, reserve};
use super::{Image, UndoError, image};
use crate::jail::Jail;

/// How large a file may be to be kept.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// How much is kept of one session.
pub const SESSION_BYTES_MAX: u64 = 256 << 20;

/// How many links are followed to the file that is written.
const LINKS_MAX: usize = 16;

/// Keeps what is at a path that a call is about to write: the file, the link that leads to
/// it, and that directories on the way are not there yet. The path is absolute and without
/// dots. `becomes` says what the call will make of the file, where that is known.
pub fn before(
    directory: &Path,
    path: &Path,
    becomes: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
) -> Result<(), UndoError> {
    let targets = targets(path);
    let root = Path::new("/");
    let (jail, mut log) = (Jail::open(root)?, Log::share(directory, root)?);
    let text = log.text()?;
    if text.len() as u64 >= SHARED_BYTES_MAX {
        return Ok(());
    }
    let mut known = Known::of(&text, &targets.names());
    let mut entries = Vec::new();
    let made = targets.made.iter().map(|made| (made, Some(Image::Directory { mode: None })));
    let links = targets.links.iter().map(|link| (link, None));
    for (name, becomes) in made.chain(links) {
        known.keep(name, directory, &jail, &mut entries)?;
        entries.extend(becomes.map(|image| becoming(name, image)));
    }
    let file = &targets.file;
    known.keep(file, directory, &jail, &mut entries)?;
    if let Some(content) = becomes(read(&root.join(file)).as_deref()) {
        let image = Image::of(&content);
        let told = known.paths.get(file.as_str());
        if !told.is_some_and(|told| told.becomes.iter().any(|it| it.is_like(&image))) {
            entries.push(becoming(file, image));
        }
    }
    if entries.is_empty() { Ok(()) } else { log.lines(&entries) }
}

/// A path as these take it: absolute, and dots go by the text alone.
pub fn plain(named: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in named.components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    (path.is_absolute() && path.file_name().is_some()).then_some(path)
}

/// Writes down what a call has made of a path.
pub fn after(directory: &Path, path: &Path) -> Result<(), UndoError> {
    if !directory.join("log").exists() {
        return Ok(());
    }
    let targets = targets(path);
    let (jail, mut log) = (Jail::open(Path::new("/"))?, Log::open(directory)?);
    let known = Known::of(&log.text()?, &targets.names());
    let mut entries = Vec::new();
    for name in targets.links.iter().chain([&targets.file]) {
        let Some(told) = known.paths.get(name.as_str()) else { continue };
        let Some(before) = &told.before else { continue };
        if is_too_large(name) {
            continue;
        }
        let now = image::look(&jail, name)?;
        if !told.becomes.iter().chain([before]).any(|image| image.is_like(&now)) {
            entries.push(becoming(name, now));
        }
    }
    if entries.is_empty() { Ok(()) } else { log.lines(&entries) }
}

/// What is in a file. It is never waited for, and no link is followed.
fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let look = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut content = Vec::new();
    let is_small = look.len() <= FILE_BYTES_MAX;
    let read = is_small.then(|| file.take(FILE_BYTES_MAX).read_to_end(&mut content))?;
    read.ok().map(|_| content)
}

fn becoming(path: &str, image: Image) -> Entry {
    Entry::Becomes { path: path.to_owned(), image, temporary: None }
}

fn is_too_large(name: &str) -> bool {
    let look = fs::symlink_metadata(Path::new("/").join(name));
    look.is_ok_and(|look| look.is_file() && look.len() > FILE_BYTES_MAX)
}

/// What a call may touch when it writes one path: real paths, relative to `/`.
struct Targets {
    /// Directories that it makes, the outermost first.
    made: Vec<String>,
    /// Links that lead to the file. Some tools follow them, others put a file in their place.
    links: Vec<String>,
    /// The file.
    file: String,
}

impl Targets {
    fn names(&self) -> Vec<&str> {
        let all = self.made.iter().chain(&self.links).chain([&self.file]);
        all.map(String::as_str).collect()
    }
}

/// Finds out what a call may touch.
fn targets(path: &Path) -> Targets {
    let mut links = Vec::new();
    let mut path = path.to_owned();
    loop {
        let (real, made) = resolve(&path);
        match fs::read_link(&real) {
            Ok(target) if links.len() < LINKS_MAX => {
                path = real.parent().unwrap_or(Path::new("/")).join(target);
                links.push(relative(&real));
            }
            _ => {
                let made = made.iter().map(|path| relative(path)).collect();
                return Targets { made, links, file: relative(&real) };
            }
        }
    }
}

/// Where a path really is, and which directories on the way are not there.
fn resolve(path: &Path) -> (PathBuf, Vec<PathBuf>) {
    let mut missing = Vec::new();
    let mut above = path;
    while let (Some(parent), Some(name)) = (above.parent(), above.file_name()) {
        missing.push(name);
        above = parent;
        if let Ok(mut real) = parent.canonicalize() {
            let mut made = Vec::new();
            while let Some(name) = missing.pop() {
                real.push(name);
                if !missing.is_empty() {
                    made.push(real.clone());
                }
            }
            return (real, made);
        }
    }
    (path.to_owned(), Vec::new())
}

/// Names that are not UTF-8 are found by nobody, and said so when they are kept.
fn relative(path: &Path) -> String {
    path.strip_prefix("/").unwrap_or(path).to_string_lossy().into_owned()
}

/// What a log tells of one path.
#[derive(Default)]
struct OfPath {
    before: Option<Image>,
    becomes: Vec<Image>,
    is_not_kept: bool,
}

/// What a log tells of some paths.
struct Known {
    paths: BTreeMap<String, OfPath>,
    /// How much is kept.
    bytes: u64,
    /// How many copies there are.
    copies: usize,
}

impl Known {
    /// Reads only the lines that matter: the log grows with every call.
    fn of(text: &[u8], paths: &[&str]) -> Self {
        let needles: Vec<String> =
            paths.iter().filter_map(|path| serde_json::to_string(path).ok()).collect();
        let finders: Vec<_> =
            needles.iter().map(|it| memchr::memmem::Finder::new(it.as_bytes())).collect();
        let mut known = Self { paths: BTreeMap::new(), bytes: 0, copies: 0 };
        for line in text.split(|byte| *byte == b'\n') {
            if line.starts_with(b"\"rolled_back\"") {
                known.paths.clear();
                continue;
            }
            let counts = line.starts_with(b"{\"before\"") || line.starts_with(b"{\"moved\"");
            if !counts && !finders.iter().any(|finder| finder.find(line).is_some()) {
                continue;
            }
            let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
            if let Entry::Before { bytes, .. } | Entry::Moved { bytes, .. } = &entry {
                known.bytes += bytes;
                known.copies += 1;
            }
            known.hear(entry, paths);
        }
        known
    }

    fn hear(&mut self, entry: Entry, paths: &[&str]) {
        let (Entry::Before { path, .. }
        | Entry::Moved { path, .. }
        | Entry::Becomes { path, .. }
        | Entry::NotKept { path, .. }) = &entry
        else {
            return;
        };
        if !paths.contains(&path.as_str()) {
            return;
        }
        let told = self.paths.entry(path.clone()).or_default();
        match entry {
            Entry::Before { image, .. } => {
                told.before.get_or_insert(image);
            }
            Entry::Moved { image, .. } => {
                (told.before, told.becomes) = (Some(image), Vec::new());
            }
            Entry::Becomes { image, .. } => told.becomes.push(image),
            _ => told.is_not_kept = true,
        }
    }

    /// Keeps what is at a path, unless it is kept or what the calls have made of it.
    fn keep(
        &mut self,
        name: &str,
        directory: &Path,
        jail: &Jail,
        entries: &mut Vec<Entry>,
    ) -> Result<(), UndoError> {
        let told = self.paths.entry(name.to_owned()).or_default();
        if told.is_not_kept {
            return Ok(());
        }
        let look = fs::symlink_metadata(Path::new("/").join(name));
        let bytes = look.map_or(0, |look| if look.is_file() { look.len() } else { 0 });
        let path = name.to_owned();
        let refuse = |why: String| entries.push(Entry::NotKept { path, why });
        if name.contains(char::REPLACEMENT_CHARACTER) {
            refuse("its path is not UTF-8".to_owned());
            return Ok(());
        }
        if bytes > FILE_BYTES_MAX {
            refuse(format!("it has more than {} MiB", FILE_BYTES_MAX >> 20));
            return Ok(());
        }
        if told.before.is_some() {
            let now = image::look(jail, name)?;
            if told.becomes.iter().chain(&told.before).any(|image| image.is_like(&now)) {
                return Ok(());
            }
        }
        if self.bytes + bytes > SESSION_BYTES_MAX {
            let most = SESSION_BYTES_MAX >> 20;
            refuse(format!("more than {most} MiB would be kept of this session"));
            return Ok(());
        }
        let copy = reserve(directory, "", self.copies)?;
        let place = directory.join(copy.to_string());
        let image = image::keep(jail, name, &place);
        if !matches!(image, Ok(Image::File { .. })) {
            let _ = fs::remove_file(&place);
        }
        let image = match image {
            Err(UndoError::NotKeepable { why, .. }) => {
                refuse(format!("it {why}"));
                return Ok(());
            }
            image => image?,
        };
        (self.bytes, self.copies) = (self.bytes + bytes, copy + 1);
        let path = name.to_owned();
        let moved = told.before.is_some();
        (told.before, told.becomes) = (Some(image.clone()), Vec::new());
        entries.push(if moved {
            Entry::Moved { path, image, copy, bytes }
        } else {
            Entry::Before { path, image, copy, bytes, text: None }
        });
        Ok(())
    }
}
