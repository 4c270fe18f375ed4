//! The guard before the MCP servers that Claude Code starts.
//!
//! `"command": "npx", "args": ["x"]` becomes `"command": "jackline", "args": ["mcp", "wrap",
//! "--", "npx", "x"]`. The text is cut at exactly these places, and a word is moved as it is
//! written. So the way back needs no memory: it gives the same bytes, whatever somebody has
//! changed elsewhere in the file.

use core::ops::Range;

use jackline_engine::json::kind_of;
use jsonc_parser::ast::{Array, Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};

use super::settings::{self, BYTE_ORDER_MARK, SettingsError};

/// The words between our program and those of a server.
const WRAP: [&str; 3] = ["mcp", "wrap", "--"];

/// Servers with the guard before them, or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole file.
    pub text: String,
    /// The servers that are different now.
    pub changed: Vec<String>,
    /// The others, and why they are as they were.
    pub left: Vec<(String, Left)>,
}

/// Why a server is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The guard stands before it, or it is our own.
    Guarded,
    /// It is no program that the client starts.
    Remote,
    /// The client can't start it either.
    Odd(&'static str),
    /// The guard does not stand before it, or was put there with options.
    NotOurs,
}

/// Puts the guard before the servers at a place: the keys that lead to them.
pub fn wrap(text: &str, place: &[&str], program: &str) -> Result<Edited, SettingsError> {
    let edited = edit(text, place, |text, server| put(text, server, program))?;
    // The way back has to lead to the same text, or somebody could not go it.
    let back = |text: &str| unwrap(text, place).map(|edited| edited.text);
    if back(&edited.text)? == back(text)? { Ok(edited) } else { Err(SettingsError::Entangled) }
}

/// Takes the guard out again.
pub fn unwrap(text: &str, place: &[&str]) -> Result<Edited, SettingsError> {
    let edited = edit(text, place, take)?;
    settings::value_of(&edited.text).map_err(|_| SettingsError::Entangled)?;
    Ok(edited)
}

/// What becomes of one server.
enum Step {
    Change(Vec<Cut>),
    Leave(Left),
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
    step: impl Fn(&str, &Value<'_>) -> Result<Step, SettingsError>,
) -> Result<Edited, SettingsError> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    check(bare, place)?;
    let parsed = parse_to_ast(bare, &CollectOptions::default(), &settings::options());
    let parsed = parsed.map_err(|_| SettingsError::Entangled)?;
    let mut found = parsed.value.as_ref().and_then(Value::as_object);
    for key in place {
        let Some(object) = found else { break };
        once(object, |name| name == *key)?;
        found = object.get_object(key);
    }
    let (mut cuts, mut changed, mut left) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(servers) = found {
        once(servers, |_| true)?;
        for property in &servers.properties {
            let name = property.name.as_str().to_owned();
            match step(bare, &property.value)? {
                Step::Change(pieces) => {
                    cuts.extend(pieces);
                    changed.push(name);
                }
                Step::Leave(why) => left.push((name, why)),
            }
        }
    }
    let mark = if bare.len() < text.len() { BYTE_ORDER_MARK } else { "" };
    Ok(Edited { text: format!("{mark}{}", carry_out(bare, cuts)?), changed, left })
}

/// Whether what is there on the way to the servers is what it has to be.
fn check(text: &str, place: &[&str]) -> Result<(), SettingsError> {
    let whole = settings::value_of(text)?;
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
    settings::no_twins(names.filter(|name| which(name)).map(ToOwned::to_owned).collect())
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
    /// The server, where it is one that the client starts; else why it is not.
    fn of(value: &'v Value<'a>) -> Result<Result<Self, Left>, SettingsError> {
        let Some(server) = value.as_object() else { return Ok(Err(Left::Odd("is no object"))) };
        once(server, |name| ["command", "args", "type", "url"].contains(&name))?;
        let kind = server.get("type").map(|property| &property.value);
        let is_stdio =
            |kind: &Value<'_>| kind.as_string_lit().is_some_and(|it| it.value == "stdio");
        if server.get("url").is_some() || !kind.is_none_or(is_stdio) {
            return Ok(Err(Left::Remote));
        }
        let Some(command) = server.get_string("command") else {
            return Ok(Err(Left::Odd("has no `command`")));
        };
        let args = match server.get("args") {
            None => None,
            Some(property) => match property.value.as_array() {
                Some(array) => Some((property, array)),
                None => return Ok(Err(Left::Odd("has `args` that are no list"))),
            },
        };
        let elements = args.iter().flat_map(|(_, array)| &array.elements);
        let words: Option<Vec<&StringLit<'_>>> = elements.map(Value::as_string_lit).collect();
        let Some(words) = words else {
            return Ok(Err(Left::Odd("has `args` that are no texts")));
        };
        Ok(Ok(Self { server, command, args, words }))
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

fn put(text: &str, server: &Value<'_>, program: &str) -> Result<Step, SettingsError> {
    let started = match Started::of(server)? {
        Ok(started) => started,
        Err(why) => return Ok(Step::Leave(why)),
    };
    let command = span(started.command.range());
    let own = serde_json::Value::from(program).to_string();
    if started.is_jackline() {
        // One that an older installation of ours stands before, under another name.
        return Ok(if started.is_ours() && started.command.value != program {
            Step::Change(vec![Cut { at: command, with: own }])
        } else {
            Step::Leave(Left::Guarded)
        });
    }
    let words: Vec<String> = WRAP.iter().map(|word| format!("\"{word}\"")).collect();
    let words = format!("{}, {}", words.join(", "), piece(text, &command)?);
    let Some((_, array)) = started.args else {
        let first = started.server.properties.first().map(|property| property.range().start);
        let lead = piece(text, &(started.server.range.start + 1..first.unwrap_or(command.start)))?;
        let gap = if is_space(lead) && lead.contains('\n') { lead } else { " " };
        let with = format!("{own},{gap}\"args\": [{words}]");
        return Ok(Step::Change(vec![Cut { at: command, with }]));
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
    Ok(Step::Change(vec![Cut { at: command, with: own }, added]))
}

fn take(text: &str, server: &Value<'_>) -> Result<Step, SettingsError> {
    let started = match Started::of(server)? {
        Ok(started) if started.is_ours() => started,
        Ok(_) | Err(_) => return Ok(Step::Leave(Left::NotOurs)),
    };
    let command = span(started.command.range());
    let (Some((property, array)), [first, _, _, program, rest @ ..]) =
        (started.args, started.words.as_slice())
    else {
        return Ok(Step::Leave(Left::NotOurs));
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
    Ok(Step::Change(vec![Cut { at: command, with }, Cut { at: gone, with: String::new() }]))
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
