//! A lowered definition in words for people, one line a demand.

use jackline_engine::definition::{
    Advisor, Attempts, Budgets, Cap, Checker, Context, Effect, FeedbackProvider, Graded,
    HealthLimits, Identity, Io, Limit, Limits, Loops, ModelChoice, Notifier, Opaque, Per,
    PolicyRule, Price, Profile, Progress, Redact, Rule, RuleScope, Schemas, Speech, Strict, Tool,
    UnknownTools,
};
use jackline_engine::models::usd;
use jackline_engine::{Dimension, Kind, Mode};

/// How much of a text is quoted.
const QUOTED_CHARS_MAX: usize = 60;

/// `enforce` or `observe`.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}

/// `allow` or `deny`.
pub fn unknown_tools(unknown: UnknownTools) -> &'static str {
    match unknown {
        UnknownTools::Allow => "allow",
        UnknownTools::Deny => "deny",
    }
}

/// `allow`, `ask` or `deny`.
pub fn opaque(opaque: Opaque) -> &'static str {
    match opaque {
        Opaque::Allow => "allow",
        Opaque::Ask => "ask",
        Opaque::Deny => "deny",
    }
}

/// `built-in` or `off`.
pub fn redact(redact: Redact) -> &'static str {
    match redact {
        Redact::BuiltIn => "built-in",
        Redact::Off => "off",
    }
}

/// What a policy demands, one line a tool.
pub fn policy(rule: &PolicyRule) -> Vec<String> {
    match rule {
        PolicyRule::SequentialDependency(rule) => rule
            .dependencies
            .iter()
            .map(|dependency| {
                let needs: Vec<String> = dependency
                    .needs
                    .iter()
                    .map(|need| {
                        format!("{}{}", need.tool, if need.fresh { " (fresh)" } else { "" })
                    })
                    .collect();
                format!("{} needs {}", dependency.tool, needs.join(", "))
            })
            .collect(),
        PolicyRule::ReadBeforeWrite { deletes } => {
            let deleted = if *deletes { " or deleted" } else { "" };
            vec![format!("an existing file is read before it is overwritten{deleted}")]
        }
        PolicyRule::Custom { name } => vec![format!("what `{name}` says")],
    }
}

/// Which calls a rule is about and what it does about them.
pub fn rule(rule: &Rule) -> String {
    let does = match rule.effect {
        Effect::Observe => "writes down",
        Effect::Warn => "warns of",
        Effect::Ask => "asks a person about",
        Effect::Deny => "denies",
    };
    let calls = match &rule.scope {
        RuleScope::Any => "calls".to_owned(),
        RuleScope::Tool(tool) => format!("calls of `{tool}`"),
        RuleScope::Kind(kind) => format!("calls of kind `{}`", kind_name(*kind)),
    };
    let commands: Vec<String> = rule.commands.iter().map(|line| format!("`{line}`")).collect();
    let what = if commands.is_empty() { calls } else { commands.join(", ") };
    let when = if rule.when.is_some() { " under a condition" } else { "" };
    let observed = if rule.mode == Mode::Observe { " (observed only)" } else { "" };
    format!("`{}` {does} {what}{when}{observed}", rule.name)
}

fn kind_name(kind: Kind) -> &'static str {
    Kind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}

/// What must be true before the agent may stop.
pub fn checker(checker: &Checker) -> String {
    let joined = |parts: &[Checker], word: &str| {
        let parts: Vec<String> = parts.iter().map(self::checker).collect();
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
        Checker::Clean => "changed code is tested".to_owned(),
    }
}

/// How often a stop may be blocked.
pub fn cap(cap: Cap) -> String {
    format!("blocked at most {} times a turn, {} times alike", cap.blocks, cap.same)
}

/// When a session is stuck.
pub fn progress(progress: &Progress) -> String {
    let exempt = if progress.exempt_phases.is_empty() {
        String::new()
    } else {
        format!(", and nothing has to change in {}", progress.exempt_phases.join(", "))
    };
    format!(
        "pauses after {} failed iterations in a row, of {} steps where nobody says{exempt}",
        progress.max_consecutive_failures, progress.steps_per_iteration
    )
}

/// Every dimension by the key that limits it.
pub fn limits(limits: &Limits) -> [(Dimension, Option<Limit>); 7] {
    let Limits {
        steps,
        wall_seconds,
        cost_usd,
        input_tokens,
        output_tokens,
        total_tokens,
        iterations,
        iterations_extension: _,
        tool_calls: _,
    } = limits;
    [
        (Dimension::Steps, *steps),
        (Dimension::WallSeconds, *wall_seconds),
        (Dimension::CostUsd, *cost_usd),
        (Dimension::InputTokens, *input_tokens),
        (Dimension::OutputTokens, *output_tokens),
        (Dimension::TotalTokens, *total_tokens),
        (Dimension::Iterations, *iterations),
    ]
}

/// One limit.
pub fn limit(dimension: Dimension, limit: Limit) -> String {
    match dimension {
        Dimension::CostUsd => allowance(&format!("{} USD", usd(limit.max)), limit),
        _ => allowance(&format!("{} {}", limit.max, dimension.in_words()), limit),
    }
}

/// How often a tool may be called.
pub fn tool_limit(tool: &str, limit: Limit) -> String {
    allowance(&format!("{} calls of `{tool}`", limit.max), limit)
}

fn allowance(amount: &str, limit: Limit) -> String {
    let soft = if limit.soft { ", soft" } else { "" };
    let per = match limit.per {
        Per::Session => "session",
        Per::Turn => "turn",
    };
    format!("at most {amount} a {per}{soft}")
}

/// What a model costs.
pub fn price(price: &Price) -> String {
    let Price { model, input, output, .. } = price;
    format!("`{model}` costs {} USD read and {} USD written", usd(*input), usd(*output))
}

/// What tools may answer, where it is not as usual.
pub fn io(io: &Io) -> Option<String> {
    let Io { read_file: read, output, shell } = io;
    let usual = Io::default();
    let said = [
        ("read_file.max_lines", read.max_lines, usual.read_file.max_lines),
        ("read_file.max_bytes", read.max_bytes, usual.read_file.max_bytes),
        ("read_file.max_line_bytes", read.max_line_bytes, usual.read_file.max_line_bytes),
        ("output.max_bytes", output.max_bytes, usual.output.max_bytes),
        ("shell.seconds", shell.seconds, usual.shell.seconds),
        ("shell.output_bytes", shell.output_bytes, usual.shell.output_bytes),
    ];
    let said = said.iter().filter(|(_, own, usual)| own != usual);
    let mut said: Vec<String> = said.map(|(key, own, _)| format!("{key} {own}")).collect();
    if !output.relative_paths {
        said.push("output.relative_paths false".to_owned());
    }
    (!said.is_empty()).then(|| format!("io: {}", said.join(", ")))
}

/// How often something is tried again, where it is not as usual.
pub fn attempts(attempts: &Budgets) -> Option<String> {
    let Budgets { provider, guardrail, execution, outcome, ceiling, terminal } = attempts;
    let usual = Budgets::default();
    let said = [
        ("provider", provider, usual.provider),
        ("guardrail", guardrail, usual.guardrail),
        ("execution", execution, usual.execution),
        ("outcome", outcome, usual.outcome),
        ("ceiling", ceiling, usual.ceiling),
    ];
    let said = said.iter().filter(|(_, own, usual)| *own != usual);
    let mut said: Vec<String> = said.map(|(key, own, _)| format!("{key} {own}")).collect();
    if *terminal != usual.terminal {
        said.push(format!("terminal {}", terminal.join(", ")));
    }
    (!said.is_empty()).then(|| format!("attempts: {}", said.join(", ")))
}

/// What plans and outputs have to look like, and how often something is written again, where
/// that is not as usual.
pub fn schemas(schemas: &Schemas) -> Vec<String> {
    let Schemas { attempts, plan, outputs } = schemas;
    let usual = Attempts::default();
    let counts = [
        ("repair_max_attempts", attempts.repair_max_attempts, usual.repair_max_attempts),
        ("repairs_per_run", attempts.repairs_per_run, usual.repairs_per_run),
        (
            "correction_max_attempts",
            attempts.correction_max_attempts,
            usual.correction_max_attempts,
        ),
    ];
    let counts = counts.iter().filter(|(_, own, usual)| own != usual);
    let counts: Vec<String> = counts.map(|(key, own, _)| format!("{key} {own}")).collect();
    let mut lines = Vec::new();
    if !counts.is_empty() {
        lines.push(format!("schema: {}", counts.join(", ")));
    }
    lines.extend(plan.iter().map(|_| "plan: checked by a schema of its own".to_owned()));
    if !outputs.is_empty() {
        let names: Vec<String> = outputs.iter().map(|it| format!("`{}`", it.name)).collect();
        lines.push(format!("outputs: {}, checked by schemas", names.join(", ")));
    }
    lines
}

/// When a forged tool is good.
pub fn health(health: HealthLimits) -> String {
    let HealthLimits { window, min_samples, degrade_above_pct, recover_below_pct } = health;
    format!(
        "health: degraded above {degrade_above_pct} % of {window} uses, recovered below {recover_below_pct} %, from {min_samples} uses on"
    )
}

/// Who does the work, in their order.
pub fn models(choices: &[ModelChoice]) -> String {
    format!("models: {}", labels(choices))
}

/// Who is asked, and how often.
pub fn advisor(advisor: &Advisor) -> String {
    let Advisor { models, transcript_lines, budget } = advisor;
    format!("advisor: {}, {budget} times, shown {transcript_lines} lines", labels(models))
}

fn labels(choices: &[ModelChoice]) -> String {
    choices.iter().map(ModelChoice::label).collect::<Vec<_>>().join(", ")
}

/// From which fill of the context on something is done.
pub fn context(context: Context) -> String {
    let Context { window, warn, compact, block, .. } = context;
    let window = window.map_or_else(String::new, |window| format!(" of {window} tokens"));
    format!("warn at {warn} %, compact at {compact} %, block at {block} %{window}")
}

/// What the agent is told, and when.
pub fn feedback(provider: &FeedbackProvider) -> String {
    let said = match &provider.speech {
        Speech::Deadline { .. } => "the time that is left".to_owned(),
        Speech::Static { text } => format!("\"{}\"", quoted(text)),
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
    format!("tells the agent {said} {}", when.join(" or "))
}

/// How a person is told, and of what. Of an address only the host is shown: the
/// rest is often a secret.
pub fn notifier(told: &Notifier) -> String {
    let command = told.command.as_ref().map(|line| format!("by `{}`", quoted(line)));
    let webhook = told.webhook.as_ref().map(|address| format!("by {}", host(address)));
    let desktop = told.desktop.then(|| "on the desktop".to_owned());
    let ways: Vec<String> = [command, webhook, desktop].into_iter().flatten().collect();
    let on: Vec<&str> = told.on.iter().map(|occasion| occasion.word()).collect();
    let on = if on.is_empty() { "nothing".to_owned() } else { on.join(", ") };
    let waits = !told.trusted && (told.command.is_some() || told.webhook.is_some());
    let waits = if waits { " (not run until trusted)" } else { "" };
    format!("tells a person {} of {on}{waits}", ways.join(" and "))
}

/// The server of an address.
pub fn host(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // What stands before it may be a password.
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

fn quoted(text: &str) -> String {
    if text.chars().count() <= QUOTED_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(QUOTED_CHARS_MAX - 1).chain(['…']).collect()
}

/// Who may work.
pub fn identity(identity: &Identity) -> String {
    let bound =
        identity.workflow.as_ref().map_or_else(String::new, |it| format!(", workflow {it}"));
    format!("identity: roles {}{bound}", identity.roles.join(", "))
}

/// How a tool is understood.
pub fn tool(tool: &Tool) -> String {
    let aliases: Vec<String> = tool.aliases.iter().map(|alias| format!("`{alias}`")).collect();
    let aliases =
        if aliases.is_empty() { String::new() } else { format!(", also {}", aliases.join(", ")) };
    let once = if tool.idempotent { "" } else { ", not twice alike" };
    let repeated = match (tool.transparent, tool.poll, tool.read_only) {
        (true, ..) => ", passed over by the loop guard",
        (_, Some(_), _) => ", may be asked again and again",
        (_, _, true) => ", changes nothing",
        _ => "",
    };
    let only = match &tool.roles {
        Some(roles) => format!(", only for roles {}", roles.join(", ")),
        None => String::new(),
    };
    let checked = match (&tool.schema, &tool.output_schema) {
        (Some(_), Some(_)) => ", arguments and results checked by schemas",
        (Some(_), None) => ", arguments checked by a schema",
        (None, Some(_)) => ", results checked by a schema",
        (None, None) => "",
    };
    let kind = kind_name(tool.kind);
    format!("`{}` of kind {kind}{aliases}{once}{repeated}{only}{checked}", tool.name)
}

/// How repetition is answered.
pub fn loops(loops: &Loops) -> String {
    let mode = mode(loops.mode);
    match loops.profile {
        Profile::Graded => {
            let Graded { soft, hard, infinite } = loops.graded;
            format!("loops: {mode}, told at {soft}, paused at {hard}, stopped at {infinite}")
        }
        Profile::Strict => {
            let Strict { window, threshold, .. } = loops.strict;
            format!("loops: {mode}, strict, {threshold} among {window}")
        }
    }
}
