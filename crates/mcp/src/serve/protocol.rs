//! The two eras of the protocol: a handshake first, or everything in each request.

use jackline_workspace::ToolSpec;
use serde_json::{Value, json};

use super::message::RpcError;
use crate::shown::shown_whole;

/// Versions that begin with a handshake, the newest last.
const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version in which each request stands for itself.
const STATELESS: &str = "2026-07-28";

/// All of them, the newest first.
const SUPPORTED: [&str; 5] = [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may keep the list of tools: they are the program's own.
const FRESH_MS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Tools for the files of one workspace. Paths are relative to it. \
Answers are bounded: go on with the offset an answer names. A refusal says why and what to do \
instead; the same call will be refused again.";

/// How a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Handshake,
    Stateless,
}

impl Era {
    /// The era of a request. One that says nothing is taken for the older one, even
    /// where nobody has shaken hands: nothing we do hangs on it.
    pub(super) fn of(params: &Value) -> Result<Self, RpcError> {
        let meta = params.get("_meta");
        let Some(version) = meta.and_then(|meta| meta.get(META_VERSION)) else {
            return Ok(Self::Handshake);
        };
        match version.as_str() {
            Some(STATELESS) => {}
            Some(known) if HANDSHAKE.contains(&known) => return Ok(Self::Handshake),
            _ => return Err(RpcError::version(version, &SUPPORTED)),
        }
        if meta.and_then(|meta| meta.get(META_CAPABILITIES)).is_some_and(Value::is_object) {
            return Ok(Self::Stateless);
        }
        let data =
            json!({ "path": format!("/_meta/{META_CAPABILITIES}"), "expected": "an object" });
        Err(RpcError::params("a request needs the client's capabilities in `_meta`", data))
    }

    /// A result, with what this era wants in all of them.
    pub(super) fn seal(self, mut result: Value) -> Value {
        if let (Self::Stateless, Some(fields)) = (self, result.as_object_mut()) {
            fields.insert("resultType".to_owned(), json!("complete"));
            fields.insert("_meta".to_owned(), json!({ META_SERVER: server() }));
        }
        result
    }

    /// The same for a result that may be kept.
    fn seal_lasting(self, mut result: Value) -> Value {
        if let (Self::Stateless, Some(fields)) = (self, result.as_object_mut()) {
            fields.insert("ttlMs".to_owned(), json!(FRESH_MS));
            fields.insert("cacheScope".to_owned(), json!("public"));
        }
        self.seal(result)
    }
}

fn server() -> Value {
    json!({ "name": "jackline", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": false } })
}

/// The handshake: the client's version if we speak it, else the newest that has one.
pub(super) fn initialize(params: &Value) -> Value {
    let [.., newest] = HANDSHAKE;
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = asked.filter(|asked| HANDSHAKE.contains(asked)).unwrap_or(newest);
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server(),
        "instructions": INSTRUCTIONS,
    })
}

/// What we are, for who asks before anything else.
pub(super) fn discover() -> Value {
    Era::Stateless.seal_lasting(json!({
        "supportedVersions": SUPPORTED,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    }))
}

/// All tools: there is one page.
pub(super) fn list(params: &Value, era: Era, tools: &[ToolSpec]) -> Result<Value, RpcError> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        let data = json!({ "path": "/cursor", "expected": "nothing" });
        return Err(RpcError::params("there is one page of tools, and no cursor", data));
    }
    let tool = |spec: &ToolSpec| {
        json!({
            "name": spec.name,
            "description": spec.description,
            "inputSchema": spec.input_schema,
            "annotations": { "readOnlyHint": spec.read_only },
            "_meta": shown_whole(),
        })
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    Ok(era.seal_lasting(json!({ "tools": tools })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_ends_with_a_version_of_both() {
        let version = |asked: Value| {
            let result = initialize(&json!({ "protocolVersion": asked }));
            result["protocolVersion"].as_str().map(ToOwned::to_owned).unwrap()
        };
        HANDSHAKE.into_iter().for_each(|known| assert_eq!(version(json!(known)), known));
        for other in [json!("2026-07-28"), json!("1999-01-01"), json!(7), Value::Null] {
            assert_eq!(version(other), "2025-11-25");
        }
    }

    #[test]
    fn a_request_says_its_era_or_is_of_the_older_one() {
        let era = |meta: Value| Era::of(&json!({ "_meta": meta }));
        assert_eq!(Era::of(&json!({})), Ok(Era::Handshake));
        assert_eq!(era(json!({ "progressToken": 1 })), Ok(Era::Handshake));
        assert_eq!(era(json!({ META_VERSION: "2025-06-18" })), Ok(Era::Handshake));
        let whole = json!({ META_VERSION: STATELESS, META_CAPABILITIES: {} });
        assert_eq!(era(whole), Ok(Era::Stateless));
        assert!(era(json!({ META_VERSION: STATELESS })).is_err());
        assert!(era(json!({ META_VERSION: "1900-01-01", META_CAPABILITIES: {} })).is_err());
    }
}
