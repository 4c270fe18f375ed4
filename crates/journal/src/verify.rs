//! Checks a whole journal, and distinguishes an incomplete last record, a truncation and tampering.

use jackline_engine::Digest;
use serde::Serialize;

use crate::chain::{check_line, parse_seq};
use crate::head::JournalHead;

/// The largest number of listed findings.
const PROBLEMS_LISTED_MAX: usize = 20;

/// One problem in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JournalProblem {
    /// The kind of problem.
    pub kind: JournalProblemKind,
    /// The record number.
    pub record: u64,
    /// The reason.
    pub reason: String,
}

/// The kind of a problem in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalProblemKind {
    /// A record differs from the record that was written.
    Tampered,
    /// Records at the end are missing.
    Truncated,
    /// The last record is incomplete.
    Torn,
    /// A record can't be parsed.
    Unreadable,
    /// A payload differs from the stored one.
    Blob,
    /// An export does not match its journal.
    Export,
}

impl JournalProblemKind {
    /// The JSON word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tampered => "tampered",
            Self::Truncated => "truncated",
            Self::Torn => "torn",
            Self::Unreadable => "unreadable",
            Self::Blob => "blob",
            Self::Export => "export",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The number of records that were read.
    pub records: u64,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The hash of the last record.
    pub head: Option<Digest>,
    /// The problems, in the order of the journal.
    pub findings: Vec<JournalProblem>,
    /// The number of problems that are not listed.
    pub more: u64,
}

impl VerifyReport {
    /// Whether the journal has no problems.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl VerifyReport {
    /// Adds a problem that was found outside of the hash chain.
    pub fn add(&mut self, kind: JournalProblemKind, record: u64, reason: String) {
        self.findings.push(JournalProblem { kind, record, reason });
    }
}

/// Checks a journal line by line.
#[derive(Debug, Default)]
pub struct Verifier {
    lines: u64,
    bytes: u64,
    /// The hash that the next line must have as `prev`.
    last: Option<Digest>,
    findings: Vec<JournalProblem>,
    more: u64,
    /// Whether the record at the saved head had the saved hash, if it was read.
    at_saved: Option<bool>,
    saved: Option<JournalHead>,
}

impl Verifier {
    /// A check of a journal whose saved state, if there is one, has the head `saved`.
    pub fn new(saved: Option<JournalHead>) -> Self {
        Self { saved, ..Self::default() }
    }

    /// Checks one line without its newline. Returns whether it is correct.
    pub fn check_line(&mut self, line: &[u8]) -> bool {
        let number = self.lines;
        let before = self.findings.len() as u64 + self.more;
        self.lines += 1;
        self.bytes += line.len() as u64 + 1;
        let hash = match check_line(line) {
            Err(fault) => {
                self.add_problem(JournalProblemKind::Tampered, number, fault.to_string());
                None
            }
            Ok(sealed) => {
                if parse_seq(line) != Some(number) {
                    self.add_problem(
                        JournalProblemKind::Tampered,
                        number,
                        "its number is wrong".to_owned(),
                    );
                }
                // After a damaged line, there is no hash to compare with.
                let expected = if number == 0 { Some(Digest::ZERO) } else { self.last };
                if expected.is_some_and(|expected| expected != sealed.prev) {
                    let reason = "it does not follow the previous record".to_owned();
                    self.add_problem(JournalProblemKind::Tampered, number, reason);
                }
                Some(sealed.hash)
            }
        };
        self.last = hash;
        if let Some(saved) = self.saved.filter(|saved| saved.seq == number) {
            let same = hash == Some(saved.hash);
            self.at_saved = Some(same);
            if !same && hash.is_some() {
                let reason = "it differs from the record that was answered".to_owned();
                self.add_problem(JournalProblemKind::Tampered, number, reason);
            }
        }
        self.findings.len() as u64 + self.more == before
    }

    /// Whether there were no problems so far.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Ends the check; `torn` bytes follow the last newline.
    pub fn finish(mut self, torn: u64) -> VerifyReport {
        let next = self.lines;
        match self.saved {
            Some(saved) if self.at_saved.is_none() => {
                if torn > 0 {
                    let reason = format!("it is incomplete: only {torn} bytes of it are left");
                    self.add_problem(JournalProblemKind::Tampered, next, reason);
                } else {
                    let reason = if saved.seq == next {
                        "it is missing".to_owned()
                    } else {
                        format!("records {next} to {} are missing", saved.seq)
                    };
                    self.add_problem(JournalProblemKind::Truncated, next, reason);
                }
            }
            _ if torn > 0 => {
                let reason =
                    format!("an incomplete record of {torn} bytes, which was never answered");
                self.add_problem(JournalProblemKind::Torn, next, reason);
            }
            _ => {}
        }
        VerifyReport {
            records: self.lines,
            bytes: self.bytes,
            head: self.last,
            findings: self.findings,
            more: self.more,
        }
    }

    fn add_problem(&mut self, kind: JournalProblemKind, record: u64, reason: String) {
        if self.findings.len() < PROBLEMS_LISTED_MAX {
            self.findings.push(JournalProblem { kind, record, reason });
        } else {
            self.more += 1;
        }
    }
}
