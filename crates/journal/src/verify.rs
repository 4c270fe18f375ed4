//! Checks a whole journal, and tells a torn tail, a truncation and tampering apart.

use jackline_engine::Digest;
use serde::Serialize;

use crate::chain::{check_line, claimed_seq};
use crate::head::Head;

/// How many findings are listed.
const FINDINGS_MAX: usize = 20;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The record.
    pub record: u64,
    /// What does not fit.
    pub reason: String,
}

/// What is wrong with a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A record is not what was written.
    Tampered,
    /// Records at the end are missing.
    Truncated,
    /// The last record was not written to its end.
    Torn,
    /// A record can't be understood.
    Unreadable,
    /// A payload is not what was kept.
    Blob,
    /// An export does not fit its journal.
    Export,
}

impl FindingKind {
    /// The word in reports.
    pub fn word(self) -> &'static str {
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

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many records were read.
    pub records: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// The hash of the last record.
    pub head: Option<Digest>,
    /// What is not as it should be, in the order of the journal.
    pub findings: Vec<Finding>,
    /// How many findings there are beyond those.
    pub more: u64,
}

impl Report {
    /// Whether the journal is what was written.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Report {
    /// Adds something that was found beside the chain.
    pub fn add(&mut self, kind: FindingKind, record: u64, reason: String) {
        self.findings.push(Finding { kind, record, reason });
    }
}

/// Checks a journal line by line.
#[derive(Debug, Default)]
pub struct Verifier {
    lines: u64,
    bytes: u64,
    /// The hash the next line must carry as `prev`.
    last: Option<Digest>,
    findings: Vec<Finding>,
    more: u64,
    /// What the record at the saved head was, if it was passed.
    at_saved: Option<bool>,
    saved: Option<Head>,
}

impl Verifier {
    /// A check of a journal whose saved state, if there is one, ends at `saved`.
    pub fn new(saved: Option<Head>) -> Self {
        Self { saved, ..Self::default() }
    }

    /// Checks one line, given without its newline; says whether it is whole.
    pub fn line(&mut self, line: &[u8]) -> bool {
        let number = self.lines;
        let before = self.findings.len() as u64 + self.more;
        self.lines += 1;
        self.bytes += line.len() as u64 + 1;
        let hash = match check_line(line) {
            Err(fault) => {
                self.find(FindingKind::Tampered, number, fault.to_string());
                None
            }
            Ok(sealed) => {
                if claimed_seq(line) != Some(number) {
                    self.find(FindingKind::Tampered, number, "it has another number".to_owned());
                }
                // After a broken line there is nothing to compare with.
                let expected = if number == 0 { Some(Digest::ZERO) } else { self.last };
                if expected.is_some_and(|expected| expected != sealed.prev) {
                    let reason = "it does not follow the record before it".to_owned();
                    self.find(FindingKind::Tampered, number, reason);
                }
                Some(sealed.hash)
            }
        };
        self.last = hash;
        if let Some(saved) = self.saved.filter(|saved| saved.seq == number) {
            let same = hash == Some(saved.hash);
            self.at_saved = Some(same);
            if !same && hash.is_some() {
                let reason = "it is not the record that was answered".to_owned();
                self.find(FindingKind::Tampered, number, reason);
            }
        }
        self.findings.len() as u64 + self.more == before
    }

    /// Whether everything so far is what was written.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Ends the check; `torn` bytes follow the last newline.
    pub fn finish(mut self, torn: u64) -> Report {
        let next = self.lines;
        match self.saved {
            Some(saved) if self.at_saved.is_none() => {
                if torn > 0 {
                    let reason = format!("{torn} bytes of it are left, without an end");
                    self.find(FindingKind::Tampered, next, reason);
                } else {
                    let reason = if saved.seq == next {
                        "it is missing".to_owned()
                    } else {
                        format!("records {next} to {} are missing", saved.seq)
                    };
                    self.find(FindingKind::Truncated, next, reason);
                }
            }
            _ if torn > 0 => {
                let reason = format!("{torn} bytes of a record that was never answered");
                self.find(FindingKind::Torn, next, reason);
            }
            _ => {}
        }
        Report {
            records: self.lines,
            bytes: self.bytes,
            head: self.last,
            findings: self.findings,
            more: self.more,
        }
    }

    fn find(&mut self, kind: FindingKind, record: u64, reason: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { kind, record, reason });
        } else {
            self.more += 1;
        }
    }
}
