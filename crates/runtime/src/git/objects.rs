//! Reads versions of files from a repository. Git applies no filter to what it prints here.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::facts::HookState;

use super::{GitQuestion, input_of};

/// The largest file of the work tree that is compared.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The setting that makes a client skip all hooks, without blanks.
const NO_HOOKS_SETTING: &[u8] = b"\"disableAllHooks\":true";

/// The name by which settings start the guard.
const GUARD_NAME: &[u8] = b"jackline";

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileVersion {
    /// There is no file.
    Missing,
    /// A file, or the target of a link.
    Text(Vec<u8>),
    /// A directory or something else.
    Other,
}

impl FileVersion {
    /// The file in the work tree.
    pub(super) fn of_work_tree(path: &Path) -> Self {
        match fs::symlink_metadata(path) {
            Err(_) => Self::Missing,
            Ok(found) if found.is_symlink() => fs::read_link(path)
                .map_or(Self::Other, |target| Self::Text(target.as_os_str().as_bytes().to_vec())),
            Ok(found) if found.is_file() => read_start(path).map_or(Self::Other, Self::Text),
            Ok(_) => Self::Other,
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        *self == Self::Missing
    }

    /// Whether two versions have the same lines. Git may end the lines of the work tree otherwise.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(two)) => {
                one == two || without_carriage_returns(one) == without_carriage_returns(two)
            }
            _ => self == other,
        }
    }

    /// Whether the version makes a client run the guard.
    pub(super) fn hook_state(&self) -> HookState {
        match self {
            Self::Text(text) => hook_state_of(text),
            Self::Missing | Self::Other => HookState::Absent,
        }
    }
}

/// Whether the settings in a file make a client run the guard. Follows links, as the client does.
pub(crate) fn hook_state_at(path: &Path) -> HookState {
    read_start(path).map_or(HookState::Absent, |text| hook_state_of(&text))
}

/// Whether a settings text makes a client run the guard.
pub(crate) fn hook_state_of(text: &[u8]) -> HookState {
    let has = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let compact: Vec<u8> =
        text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if has(&compact, NO_HOOKS_SETTING) {
        HookState::Disabled
    } else if has(text, GUARD_NAME) {
        HookState::Present
    } else {
        HookState::Absent
    }
}

fn without_carriage_returns(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| *byte != b'\r').collect()
}

fn read_start(path: &Path) -> Option<Vec<u8>> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_BYTES_MAX).then_some(bytes)
}

/// The root of the work tree that contains a path. It need not be a valid repository.
pub(super) fn work_tree_root(path: &Path) -> Option<PathBuf> {
    let existing = super::nearest_directory(path).canonicalize().ok()?;
    let mut above = existing.ancestors();
    above.find(|directory| directory.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

impl GitQuestion<'_> {
    /// The versions of files in several revisions: for each revision a version of each file, or
    /// `None` if there is no such revision. The revision `:0` is the index.
    pub(super) fn versions(
        self,
        root: &Path,
        revisions: &[&str],
        files: &[&str],
    ) -> Option<Vec<Option<Vec<FileVersion>>>> {
        let is_line = |text: &&str| !text.contains('\n');
        if !revisions.iter().chain(files).all(is_line) {
            return None;
        }
        let tree = |revision: &str| match revision {
            // Any name that exists: the index always does.
            ":0" => "HEAD^{tree}".to_owned(),
            revision => format!("{revision}^{{tree}}"),
        };
        let mut names = Vec::new();
        for revision in revisions {
            names.push(tree(revision));
            names.extend(files.iter().map(|file| format!("{revision}:{file}")));
        }
        let input = input_of(names.iter().map(String::as_bytes), b"\n").ok()?;
        let output = self.run(root, &["cat-file", "--batch"], input)?;
        let mut objects = parse_objects(&output)?.into_iter();
        let mut versions = Vec::new();
        for revision in revisions {
            let exists = !objects.next()?.is_missing() || *revision == ":0";
            let found: Vec<FileVersion> = objects.by_ref().take(files.len()).collect();
            if found.len() != files.len() {
                return None;
            }
            versions.push(exists.then_some(found));
        }
        Some(versions)
    }
}

/// Parses the output of `git cat-file --batch`.
fn parse_objects(mut output: &[u8]) -> Option<Vec<FileVersion>> {
    let mut objects = Vec::new();
    while !output.is_empty() {
        let end = output.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = (output.get(..end)?, output.get(end + 1..)?);
        output = rest;
        if line.ends_with(b" missing") || line.ends_with(b" ambiguous") {
            objects.push(FileVersion::Missing);
            continue;
        }
        let mut words = std::str::from_utf8(line).ok()?.rsplit(' ');
        let size: usize = words.next()?.parse().ok()?;
        let is_blob = words.next()? == "blob";
        let contents = output.get(..size)?;
        let version =
            if is_blob { FileVersion::Text(contents.to_vec()) } else { FileVersion::Other };
        objects.push(version);
        output = output.get(size + 1..)?;
    }
    Some(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_separated_by_their_sizes() {
        let output = b"0123 blob 3\na\nb\nHEAD:x y missing\n0123 tree 0\n\n";
        let text = FileVersion::Text(b"a\nb".to_vec());
        let expected = vec![text, FileVersion::Missing, FileVersion::Other];
        assert_eq!(parse_objects(output), Some(expected));
        for cut in ["0123 blob 9\nabc", "0123 blob", "0123 blob x\n"] {
            assert_eq!(parse_objects(cut.as_bytes()), None, "{cut}");
        }
    }

    #[test]
    fn settings_guard_if_they_name_the_guard_and_hooks_are_on() {
        for (text, state) in [
            (r#"{"hooks": {"PreToolUse": "/bin/jackline hook claude"}}"#, HookState::Present),
            (r#"{"model": "x"}"#, HookState::Absent),
            (r#"{"disableAllHooks" : true, "hooks": "jackline"}"#, HookState::Disabled),
            (r#"{"disableAllHooks": false, "hooks": "jackline"}"#, HookState::Present),
            ("", HookState::Absent),
        ] {
            assert_eq!(hook_state_of(text.as_bytes()), state, "{text}");
        }
    }
}
