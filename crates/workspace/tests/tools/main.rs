//! Tests the workspace tools through the calls that a server makes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod attacks;
mod calling;
mod finding;
mod guiding;
mod hostile;
mod layers;
mod pages;
mod races;
mod reading;
mod undoing;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use jackline_workspace::{ToolAnswer, ToolError, ToolErrorCode, Workspace, WorkspaceLimits};
use serde_json::Value;
use tempfile::TempDir;

/// A workspace in its own directory, next to a directory that must stay invisible.
struct WorkspaceTrial {
    home: TempDir,
    workspace: Workspace,
}

impl WorkspaceTrial {
    fn new(files: &[(&str, &str)]) -> WorkspaceTrial {
        WorkspaceTrial::with(WorkspaceLimits::default(), files)
    }

    fn with(limits: WorkspaceLimits, files: &[(&str, &str)]) -> WorkspaceTrial {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let workspace = Workspace::open(home.path().join("work"), limits).unwrap();
        let trial = WorkspaceTrial { home, workspace };
        files.iter().for_each(|(path, content)| trial.put(path, content.as_bytes()));
        trial
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("work")
    }

    fn outside(&self) -> &Path {
        self.home.path()
    }

    fn put(&self, path: &str, content: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.root().join(path)).unwrap();
    }

    fn call(&self, tool: &str, args: &Value) -> Result<ToolAnswer, ToolError> {
        self.workspace.call(tool, args)
    }

    fn ok(&self, tool: &str, args: &Value) -> Value {
        self.call(tool, args).unwrap_or_else(|error| panic!("{tool} {args}: {error:?}")).structured
    }

    fn call_refused(&self, tool: &str, args: &Value) -> ToolError {
        match self.call(tool, args) {
            Err(error) => error,
            Ok(output) => panic!("{tool} {args} was answered: {output:?}"),
        }
    }

    fn code(&self, tool: &str, args: &Value) -> ToolErrorCode {
        self.call_refused(tool, args).code
    }
}

#[test]
fn every_tool_describes_its_arguments_and_refuses_others() {
    let trial = WorkspaceTrial::new(&[]);
    for spec in jackline_workspace::tools() {
        assert_eq!(spec.input_schema["additionalProperties"], false, "{}", spec.name);
        let slip = serde_json::json!({ "pathh": ".", "path": "a", "glob": "*", "pattern": "a",
            "content": "", "old": "a", "new": "b" });
        let error = trial.call_refused(spec.name, &slip);
        assert_eq!(error.code, ToolErrorCode::InvalidArguments, "{}: {error:?}", spec.name);
        assert_eq!(trial.code(spec.name, &serde_json::json!([1])), ToolErrorCode::InvalidArguments);
    }
}

#[test]
fn an_unknown_tool_is_refused_with_the_list_of_tools() {
    let error = WorkspaceTrial::new(&[]).call_refused("read_fil", &Value::Null);
    assert_eq!(error.code, ToolErrorCode::UnknownTool);
    assert!(error.render_text().contains("Did you mean `read_file`?"), "{}", error.render_text());
    let wire = serde_json::to_value(&error).unwrap();
    assert_eq!(wire["code"], "unknown_tool");
}

#[test]
fn error_codes_serialise_to_their_names() {
    for code in [
        ToolErrorCode::OutsideWorkspace,
        ToolErrorCode::NotUtf8,
        ToolErrorCode::Io,
        ToolErrorCode::ChangedMeanwhile,
    ] {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
}
