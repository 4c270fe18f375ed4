//! `list_dir`: lists a directory, sorted by name, one page at a time.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, OFlags, statat};
use serde_json::{Map, Value, json};

use crate::error::ToolError;
use crate::guidance::Guidance;
use crate::jail::{WorkspacePath, file_type, file_type_name};
use crate::suggestions;
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};
use crate::walk::for_each_entry;

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "list_dir",
        description: "Lists a directory of the workspace, sorted by name, with the kind of each \
                      entry and the size of files. If `has_more` is true, continue with \
                      `next_offset`.",
        input_schema: schema(
            &[],
            &[
                ("path", "string", "The directory, relative to the workspace; default: its root."),
                ("offset", "integer", "The first entry to show, counted from 1."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let path = args.optional_text("path")?.unwrap_or(".");
    let offset = args.optional_number("offset", 0)?.unwrap_or(1).max(1);
    args.reject_unknown()?;
    let inside = workspace.jail.to_workspace_path(path)?;
    let opened = workspace.jail.open_dir(&inside);
    let dir =
        opened.map_err(|error| suggestions::suggest_for_missing(workspace, &inside, error))?;
    let limits = &workspace.limits;
    let (names, complete) = read_sorted_names(&dir, limits.walk_entries_max)
        .map_err(|errno| ToolError::from_errno(errno, inside.as_str()))?;
    let skip = usize::try_from(offset - 1).unwrap_or(usize::MAX);
    let mut shown = Vec::new();
    let mut text = String::new();
    for (name, kind) in names.iter().skip(skip).take(limits.entries_max) {
        let (line, entry) = render_entry(workspace, &dir, &inside, name, *kind);
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
    let mut output = ToolAnswer { text, structured };
    if has_more {
        let (total, next_offset) = (names.len(), next + 1);
        output.add_note(&format!(
            "entries {offset} to {next} of {total}; continue with offset {next_offset}"
        ));
    }
    if shown.is_empty() {
        let (path, count) = (inside.as_str(), names.len());
        let mut guidance = Guidance::default();
        guidance.add_sentence(&match count {
            0 => format!("`{path}` is empty."),
            _ => format!("`{path}` has {count} entries."),
        });
        output.add_guidance("", &guidance);
    }
    Ok(output)
}

/// All names, sorted, and whether the list is complete.
fn read_sorted_names(
    dir: &OwnedFd,
    max: u64,
) -> Result<(Vec<(OsString, FileType)>, bool), rustix::io::Errno> {
    let mut names = Vec::new();
    let complete = for_each_entry(dir, |name, kind| {
        names.push((name.to_owned(), kind));
        (names.len() as u64) < max
    })?;
    names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok((names, complete))
}

/// The output line and the fields of one entry.
fn render_entry(
    workspace: &Workspace,
    dir: &OwnedFd,
    inside: &WorkspacePath,
    name: &OsString,
    hint: FileType,
) -> (String, Value) {
    let shown = name.to_string_lossy();
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let kind = stat.as_ref().map_or(hint, file_type);
    let mut suffix = String::new();
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(shown));
    entry.insert("kind".to_owned(), json!(file_type_name(kind)));
    match (kind, &stat) {
        (FileType::Directory, _) => suffix.push('/'),
        (FileType::RegularFile, Some(stat)) => {
            suffix = format!("  {} bytes", stat.st_size);
            entry.insert("size".to_owned(), json!(stat.st_size));
        }
        (FileType::Symlink, _) => {
            let leads = link_target_kind(workspace, inside, &shown);
            suffix = format!("  symlink to: {leads}");
            entry.insert("leads_to".to_owned(), json!(leads));
        }
        _ => suffix = format!("  {}", file_type_name(kind)),
    }
    if std::str::from_utf8(name.as_bytes()).is_err() {
        suffix.push_str("  (its name is not UTF-8)");
        entry.insert("lossy".to_owned(), json!(true));
    }
    (format!("{shown}{suffix}\n"), Value::Object(entry))
}

/// The kind of file that a link leads to. For a target outside of the workspace, the answer is only
/// `outside`.
fn link_target_kind(workspace: &Workspace, inside: &WorkspacePath, name: &str) -> &'static str {
    let path = format!("{}/{name}", inside.as_str());
    let opened = workspace
        .jail
        .to_workspace_path(&path)
        .and_then(|path| workspace.jail.open_any(&path, OFlags::PATH));
    match opened.as_ref().map(rustix::fs::fstat) {
        Ok(Ok(stat)) => file_type_name(file_type(&stat)),
        Err(error) if error.code == crate::error::ToolErrorCode::OutsideWorkspace => "outside",
        Ok(Err(_)) | Err(_) => "nothing",
    }
}

/// The names in a directory that are similar to `name` or contain it.
pub(crate) fn similar_names_in(dir: BorrowedFd<'_>, name: &str, max: u64) -> Vec<String> {
    let mut entry_count = 0;
    let mut all = Vec::new();
    let _ = for_each_entry(dir, |entry, _| {
        entry_count += 1;
        all.push(entry.to_string_lossy().into_owned());
        entry_count < max
    });
    all.sort_unstable();
    suggestions::similar_names(name, all.iter().map(String::as_str))
}
