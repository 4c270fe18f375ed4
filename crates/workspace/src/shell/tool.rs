//! `shell`, as a tool among the others.

use std::error::Error as _;

use serde_json::{Value, json};

use super::apply::apply;
use super::layers::Laid;
use super::{ShellError, ShellLimits, ShellOutput, run, run_over};
use crate::arguments::Arguments;
use crate::error::{Code, ToolError};
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: crate::tools::SHELL,
        description: "Runs a command line in the workspace and waits for its end. There is no \
                      terminal and no input. What is left running in the background is ended with \
                      it. Of a long output both ends are shown.",
        input_schema: schema(&["command"], &[("command", "string", "The command line.")]),
        read_only: false,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    call_within(workspace, args, &workspace.limits.shell)
}

/// The same within other limits.
pub(crate) fn call_within(
    workspace: &Workspace,
    args: &Value,
    limits: &ShellLimits,
) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let command = args.text("command")?;
    args.finish()?;
    let laid = workspace.layer().and_then(|directory| Laid::new(directory).ok());
    if let Some(laid) = &laid
        && let Some(output) = layered(workspace, laid, limits, command)?
    {
        return Ok(output);
    }
    let output = run(workspace.jail.real(), limits, command).map_err(|error| failed(&error))?;
    Ok(answer(&output))
}

fn answer(output: &ShellOutput) -> ToolOutput {
    ToolOutput { text: output.render_text(), structured: json!(output) }
}

/// Runs it in a layer, and does what it did there to the workspace, so that it can be undone;
/// nothing where there is no such layer, and then nothing was run.
fn layered(
    workspace: &Workspace,
    laid: &Laid,
    limits: &ShellLimits,
    command: &str,
) -> Result<Option<ToolOutput>, ToolError> {
    let root = workspace.jail.real();
    let output = match run_over(root, limits, command, Some(&laid.layers)) {
        Err(ShellError::NotLayered) => return Ok(None),
        output => output.map_err(|error| failed(&error))?,
    };
    let left_out = apply(workspace, &laid.layers.upper)?;
    let mut answer = answer(&output);
    for (path, why) in &left_out {
        answer.note(&format!("`{path}` {why}: that is left out"));
    }
    if let Some(fields) = answer.structured.as_object_mut() {
        fields.insert("undoable".to_owned(), true.into());
        if !left_out.is_empty() {
            let paths: Vec<&String> = left_out.keys().collect();
            fields.insert("left_out".to_owned(), json!(paths));
        }
    }
    Ok(Some(answer))
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
