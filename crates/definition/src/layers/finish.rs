//! The layers as one definition again, and whose each part is.

use std::path::Path;

use jackline_engine::definition::{
    Checker, Journal, Limits, Models, Policy, PolicyRule, Rules, Shell,
};
use jackline_engine::{CUSTOM_POLICIES_MAX, Definition, Dimension};

use super::join::Joining;
use super::parts::{Parts, Said};
use super::{Combined, EffectiveLine, Subject};
use crate::lower::completion::COMMANDS_MAX;
use crate::lower::feedback::PROVIDERS_MAX;
use crate::lower::policies::{PREREQUISITES_MAX, find_cycle, needs_of_all};
use crate::words;

/// Puts a definition together.
pub(super) fn finish(mut parts: Parts, joining: Joining) -> Combined {
    // Sections come before what is said of all tools.
    parts.policies.sort_by_key(|policy| policy.what.section.is_none());
    let mut decisions = lines(&parts, &joining);
    decisions.extend(joining.named);
    decisions.extend(joining.ignored);
    let definition = definition(parts);
    let problems = problems(&definition);
    Combined { definition, decisions, problems }
}

fn definition(parts: Parts) -> Definition {
    let default = Definition::default();
    let limit = |dimension| parts.limit(dimension).map(|limit| limit.what);
    let (steps, iterations) = (limit(Dimension::Steps), limit(Dimension::Iterations));
    let (wall_seconds, cost_usd) = (limit(Dimension::WallSeconds), limit(Dimension::CostUsd));
    let (input_tokens, output_tokens) =
        (limit(Dimension::InputTokens), limit(Dimension::OutputTokens));
    let total_tokens = limit(Dimension::TotalTokens);
    Definition {
        limits: Limits {
            steps,
            wall_seconds,
            input_tokens,
            output_tokens,
            total_tokens,
            cost_usd,
            iterations,
            iterations_extension: parts.iterations_extension.what,
            tool_calls: parts
                .tool_calls
                .into_iter()
                .map(|(tool, said)| (tool, said.what))
                .collect(),
        },
        context: parts.context.map(|context| context.what),
        models: Models {
            dated: parts.dated,
            prices: plain(parts.prices),
            long: parts.long,
            windows: parts.windows,
        },
        name: parts.name.what.unwrap_or(default.name),
        mode: parts.mode.what,
        tools: plain(parts.tools),
        unknown_tools: parts.unknown_tools.what,
        shell: Shell { opaque: parts.opaque.what },
        protected: plain(parts.protected),
        policies: plain(parts.policies),
        rules: Rules::new(plain(parts.rules)),
        completion: completion(plain(parts.completion)),
        completion_cap: parts.cap.map_or(default.completion_cap, |cap| cap.what),
        loops: parts.loops.map_or(default.loops, |loops| loops.what),
        progress: parts.progress.map(|progress| progress.what),
        dirty_bits: super::progress::together(plain(parts.dirty_bits)),
        schemas: parts.schemas.what,
        io: parts.io.what,
        attempts: parts.attempts.what,
        health: parts.health.map_or(default.health, |health| health.what),
        choices: parts.choices.what,
        advisor: parts.advisor.map(|advisor| advisor.what),
        identity: parts.identity.map(|identity| identity.what),
        feedback: plain(parts.feedback),
        feedback_bytes_max: parts.feedback_bytes_max.what,
        notify: plain(parts.notify),
        journal: Journal {
            redact: parts.redact.what,
            retain_days: parts.retain_days.what,
            retain_bytes: parts.retain_bytes.what,
        },
    }
}

fn plain<T>(list: Vec<Said<T>>) -> Vec<T> {
    list.into_iter().map(|said| said.what).collect()
}

/// All of the checks, with every command numbered.
fn completion(mut checks: Vec<Checker>) -> Option<Checker> {
    let mut next = 0;
    checks.iter_mut().for_each(|check| number(check, &mut next));
    if checks.len() > 1 { Some(Checker::All(checks)) } else { checks.pop() }
}

fn number(checker: &mut Checker, next: &mut u16) {
    match checker {
        Checker::Command { number, .. } => {
            *number = *next;
            *next = next.saturating_add(1);
        }
        Checker::All(parts) | Checker::Any(parts) => {
            parts.iter_mut().for_each(|part| number(part, next));
        }
        Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => {}
    }
}

/// What no file says alone and all of them say together.
fn problems(definition: &Definition) -> Vec<String> {
    let mut problems = Vec::new();
    let needs = needs_of_all(&definition.policies);
    if let Some(cycle) = find_cycle(&needs) {
        let cycle: Vec<String> = cycle.iter().map(|tool| format!("`{tool}`")).collect();
        problems.push(format!("a cycle that nothing can satisfy: {}", cycle.join(" needs ")));
    }
    // Each of these takes room in the state, and the state is bounded.
    let prerequisites = needs.iter().map(|(_, needs)| needs.len()).sum();
    let is_custom = |policy: &&Policy| matches!(policy.rule, PolicyRule::Custom { .. });
    let custom = definition.policies.iter().filter(is_custom).count();
    let commands = definition.completion.as_ref().map_or(0, commands);
    let providers = definition.feedback.len();
    for (count, most, what) in [
        (prerequisites, PREREQUISITES_MAX, "prerequisites"),
        (custom, CUSTOM_POLICIES_MAX, "custom policies"),
        (commands, usize::from(COMMANDS_MAX), "commands"),
        (providers, PROVIDERS_MAX, "providers of feedback"),
    ] {
        if count > most {
            problems.push(format!("{count} {what}; at most {most} are kept"));
        }
    }
    problems
}

/// Whether a check has commands that nobody lets run.
fn waits(checker: &Checker) -> bool {
    match checker {
        Checker::Command { trusted, .. } => !trusted,
        Checker::All(parts) | Checker::Any(parts) => parts.iter().any(waits),
        Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => false,
    }
}

fn commands(checker: &Checker) -> usize {
    match checker {
        Checker::Command { .. } => 1,
        Checker::All(parts) | Checker::Any(parts) => parts.iter().map(commands).sum(),
        Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => 0,
    }
}

/// Whose each demand in force is. Keys that have their default are nobody's.
fn lines(parts: &Parts, joining: &Joining) -> Vec<EffectiveLine> {
    let default = Definition::default();
    let mut lines = Vec::new();
    let mut add = |subject: Subject, text: String, by: usize| {
        lines.push(joining.line(subject, text, by));
    };
    if let Some(name) = &parts.name.what {
        add(Subject::Setting, format!("name: {name}"), parts.name.by);
    }
    add(Subject::Setting, format!("mode: {}", words::mode(parts.mode.what)), parts.mode.by);
    if parts.unknown_tools.what != default.unknown_tools {
        let text = format!("unknown_tools: {}", words::unknown_tools(parts.unknown_tools.what));
        add(Subject::Setting, text, parts.unknown_tools.by);
    }
    if parts.opaque.what != default.shell.opaque {
        let text = format!("shell.opaque: {}", words::opaque(parts.opaque.what));
        add(Subject::Setting, text, parts.opaque.by);
    }
    if let Some(cap) = &parts.cap {
        add(Subject::Setting, format!("completion_cap: {}", words::cap(cap.what)), cap.by);
    }
    let bytes = &parts.feedback_bytes_max;
    if bytes.what != default.feedback_bytes_max {
        add(Subject::Setting, format!("feedback_bytes_max: {}", bytes.what), bytes.by);
    }
    journal_lines(parts, &mut add);
    for (key, limit) in &parts.limits {
        if let Some(limit) = limit {
            add(Subject::Limit, words::limit(*key, limit.what), limit.by);
        }
    }
    if let Some(loops) = &parts.loops {
        add(Subject::Setting, words::loops(&loops.what), loops.by);
    }
    if let Some(progress) = &parts.progress {
        add(Subject::Limit, words::progress(&progress.what), progress.by);
    }
    for bit in &parts.dirty_bits {
        let (key, pattern) = &bit.what;
        add(Subject::Setting, format!("dirty_bits.{key}: {pattern}"), bit.by);
    }
    for (tool, limit) in &parts.tool_calls {
        add(Subject::Limit, words::tool_limit(tool, limit.what), limit.by);
    }
    let extension = &parts.iterations_extension;
    if extension.what != default.limits.iterations_extension {
        add(Subject::Setting, format!("iterations_extension: {}", extension.what), extension.by);
    }
    if let Some(context) = &parts.context {
        add(Subject::Setting, format!("context: {}", words::context(context.what)), context.by);
    }
    if let Some(text) = words::io(&parts.io.what) {
        add(Subject::Setting, text, parts.io.by);
    }
    if let Some(text) = words::attempts(&parts.attempts.what) {
        add(Subject::Setting, text, parts.attempts.by);
    }
    if let Some(health) = &parts.health {
        add(Subject::Setting, words::health(health.what), health.by);
    }
    if !parts.choices.what.is_empty() {
        add(Subject::Setting, words::models(&parts.choices.what), parts.choices.by);
    }
    if let Some(advisor) = &parts.advisor {
        add(Subject::Setting, words::advisor(&advisor.what), advisor.by);
    }
    if let Some(identity) = &parts.identity {
        add(Subject::Setting, words::identity(&identity.what), identity.by);
    }
    for path in &parts.protected {
        add(Subject::Protected, format!("`{}`", path.what), path.by);
    }
    for tool in &parts.tools {
        add(Subject::Tool, words::tool(&tool.what), tool.by);
    }
    for policy in &parts.policies {
        words::policy(&policy.what.rule)
            .into_iter()
            .for_each(|text| add(Subject::Policy, text, policy.by));
    }
    for check in &parts.completion {
        let text = words::checker(&check.what);
        let text =
            if waits(&check.what) { format!("{text} (not run until trusted)") } else { text };
        add(Subject::Completion, text, check.by);
    }
    for provider in &parts.feedback {
        add(Subject::Feedback, words::feedback(&provider.what), provider.by);
    }
    for told in &parts.notify {
        add(Subject::Notify, words::notifier(&told.what), told.by);
    }
    for rule in &parts.rules {
        let mut line = joining.line(Subject::Rule, words::rule(&rule.what), rule.by);
        line.origin = origin(&rule.what.origin, &line.file);
        lines.push(line);
    }
    lines
}

/// Where a rule comes from, where that is not the file of its layer.
fn origin(origin: &str, file: &str) -> Option<String> {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy());
    let own = name.is_some_and(|name| origin.strip_prefix("file ") == Some(&*name));
    (!origin.is_empty() && !own).then(|| origin.to_owned())
}

fn journal_lines(parts: &Parts, add: &mut impl FnMut(Subject, String, usize)) {
    let default = Journal::default();
    if parts.redact.what != default.redact {
        let text = format!("journal.redact: {}", words::redact(parts.redact.what));
        add(Subject::Setting, text, parts.redact.by);
    }
    if parts.retain_days.what != default.retain_days {
        let text = format!("journal.retain_days: {}", parts.retain_days.what);
        add(Subject::Setting, text, parts.retain_days.by);
    }
    if parts.retain_bytes.what != default.retain_bytes {
        let text = format!("journal.retain_bytes: {}", parts.retain_bytes.what);
        add(Subject::Setting, text, parts.retain_bytes.by);
    }
}
