//! `shell`, as a tool among the others.

use std::error::Error as _;

use serde_json::{Value, json};

use super::{ShellError, run};
use crate::arguments::Arguments;
use crate::error::{Code, ToolError};
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "shell",
        description: "Runs a command line in the workspace and waits for its end. There is no \
                      terminal and no input. What is left running in the background is ended with \
                      it. Of a long output both ends are shown.",
        input_schema: schema(&["command"], &[("command", "string", "The command line.")]),
        read_only: false,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let command = args.text("command")?;
    args.finish()?;
    let output = run(workspace.jail.real(), &workspace.limits.shell, command)
        .map_err(|error| failed(&error))?;
    Ok(ToolOutput { text: output.render_text(), structured: json!(output) })
}

fn failed(error: &ShellError) -> ToolError {
    let code = match error {
        ShellError::Empty | ShellError::Nul => Code::InvalidArguments,
        ShellError::TooLong { .. } => Code::TooLarge,
        ShellError::Lost => Code::CommandLost,
        _ => Code::CommandNotRun,
    };
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    ToolError::new(code, format!("{error}{cause}")).advice(error.guidance())
}
