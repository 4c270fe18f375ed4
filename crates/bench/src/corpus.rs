//! How often real agents would have been in the way of the guards: the commands
//! of recorded runs, decided again under a preset.
//!
//! The recordings know no file system, so one is made up as the run goes: what
//! a command wrote is there, what it read was there, and what an earlier result
//! named is taken to be there too.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::observe::elide;
use jackline_engine::path::canonical;
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Decision, Definition, Fact, Facts, Now, Place, Query, Record, Session, Timestamp, observe,
};
use jackline_shell::{Access, Command, Dir, Effect};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;

#[derive(Deserialize)]
struct Run {
    id: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    tool: String,
    args: Value,
    result: String,
    is_error: bool,
}

/// Decides the runs of a file again and prints what would have been in the way.
pub(crate) fn run(file: &str) -> Result<(), Failure> {
    let output = std::process::Command::new("gzip").args(["-dc", file]).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("can't unpack `{file}`: {}", said.trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let runs = text.lines().map(serde_json::from_str).collect::<Result<Vec<Run>, _>>()?;
    if runs.iter().all(|run| run.steps.is_empty()) {
        return Err(format!("there are no calls in `{file}`").into());
    }
    println!("{} runs of {file}", runs.len());
    for (name, source, dirty) in [
        ("coding-agent, clean tree", "extends: [coding-agent]", false),
        ("coding-agent, dirty tree", "extends: [coding-agent]", true),
        (
            "coding-agent + read_before_write",
            "extends: [coding-agent]\npolicies: [ read_before_write: {} ]",
            true,
        ),
        ("strict", "extends: [strict]\nunknown_tools: allow", true),
    ] {
        let definition = Arc::new(jackline_definition::load(source.as_bytes(), "corpus")?);
        let mut counts = Counts::default();
        for run in &runs {
            play(&definition, run, dirty, &mut counts)?;
        }
        counts.print(name, runs.len());
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    calls: usize,
    denied: usize,
    asked: usize,
    runs: usize,
    by: BTreeMap<String, usize>,
    shown: Vec<String>,
}

impl Counts {
    fn print(&self, name: &str, runs: usize) {
        let share = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
        println!(
            "{name}: {} of {} calls denied ({:.3} %), {} asked; {} of {runs} runs met a denial ({:.2} %)",
            self.denied,
            self.calls,
            share(self.denied, self.calls),
            self.asked,
            self.runs,
            share(self.runs, runs),
        );
        self.by.iter().for_each(|(what, count)| println!("  {count:5} {what}"));
        self.shown.iter().for_each(|line| println!("    {line}"));
    }
}

/// What is known of a file.
struct File {
    version: u64,
    empty: bool,
}

/// What a command did to a file.
fn happen(command: &Command<'_>, effect: &Effect<'_>, files: &mut BTreeMap<String, File>) {
    let base = match &command.dir {
        Dir::In(dir) | Dir::Either(dir) => dir.to_string(),
        Dir::Start | Dir::Unknown => ".".to_owned(),
    };
    let path = &*effect.path.text;
    let path =
        if path.starts_with('/') { path.to_owned() } else { format!("/testbed/{base}/{path}") };
    let Ok(path) = canonical(&path, Some("/testbed")) else { return };
    match effect.access {
        Access::Delete => {
            let below = format!("{path}/");
            files.retain(|known, _| *known != path && !known.starts_with(&below));
        }
        access => {
            let file =
                files.entry(path).or_insert(File { version: 1, empty: access == Access::Touch });
            file.version += u64::from(!matches!(access, Access::Read(_) | Access::Touch));
            file.empty &= matches!(access, Access::Read(_) | Access::Touch);
        }
    }
}

fn play(
    definition: &Arc<Definition>,
    run: &Run,
    dirty: bool,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let place = Place {
        workspace: Some("/testbed".to_owned()),
        home: Some("/root".to_owned()),
        ..Place::default()
    };
    let mut session = Session::new(Arc::clone(definition), Arc::new(place));
    let mut files: BTreeMap<String, File> = BTreeMap::new();
    let mut told = String::new();
    let mut met = false;
    for (number, step) in run.steps.iter().enumerate().filter(|(_, step)| step.tool == "bash") {
        counts.calls += 1;
        let line = step.args.get("command").and_then(Value::as_str).unwrap_or_default();
        let call = format!("c{number}");
        let proposed = json!({
            "session":"s","event":"tool_proposed","call":call,"tool":"bash","args":{"command":line},
        });
        let verdict = send(&mut session, &proposed, &files, &told, dirty)?;
        let stopped = verdict.0 >= Decision::Ask;
        if stopped {
            counts.denied += usize::from(verdict.0 == Decision::Deny);
            counts.asked += usize::from(verdict.0 == Decision::Ask);
            met |= verdict.0 == Decision::Deny;
            *counts.by.entry(verdict.1.clone()).or_default() += 1;
            if counts.shown.len() < 40 {
                let line: String = line.chars().take(100).collect();
                counts.shown.push(format!("{} {}: {:?}", run.id, verdict.1, line));
            }
        }
        // Teacher-forced: it did run.
        let line = jackline_shell::understand(line);
        let code = i64::from(step.is_error || !step.result.contains("<returncode>0<"));
        for command in &line.commands {
            for effect in &command.effects {
                // What a failed line wanted to read may not be there.
                if code == 0 || !matches!(effect.access, Access::Read(_)) {
                    happen(command, effect, &mut files);
                }
            }
        }
        if verdict.0 <= Decision::Ask {
            let finished = json!({
                "session":"s","event":"tool_finished","call":call,"status":"ok","exit_code":code,
                "result":step.result,
            });
            send(&mut session, &finished, &files, &told, dirty)?;
        }
        told.push_str(&step.result);
    }
    counts.runs += usize::from(met);
    Ok(())
}

fn send(
    session: &mut Session,
    event: &Value,
    files: &BTreeMap<String, File>,
    told: &str,
    dirty: bool,
) -> Result<(Decision, String), Failure> {
    let mut event = parse_line(event.to_string().as_bytes(), None)?;
    let observed = observe(&event);
    elide(&mut event, session.definition());
    let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1000)));
    facts.observed = observed;
    let look = |path: &str| match files.get(path) {
        Some(file) => fact(file.version, u64::from(!file.empty)),
        None if path.contains('.') && is_told(told, path) => fact(1, 1),
        None => FileFact::of(FileKind::Missing),
    };
    let ask = |query: &Query| match query {
        Query::File { path, .. } => Fact::File(look(path)),
        Query::Changed { files } => {
            let changed = files.iter().map(|file| (file, look(&file.path)));
            let changed = changed.filter(|(file, fact)| fact.look != Some(file.look));
            Fact::Changed(changed.map(|(file, fact)| (file.path.clone(), fact)).collect())
        }
        Query::Watched { .. } => Fact::Watched(BTreeMap::new()),
        Query::Git { .. } => Fact::Git(GitFact {
            repository: true,
            dirty,
            untracked: dirty,
            branch: "work".to_owned(),
        }),
        Query::Ignored { .. } => Fact::Ignored(false),
        _ => Fact::Unknown,
    };
    let verdict = session.ground().understand(&event, |understood| {
        session.gather_known(understood, &mut facts, ask);
        session.decide_on(understood, &facts)
    });
    let seq = session.seq() + 1;
    session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
    let by = verdict.violations.iter().max_by_key(|violation| violation.decision);
    let by = by.map(|violation| format!("{}/{}", violation.guard, violation.subtype));
    Ok((verdict.decision, by.unwrap_or_default()))
}

/// Whether a result named a path, and not to say that it is not there.
fn is_told(told: &str, path: &str) -> bool {
    let names = |line: &str| {
        line.match_indices(path).any(|(at, _)| {
            let before = line.get(..at).and_then(|before| before.chars().next_back());
            before.is_none_or(|c| !(c.is_alphanumeric() || "_-.".contains(c)))
        })
    };
    told.lines().any(|line| !line.contains("No such file") && names(line))
}

fn fact(version: u64, bytes: u64) -> FileFact {
    FileFact {
        bytes,
        modified: Some(Timestamp::from_ms(0)),
        look: Some(version),
        digest: Some(Digest128::of(&version.to_le_bytes())),
        lines: Some(100_000),
        ..FileFact::of(FileKind::File)
    }
}
