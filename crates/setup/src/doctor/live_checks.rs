//! Runs the client with broken and working guards, and judges what happened.

use jackline_model::scripted::{ModelScript, ScriptStep};

use super::{BrokenGuard, CanaryReport, CheckStatus, CheckedAgent, Doctor, DoctorCheck};
use crate::live::{LiveError, LiveOutcome, LiveRun, SUBAGENT_PROMPT, ScratchHome};
use jackline_clients::Client;
use jackline_clients::installation::HookEntry;
use jackline_clients::live_client::ModelCall;

/// The model must receive this text as the reason of the denial.
pub const DENIAL_REASON: &str = "This call is a canary of jackline doctor";

/// The name of a file that must not be created.
const CANARY_FILE: &str = "canary";

/// A definition that denies creating canary files.
pub fn definition() -> String {
    format!(
        "version: 1
name: jackline/doctor
rules:
  - name: canary
    tool: exec
    command: touch
    when: 'argv.exists(a, a.startsWith(\"{CANARY_FILE}\"))'
    deny: {DENIAL_REASON}.
    examples: {{ deny: [touch {CANARY_FILE}-x], allow: [touch witness-x] }}
"
    )
}

impl CheckedAgent {
    /// The end of the names of the files that this agent creates.
    fn suffix(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "sub",
        }
    }

    /// The marker of this agent's part of the script.
    fn marker(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Subagent => Some(SUBAGENT_PROMPT),
        }
    }

    fn file(self, what: &str) -> String {
        format!("{what}-{}", self.suffix())
    }

    /// A step that creates a file, if the guard allows it.
    fn touch(self, client: &Client, what: &str) -> ScriptStep {
        script_step(client.live.command_call(&format!("touch {}", self.file(what))))
    }
}

/// Checks that a denied call has no effect and that its reason reaches the model.
pub(super) fn check_denied_call(doctor: &Doctor<'_>) -> Result<Vec<DoctorCheck>, LiveError> {
    let client = doctor.client.client;
    let (main, sub) = (CheckedAgent::Main, CheckedAgent::Subagent);
    let steps = [
        main.touch(client, CANARY_FILE),
        main.touch(client, "witness"),
        script_step(client.live.subagent_call(SUBAGENT_PROMPT)),
        ScriptStep::say("done"),
    ];
    let part =
        [sub.touch(client, CANARY_FILE), sub.touch(client, "witness"), ScriptStep::say("done")];
    let scratch = prepare_scratch()?;
    let script = ModelScript::new(steps).part(SUBAGENT_PROMPT, part);
    let outcome = doctor.run(&scratch, script)?.run_client()?;
    let [main_ran, main_shown] = judge_denied_call(main, &scratch, &outcome);
    let [sub_ran, sub_shown] = judge_denied_call(sub, &scratch, &outcome);
    Ok(vec![main_ran, sub_ran, main_shown, sub_shown])
}

/// The same check, for the main agent only.
pub(super) fn run_canary(doctor: &Doctor<'_>) -> Result<CanaryReport, LiveError> {
    let client = doctor.client.client;
    let main = CheckedAgent::Main;
    let scratch = prepare_scratch()?;
    let script = ModelScript::new([
        main.touch(client, CANARY_FILE),
        main.touch(client, "witness"),
        ScriptStep::say("done"),
    ]);
    let outcome = doctor.run(&scratch, script)?.run_client()?;
    // If both are equally bad, report that the call ran.
    let [ran, shown] = judge_denied_call(main, &scratch, &outcome);
    let worst = if shown.status > ran.status { shown } else { ran };
    Ok(CanaryReport { status: worst.status, detail: worst.detail, ms: outcome.ms })
}

fn judge_denied_call(
    actor: CheckedAgent,
    scratch: &ScratchHome,
    outcome: &LiveOutcome,
) -> [DoctorCheck; 2] {
    let results = outcome.tool_results(actor.marker());
    let refused = results.first();
    let has_reason = refused.is_some_and(|result| result.text.contains(DENIAL_REASON));
    let (ran, works) =
        (scratch.has_path(&actor.file(CANARY_FILE)), scratch.has_path(&actor.file("witness")));
    let (standing, detail) = match refused {
        _ if ran => (CheckStatus::Open, "it ran".to_owned()),
        Some(result) if result.is_error && works => {
            (CheckStatus::Closed, "the denied call did not run, but an allowed one did".to_owned())
        }
        Some(_) if !works => (
            CheckStatus::Unproven,
            format!("the client ran no call, not even an allowed one; {}", outcome.summary()),
        ),
        Some(_) => (CheckStatus::Unproven, "it neither ran nor was refused".to_owned()),
        None => (CheckStatus::Unproven, outcome.summary()),
    };
    let shown = match refused {
        Some(_) if has_reason => (CheckStatus::Closed, "the model got the reason".to_owned()),
        Some(result) => {
            let shown: String = result.text.chars().take(120).collect();
            (CheckStatus::Open, format!("the model got another text: `{shown}`"))
        }
        None => (CheckStatus::Unproven, outcome.summary()),
    };
    [
        DoctorCheck { name: "a denied call does not run", actor, status: standing, detail },
        DoctorCheck { name: "the model sees why", actor, status: shown.0, detail: shown.1 },
    ]
}

/// Checks that nothing runs while the guard is broken.
pub(super) fn check_broken_guard(
    doctor: &Doctor<'_>,
    fault: BrokenGuard,
) -> Result<Vec<DoctorCheck>, LiveError> {
    let (main, sub) = (CheckedAgent::Main, CheckedAgent::Subagent);
    let scratch = prepare_scratch()?;
    let installed = doctor.client;
    let client = installed.client;
    let hooks = fault.hooks(installed, &scratch, doctor.jackline, CANARY_FILE)?;
    scratch.install(client.installation, &hooks)?;
    let script = ModelScript::new([
        script_step(client.live.subagent_call(SUBAGENT_PROMPT)),
        main.touch(client, CANARY_FILE),
        ScriptStep::say("done"),
    ])
    .part(SUBAGENT_PROMPT, [sub.touch(client, CANARY_FILE), ScriptStep::say("done")]);
    let outcome = LiveRun::new(client, &installed.program, &scratch, script).run_client()?;
    let judge = |actor: CheckedAgent| {
        let (standing, detail) = judge_broken_guard(actor, &scratch, &outcome);
        DoctorCheck { name: fault.name(), actor, status: standing, detail }
    };
    Ok([main, sub].map(judge).into())
}

fn judge_broken_guard(
    actor: CheckedAgent,
    scratch: &ScratchHome,
    outcome: &LiveOutcome,
) -> (CheckStatus, String) {
    if scratch.has_path(&actor.file(CANARY_FILE)) {
        return (CheckStatus::Open, "the call ran".to_owned());
    }
    // The first call of the main agent starts the sub-agent.
    let results = outcome.tool_results(actor.marker());
    match results.get(usize::from(actor == CheckedAgent::Main)) {
        Some(result) if result.is_error => (CheckStatus::Closed, "the call was refused".to_owned()),
        Some(_) => (CheckStatus::Unproven, "the call neither ran nor was refused".to_owned()),
        None => (CheckStatus::Unproven, outcome.summary()),
    }
}

/// Checks that the client still asks its user about a call that the guard allows.
pub(super) fn check_client_asks(doctor: &Doctor<'_>) -> Result<DoctorCheck, LiveError> {
    let client = doctor.client.client;
    let main = CheckedAgent::Main;
    let scratch = prepare_scratch()?;
    let script = ModelScript::new([main.touch(client, "witness"), ScriptStep::say("done")]);
    let mut live = doctor.run(&scratch, script)?;
    live.allowed_tools = client.live.read_only_tools();
    let outcome = live.run_client()?;
    let refusal = outcome.tool_results(None).into_iter().next();
    let (standing, detail) = match refusal {
        _ if scratch.has_path(&main.file("witness")) => (
            CheckStatus::Open,
            "a call that the client should ask about ran without a question".to_owned(),
        ),
        Some(result) if result.is_error && !client.live.is_hook_refusal(&result.text) => {
            (CheckStatus::Closed, "the client asks its user".to_owned())
        }
        Some(_) => (CheckStatus::Unproven, "the guard denied an allowed call".to_owned()),
        None => (CheckStatus::Unproven, outcome.summary()),
    };
    Ok(DoctorCheck {
        name: "the client still asks about allowed calls",
        actor: main,
        status: standing,
        detail,
    })
}

fn prepare_scratch() -> Result<ScratchHome, LiveError> {
    let scratch = ScratchHome::new()?;
    scratch.write("jackline.yaml", &definition())?;
    Ok(scratch)
}

impl Doctor<'_> {
    /// The hooks that the installer writes for this client.
    pub(super) fn hooks(&self) -> Vec<HookEntry> {
        self.client.client.installation.hooks_for(self.client.version, self.jackline)
    }

    /// A run of the client with these hooks.
    fn run<'a>(
        &'a self,
        scratch: &'a ScratchHome,
        script: ModelScript,
    ) -> Result<LiveRun<'a>, LiveError> {
        let client = self.client.client;
        scratch.install(client.installation, &self.hooks())?;
        Ok(LiveRun::new(client, &self.client.program, scratch, script))
    }
}

fn script_step(call: ModelCall) -> ScriptStep {
    ScriptStep::call(call.tool, call.input)
}
