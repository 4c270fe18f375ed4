//! How the binary is linked: it is started for every event of some clients, and
//! an address that is known beforehand has not to be worked out at each start.

#![expect(clippy::disallowed_methods, reason = "this is how a build script is told things")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // On Linux with the GNU linker, where the flag is known to work.
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
