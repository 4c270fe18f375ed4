//! `jackline check`: everything that is wrong with a definition, and what is
//! in force.

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use jackline_definition::{Diagnostic, Diagnostics, EffectiveLine, Layer, Loaded, Standing, words};
use jackline_engine::definition::Tool;
use jackline_engine::{Definition, Digest, Mode};
use jackline_runtime::definitions::{DefinitionError, Effective, find_file, load_file};
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::exit::Exit;
use crate::terminal::{
    bold, definitions, dim, fail, here, plain, say, say_json, store, styled, table,
};

/// How much of a line from a file is shown.
const LINE_MAX: usize = 400;

pub(crate) fn run(args: &CheckArgs) -> Exit {
    let named = args.file.clone().or_else(|| args.definition.clone());
    let named = named.or_else(|| find_file(&here()).map(relative));
    if args.effective {
        return effective(named.as_deref(), args.json);
    }
    let Some(file) = named else {
        return fail(Exit::Usage, DefinitionError::NotFound(here()));
    };
    match load_file(&file) {
        Ok((loaded, checksum)) => {
            show(&file, &loaded, &checksum, args.json);
            Exit::Fine
        }
        Err(error) => complain_of(&error, Some(&file), args.json),
    }
}

/// What is wrong, and which definition is in force instead.
fn complain_of(error: &DefinitionError, file: Option<&Path>, as_json: bool) -> Exit {
    let DefinitionError::Invalid(diagnostics) = error else {
        let exit = match error {
            DefinitionError::Contradictory(_) => Exit::No,
            _ => Exit::Usage,
        };
        return fail(exit, error);
    };
    let name = diagnostics.file();
    let instead = file.and_then(in_force_instead);
    if as_json {
        let problems: Vec<Value> = diagnostics.iter().map(problem_json).collect();
        say_json(json!({
            "file": name, "ok": false, "problems": problems, "in_force": instead,
        }));
        return Exit::No;
    }
    say(diagnostics);
    let count = diagnostics.iter().count();
    let noun = if count == 1 { "problem" } else { "problems" };
    let instead = instead.map_or_else(String::new, |checksum| {
        format!("; until it is mended, the last good definition stays in force: {checksum}")
    });
    fail(Exit::No, format!("{count} {noun} in `{name}`{instead}"))
}

/// The last good definition of sessions here, or where the file lies.
fn in_force_instead(file: &Path) -> Option<Digest> {
    let store = store().ok()?;
    let definitions = definitions(None, &store);
    let beside = file.parent().map_or_else(here, |parent| here().join(parent));
    [here(), beside].iter().find_map(|at| definitions.in_force_instead(Some(file), at))
}

fn show(file: &Path, loaded: &Loaded, checksum: &Digest, as_json: bool) {
    let name = file.display().to_string();
    let definition = &loaded.definition;
    if as_json {
        say_json(json!({
            "file": name, "ok": true, "checksum": checksum, "definition": definition,
            "extended": loaded.extended.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            "warnings": loaded.warnings.iter().map(problem_json).collect::<Vec<_>>(),
        }));
        return;
    }
    let ok = styled(AnsiColor::Green.on_default().bold(), "ok");
    say(format!("{}: {ok}", bold(&name)));
    describe(definition).iter().for_each(|line| say(format!("  {}", plain(line, LINE_MAX))));
    for (path, _) in &loaded.extended {
        say(format!("  extends {}", plain(&path.display().to_string(), LINE_MAX)));
    }
    say(dim(format!("  checksum {checksum}")));
    show_warnings(&loaded.warnings);
}

fn show_warnings(warnings: &[Diagnostic]) {
    for warning in warnings {
        let word = styled(AnsiColor::Yellow.on_default().bold(), "warning:");
        say(format!("{word} {warning}"));
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
    file.strip_prefix(here()).map(ToOwned::to_owned).unwrap_or(file)
}

/// What is in force in this workspace, and whose each demand is.
fn effective(file: Option<&Path>, as_json: bool) -> Exit {
    let store = match store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let definitions = definitions(None, &store);
    let effective = match definitions.effective(file, &here()) {
        Ok(effective) => effective,
        Err(error) => return complain_of(&error, file, as_json),
    };
    if as_json {
        say_json(effective_json(&effective));
    } else {
        show_effective(&effective);
    }
    match effective.combined.problems.as_slice() {
        [] => Exit::Fine,
        problems => fail(Exit::No, DefinitionError::Contradictory(problems.to_vec())),
    }
}

fn effective_json(effective: &Effective) -> Value {
    let layers = effective.layers.iter().map(|(layer, file, checksum)| {
        json!({ "layer": layer.word(), "file": file, "checksum": checksum })
    });
    let decisions = effective.combined.decisions.iter().map(|line| {
        let (why, until_trusted) = match &line.standing {
            Standing::InForce => (None, None),
            Standing::Ignored { why, until_trusted } => (Some(why), Some(until_trusted)),
        };
        json!({
            "subject": line.subject.word(),
            "text": line.text,
            "layer": line.layer.word(),
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
    })
}

fn show_effective(effective: &Effective) {
    let definition = &effective.combined.definition;
    say(format!("{} in mode {}", bold(&definition.name), mode(definition)));
    for (layer, file, _) in &effective.layers {
        let trust = match (layer, effective.trusted) {
            (Layer::Repository, true) => ", trusted",
            (Layer::Repository, false) => ", not trusted",
            _ => "",
        };
        say(format!("  {} layer: {}{trust}", layer.word(), shown(file)));
    }
    say(dim(format!("  checksum {}", effective.checksum)));
    let (in_force, ignored): (Vec<_>, Vec<_>) =
        effective.combined.decisions.iter().partition(|line| line.standing == Standing::InForce);
    let rows: Vec<Vec<String>> = in_force.into_iter().map(row).collect();
    say(bold("in force"));
    table(&rows);
    if !ignored.is_empty() {
        say(bold("ignored"));
        ignored.iter().for_each(|line| say(ignored_line(line)));
    }
    show_warnings(&effective.warnings);
}

fn row(line: &EffectiveLine) -> Vec<String> {
    let origin = line.origin.as_ref().map_or_else(String::new, |origin| format!(", {origin}"));
    vec![
        format!("  {}", line.subject.word()),
        dim(plain(&format!("{}{origin}", line.layer.word()), LINE_MAX)),
        plain(&line.text, LINE_MAX),
    ]
}

/// A demand that is not in force, why not, and what would change that.
fn ignored_line(line: &EffectiveLine) -> String {
    let (why, trust) = match &line.standing {
        Standing::InForce => return String::new(),
        Standing::Ignored { why, until_trusted: true } => (why, "; `jackline trust` would let it"),
        Standing::Ignored { why, until_trusted: false } => (why, ""),
    };
    let whose = dim(format!("({})", line.layer.word()));
    format!("  {} {whose} ignored: {}{trust}", plain(&line.text, LINE_MAX), plain(why, LINE_MAX))
}

fn shown(file: &Path) -> String {
    plain(&file.display().to_string(), LINE_MAX)
}

fn mode(definition: &Definition) -> &'static str {
    match definition.mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe (no call is held up, but by what is enforced by name)",
    }
}

/// Everything that a definition demands, and where it differs from what everybody has.
fn describe(definition: &Definition) -> Vec<String> {
    let mut lines = vec![format!("{} in mode {}", definition.name, mode(definition))];
    let usual = Definition::default();
    if definition.unknown_tools != usual.unknown_tools {
        lines.push(format!("unknown_tools: {}", words::unknown_tools(definition.unknown_tools)));
    }
    if definition.shell.opaque != usual.shell.opaque {
        lines.push(format!("shell.opaque: {}", words::opaque(definition.shell.opaque)));
    }
    lines.extend(definition.identity.as_ref().map(words::identity));
    if !definition.tools.is_empty() {
        let tools: Vec<&str> = definition.tools.iter().map(|tool| tool.name.as_str()).collect();
        lines.push(format!("tools: {}", tools.join(", ")));
    }
    let speaks = definition.tools.iter().filter(|tool| says_something(tool));
    lines.extend(speaks.map(|tool| format!("tool {}", words::tool(tool))));
    lines.extend(definition.protected.iter().map(|path| format!("protected: `{path}`")));
    lines.extend(definition.policies.iter().flat_map(|policy| words::policy(&policy.rule)));
    lines.extend(definition.rules.iter().map(|rule| format!("rule {}", words::rule(rule))));
    if let Some(checker) = &definition.completion {
        let cap = words::cap(definition.completion_cap);
        lines.push(format!("to stop: {} ({cap})", words::checker(checker)));
    }
    for (key, limit) in words::limits(&definition.limits) {
        lines.extend(limit.map(|limit| words::limit(key, limit)));
    }
    let calls = definition.limits.tool_calls.iter();
    lines.extend(calls.map(|(tool, limit)| words::tool_limit(tool, *limit)));
    if definition.loops != usual.loops {
        lines.push(words::loops(&definition.loops));
    }
    lines.extend(definition.progress.as_ref().map(words::progress));
    lines.extend(definition.context.map(|it| format!("context: {}", words::context(it))));
    lines.extend(words::io(&definition.io));
    lines.extend(words::schemas(&definition.schemas));
    lines.extend(words::attempts(&definition.attempts));
    if definition.health != usual.health {
        lines.push(words::health(definition.health));
    }
    if !definition.choices.is_empty() {
        lines.push(words::models(&definition.choices));
    }
    lines.extend(definition.advisor.as_ref().map(words::advisor));
    lines.extend(definition.feedback.iter().map(words::feedback));
    lines.extend(definition.notify.iter().map(words::notifier));
    lines
}

/// Whether something holds of a tool that no policy and no rule says.
fn says_something(tool: &Tool) -> bool {
    let is_excused = tool.transparent || tool.read_only || tool.poll.is_some();
    let is_checked = tool.schema.is_some() || tool.output_schema.is_some();
    !tool.idempotent || tool.roles.is_some() || is_excused || is_checked
}

/// Everything that is wrong, for a command that needs a file that loads.
pub(super) fn refuse(diagnostics: &Diagnostics) -> Exit {
    say(diagnostics);
    fail(Exit::No, format!("`{}` does not load; mend it first", diagnostics.file()))
}
