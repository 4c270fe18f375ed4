//! The tools by name: what they are called with, and who answers.

use std::path::Path;
use std::sync::LazyLock;

use jackline_engine::nearest;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Code, OpenError, ToolError};
use crate::guidance::Guidance;
use crate::jail::Jail;
use crate::limits::Limits;
use crate::read::Pieces;
use crate::shell::{Cancel, ShellLimits};
use crate::transaction::Attempt;
use crate::{edit, find, list, read, search, shell, write};

/// A directory and the tools to work in it.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) jail: Jail,
    pub(crate) limits: Limits,
    pub(crate) attempt: Attempt,
    pub(crate) pieces: Pieces,
}

/// What is said about a tool to whoever calls it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// Whether it leaves everything as it is.
    pub read_only: bool,
}

/// What a tool answers, twice: as text, and as fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolOutput {
    /// For reading.
    pub text: String,
    /// The same for programs, complete in itself.
    pub structured: Value,
}

impl ToolOutput {
    /// Adds to the text what is said about the answer, and is not part of it.
    pub(crate) fn note(&mut self, note: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        for part in ["[", note, "]\n"] {
            self.text.push_str(part);
        }
    }

    /// Adds guidance, as text and as a field.
    pub(crate) fn guide(&mut self, nothing: &str, guidance: &Guidance) {
        self.note(format!("{nothing} {}", guidance.text).trim_start());
        if let Some(fields) = self.structured.as_object_mut() {
            fields.insert("guidance".to_owned(), json!(guidance));
        }
    }
}

/// Who answers a call.
type Answer = fn(&Workspace, &Value) -> Result<ToolOutput, ToolError>;

static TOOLS: LazyLock<Vec<(ToolSpec, Answer)>> = LazyLock::new(|| {
    vec![
        (read::spec(), read::call as Answer),
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

/// All tools, in the order that they are shown in.
pub fn tools() -> &'static [ToolSpec] {
    &SPECS
}

impl Workspace {
    /// Opens a directory to work in. It stays open, even if it is moved.
    pub fn open(root: impl AsRef<Path>, limits: Limits) -> Result<Workspace, OpenError> {
        let jail = Jail::open(root.as_ref())?;
        let (attempt, pieces) = (Attempt::default(), Pieces::default());
        Ok(Workspace { jail, limits: limits.workable(), attempt, pieces })
    }

    /// All tools; the same for every workspace.
    pub fn tools(&self) -> &'static [ToolSpec] {
        tools()
    }

    /// Calls a tool by its name.
    pub fn call(&self, name: &str, args: &Value) -> Result<ToolOutput, ToolError> {
        match TOOLS.iter().find(|(spec, _)| spec.name == name) {
            Some((_, answer)) => answer(self, args),
            None => Err(unknown(name)),
        }
    }

    /// The same for a call that may be taken back. Only a command takes long enough for that;
    /// it is ended, with everything it has started.
    pub fn call_until(
        &self,
        name: &str,
        args: &Value,
        cancel: &Cancel,
    ) -> Result<ToolOutput, ToolError> {
        if name != SHELL {
            return self.call(name, args);
        }
        let cancel = self.limits.shell.cancel.or(cancel);
        shell::call_within(self, args, &ShellLimits { cancel, ..self.limits.shell.clone() })
    }
}

/// The tool that runs commands.
pub const SHELL: &str = "shell";

/// The tool that writes a whole file.
pub const WRITE_FILE: &str = "write_file";

/// The tool that changes a part of a file.
pub const EDIT_FILE: &str = "edit_file";

fn unknown(name: &str) -> ToolError {
    let names = || tools().iter().map(|spec| spec.name);
    let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    let meant = nearest(name, names());
    let meant = meant.map_or_else(String::new, |meant| format!("Did you mean `{meant}`? "));
    ToolError::new(Code::UnknownTool, format!("there is no tool `{name}`"))
        .advice(format!("{meant}There are {}.", all.join(", ")))
}

/// The schema of arguments: a property with its type and its sentence each.
pub(crate) fn schema(required: &[&str], properties: &[(&str, &str, &str)]) -> Value {
    let property = |(name, kind, says): &(&str, &str, &str)| {
        let mut schema = json!({ "type": kind, "description": says });
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
