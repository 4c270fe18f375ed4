//! Session ids as file names.

use jackline_engine::{Digest, SessionId};

/// The directory name of a session: its id if that is a safe file name, else a hash.
pub fn directory_name(session: &SessionId) -> String {
    let id = session.as_str();
    let is_safe = id.len() <= 128
        && !id.starts_with('.')
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    // A safe id contains no `~`, so a hash can't be equal to an id.
    if is_safe { id.to_owned() } else { format!("~{}", Digest::of(id.as_bytes())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_the_directory_of_sessions() {
        let name = |id: &str| directory_name(&SessionId::parse(id).unwrap());
        assert_eq!(name("s1.A_b-2"), "s1.A_b-2");
        for id in [".", "..", "../x", "/etc", "a/b", "a\0b", ".hidden", "~x", "ä", &"x".repeat(129)]
        {
            let name = name(id);
            assert!(name.starts_with('~') && name.len() == 65, "{id:?} became {name}");
        }
        assert_ne!(name("a/b"), name("a/c"));
    }
}
