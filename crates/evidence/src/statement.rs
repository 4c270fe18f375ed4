//! What is said about a session: a statement of in-toto, version 1, whose predicate can be
//! worked out again from the journal.

use std::collections::BTreeMap;

use jackline_analysis::{Account, Verdicts};
use jackline_engine::{Digest, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The type of a statement.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// The type of what is said in it.
pub const PREDICATE_TYPE: &str = "urn:jackline:attestation:session:v1";

/// What a commit is called among the subjects.
const COMMIT: &str = "gitCommit";

/// A statement about a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: BTreeMap<String, String>,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// The session.
    pub session: SessionId,
    /// The agent: its checksum, its role, and the parts of it that nobody knows.
    pub agent: Value,
    /// The definition in force at the end: its name and checksum.
    pub definition: Value,
    /// How often was decided what.
    pub verdicts: Verdicts,
    /// What became of the last completion check; null where there was none.
    pub completion: Value,
    /// How it ended; null where it has not.
    pub stop: Value,
    /// Whether code was changed, and tested since.
    pub tests: Value,
    /// The journal: its last hash, its length.
    pub journal: Value,
    /// The engine that wrote the last record.
    pub engine: String,
    /// What its verdicts mean.
    pub semantics: u32,
    /// When the session began.
    pub started: Timestamp,
    /// When its last record was written.
    pub ended: Timestamp,
    /// Whether files of the workspace were not as in the commit, or not in it; null without one.
    pub uncommitted: Option<bool>,
}

/// The commit that a workspace is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its name.
    pub id: String,
    /// Whether files are not as in it, or not in it.
    pub uncommitted: bool,
}

/// Why signed bytes are no statement about a session.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// They are something else.
    #[error("what was signed is no statement about a session: {0}")]
    None(String),
}

impl Statement {
    /// What there is to say.
    pub fn new(account: &Account, commit: Option<&Commit>) -> Self {
        let session = &account.opened.session;
        let sha256 = |name: String, digest: Digest| Subject {
            name,
            digest: BTreeMap::from([("sha256".to_owned(), digest.to_string())]),
        };
        let mut subject = vec![sha256(format!("journal of {session}"), account.sha256)];
        subject.extend(account.chain.head.map(|head| sha256(format!("head of {session}"), head)));
        subject.extend(commit.map(|commit| Subject {
            name: "commit".to_owned(),
            digest: BTreeMap::from([(COMMIT.to_owned(), commit.id.clone())]),
        }));
        Self {
            kind: STATEMENT_TYPE.to_owned(),
            subject,
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate::of(account, commit.map(|commit| commit.uncommitted)),
        }
    }

    /// Reads the bytes that were signed.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementError> {
        let none = |reason: String| StatementError::None(reason);
        let kind: Value = serde_json::from_slice(bytes).map_err(|e| none(e.to_string()))?;
        for (field, expected) in [("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)] {
            if kind.get(field).and_then(Value::as_str) != Some(expected) {
                return Err(none(format!("`{field}` is not `{expected}`")));
            }
        }
        serde_json::from_slice(bytes).map_err(|e| none(e.to_string()))
    }

    /// The bytes to sign.
    pub fn render(&self) -> Vec<u8> {
        // Plain data with text keys has no way to fail to be JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What is said.
    pub fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// The commit that it is about.
    pub fn commit(&self) -> Option<&str> {
        self.subject.iter().find_map(|it| it.digest.get(COMMIT)).map(String::as_str)
    }

    /// Where a journal says something else, in words; none if all of it holds.
    pub fn differences(&self, account: &Account) -> Vec<String> {
        let told = Self::new(account, None);
        let mut differences = Vec::new();
        for subject in &told.subject {
            if !self.subject.contains(subject) {
                differences.push(format!("`{}` is not the one that was attested", subject.name));
            }
        }
        let value = |predicate: &Predicate| serde_json::to_value(predicate).unwrap_or_default();
        let mut said = self.predicate.clone();
        said.uncommitted = None;
        compare("", &value(&said), &value(&told.predicate), &mut differences);
        differences
    }
}

impl Predicate {
    fn of(account: &Account, uncommitted: Option<bool>) -> Self {
        let summary = account.session.summary();
        let bits = summary.dirty_bits;
        let definition = account.session.definition();
        Self {
            session: account.opened.session.clone(),
            agent: json!({
                "checksum": account.session.agent_checksum(),
                "role": account.session.agent().role,
                "unknown": account.session.agent().unknown(),
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

    /// The code that the session ended with.
    pub fn stop_code(&self) -> Option<&str> {
        self.stop.get("code").and_then(Value::as_str)
    }
}

/// Names every place at which two values differ.
fn compare(place: &str, said: &Value, told: &Value, differences: &mut Vec<String>) {
    match (said, told) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let at = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                let (said, told) = (at(one).unwrap_or_default(), at(other).unwrap_or_default());
                let dot = if place.is_empty() { "" } else { "." };
                compare(&format!("{place}{dot}{key}"), &said, &told, differences);
            }
        }
        _ if said == told => {}
        _ => differences
            .push(format!("`{place}` is attested as {said}, and the journal says {told}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named_by_its_place() {
        let mut found = Vec::new();
        let said = json!({ "a": { "deny": 2, "ask": 1 }, "b": null, "c": 1 });
        let told = json!({ "a": { "deny": 3 }, "b": { "code": "X" }, "c": 1 });
        compare("", &said, &told, &mut found);
        assert_eq!(
            found,
            [
                "`a.ask` is attested as 1, and the journal says null",
                "`a.deny` is attested as 2, and the journal says 3",
                "`b` is attested as null, and the journal says {\"code\":\"X\"}",
            ]
        );
    }

    #[test]
    fn other_statements_are_not_ours() {
        for (text, says) in [
            ("", "EOF"),
            ("{}", "`_type` is not"),
            (
                r#"{"_type":"https://in-toto.io/Statement/v1","predicateType":"x"}"#,
                "`predicateType`",
            ),
        ] {
            let error = Statement::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
