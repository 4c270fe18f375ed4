//! The tool `shell`, which runs a command line.

use std::error::Error as _;

use serde_json::{Value, json};

use super::apply_layer::apply_layer;
use super::layers::CommandLayer;
use super::{ShellError, ShellLimits, ShellOutput, run_command, run_command_over};
use crate::error::{ToolError, ToolErrorCode};
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: crate::tools::SHELL,
        description: "Runs a command line in the workspace and waits for its end. It has no \
                      terminal and no input. Background processes are ended with \
                      it. For a long output, only the start and the end are shown.",
        input_schema: schema(&["command"], &[("command", "string", "The command line.")]),
        read_only: false,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    call_within(workspace, args, &workspace.limits.shell)
}

/// Runs the command within the given limits.
pub(crate) fn call_within(
    workspace: &Workspace,
    args: &Value,
    limits: &ShellLimits,
) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let command = args.text("command")?;
    args.reject_unknown()?;
    let laid = workspace.layer_directory().and_then(|directory| CommandLayer::new(directory).ok());
    if let Some(laid) = &laid
        && let Some(output) = call_in_layer(workspace, laid, limits, command)?
    {
        return Ok(output);
    }
    let output = run_command(workspace.jail.real(), limits, command)
        .map_err(|error| shell_tool_error(&error))?;
    Ok(tool_answer(&output))
}

fn tool_answer(output: &ShellOutput) -> ToolAnswer {
    ToolAnswer { text: output.render_text(), structured: json!(output) }
}

/// Runs the command in an overlay layer and then applies its changes to the workspace, so that they
/// can be undone. Returns `None` if overlays are not supported; then nothing was run.
fn call_in_layer(
    workspace: &Workspace,
    laid: &CommandLayer,
    limits: &ShellLimits,
    command: &str,
) -> Result<Option<ToolAnswer>, ToolError> {
    let root = workspace.jail.real();
    let output = match run_command_over(root, limits, command, Some(&laid.paths)) {
        Err(ShellError::NotLayered) => return Ok(None),
        output => output.map_err(|error| shell_tool_error(&error))?,
    };
    let left_out = apply_layer(workspace, &laid.paths.upper)?;
    let mut answer = tool_answer(&output);
    for (path, why) in &left_out {
        answer.add_note(&format!("`{path}` was left out: it {why}"));
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

fn shell_tool_error(error: &ShellError) -> ToolError {
    let code = match error {
        ShellError::Empty | ShellError::ContainsNul => ToolErrorCode::InvalidArguments,
        ShellError::TooLong { .. } => ToolErrorCode::TooLarge,
        ShellError::Lost => ToolErrorCode::CommandLost,
        _ => ToolErrorCode::CommandNotRun,
    };
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    ToolError::new(code, format!("{error}{cause}")).with_advice(error.guidance())
}
