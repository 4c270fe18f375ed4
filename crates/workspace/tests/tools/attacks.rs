//! Paths and links that try to get out. None does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jackline_workspace::{Code, Limits};
use serde_json::{Value, json};

use crate::Trial;

const SECRET: &str = "TOP-SECRET";

/// A workspace beside a directory with a secret, and links of every kind to it.
fn besieged() -> Trial {
    let trial = Trial::new(&[("inside.txt", "fine\n"), ("dir/deep/file.txt", "fine\n")]);
    let vault = trial.outside().join("vault");
    fs::create_dir_all(vault.join("sub")).unwrap();
    fs::write(vault.join("secret.txt"), format!("{SECRET}\n")).unwrap();
    fs::write(vault.join("sub/secret.txt"), format!("{SECRET}\n")).unwrap();
    // Its name begins like the workspace's.
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

/// Everything below a directory but the workspace itself.
fn photograph(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut seen = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path == root.join("work") {
                continue;
            }
            let content = if path.is_dir() { b"dir".to_vec() } else { fs::read(&path).unwrap() };
            seen.insert(path.display().to_string(), content);
            if path.is_dir() {
                todo.push(path);
            }
        }
    }
    seen
}

fn paths(trial: &Trial) -> Vec<String> {
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

/// The calls that a path is tried with.
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
fn no_path_and_no_link_leads_out() {
    let trial = besieged();
    let before = photograph(trial.outside());
    let mut tried = 0;
    for path in paths(&trial) {
        for (tool, args) in calls(&path) {
            let answer = trial.call(tool, &args);
            // Looking for a name that only exists outside must find nothing there.
            let shown = match &answer {
                Ok(output) => {
                    let mut fields = output.structured.clone();
                    fields["pattern"] = json!(null);
                    fields["glob"] = json!(null);
                    fields["path"] = json!(null);
                    fields["guidance"] = json!(null);
                    format!("{fields}")
                }
                // What was asked for may be repeated; anything else is a leak.
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
    assert_eq!(photograph(trial.outside()), before);
}

#[test]
fn escapes_have_their_own_code() {
    let trial = besieged();
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
            Code::OutsideWorkspace,
            "{path}"
        );
        let write = json!({ "path": path, "content": "" });
        assert_eq!(trial.code("write_file", &write), Code::OutsideWorkspace, "{path}");
    }
    assert_eq!(trial.code("read_file", &json!({ "path": "loop-a" })), Code::TooManyLinks);
    assert_eq!(trial.code("read_file", &json!({ "path": "a\0b" })), Code::InvalidPath);
    assert_eq!(trial.code("read_file", &json!({ "path": "" })), Code::InvalidPath);
    let long = "x/".repeat(3000);
    assert_eq!(trial.code("read_file", &json!({ "path": long })), Code::InvalidPath);
    assert_eq!(
        trial.code("write_file", &json!({ "path": long, "content": "" })),
        Code::InvalidPath
    );
    assert_eq!(trial.code("write_file", &json!({ "path": ".", "content": "" })), Code::IsDirectory);
}

#[test]
fn a_walk_follows_no_link() {
    let trial = besieged();
    let found = trial.ok("search", &json!({ "pattern": SECRET }));
    assert_eq!(found["total_matches"], 0);
    assert!(!found["guidance"].to_string().contains("vault"), "{found}");
    let files = trial.ok("find_files", &json!({ "glob": "*" }));
    assert_eq!(files["files"], json!(["dir/deep/file.txt", "inside.txt"]));
}

#[test]
fn what_stays_inside_is_fine_however_it_is_written() {
    let trial = besieged();
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
    let found = trial.ok("search", &json!({ "pattern": "fine", "path": "short" }));
    assert_eq!(found["matches"][0]["path"], "dir/deep/file.txt");
    // A link is written through as long as it stays inside, and stays a link.
    trial.ok("write_file", &json!({ "path": "dir/deep/back", "content": "new\n" }));
    assert_eq!(fs::read_to_string(trial.root().join("inside.txt")).unwrap(), "new\n");
    assert!(trial.root().join("dir/deep/back").is_symlink());
}

#[test]
fn a_root_may_be_named_with_dots_or_through_a_link() {
    let trial = besieged();
    let dotted = trial.root().join("dir/..");
    std::os::unix::fs::symlink(trial.root(), trial.outside().join("alias")).unwrap();
    for root in [dotted, trial.outside().join("alias")] {
        let other = jackline_workspace::Workspace::open(&root, Limits::default()).unwrap();
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
        jackline_workspace::Workspace::open(trial.root().join("inside.txt"), Limits::default())
            .is_err()
    );
}

#[test]
fn look_alikes_are_other_files() {
    let trial = besieged();
    // A full stop, a slash and a dot that only look like it.
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
        assert_eq!(trial.code("read_file", &json!({ "path": path })), Code::NotFound, "{path}");
    }
    // One name, composed and decomposed, is two files, and both are what they are.
    trial.put("caf\u{e9}", b"composed");
    trial.put("cafe\u{301}", b"decomposed");
    let page = trial.ok("read_file", &json!({ "path": "caf\u{e9}" }));
    assert_eq!(page["content"], "composed");
}

#[test]
fn another_name_of_a_file_outside_is_not_written_through() {
    let trial = besieged();
    let secret = trial.outside().join("vault/secret.txt");
    fs::hard_link(&secret, trial.root().join("hard")).unwrap();
    trial.ok("write_file", &json!({ "path": "hard", "content": "mine" }));
    assert_eq!(fs::read_to_string(&secret).unwrap(), format!("{SECRET}\n"));
}

#[test]
fn a_workspace_that_is_moved_stays_the_same_directory() {
    let trial = besieged();
    let elsewhere = trial.outside().join("moved");
    fs::rename(trial.root(), &elsewhere).unwrap();
    fs::create_dir(trial.root()).unwrap();
    fs::write(trial.root().join("inside.txt"), SECRET).unwrap();
    let page = trial.ok("read_file", &json!({ "path": "inside.txt" }));
    assert_eq!(page["content"], "fine\n");
    let found = trial.ok("search", &json!({ "pattern": SECRET }));
    assert_eq!(found["total_matches"], 0);
    trial.ok("write_file", &json!({ "path": "new.txt", "content": "x" }));
    assert!(elsewhere.join("new.txt").exists());
}
