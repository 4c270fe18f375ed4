//! Reads journals without recording new decisions.
//!
//! A replay decides every event again and compares the verdicts. A backtest decides recorded events
//! with another definition. An explanation decides on a hypothetical call and discards the session.
//! An account summarises a journal for exports and attestations.

mod backtest;
mod explain;
mod journal_account;
mod replay;

pub use backtest::{
    Backtest, BacktestCall, BacktestInput, BacktestJournal, BacktestLoop, BacktestOutcome,
    BacktestRun, BacktestStep, LINE_BYTES_MAX, LineEnd, RecordedRun, ResultMemo, Undecidable,
    UnrecordedFact, open_lines, read_line, violation_source,
};
pub use explain::{
    CallInput, Explainer, Explanation, HypotheticalCall, RuleAlternative, ViolationReason,
};
pub use journal_account::{
    AccountError, JournalAccount, VerdictCounts, export_session, find_export_mismatches,
};
pub use replay::{Replay, ReplayReport, VerdictDifference};
