//! Paths and links that try to leave the workspace. None of them may succeed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jackline_workspace::{ToolErrorCode, WorkspaceLimits};
use serde_json::{Value, json};

use crate::WorkspaceTrial;

const SECRET: &str = "TOP-SECRET";

/// A workspace next to a directory with a secret, with links of every kind to it.
fn workspace_with_hostile_links() -> WorkspaceTrial {
    let trial = WorkspaceTrial::new(&[("inside.txt", "fine\n"), ("dir/deep/file.txt", "fine\n")]);
    let vault = trial.outside().join("vault");
    fs::create_dir_all(vault.join("sub")).unwrap();
    fs::write(vault.join("secret.txt"), format!("{SECRET}\n")).unwrap();
    fs::write(vault.join("sub/secret.txt"), format!("{SECRET}\n")).unwrap();
    // The name of this directory starts with the name of the workspace.
    fs::create_dir_all(trial.outside().join("work-twin")).unwrap();
    fs::write(trial.outside().join("work-twin/secret.txt"), SECRET).unwrap();
    trial.link("../vault/secret.txt", "file-link");
    trial.link(vault.join("secret.txt"), "file-link-absolute");
    trial.link("../vault", "dir-link");
    trial.link(&vault, "dir-link-absolute");
    trial.link("..", "up");
    trial.link("../..", "up-up");
    trial.link("/", "slash");
    trial.link("dir-link", "chain1");
    trial.link("chain1", "chain2");
    trial.link("chain2/sub/..", "chain3");
    trial.link("../../../vault", "dir/deep/climb");
    trial.link("../dir/../../vault", "dir/zigzag");
    trial.link("/proc/self/root", "magic-root");
    trial.link("/proc/self/cwd", "magic-cwd");
    trial.link("/proc/self/fd", "magic-fd");
    trial.link("./././../vault/./sub/../secret.txt", "dotted");
    trial.link(format!("{}/../vault", trial.root().display()), "absolute-back-out");
    trial.link("../vault/new.txt", "dangling");
    trial.link("../vault/newdir", "dangling-dir");
    trial.link("loop-b", "loop-a");
    trial.link("loop-a", "loop-b");
    trial.link("../work-twin", "twin");
    trial
}

/// The contents of everything below a directory except the workspace itself.
fn contents_outside(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path == root.join("work") {
                continue;
            }
            let content = if path.is_dir() { b"dir".to_vec() } else { fs::read(&path).unwrap() };
            contents.insert(path.display().to_string(), content);
            if path.is_dir() {
                todo.push(path);
            }
        }
    }
    contents
}

fn paths(trial: &WorkspaceTrial) -> Vec<String> {
    let outside = trial.outside().display().to_string();
    let root = trial.root().display().to_string();
    let mut paths: Vec<String> = [
        "..",
        "../",
        "../vault",
        "../vault/secret.txt",
        "./../vault/secret.txt",
        ".//..//vault//secret.txt",
        "dir/../../vault/secret.txt",
        "dir/deep/../../../vault/secret.txt",
        "missing/../../vault/secret.txt",
        "../work-twin/secret.txt",
        "../work/../vault/secret.txt",
        "../../../../../../../../../../../../etc/passwd",
        "/",
        "/etc",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/dev/null",
        "/dev/stdin",
        "~",
        "~/secret.txt",
        "~/../vault/secret.txt",
        "inside.txt/../../vault/secret.txt",
        "..\u{0}/vault",
        "dir/\u{0}/../../vault",
    ]
    .map(ToOwned::to_owned)
    .to_vec();
    paths.extend([
        format!("{outside}/vault/secret.txt"),
        format!("{root}/../vault/secret.txt"),
        format!("{root}-twin/secret.txt"),
        format!("{root}/dir/../../vault/secret.txt"),
        format!("/..{outside}/vault/secret.txt"),
    ]);
    for link in [
        "dir-link",
        "dir-link-absolute",
        "chain1",
        "chain2",
        "chain3",
        "dir/deep/climb",
        "dir/zigzag",
        "absolute-back-out",
        "up/vault",
        "up/work/../vault",
        "up/work/up/vault",
        "magic-cwd/../vault",
    ] {
        paths.extend([link.to_owned(), format!("{link}/secret.txt")]);
        paths.push(format!("{link}/sub/secret.txt"));
        paths.push(format!("{link}/fresh/new.txt"));
    }
    for link in [
        "file-link",
        "file-link-absolute",
        "dotted",
        "dangling",
        "dangling-dir/new.txt",
        "twin/secret.txt",
        "loop-a",
        "loop-a/x",
        "up",
        "up-up",
        "slash",
        "slash/etc/passwd",
        "magic-root/etc/passwd",
        "magic-fd/0",
        "magic-fd/3",
        "magic-fd/3/../vault/secret.txt",
    ] {
        paths.push(link.to_owned());
    }
    paths
}

/// The calls that are tried with each path.
fn calls(path: &str) -> [(&'static str, Value); 7] {
    [
        ("read_file", json!({ "path": path })),
        ("list_dir", json!({ "path": path })),
        ("search", json!({ "pattern": SECRET, "path": path })),
        ("find_files", json!({ "glob": "*", "path": path })),
        ("find_files", json!({ "glob": path })),
        ("write_file", json!({ "path": path, "content": "owned" })),
        ("edit_file", json!({ "path": path, "old": SECRET, "new": "owned" })),
    ]
}

#[test]
fn no_path_and_no_link_leaves_the_workspace() {
    let trial = workspace_with_hostile_links();
    let before = contents_outside(trial.outside());
    let mut tried = 0;
    for path in paths(&trial) {
        for (tool, args) in calls(&path) {
            let answer = trial.call(tool, &args);
            // A search for a name that exists only outside must not find it.
            let shown = match &answer {
                Ok(output) => {
                    let mut fields = output.structured.clone();
                    fields["pattern"] = json!(null);
                    fields["glob"] = json!(null);
                    fields["path"] = json!(null);
                    fields["guidance"] = json!(null);
                    format!("{fields}")
                }
                // An error may repeat the requested path. Any other outside name is a leak.
                Err(error) => {
                    let guidance =
                        error.guidance.clone().map(|guidance| *guidance).unwrap_or_default();
                    let hints = [guidance.near, guidance.elsewhere].concat().join(" ");
                    format!("{hints} {}", error.message.replace("secret.txt", ""))
                }
            };
            assert!(!shown.contains(SECRET), "{tool} {args}: {shown}");
            assert!(!shown.contains("secret.txt"), "{tool} {args}: {shown}");
            assert!(!shown.contains("root:"), "{tool} {args}: {shown}");
            tried += 1;
        }
    }
    assert!(tried >= 150 * 3, "only {tried} attacks");
    assert_eq!(contents_outside(trial.outside()), before);
}

#[test]
fn an_escape_has_its_own_error_code() {
    let trial = workspace_with_hostile_links();
    for path in [
        "../vault/secret.txt",
        "/etc/passwd",
        "file-link",
        "dir-link/secret.txt",
        "up",
        "file-link-absolute",
        "magic-root/etc/passwd",
        "absolute-back-out/secret.txt",
        "~/x",
    ] {
        assert_eq!(
            trial.code("read_file", &json!({ "path": path })),
            ToolErrorCode::OutsideWorkspace,
            "{path}"
        );
        let write = json!({ "path": path, "content": "" });
        assert_eq!(trial.code("write_file", &write), ToolErrorCode::OutsideWorkspace, "{path}");
    }
    assert_eq!(trial.code("read_file", &json!({ "path": "loop-a" })), ToolErrorCode::TooManyLinks);
    assert_eq!(trial.code("read_file", &json!({ "path": "a\0b" })), ToolErrorCode::InvalidPath);
    assert_eq!(trial.code("read_file", &json!({ "path": "" })), ToolErrorCode::InvalidPath);
    let long = "x/".repeat(3000);
    assert_eq!(trial.code("read_file", &json!({ "path": long })), ToolErrorCode::InvalidPath);
    assert_eq!(
        trial.code("write_file", &json!({ "path": long, "content": "" })),
        ToolErrorCode::InvalidPath
    );
    assert_eq!(
        trial.code("write_file", &json!({ "path": ".", "content": "" })),
        ToolErrorCode::IsDirectory
    );
}

#[test]
fn a_walk_follows_no_link() {
    let trial = workspace_with_hostile_links();
    let answer = trial.ok("search", &json!({ "pattern": SECRET }));
    assert_eq!(answer["total_matches"], 0);
    assert!(!answer["guidance"].to_string().contains("vault"), "{answer}");
    let files = trial.ok("find_files", &json!({ "glob": "*" }));
    assert_eq!(files["files"], json!(["dir/deep/file.txt", "inside.txt"]));
}

#[test]
fn every_path_that_stays_inside_is_accepted() {
    let trial = workspace_with_hostile_links();
    trial.link("dir/deep", "short");
    trial.link(trial.root().join("dir"), "absolute");
    trial.link("../../inside.txt", "dir/deep/back");
    let root = trial.root().display().to_string();
    for (path, shown) in [
        ("inside.txt".to_owned(), "inside.txt"),
        ("./dir/../inside.txt".to_owned(), "inside.txt"),
        ("missing/../inside.txt".to_owned(), "inside.txt"),
        ("../work/inside.txt".to_owned(), "inside.txt"),
        (format!("{root}/inside.txt"), "inside.txt"),
        (format!("{root}//dir/./../inside.txt"), "inside.txt"),
        ("short/file.txt".to_owned(), "short/file.txt"),
        ("absolute/deep/file.txt".to_owned(), "absolute/deep/file.txt"),
        ("dir/deep/back".to_owned(), "dir/deep/back"),
    ] {
        let page = trial.ok("read_file", &json!({ "path": path }));
        assert_eq!(page["content"], "fine\n", "{path}");
        assert_eq!(page["path"], shown, "{path}");
    }
    let answer = trial.ok("search", &json!({ "pattern": "fine", "path": "short" }));
    assert_eq!(answer["matches"][0]["path"], "dir/deep/file.txt");
    // A link that stays inside is written through and stays a link.
    trial.ok("write_file", &json!({ "path": "dir/deep/back", "content": "new\n" }));
    assert_eq!(fs::read_to_string(trial.root().join("inside.txt")).unwrap(), "new\n");
    assert!(trial.root().join("dir/deep/back").is_symlink());
}

#[test]
fn the_root_may_be_given_with_dots_or_through_a_link() {
    let trial = workspace_with_hostile_links();
    let dotted = trial.root().join("dir/..");
    std::os::unix::fs::symlink(trial.root(), trial.outside().join("alias")).unwrap();
    for root in [dotted, trial.outside().join("alias")] {
        let other = jackline_workspace::Workspace::open(&root, WorkspaceLimits::default()).unwrap();
        for path in ["inside.txt".into(), trial.root().join("inside.txt"), root.join("inside.txt")]
        {
            let page = other.call("read_file", &json!({ "path": path })).unwrap().structured;
            assert_eq!((&page["content"], &page["path"]), (&json!("fine\n"), &json!("inside.txt")));
        }
        assert_eq!(
            other.call("search", &json!({ "pattern": "fine" })).unwrap().structured["total_matches"],
            2
        );
    }
    assert!(
        jackline_workspace::Workspace::open(
            trial.root().join("inside.txt"),
            WorkspaceLimits::default()
        )
        .is_err()
    );
}

#[test]
fn similar_looking_paths_are_different_files() {
    let trial = workspace_with_hostile_links();
    // Characters that look like a full stop, a slash and a dot.
    for path in [
        "‥/vault/secret.txt",
        "．．/vault/secret.txt",
        "..∕vault∕secret.txt",
        "..／vault／secret.txt",
        "%2e%2e/vault/secret.txt",
        "..\\vault\\secret.txt",
        "․․/vault/secret.txt",
        "dir‐link/secret.txt",
        "іnside.txt",
        "inside.txt\u{200b}",
    ] {
        assert_eq!(
            trial.code("read_file", &json!({ "path": path })),
            ToolErrorCode::NotFound,
            "{path}"
        );
    }
    // A name in composed and in decomposed form is two different files.
    trial.put("caf\u{e9}", b"composed");
    trial.put("cafe\u{301}", b"decomposed");
    let page = trial.ok("read_file", &json!({ "path": "caf\u{e9}" }));
    assert_eq!(page["content"], "composed");
}

#[test]
fn a_hard_link_to_an_outside_file_is_not_written_through() {
    let trial = workspace_with_hostile_links();
    let secret = trial.outside().join("vault/secret.txt");
    fs::hard_link(&secret, trial.root().join("hard")).unwrap();
    trial.ok("write_file", &json!({ "path": "hard", "content": "mine" }));
    assert_eq!(fs::read_to_string(&secret).unwrap(), format!("{SECRET}\n"));
}

#[test]
fn a_moved_workspace_stays_the_same_directory() {
    let trial = workspace_with_hostile_links();
    let elsewhere = trial.outside().join("moved");
    fs::rename(trial.root(), &elsewhere).unwrap();
    fs::create_dir(trial.root()).unwrap();
    fs::write(trial.root().join("inside.txt"), SECRET).unwrap();
    let page = trial.ok("read_file", &json!({ "path": "inside.txt" }));
    assert_eq!(page["content"], "fine\n");
    let answer = trial.ok("search", &json!({ "pattern": SECRET }));
    assert_eq!(answer["total_matches"], 0);
    trial.ok("write_file", &json!({ "path": "new.txt", "content": "x" }));
    assert!(elsewhere.join("new.txt").exists());
}
