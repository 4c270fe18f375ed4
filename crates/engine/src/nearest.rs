//! "Did you mean …?": the valid name that is closest to an invalid one.

use alloc::vec::Vec;

/// How many letters of a name are compared.
const COMPARED_LETTERS_MAX: usize = 64;

/// The candidate nearest to `name`, if it is close enough that `name` is probably a typing error.
pub fn nearest_name<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A third of the compared letters may differ, and at least one.
    let allowed = (name.chars().take(COMPARED_LETTERS_MAX).count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *candidate != name)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, removed, replaced or swapped with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(COMPARED_LETTERS_MAX).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(COMPARED_LETTERS_MAX).collect();
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
    fn a_misspelt_name_finds_its_candidate_and_an_unrelated_one_does_not() {
        let names = ["files", "limits", "tools", "completion"];
        assert_eq!(nearest_name("fiels", names), Some("files"));
        assert_eq!(nearest_name("completoin", names), Some("completion"));
        assert_eq!(nearest_name("Tool", names), Some("tools"));
        assert_eq!(nearest_name("zzz", names), None);
        assert_eq!(nearest_name(&"x".repeat(5000), names), None, "a long name must not match");
    }
}
