//! Lists the functions that one `jackline hook claude` runs, so that the linker can put them side by
//! side. A hook runs a tenth of the code of the binary, and without the list it is scattered over
//! all of it: each part that is touched is a page fault.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::shell::{self, cargo, root};

/// Read by `crates/cli/build.rs`.
const LIST: &str = "crates/cli/hook-functions.txt";

/// How often the hook runs before it is traced, so that it finds its session and its caches.
const WARM_UP: usize = 5;

/// How a mangled name ends: the mark of a hash of 16 digits.
const HASH: &str = "17h";

/// Writes the list. Needs valgrind.
pub(crate) fn write() -> Result<(), String> {
    // With symbols, which give the names.
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
    let place = std::env::temp_dir().join(format!("jackline-hook-{}", std::process::id()));
    let traced = trace(&place).and_then(|trace| {
        let names = names(&trace);
        let list = names.join("\n") + "\n";
        println!("{} functions in {LIST}", names.len());
        fs::write(root().join(LIST), list).map_err(|error| format!("can't write `{LIST}`: {error}"))
    });
    let _ = fs::remove_dir_all(&place);
    traced
}

/// Runs a hook under valgrind; the functions that it ran, in callgrind's format.
fn trace(place: &Path) -> Result<String, String> {
    let cannot = |error| format!("can't use `{}`: {error}", place.display());
    let work = place.join("work");
    fs::create_dir_all(&work).map_err(cannot)?;
    fs::write(work.join("jackline.yaml"), "version: 1\nextends: [coding-agent]\n")
        .map_err(cannot)?;
    let jackline = crate::bench::target_directory()?.join("release/jackline");
    let (payload, output) = (place.join("payload.json"), place.join("callgrind.out"));
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
        hook.env("JACKLINE_HOME", place.join("home")).env("CLAUDE_PROJECT_DIR", &work);
        shell::run(&mut hook)?;
    }
    fs::read_to_string(&output).map_err(cannot)
}

/// The names of Rust functions in a trace, as patterns for sections: without hashes, which differ
/// between compilers and builds.
fn names(trace: &str) -> Vec<String> {
    let names =
        trace.lines().filter_map(|line| line.strip_prefix("fn=").or(line.strip_prefix("cfn=")));
    let names: BTreeSet<String> = names
        // The second call of a recursive function has a name of its own.
        .filter_map(|name| name.split(['\'', ' ']).next())
        .filter_map(|name| match name.rsplit_once(HASH) {
            Some((start, _)) if name.starts_with("_ZN") => Some(format!("{start}{HASH}*")),
            _ if name.starts_with("_R") => Some(name.split(".llvm.").next()?.to_owned() + "*"),
            _ => None,
        })
        .collect();
    names.into_iter().collect()
}
