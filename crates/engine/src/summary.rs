//! What a session says of itself: see [`Session::summary`](crate::Session::summary).

pub use crate::guards::advisor::AdvisorSummary;
pub use crate::guards::dirty::{DirtySummary, TestsPassing};
pub use crate::guards::identity::Agent;
pub use crate::guards::loops::{LoopAt, LoopLevel, LoopNoticed, LoopSummary, LoopsSummary};
pub use crate::guards::progress::{ProgressSummary, TestCounts};
pub use crate::state::{
    ActionEnd, BudgetSummary, ContextSummary, Invocations, LastAction, Order, PauseCause,
    ReportFile, TurnStatus, TurnSummary, UsageTotals, Waiting,
};
