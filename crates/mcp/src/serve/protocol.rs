//! The two eras of the MCP protocol: with a handshake, or with all information in each request.

use jackline_workspace::ToolSpec;
use serde_json::{Value, json};

use super::client_message::RpcError;
use crate::result_size_meta::full_result_meta;

/// The versions with a handshake, the newest last.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version in which each request is independent.
const STATELESS_VERSION: &str = "2026-07-28";

/// All supported versions, the newest first.
const SUPPORTED_VERSIONS: [&str; 5] =
    [STATELESS_VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may cache the list of tools, which is fixed in this program.
const TOOL_LIST_TTL_MS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Tools for the files of one workspace. Paths are relative to it. \
Answers are bounded: continue with the offset that an answer names. A refusal says why and what \
to do instead; the same call will be refused again.";

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolEra {
    Handshake,
    Stateless,
}

impl ProtocolEra {
    /// The era of a request. A request without a version belongs to the older era, even without a
    /// handshake, because no decision depends on it.
    pub(super) fn of_request(params: &Value) -> Result<Self, RpcError> {
        let meta = params.get("_meta");
        let Some(version) = meta.and_then(|meta| meta.get(META_VERSION)) else {
            return Ok(Self::Handshake);
        };
        match version.as_str() {
            Some(STATELESS_VERSION) => {}
            Some(version) if HANDSHAKE_VERSIONS.contains(&version) => return Ok(Self::Handshake),
            _ => return Err(RpcError::unsupported_version(version, &SUPPORTED_VERSIONS)),
        }
        if meta.and_then(|meta| meta.get(META_CAPABILITIES)).is_some_and(Value::is_object) {
            return Ok(Self::Stateless);
        }
        let data =
            json!({ "path": format!("/_meta/{META_CAPABILITIES}"), "expected": "an object" });
        Err(RpcError::invalid_params("the client's capabilities are missing in `_meta`", data))
    }

    /// Adds the fields that this era requires in every result.
    pub(super) fn seal(self, mut result: Value) -> Value {
        if let (Self::Stateless, Some(fields)) = (self, result.as_object_mut()) {
            fields.insert("resultType".to_owned(), json!("complete"));
            fields.insert("_meta".to_owned(), json!({ META_SERVER: server_info() }));
        }
        result
    }

    /// Like `seal`, for a result that the client may cache.
    fn seal_cacheable(self, mut result: Value) -> Value {
        if let (Self::Stateless, Some(fields)) = (self, result.as_object_mut()) {
            fields.insert("ttlMs".to_owned(), json!(TOOL_LIST_TTL_MS));
            fields.insert("cacheScope".to_owned(), json!("public"));
        }
        self.seal(result)
    }
}

fn server_info() -> Value {
    json!({ "name": "jackline", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": false } })
}

/// Answers the handshake: with the client's version if it is supported, else with the newest one
/// that has a handshake.
pub(super) fn initialize(params: &Value) -> Value {
    let [.., newest] = HANDSHAKE_VERSIONS;
    let requested = params.get("protocolVersion").and_then(Value::as_str);
    let version =
        requested.filter(|requested| HANDSHAKE_VERSIONS.contains(requested)).unwrap_or(newest);
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

/// Describes the server to a client that asks before anything else.
pub(super) fn discover() -> Value {
    ProtocolEra::Stateless.seal_cacheable(json!({
        "supportedVersions": SUPPORTED_VERSIONS,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    }))
}

/// Lists all tools, on one page.
pub(super) fn list_tools(
    params: &Value,
    era: ProtocolEra,
    tools: &[ToolSpec],
) -> Result<Value, RpcError> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        let data = json!({ "path": "/cursor", "expected": "nothing" });
        return Err(RpcError::invalid_params(
            "the list of tools has only one page; call without `cursor`",
            data,
        ));
    }
    let tool = |spec: &ToolSpec| {
        json!({
            "name": spec.name,
            "description": spec.description,
            "inputSchema": spec.input_schema,
            "annotations": { "readOnlyHint": spec.read_only },
            "_meta": full_result_meta(),
        })
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    Ok(era.seal_cacheable(json!({ "tools": tools })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_agrees_on_a_supported_version() {
        let version = |requested: Value| {
            let result = initialize(&json!({ "protocolVersion": requested }));
            result["protocolVersion"].as_str().map(ToOwned::to_owned).unwrap()
        };
        HANDSHAKE_VERSIONS
            .into_iter()
            .for_each(|version_text| assert_eq!(version(json!(version_text)), version_text));
        for other in [json!("2026-07-28"), json!("1999-01-01"), json!(7), Value::Null] {
            assert_eq!(version(other), "2025-11-25");
        }
    }

    #[test]
    fn a_request_without_a_version_belongs_to_the_older_era() {
        let era = |meta: Value| ProtocolEra::of_request(&json!({ "_meta": meta }));
        assert_eq!(ProtocolEra::of_request(&json!({})), Ok(ProtocolEra::Handshake));
        assert_eq!(era(json!({ "progressToken": 1 })), Ok(ProtocolEra::Handshake));
        assert_eq!(era(json!({ META_VERSION: "2025-06-18" })), Ok(ProtocolEra::Handshake));
        let whole = json!({ META_VERSION: STATELESS_VERSION, META_CAPABILITIES: {} });
        assert_eq!(era(whole), Ok(ProtocolEra::Stateless));
        assert!(era(json!({ META_VERSION: STATELESS_VERSION })).is_err());
        assert!(era(json!({ META_VERSION: "1900-01-01", META_CAPABILITIES: {} })).is_err());
    }
}
