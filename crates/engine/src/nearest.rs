//! "Did you mean": the known name closest to one that is not known.

use alloc::vec::Vec;

/// How many letters of a name are looked at.
const LETTERS_MAX: usize = 64;

/// The candidate nearest to `name`, if it is near enough to be a likely slip.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters that are looked at may differ, and at least one.
    let allowed = (name.chars().take(LETTERS_MAX).count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *candidate != name)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, removed, replaced or swapped with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(LETTERS_MAX).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(LETTERS_MAX).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
    for (i, ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, cb) in b.iter().enumerate() {
            let replaced = get(&last, j) + usize::from(ca != cb);
            let mut best = replaced.min(get(&last, j + 1) + 1).min(get(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(cb) && b.get(j - 1) == Some(ca);
            if swapped {
                best = best.min(get(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = core::mem::replace(&mut last, row);
    }
    get(&last, b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_does_not() {
        let known = ["files", "limits", "tools", "completion"];
        assert_eq!(nearest("fiels", known), Some("files"));
        assert_eq!(nearest("completoin", known), Some("completion"));
        assert_eq!(nearest("Tool", known), Some("tools"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(nearest(&"x".repeat(5000), known), None, "however long it is");
    }
}
