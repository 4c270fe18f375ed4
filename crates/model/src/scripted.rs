//! A model that answers from a script, either on a loopback address or in the process.
//!
//! Over HTTP it supports the APIs of all providers and records the requests. So a test can check
//! what the agent has shown to the model.

mod http_request;
mod in_process_model;
mod provider_formats;
mod recorded_request;
mod script;
mod script_parser;
mod scripted_server;

pub use in_process_model::InProcessModel;
pub use recorded_request::{RecordedRequest, RecordedRequestKind, RecordedToolResult};
pub use script::{AnswerDefect, ModelScript, ScriptStep, ScriptUsage, ScriptedToolCall};
pub use script_parser::ScriptError;
pub use scripted_server::ScriptedModel;
