//! `jackline check`: reports every problem in a definition, and shows what is in force.

mod client_spellings;
mod known_tools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use jackline_definition::{
    DemandLine, DemandStatus, Diagnostic, Diagnostics, Layer, LoadedDefinition, words,
};
use jackline_engine::definition::{DeclaredTool, Rule, Rules};
use jackline_engine::{Definition, Digest, Mode};
use jackline_runtime::BranchDefinition;
use jackline_runtime::definitions::{DefinitionError, EffectiveDefinition, find_file, load_file};
use serde_json::{Value, json};

use self::client_spellings::spelling_warnings;
use self::known_tools::{known_tools_json, known_tools_text};
use super::find_definition;
use super::trust_demands::offer_trust;
use crate::args::CheckArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, current_directory, dim, fail, format_count, machine_definitions, open_store,
    print_json_line, print_line, print_table, sanitize, styled,
};

/// The maximum length of a shown line from a file.
const LINE_MAX: usize = 400;

pub(crate) fn run(args: &CheckArgs) -> ExitKind {
    let named = args.file.clone().or_else(|| args.definition.clone());
    if args.effective {
        let named = named.or_else(|| find_file(&current_directory()).map(relative));
        return effective(named.as_deref(), args.json);
    }
    let is_named = named.is_some();
    let Some(file) = named.or_else(|| find_definition().map(relative)) else {
        let here = current_directory();
        let on_branch = BranchDefinition::of(&here).map(|found| format!("; {}", found.remedy()));
        let missing = DefinitionError::NotFound(here);
        return fail(ExitKind::Usage, format!("{missing}{}", on_branch.unwrap_or_default()));
    };
    match load_file(&file) {
        Ok((loaded, checksum)) => {
            show(&file, &loaded, &checksum, args);
            if !is_named && !args.json {
                offer_trust_here();
            }
            ExitKind::Success
        }
        Err(error) => report_invalid(&error, Some(&file), args.json),
    }
}

/// Reports an invalid definition, and which definition is in force instead.
fn report_invalid(error: &DefinitionError, file: Option<&Path>, as_json: bool) -> ExitKind {
    let DefinitionError::Invalid(diagnostics) = error else {
        let exit = match error {
            DefinitionError::Contradictory(_) => ExitKind::No,
            _ => ExitKind::Usage,
        };
        return fail(exit, error);
    };
    let name = diagnostics.file();
    let instead = file.and_then(fallback_checksum);
    if as_json {
        let problems: Vec<Value> = diagnostics.iter().map(problem_json).collect();
        print_json_line(json!({
            "file": name, "ok": false, "problems": problems, "in_force": instead,
        }));
        return ExitKind::No;
    }
    print_line(diagnostics);
    let count = diagnostics.iter().count();
    let noun = if count == 1 { "problem" } else { "problems" };
    let instead = instead.map_or_else(String::new, |checksum| {
        format!("; until it is fixed, the last valid definition stays in force: {checksum}")
    });
    fail(ExitKind::No, format!("{count} {noun} in `{name}`{instead}"))
}

/// The last valid definition that is used instead, here or in the directory of the file.
fn fallback_checksum(file: &Path) -> Option<Digest> {
    let store = open_store().ok()?;
    let definitions = machine_definitions(None, &store);
    let beside =
        file.parent().map_or_else(current_directory, |parent| current_directory().join(parent));
    [current_directory(), beside]
        .iter()
        .find_map(|at| definitions.fallback_checksum(Some(file), at))
}

/// Offers to trust the definition of this workspace, if it needs that.
fn offer_trust_here() {
    let Ok(store) = open_store() else { return };
    let definitions = machine_definitions(None, &store).read_only();
    if let Ok(effective) = definitions.effective(None, &current_directory()) {
        offer_trust(&store, &effective, true);
    }
}

fn show(file: &Path, loaded: &LoadedDefinition, checksum: &Digest, args: &CheckArgs) {
    let name = file.display().to_string();
    let definition = &loaded.definition;
    let directory = file.parent().map_or_else(current_directory, |it| current_directory().join(it));
    let spellings = spelling_warnings(definition, &directory);
    if args.json {
        print_json_line(json!({
            "file": name, "ok": true, "checksum": checksum, "definition": definition,
            "known_tools": known_tools_json(definition),
            "extended": loaded.extended.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            "warnings": loaded.warnings.iter().map(problem_json).collect::<Vec<_>>(),
            "client_warnings": spellings,
        }));
        return;
    }
    let ok = styled(AnsiColor::Green.on_default().bold(), "ok");
    let warnings = match loaded.warnings.len() + spellings.len() {
        0 => String::new(),
        count => format!(", {}", format_count(count.try_into().unwrap_or(u64::MAX), "warning")),
    };
    print_line(format!("{}: {ok}{warnings}", bold(&name)));
    describe(definition, args.details)
        .iter()
        .for_each(|line| print_line(format!("  {}", sanitize(line, LINE_MAX))));
    for (path, _) in &loaded.extended {
        print_line(format!("  extends {}", sanitize(&path.display().to_string(), LINE_MAX)));
    }
    print_line(dim(format!("  checksum {checksum}")));
    show_warnings(&loaded.warnings);
    for warning in spellings {
        let word = styled(AnsiColor::Yellow.on_default().bold(), "warning:");
        print_line(format!("{word} {}", sanitize(&warning, LINE_MAX)));
    }
}

fn show_warnings(warnings: &[Diagnostic]) {
    for warning in warnings {
        let word = styled(AnsiColor::Yellow.on_default().bold(), "warning:");
        print_line(format!("{word} {warning}"));
    }
}

fn problem_json(problem: &Diagnostic) -> Value {
    json!({
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "hint": problem.hint,
    })
}

fn relative(file: PathBuf) -> PathBuf {
    file.strip_prefix(current_directory()).map(ToOwned::to_owned).unwrap_or(file)
}

/// Shows what is in force in this workspace, and the origin of each setting.
fn effective(file: Option<&Path>, as_json: bool) -> ExitKind {
    let store = match open_store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let definitions = machine_definitions(None, &store);
    let effective = match definitions.effective(file, &current_directory()) {
        Ok(effective) => effective,
        Err(error) => return report_invalid(&error, file, as_json),
    };
    if as_json {
        print_json_line(effective_json(&effective));
    } else {
        show_effective(&effective);
    }
    match effective.combined.problems.as_slice() {
        [] => ExitKind::Success,
        problems => fail(ExitKind::No, DefinitionError::Contradictory(problems.to_vec())),
    }
}

fn effective_json(effective: &EffectiveDefinition) -> Value {
    let layers = effective.layers.iter().map(|(layer, file, checksum)| {
        json!({ "layer": layer.as_str(), "file": file, "checksum": checksum })
    });
    let decisions = effective.combined.decisions.iter().map(|line| {
        let (why, until_trusted) = match &line.status {
            DemandStatus::InForce => (None, None),
            DemandStatus::Ignored { why, until_trusted } => (Some(why), Some(until_trusted)),
        };
        json!({
            "subject": line.subject.as_str(),
            "text": line.text,
            "layer": line.layer.as_str(),
            "file": line.file,
            "origin": line.origin,
            "in_force": why.is_none(),
            "why": why,
            "until_trusted": until_trusted,
        })
    });
    json!({
        "ok": effective.combined.problems.is_empty(),
        "checksum": effective.checksum,
        "trusted": effective.trusted,
        "layers": layers.collect::<Vec<_>>(),
        "decisions": decisions.collect::<Vec<_>>(),
        "problems": effective.combined.problems,
        "warnings": effective.warnings.iter().map(problem_json).collect::<Vec<_>>(),
        "definition": effective.combined.definition,
        "known_tools": known_tools_json(&effective.combined.definition),
    })
}

fn show_effective(effective: &EffectiveDefinition) {
    let definition = &effective.combined.definition;
    print_line(format!("{} in mode {}", bold(&definition.name), mode(definition)));
    for (layer, file, _) in &effective.layers {
        let trust = match (layer, effective.trusted) {
            (Layer::Repository, true) => ", trusted",
            (Layer::Repository, false) => ", not trusted",
            _ => "",
        };
        print_line(format!("  {} layer: {}{trust}", layer.as_str(), display_path(file)));
    }
    print_line(dim(format!("  checksum {}", effective.checksum)));
    let (in_force, ignored): (Vec<_>, Vec<_>) =
        effective.combined.decisions.iter().partition(|line| line.status == DemandStatus::InForce);
    let rows: Vec<Vec<String>> = in_force.into_iter().map(decision_row).collect();
    print_line(bold("in force"));
    print_table(&rows);
    if let Some(known) = known_tools_text(definition) {
        print_line(format!("  {}", sanitize(&known, LINE_MAX)));
    }
    if !ignored.is_empty() {
        print_line(bold("ignored"));
        ignored.iter().for_each(|line| print_line(ignored_line(line)));
    }
    show_warnings(&effective.warnings);
}

fn decision_row(line: &DemandLine) -> Vec<String> {
    let origin = line.origin.as_ref().map_or_else(String::new, |origin| format!(", {origin}"));
    vec![
        format!("  {}", line.subject.as_str()),
        dim(sanitize(&format!("{}{origin}", line.layer.as_str()), LINE_MAX)),
        sanitize(&line.text, LINE_MAX),
    ]
}

/// A setting that is not in force, the reason, and whether trust would change it.
fn ignored_line(line: &DemandLine) -> String {
    let (why, trust) = match &line.status {
        DemandStatus::InForce => return String::new(),
        DemandStatus::Ignored { why, until_trusted: true } => {
            (why, "; `jackline trust` would allow it")
        }
        DemandStatus::Ignored { why, until_trusted: false } => (why, ""),
    };
    let layer = dim(format!("({})", line.layer.as_str()));
    format!(
        "  {} {layer} ignored: {}{trust}",
        sanitize(&line.text, LINE_MAX),
        sanitize(why, LINE_MAX)
    )
}

fn display_path(file: &Path) -> String {
    sanitize(&file.display().to_string(), LINE_MAX)
}

fn mode(definition: &Definition) -> &'static str {
    match definition.mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe (no call is blocked, except by rules that are enforced by name)",
    }
}

/// The settings of a definition, and where they differ from the defaults. Without `details`, the
/// rules of packs are only counted.
fn describe(definition: &Definition, details: bool) -> Vec<String> {
    let mut lines = vec![format!("{} in mode {}", definition.name, mode(definition))];
    let default = Definition::default();
    if definition.unknown_tools != default.unknown_tools {
        lines.push(format!("unknown_tools: {}", words::unknown_tools(definition.unknown_tools)));
    }
    if definition.shell.opaque != default.shell.opaque {
        lines.push(format!("shell.opaque: {}", words::opaque(definition.shell.opaque)));
    }
    lines.extend(definition.identity.as_ref().map(words::identity));
    if !definition.tools.is_empty() {
        let tools: Vec<&str> = definition.tools.iter().map(|tool| tool.name.as_str()).collect();
        lines.push(format!("tools: {}", tools.join(", ")));
    }
    lines.extend(known_tools_text(definition));
    let configured = definition.tools.iter().filter(|tool| has_settings(tool));
    lines.extend(configured.map(|tool| format!("tool {}", words::tool(tool))));
    lines.extend(definition.protected.iter().map(|path| format!("protected: `{path}`")));
    lines.extend(definition.policies.iter().flat_map(|policy| words::policy(&policy.rule)));
    lines.extend(describe_rules(&definition.rules, details));
    if let Some(checker) = &definition.completion {
        let cap = words::cap(definition.completion_cap);
        lines.push(format!("to stop: {} ({cap})", words::checker(checker)));
    }
    for (key, limit) in words::limits(&definition.limits) {
        lines.extend(limit.map(|limit| words::limit(key, limit)));
    }
    let calls = definition.limits.tool_calls.iter();
    lines.extend(calls.map(|(tool, limit)| words::tool_limit(tool, *limit)));
    if definition.loops != default.loops {
        lines.push(words::loops(&definition.loops));
    }
    lines.extend(definition.progress.as_ref().map(words::progress));
    lines.extend(definition.context.map(|it| format!("context: {}", words::context(it))));
    lines.extend(words::io(&definition.io));
    lines.extend(words::schemas(&definition.schemas));
    lines.extend(words::attempts(&definition.attempts));
    if definition.health != default.health {
        lines.push(words::health(definition.health));
    }
    lines.extend(words::run_limits(definition.run));
    if !definition.choices.is_empty() {
        lines.push(words::models(&definition.choices));
    }
    lines.extend(definition.advisor.as_ref().map(words::advisor));
    lines.extend(definition.feedback.iter().map(words::feedback));
    lines.extend(definition.notify.iter().map(words::notifier));
    lines
}

/// The rules in force. Without `details`, those of packs are only counted.
fn describe_rules(rules: &Rules, details: bool) -> Vec<String> {
    let pack = |rule: &Rule| {
        let pack = rule.origin.strip_prefix("pack ").filter(|_| !details);
        pack.map(ToOwned::to_owned)
    };
    let mut packs: BTreeMap<String, u64> = BTreeMap::new();
    for pack in rules.iter().filter_map(pack) {
        *packs.entry(pack).or_default() += 1;
    }
    let own = rules.iter().filter(|rule| pack(rule).is_none());
    let mut lines: Vec<String> = own.map(|rule| format!("rule {}", words::rule(rule))).collect();
    if !packs.is_empty() {
        let packs: Vec<String> = packs
            .iter()
            .map(|(pack, count)| format!("{pack} ({})", format_count(*count, "rule")))
            .collect();
        lines.push(format!("packs: {}; `--details` lists the rules", packs.join(", ")));
    }
    lines
}

/// Whether a tool has settings other than policies and rules.
fn has_settings(tool: &DeclaredTool) -> bool {
    let is_exempt = tool.transparent || tool.read_only || tool.poll.is_some();
    let is_checked = tool.schema.is_some() || tool.output_schema.is_some();
    !tool.idempotent || tool.roles.is_some() || is_exempt || is_checked
}

/// Reports the problems of a definition, for a command that needs a valid definition.
pub(super) fn print_diagnostics(diagnostics: &Diagnostics) -> ExitKind {
    print_line(diagnostics);
    fail(ExitKind::No, format!("`{}` does not load; fix it first", diagnostics.file()))
}
