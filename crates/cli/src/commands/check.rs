//! `jackline check`: everything that is wrong with a definition.

use std::path::PathBuf;

use anstyle::AnsiColor;
use jackline_definition::load;
use jackline_engine::definition::{Checker, PolicyRule, Speech};
use jackline_engine::{Definition, Digest, Mode};
use jackline_runtime::{DefinitionError, find_file};
use serde_json::json;

use crate::args::CheckArgs;
use crate::exit::Exit;
use crate::terminal::{bold, dim, fail, here, plain, say, say_json, styled};

pub(crate) fn run(args: &CheckArgs) -> Exit {
    let named = args.file.clone().or_else(|| args.definition.clone());
    let Some(file) = named.or_else(|| find_file(&here()).map(relative)) else {
        return fail(Exit::Usage, DefinitionError::NotFound(here()));
    };
    let source = match std::fs::read(&file) {
        Ok(source) => source,
        Err(source) => {
            return fail(Exit::Usage, DefinitionError::Unreadable { path: file, source });
        }
    };
    let name = file.display().to_string();
    match load(&source, &name) {
        Ok(definition) if args.json => {
            let checksum = Digest::of(&source);
            say(
                json!({ "file": name, "ok": true, "checksum": checksum, "definition": definition }),
            );
            Exit::Fine
        }
        Ok(definition) => {
            let ok = styled(AnsiColor::Green.on_default().bold(), "ok");
            say(format!("{}: {ok}", bold(&name)));
            describe(&definition).iter().for_each(|line| say(format!("  {}", plain(line, 400))));
            say(dim(format!("  checksum {}", Digest::of(&source))));
            Exit::Fine
        }
        Err(diagnostics) if args.json => {
            let problems: Vec<_> = diagnostics
                .iter()
                .map(|problem| {
                    json!({
                        "line": problem.line,
                        "column": problem.column,
                        "message": problem.message,
                        "hint": problem.hint,
                    })
                })
                .collect();
            say_json(json!({ "file": name, "ok": false, "problems": problems }));
            Exit::No
        }
        Err(diagnostics) => {
            let count = diagnostics.iter().count();
            let noun = if count == 1 { "problem" } else { "problems" };
            say(&diagnostics);
            fail(Exit::No, format!("{count} {noun} in `{name}`"))
        }
    }
}

fn relative(file: PathBuf) -> PathBuf {
    file.strip_prefix(here()).map(ToOwned::to_owned).unwrap_or(file)
}

fn describe(definition: &Definition) -> Vec<String> {
    let mode = match definition.mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe (nothing is blocked)",
    };
    let mut lines = vec![format!("{} in mode {mode}", definition.name)];
    if !definition.tools.is_empty() {
        let tools: Vec<&str> = definition.tools.iter().map(|tool| tool.name.as_str()).collect();
        lines.push(format!("tools: {}", tools.join(", ")));
    }
    for policy in &definition.policies {
        let PolicyRule::SequentialDependency(rule) = &policy.rule else { continue };
        for dependency in &rule.dependencies {
            let needs: Vec<String> =
                dependency
                    .needs
                    .iter()
                    .map(|need| {
                        if need.fresh {
                            format!("{} (fresh)", need.tool)
                        } else {
                            need.tool.clone()
                        }
                    })
                    .collect();
            lines.push(format!("{} needs {}", dependency.tool, needs.join(", ")));
        }
    }
    if let Some(checker) = &definition.completion {
        let cap = definition.completion_cap;
        lines.push(format!(
            "to stop: {} (blocked at most {} times a turn, {} times alike)",
            describe_checker(checker),
            cap.blocks,
            cap.same
        ));
    }
    let limits = &definition.limits;
    let dimensions = [
        ("steps", limits.steps),
        ("wall seconds", limits.wall_seconds),
        ("input tokens", limits.input_tokens),
        ("output tokens", limits.output_tokens),
        ("total tokens", limits.total_tokens),
    ];
    for (name, limit) in dimensions {
        if let Some(limit) = limit {
            let soft = if limit.soft { ", soft" } else { "" };
            let per = match limit.per {
                jackline_engine::definition::Per::Session => "session",
                jackline_engine::definition::Per::Turn => "turn",
            };
            lines.push(format!("at most {} {name} a {per}{soft}", limit.max));
        }
    }
    for provider in &definition.feedback {
        let said = match &provider.speech {
            Speech::Deadline { .. } => "the time that is left".to_owned(),
            Speech::Static { text } => format!("\"{}\"", plain(text, 60)),
            Speech::Custom { name } => format!("what `{name}` says"),
        };
        let trigger = &provider.trigger;
        let when: Vec<String> = [
            trigger.every_n_calls.map(|n| format!("every {n} calls")),
            trigger.every_n_seconds.map(|n| format!("every {n} seconds")),
            trigger.on_file_created.as_ref().map(|file| format!("once {} is there", file.path)),
        ]
        .into_iter()
        .flatten()
        .collect();
        lines.push(format!("tells the agent {said} {}", when.join(" or ")));
    }
    lines
}

fn describe_checker(checker: &Checker) -> String {
    let joined = |parts: &[Checker], word: &str| {
        let parts: Vec<String> = parts.iter().map(describe_checker).collect();
        format!("({})", parts.join(word))
    };
    match checker {
        Checker::Files(files) => {
            files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ")
        }
        Checker::All(parts) => joined(parts, " and "),
        Checker::Any(parts) => joined(parts, " or "),
        Checker::Custom { name } => name.clone(),
        Checker::Command { line, .. } => format!("`{line}` succeeds"),
    }
}
