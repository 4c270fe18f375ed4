//! What reads journals and decides nothing new.
//!
//! Replay decides every event again and compares. Backtest decides recorded events under another
//! definition. Explain decides on a made-up call, and throws the session away. An account
//! adds a journal up for exports and attestations.

mod account;
mod backtest;
mod explain;
mod replay;

pub use account::{Account, AccountError, Verdicts, export, misfits};
pub use backtest::{
    Backtest, BacktestJournal, BacktestOutcome, BacktestRun, BacktestStep, Call, FoundLoop,
    LINE_BYTES_MAX, Lack, LineEnd, Memo, Source, Trajectory, Undecidable, name_of, open_lines,
    read_line,
};
pub use explain::{Explained, Explainer, Instead, Proposed, Reason, Supposed};
pub use replay::{Difference, Replay, ReplayReport};
