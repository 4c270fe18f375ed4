//! Who an agent may be.

use jackline_engine::definition::Identity;

use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// How many roles there may be.
const ROLES_MAX: usize = 64;

/// Reads `identity`.
pub(super) fn lower(node: &Node, reader: &mut Reader<'_>) -> Identity {
    let mut identity = Identity::default();
    for (key, node) in reader.fields(node, &keys::IDENTITY) {
        match key {
            "roles" => {
                if let Some(roles) = roles(node, "`identity.roles`", reader) {
                    identity.roles = roles;
                }
            }
            _ if matches!(node.value, NodeValue::Null) => {}
            _ => {
                let workflow = reader.text(node, "`identity.workflow`");
                identity.workflow = workflow.map(ToOwned::to_owned);
            }
        }
    }
    identity
}

/// Reads a list of roles.
pub(super) fn roles(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let items = reader.list(node, what);
    if items.len() > ROLES_MAX {
        reader.complain(node.at, format!("{} in {what}; at most {ROLES_MAX}", items.len()));
    }
    let mut roles: Vec<String> = Vec::new();
    for item in items {
        let Some(role) = reader.text(item, "a role") else { continue };
        if !roles.iter().any(|known| known == role) {
            roles.push(role.to_owned());
        }
    }
    if items.is_empty() {
        let hint = "name one, or leave the key away";
        reader.complain_hint(node.at, format!("{what} names no role"), hint);
    }
    (!roles.is_empty()).then_some(roles)
}
