//! `search`: lines that match a regular expression, in the order of path and line.

mod looker;
mod pattern;

use std::fs::File;

use rustix::fs::{FileType, OFlags, fstat};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::glob::{Case, Filter};
use crate::hints;
use crate::jail::{kind, regular};
use crate::time::Deadline;
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};
use crate::walk::{Reached, Scope, Walk};
pub(crate) use looker::{Hit, Looker};
pub(crate) use pattern::{compile, escape};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "search",
        description: "Searches file contents by a regular expression (Rust syntax, one line at a \
                      time). Hidden files and what git ignores are left out, unless `path` names \
                      them; so are binary files.",
        input_schema: schema(
            &["pattern"],
            &[
                ("pattern", "string", "The regular expression; `(?i)` before it ignores case."),
                ("path", "string", "A directory or file; the whole workspace if left out."),
                ("glob", "string", "Only files that match, such as `*.rs`; `!` negates."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let pattern = args.text("pattern")?;
    let path = args.text_if("path")?.unwrap_or(".");
    let glob = args.text_if("glob")?;
    args.finish()?;
    let matcher = compile(pattern, Case::Sensitive)?;
    let filter = glob.map(|glob| Filter::new(glob, Case::Sensitive)).transpose()?;
    let inside = workspace.jail.locate(path)?;
    let limits = &workspace.limits;
    let opened = workspace.jail.open_any(&inside, OFlags::RDONLY);
    let opened = opened.map_err(|error| hints::for_missing(workspace, &inside, error))?;
    let look = fstat(&opened).map_err(|errno| ToolError::system(errno, inside.as_str()))?;
    let is_dir = kind(&look) == FileType::Directory;
    let start =
        if is_dir { workspace.jail.really(&opened, &inside) } else { inside.as_path().to_owned() };
    let deadline = Deadline::after_ms(limits.search_ms_max);
    let looker = || Looker::new(matcher.clone(), filter.as_ref(), &start, limits, deadline);
    let mut found = looker();
    let mut reached = Reached::End;
    if is_dir {
        let (threads, entries_max) = (limits.threads(), limits.walk_entries_max);
        let (jail, scope) = (&workspace.jail, Scope::Usual);
        let walk = Walk { jail, scope, threads, entries_max, deadline };
        let lookers;
        (lookers, reached) = walk.run(&start, (0..threads).map(|_| looker()).collect());
        lookers.into_iter().for_each(|looker| found.join(looker));
    } else {
        regular(&look, &inside)?;
        found.look(&File::from(opened), &start);
    }
    let asked = hints::Searched { pattern, glob, path: &inside, start: &start };
    if found.late {
        reached = Reached::Time;
    }
    Ok(render(workspace, &asked, &found, reached))
}

fn render(
    workspace: &Workspace,
    asked: &hints::Searched<'_>,
    found: &Looker<'_>,
    reached: Reached,
) -> ToolOutput {
    let limits = &workspace.limits;
    let mut text = String::new();
    let mut matches = Vec::new();
    let all = found.kept.iter().flat_map(|(path, hits)| hits.iter().map(move |hit| (path, hit)));
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
    let has_more = found.matches > matches.len() as u64;
    let shown = matches.len();
    let cut = matches.iter().any(|hit| hit.get("cut").is_some());
    let unsearched: Vec<Value> = found
        .unsearched
        .iter()
        .map(|(path, why)| json!({ "path": path.to_string_lossy(), "reason": why }))
        .collect();
    let structured = json!({
        "pattern": asked.pattern,
        "path": asked.path.as_str(),
        "glob": asked.glob,
        "matches_shown": shown,
        "total_matches": found.matches,
        "files_matched": found.files_matched,
        "has_more": has_more,
        "complete": reached == Reached::End,
        "timed_out": reached == Reached::Time,
        "unsearched": unsearched,
        "matches": matches,
    });
    let mut output = ToolOutput { text, structured };
    if has_more {
        let (total, files) = (found.matches, found.files_matched);
        output.note(&format!(
            "{shown} of {total} matching lines in {files} files; narrow the pattern, the path or the glob"
        ));
    }
    if cut {
        output.note("long lines are cut around the match");
    }
    for (path, why) in &found.unsearched {
        output.note(&format!("not searched: {}: {why}", path.to_string_lossy()));
    }
    match reached {
        // Whoever had no time for it has none for hints.
        Reached::Time if found.matches == 0 => output.note("no matches found so far"),
        _ if found.matches == 0 => {
            let guidance = hints::for_search(workspace, asked, found.looked, &found.skipped);
            output.guide("no matches found.", &guidance);
        }
        _ => {}
    }
    match reached {
        Reached::End => {}
        Reached::Bound => {
            output.note("the tree is too large, only a part was searched; give a path");
        }
        Reached::Time => output.note(&format!(
            "the time was up after {} ms, only a part was searched; give a path or a glob",
            limits.search_ms_max
        )),
    }
    output
}
