//! The workspace tools by name, with their specifications and handlers.

use std::path::Path;
use std::sync::LazyLock;

use jackline_engine::nearest_name;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{OpenError, ToolError, ToolErrorCode};
use crate::guidance::Guidance;
use crate::jail::Jail;
use crate::limits::WorkspaceLimits;
use crate::read::PartialLines;
use crate::shell::{CancelSignal, ShellLimits};
use crate::transaction::OpenAttempts;
use crate::{edit, find, list, read, search, shell, write};

/// A workspace directory and the tools that work in it.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) jail: Jail,
    pub(crate) limits: WorkspaceLimits,
    pub(crate) attempts: OpenAttempts,
    pub(crate) partial_lines: PartialLines,
}

/// The description of a tool for its callers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// The name of the tool.
    pub name: &'static str,
    /// The description for a model.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// Whether the tool changes nothing.
    pub read_only: bool,
}

/// The answer of a tool, as text and as JSON fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolAnswer {
    /// The text for a model.
    pub text: String,
    /// The same information for programs.
    pub structured: Value,
}

impl ToolAnswer {
    /// Adds a note about the answer to the text, in square brackets.
    pub(crate) fn add_note(&mut self, note: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        for part in ["[", note, "]\n"] {
            self.text.push_str(part);
        }
    }

    /// Adds suggestions to the text, and as a field.
    pub(crate) fn add_guidance(&mut self, nothing: &str, guidance: &Guidance) {
        self.add_note(format!("{nothing} {}", guidance.text).trim_start());
        if let Some(fields) = self.structured.as_object_mut() {
            fields.insert("guidance".to_owned(), json!(guidance));
        }
    }
}

/// The function that answers the calls of a tool.
type ToolHandler = fn(&Workspace, &Value) -> Result<ToolAnswer, ToolError>;

static TOOLS: LazyLock<Vec<(ToolSpec, ToolHandler)>> = LazyLock::new(|| {
    vec![
        (read::spec(), read::call as ToolHandler),
        (list::spec(), list::call),
        (search::spec(), search::call),
        (find::spec(), find::call),
        (write::spec(), write::call),
        (edit::spec(), edit::call),
        (shell::spec(), shell::call),
    ]
});

static SPECS: LazyLock<Vec<ToolSpec>> =
    LazyLock::new(|| TOOLS.iter().map(|(spec, _)| spec.clone()).collect());

/// All tools, in display order.
pub fn tools() -> &'static [ToolSpec] {
    &SPECS
}

impl Workspace {
    /// Opens a directory as a workspace. It stays open even if it is moved.
    pub fn open(root: impl AsRef<Path>, limits: WorkspaceLimits) -> Result<Workspace, OpenError> {
        let jail = Jail::open(root.as_ref())?;
        let (attempt, pieces) = (OpenAttempts::default(), PartialLines::default());
        Ok(Workspace {
            jail,
            limits: limits.raised_to_minimum(),
            attempts: attempt,
            partial_lines: pieces,
        })
    }

    /// All tools; the same for every workspace.
    pub fn tools(&self) -> &'static [ToolSpec] {
        tools()
    }

    /// Calls a tool by name.
    pub fn call(&self, name: &str, args: &Value) -> Result<ToolAnswer, ToolError> {
        match TOOLS.iter().find(|(spec, _)| spec.name == name) {
            Some((_, answer)) => answer(self, args),
            None => {
                let offered: Vec<&str> = tools().iter().map(|spec| spec.name).collect();
                Err(ToolError::unknown_tool(name, &offered))
            }
        }
    }

    /// Calls a tool that can be cancelled. Only a command runs long enough for that; cancelling
    /// ends it and every process it started.
    pub fn call_until(
        &self,
        name: &str,
        args: &Value,
        cancel: &CancelSignal,
    ) -> Result<ToolAnswer, ToolError> {
        if name != SHELL {
            return self.call(name, args);
        }
        let cancel = self.limits.shell.cancel.or(cancel);
        shell::call_within(self, args, &ShellLimits { cancel, ..self.limits.shell.clone() })
    }
}

/// The name of the tool that runs commands.
pub const SHELL: &str = "shell";

/// The name of the tool that writes a whole file.
pub const WRITE_FILE: &str = "write_file";

/// The name of the tool that replaces a part of a file.
pub const EDIT_FILE: &str = "edit_file";

impl ToolError {
    /// The error for a tool that is not among the offered ones.
    pub fn unknown_tool(name: &str, offered: &[&str]) -> Self {
        let all: Vec<String> = offered.iter().map(|name| format!("`{name}`")).collect();
        let meant = nearest_name(name, offered.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!("Did you mean `{meant}`? "));
        Self::new(ToolErrorCode::UnknownTool, format!("there is no tool `{name}`"))
            .with_advice(format!("{meant}The tools are {}.", all.join(", ")))
    }
}

/// The JSON schema of arguments. Each property has a name, a type and a description.
pub(crate) fn schema(required: &[&str], properties: &[(&str, &str, &str)]) -> Value {
    let property = |(name, kind, description): &(&str, &str, &str)| {
        let mut schema = json!({ "type": kind, "description": description });
        if let (Some(fields), "integer") = (schema.as_object_mut(), *kind) {
            fields.insert("minimum".to_owned(), json!(i32::from(*name != "line_offset")));
        }
        ((*name).to_owned(), schema)
    };
    json!({
        "type": "object",
        "properties": properties.iter().map(property).collect::<serde_json::Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}
