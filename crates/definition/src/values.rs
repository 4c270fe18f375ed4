//! Readers for values that several sections use.

use jackline_engine::definition::SchemaText;
use jackline_engine::path::canonical_path;

use crate::diagnostic::SourcePosition;
use crate::reader::NodeReader;
use crate::yaml::YamlNode;

/// Reads a JSON pointer; the leading slash may be left out.
pub(crate) fn read_pointer(
    node: &YamlNode,
    what: &str,
    reader: &mut NodeReader<'_>,
) -> Option<String> {
    let text = reader.text(node, what)?;
    let escaped = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if !escaped {
        let message = format!("`{text}` is not a JSON pointer");
        reader.report_with_hint(
            node.position,
            message,
            "write `~0` for `~` and `~1` for `/` in a name",
        );
        return None;
    }
    Some(if text.starts_with('/') { text.to_owned() } else { format!("/{text}") })
}

/// Reads the path of a file in the workspace.
pub(crate) fn read_path(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<String> {
    let text = reader.text(node, "a path")?;
    // An absolute path is kept: the loader does not know the workspace, so it cannot check
    // whether the path is inside it.
    let root = text.starts_with('/').then_some("/");
    match canonical_path(text, root) {
        Ok(path) if path == "." => {
            reader.report(node.position, format!("`{text}` is the workspace, not a file"));
            None
        }
        Ok(path) => Some(if root.is_some() { format!("/{path}") } else { path }),
        Err(error) => {
            reader.report(node.position, error.to_string());
            None
        }
    }
}

/// Reads the address of a web server.
pub(crate) fn read_address(
    node: &YamlNode,
    what: &str,
    reader: &mut NodeReader<'_>,
) -> Option<String> {
    let text = reader.text(node, what)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let odd = |c: char| c.is_whitespace() || c.is_control() || "\"'\\".contains(c);
    let fits = rest.is_some_and(|rest| !rest.starts_with(['/', '?', '#', ':']) && !rest.is_empty());
    if !fits || text.contains(odd) {
        let hint = "write it as `https://host/path`";
        reader.report_with_hint(node.position, format!("{what} is not a web address"), hint);
        return None;
    }
    Some(text.to_owned())
}

/// Reads a program with its subcommands, as it is matched against command lines.
pub(crate) fn read_command_words(
    node: &YamlNode,
    what: &str,
    reader: &mut NodeReader<'_>,
) -> Option<String> {
    let text = reader.text(node, what)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let odd = |c: char| c.is_control() || "|&;<>()$`\"'\\*?".contains(c);
    if words.is_empty() || text.contains(odd) {
        let message = format!("`{text}` is not a program with its subcommands");
        reader.report_with_hint(node.position, message, "write it as words, such as `git push`");
        return None;
    }
    // The comparison with a command line skips options, so an option here would never match.
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        let message = format!("`{option}` is an option; options are not matched here");
        reader.report_with_hint(
            node.position,
            message,
            "to match options, write a condition on `argv` in `when`",
        );
        return None;
    }
    Some(words.join(" "))
}

/// Reads the name of a tool. An invalid name is reported, because no event can contain it.
pub(crate) fn read_tool_name(
    name: &str,
    at: SourcePosition,
    reader: &mut NodeReader<'_>,
) -> String {
    if let Err(error) = jackline_engine::ToolName::parse(name) {
        reader.report(at, format!("the name of a tool {error}"));
    }
    name.to_owned()
}

/// Reads a JSON Schema and reports one that does not compile.
pub(crate) fn read_json_schema(
    node: &YamlNode,
    what: &str,
    reader: &mut NodeReader<'_>,
) -> Option<SchemaText> {
    let schema = node.to_json();
    if let Err(error) = jackline_decode::Schema::compile(&schema) {
        let hint = "write a JSON Schema (2020-12) without references to other files";
        reader.report_with_hint(
            node.position,
            format!("{what} is not a valid JSON Schema: {error}"),
            hint,
        );
        return None;
    }
    Some(SchemaText(schema.to_string()))
}

/// Shortens a text that is quoted in a line.
pub(crate) fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX - 1).chain(['…']).collect()
}

/// Returns the items of a list. A list with more than `most` items is reported.
pub(crate) fn read_limited_list<'n>(
    node: &'n YamlNode,
    what: &str,
    most: usize,
    too_many: impl FnOnce(usize) -> String,
    reader: &mut NodeReader<'_>,
) -> &'n [YamlNode] {
    let items = reader.list(node, what);
    if items.len() > most {
        reader.report(node.position, too_many(items.len()));
    }
    items
}

/// The number fields of an engine struct, each with its key. Lowering, joining and the text for
/// people all use this one list.
pub(crate) type NumberFields<'a, const N: usize> = [(&'static str, &'a mut u32); N];

/// Finds the number with the given key.
pub(crate) fn find_number<'a, const N: usize>(
    key: &str,
    numbers: NumberFields<'a, N>,
) -> Option<&'a mut u32> {
    numbers.into_iter().find(|(known, _)| *known == key).map(|(_, number)| number)
}

/// Lists the numbers that differ from their defaults, with their keys, for a line of text.
pub(crate) fn changed_numbers<const N: usize>(
    numbers: NumberFields<'_, N>,
    defaults: NumberFields<'_, N>,
) -> Vec<String> {
    let changed =
        numbers.into_iter().zip(defaults).filter(|((_, own), (_, default))| own != default);
    changed.map(|((key, number), _)| format!("{key} {number}")).collect()
}
