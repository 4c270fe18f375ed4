//! Values that several sections read.

use jackline_engine::definition::SchemaText;
use jackline_engine::path::canonical;

use crate::diagnostic::At;
use crate::reader::Reader;
use crate::yaml::Node;

/// A JSON pointer; the slash at its beginning may be left out.
pub(crate) fn pointer(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, what)?;
    let escaped = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if !escaped {
        let message = format!("`{text}` is not a JSON pointer");
        reader.complain_hint(node.at, message, "write `~0` for `~` and `~1` for `/` in a name");
        return None;
    }
    Some(if text.starts_with('/') { text.to_owned() } else { format!("/{text}") })
}

/// A path of a file in the workspace.
pub(crate) fn path(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "a path")?;
    // An absolute path is kept. Whether it is in the workspace is known once there is one.
    let root = text.starts_with('/').then_some("/");
    match canonical(text, root) {
        Ok(path) if path == "." => {
            reader.complain(node.at, format!("`{text}` is the workspace, not a file"));
            None
        }
        Ok(path) => Some(if root.is_some() { format!("/{path}") } else { path }),
        Err(error) => {
            reader.complain(node.at, error.to_string());
            None
        }
    }
}

/// The address of a web server.
pub(crate) fn address(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<String> {
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

/// A program and its subcommands, as they are searched for in command lines.
pub(crate) fn command_words(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, what)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let odd = |c: char| c.is_control() || "|&;<>()$`\"'\\*?".contains(c);
    if words.is_empty() || text.contains(odd) {
        let message = format!("`{text}` is not a program with its subcommands");
        reader.complain_hint(node.at, message, "write it as words, such as `git push`");
        return None;
    }
    // The comparison with a command line skips options, so an option here would never match.
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        let message = format!("`{option}` is an option, and those are skipped here");
        reader.complain_hint(node.at, message, "look for options with `when`, in `argv`");
        return None;
    }
    Some(words.join(" "))
}

/// The name of a tool. An invalid name is reported, because no event could have it.
pub(crate) fn tool_name(name: &str, at: At, reader: &mut Reader<'_>) -> String {
    if let Err(error) = jackline_engine::ToolName::parse(name) {
        reader.complain(at, format!("the name of a tool {error}"));
    }
    name.to_owned()
}

/// A JSON Schema that compiles.
pub(crate) fn json_schema(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<SchemaText> {
    let schema = node.to_json();
    if let Err(error) = jackline_decode::Schema::compile(&schema) {
        let hint = "a JSON Schema, 2020-12, without references to other files";
        reader.complain_hint(node.at, format!("{what} is no schema: {error}"), hint);
        return None;
    }
    Some(SchemaText(schema.to_string()))
}

/// The first letters of a text that is quoted in a line.
pub(crate) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX - 1).chain(['…']).collect()
}

/// The items of a list that have at most `most` items; a longer list is reported.
pub(crate) fn limited_list<'n>(
    node: &'n Node,
    what: &str,
    most: usize,
    too_many: impl FnOnce(usize) -> String,
    reader: &mut Reader<'_>,
) -> &'n [Node] {
    let items = reader.list(node, what);
    if items.len() > most {
        reader.complain(node.at, too_many(items.len()));
    }
    items
}

/// The numbers of a struct of the engine, each with its key. One list serves the lowering, the
/// join and the text.
pub(crate) type Numbers<'a, const N: usize> = [(&'static str, &'a mut u32); N];

/// The number with a key.
pub(crate) fn number_of<'a, const N: usize>(
    key: &str,
    numbers: Numbers<'a, N>,
) -> Option<&'a mut u32> {
    numbers.into_iter().find(|(known, _)| *known == key).map(|(_, number)| number)
}

/// The numbers that differ from their defaults, with their keys, for a line of text.
pub(crate) fn changed_numbers<const N: usize>(
    numbers: Numbers<'_, N>,
    defaults: Numbers<'_, N>,
) -> Vec<String> {
    let changed = numbers.into_iter().zip(defaults).filter(|((_, own), (_, usual))| own != usual);
    changed.map(|((key, number), _)| format!("{key} {number}")).collect()
}
