//! `search`: finds lines that match a regular expression, sorted by path and line.

mod file_searcher;
mod pattern;

use std::fs::File;

use rustix::fs::{FileType, OFlags, fstat};
use serde_json::{Value, json};

use crate::error::ToolError;
use crate::glob::{CaseSensitivity, GlobFilter};
use crate::jail::{file_type, require_regular_file};
use crate::suggestions;
use crate::time::SearchDeadline;
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};
use crate::walk::{TreeWalk, WalkEnd, WalkScope};
pub(crate) use file_searcher::{FileSearcher, SearchHit};
pub(crate) use pattern::{compile, escape};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "search",
        description: "Searches file contents with a regular expression (Rust syntax, one line at a \
                      time). Hidden files and files that git ignores are left out, unless `path` \
                      names them; so are binary files.",
        input_schema: schema(
            &["pattern"],
            &[
                (
                    "pattern",
                    "string",
                    "The regular expression; `(?i)` in front ignores letter case.",
                ),
                ("path", "string", "A directory or file; default: the whole workspace."),
                (
                    "glob",
                    "string",
                    "Search only files that match, such as `*.rs`; `!` in front inverts it.",
                ),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let pattern = args.text("pattern")?;
    let path = args.optional_text("path")?.unwrap_or(".");
    let glob = args.optional_text("glob")?;
    args.reject_unknown()?;
    let matcher = compile(pattern, CaseSensitivity::Sensitive)?;
    let filter = glob.map(|glob| GlobFilter::new(glob, CaseSensitivity::Sensitive)).transpose()?;
    let inside = workspace.jail.to_workspace_path(path)?;
    let limits = &workspace.limits;
    let opened = workspace.jail.open_any(&inside, OFlags::RDONLY);
    let opened =
        opened.map_err(|error| suggestions::suggest_for_missing(workspace, &inside, error))?;
    let stat = fstat(&opened).map_err(|errno| ToolError::from_errno(errno, inside.as_str()))?;
    let is_dir = file_type(&stat) == FileType::Directory;
    let start = if is_dir {
        workspace.jail.real_relative_path(&opened, &inside)
    } else {
        inside.as_path().to_owned()
    };
    let deadline = SearchDeadline::after_ms(limits.search_ms_max);
    let looker = || FileSearcher::new(matcher.clone(), filter.as_ref(), &start, limits, deadline);
    let mut merged = looker();
    let mut reached = WalkEnd::Complete;
    if is_dir {
        let (threads, entries_max) = (limits.threads(), limits.walk_entries_max);
        let (jail, scope) = (&workspace.jail, WalkScope::Visible);
        let walk = TreeWalk { jail, scope, threads, entries_max, deadline };
        let lookers;
        (lookers, reached) = walk.run(&start, (0..threads).map(|_| looker()).collect());
        lookers.into_iter().for_each(|looker| merged.merge(looker));
    } else {
        require_regular_file(&stat, &inside)?;
        merged.search_file(&File::from(opened), &start);
    }
    let request = suggestions::SearchRequest { pattern, glob, path: &inside, start: &start };
    if merged.is_timed_out {
        reached = WalkEnd::TimedOut;
    }
    Ok(render(workspace, &request, &merged, reached))
}

fn render(
    workspace: &Workspace,
    request: &suggestions::SearchRequest<'_>,
    merged: &FileSearcher<'_>,
    reached: WalkEnd,
) -> ToolAnswer {
    let limits = &workspace.limits;
    let mut text = String::new();
    let mut matches = Vec::new();
    let all =
        merged.hits_by_path.iter().flat_map(|(path, hits)| hits.iter().map(move |hit| (path, hit)));
    for (path, hit) in all.take(limits.results_max) {
        let path = path.to_string_lossy();
        let line = format!("{path}:{}:{}\n", hit.line, hit.text);
        if !matches.is_empty() && text.len() + line.len() > limits.output_bytes_max {
            break;
        }
        text.push_str(&line);
        let mut fields =
            json!({ "path": path, "line": hit.line, "column": hit.column, "text": hit.text });
        if let (true, Some(fields)) = (hit.cut, fields.as_object_mut()) {
            fields.insert("cut".to_owned(), json!(true));
        }
        matches.push(fields);
    }
    let has_more = merged.matches > matches.len() as u64;
    let shown = matches.len();
    let cut = matches.iter().any(|hit| hit.get("cut").is_some());
    let unsearched: Vec<Value> = merged
        .unsearched
        .iter()
        .map(|(path, why)| json!({ "path": path.to_string_lossy(), "reason": why }))
        .collect();
    let structured = json!({
        "pattern": request.pattern,
        "path": request.path.as_str(),
        "glob": request.glob,
        "matches_shown": shown,
        "total_matches": merged.matches,
        "files_matched": merged.files_matched,
        "has_more": has_more,
        "complete": reached == WalkEnd::Complete,
        "timed_out": reached == WalkEnd::TimedOut,
        "unsearched": unsearched,
        "matches": matches,
    });
    let mut output = ToolAnswer { text, structured };
    if has_more {
        let (total, files) = (merged.matches, merged.files_matched);
        output.add_note(&format!(
            "{shown} of {total} matching lines in {files} files; narrow the pattern, `path` or `glob`"
        ));
    }
    if cut {
        output.add_note("long lines are cut around the match");
    }
    for (path, why) in &merged.unsearched {
        output.add_note(&format!("not searched: {}: {why}", path.to_string_lossy()));
    }
    match reached {
        // If the search ran out of time, there is no time for suggestions either.
        WalkEnd::TimedOut if merged.matches == 0 => output.add_note("no matches merged so far"),
        _ if merged.matches == 0 => {
            let guidance = suggestions::suggest_after_search(
                workspace,
                request,
                merged.files_searched,
                &merged.skipped,
            );
            output.add_guidance("no matches found.", &guidance);
        }
        _ => {}
    }
    match reached {
        WalkEnd::Complete => {}
        WalkEnd::Stopped => {
            output.add_note("the tree is too large and was searched only in part; give a `path`");
        }
        WalkEnd::TimedOut => output.add_note(&format!(
            "the search stopped after {} ms and is incomplete; give a `path` or a `glob`",
            limits.search_ms_max
        )),
    }
    output
}
