//! Records file changes of the agent client's own tools, so that they can be undone.
//!
//! The client runs its tools, such as `Write` and `Edit`. So Jackline copies a file before the call
//! and looks at it again after the call. Each of these two steps runs in its own process, which
//! knows only the contents of the log.
//!
//! This only observes and blocks no call. A file that can't be copied is noted in the log, or
//! reported by the caller.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use super::log::{SHARED_BYTES_MAX, UndoLog, UndoLogEntry, reserve_number};
use super::{PathImage, UndoError, path_image};
use crate::jail::Jail;

/// The largest file that is copied.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// How much is copied for one session.
pub const SESSION_BYTES_MAX: u64 = 256 << 20;

/// How many links are followed to the file that is written.
const LINKS_MAX: usize = 16;

/// Records the current state of a path before a call writes it: the file, the links that lead to
/// it, and which directories do not exist yet. The path must be absolute and without dot segments.
/// `becomes` computes the new contents if they can be known before the call.
pub fn record_before_call(
    directory: &Path,
    path: &Path,
    becomes: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
) -> Result<(), UndoError> {
    let targets = find_targets(path);
    let root = Path::new("/");
    let (jail, mut log) = (Jail::open(root)?, UndoLog::open_shared(directory, root)?);
    let text = log.read_text()?;
    if text.len() as u64 >= SHARED_BYTES_MAX {
        return Ok(());
    }
    let mut logged = LoggedPaths::parse(&text, &targets.names());
    let mut entries = Vec::new();
    let made =
        targets.directories.iter().map(|made| (made, Some(PathImage::Directory { mode: None })));
    let links = targets.links.iter().map(|link| (link, None));
    for (name, becomes) in made.chain(links) {
        logged.copy_path(name, directory, &jail, &mut entries)?;
        entries.extend(becomes.map(|image| becomes_entry(name, image)));
    }
    let file = &targets.file;
    logged.copy_path(file, directory, &jail, &mut entries)?;
    if let Some(content) = becomes(read_without_following(&root.join(file)).as_deref()) {
        let image = PathImage::of_contents(&content);
        let record = logged.paths.get(file.as_str());
        if !record.is_some_and(|record| record.becomes.iter().any(|it| it.is_same_as(&image))) {
            entries.push(becomes_entry(file, image));
        }
    }
    if entries.is_empty() { Ok(()) } else { log.append_all(&entries) }
}

/// Resolves dot segments by text. Returns `None` for a path that is not absolute.
pub fn absolute_without_dots(named: &Path) -> Option<PathBuf> {
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

/// Records the state of a path after a call.
pub fn record_after_call(directory: &Path, path: &Path) -> Result<(), UndoError> {
    if !directory.join("log").exists() {
        return Ok(());
    }
    let targets = find_targets(path);
    let (jail, mut log) = (Jail::open(Path::new("/"))?, UndoLog::open(directory)?);
    let logged = LoggedPaths::parse(&log.read_text()?, &targets.names());
    let mut entries = Vec::new();
    for name in targets.links.iter().chain([&targets.file]) {
        let Some(record) = logged.paths.get(name.as_str()) else { continue };
        let Some(before) = &record.before else { continue };
        if is_too_large(name) {
            continue;
        }
        let now = path_image::read_image(&jail, name)?;
        if !record.becomes.iter().chain([before]).any(|image| image.is_same_as(&now)) {
            entries.push(becomes_entry(name, now));
        }
    }
    if entries.is_empty() { Ok(()) } else { log.append_all(&entries) }
}

/// Reads a file without blocking and without following a link.
fn read_without_following(path: &Path) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut content = Vec::new();
    let is_small = metadata.len() <= FILE_BYTES_MAX;
    let read = is_small.then(|| file.take(FILE_BYTES_MAX).read_to_end(&mut content))?;
    read.ok().map(|_| content)
}

fn becomes_entry(path: &str, image: PathImage) -> UndoLogEntry {
    UndoLogEntry::Becomes { path: path.to_owned(), image, temporary: None }
}

fn is_too_large(name: &str) -> bool {
    let metadata = fs::symlink_metadata(Path::new("/").join(name));
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() > FILE_BYTES_MAX)
}

/// The paths that a call may change when it writes one path. They are real paths, relative to `/`.
struct WriteTargets {
    /// The directories that it creates, the outermost first.
    directories: Vec<String>,
    /// The links that lead to the file. Some tools follow them, others replace them with a file.
    links: Vec<String>,
    /// The path of the file.
    file: String,
}

impl WriteTargets {
    fn names(&self) -> Vec<&str> {
        let all = self.directories.iter().chain(&self.links).chain([&self.file]);
        all.map(String::as_str).collect()
    }
}

/// Finds the paths that a call may change.
fn find_targets(path: &Path) -> WriteTargets {
    let mut links = Vec::new();
    let mut path = path.to_owned();
    loop {
        let (real, made) = resolve_real_path(&path);
        match fs::read_link(&real) {
            Ok(target) if links.len() < LINKS_MAX => {
                path = real.parent().unwrap_or(Path::new("/")).join(target);
                links.push(relative_to_root(&real));
            }
            _ => {
                let made = made.iter().map(|path| relative_to_root(path)).collect();
                return WriteTargets { directories: made, links, file: relative_to_root(&real) };
            }
        }
    }
}

/// The real path, and the directories on it that do not exist.
fn resolve_real_path(path: &Path) -> (PathBuf, Vec<PathBuf>) {
    let mut missing = Vec::new();
    let mut upper = path;
    while let (Some(parent), Some(name)) = (upper.parent(), upper.file_name()) {
        missing.push(name);
        upper = parent;
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

/// Converts a path to text. A path that is not UTF-8 gets replacement characters, and is refused
/// when its file is to be copied.
fn relative_to_root(path: &Path) -> String {
    path.strip_prefix("/").unwrap_or(path).to_string_lossy().into_owned()
}

/// The log entries of one path.
#[derive(Default)]
struct LoggedPath {
    before: Option<PathImage>,
    becomes: Vec<PathImage>,
    is_not_copied: bool,
}

/// The log entries of some paths.
struct LoggedPaths {
    paths: BTreeMap<String, LoggedPath>,
    /// How many bytes are stored.
    bytes: u64,
    /// How many copies there are.
    copies: usize,
}

impl LoggedPaths {
    /// Parses only the lines that matter, because the log grows with every call.
    fn parse(text: &[u8], paths: &[&str]) -> Self {
        let needles: Vec<String> =
            paths.iter().filter_map(|path| serde_json::to_string(path).ok()).collect();
        let finders: Vec<_> =
            needles.iter().map(|it| memchr::memmem::Finder::new(it.as_bytes())).collect();
        let mut logged = Self { paths: BTreeMap::new(), bytes: 0, copies: 0 };
        for line in text.split(|byte| *byte == b'\n') {
            if line.starts_with(b"\"rolled_back\"") {
                logged.paths.clear();
                continue;
            }
            let counts = line.starts_with(b"{\"before\"") || line.starts_with(b"{\"moved\"");
            if !counts && !finders.iter().any(|finder| finder.find(line).is_some()) {
                continue;
            }
            let Ok(entry) = serde_json::from_slice::<UndoLogEntry>(line) else { continue };
            if let UndoLogEntry::Before { bytes, .. } | UndoLogEntry::Moved { bytes, .. } = &entry {
                logged.bytes += bytes;
                logged.copies += 1;
            }
            logged.add_entry(entry, paths);
        }
        logged
    }

    fn add_entry(&mut self, entry: UndoLogEntry, paths: &[&str]) {
        let (UndoLogEntry::Before { path, .. }
        | UndoLogEntry::Moved { path, .. }
        | UndoLogEntry::Becomes { path, .. }
        | UndoLogEntry::NotKept { path, .. }) = &entry
        else {
            return;
        };
        if !paths.contains(&path.as_str()) {
            return;
        }
        let record = self.paths.entry(path.clone()).or_default();
        match entry {
            UndoLogEntry::Before { image, .. } => {
                record.before.get_or_insert(image);
            }
            UndoLogEntry::Moved { image, .. } => {
                (record.before, record.becomes) = (Some(image), Vec::new());
            }
            UndoLogEntry::Becomes { image, .. } => record.becomes.push(image),
            _ => record.is_not_copied = true,
        }
    }

    /// Copies the current file, unless it is already stored or a call of this session created its
    /// state.
    fn copy_path(
        &mut self,
        name: &str,
        directory: &Path,
        jail: &Jail,
        entries: &mut Vec<UndoLogEntry>,
    ) -> Result<(), UndoError> {
        let record = self.paths.entry(name.to_owned()).or_default();
        if record.is_not_copied {
            return Ok(());
        }
        let metadata = fs::symlink_metadata(Path::new("/").join(name));
        let bytes =
            metadata.map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 });
        let path = name.to_owned();
        let refuse = |why: String| entries.push(UndoLogEntry::NotKept { path, why });
        if name.contains(char::REPLACEMENT_CHARACTER) {
            refuse("its path is not UTF-8".to_owned());
            return Ok(());
        }
        if bytes > FILE_BYTES_MAX {
            refuse(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20));
            return Ok(());
        }
        if record.before.is_some() {
            let now = path_image::read_image(jail, name)?;
            if record.becomes.iter().chain(&record.before).any(|image| image.is_same_as(&now)) {
                return Ok(());
            }
        }
        if self.bytes + bytes > SESSION_BYTES_MAX {
            let limit_mib = SESSION_BYTES_MAX >> 20;
            refuse(format!("the copies of this session would exceed {limit_mib} MiB"));
            return Ok(());
        }
        let copy = reserve_number(directory, "", self.copies)?;
        let place = directory.join(copy.to_string());
        let image = path_image::copy_image(jail, name, &place);
        if !matches!(image, Ok(PathImage::File { .. })) {
            let _ = fs::remove_file(&place);
        }
        let image = match image {
            Err(UndoError::NotRestorable { why, .. }) => {
                refuse(format!("it {why}"));
                return Ok(());
            }
            image => image?,
        };
        (self.bytes, self.copies) = (self.bytes + bytes, copy + 1);
        let path = name.to_owned();
        let moved = record.before.is_some();
        (record.before, record.becomes) = (Some(image.clone()), Vec::new());
        entries.push(if moved {
            UndoLogEntry::Moved { path, image, copy, bytes }
        } else {
            UndoLogEntry::Before { path, image, copy, bytes, text: None }
        });
        Ok(())
    }
}
