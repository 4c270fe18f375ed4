//! A workspace, a state home, and the hook server of the toy client in its own process.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jackline_clients::hook_server::{HookPort, HookRuntime, HookServer, ProcessPort, SEAL};
use serde_json::Value;
use tempfile::TempDir;

use crate::toy::TOY;

/// This variable makes the test binary act as the hook process. Its value is the deadline in
/// milliseconds.
const DEADLINE: &str = "JACKLINE_TOY_DEADLINE_MS";

/// Longer than any test takes.
const NO_DEADLINE_MS: u64 = 600_000;

/// A workspace with a definition.
pub(crate) struct ToyWorkspace {
    root: TempDir,
}

/// The answer of the hook process.
#[derive(Debug, PartialEq)]
pub(crate) struct HookOutput {
    pub(crate) json: Value,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl ToyWorkspace {
    pub(crate) fn new(definition: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        std::fs::write(root.path().join("work/jackline.yaml"), definition).unwrap();
        Self { root }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The journal of a session.
    pub(crate) fn journal(&self, session: &str) -> String {
        let path = self.root.path().join("state/sessions").join(session).join("journal.jsonl");
        std::fs::read_to_string(path).unwrap()
    }

    /// Sends a payload to the hook of the toy client.
    pub(crate) fn send(&self, payload: &[u8]) -> HookOutput {
        self.send_within(payload, NO_DEADLINE_MS)
    }

    pub(crate) fn send_within(&self, payload: &[u8], deadline_ms: u64) -> HookOutput {
        let mut hook = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "world::the_hook_process", "--ignored", "--nocapture"])
            .env_clear()
            .env("HOME", self.root.path())
            .env("JACKLINE_HOME", self.root.path().join("state"))
            .env(DEADLINE, deadline_ms.to_string())
            .current_dir(self.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        hook.stdin.take().unwrap().write_all(payload).unwrap();
        let output = hook.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        // The test harness prints before it runs the hook. The seal marks the beginning of the
        // answer.
        let sealed = stdout.split_once(SEAL).map(|(_, answer)| answer);
        HookOutput {
            json: sealed.map_or(Value::Null, |text| {
                if text.is_empty() { Value::Null } else { text.parse().unwrap() }
            }),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }
}

#[test]
#[ignore = "the hook process that other tests start"]
fn the_hook_process() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test passes the deadline to its hook process in a variable"
    )]
    let deadline = std::env::var(DEADLINE).unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    let server = HookServer {
        dialect: TOY.dialect,
        runtime: HookRuntime::OfMachine { definition: None },
        sealed: true,
        role: None,
        deadline: Duration::from_millis(deadline.parse().unwrap()),
    };
    let port: Arc<dyn HookPort> = Arc::new(ProcessPort);
    let code = server.serve(&port);
    std::process::exit(code.into());
}
