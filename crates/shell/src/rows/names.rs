//! Other names that programs are installed under.

/// Programs that are installed with their version in their name.
const VERSIONED: [&str; 14] = [
    "bash", "c++", "clang", "clang++", "g++", "gcc", "ksh", "lua", "node", "perl", "php", "pip",
    "python", "ruby",
];

/// Programs that a Mac calls by a `g` before their name.
const PREFIXED: &str = "chmod chown chroot cp csplit dd env find install ln mkdir mv nice nohup rm \
    rmdir shred shuf sort split stdbuf tar tee timeout touch truncate unlink xargs";

/// The name a program is listed by: `python` for `python3.12`, `rm` for `grm`.
pub(super) fn plain(name: &str) -> Option<&str> {
    let bare = name.trim_end_matches(|char: char| char.is_ascii_digit() || ".-".contains(char));
    if VERSIONED.contains(&bare) {
        return Some(bare);
    }
    name.strip_prefix('g').filter(|rest| PREFIXED.split(' ').any(|program| program == *rest))
}

#[cfg(test)]
mod tests {
    use super::super::find;

    #[test]
    fn versions_and_prefixes_of_a_name_are_known() {
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
            assert_eq!(find(name).map(|row| row.name), row, "{name}");
        }
    }
}
