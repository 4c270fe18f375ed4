//! The real `jackline run`, with a model that a scenario controls.

use std::fs::{self, File};
use std::process::{Child, Stdio};

use serde_json::json;
use tempfile::TempDir;

use super::model_server::ModelServer;
use crate::client_scene::ClientScene;
use crate::scripted_shell::ScriptedShell;

/// A run.
pub(super) struct RunProcess {
    child: Child,
    pub(super) model: ModelServer,
    /// Whether the last call was a command.
    pub(super) runs_command: bool,
    _task: TempDir,
}

impl RunProcess {
    pub(super) fn start(
        scene: &ClientScene,
        shell: &ScriptedShell,
        prompt: &str,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `jackline run`: {error}");
        let model = ModelServer::start()?;
        let directory = TempDir::new().map_err(failed)?;
        let task = json!({
            "prompt": prompt,
            "model": { "provider": "openai-chat", "name": "scenario", "url": model.url()? },
        });
        let file = directory.path().join("task.yaml");
        fs::write(&file, task.to_string()).map_err(failed)?;
        let stderr = File::create(scene.directories.stderr_file()).map_err(failed)?;
        let mut command = scene.directories.command("run");
        shell.configure_command(&mut command);
        let child = command
            .args(["--json", "--wait"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(failed)?;
        Ok(Self { child, model, runs_command: false, _task: directory })
    }
}

impl Drop for RunProcess {
    fn drop(&mut self) {
        // A run that has ended is not affected. Otherwise this kills it, as in a crash of the
        // machine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
