//! The proof at the end of an installation: the client itself tries a call that
//! must not run.

use jackline_clients::installed::Installed;
use jackline_setup::doctor::{CanaryReport, Standing, canary};
use jackline_setup::install::{FoundClient, InstallError, Plan, Wish, program_word};
use serde_json::{Value, json};

use super::LINE_MAX;
use crate::args::InitArgs;
use crate::terminal::{dim, note, plain, say, thousandth, warn};

/// What came of it.
pub(super) enum Canary {
    Tried(CanaryReport),
    NotRun(String),
}

impl Canary {
    /// Lets the client try, where it can.
    pub(super) fn send(
        found: &FoundClient,
        plan: &Plan,
        wish: &Wish,
        args: &InitArgs,
    ) -> Result<Self, InstallError> {
        let (title, name) = (found.client.title, &found.client.id);
        let not_run = |why: String| Ok(Self::NotRun(why));
        let (program, version) = match (&found.program, found.version) {
            _ if args.no_canary => return not_run("--no-canary".to_owned()),
            (None, _) => return not_run(format!("the program `{name}` was not found")),
            (Some(program), None) => {
                let program = program.display();
                return not_run(format!("`{program} --version` does not say which version it is"));
            }
            // Elsewhere they would run, and prove nothing.
            _ if !plan.silenced.is_empty() => {
                return not_run("the hooks will not run here".to_owned());
            }
            (Some(program), Some(version)) => (program.clone(), version),
        };
        note(dim(format!("canary: {title} tries a call that must not run")));
        let client = Installed { client: found.client, program, version };
        let report = canary(&client, &program_word(&wish.jackline)?).unwrap_or_else(|error| {
            CanaryReport { standing: Standing::Unproven, detail: error.to_string(), ms: 0 }
        });
        Ok(Self::Tried(report))
    }

    /// Whether the guard was tried and did not hold, or nobody can tell.
    pub(super) fn is_alarm(&self) -> bool {
        matches!(self, Self::Tried(report) if report.standing != Standing::Closed)
    }

    pub(super) fn show(&self, found: &FoundClient) {
        let (title, name) = (found.client.title, &found.client.id);
        let report = match self {
            Self::NotRun(why) => return say(format!("canary: not run: {}", plain(why, LINE_MAX))),
            Self::Tried(report) => report,
        };
        let detail = plain(&report.detail, LINE_MAX);
        let more = format!("`jackline doctor {name}` tries everything");
        match report.standing {
            Standing::Closed => say(format!(
                "canary: a denied call did not run, and the model was told why ({} s)",
                thousandth(report.ms)
            )),
            Standing::Open => {
                warn(format!("canary: {title} IS NOT GUARDED: a denied call: {detail}; {more}"));
            }
            Standing::Unproven => {
                warn(format!("canary: it is NOT PROVEN that {title} is guarded: {detail}; {more}"));
            }
        }
    }

    /// The same for programs.
    pub(super) fn summary(&self, found: &FoundClient) -> Value {
        let (result, detail, ms) = match self {
            Self::NotRun(why) => ("not_run", why, None),
            Self::Tried(CanaryReport { standing, detail, ms }) => {
                (standing.name(), detail, Some(ms))
            }
        };
        json!({ "client": found.client.id, "result": result, "detail": detail, "ms": ms })
    }
}
