//! Documents: width of the lines, links between pages, and length of the pages that newcomers read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{children, read, show};
use crate::markdown;
use crate::shell::root;

/// How wide a line of prose may be. Lines of tables and code follow their content.
const COLUMNS_MAX: usize = 200;

/// How long a page may be, in bytes.
const BYTES_MAX: [(&str, usize); 2] = [("README.md", 6 * 1024), ("ARCHITECTURE.md", 14 * 1024)];

pub(super) fn check(problems: &mut Vec<String>) {
    for (page, bytes_max) in BYTES_MAX {
        let bytes = read(&root().join(page)).len();
        if bytes > bytes_max {
            problems.push(format!("{page} has {bytes} bytes, at most {bytes_max}"));
        }
    }
    for page in pages() {
        let text = read(&page);
        for (number, line) in markdown::prose_lines(&text) {
            if line.chars().count() > COLUMNS_MAX && !line.trim_start().starts_with('|') {
                problems.push(format!(
                    "{}:{number}: the line is wider than {COLUMNS_MAX} columns",
                    show(&page)
                ));
            }
            for target in markdown::links(line) {
                if let Err(reason) = check_link(&page, &target) {
                    problems
                        .push(format!("{}:{number}: dead link `{target}`: {reason}", show(&page)));
                }
            }
        }
    }
}

/// Every Markdown file of the repository.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut open = vec![root()];
    while let Some(directory) = open.pop() {
        for path in children(&directory) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.')
            {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn check_link(page: &Path, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
    if !file.exists() {
        return Err("there is no such file".to_owned());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let anchors: BTreeSet<String> = markdown::anchors(&read(&file));
    anchors.contains(anchor).then_some(()).ok_or_else(|| "the page has no such heading".to_owned())
}
