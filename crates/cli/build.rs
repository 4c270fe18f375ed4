//! How the binary is linked: it is started for every event of some clients, so
//! what can be worked out once is not worked out at each start.

#![expect(clippy::disallowed_methods, reason = "this is how a build script is told things")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // On Linux with the GNU linker, where these are known to work.
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    // Addresses are known beforehand, and functions of the C library are looked up
    // when they are called.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rustc-link-arg-bins=-Wl,-z,lazy");
    if let Some(directory) = unwinder() {
        // The unwinder comes along instead of as a library that asks the processor
        // what it can do, which a virtual machine answers slowly.
        println!("cargo:rustc-link-search=native={directory}");
        println!("cargo:rustc-link-lib=static:+whole-archive=gcc_eh");
    }
}

/// Where the compiler keeps its unwinder, if it has one to link.
fn unwinder() -> Option<String> {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = String::from_utf8(asked.stdout).ok()?;
    let path = Path::new(path.trim());
    let same_target = std::env::var("HOST").ok()? == std::env::var("TARGET").ok()?;
    let found = path.is_absolute() && path.is_file() && same_target;
    Some(path.parent().filter(|_| found)?.to_str()?.to_owned())
}
