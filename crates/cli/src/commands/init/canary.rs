//! The test at the end of an installation: the real client tries a call that must be denied.

use jackline_clients::installed_client::InstalledClient;
use jackline_setup::doctor::{CanaryReport, CheckStatus, canary};
use jackline_setup::install::{
    DetectedClient, InstallError, InstallPlan, InstallRequest, quoted_program,
};
use serde_json::{Value, json};

use super::LINE_MAX;
use crate::args::InitArgs;
use crate::terminal::{dim, format_thousandths, print_line, print_note, print_warning, sanitize};

/// The outcome of the test.
pub(super) enum CanaryOutcome {
    Tried(CanaryReport),
    NotRun(String),
}

impl CanaryOutcome {
    /// Lets the client try a denied call, if possible.
    pub(super) fn run(
        found: &DetectedClient,
        plan: &InstallPlan,
        wish: &InstallRequest,
        args: &InitArgs,
    ) -> Result<Self, InstallError> {
        let (title, name) = (found.client.title, &found.client.id);
        let not_run = |why: String| Ok(Self::NotRun(why));
        let (program, version) = match (&found.program, found.version) {
            _ if args.no_canary => return not_run("--no-canary".to_owned()),
            (None, _) => return not_run(format!("the program `{name}` was not found")),
            (Some(program), None) => {
                let program = program.display();
                return not_run(format!("`{program} --version` prints no version"));
            }
            // The test uses other settings in which hooks run, so it would prove nothing.
            _ if !plan.disabled_reasons.is_empty() => {
                return not_run("the hooks will not run here".to_owned());
            }
            (Some(program), Some(version)) => (program.clone(), version),
        };
        print_note(dim(format!("canary: {title} tries a call that must be denied")));
        let client = InstalledClient { client: found.client, program, version };
        let report =
            canary(&client, &quoted_program(&wish.guard_program)?).unwrap_or_else(|error| {
                CanaryReport { status: CheckStatus::Unproven, detail: error.to_string(), ms: 0 }
            });
        Ok(Self::Tried(report))
    }

    /// Whether the test failed or gave no result.
    pub(super) fn is_alarm(&self) -> bool {
        matches!(self, Self::Tried(report) if report.status != CheckStatus::Closed)
    }

    pub(super) fn show(&self, found: &DetectedClient) {
        let (title, name) = (found.client.title, &found.client.id);
        let report = match self {
            Self::NotRun(why) => {
                return print_line(format!("canary: not run: {}", sanitize(why, LINE_MAX)));
            }
            Self::Tried(report) => report,
        };
        let detail = sanitize(&report.detail, LINE_MAX);
        let more = format!("`jackline doctor {name}` runs all checks");
        match report.status {
            CheckStatus::Closed => print_line(format!(
                "canary: ok, the denied call did not run, and the model got the reason ({} s)",
                format_thousandths(report.ms)
            )),
            CheckStatus::Open => {
                print_warning(format!(
                    "canary: {title} IS NOT GUARDED: the denied call: {detail}; {more}"
                ));
            }
            CheckStatus::Unproven => {
                print_warning(format!(
                    "canary: it is NOT PROVEN that {title} is guarded: {detail}; {more}"
                ));
            }
        }
    }

    /// The outcome as JSON.
    pub(super) fn summary(&self, found: &DetectedClient) -> Value {
        let (result, detail, ms) = match self {
            Self::NotRun(why) => ("not_run", why, None),
            Self::Tried(CanaryReport { status: standing, detail, ms }) => {
                (standing.name(), detail, Some(ms))
            }
        };
        json!({ "client": found.client.id, "result": result, "detail": detail, "ms": ms })
    }
}
