//! The types of a session summary: see [`Session::summary`](crate::Session::summary).

pub use crate::guards::advisor::AdvisorSummary;
pub use crate::guards::dirty::{DirtySummary, TestsPassing};
pub use crate::guards::identity::AgentProfile;
pub use crate::guards::loops::{LoopAt, LoopLevel, LoopReport, LoopSummary, LoopsSummary};
pub use crate::guards::progress::{ProgressSummary, TestCounts};
pub use crate::state::{
    ActionEnd, BudgetSummary, ContextSummary, Invocations, LastAction, PauseCause, ReportChange,
    ReportFile, TurnStatus, TurnSummary, UsageTotals, WaitingCall,
};
