//! From the tree to the definition that the engine runs on.

mod attempts;
pub(crate) mod completion;
mod context;
pub(crate) mod feedback;
mod identity;
mod io;
mod limits;
mod loops;
mod models;
pub(crate) mod modes;
pub(crate) mod policies;
mod progress;
mod rules;
mod schemas;
mod tools;

use jackline_engine::definition::{
    Journal, Notifier, Occasion, Opaque, Redact, Rules, Shell, UnknownTools,
};
use jackline_engine::{Definition, Mode, canonical};

use modes::NamedMode;
pub(crate) use rules::{Example, Given, LoweredRule, Run, is_of_pack};
pub(crate) use tools::Tools;

use crate::diagnostic::{At, Diagnostics};
use crate::keys;
use crate::reader::Reader;
use crate::source::Sources;
use crate::yaml::{Node, NodeValue};

/// A definition with what only its loader wants to know.
pub(crate) struct Lowered {
    pub(crate) definition: Definition,
    pub(crate) tools: Tools,
    /// Every rule that holds, in the order of the definition.
    pub(crate) rules: Vec<LoweredRule>,
    /// Rules of packs that are named and not extended.
    pub(crate) idle: Vec<(String, At)>,
    /// The modes it gives to rules and packs by name.
    pub(crate) modes: Vec<(String, Mode)>,
}

const MODES: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("observe", Mode::Observe)];

/// Lowers a tree; what is wrong with it is in `diagnostics`. `closed` says
/// whether a file tells which tools there are.
pub(crate) fn lower(
    root: &Node,
    closed: bool,
    sources: &Sources,
    diagnostics: &mut Diagnostics,
) -> Lowered {
    let reader = &mut Reader::new(sources, diagnostics);
    let mut definition = Definition::default();
    let mut tools = Tools::new(closed);
    let mut unknown_tools = None;
    // Policies and rules name tools, so they wait until all tools are known.
    let mut waiting = Waiting::default();
    for (key, node) in reader.fields(root, &keys::ROOT) {
        match key {
            "name" => {
                if let Some(name) = name(node, reader) {
                    definition.name = name;
                }
            }
            "mode" => {
                definition.mode = reader.word(node, "`mode`", &MODES).unwrap_or(definition.mode);
            }
            "modes" => waiting.modes = modes::read(node, reader),
            "tools" => tools.declare(node, reader),
            "unknown_tools" => {
                let words = [("allow", UnknownTools::Allow), ("deny", UnknownTools::Deny)];
                unknown_tools = reader.word(node, "`unknown_tools`", &words);
            }
            "sections" => waiting.sections = Some(node),
            "policies" => waiting.policies = Some(node),
            "read_before_write" => waiting.read_before_write = Some(node),
            "rules" => waiting.rules = Some(node),
            "packs" => waiting.packs = Some(node),
            "shell" => shell(node, &mut definition.shell, reader),
            "protected" => definition.protected = protected(node, reader),
            "completion" => definition.completion = completion::lower(node, reader),
            "completion_cap" => completion::lower_cap(node, &mut definition.completion_cap, reader),
            "progress" => definition.progress = Some(progress::lower(node, reader)),
            "dirty_bits" => definition.dirty_bits = progress::lower_bits(node, reader),
            "schema" => schemas::lower(node, &mut definition.schemas.attempts, reader),
            "plan" => definition.schemas.plan = schemas::plan(node, reader),
            "outputs" => definition.schemas.outputs = schemas::outputs(node, reader),
            "attempts" => definition.attempts = attempts::lower(node, reader),
            "health" => definition.health = attempts::lower_health(node, reader),
            "models" => definition.choices = models::lower(node, "`models`", reader),
            "advisor" => definition.advisor = models::lower_advisor(node, reader),
            "identity" => definition.identity = Some(identity::lower(node, reader)),
            "io" => definition.io = io::lower(node, reader),
            "limits" => waiting.limits = Some(node),
            "iterations_extension" => waiting.iterations_extension = Some(node),
            "prices" => waiting.prices = Some(node),
            "context" => definition.context = context::lower(node, reader),
            "loops" => waiting.loops = Some(node),
            "feedback" => waiting.feedback = Some(node),
            "feedback_bytes_max" => {
                if let Some(bytes) = reader.count(node, "`feedback_bytes_max`") {
                    definition.feedback_bytes_max = bytes;
                }
            }
            "deadline" => waiting.deadline = Some(node),
            "notify" => definition.notify = notify(node, reader).into_iter().collect(),
            "journal" => journal(node, &mut definition.journal, reader),
            // `version` and `extends` are read before files are put together.
            _ => {}
        }
    }
    finish(&waiting, unknown_tools, definition, tools, reader)
}

/// What can only be read when the rest is known.
#[derive(Default)]
struct Waiting<'n> {
    sections: Option<&'n Node>,
    policies: Option<&'n Node>,
    read_before_write: Option<&'n Node>,
    rules: Option<&'n Node>,
    packs: Option<&'n Node>,
    modes: Vec<NamedMode<'n>>,
    limits: Option<&'n Node>,
    iterations_extension: Option<&'n Node>,
    prices: Option<&'n Node>,
    feedback: Option<&'n Node>,
    deadline: Option<&'n Node>,
    loops: Option<&'n Node>,
}

fn finish(
    waiting: &Waiting<'_>,
    unknown_tools: Option<UnknownTools>,
    mut definition: Definition,
    mut tools: Tools,
    reader: &mut Reader<'_>,
) -> Lowered {
    if let Some(node) = waiting.loops {
        definition.loops = loops::lower(node, definition.mode, reader);
    }
    let threshold = waiting
        .deadline
        .map_or(feedback::THRESHOLD, |node| feedback::threshold(node, feedback::THRESHOLD, reader));
    if let Some(node) = waiting.feedback {
        definition.feedback = feedback::lower(node, threshold, reader);
    }
    let deletes = waiting
        .read_before_write
        .is_some_and(|node| policies::read_before_write(node, false, reader));
    definition.policies =
        policies::lower(waiting.sections, waiting.policies, deletes, &mut tools, reader);
    definition.unknown_tools = unknown_tools.unwrap_or(if tools.is_given() {
        UnknownTools::Deny
    } else {
        UnknownTools::Allow
    });
    lower_limits(waiting, &mut definition, &tools, reader);
    definition.tools = tools.to_list();
    let mut rules = waiting.rules.map_or_else(Vec::new, |node| rules::lower(node, &tools, reader));
    let mut idle =
        waiting.packs.map_or_else(Vec::new, |node| rules::switch(node, &mut rules, reader));
    modes::set(&waiting.modes, definition.mode, &mut rules, &mut idle, reader);
    definition.rules = Rules::new(rules.iter().map(|lowered| lowered.rule.clone()).collect());
    let modes = waiting.modes.iter().map(|named| (named.name.to_owned(), named.mode)).collect();
    Lowered { definition, tools, rules, idle, modes }
}

/// Limits name tools; and the table of models is only carried along where a
/// limit on cost, prices or the context gate ask for it.
fn lower_limits(
    waiting: &Waiting<'_>,
    definition: &mut Definition,
    tools: &Tools,
    reader: &mut Reader<'_>,
) {
    if let Some(node) = waiting.limits {
        definition.limits = limits::lower(node, tools, reader);
    }
    if let Some(node) = waiting.iterations_extension
        && let Some(more) = reader.count(node, "`iterations_extension`")
    {
        definition.limits.iterations_extension = more;
        if more == 0 {
            reader.complain(node.at, "`iterations_extension` can't be 0");
        }
    }
    let own = waiting.prices.map(|node| limits::prices(node, reader));
    if own.is_some() || definition.limits.cost_usd.is_some() || definition.context.is_some() {
        definition.models = limits::models(own.unwrap_or_default());
    }
}

fn name(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "`name`")?;
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let fits = text.split_once('/').is_some_and(|(space, key)| part(space) && part(key));
    if !fits {
        let message = format!("`{text}` is not a name");
        reader.complain_hint(node.at, message, "write it as namespace/key, such as acme/coder");
    }
    fits.then(|| text.to_owned())
}

/// How a person is told; none where nothing would tell them.
fn notify(node: &Node, reader: &mut Reader<'_>) -> Option<Notifier> {
    let all = Occasion::ALL.iter().map(|(_, occasion)| *occasion).collect();
    let mut told =
        Notifier { command: None, webhook: None, desktop: false, on: all, trusted: true };
    for (key, node) in reader.fields(node, &keys::NOTIFY) {
        match key {
            "command" | "webhook" if node.value == NodeValue::Null => {}
            "command" => {
                told.command = reader.text(node, "`notify.command`").map(ToOwned::to_owned);
            }
            "webhook" => told.webhook = address(node, "`notify.webhook`", reader),
            "desktop" => told.desktop = reader.flag(node, "`notify.desktop`").unwrap_or(false),
            _ => {
                told.on = reader
                    .list(node, "`notify.on`")
                    .iter()
                    .filter_map(|item| reader.word(item, "an occasion", &Occasion::ALL))
                    .collect();
            }
        }
    }
    (told.command.is_some() || told.webhook.is_some() || told.desktop).then_some(told)
}

/// An address of a web server.
fn address(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, what)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let odd = |c: char| c.is_whitespace() || c.is_control() || "\"'\\".contains(c);
    let fits = rest.is_some_and(|rest| !rest.starts_with(['/', '?', '#', ':']) && !rest.is_empty());
    if !fits || text.contains(odd) {
        let hint = "write it as `https://host/path`";
        reader.complain_hint(node.at, format!("{what} is no address of a web server"), hint);
        return None;
    }
    Some(text.to_owned())
}

fn journal(node: &Node, journal: &mut Journal, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::JOURNAL) {
        match key {
            "redact" => {
                let words = [("built-in", Redact::BuiltIn), ("off", Redact::Off)];
                if let Some(redact) = reader.word(node, "`journal.redact`", &words) {
                    journal.redact = redact;
                }
            }
            "retain_days" => {
                if let Some(days) = reader.count(node, "`journal.retain_days`") {
                    journal.retain_days = days;
                    if days == 0 {
                        reader.complain(node.at, "`journal.retain_days` can't be 0");
                    }
                }
            }
            _ => {
                if let Some(bytes) = reader.count(node, "`journal.retain_bytes`") {
                    journal.retain_bytes = bytes;
                }
            }
        }
    }
}

fn shell(node: &Node, shell: &mut Shell, reader: &mut Reader<'_>) {
    for (_, node) in reader.fields(node, &keys::SHELL) {
        let words = [("allow", Opaque::Allow), ("ask", Opaque::Ask), ("deny", Opaque::Deny)];
        if let Some(opaque) = reader.word(node, "`shell.opaque`", &words) {
            shell.opaque = opaque;
        }
    }
}

fn protected(node: &Node, reader: &mut Reader<'_>) -> Vec<String> {
    let items = reader.list(node, "`protected`");
    items.iter().filter_map(|item| protected_path(item, reader)).collect()
}

/// A canonical path, absolute, from the home directory or in the workspace; a
/// directory keeps the slash at its end.
fn protected_path(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "a protected path")?;
    if text.contains("**") {
        let message = format!("`{text}` has a `**`, and `*` stands for anything but a slash");
        reader.complain_hint(node.at, message, "a slash at the end means everything below");
        return None;
    }
    let (prefix, rest) = match text.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None if text.starts_with('/') => ("/", text),
        None if text.starts_with('~') => {
            reader.complain_hint(node.at, format!("`{text}` is nobody's"), "write `~/` and a path");
            return None;
        }
        None => ("", text),
    };
    let slash = if text.ends_with('/') { "/" } else { "" };
    match canonical(if rest.is_empty() { "." } else { rest }, Some("/").filter(|_| prefix == "/")) {
        Ok(path) if path == "." => {
            reader.complain(node.at, format!("`{text}` would protect everything"));
            None
        }
        Ok(path) => Some(format!("{prefix}{path}{slash}")),
        Err(error) => {
            reader.complain_hint(
                node.at,
                error.to_string(),
                "outside, write it absolute or with `~/`",
            );
            None
        }
    }
}

/// A program and its subcommand words, as they are looked for in command lines.
fn command_words(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, what)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let odd = |c: char| c.is_control() || "|&;<>()$`\"'\\*?".contains(c);
    if words.is_empty() || text.contains(odd) {
        let message = format!("`{text}` is not a program with its subcommands");
        reader.complain_hint(node.at, message, "write it as words, such as `git push`");
        return None;
    }
    // Options are skipped where words are compared, so one would never match.
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        let message = format!("`{option}` is an option, and those are skipped here");
        reader.complain_hint(node.at, message, "look for options with `when`, in `argv`");
        return None;
    }
    Some(words.join(" "))
}
