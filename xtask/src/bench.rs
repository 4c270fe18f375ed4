//! Measurements: ratios side by side in one run.

use std::path::PathBuf;
use std::time::Instant;

use crate::shell::{self, cargo, root};

/// A clean release build of `jackline` may take this long.
const BUILD_SECONDS_MAX: u64 = 180;

pub(crate) fn run(parts: &[String]) -> Result<(), String> {
    // These take words of their own, and are not run unasked.
    let alone = ["corpus", "loops", "io", "attempt", "run"];
    if let Some(part) = parts.first().filter(|part| alone.contains(&part.as_str())) {
        if part == "attempt" {
            shell::run(&mut cargo(&["build", "--release", "--locked", "-p", "jackline-sandbox"]))?;
        }
        shell::run(&mut cargo(&["build", "--release", "--locked", "-p", "jackline"]))?;
        shell::run(&mut cargo(&["build", "--release", "--locked", "-p", "jackline-bench"]))?;
        let release = target_directory()?.join("release");
        let mut bench = std::process::Command::new(release.join("jackline-bench"));
        return shell::run(bench.arg(release.join("jackline")).args(parts));
    }
    if let Some(unknown) =
        parts.iter().find(|part| !["engine", "process", "replay", "build"].contains(&part.as_str()))
    {
        return Err(format!(
            "no part `{unknown}`; there are engine, process, replay, build, and by itself corpus, loops, io, attempt or run"
        ));
    }
    if parts.iter().any(|part| part == "build") {
        build()?;
    }
    let others: Vec<&String> = parts.iter().filter(|part| *part != "build").collect();
    if !parts.is_empty() && others.is_empty() {
        return Ok(());
    }
    shell::run(&mut cargo(&["build", "--release", "--locked", "-p", "jackline"]))?;
    shell::run(&mut cargo(&["build", "--release", "--locked", "-p", "jackline-bench"]))?;
    let release = target_directory()?.join("release");
    let mut bench = std::process::Command::new(release.join("jackline-bench"));
    shell::run(bench.arg(release.join("jackline")).args(others))
}

/// Where cargo builds, which may be set from outside.
fn target_directory() -> Result<PathBuf, String> {
    let metadata = shell::output(&mut cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let (_, rest) = metadata.split_once("\"target_directory\":\"").ok_or("no target directory")?;
    let (path, _) = rest.split_once('"').ok_or("no target directory")?;
    Ok(PathBuf::from(path))
}

fn build() -> Result<(), String> {
    let target = root().join("target").join("bench-build");
    let _ = std::fs::remove_dir_all(&target);
    shell::run(&mut cargo(&["fetch", "--locked"]))?;
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = Instant::now();
    let mut command = cargo(&["build", "--release", "--locked", "-p", "jackline"]);
    shell::run(command.env("CARGO_TARGET_DIR", &target))?;
    let seconds = start.elapsed().as_secs();
    let _ = std::fs::remove_dir_all(&target);
    println!("clean release build of jackline: {seconds} s, at most {BUILD_SECONDS_MAX}");
    println!(
        "{{\"name\":\"build\",\"value\":{seconds},\"unit\":\"s\",\"limit\":{BUILD_SECONDS_MAX}}}"
    );
    if seconds > BUILD_SECONDS_MAX {
        return Err(format!("the build took {seconds} s"));
    }
    Ok(())
}
