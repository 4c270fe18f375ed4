//! A statement about a session, in the format in-toto, version 1.
//!
//! `jackline attest` computes a statement from the journal of a session and from the commit of its
//! workspace. It signs the bytes of the statement. The signature is not in the statement but in the
//! envelope around it, see `envelope.rs`.
//!
//! `jackline verify --attestation` checks the signature of the envelope and parses the statement in
//! it. Then it computes the statement again from the journal, and reports everything that differs.

use std::collections::BTreeMap;

use jackline_analysis::{JournalAccount, VerdictCounts};
use jackline_engine::{Digest, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The type of an in-toto statement.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// The type of the predicate, which is the part of a statement with the facts about the session.
pub const PREDICATE_TYPE: &str = "urn:jackline:attestation:session:v1";

/// The key of a commit id among the digests of a subject, as in-toto defines it.
const COMMIT_DIGEST: &str = "gitCommit";

/// A statement about a session.
///
/// Its subjects are the things that it is about, each with a digest: the journal as a whole, the
/// last record of the journal, and the commit of the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<StatementSubject>,
    predicate_type: String,
    predicate: SessionPredicate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StatementSubject {
    name: String,
    digest: BTreeMap<String, String>,
}

/// The facts about a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPredicate {
    /// The session.
    pub session: SessionId,
    /// The agent: its checksum, its role, and its unknown parts.
    pub agent: Value,
    /// The definition in force at the end: its name and checksum.
    pub definition: Value,
    /// The number of verdicts by kind.
    pub verdicts: VerdictCounts,
    /// The result of the last completion check; null if there was none.
    pub completion: Value,
    /// How the session ended; null if it has not ended.
    pub stop: Value,
    /// Whether code was changed, and whether tests ran after that.
    pub tests: Value,
    /// The hash of the last record (`head`), and the length of the journal.
    pub journal: Value,
    /// The engine that wrote the last record.
    pub engine: String,
    /// The semantics version of that engine's verdicts.
    pub semantics: u32,
    /// When the session began.
    pub started: Timestamp,
    /// When its last record was written.
    pub ended: Timestamp,
    /// Whether files of the workspace differ from the commit or are not part of it; null without a
    /// commit.
    pub uncommitted: Option<bool>,
}

/// The current commit of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceCommit {
    /// Its id.
    pub id: String,
    /// Whether files differ from the commit or are not part of it.
    pub uncommitted: bool,
}

/// Why bytes are not a statement about a session, although their signature is valid.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// They are not JSON, a statement of another type, or a statement with other fields.
    #[error("the signed contents are not a statement about a session: {0}")]
    NotAStatement(String),
}

impl Statement {
    /// The statement about the session of a journal account. `commit` is the current commit of its
    /// workspace. With `None`, the statement names no commit and `uncommitted` is null.
    pub fn new(account: &JournalAccount, commit: Option<&WorkspaceCommit>) -> Self {
        let session = &account.opening.session;
        let sha256 = |name: String, digest: Digest| StatementSubject {
            name,
            digest: BTreeMap::from([("sha256".to_owned(), digest.to_string())]),
        };
        let mut subject = vec![sha256(format!("journal of {session}"), account.sha256)];
        // The head is the hash of the last record, which covers all records before it. It is `None`
        // for a journal without records or with a damaged last record.
        // `JournalAccount::from_journal` accepts neither, so its accounts always have a head.
        subject.extend(account.chain.head.map(|head| sha256(format!("head of {session}"), head)));
        subject.extend(commit.map(|commit| StatementSubject {
            name: "commit".to_owned(),
            digest: BTreeMap::from([(COMMIT_DIGEST.to_owned(), commit.id.clone())]),
        }));
        Self {
            kind: STATEMENT_TYPE.to_owned(),
            subject,
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: SessionPredicate::of(account, commit.map(|commit| commit.uncommitted)),
        }
    }

    /// Parses the contents of an envelope. The caller has already checked the signature.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementError> {
        let not_a_statement = |reason: String| StatementError::NotAStatement(reason);
        // The bytes are parsed twice. The first time accepts any JSON, so that a statement of
        // another type gets an error about its type, and not about a field that only ours has.
        let json: Value =
            serde_json::from_slice(bytes).map_err(|e| not_a_statement(e.to_string()))?;
        for (field, expected) in [("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)] {
            if json.get(field).and_then(Value::as_str) != Some(expected) {
                return Err(not_a_statement(format!("`{field}` is not `{expected}`")));
            }
        }
        serde_json::from_slice(bytes).map_err(|e| not_a_statement(e.to_string()))
    }

    /// The bytes to sign.
    pub fn render(&self) -> Vec<u8> {
        // Serializing plain data with text keys can't fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The facts about the session.
    pub fn predicate(&self) -> &SessionPredicate {
        &self.predicate
    }

    /// The id of the commit, if the statement has one. It is signed but not in the journal.
    pub fn commit(&self) -> Option<&str> {
        self.subject.iter().find_map(|it| it.digest.get(COMMIT_DIGEST)).map(String::as_str)
    }

    /// The differences between this statement and a journal, as texts. The list is empty if there
    /// are none.
    ///
    /// The journal does not contain the commit, so the commit and `uncommitted` are not compared. A
    /// caller that knows the expected commit compares it with [`Statement::commit`].
    pub fn differences(&self, account: &JournalAccount) -> Vec<String> {
        // `None`: the journal does not contain the commit.
        let computed = Self::new(account, None);
        let mut differences = Vec::new();
        for subject in &computed.subject {
            if !self.subject.contains(subject) {
                differences.push(format!("`{}` differs from the attested one", subject.name));
            }
        }
        let to_json =
            |predicate: &SessionPredicate| serde_json::to_value(predicate).unwrap_or_default();
        let mut attested = self.predicate.clone();
        // The computed predicate has no value here either, so this field never differs.
        attested.uncommitted = None;
        add_differences("", &to_json(&attested), &to_json(&computed.predicate), &mut differences);
        differences
    }
}

impl SessionPredicate {
    /// The facts in a journal account. `uncommitted` is `None` if there is no commit.
    fn of(account: &JournalAccount, uncommitted: Option<bool>) -> Self {
        let summary = account.session.summary();
        let bits = summary.dirty_bits;
        let definition = account.session.definition();
        Self {
            session: account.opening.session.clone(),
            agent: json!({
                "checksum": account.session.agent_checksum(),
                "role": account.session.agent().role,
                "unknown": account.session.agent().unknown_parts(),
            }),
            definition: json!({ "name": definition.name, "checksum": account.checksum() }),
            verdicts: account.verdicts.clone(),
            completion: json!(account.completion),
            stop: json!(summary.stop),
            tests: json!({
                "code_modified": bits.code_modified,
                "run": bits.tests_run,
                "passing": bits.tests_passing,
                "skipped": bits.skipped,
            }),
            journal: json!({
                "head": account.chain.head,
                "records": account.chain.records,
                "bytes": account.chain.bytes,
            }),
            engine: account.engine.0.clone(),
            semantics: account.engine.1,
            started: summary.started,
            ended: account.ended,
            uncommitted,
        }
    }

    /// The stop code with which the session ended; `None` if it has not ended.
    pub fn stop_code(&self) -> Option<&str> {
        self.stop.get("code").and_then(Value::as_str)
    }
}

/// Adds a text for each path at which two values differ. A key that only one of two objects has is
/// compared with null, so a missing key and a key with the value null are the same.
fn add_differences(path: &str, attested: &Value, computed: &Value, differences: &mut Vec<String>) {
    match (attested, computed) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let value_in = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                let (attested, computed) =
                    (value_in(one).unwrap_or_default(), value_in(other).unwrap_or_default());
                let dot = if path.is_empty() { "" } else { "." };
                add_differences(&format!("{path}{dot}{key}"), &attested, &computed, differences);
            }
        }
        _ if attested == computed => {}
        _ => differences.push(format!(
            "`{path}` is attested as {attested}, but in the journal it is {computed}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_listed_with_its_path() {
        let mut differences = Vec::new();
        let attested = json!({ "a": { "deny": 2, "ask": 1 }, "b": null, "c": 1 });
        let computed = json!({ "a": { "deny": 3 }, "b": { "code": "X" }, "c": 1 });
        add_differences("", &attested, &computed, &mut differences);
        assert_eq!(
            differences,
            [
                "`a.ask` is attested as 1, but in the journal it is null",
                "`a.deny` is attested as 2, but in the journal it is 3",
                "`b` is attested as null, but in the journal it is {\"code\":\"X\"}",
            ]
        );
    }

    #[test]
    fn other_statements_are_refused() {
        for (text, expected) in [
            ("", "EOF"),
            ("{}", "`_type` is not"),
            (
                r#"{"_type":"https://in-toto.io/Statement/v1","predicateType":"x"}"#,
                "`predicateType`",
            ),
        ] {
            let error = Statement::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
