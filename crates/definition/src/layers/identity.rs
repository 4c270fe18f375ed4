//! Who may work, in two layers: only whom both let.

use jackline_engine::definition::Identity;

use super::Subject;
use super::join::{How, Joining};
use super::parts::{Parts, Said};
use crate::words;

impl Joining {
    /// The roles of both layers, and the workflow of the higher one where it has one: approvals
    /// for any workflow of a definition make that it has to be approved, so another name for the
    /// workflow frees nobody.
    pub(super) fn join_identity(
        &mut self,
        high: &Parts,
        low: &Parts,
        how: How,
    ) -> Option<Said<Identity>> {
        let (own, below) = match (high.identity.clone(), low.identity.clone()) {
            (Some(own), Some(below)) if own.what != below.what => (own, below),
            (own, below) => return own.or(below),
        };
        let text = |said: &Said<Identity>| words::identity(&said.what);
        if how == How::Override {
            self.replaced(Subject::Setting, text(&own), own.by, below.by);
            return Some(below);
        }
        let joined = Identity {
            roles: both(&own.what.roles, &below.what.roles),
            workflow: own.what.workflow.clone().or_else(|| below.what.workflow.clone()),
        };
        if joined != below.what {
            let why = "has one that this does not tighten";
            self.ignore(Subject::Setting, text(&below), below.by, own.by, why);
        }
        let by = if joined == own.what { own.by } else { below.by };
        Some(Said { what: joined, by })
    }
}

/// The roles that may call a tool: those that both layers let.
pub(super) fn join_roles(high: Option<&[String]>, low: Option<&[String]>) -> Option<Vec<String>> {
    match (high, low) {
        (Some(high), Some(low)) => Some(both(high, low)),
        (one, other) => one.or(other).map(<[String]>::to_vec),
    }
}

/// What is in both lists.
fn both(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().filter(|role| other.contains(role)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::combine;
    use super::super::tests::{of_file, repository, user};

    #[test]
    fn a_lower_layer_names_fewer_roles_and_never_more() {
        let tool = |high: &str, low: &str| {
            let file = |roles: &str| of_file(&format!("tools: {{ deploy: {{ roles: {roles} }} }}"));
            let joined = combine(vec![user(file(high)), repository(file(low))], false).definition;
            joined.declared("deploy").unwrap().roles.clone().unwrap()
        };
        assert_eq!(tool("[a, b]", "[b, c]"), ["b"]);
        assert_eq!(tool("[a]", "[a, b]"), ["a"]);
        // Nobody is left: that is not everybody.
        assert_eq!(tool("[a]", "[b]"), Vec::<String>::new());
        let roles = |high: &str, low: &str| {
            let joined = combine(vec![user(of_file(high)), repository(of_file(low))], false);
            joined.definition.identity.unwrap()
        };
        let joined = roles("identity: { roles: [a, b] }", "identity: { roles: [b], workflow: w }");
        assert_eq!((joined.roles, joined.workflow.as_deref()), (vec!["b".to_owned()], Some("w")));
        assert_eq!(roles("identity: { roles: [a] }", "").roles, ["a"]);
        assert_eq!(roles("", "identity: { roles: [a] }").roles, ["a"]);
        assert!(roles("identity: { roles: [a] }", "identity: {}").roles.is_empty());
    }
}
