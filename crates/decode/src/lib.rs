//! What a model wrote, made into JSON that a schema allows.
//!
//! Strictly first, then cleaned up, then validated; what is still wrong becomes
//! a request to write it again that says where and why.

pub mod stream;
