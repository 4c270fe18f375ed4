//! The guard before the MCP servers of a client that keeps them in JSON.
//!
//! `"command": "npx", "args": ["x"]` becomes `"command": "jackline", "args": ["mcp", "wrap",
//! "--", "npx", "x"]`. The text is cut at exactly these places, and a word is moved as it is
//! written. So the way back gives the same bytes, whatever somebody has changed elsewhere in the
//! file. What is remembered tells our own work from what somebody wrote by hand; where nobody
//! remembers, the way back is open all the same. Servers elsewhere: `remote.rs`.

mod remote;

use core::ops::Range;
use std::collections::BTreeMap;

use jackline_engine::json::kind_of;
use jsonc_parser::ast::{Array, Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};

use jackline_clients::settings_text::{
    BYTE_ORDER_MARK, SettingsError, no_twins, options, value_of,
};

/// The words between our program and those of a server.
const WRAP: [&str; 3] = ["mcp", "wrap", "--"];

/// The keys of a server that we read.
const KEYS: [&str; 6] = ["command", "args", "type", "url", "headers", "env"];

/// Servers with the guard before them, or without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The whole file.
    pub text: String,
    /// The servers that are different now.
    pub changed: Vec<String>,
    /// What has to be remembered of them.
    pub memory: Memory,
    /// Those of them that are elsewhere, and are sent no header.
    pub bare: Vec<String>,
    /// The others, and why they are as they were.
    pub left: Vec<(String, Left)>,
}

/// Why a server is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// The guard stands before it, or it is our own.
    Guarded,
    /// It is elsewhere, and nobody has said that the guard goes before such servers.
    Remote,
    /// It can't have the guard before it, or the client can't start it either.
    Kept(String),
    /// The guard does not stand before it, or was put there with options.
    NotOurs,
    /// The guard stands before it, and it was not us who put it there.
    ByHand,
    /// We put the guard before it, and somebody has changed that since.
    Changed,
}

/// How the guard comes before servers.
#[derive(Clone, Copy)]
pub(crate) struct Wrapping<'w> {
    /// How this program is started.
    pub program: &'w str,
    /// The servers elsewhere that a person means.
    pub remote: &'w Remote,
    /// Whether the proxy can speak to a server: its address, if that is known, and its headers.
    pub reaches: Reaches,
    /// What is remembered of servers at the place.
    pub known: &'w Known,
}

/// Says why a server can't be spoken to. An address is not known where the client fills it in.
pub type Reaches = fn(url: Option<&str>, headers: &[(&str, &str)]) -> Result<(), String>;

/// Which servers elsewhere get the guard before them, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// None.
    None,
    /// All of them.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

impl Remote {
    fn means(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|named| named == name),
        }
    }
}

/// The servers that we have put the guard before, by name. With those elsewhere the word for
/// their kind, as it was written, where it was not the usual one.
pub(crate) type Memory = BTreeMap<String, Option<String>>;

/// What is known of who has put the guard before servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Known {
    /// We before these, and somebody else before all others.
    These(Memory),
    /// Nobody remembers. All that looks like ours is.
    Nothing,
}

impl Known {
    fn is_ours(&self, name: &str) -> bool {
        match self {
            Self::These(memory) => memory.contains_key(name),
            Self::Nothing => true,
        }
    }

    fn kind(&self, name: &str) -> Option<&str> {
        match self {
            Self::These(memory) => memory.get(name)?.as_deref(),
            Self::Nothing => None,
        }
    }
}

/// Puts the guard before the servers at a place: the keys that lead to them.
pub(crate) fn wrap(text: &str, place: &[&str], how: Wrapping<'_>) -> Result<Edited, SettingsError> {
    let edited = edit(text, place, |text, name, server| put(text, name, server, how))?;
    // The way back has to lead to the same text, or somebody could not go it.
    let mut memory = match how.known {
        Known::These(memory) => memory.clone(),
        Known::Nothing => Memory::new(),
    };
    memory.extend(edited.memory.clone());
    let known = Known::These(memory);
    let back = |text: &str| unwrap(text, place, &known).map(|edited| edited.text);
    if back(&edited.text)? == back(text)? { Ok(edited) } else { Err(SettingsError::Entangled) }
}

/// Takes the guard out again where we have put it.
pub(crate) fn unwrap(text: &str, place: &[&str], known: &Known) -> Result<Edited, SettingsError> {
    let edited = edit(text, place, |text, name, server| take(text, name, server, known))?;
    value_of(&edited.text).map_err(|_| SettingsError::Entangled)?;
    Ok(edited)
}

/// What becomes of one server.
enum Step {
    Change(Altered),
    Leave(Left),
}

/// How a server is cut, and what is to be known of it.
#[derive(Default)]
struct Altered {
    cuts: Vec<Cut>,
    /// The word for its kind, where it has to be remembered.
    kind: Option<String>,
    /// Whether it is elsewhere, and is sent no header.
    is_bare: bool,
}

/// A piece of a text, and what comes in its place.
struct Cut {
    at: Range<usize>,
    with: String,
}

/// The parts of a server that is started by words.
struct Started<'v, 'a> {
    server: &'v Object<'a>,
    command: &'v StringLit<'a>,
    args: Option<(&'v ObjectProp<'a>, &'v Array<'a>)>,
    words: Vec<&'v StringLit<'a>>,
}

fn edit(
    text: &str,
    place: &[&str],
    step: impl Fn(&str, &str, &Value<'_>) -> Result<Step, SettingsError>,
) -> Result<Edited, SettingsError> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    check(bare, place)?;
    let parsed = parse_to_ast(bare, &CollectOptions::default(), &options());
    let parsed = parsed.map_err(|_| SettingsError::Entangled)?;
    let mut found = parsed.value.as_ref().and_then(Value::as_object);
    for key in place {
        let Some(object) = found else { break };
        once(object, |name| name == *key)?;
        found = object.get_object(key);
    }
    let (mut cuts, mut edited) = (Vec::new(), Edited::default());
    if let Some(servers) = found {
        once(servers, |_| true)?;
        for property in &servers.properties {
            let name = property.name.as_str().to_owned();
            match step(bare, &name, &property.value)? {
                Step::Change(altered) => {
                    cuts.extend(altered.cuts);
                    edited.bare.extend(altered.is_bare.then(|| name.clone()));
                    edited.memory.insert(name.clone(), altered.kind);
                    edited.changed.push(name);
                }
                Step::Leave(why) => edited.left.push((name, why)),
            }
        }
    }
    let mark = if bare.len() < text.len() { BYTE_ORDER_MARK } else { "" };
    edited.text = format!("{mark}{}", carry_out(bare, cuts)?);
    Ok(edited)
}

/// Whether what is there on the way to the servers is what it has to be.
fn check(text: &str, place: &[&str]) -> Result<(), SettingsError> {
    let whole = value_of(text)?;
    let (mut value, mut path) = (&whole, String::new());
    let shape = |path: &str, got| {
        let what = if path.is_empty() { "the whole file".to_owned() } else { format!("`{path}`") };
        SettingsError::Shape { what, expected: "an object", got: kind_of(got) }
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

fn once(object: &Object<'_>, which: impl Fn(&str) -> bool) -> Result<(), SettingsError> {
    let names = object.properties.iter().map(|property| property.name.as_str());
    no_twins(names.filter(|name| which(name)).map(ToOwned::to_owned).collect())
}

/// A text with pieces of it replaced.
fn carry_out(text: &str, mut cuts: Vec<Cut>) -> Result<String, SettingsError> {
    cuts.sort_by_key(|cut| (cut.at.start, cut.at.end));
    let (mut edited, mut at) = (String::new(), 0);
    for Cut { at: piece, with } in cuts {
        edited += text.get(at..piece.start).ok_or(SettingsError::Entangled)?;
        edited += &with;
        at = piece.end;
    }
    edited += text.get(at..).ok_or(SettingsError::Entangled)?;
    Ok(edited)
}

impl<'v, 'a> Started<'v, 'a> {
    /// The server, where it is one that the client starts; else what is odd about it.
    fn of(server: &'v Object<'a>) -> Result<Self, &'static str> {
        let command = server.get_string("command").ok_or("has no `command`")?;
        let args = match server.get("args") {
            None => None,
            Some(property) => {
                let array = property.value.as_array().ok_or("has `args` that are no list")?;
                Some((property, array))
            }
        };
        let elements = args.iter().flat_map(|(_, array)| &array.elements);
        let words: Option<Vec<&StringLit<'_>>> = elements.map(Value::as_string_lit).collect();
        let words = words.ok_or("has `args` that are no texts")?;
        Ok(Self { server, command, args, words })
    }

    /// Whether it is this program that is started.
    fn is_jackline(&self) -> bool {
        let name = self.command.value.rsplit('/').next().unwrap_or_default();
        name.starts_with("jackline") && self.words.first().is_some_and(|word| word.value == "mcp")
    }

    /// Whether our words, and nothing but them, stand before a server's.
    fn is_ours(&self) -> bool {
        let words = self.words.iter().map(|word| word.value.as_ref());
        self.is_jackline() && self.words.len() > WRAP.len() && words.take(WRAP.len()).eq(WRAP)
    }
}

/// A server, once it is clear that no key that counts is there twice.
fn server_of<'v, 'a>(value: &'v Value<'a>) -> Result<Option<&'v Object<'a>>, SettingsError> {
    let Some(server) = value.as_object() else { return Ok(None) };
    once(server, |name| KEYS.contains(&name))?;
    Ok(Some(server))
}

/// Whether it is no program that the client starts.
fn is_elsewhere(server: &Object<'_>) -> bool {
    let kind = server.get("type").map(|property| &property.value);
    let is_stdio = |kind: &Value<'_>| kind.as_string_lit().is_some_and(|it| it.value == "stdio");
    server.get("url").is_some() || !kind.is_none_or(is_stdio)
}

fn put(
    text: &str,
    name: &str,
    server: &Value<'_>,
    how: Wrapping<'_>,
) -> Result<Step, SettingsError> {
    let kept = |why: &str| Ok(Step::Leave(Left::Kept(why.to_owned())));
    let Some(server) = server_of(server)? else { return kept("is no object") };
    if is_elsewhere(server) {
        return remote::put(text, name, server, how);
    }
    let started = match Started::of(server) {
        Ok(started) => started,
        Err(why) => return kept(why),
    };
    let command = span(started.command.range());
    let own = quoted(how.program);
    if started.is_jackline() {
        return Ok(match renamed(text, name, &started, how) {
            Some(altered) => Step::Change(altered),
            None => Step::Leave(Left::Guarded),
        });
    }
    let words: Vec<String> = WRAP.iter().map(|word| quoted(word)).collect();
    let words = format!("{}, {}", words.join(", "), piece(text, &command)?);
    let cuts = |cuts| Ok(Step::Change(Altered { cuts, ..Altered::default() }));
    let Some((_, array)) = started.args else {
        let gap = gap(text, server)?;
        let with = format!("{own},{gap}\"args\": [{words}]");
        return cuts(vec![Cut { at: command, with }]);
    };
    let inner = array.range.start + 1..array.range.end - 1;
    let added = match started.words.first() {
        // The spaces tell it from a list that is ours as a whole.
        None if inner.is_empty() => Cut { at: inner, with: format!(" {words} ") },
        None => Cut { at: inner.start..inner.start, with: words },
        Some(first) => {
            let first = first.range.start;
            let lead = piece(text, &(inner.start..first))?;
            let gap = if is_space(lead) && !lead.is_empty() { lead } else { " " };
            Cut { at: first..first, with: format!("{words},{gap}") }
        }
    };
    cuts(vec![Cut { at: command, with: own }, added])
}

/// Our own work under the name that this program has now, where it was done under another one.
fn renamed(
    text: &str,
    name: &str,
    started: &Started<'_, '_>,
    how: Wrapping<'_>,
) -> Option<Altered> {
    let is_ours = started.is_ours() || remote::Wrapped::of(text, started).is_some();
    // A bare name is found wherever the program is: nobody can tell that it was us who wrote it.
    let is_known = match how.known {
        Known::These(_) => how.known.is_ours(name),
        Known::Nothing => started.command.value.contains('/'),
    };
    if !is_ours || !is_known || started.command.value == how.program {
        return None;
    }
    let cuts = vec![Cut { at: span(started.command.range()), with: quoted(how.program) }];
    let kind = how.known.kind(name).map(ToOwned::to_owned);
    Some(Altered { cuts, kind, is_bare: false })
}

fn take(text: &str, name: &str, server: &Value<'_>, known: &Known) -> Result<Step, SettingsError> {
    let leave = |why| Ok(Step::Leave(why));
    let Some(server) = server_of(server)? else { return leave(Left::NotOurs) };
    let started = match Started::of(server) {
        Ok(started) if !is_elsewhere(server) && started.is_jackline() => started,
        _ => return leave(Left::NotOurs),
    };
    let cuts = if started.is_ours() {
        taken(text, &started)?
    } else {
        let wrapped = remote::Wrapped::of(text, &started);
        wrapped.map(|wrapped| wrapped.taken(text, known.kind(name))).transpose()?.flatten()
    };
    match (cuts, known) {
        (Some(_), known) if !known.is_ours(name) => leave(Left::ByHand),
        (Some(cuts), _) => Ok(Step::Change(Altered { cuts, ..Altered::default() })),
        (None, Known::These(memory)) if memory.contains_key(name) => leave(Left::Changed),
        (None, _) => leave(Left::NotOurs),
    }
}

/// The cuts that leave the server alone that our words stand before.
fn taken(text: &str, started: &Started<'_, '_>) -> Result<Option<Vec<Cut>>, SettingsError> {
    let command = span(started.command.range());
    let (Some((property, array)), [first, _, _, program, rest @ ..]) =
        (started.args, started.words.as_slice())
    else {
        return Ok(None);
    };
    let (begin, end) = (first.range.start, program.range.end);
    let inner = array.range.start + 1..array.range.end - 1;
    let follows = piece(text, &(command.end..property.range().start));
    let gone = match rest.first() {
        Some(next) => begin..past_comma(text, &(end..next.range.start))?,
        None if inner == (begin..end) && follows.is_ok_and(is_separator) => {
            command.end..property.range().end
        }
        None if piece(text, &(inner.start..begin))? == " "
            && piece(text, &(end..inner.end))? == " " =>
        {
            inner
        }
        None => begin..past_comma(text, &(end..inner.end)).unwrap_or(end),
    };
    let with = piece(text, &span(program.range()))?.to_owned();
    Ok(Some(vec![Cut { at: command, with }, Cut { at: gone, with: String::new() }]))
}

/// What stands before a new key of a server: a line of its own where the others have theirs.
fn gap<'t>(text: &'t str, server: &Object<'_>) -> Result<&'t str, SettingsError> {
    let first = server.properties.first().map(|property| property.range().start);
    let begin = server.range.start + 1;
    let lead = piece(text, &(begin..first.unwrap_or(begin)))?;
    Ok(if is_space(lead) && lead.contains('\n') { lead } else { " " })
}

fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

/// Where what a comma separates begins: behind white space, but not behind a comment.
fn past_comma(text: &str, between: &Range<usize>) -> Result<usize, SettingsError> {
    let separator = piece(text, between)?;
    if is_separator(separator) {
        return Ok(between.end);
    }
    let behind = separator.trim_start().strip_prefix(',').ok_or(SettingsError::Entangled)?;
    Ok(between.end - behind.len())
}

/// Whether it is a comma and white space.
fn is_separator(text: &str) -> bool {
    text.trim_start().strip_prefix(',').is_some_and(is_space)
}

fn is_space(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

fn span(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}

fn piece<'t>(text: &'t str, at: &Range<usize>) -> Result<&'t str, SettingsError> {
    text.get(at.clone()).ok_or(SettingsError::Entangled)
}

#[cfg(test)]
mod tests;
