//! Runs of the client, and what they prove.

use jackline_model::scripted::{Script, Step};

use super::{Actor, CanaryReport, Doctor, Fault, Line, Standing};
use crate::live::{LiveError, Run, SUBAGENT, Scratch, Seen};
use jackline_clients::Client;
use jackline_clients::installation::HookEntry;
use jackline_clients::live_client::ModelCall;

/// What the model has to be shown.
pub const REASON: &str = "This call is a canary of jackline doctor";

/// What a file is called that must not be made.
const CANARY: &str = "canary";

/// A definition under which nothing may touch a canary.
pub fn definition() -> String {
    format!(
        "version: 1
name: jackline/doctor
rules:
  - name: canary
    tool: exec
    command: touch
    when: 'argv.exists(a, a.startsWith(\"{CANARY}\"))'
    deny: {REASON}.
    examples: {{ deny: [touch {CANARY}-x], allow: [touch witness-x] }}
"
    )
}

impl Actor {
    /// How the name of the files ends that it makes.
    fn suffix(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "sub",
        }
    }

    /// Its part of a script.
    fn marker(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Subagent => Some(SUBAGENT),
        }
    }

    fn file(self, what: &str) -> String {
        format!("{what}-{}", self.suffix())
    }

    /// Makes a file, if it may.
    fn touch(self, client: &Client, what: &str) -> Step {
        step(client.live.command_call(&format!("touch {}", self.file(what))))
    }
}

/// A denied call leaves nothing behind and its reason reaches the model.
pub(super) fn denied(doctor: &Doctor<'_>) -> Result<Vec<Line>, LiveError> {
    let client = doctor.client.client;
    let (main, sub) = (Actor::Main, Actor::Subagent);
    let steps = [
        main.touch(client, CANARY),
        main.touch(client, "witness"),
        step(client.live.subagent_call(SUBAGENT)),
        Step::say("done"),
    ];
    let part = [sub.touch(client, CANARY), sub.touch(client, "witness"), Step::say("done")];
    let scratch = scratch()?;
    let script = Script::new(steps).part(SUBAGENT, part);
    let seen = doctor.run(&scratch, script)?.play()?;
    let [main_ran, main_told] = judge_denied(main, &scratch, &seen);
    let [sub_ran, sub_told] = judge_denied(sub, &scratch, &seen);
    Ok(vec![main_ran, sub_ran, main_told, sub_told])
}

/// The same, for the main agent alone.
pub(super) fn canary(doctor: &Doctor<'_>) -> Result<CanaryReport, LiveError> {
    let client = doctor.client.client;
    let main = Actor::Main;
    let scratch = scratch()?;
    let script =
        Script::new([main.touch(client, CANARY), main.touch(client, "witness"), Step::say("done")]);
    let seen = doctor.run(&scratch, script)?.play()?;
    // Where both are as bad, that it ran is worse than that nobody was told.
    let [ran, told] = judge_denied(main, &scratch, &seen);
    let worst = if told.standing > ran.standing { told } else { ran };
    Ok(CanaryReport { standing: worst.standing, detail: worst.detail, ms: seen.ms })
}

fn judge_denied(actor: Actor, scratch: &Scratch, seen: &Seen) -> [Line; 2] {
    let results = seen.results(actor.marker());
    let refused = results.first();
    let told = refused.is_some_and(|result| result.text.contains(REASON));
    let (ran, works) = (scratch.has(&actor.file(CANARY)), scratch.has(&actor.file("witness")));
    let (standing, detail) = match refused {
        _ if ran => (Standing::Open, "it ran".to_owned()),
        Some(result) if result.is_error && works => {
            (Standing::Closed, "it did not run, and an allowed call did".to_owned())
        }
        Some(_) if !works => {
            (Standing::Unproven, format!("the client ran no call at all; {}", seen.summary()))
        }
        Some(_) => (Standing::Unproven, "it neither ran nor was refused".to_owned()),
        None => (Standing::Unproven, seen.summary()),
    };
    let shown = match refused {
        Some(_) if told => (Standing::Closed, "the model was shown the reason".to_owned()),
        Some(result) => {
            let shown: String = result.text.chars().take(120).collect();
            (Standing::Open, format!("the model was shown `{shown}` instead"))
        }
        None => (Standing::Unproven, seen.summary()),
    };
    [
        Line { name: "a denied call does not run", actor, standing, detail },
        Line { name: "the model sees why", actor, standing: shown.0, detail: shown.1 },
    ]
}

/// A guard that is broken lets nothing run.
pub(super) fn broken(doctor: &Doctor<'_>, fault: Fault) -> Result<Vec<Line>, LiveError> {
    let (main, sub) = (Actor::Main, Actor::Subagent);
    let scratch = scratch()?;
    let installed = doctor.client;
    let client = installed.client;
    let hooks = fault.hooks(installed, &scratch, doctor.jackline, CANARY)?;
    scratch.install(client.installation, &hooks)?;
    let script = Script::new([
        step(client.live.subagent_call(SUBAGENT)),
        main.touch(client, CANARY),
        Step::say("done"),
    ])
    .part(SUBAGENT, [sub.touch(client, CANARY), Step::say("done")]);
    let seen = Run::new(client, &installed.program, &scratch, script).play()?;
    let judge = |actor: Actor| {
        let (standing, detail) = judge_broken(actor, &scratch, &seen);
        Line { name: fault.name(), actor, standing, detail }
    };
    Ok([main, sub].map(judge).into())
}

fn judge_broken(actor: Actor, scratch: &Scratch, seen: &Seen) -> (Standing, String) {
    if scratch.has(&actor.file(CANARY)) {
        return (Standing::Open, "the call ran".to_owned());
    }
    // The agent's own first call starts the sub-agent.
    let results = seen.results(actor.marker());
    match results.get(usize::from(actor == Actor::Main)) {
        Some(result) if result.is_error => (Standing::Closed, "the call was refused".to_owned()),
        Some(_) => (Standing::Unproven, "the call neither ran nor was refused".to_owned()),
        None => (Standing::Unproven, seen.summary()),
    }
}

/// A call that the guard has nothing against, and the client would ask about,
/// stays the client's to ask about.
pub(super) fn silent(doctor: &Doctor<'_>) -> Result<Line, LiveError> {
    let client = doctor.client.client;
    let main = Actor::Main;
    let scratch = scratch()?;
    let script = Script::new([main.touch(client, "witness"), Step::say("done")]);
    let mut live = doctor.run(&scratch, script)?;
    live.allowed_tools = client.live.reading_tools();
    let seen = live.play()?;
    let refusal = seen.results(None).into_iter().next();
    let (standing, detail) = match refusal {
        _ if scratch.has(&main.file("witness")) => {
            (Standing::Open, "a call that the client asks about ran unasked".to_owned())
        }
        Some(result) if result.is_error && !client.live.is_hook_refusal(&result.text) => {
            (Standing::Closed, "the client still asks".to_owned())
        }
        Some(_) => (Standing::Unproven, "the guard itself refused an allowed call".to_owned()),
        None => (Standing::Unproven, seen.summary()),
    };
    Ok(Line { name: "no objection is no approval", actor: main, standing, detail })
}

fn scratch() -> Result<Scratch, LiveError> {
    let scratch = Scratch::new()?;
    scratch.write("jackline.yaml", &definition())?;
    Ok(scratch)
}

impl Doctor<'_> {
    /// What the installer installs for this client.
    pub(super) fn hooks(&self) -> Vec<HookEntry> {
        self.client.client.installation.hooks_for(self.client.version, self.jackline)
    }

    /// A run with it.
    fn run<'a>(&'a self, scratch: &'a Scratch, script: Script) -> Result<Run<'a>, LiveError> {
        let client = self.client.client;
        scratch.install(client.installation, &self.hooks())?;
        Ok(Run::new(client, &self.client.program, scratch, script))
    }
}

fn step(call: ModelCall) -> Step {
    Step::call(call.tool, call.input)
}
