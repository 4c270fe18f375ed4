//! Wraps the MCP servers of a client that stores them in JSON.
//!
//! `"command": "npx", "args": ["x"]` becomes `"command": "jackline", "args": ["mcp", "wrap", "--",
//! "npx", "x"]`. We cut the text at exactly these positions and move each word exactly as it is
//! written. So unwrapping restores the same bytes, even if other parts of the file have changed.
//! The ledger records which servers we wrapped and which were wrapped by hand. Without a record,
//! all of them can be unwrapped. `remote.rs` handles remote servers.

mod remote;

use core::ops::Range;
use std::collections::BTreeMap;

use jackline_engine::json::describe_type;
use jsonc_parser::ast::{Array, Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};

use jackline_clients::settings_text::{
    BYTE_ORDER_MARK, SettingsError, check_no_duplicates, parse_options, parse_value,
};

/// The words between our program and the command of the server.
const WRAP_ARGUMENTS: [&str; 3] = ["mcp", "wrap", "--"];

/// The keys of a server that we read.
const SERVER_KEYS: [&str; 6] = ["command", "args", "type", "url", "headers", "env"];

/// A file after its servers were wrapped or unwrapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EditedServers {
    /// The text of the whole file.
    pub text: String,
    /// The servers that changed.
    pub changed: Vec<String>,
    /// The changed servers, for the ledger.
    pub wrapped: WrappedServers,
    /// The changed remote servers that get no header.
    pub without_header: Vec<String>,
    /// The unchanged servers, with the reason.
    pub unchanged: Vec<(String, UnchangedReason)>,
}

/// Why a server was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnchangedReason {
    /// It is wrapped already, or it is our own server.
    Wrapped,
    /// It is a remote server, and the person did not include those.
    Remote,
    /// It can't be wrapped, or the client can't start it either.
    Invalid(String),
    /// It is not wrapped, or it is wrapped with options that we do not write.
    NotWrapped,
    /// It is wrapped, but not by us.
    WrappedByHand,
    /// We wrapped it, and it was changed since.
    Changed,
}

/// How to wrap servers.
#[derive(Clone, Copy)]
pub(crate) struct WrapOptions<'w> {
    /// The command that starts this program.
    pub program: &'w str,
    /// The remote servers to wrap.
    pub remote: &'w RemoteSelection,
    /// Whether the proxy can connect to a remote server.
    pub can_connect: CanConnect,
    /// Which servers at this position we wrapped.
    pub history: &'w WrapHistory,
}

/// Checks whether the proxy can connect to a server. Returns the reason if it can't. The address is
/// missing if the client fills in a variable.
pub type CanConnect = fn(url: Option<&str>, headers: &[(&str, &str)]) -> Result<(), String>;

/// Which remote servers to wrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteSelection {
    /// No remote server.
    None,
    /// All remote servers.
    All,
    /// Only those with these names.
    Named(Vec<String>),
}

impl RemoteSelection {
    fn includes(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// The servers that we wrapped, by name. For remote servers also their `type`, as it was written,
/// unless it is the usual one.
pub(crate) type WrappedServers = BTreeMap<String, Option<String>>;

/// What the ledger says about wrapped servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrapHistory {
    /// We wrapped these. All others were wrapped by hand.
    Recorded(WrappedServers),
    /// There is no record. Every server that looks wrapped by us counts as ours.
    NoRecord,
}

impl WrapHistory {
    fn is_ours(&self, name: &str) -> bool {
        match self {
            Self::Recorded(memory) => memory.contains_key(name),
            Self::NoRecord => true,
        }
    }

    fn kind(&self, name: &str) -> Option<&str> {
        match self {
            Self::Recorded(memory) => memory.get(name)?.as_deref(),
            Self::NoRecord => None,
        }
    }
}

/// Wraps the servers at the position with these keys.
pub(crate) fn wrap_servers(
    text: &str,
    place: &[&str],
    how: WrapOptions<'_>,
) -> Result<EditedServers, SettingsError> {
    let edited =
        edit_servers(text, place, |text, name, server| wrap_server(text, name, server, how))?;
    // Unwrapping must lead to the same text, or a person could not undo this.
    let mut memory = match how.history {
        WrapHistory::Recorded(memory) => memory.clone(),
        WrapHistory::NoRecord => WrappedServers::new(),
    };
    memory.extend(edited.wrapped.clone());
    let history = WrapHistory::Recorded(memory);
    let back = |text: &str| unwrap_servers(text, place, &history).map(|edited| edited.text);
    if back(&edited.text)? == back(text)? {
        Ok(edited)
    } else {
        Err(SettingsError::WouldChangeOthers)
    }
}

/// Unwraps the servers that we wrapped.
pub(crate) fn unwrap_servers(
    text: &str,
    place: &[&str],
    history: &WrapHistory,
) -> Result<EditedServers, SettingsError> {
    let edited =
        edit_servers(text, place, |text, name, server| unwrap_server(text, name, server, history))?;
    parse_value(&edited.text).map_err(|_| SettingsError::WouldChangeOthers)?;
    Ok(edited)
}

/// What to do with one server.
enum ServerDecision {
    Change(ServerEdit),
    Keep(UnchangedReason),
}

/// How a server is changed, and what to remember about it.
#[derive(Default)]
struct ServerEdit {
    cuts: Vec<TextCut>,
    /// Its `type`, if it has to be remembered.
    kind: Option<String>,
    /// Whether it is a remote server that gets no header.
    has_no_header: bool,
}

/// A range of a text, and its replacement.
struct TextCut {
    range: Range<usize>,
    replacement: String,
}

/// The parts of a server that the client starts as a program.
struct ProgramServer<'v, 'a> {
    server: &'v Object<'a>,
    command: &'v StringLit<'a>,
    args: Option<(&'v ObjectProp<'a>, &'v Array<'a>)>,
    words: Vec<&'v StringLit<'a>>,
}

fn edit_servers(
    text: &str,
    place: &[&str],
    step: impl Fn(&str, &str, &Value<'_>) -> Result<ServerDecision, SettingsError>,
) -> Result<EditedServers, SettingsError> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    check_path(bare, place)?;
    let parsed = parse_to_ast(bare, &CollectOptions::default(), &parse_options());
    let parsed = parsed.map_err(|_| SettingsError::WouldChangeOthers)?;
    let mut servers = parsed.value.as_ref().and_then(Value::as_object);
    for key in place {
        let Some(object) = servers else { break };
        check_keys_once(object, |name| name == *key)?;
        servers = object.get_object(key);
    }
    let (mut cuts, mut edited) = (Vec::new(), EditedServers::default());
    if let Some(servers) = servers {
        check_keys_once(servers, |_| true)?;
        for property in &servers.properties {
            let name = property.name.as_str().to_owned();
            match step(bare, &name, &property.value)? {
                ServerDecision::Change(altered) => {
                    cuts.extend(altered.cuts);
                    edited.without_header.extend(altered.has_no_header.then(|| name.clone()));
                    edited.wrapped.insert(name.clone(), altered.kind);
                    edited.changed.push(name);
                }
                ServerDecision::Keep(why) => edited.unchanged.push((name, why)),
            }
        }
    }
    let mark = if bare.len() < text.len() { BYTE_ORDER_MARK } else { "" };
    edited.text = format!("{mark}{}", apply_cuts(bare, cuts)?);
    Ok(edited)
}

/// Checks that every value on the way to the servers is an object.
fn check_path(text: &str, place: &[&str]) -> Result<(), SettingsError> {
    let whole = parse_value(text)?;
    let (mut value, mut path) = (&whole, String::new());
    let shape = |path: &str, got| {
        let what = if path.is_empty() { "the whole file".to_owned() } else { format!("`{path}`") };
        SettingsError::WrongType { what, expected: "an object", got: describe_type(got) }
    };
    let is_empty = text.trim().is_empty();
    for key in place {
        let object = value.as_object();
        let Some(object) = object else {
            return if is_empty { Ok(()) } else { Err(shape(&path, value)) };
        };
        let Some(next) = object.get(*key) else { return Ok(()) };
        path = if path.is_empty() { (*key).to_owned() } else { format!("{path}.{key}") };
        value = next;
    }
    if value.is_object() { Ok(()) } else { Err(shape(&path, value)) }
}

fn check_keys_once(object: &Object<'_>, which: impl Fn(&str) -> bool) -> Result<(), SettingsError> {
    let names = object.properties.iter().map(|property| property.name.as_str());
    check_no_duplicates(names.filter(|name| which(name)).map(ToOwned::to_owned).collect())
}

/// A text with these ranges replaced.
fn apply_cuts(text: &str, mut cuts: Vec<TextCut>) -> Result<String, SettingsError> {
    cuts.sort_by_key(|cut| (cut.range.start, cut.range.end));
    let (mut edited, mut at) = (String::new(), 0);
    for TextCut { range: piece, replacement: with } in cuts {
        edited += text.get(at..piece.start).ok_or(SettingsError::WouldChangeOthers)?;
        edited += &with;
        at = piece.end;
    }
    edited += text.get(at..).ok_or(SettingsError::WouldChangeOthers)?;
    Ok(edited)
}

impl<'v, 'a> ProgramServer<'v, 'a> {
    /// Parses a server that the client starts as a program, or explains what is wrong with it.
    fn of(server: &'v Object<'a>) -> Result<Self, &'static str> {
        let command = server.get_string("command").ok_or("has no `command`")?;
        let args = match server.get("args") {
            None => None,
            Some(property) => {
                let array = property.value.as_array().ok_or("has `args` that are not a list")?;
                Some((property, array))
            }
        };
        let elements = args.iter().flat_map(|(_, array)| &array.elements);
        let words: Option<Vec<&StringLit<'_>>> = elements.map(Value::as_string_lit).collect();
        let words = words.ok_or("has `args` that are not all texts")?;
        Ok(Self { server, command, args, words })
    }

    /// Whether the server starts this program.
    fn is_jackline(&self) -> bool {
        let name = self.command.value.rsplit('/').next().unwrap_or_default();
        name.starts_with("jackline") && self.words.first().is_some_and(|word| word.value == "mcp")
    }

    /// Whether the command of the server begins with exactly our words.
    fn is_ours(&self) -> bool {
        let words = self.words.iter().map(|word| word.value.as_ref());
        self.is_jackline()
            && self.words.len() > WRAP_ARGUMENTS.len()
            && words.take(WRAP_ARGUMENTS.len()).eq(WRAP_ARGUMENTS)
    }
}

/// A server as an object, after a check that none of its relevant keys occurs twice.
fn parse_server<'v, 'a>(value: &'v Value<'a>) -> Result<Option<&'v Object<'a>>, SettingsError> {
    let Some(server) = value.as_object() else { return Ok(None) };
    check_keys_once(server, |name| SERVER_KEYS.contains(&name))?;
    Ok(Some(server))
}

/// Whether it is a remote server, which the client does not start as a program.
fn is_remote(server: &Object<'_>) -> bool {
    let kind = server.get("type").map(|property| &property.value);
    let is_stdio = |kind: &Value<'_>| kind.as_string_lit().is_some_and(|it| it.value == "stdio");
    server.get("url").is_some() || !kind.is_none_or(is_stdio)
}

fn wrap_server(
    text: &str,
    name: &str,
    server: &Value<'_>,
    how: WrapOptions<'_>,
) -> Result<ServerDecision, SettingsError> {
    let unchanged = |why: &str| Ok(ServerDecision::Keep(UnchangedReason::Invalid(why.to_owned())));
    let Some(server) = parse_server(server)? else { return unchanged("is not an object") };
    if is_remote(server) {
        return remote::wrap_remote_server(text, name, server, how);
    }
    let started = match ProgramServer::of(server) {
        Ok(started) => started,
        Err(why) => return unchanged(why),
    };
    let command = byte_range(started.command.range());
    let own = quoted(how.program);
    if started.is_jackline() {
        return Ok(match update_program(text, name, &started, how) {
            Some(altered) => ServerDecision::Change(altered),
            None => ServerDecision::Keep(UnchangedReason::Wrapped),
        });
    }
    let words: Vec<String> = WRAP_ARGUMENTS.iter().map(|word| quoted(word)).collect();
    let words = format!("{}, {}", words.join(", "), text_part(text, &command)?);
    let cuts = |cuts| Ok(ServerDecision::Change(ServerEdit { cuts, ..ServerEdit::default() }));
    let Some((_, array)) = started.args else {
        let gap = key_separator(text, server)?;
        let with = format!("{own},{gap}\"args\": [{words}]");
        return cuts(vec![TextCut { range: command, replacement: with }]);
    };
    let inner = array.range.start + 1..array.range.end - 1;
    let added = match started.words.first() {
        // The spaces distinguish it from an `args` list that we wrote as a whole.
        None if inner.is_empty() => TextCut { range: inner, replacement: format!(" {words} ") },
        None => TextCut { range: inner.start..inner.start, replacement: words },
        Some(first) => {
            let first = first.range.start;
            let lead = text_part(text, &(inner.start..first))?;
            let gap = if is_space(lead) && !lead.is_empty() { lead } else { " " };
            TextCut { range: first..first, replacement: format!("{words},{gap}") }
        }
    };
    cuts(vec![TextCut { range: command, replacement: own }, added])
}

/// Updates the path of this program in a server that we wrapped under another path.
fn update_program(
    text: &str,
    name: &str,
    started: &ProgramServer<'_, '_>,
    how: WrapOptions<'_>,
) -> Option<ServerEdit> {
    let is_ours = started.is_ours() || remote::WrappedRemoteServer::of(text, started).is_some();
    // A bare name works wherever the program is. Without a record we can't tell whether we wrote
    // it.
    let is_recorded = match how.history {
        WrapHistory::Recorded(_) => how.history.is_ours(name),
        WrapHistory::NoRecord => started.command.value.contains('/'),
    };
    if !is_ours || !is_recorded || started.command.value == how.program {
        return None;
    }
    let cuts = vec![TextCut {
        range: byte_range(started.command.range()),
        replacement: quoted(how.program),
    }];
    let kind = how.history.kind(name).map(ToOwned::to_owned);
    Some(ServerEdit { cuts, kind, has_no_header: false })
}

fn unwrap_server(
    text: &str,
    name: &str,
    server: &Value<'_>,
    known: &WrapHistory,
) -> Result<ServerDecision, SettingsError> {
    let leave = |why| Ok(ServerDecision::Keep(why));
    let Some(server) = parse_server(server)? else { return leave(UnchangedReason::NotWrapped) };
    let started = match ProgramServer::of(server) {
        Ok(started) if !is_remote(server) && started.is_jackline() => started,
        _ => return leave(UnchangedReason::NotWrapped),
    };
    let cuts = if started.is_ours() {
        unwrap_cuts(text, &started)?
    } else {
        let wrapped = remote::WrappedRemoteServer::of(text, &started);
        wrapped.map(|wrapped| wrapped.unwrap_cuts(text, known.kind(name))).transpose()?.flatten()
    };
    match (cuts, known) {
        (Some(_), known) if !known.is_ours(name) => leave(UnchangedReason::WrappedByHand),
        (Some(cuts), _) => Ok(ServerDecision::Change(ServerEdit { cuts, ..ServerEdit::default() })),
        (None, WrapHistory::Recorded(memory)) if memory.contains_key(name) => {
            leave(UnchangedReason::Changed)
        }
        (None, _) => leave(UnchangedReason::NotWrapped),
    }
}

/// The cuts that remove our words and leave the server.
fn unwrap_cuts(
    text: &str,
    started: &ProgramServer<'_, '_>,
) -> Result<Option<Vec<TextCut>>, SettingsError> {
    let command = byte_range(started.command.range());
    let (Some((property, array)), [first, _, _, program, rest @ ..]) =
        (started.args, started.words.as_slice())
    else {
        return Ok(None);
    };
    let (begin, end) = (first.range.start, program.range.end);
    let inner = array.range.start + 1..array.range.end - 1;
    let follows = text_part(text, &(command.end..property.range().start));
    let removed = match rest.first() {
        Some(next) => begin..after_comma(text, &(end..next.range.start))?,
        None if inner == (begin..end) && follows.is_ok_and(is_separator) => {
            command.end..property.range().end
        }
        None if text_part(text, &(inner.start..begin))? == " "
            && text_part(text, &(end..inner.end))? == " " =>
        {
            inner
        }
        None => begin..after_comma(text, &(end..inner.end)).unwrap_or(end),
    };
    let with = text_part(text, &byte_range(program.range()))?.to_owned();
    Ok(Some(vec![
        TextCut { range: command, replacement: with },
        TextCut { range: removed, replacement: String::new() },
    ]))
}

/// The white space before a new key of a server: a new line if the other keys are on their own
/// lines.
fn key_separator<'t>(text: &'t str, server: &Object<'_>) -> Result<&'t str, SettingsError> {
    let first = server.properties.first().map(|property| property.range().start);
    let begin = server.range.start + 1;
    let lead = text_part(text, &(begin..first.unwrap_or(begin)))?;
    Ok(if is_space(lead) && lead.contains('\n') { lead } else { " " })
}

fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

/// The position after a comma and white space. It stops before a comment.
fn after_comma(text: &str, between: &Range<usize>) -> Result<usize, SettingsError> {
    let separator = text_part(text, between)?;
    if is_separator(separator) {
        return Ok(between.end);
    }
    let behind =
        separator.trim_start().strip_prefix(',').ok_or(SettingsError::WouldChangeOthers)?;
    Ok(between.end - behind.len())
}

/// Whether a text is only a comma and white space.
fn is_separator(text: &str) -> bool {
    text.trim_start().strip_prefix(',').is_some_and(is_space)
}

fn is_space(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

fn byte_range(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}

fn text_part<'t>(text: &'t str, at: &Range<usize>) -> Result<&'t str, SettingsError> {
    text.get(at.clone()).ok_or(SettingsError::WouldChangeOthers)
}

#[cfg(test)]
mod tests;
