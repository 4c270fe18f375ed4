//! Which tools an agent may name under a definition.

use jackline_clients::CLIENTS;
use jackline_engine::Definition;
use jackline_engine::definition::UnknownTools;
use serde_json::{Map, Value, json};

/// The known tools in words, if the definition denies others.
pub(super) fn known_tools_text(definition: &Definition) -> Option<String> {
    let declared: Vec<&str> = definition.callable_tools().collect();
    let has_own_list = !declared.is_empty();
    let mut known: Vec<String> = has_own_list.then(|| declared.join(", ")).into_iter().collect();
    match definition.unknown_tools {
        UnknownTools::Allow => return None,
        UnknownTools::Client => {
            let clients: Vec<&str> = CLIENTS.iter().map(|client| client.title).collect();
            known.push(format!("the tools of the agent's client ({})", clients.join(", ")));
            known.push("tools with a well-known name".to_owned());
        }
        UnknownTools::Deny => {
            if !has_own_list {
                known.push("those of `jackline run`, `mcp serve` and `mcp wrap`".to_owned());
            }
            // Tools that are recognised in command lines need a tool that runs these lines.
            if definition.tools.iter().any(|tool| !tool.commands.is_empty()) {
                known.push("tools that run command lines".to_owned());
            }
        }
    }
    Some(format!("known tools: {}; all others are denied", known.join("; ")))
}

/// The known tools for programs: those of the definition, and those that each client has and the
/// definition accepts.
pub(super) fn known_tools_json(definition: &Definition) -> Value {
    let clients: Map<String, Value> = CLIENTS
        .iter()
        .map(|client| {
            let tools = client.dialect.tools();
            let is_known = definition.unknown_tools != UnknownTools::Deny;
            let accepts = |name: &&&str| definition.accepts_tool(name, is_known);
            let names: Vec<&str> = tools.names.iter().filter(accepts).copied().collect();
            (client.id.to_string(), json!(names))
        })
        .collect();
    json!({
        "declared": definition.callable_tools().collect::<Vec<_>>(),
        "clients": clients,
        "others": match definition.unknown_tools {
            UnknownTools::Allow => "allowed",
            UnknownTools::Client | UnknownTools::Deny => "denied",
        },
    })
}
