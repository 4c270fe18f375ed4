//! The generated part of the names of temporary files.

/// The directories of temporary files.
const TEMPORARY_ROOTS: [&[u8]; 5] =
    [b"/tmp/", b"/var/tmp/", b"/private/tmp/", b"/dev/shm/", b"/var/folders/"];

/// The generated part of a temporary path that starts at this position. Names below the generated
/// part are not generated.
pub(super) fn generated_path_part(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = text.get(at..)?;
    // Most slashes are not the start of such a path.
    if !matches!(rest.get(1), Some(b't' | b'v' | b'p' | b'd')) {
        return None;
    }
    let root = TEMPORARY_ROOTS.iter().find(|root| rest.starts_with(root))?;
    let mut start = at + root.len();
    let mut end = start + name_length(text, start);
    if root.ends_with(b"folders/") {
        // `/var/folders/ab/cd…/T/name`
        for _ in 0..3 {
            end += 1 + name_length(text, end + 1);
        }
        return Some((start, end.min(text.len())));
    }
    // `/tmp/pytest-of-me/pytest-12`
    if text.get(start..end)?.starts_with(b"pytest-of-") {
        start = end + 1;
        end = start + name_length(text, start);
    }
    is_generated_name(text.get(start..end)?).then_some((start, end))
}

fn name_length(text: &[u8], at: usize) -> usize {
    let name = text.get(at..).unwrap_or_default().iter();
    name.take_while(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(byte)).count()
}

/// Whether a name looks generated.
fn is_generated_name(name: &[u8]) -> bool {
    name.starts_with(b"tmp")
        || name.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}
