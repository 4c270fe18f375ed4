//! `completion` and `completion_cap`: what must be true before the agent may stop.

use jackline_engine::definition::{CompletionCap, CompletionRequirement, RequiredFile};

use super::prelude::*;
use crate::values::read_path;

static KEYS: [KeySpec; 2] = [
    key(
        "completion",
        OneOf(&[Map(&CHECKER), Nothing]),
        "none: the agent may stop",
        "What must be true before the agent may stop.",
    ),
    key("completion_cap", Map(&CAP), "", "How often Jackline may block a stop."),
];

static CHECKER: MappingSpec = MappingSpec {
    id: "check",
    label: "a completion check",
    doc: "",
    entries: &[
        key("files", List(1, &OneOf(&[Path, Map(&FILE)])), "", "Files that must exist."),
        key("command", OneOf(&[Text, Map(&COMMAND)]), "", "A command line that must succeed."),
        key("all", List(1, &Map(&CHECKER)), "", "All of these checks."),
        key("any", List(1, &Map(&CHECKER)), "", "At least one of these checks."),
        key(
            "clean",
            Map(&CLEAN),
            "",
            "No code changed since the tests passed. Jackline knows the code changes and the test runs from the calls of the agent.",
        ),
        key(
            "docs_updated",
            Map(&DOCS_UPDATED),
            "",
            "If code was changed in this session, documentation was changed, too.",
        ),
    ],
    required: &[RequiredKeys::Single],
};

static FILE: MappingSpec = MappingSpec {
    id: "file",
    label: "a required file",
    doc: "A path alone is `{path: …}`. Paths are relative to the workspace.",
    entries: &[
        key("path", Path, "required", "The path."),
        key("non_empty", Flag, "`false`", "Whether it must have content."),
        key("min_bytes", Count(0, I64_MAX), "0", "Its minimum size in bytes."),
        key("json", Flag, "`false`", "Whether it must be one valid JSON document."),
        key(
            "newer_than_start",
            Flag,
            "`false`",
            "Whether it must have been written since the session started.",
        ),
    ],
    required: &[RequiredKeys::All(&["path"])],
};

static COMMAND: MappingSpec = MappingSpec {
    id: "command",
    label: "a command",
    doc: "It runs in parallel with the session. Until it ends, Jackline answers a stop with the message that verification is running. Exit status 0 is success.",
    entries: &[
        key("run", Text, "required", "The command line."),
        key("timeout_seconds", Count(1, U32_MAX), "600", "The timeout in seconds."),
    ],
    required: &[RequiredKeys::All(&["run"])],
};

static CLEAN: MappingSpec = MappingSpec {
    id: "clean",
    label: "`clean`",
    doc: "It has no keys: `clean: {}`. Jackline takes the result of a test run from the exit status of the command line, \
          if the tests determine that status (not in `pytest | tail` or `pytest || true`), else from the summary that the tests \
          print. A run with an unknown result does not count as passed.",
    entries: &[],
    required: &[],
};

static DOCS_UPDATED: MappingSpec = MappingSpec {
    id: "docs_updated",
    label: "`docs_updated`",
    doc: "It has no keys: `docs_updated: {}`. Files count as documentation by their names: `*.md`, `docs/**`, and `docs` of \
          `dirty_bits`. A command that builds the documentation counts, too, such as `cargo doc`. The order of the changes does \
          not matter.",
    entries: &[],
    required: &[],
};

static CAP: MappingSpec = MappingSpec {
    id: "completion_cap",
    label: "`completion_cap`",
    doc: "The next stop after that is `capped`: the session may end, but it never counts as done.",
    entries: &[
        key("blocks", Count(1, U32_MAX), "5", "The maximum number of blocked stops in one turn."),
        key(
            "same",
            Count(1, U32_MAX),
            "3",
            "The maximum number of blocked stops in a row with the same text and without a change of the files.",
        ),
    ],
    required: &[],
};

/// The maximum nesting depth of `all` and `any`.
const DEPTH_MAX: usize = 8;

/// The maximum number of commands in a definition. Each one is a process.
const COMMANDS_MAX: u16 = 64;

/// The default timeout of a command in seconds.
const TIMEOUT_SECONDS: u32 = 600;

/// The checks of one layer.
#[derive(Clone)]
pub(crate) struct CompletionDemands {
    /// All checks must be satisfied.
    pub(crate) checks: Vec<Demand<CompletionRequirement>>,
    /// None if the layer has no check and the default cap.
    cap: Option<Demand<CompletionCap>>,
}

pub(crate) struct CompletionSection;

impl Section for CompletionSection {
    type Part = CompletionDemands;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] =
        &[&CHECKER, &FILE, &COMMAND, &CLEAN, &DOCS_UPDATED, &CAP];

    fn lower(
        key: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        match key {
            "completion" => lowering.definition.completion = read(node, reader),
            _ => read_cap(node, &mut lowering.definition.completion_cap, reader),
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let Definition { completion, completion_cap, .. } = source.definition;
        let checks = completion.iter().map(|check| with_trust(check.clone(), source.trusted));
        let has_cap = completion.is_some() || *completion_cap != CompletionCap::default();
        CompletionDemands {
            checks: source.list(checks),
            cap: has_cap.then(|| source.demand(*completion_cap)),
        }
    }

    fn follows_mode(part: &Self::Part) -> bool {
        !part.checks.is_empty()
    }

    /// Takes the checks of both layers. A check that both layers have belongs to the higher layer,
    /// whose commands may run.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.completion, &low.completion);
        let mut checks = high.checks.clone();
        for check in &low.checks {
            let plain = with_trust(check.value.clone(), false);
            if !checks.iter().any(|known| with_trust(known.value.clone(), false) == plain) {
                checks.push(check.clone());
            }
        }
        let cap = join.join_unordered(high.cap.as_ref(), low.cap.as_ref(), cap_line);
        CompletionDemands { checks, cap }
    }

    fn describe(part: &Self::Part, lines: &mut DemandLines<'_>) {
        if let Some(cap) = &part.cap {
            lines.add_general(cap_line(cap.value), cap.layer);
        }
        for check in &part.checks {
            let waits = needs_trust(&check.value);
            let waits = if waits { " (not run until trusted)" } else { "" };
            lines.add(
                DemandSubject::Completion,
                format!("{}{waits}", text(&check.value)),
                check.layer,
            );
        }
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        let mut checks = values(part.checks);
        let mut next = 0;
        checks.iter_mut().for_each(|check| number_commands(check, &mut next));
        definition.completion =
            if checks.len() > 1 { Some(CompletionRequirement::All(checks)) } else { checks.pop() };
        definition.completion_cap = part.cap.map_or_else(CompletionCap::default, |cap| cap.value);
    }

    fn problems(definition: &Definition) -> Vec<String> {
        let commands = definition.completion.as_ref().map_or(0, count_commands);
        let message = || format!("{commands} commands; at most {COMMANDS_MAX} are supported");
        (commands > usize::from(COMMANDS_MAX)).then(message).into_iter().collect()
    }
}

fn read(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<CompletionRequirement> {
    if node.value == YamlValue::Null {
        return None;
    }
    let mut commands = 0;
    let checker = read_checker(node, 0, &mut commands, reader);
    if commands > COMMANDS_MAX {
        reader.report(
            node.position,
            format!("{commands} commands; at most {COMMANDS_MAX} are supported"),
        );
    }
    checker
}

/// Reads a check. `commands` counts the checks that run a command.
fn read_checker(
    node: &YamlNode,
    depth: usize,
    commands: &mut u16,
    reader: &mut NodeReader<'_>,
) -> Option<CompletionRequirement> {
    if depth > DEPTH_MAX {
        reader.report(
            node.position,
            format!("`all` and `any` are nested deeper than {DEPTH_MAX} levels"),
        );
        return None;
    }
    if let YamlValue::Map(entries) = &node.value
        && entries.len() > 1
    {
        // The values are still read, so that their mistakes are also reported.
        let fields: Vec<_> = reader.fields(node, &CHECKER).collect();
        fields.iter().for_each(|(key, body)| drop(read_check(key, body, depth, commands, reader)));
        let message =
            format!("a completion check must have exactly one key, not {}", entries.len());
        reader.report_with_hint(node.position, message, "combine several with `all` or `any`");
        return None;
    }
    let (key, body) = reader.single_field(node, &CHECKER)?;
    read_check(key, body, depth, commands, reader)
}

fn read_check(
    key: &str,
    body: &YamlNode,
    depth: usize,
    commands: &mut u16,
    reader: &mut NodeReader<'_>,
) -> Option<CompletionRequirement> {
    if key == "command" {
        let number = *commands;
        *commands = commands.saturating_add(1);
        return command(body, number, reader);
    }
    if key == "clean" {
        // `clean` has no keys. Reading its fields reports any key as unknown.
        let _ = reader.fields(body, &CLEAN).count();
        return Some(CompletionRequirement::Clean);
    }
    if key == "docs_updated" {
        let _ = reader.fields(body, &DOCS_UPDATED).count();
        return Some(CompletionRequirement::DocsUpdated);
    }
    let items = reader.list(body, &format!("`{key}`"));
    if items.is_empty() && matches!(body.value, YamlValue::List(_) | YamlValue::Null) {
        let message = format!("`{key}` is empty");
        reader.report_with_hint(body.position, message, "add an entry, or remove it");
        return None;
    }
    if key == "files" {
        let files: Vec<_> = items.iter().map(|item| required_file(item, reader)).collect();
        return files.into_iter().collect::<Option<_>>().map(CompletionRequirement::Files);
    }
    let parts: Vec<_> =
        items.iter().map(|item| read_checker(item, depth + 1, commands, reader)).collect();
    let parts = parts.into_iter().collect::<Option<_>>()?;
    Some(if key == "all" {
        CompletionRequirement::All(parts)
    } else {
        CompletionRequirement::Any(parts)
    })
}

/// Reads a command that must succeed. The command is marked as trusted for now; the join of the
/// layers decides whether it may run.
fn command(
    node: &YamlNode,
    number: u16,
    reader: &mut NodeReader<'_>,
) -> Option<CompletionRequirement> {
    let mut timeout_seconds = TIMEOUT_SECONDS;
    let mut line = None;
    if matches!(node.value, YamlValue::Map(_)) {
        for (key, node) in reader.fields(node, &COMMAND) {
            if key == "run" {
                line = Some(reader.text(node, "`run`"));
            } else if let Some(seconds) = reader.positive(node, "`timeout_seconds`") {
                timeout_seconds = seconds;
            }
        }
        if line.is_none() {
            reader.report(node.position, "a command needs `run`");
        }
    } else {
        line = Some(reader.text(node, "`command`"));
    }
    let line = line.flatten()?.to_owned();
    Some(CompletionRequirement::Command { number, line, timeout_seconds, trusted: true })
}

fn required_file(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<RequiredFile> {
    let mut file =
        RequiredFile { path: String::new(), min_bytes: 0, json: false, newer_than_start: false };
    if !matches!(node.value, YamlValue::Map(_)) {
        file.path = read_path(node, reader)?;
        return Some(file);
    }
    let mut given = None;
    let mut non_empty = false;
    for (key, node) in reader.fields(node, &FILE) {
        match key {
            "path" => given = Some(read_path(node, reader)),
            "non_empty" => non_empty = reader.flag(node, "`non_empty`").unwrap_or(false),
            "min_bytes" => file.min_bytes = reader.count(node, "`min_bytes`").unwrap_or(0),
            "json" => file.json = reader.flag(node, "`json`").unwrap_or(false),
            _ => {
                file.newer_than_start = reader.flag(node, "`newer_than_start`").unwrap_or(false);
            }
        }
    }
    if given.is_none() {
        reader.report(node.position, "a required file needs a `path`");
    }
    file.path = given.flatten()?;
    if non_empty {
        file.min_bytes = file.min_bytes.max(1);
    }
    Some(file)
}

fn read_cap(node: &YamlNode, cap: &mut CompletionCap, reader: &mut NodeReader<'_>) {
    for (key, node) in reader.fields(node, &CAP) {
        let what = format!("`completion_cap.{key}`");
        let Some(count) = reader.count::<u32>(node, &what) else { continue };
        if count == 0 {
            reader.report_with_hint(
                node.position,
                format!("{what} is 0, so no stop would ever be blocked"),
                "remove `completion` instead",
            );
        } else if key == "blocks" {
            cap.blocks = count;
        } else {
            cap.same = count;
        }
    }
}

/// Marks every command in a check as trusted or not trusted, and resets its number. Commands get
/// their numbers after all layers are joined.
fn with_trust(mut checker: CompletionRequirement, may_run: bool) -> CompletionRequirement {
    each_command(&mut checker, &mut |number, trusted| {
        *number = 0;
        *trusted = may_run;
    });
    checker
}

fn number_commands(checker: &mut CompletionRequirement, next: &mut u16) {
    each_command(checker, &mut |number, _| {
        *number = *next;
        *next = next.saturating_add(1);
    });
}

/// Changes the number and the trust of every command in a check.
fn each_command(checker: &mut CompletionRequirement, change: &mut dyn FnMut(&mut u16, &mut bool)) {
    match checker {
        CompletionRequirement::Command { number, trusted, .. } => change(number, trusted),
        CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
            parts.iter_mut().for_each(|part| each_command(part, change));
        }
        CompletionRequirement::Files(_)
        | CompletionRequirement::Custom { .. }
        | CompletionRequirement::Clean
        | CompletionRequirement::DocsUpdated => {}
    }
}

fn count_commands(checker: &CompletionRequirement) -> usize {
    let mut count = 0;
    each_command(&mut checker.clone(), &mut |_, _| count += 1);
    count
}

/// Whether a check has a command that needs trust before it may run.
fn needs_trust(checker: &CompletionRequirement) -> bool {
    let mut waits = false;
    each_command(&mut checker.clone(), &mut |_, trusted| waits |= !*trusted);
    waits
}

/// Describes a completion check.
pub fn text(checker: &CompletionRequirement) -> String {
    let joined = |parts: &[CompletionRequirement], word: &str| {
        let parts: Vec<String> = parts.iter().map(text).collect();
        format!("({})", parts.join(word))
    };
    match checker {
        CompletionRequirement::Files(files) => {
            files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ")
        }
        CompletionRequirement::All(parts) => joined(parts, " and "),
        CompletionRequirement::Any(parts) => joined(parts, " or "),
        CompletionRequirement::Custom { name } => name.clone(),
        CompletionRequirement::Command { line, .. } => format!("`{line}` succeeds"),
        CompletionRequirement::Clean => "changed code is tested".to_owned(),
        CompletionRequirement::DocsUpdated => "documentation of changed code is updated".to_owned(),
    }
}

/// Describes how often a stop may be blocked.
pub fn cap(cap: CompletionCap) -> String {
    format!("at most {} blocked stops per turn, {} with the same text", cap.blocks, cap.same)
}

fn cap_line(value: CompletionCap) -> String {
    format!("completion_cap: {}", cap(value))
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::CompletionRequirement;

    use crate::layers::combine;
    use crate::layers::tests::{command, completing, repository, trusted, untrusted};

    #[test]
    fn a_repositorys_commands_run_only_when_trusted() {
        let own = CompletionRequirement::Any(vec![
            command("make a", 7, true),
            command("make b", 8, true),
        ]);
        let theirs = CompletionRequirement::All(vec![
            command("make c", 0, false),
            command("make d", 1, false),
        ]);
        let alone = combine(vec![repository(completing(own.clone()))], false);
        assert_eq!(
            alone.definition.completion,
            Some(CompletionRequirement::Any(vec![
                command("make a", 0, false),
                command("make b", 1, false)
            ]))
        );
        let expected = |trust: bool| {
            Some(CompletionRequirement::All(vec![
                CompletionRequirement::All(vec![
                    command("make c", 0, true),
                    command("make d", 1, true),
                ]),
                CompletionRequirement::Any(vec![
                    command("make a", 2, trust),
                    command("make b", 3, trust),
                ]),
            ]))
        };
        let (high, low) = (completing(theirs.clone()), completing(own));
        assert_eq!(untrusted(&high, &low).definition.completion, expected(false));
        assert_eq!(trusted(&high, &low).definition.completion, expected(true));
        // A check that the person also has belongs to the person, so its commands may run.
        assert_eq!(
            untrusted(&high, &completing(theirs)).definition.completion,
            Some(CompletionRequirement::All(vec![
                command("make c", 0, true),
                command("make d", 1, true)
            ]))
        );
    }
}
