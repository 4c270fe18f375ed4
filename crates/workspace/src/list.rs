//! `list_dir`: what is in a directory, sorted, a page at a time.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, OFlags, statat};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::guidance::Guidance;
use crate::hints;
use crate::jail::{Inside, kind, kind_name};
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};
use crate::walk::entries;

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "list_dir",
        description: "Lists a directory of the workspace, sorted by name, with the kind of each \
                      entry and the size of files. If `has_more` is true, go on with \
                      `next_offset`.",
        input_schema: schema(
            &[],
            &[
                (
                    "path",
                    "string",
                    "The directory, relative to the workspace; its root if left out.",
                ),
                ("offset", "integer", "The first entry to show, counted from 1."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let path = args.text_if("path")?.unwrap_or(".");
    let offset = args.number_if("offset", 0)?.unwrap_or(1).max(1);
    args.finish()?;
    let inside = workspace.jail.locate(path)?;
    let opened = workspace.jail.open_dir(&inside);
    let dir = opened.map_err(|error| hints::for_missing(workspace, &inside, error))?;
    let limits = &workspace.limits;
    let (names, complete) = names(&dir, limits.walk_entries_max)
        .map_err(|errno| ToolError::system(errno, inside.as_str()))?;
    let skip = usize::try_from(offset - 1).unwrap_or(usize::MAX);
    let mut shown = Vec::new();
    let mut text = String::new();
    for (name, kind) in names.iter().skip(skip).take(limits.entries_max) {
        let (line, entry) = entry(workspace, &dir, &inside, name, *kind);
        if !shown.is_empty() && text.len() + line.len() > limits.output_bytes_max {
            break;
        }
        text.push_str(&line);
        shown.push(entry);
    }
    let next = skip.saturating_add(shown.len());
    let remaining = names.len().saturating_sub(next);
    let has_more = remaining > 0;
    let structured = json!({
        "path": inside.as_str(),
        "offset": offset,
        "entries_shown": shown.len(),
        "entries_remaining": remaining,
        "total_entries": complete.then_some(names.len()),
        "has_more": has_more,
        "next_offset": has_more.then_some(next + 1),
        "entries": shown,
    });
    let mut output = ToolOutput { text, structured };
    if has_more {
        let (total, on) = (names.len(), next + 1);
        output.note(&format!("entries {offset} to {next} of {total}; go on with offset {on}"));
    }
    if shown.is_empty() {
        let (path, count) = (inside.as_str(), names.len());
        let mut guidance = Guidance::default();
        guidance.say(&match count {
            0 => format!("`{path}` is empty."),
            _ => format!("`{path}` has {count} entries."),
        });
        output.guide("", &guidance);
    }
    Ok(output)
}

/// All names, sorted, and whether these are really all.
fn names(dir: &OwnedFd, max: u64) -> Result<(Vec<(OsString, FileType)>, bool), rustix::io::Errno> {
    let mut names = Vec::new();
    let complete = entries(dir, |name, kind| {
        names.push((name.to_owned(), kind));
        (names.len() as u64) < max
    })?;
    names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok((names, complete))
}

/// A line and the fields of an entry.
fn entry(
    workspace: &Workspace,
    dir: &OwnedFd,
    inside: &Inside,
    name: &OsString,
    hint: FileType,
) -> (String, Value) {
    let shown = name.to_string_lossy();
    let look = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let kind = look.as_ref().map_or(hint, kind);
    let mut says = String::new();
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(shown));
    entry.insert("kind".to_owned(), json!(kind_name(kind)));
    match (kind, &look) {
        (FileType::Directory, _) => says.push('/'),
        (FileType::RegularFile, Some(look)) => {
            says = format!("  {} bytes", look.st_size);
            entry.insert("size".to_owned(), json!(look.st_size));
        }
        (FileType::Symlink, _) => {
            let leads = leads_to(workspace, inside, &shown);
            says = format!("  symlink to: {leads}");
            entry.insert("leads_to".to_owned(), json!(leads));
        }
        _ => says = format!("  {}", kind_name(kind)),
    }
    if std::str::from_utf8(name.as_bytes()).is_err() {
        says.push_str("  (its name is not UTF-8)");
        entry.insert("lossy".to_owned(), json!(true));
    }
    (format!("{shown}{says}\n"), Value::Object(entry))
}

/// What is behind a link, by its kind. Where it is stays outside if it is outside.
fn leads_to(workspace: &Workspace, inside: &Inside, name: &str) -> &'static str {
    let path = format!("{}/{name}", inside.as_str());
    let opened =
        workspace.jail.locate(&path).and_then(|path| workspace.jail.open_any(&path, OFlags::PATH));
    match opened.as_ref().map(rustix::fs::fstat) {
        Ok(Ok(look)) => kind_name(kind(&look)),
        Err(error) if error.code == crate::error::Code::OutsideWorkspace => "outside",
        Ok(Err(_)) | Err(_) => "nothing",
    }
}

/// The names in a directory that are near to `name`, or contain it.
pub(crate) fn names_like(dir: BorrowedFd<'_>, name: &str, max: u64) -> Vec<String> {
    let mut looked = 0;
    let mut all = Vec::new();
    let _ = entries(dir, |entry, _| {
        looked += 1;
        all.push(entry.to_string_lossy().into_owned());
        looked < max
    });
    all.sort_unstable();
    hints::like(name, all.iter().map(String::as_str))
}
