//! Models that agents talk to.
//!
//! So far there is one, which has no mind of its own: it says what a script
//! tells it, so that a real agent client can be driven without a key, without a
//! network, and the same way every time.

pub mod scripted;
