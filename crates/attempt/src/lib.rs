//! What a model wrote, run as a transaction.
//!
//! An artifact, a program or a plan, is generated, validated, executed, and its outcome
//! judged. Where one of these fails, everything the attempt did is undone, and the
//! generator is told what to do otherwise, within budgets. What ends a call is typed,
//! and has two views: one with everything, for those who repair it, and one without any
//! of the inside, for whoever asked.
//!
//! Nothing in here reads a clock, a file or the network: the parts are traits, and with
//! the same answers a call goes the same way.

mod boundary;
mod call;
mod failure;
mod feedback;
mod health;
mod lanes;
mod outcome;
mod parts;
mod trace;
mod violation;

pub use boundary::{InternalOutcome, Normalization, POLICY, PublicOutcome, PublicStatus, egress};
pub use call::{Call, Ended};
pub use failure::{FailureClass, is_extrinsic};
pub use feedback::{Ask, Feedback};
pub use health::{Health, HealthLimits, SAMPLES_MAX, Sample, ToolState};
pub use jackline_engine::event::Stage;
pub use lanes::{Budgets, Counter, Lane, Lanes};
pub use outcome::{Outcome, OutcomeError, Source};
pub use parts::{
    Executor, Fault, Generator, Parts, ProviderError, Restored, RollbackError, SnapshotError,
    Stages, Transaction, Validator,
};
pub use trace::{AttemptFailure, FAILURE_CHARS_MAX, FAILURES_MAX, Trace};
pub use violation::{Location, Subtype, Violation};
