//! Other names of installed programs.

/// Programs that may have a version in their name.
const VERSIONED_PROGRAMS: [&str; 14] = [
    "bash", "c++", "clang", "clang++", "g++", "gcc", "ksh", "lua", "node", "perl", "php", "pip",
    "python", "ruby",
];

/// Programs that have a `g` before their name on macOS.
const G_PREFIXED_PROGRAMS: &str = "chmod chown chroot cp csplit dd env find install ln mkdir mv nice nohup rm \
    rmdir shred shuf sort split stdbuf tar tee timeout touch truncate unlink xargs";

/// The name of a program in the table: `python` for `python3.12`, `rm` for `grm`.
pub(super) fn listed_name(name: &str) -> Option<&str> {
    let bare = name.trim_end_matches(|char: char| char.is_ascii_digit() || ".-".contains(char));
    if VERSIONED_PROGRAMS.contains(&bare) {
        return Some(bare);
    }
    name.strip_prefix('g')
        .filter(|rest| G_PREFIXED_PROGRAMS.split(' ').any(|program| program == *rest))
}

#[cfg(test)]
mod tests {
    use super::super::find_row;

    #[test]
    fn names_with_a_version_or_prefix_are_recognised() {
        for (name, row) in [
            ("python3.12", Some("python")),
            ("python3", Some("python3")),
            ("perl5.36.0", Some("perl")),
            ("gcc-12", Some("gcc")),
            ("clang++-15", Some("clang++")),
            ("grm", Some("rm")),
            ("gtimeout", Some("timeout")),
            ("ls2", None),
            ("gls", None),
        ] {
            assert_eq!(find_row(name).map(|row| row.name), row, "{name}");
        }
    }
}
