//! Link settings of the binary. Some clients start it for every event, so the settings move work
//! from each start to the build.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes its settings to a build script in environment variables"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The system libraries that Rust links, and the static archive that replaces each. Current
/// versions of glibc contain the other libraries in `libc.a`.
const LIBRARIES: [(&str, &str); 7] = [
    ("c", "libc.a"),
    ("m", "libm.a"),
    ("gcc_s", "libgcc_eh.a"),
    ("dl", "libdl.a"),
    ("pthread", "libpthread.a"),
    ("rt", "librt.a"),
    ("util", "libutil.a"),
];

/// Written by `cargo xtask hook-functions`: the prefixes of the names of functions that a hook runs.
const HOOK_FUNCTIONS: &str = "hook-functions.txt";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    // These settings are tested only on Linux with the GNU C library.
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return Ok(());
    }
    // Addresses are fixed at link time, and functions of shared libraries are looked up at their
    // first call.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rustc-link-arg-bins=-Wl,-z,lazy");
    if has_rust_linker() {
        // Functions with identical code are stored once.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        place_hook_functions()?;
    }
    // The local model needs a C++ library, which must be loaded at run time.
    if env::var_os("CARGO_FEATURE_LOCAL_MODEL").is_some() {
        return Ok(());
    }
    // With static archives nothing is loaded or looked up at run time, which saves a fifth of the
    // start time. Also, `LD_PRELOAD` has no effect on a static binary.
    let own = env::var("HOST").ok() == env::var("TARGET").ok();
    let archives: Option<Vec<_>> = LIBRARIES.iter().map(|(_, archive)| find(archive)).collect();
    if let (true, Some(archives)) = (own, archives) {
        let place = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        for ((library, _), archive) in LIBRARIES.iter().zip(&archives) {
            // The linker reads a text file with the name of a library as a linker script.
            let script = format!("INPUT(\"{}\")\n", archive.display());
            fs::write(place.join(format!("lib{library}.so")), script)?;
        }
        println!("cargo:rustc-link-arg-bins=-static");
        println!("cargo:rustc-link-arg-bins=-L{}", place.display());
    }
    Ok(())
}

/// Places the functions that a hook runs next to each other, in a separate section. A hook then
/// touches fewer pages of the binary and causes fewer page faults. Names of functions that no
/// longer exist are ignored; `cargo xtask hook-functions` updates the list.
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

/// Whether a release build uses the linker that comes with Rust, which is the default on this
/// platform. Other linkers do not accept an additional linker script.
fn has_rust_linker() -> bool {
    let is_x86_64 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|found| found == "x86_64");
    let is_release = env::var("PROFILE").is_ok_and(|found| found == "release");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let own_linker = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    is_x86_64 && is_release && !own_linker
}

/// The path of an archive, if the C compiler has it.
fn find(archive: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={archive}")).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(path.trim());
    // If the archive is missing, the compiler prints only its name.
    (path.is_absolute() && path.is_file()).then(|| path.to_owned())
}
