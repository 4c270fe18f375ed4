//! Measures how often the guards would have stopped real agents: it decides the commands of
//! recorded runs again, under several presets.
//!
//! The recordings do not include a file system, so this module models one during the run. A file
//! exists if a command wrote or read it, or if an earlier result named it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::observe::elide;
use jackline_engine::path::canonical_path;
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Decision, Definition, Fact, Facts, Now, Query, Record, Session, SessionLocation, Timestamp,
    observe,
};
use jackline_shell::{Access, FileEffect, ShellCommand, WorkingDir};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::BenchError;

#[derive(Deserialize)]
struct CorpusRun {
    id: String,
    steps: Vec<CorpusStep>,
}

#[derive(Deserialize)]
struct CorpusStep {
    tool: String,
    args: Value,
    result: String,
    is_error: bool,
}

/// Decides the runs of a file again, and prints what the guards would have stopped.
pub(crate) fn run(file: &str) -> Result<(), BenchError> {
    let output = std::process::Command::new("gzip").args(["-dc", file]).output()?;
    if !output.status.success() {
        let error_text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("can't unpack `{file}`: {}", error_text.trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let runs = text.lines().map(serde_json::from_str).collect::<Result<Vec<CorpusRun>, _>>()?;
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
        let mut counts = DenialCounts::default();
        for run in &runs {
            decide_run(&definition, run, dirty, &mut counts)?;
        }
        counts.print(name, runs.len());
    }
    Ok(())
}

#[derive(Default)]
struct DenialCounts {
    calls: usize,
    denied: usize,
    asked: usize,
    denied_runs: usize,
    by_rule: BTreeMap<String, usize>,
    examples: Vec<String>,
}

impl DenialCounts {
    fn print(&self, name: &str, runs: usize) {
        let share = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
        println!(
            "{name}: {} of {} calls denied ({:.3} %), {} asked; {} of {runs} runs had a denial ({:.2} %)",
            self.denied,
            self.calls,
            share(self.denied, self.calls),
            self.asked,
            self.denied_runs,
            share(self.denied_runs, runs),
        );
        self.by_rule.iter().for_each(|(what, count)| println!("  {count:5} {what}"));
        self.examples.iter().for_each(|line| println!("    {line}"));
    }
}

/// The modelled state of a file.
struct ModelledFile {
    version: u64,
    empty: bool,
}

/// Applies the effect of a command to the modelled files.
fn apply_effect(
    command: &ShellCommand<'_>,
    effect: &FileEffect<'_>,
    files: &mut BTreeMap<String, ModelledFile>,
) {
    let base = match &command.dir {
        WorkingDir::Path(dir) | WorkingDir::PathOrStart(dir) => dir.to_string(),
        WorkingDir::Start | WorkingDir::Unknown => ".".to_owned(),
    };
    let path = &*effect.path.text;
    let path =
        if path.starts_with('/') { path.to_owned() } else { format!("/testbed/{base}/{path}") };
    let Ok(path) = canonical_path(&path, Some("/testbed")) else { return };
    match effect.access {
        Access::Delete => {
            let below = format!("{path}/");
            files.retain(|name, _| *name != path && !name.starts_with(&below));
        }
        access => {
            let file = files
                .entry(path)
                .or_insert(ModelledFile { version: 1, empty: access == Access::Touch });
            file.version += u64::from(!matches!(access, Access::Read(_) | Access::Touch));
            file.empty &= matches!(access, Access::Read(_) | Access::Touch);
        }
    }
}

fn decide_run(
    definition: &Arc<Definition>,
    run: &CorpusRun,
    dirty: bool,
    counts: &mut DenialCounts,
) -> Result<(), BenchError> {
    let place = SessionLocation {
        workspace: Some("/testbed".to_owned()),
        home: Some("/root".to_owned()),
        ..SessionLocation::default()
    };
    let mut session = Session::new(Arc::clone(definition), Arc::new(place));
    let mut files: BTreeMap<String, ModelledFile> = BTreeMap::new();
    let mut earlier_results = String::new();
    let mut any_denial = false;
    for (number, step) in run.steps.iter().enumerate().filter(|(_, step)| step.tool == "bash") {
        counts.calls += 1;
        let line = step.args.get("command").and_then(Value::as_str).unwrap_or_default();
        let call = format!("c{number}");
        let proposed = json!({
            "session":"s","event":"tool_proposed","call":call,"tool":"bash","args":{"command":line},
        });
        let verdict = decide_event(&mut session, &proposed, &files, &earlier_results, dirty)?;
        let stopped = verdict.0 >= Decision::Ask;
        if stopped {
            counts.denied += usize::from(verdict.0 == Decision::Deny);
            counts.asked += usize::from(verdict.0 == Decision::Ask);
            any_denial |= verdict.0 == Decision::Deny;
            *counts.by_rule.entry(verdict.1.clone()).or_default() += 1;
            if counts.examples.len() < 40 {
                let line: String = line.chars().take(100).collect();
                counts.examples.push(format!("{} {}: {:?}", run.id, verdict.1, line));
            }
        }
        // The recorded call did run, whatever the verdict is.
        let line = jackline_shell::understand(line);
        let code = i64::from(step.is_error || !step.result.contains("<returncode>0<"));
        for command in &line.commands {
            for effect in &command.effects {
                // A file that a failed command wanted to read may not exist.
                if code == 0 || !matches!(effect.access, Access::Read(_)) {
                    apply_effect(command, effect, &mut files);
                }
            }
        }
        if verdict.0 <= Decision::Ask {
            let finished = json!({
                "session":"s","event":"tool_finished","call":call,"status":"ok","exit_code":code,
                "result":step.result,
            });
            decide_event(&mut session, &finished, &files, &earlier_results, dirty)?;
        }
        earlier_results.push_str(&step.result);
    }
    counts.denied_runs += usize::from(any_denial);
    Ok(())
}

fn decide_event(
    session: &mut Session,
    event: &Value,
    files: &BTreeMap<String, ModelledFile>,
    earlier_results: &str,
    dirty: bool,
) -> Result<(Decision, String), BenchError> {
    let mut event = parse_line(event.to_string().as_bytes(), None)?;
    let observed = observe(&event);
    elide(&mut event, session.definition());
    let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1000)));
    facts.observed = observed;
    let look = |path: &str| match files.get(path) {
        Some(file) => file_fact(file.version, u64::from(!file.empty)),
        None if path.contains('.') && is_named_in(earlier_results, path) => file_fact(1, 1),
        None => FileFact::without_details(FileKind::Missing),
    };
    let ask = |query: &Query| match query {
        Query::File { path, .. } => Fact::File(look(path)),
        Query::Changed { files } => {
            let changed = files.iter().map(|file| (file, look(&file.path)));
            let changed = changed.filter(|(file, fact)| fact.stamp != Some(file.stamp));
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
    let verdict = session.event_interpreter().with_interpreted(&event, |understood| {
        session.gather_facts(understood, &mut facts, ask);
        session.decide_interpreted(understood, &facts)
    });
    let seq = session.seq() + 1;
    session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
    let by = verdict.violations.iter().max_by_key(|violation| violation.decision);
    let by = by.map(|violation| format!("{}/{}", violation.guard, violation.subtype));
    Ok((verdict.decision, by.unwrap_or_default()))
}

/// Whether an earlier result named a path, except in a "No such file" error.
fn is_named_in(results: &str, path: &str) -> bool {
    let names = |line: &str| {
        line.match_indices(path).any(|(at, _)| {
            let before = line.get(..at).and_then(|before| before.chars().next_back());
            before.is_none_or(|c| !(c.is_alphanumeric() || "_-.".contains(c)))
        })
    };
    results.lines().any(|line| !line.contains("No such file") && names(line))
}

fn file_fact(version: u64, bytes: u64) -> FileFact {
    FileFact {
        bytes,
        modified: Some(Timestamp::from_ms(0)),
        stamp: Some(version),
        digest: Some(Digest128::of(&version.to_le_bytes())),
        lines: Some(100_000),
        ..FileFact::without_details(FileKind::File)
    }
}
