//! How the binary is linked: it is started for every event of some clients, so
//! what can be worked out once is not worked out at each start.

#![expect(clippy::disallowed_methods, reason = "this is how a build script is told things")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The libraries of the system that Rust asks for, and the archive that stands in
/// for each. What has none here is part of `libc.a`, or empty since long.
const LIBRARIES: [(&str, &str); 7] = [
    ("c", "libc.a"),
    ("m", "libm.a"),
    ("gcc_s", "libgcc_eh.a"),
    ("dl", "libdl.a"),
    ("pthread", "libpthread.a"),
    ("rt", "librt.a"),
    ("util", "libutil.a"),
];

/// Written by `cargo xtask hook-functions`: what the names of functions that a hook runs begin with.
const HOOK_FUNCTIONS: &str = "hook-functions.txt";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    // On Linux with the GNU library, where these are known to work.
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return Ok(());
    }
    // Addresses are known beforehand, and functions of a library that is not part of
    // the binary are looked up when they are called.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rustc-link-arg-bins=-Wl,-z,lazy");
    if has_rust_linker() {
        // Functions with the same code are kept once.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        place_hook_functions()?;
    }
    // A model in this process brings a library of C++, which wants to be loaded.
    if env::var_os("CARGO_FEATURE_LOCAL_MODEL").is_some() {
        return Ok(());
    }
    // Nothing is loaded or looked up at all where the archives are there: a fifth of
    // the time of a start. Besides, no `LD_PRELOAD` gets into the guard.
    let own = env::var("HOST").ok() == env::var("TARGET").ok();
    let archives: Option<Vec<_>> = LIBRARIES.iter().map(|(_, archive)| find(archive)).collect();
    if let (true, Some(archives)) = (own, archives) {
        let place = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        for ((library, _), archive) in LIBRARIES.iter().zip(&archives) {
            // The linker takes a text under a library's name for a script.
            let script = format!("INPUT(\"{}\")\n", archive.display());
            fs::write(place.join(format!("lib{library}.so")), script)?;
        }
        println!("cargo:rustc-link-arg-bins=-static");
        println!("cargo:rustc-link-arg-bins=-L{}", place.display());
    }
    Ok(())
}

/// Puts the functions that a hook runs side by side, in a section of their own: a hook then touches
/// fewer parts of the binary, and each is a page fault. A name that no function has any more is
/// ignored; `cargo xtask hook-functions` lists them again.
fn place_hook_functions() -> io::Result<()> {
    println!("cargo:rerun-if-changed={HOOK_FUNCTIONS}");
    let names = fs::read_to_string(HOOK_FUNCTIONS)?;
    let sections: Vec<_> = names.lines().map(|name| format!("*(.text.{name})")).collect();
    let script = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("hook.ld");
    let text = format!(
        "SECTIONS {{ .text.hook : {{\n{}\n}} }} INSERT BEFORE .text;\n",
        sections.join("\n")
    );
    fs::write(&script, text)?;
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
    Ok(())
}

/// Whether a release build is linked by the linker that comes with Rust, which is the default on
/// this platform. Others know no script beside their own.
fn has_rust_linker() -> bool {
    let is_x86_64 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|found| found == "x86_64");
    let is_release = env::var("PROFILE").is_ok_and(|found| found == "release");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let own_linker = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    is_x86_64 && is_release && !own_linker
}

/// Where the compiler keeps a library, if it has it.
fn find(archive: &str) -> Option<PathBuf> {
    let asked = Command::new("cc").arg(format!("-print-file-name={archive}")).output().ok()?;
    let path = String::from_utf8(asked.stdout).ok()?;
    let path = Path::new(path.trim());
    // Answered with the name alone when there is none.
    (path.is_absolute() && path.is_file()).then(|| path.to_owned())
}
