//! The tools of a workspace, called as a server calls them.

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

use jackline_workspace::{Code, Limits, ToolError, ToolOutput, Workspace};
use serde_json::Value;
use tempfile::TempDir;

/// A workspace in a directory of its own, with a neighbour that must stay unseen.
struct Trial {
    home: TempDir,
    workspace: Workspace,
}

impl Trial {
    fn new(files: &[(&str, &str)]) -> Trial {
        Trial::with(Limits::default(), files)
    }

    fn with(limits: Limits, files: &[(&str, &str)]) -> Trial {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let workspace = Workspace::open(home.path().join("work"), limits).unwrap();
        let trial = Trial { home, workspace };
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

    fn call(&self, tool: &str, args: &Value) -> Result<ToolOutput, ToolError> {
        self.workspace.call(tool, args)
    }

    fn ok(&self, tool: &str, args: &Value) -> Value {
        self.call(tool, args).unwrap_or_else(|error| panic!("{tool} {args}: {error:?}")).structured
    }

    fn refused(&self, tool: &str, args: &Value) -> ToolError {
        match self.call(tool, args) {
            Err(error) => error,
            Ok(output) => panic!("{tool} {args} was answered: {output:?}"),
        }
    }

    fn code(&self, tool: &str, args: &Value) -> Code {
        self.refused(tool, args).code
    }
}

#[test]
fn every_tool_says_what_it_takes_and_takes_nothing_else() {
    let trial = Trial::new(&[]);
    for spec in jackline_workspace::tools() {
        assert_eq!(spec.input_schema["additionalProperties"], false, "{}", spec.name);
        let slip = serde_json::json!({ "pathh": ".", "path": "a", "glob": "*", "pattern": "a",
            "content": "", "old": "a", "new": "b" });
        let error = trial.refused(spec.name, &slip);
        assert_eq!(error.code, Code::InvalidArguments, "{}: {error:?}", spec.name);
        assert_eq!(trial.code(spec.name, &serde_json::json!([1])), Code::InvalidArguments);
    }
}

#[test]
fn an_unknown_tool_is_refused_with_the_names_there_are() {
    let error = Trial::new(&[]).refused("read_fil", &Value::Null);
    assert_eq!(error.code, Code::UnknownTool);
    assert!(error.text().contains("Did you mean `read_file`?"), "{}", error.text());
    let wire = serde_json::to_value(&error).unwrap();
    assert_eq!(wire["code"], "unknown_tool");
}

#[test]
fn codes_are_on_the_wire_what_they_say_they_are() {
    for code in [Code::OutsideWorkspace, Code::NotUtf8, Code::Io, Code::ChangedMeanwhile] {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
}
