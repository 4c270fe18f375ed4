//! Lists the functions that one `jackline hook claude` runs, so that the linker can place them next
//! to each other. A hook runs a tenth of the code of the binary. Without the list, this code is
//! scattered over the whole binary, and each page that a hook uses is a page fault.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::shell::{self, cargo, root};

/// `crates/cli/build.rs` reads this file.
const LIST: &str = "crates/cli/hook-functions.txt";

/// How often the hook runs before it is traced, so that its session and its caches exist.
const WARM_UP: usize = 5;

/// The mark before the 16-digit hash at the end of a mangled name.
const HASH: &str = "17h";

/// Writes the list. Needs valgrind.
pub(crate) fn write() -> Result<(), String> {
    // Keep the symbols, because they have the names.
    shell::run(&mut cargo(&[
        "rustc",
        "--release",
        "--locked",
        "-p",
        "jackline",
        "--bin",
        "jackline",
        "--",
        "-C",
        "strip=none",
    ]))?;
    let directory = std::env::temp_dir().join(format!("jackline-hook-{}", std::process::id()));
    let traced = trace(&directory).and_then(|trace| {
        let names = names(&trace);
        let list = names.join("\n") + "\n";
        println!("{} functions in {LIST}", names.len());
        fs::write(root().join(LIST), list).map_err(|error| format!("can't write `{LIST}`: {error}"))
    });
    let _ = fs::remove_dir_all(&directory);
    traced
}

/// Runs a hook under valgrind. Returns the functions that it ran, in the format of callgrind.
fn trace(directory: &Path) -> Result<String, String> {
    let cannot = |error| format!("can't use `{}`: {error}", directory.display());
    let work = directory.join("work");
    fs::create_dir_all(&work).map_err(cannot)?;
    fs::write(work.join("jackline.yaml"), "version: 1\nextends: [coding-agent]\n")
        .map_err(cannot)?;
    let jackline = crate::bench::target_directory()?.join("release/jackline");
    let (payload, output) = (directory.join("payload.json"), directory.join("callgrind.out"));
    for number in 0..=WARM_UP {
        let json = format!(
            r#"{{"session_id":"traced","transcript_path":"/nowhere/traced.jsonl","cwd":"{}","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"cargo test --workspace"}},"tool_use_id":"toolu_{number}"}}"#,
            work.display()
        );
        fs::write(&payload, json).map_err(cannot)?;
        let mut hook =
            Command::new(if number < WARM_UP { jackline.as_os_str() } else { "valgrind".as_ref() });
        if number == WARM_UP {
            hook.args(["--quiet", "--tool=callgrind", "--demangle=no", "--compress-strings=no"]);
            hook.arg(format!("--callgrind-out-file={}", output.display())).arg(&jackline);
        }
        hook.args(["hook", "claude"])
            .current_dir(&work)
            .stdin(File::open(&payload).map_err(cannot)?);
        hook.env("JACKLINE_HOME", directory.join("home")).env("CLAUDE_PROJECT_DIR", &work);
        shell::run(&mut hook)?;
    }
    fs::read_to_string(&output).map_err(cannot)
}

/// The names of the Rust functions in a trace, as patterns for sections. The hashes are removed,
/// because they differ between compilers and builds.
fn names(trace: &str) -> Vec<String> {
    let names =
        trace.lines().filter_map(|line| line.strip_prefix("fn=").or(line.strip_prefix("cfn=")));
    let names: BTreeSet<String> = names
        // Callgrind adds a suffix to the second call of a recursive function.
        .filter_map(|name| name.split(['\'', ' ']).next())
        .filter_map(|name| match name.rsplit_once(HASH) {
            Some((start, _)) if name.starts_with("_ZN") => Some(format!("{start}{HASH}*")),
            _ if name.starts_with("_R") => Some(name.split(".llvm.").next()?.to_owned() + "*"),
            _ => None,
        })
        .collect();
    names.into_iter().collect()
}
