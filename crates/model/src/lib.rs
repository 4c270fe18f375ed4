//! Models that agents talk to.
