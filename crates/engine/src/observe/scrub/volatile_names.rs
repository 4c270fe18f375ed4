//! Words that mark the number after them as volatile.

/// Names of such numbers. A name may be followed by `id`, a unit or both.
const VOLATILE_NAMES: [&[u8]; 19] = [
    b"pid",
    b"ppid",
    b"pgid",
    b"tid",
    b"process",
    b"port",
    b"session",
    b"request",
    b"req",
    b"trace",
    b"span",
    b"nonce",
    b"timestamp",
    b"ts",
    b"epoch",
    b"elapsed",
    b"duration",
    b"took",
    b"uptime",
];

/// Names that mark a volatile number only together with `id`: `process 3` may be one of five.
const VOLATILE_ID_NAMES: [&[u8]; 5] = [b"process", b"session", b"request", b"trace", b"span"];

/// The longest name that is recognised.
const NAME_BYTES_MAX: usize = 24;

/// How many bytes may be between a name and its number: `pid": "`.
const BETWEEN_BYTES_MAX: usize = 4;

/// Whether the word before this number marks it as volatile.
pub(super) fn is_named_volatile(text: &[u8], at: usize) -> bool {
    let Some(before) = text.get(..at) else { return false };
    let (name, rest) = last_name(before);
    if name.is_empty() {
        return false;
    }
    let plain = without_unit(name);
    let (plain, is_id) = match strip_id(plain) {
        // `session id 7`
        Some([]) => (last_name(rest).0, true),
        Some(name) => (name, true),
        None => (plain, false),
    };
    let is_among = |names: &[&[u8]]| names.iter().any(|name| plain.eq_ignore_ascii_case(name));
    let number_of = text.get(at..).unwrap_or_default();
    is_among(&VOLATILE_NAMES)
        && (is_id || !is_among(&VOLATILE_ID_NAMES))
        && !is_one_of_several(number_of)
}

/// `3 of 12`, `3/12`: a position in a sequence.
fn is_one_of_several(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text.get(digits..).unwrap_or_default();
    rest.starts_with(b" of ") || rest.starts_with(b"/")
}

/// The last name of a text, and the text before it.
fn last_name(text: &[u8]) -> (&[u8], &[u8]) {
    let between = text.iter().rev().take(BETWEEN_BYTES_MAX);
    let between = between.take_while(|byte| b" \t:=\"'#([".contains(byte)).count();
    let text = text.get(..text.len() - between).unwrap_or_default();
    let name = text.iter().rev().take(NAME_BYTES_MAX);
    let name = name.take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'_').count();
    let (rest, name) = text.split_at_checked(text.len() - name).unwrap_or_default();
    (name, rest)
}

/// A name without its unit: `elapsed_ms`, `durationMs`.
fn without_unit(name: &[u8]) -> &[u8] {
    let units: [&[u8]; 7] = [b"_ms", b"_ns", b"_us", b"_s", b"_seconds", b"Ms", b"Seconds"];
    units.iter().find_map(|unit| name.strip_suffix(*unit)).unwrap_or(name)
}

/// A name without its `id`, if it has one: `session_id`, `requestId`, `ID`.
fn strip_id(name: &[u8]) -> Option<&[u8]> {
    let endings: [&[u8]; 4] = [b"_id", b"Id", b"ID", b"id"];
    // `pid` is a name of its own.
    if VOLATILE_NAMES.iter().any(|whole| name.eq_ignore_ascii_case(whole)) {
        return None;
    }
    endings.iter().find_map(|ending| name.strip_suffix(*ending))
}

/// Whether this is the port of a server on this machine. The server gets another port at its next
/// start.
pub(super) fn is_local_port(text: &[u8], at: usize) -> bool {
    let hosts: [&[u8]; 4] = [b"localhost:", b"127.0.0.1:", b"0.0.0.0:", b"[::1]:"];
    let before = text.get(..at).filter(|before| before.last() == Some(&b':'));
    before.is_some_and(|before| hosts.iter().any(|host| before.ends_with(host)))
}

/// `sshd[1234]:` in a log, `[1] 1234` from a shell that starts a background job, and `thread 'main'
/// (1234) panicked` from a Rust program.
pub(super) fn is_process(text: &[u8], at: usize, end: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..at), text.get(end..)) else { return false };
    match before {
        [.., b'\'', b' ', b'('] => after.starts_with(b") panicked at "),
        [.., letter, b'['] => letter.is_ascii_alphabetic() && after.starts_with(b"]:"),
        [line @ .., b'[', job, b']', b' '] => {
            let ends = after.first().is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
            job.is_ascii_digit() && ends && line.last().is_none_or(|byte| *byte == b'\n')
        }
        _ => false,
    }
}
