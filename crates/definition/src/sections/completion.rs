//! `completion` and `completion_cap`: what must be true before the agent may stop.

use jackline_engine::definition::{Cap, Checker, RequiredFile};

use super::prelude::*;
use crate::values::path;

static KEYS: [Key; 2] = [
    key(
        "completion",
        OneOf(&[Map(&CHECKER), Nothing]),
        "none: the agent may stop",
        "What must be true before the agent may stop.",
    ),
    key("completion_cap", Map(&CAP), "", "How often a stop may be blocked."),
];

static CHECKER: Keys = Keys {
    id: "check",
    of: "a completion check",
    doc: "",
    known: &[
        key("files", List(1, &OneOf(&[Path, Map(&FILE)])), "", "Files that must be there."),
        key("command", OneOf(&[Text, Map(&COMMAND)]), "", "A command line that must succeed."),
        key("all", List(1, &Map(&CHECKER)), "", "Every one of these checks."),
        key("any", List(1, &Map(&CHECKER)), "", "At least one of these checks."),
        key(
            "clean",
            Map(&CLEAN),
            "",
            "No code was changed since the tests passed. It is the code that calls were seen to change, and tests that were seen to be run.",
        ),
    ],
    needs: &[Needs::Single],
};

static FILE: Keys = Keys {
    id: "file",
    of: "a required file",
    doc: "A path alone is `{path: …}`. Paths lie in the workspace.",
    known: &[
        key("path", Path, "required", "The path."),
        key("non_empty", Flag, "`false`", "Whether it must hold something."),
        key("min_bytes", Count(0, I64), "0", "Its least size."),
        key("json", Flag, "`false`", "Whether it must be one valid JSON document."),
        key(
            "newer_than_start",
            Flag,
            "`false`",
            "Whether it must have been written since the session began.",
        ),
    ],
    needs: &[Needs::All(&["path"])],
};

static COMMAND: Keys = Keys {
    id: "command",
    of: "a command",
    doc: "It runs beside the session; while it does, a stop is answered that verification is running. Exit status 0 is success.",
    known: &[
        key("run", Text, "required", "The command line."),
        key("timeout_seconds", Count(1, U32), "600", "How long it may take."),
    ],
    needs: &[Needs::All(&["run"])],
};

static CLEAN: Keys = Keys {
    id: "clean",
    of: "`clean`",
    doc: "It has nothing to set: `clean: {}`. A run counts as passing where the exit status of the line hangs on it \
          (`pytest | tail` and `pytest || true` do not), else where its summary says so; what nobody can tell is not passing.",
    known: &[],
    needs: &[],
};

static CAP: Keys = Keys {
    id: "completion_cap",
    of: "`completion_cap`",
    doc: "The next stop after that is `capped`, which is never \"done\".",
    known: &[
        key("blocks", Count(1, U32), "5", "In one turn."),
        key("same", Count(1, U32), "3", "With the same text and no change of the files."),
    ],
    needs: &[],
};

/// How deep `all` and `any` may nest.
const DEPTH_MAX: usize = 8;

/// How many commands a definition may have: each is a process.
const COMMANDS_MAX: u16 = 64;

/// How long a command may take, by default.
const TIMEOUT_SECONDS: u32 = 600;

/// The checks of one layer.
#[derive(Clone)]
pub(crate) struct CompletionDemands {
    /// All of them must be satisfied.
    pub(crate) checks: Vec<Demand<Checker>>,
    /// None where there is no check that it could be the cap of.
    cap: Option<Demand<Cap>>,
}

pub(crate) struct CompletionSection;

impl Section for CompletionSection {
    type Part = CompletionDemands;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&CHECKER, &FILE, &COMMAND, &CLEAN, &CAP];

    fn lower(key: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        match key {
            "completion" => lowering.definition.completion = read(node, reader),
            _ => read_cap(node, &mut lowering.definition.completion_cap, reader),
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let Definition { completion, completion_cap, .. } = source.definition;
        let checks = completion.iter().map(|check| with_trust(check.clone(), source.trusted));
        let has_cap = completion.is_some() || *completion_cap != Cap::default();
        CompletionDemands {
            checks: source.list(checks),
            cap: has_cap.then(|| source.demand(*completion_cap)),
        }
    }

    fn follows_mode(part: &Self::Part) -> bool {
        !part.checks.is_empty()
    }

    /// The checks of both layers. A check that both have is the higher layer's, whose commands
    /// may run.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.completion, &low.completion);
        let mut checks = high.checks.clone();
        for check in &low.checks {
            let plain = with_trust(check.value.clone(), false);
            if !checks.iter().any(|known| with_trust(known.value.clone(), false) == plain) {
                checks.push(check.clone());
            }
        }
        let cap = join.unordered(high.cap.as_ref(), low.cap.as_ref(), cap_line);
        CompletionDemands { checks, cap }
    }

    fn describe(part: &Self::Part, lines: &mut EffectiveLines<'_>) {
        if let Some(cap) = &part.cap {
            lines.general(cap_line(cap.value), cap.layer);
        }
        for check in &part.checks {
            let waits = waits(&check.value);
            let waits = if waits { " (not run until trusted)" } else { "" };
            lines.add(Subject::Completion, format!("{}{waits}", text(&check.value)), check.layer);
        }
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        let mut checks = values(part.checks);
        let mut next = 0;
        checks.iter_mut().for_each(|check| number(check, &mut next));
        definition.completion =
            if checks.len() > 1 { Some(Checker::All(checks)) } else { checks.pop() };
        definition.completion_cap = part.cap.map_or_else(Cap::default, |cap| cap.value);
    }

    fn problems(definition: &Definition) -> Vec<String> {
        let commands = definition.completion.as_ref().map_or(0, count_commands);
        let message = || format!("{commands} commands; at most {COMMANDS_MAX} are kept");
        (commands > usize::from(COMMANDS_MAX)).then(message).into_iter().collect()
    }
}

fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Checker> {
    if node.value == NodeValue::Null {
        return None;
    }
    let mut commands = 0;
    let checker = checker(node, 0, &mut commands, reader);
    if commands > COMMANDS_MAX {
        reader.complain(node.at, format!("{commands} commands; at most {COMMANDS_MAX} are run"));
    }
    checker
}

/// A check; `commands` counts those that run a command.
fn checker(
    node: &Node,
    depth: usize,
    commands: &mut u16,
    reader: &mut Reader<'_>,
) -> Option<Checker> {
    if depth > DEPTH_MAX {
        reader.complain(node.at, format!("`all` and `any` nest deeper than {DEPTH_MAX}"));
        return None;
    }
    if let NodeValue::Map(entries) = &node.value
        && entries.len() > 1
    {
        // The values are still read, so that their mistakes are reported, too.
        let fields: Vec<_> = reader.fields(node, &CHECKER).collect();
        fields.iter().for_each(|(key, body)| drop(one(key, body, depth, commands, reader)));
        let message = format!("a completion check has exactly one key, not {}", entries.len());
        reader.complain_hint(node.at, message, "combine several with `all` or `any`");
        return None;
    }
    let (key, body) = reader.single(node, &CHECKER)?;
    one(key, body, depth, commands, reader)
}

fn one(
    key: &str,
    body: &Node,
    depth: usize,
    commands: &mut u16,
    reader: &mut Reader<'_>,
) -> Option<Checker> {
    if key == "command" {
        let number = *commands;
        *commands = commands.saturating_add(1);
        return command(body, number, reader);
    }
    if key == "clean" {
        // `clean` has no keys. This reports one that is there all the same.
        let _ = reader.fields(body, &CLEAN).count();
        return Some(Checker::Clean);
    }
    let items = reader.list(body, &format!("`{key}`"));
    if items.is_empty() && matches!(body.value, NodeValue::List(_) | NodeValue::Null) {
        let message = format!("`{key}` is empty, so it demands nothing");
        reader.complain_hint(body.at, message, "list what must be there, or remove it");
        return None;
    }
    if key == "files" {
        let files: Vec<_> = items.iter().map(|item| required_file(item, reader)).collect();
        return files.into_iter().collect::<Option<_>>().map(Checker::Files);
    }
    let parts: Vec<_> =
        items.iter().map(|item| checker(item, depth + 1, commands, reader)).collect();
    let parts = parts.into_iter().collect::<Option<_>>()?;
    Some(if key == "all" { Checker::All(parts) } else { Checker::Any(parts) })
}

/// A command that must succeed. Whether it may run is decided when the layer of the file is
/// known.
fn command(node: &Node, number: u16, reader: &mut Reader<'_>) -> Option<Checker> {
    let mut timeout_seconds = TIMEOUT_SECONDS;
    let mut line = None;
    if matches!(node.value, NodeValue::Map(_)) {
        for (key, node) in reader.fields(node, &COMMAND) {
            if key == "run" {
                line = Some(reader.text(node, "`run`"));
            } else if let Some(seconds) = reader.positive(node, "`timeout_seconds`") {
                timeout_seconds = seconds;
            }
        }
        if line.is_none() {
            reader.complain(node.at, "a command has a `run`");
        }
    } else {
        line = Some(reader.text(node, "`command`"));
    }
    let line = line.flatten()?.to_owned();
    Some(Checker::Command { number, line, timeout_seconds, trusted: true })
}

fn required_file(node: &Node, reader: &mut Reader<'_>) -> Option<RequiredFile> {
    let mut file =
        RequiredFile { path: String::new(), min_bytes: 0, json: false, newer_than_start: false };
    if !matches!(node.value, NodeValue::Map(_)) {
        file.path = path(node, reader)?;
        return Some(file);
    }
    let mut given = None;
    let mut non_empty = false;
    for (key, node) in reader.fields(node, &FILE) {
        match key {
            "path" => given = Some(path(node, reader)),
            "non_empty" => non_empty = reader.flag(node, "`non_empty`").unwrap_or(false),
            "min_bytes" => file.min_bytes = reader.count(node, "`min_bytes`").unwrap_or(0),
            "json" => file.json = reader.flag(node, "`json`").unwrap_or(false),
            _ => {
                file.newer_than_start = reader.flag(node, "`newer_than_start`").unwrap_or(false);
            }
        }
    }
    if given.is_none() {
        reader.complain(node.at, "a required file has a `path`");
    }
    file.path = given.flatten()?;
    if non_empty {
        file.min_bytes = file.min_bytes.max(1);
    }
    Some(file)
}

fn read_cap(node: &Node, cap: &mut Cap, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &CAP) {
        let what = format!("`completion_cap.{key}`");
        let Some(count) = reader.count::<u32>(node, &what) else { continue };
        if count == 0 {
            reader.complain_hint(
                node.at,
                format!("{what} is 0, so the gate would never block"),
                "remove `completion` instead",
            );
        } else if key == "blocks" {
            cap.blocks = count;
        } else {
            cap.same = count;
        }
    }
}

/// Marks every command in a check as trusted or not. Commands get their numbers once all layers
/// are joined.
fn with_trust(mut checker: Checker, may_run: bool) -> Checker {
    each_command(&mut checker, &mut |number, trusted| {
        *number = 0;
        *trusted = may_run;
    });
    checker
}

fn number(checker: &mut Checker, next: &mut u16) {
    each_command(checker, &mut |number, _| {
        *number = *next;
        *next = next.saturating_add(1);
    });
}

/// Changes the number and the trust of every command in a check.
fn each_command(checker: &mut Checker, change: &mut dyn FnMut(&mut u16, &mut bool)) {
    match checker {
        Checker::Command { number, trusted, .. } => change(number, trusted),
        Checker::All(parts) | Checker::Any(parts) => {
            parts.iter_mut().for_each(|part| each_command(part, change));
        }
        Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => {}
    }
}

fn count_commands(checker: &Checker) -> usize {
    let mut count = 0;
    each_command(&mut checker.clone(), &mut |_, _| count += 1);
    count
}

/// Whether a check has a command that no person lets run.
fn waits(checker: &Checker) -> bool {
    let mut waits = false;
    each_command(&mut checker.clone(), &mut |_, trusted| waits |= !*trusted);
    waits
}

/// What must be true before the agent may stop.
pub fn text(checker: &Checker) -> String {
    let joined = |parts: &[Checker], word: &str| {
        let parts: Vec<String> = parts.iter().map(text).collect();
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

fn cap_line(value: Cap) -> String {
    format!("completion_cap: {}", cap(value))
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::Checker;

    use crate::layers::combine;
    use crate::layers::tests::{command, completing, repository, trusted, untrusted};

    #[test]
    fn a_repositorys_commands_run_only_when_trusted() {
        let own = Checker::Any(vec![command("make a", 7, true), command("make b", 8, true)]);
        let theirs = Checker::All(vec![command("make c", 0, false), command("make d", 1, false)]);
        let alone = combine(vec![repository(completing(own.clone()))], false);
        assert_eq!(
            alone.definition.completion,
            Some(Checker::Any(vec![command("make a", 0, false), command("make b", 1, false)]))
        );
        let expected = |trust: bool| {
            Some(Checker::All(vec![
                Checker::All(vec![command("make c", 0, true), command("make d", 1, true)]),
                Checker::Any(vec![command("make a", 2, trust), command("make b", 3, trust)]),
            ]))
        };
        let (high, low) = (completing(theirs.clone()), completing(own));
        assert_eq!(untrusted(&high, &low).definition.completion, expected(false));
        assert_eq!(trusted(&high, &low).definition.completion, expected(true));
        // A check that the person has, too, is the person's, so its commands may run.
        assert_eq!(
            untrusted(&high, &completing(theirs)).definition.completion,
            Some(Checker::All(vec![command("make c", 0, true), command("make d", 1, true)]))
        );
    }
}
