//! `sed`: a small language that can read, edit and write files, and run commands.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::command_context::{CommandArg, CommandContext};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord};

pub(super) fn sed(context: &mut CommandContext<'_, '_>) {
    context.report_unknown_options();
    let mut scripts: Vec<ShellWord<'_>> = Vec::new();
    let mut quiet = false;
    let mut in_place = None;
    let mut given = false;
    for arg in context.args() {
        match arg {
            CommandArg::Option("e" | "expression", Some(script)) => {
                given = true;
                scripts.push(script);
            }
            CommandArg::Option("f" | "file", Some(file)) => {
                given = true;
                context.add_opaque(OpaqueReason::ScriptFile, file.text.clone());
                context.add_read(file, ReadExtent::Partial);
            }
            CommandArg::Option("n" | "quiet" | "silent", _) => quiet = true,
            // The rest of the word behind `-i` is the suffix of a backup file.
            CommandArg::Option("i" | "in-place", suffix) => in_place = Some(suffix),
            _ => {}
        }
    }
    let suffix = in_place_suffix(context).or(in_place.flatten().map(|word| word.text));
    let edits = suffix.is_some() || context.has_option(&["i", "in-place"]);
    let mut operands = operands(context);
    if edits && !given && operands.len() > 1 && operands.first().is_some_and(|w| w.text.is_empty())
    {
        // `sed -i '' …` is the form on macOS.
        operands.remove(0);
    }
    if !given && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    let lines = match scripts.as_slice() {
        [only] if quiet && !edits => only.exact_text().map_or(ReadExtent::Partial, shown_extent),
        [only] if !edits && is_unchanging(only) => ReadExtent::All,
        _ => ReadExtent::Partial,
    };
    if operands.is_empty() {
        context.set_piped_extent(lines);
    }
    for path in operands {
        if let Some(suffix) = suffix.as_deref().filter(|suffix| !suffix.is_empty() && edits) {
            let backup = if suffix.contains('*') {
                ShellWord::glob(alloc::string::String::from(suffix))
            } else {
                ShellWord { text: Cow::Owned([&path.text, suffix].concat()), kind: path.kind }
            };
            context.add_write(backup);
        }
        let access = if edits { Access::Edit } else { Access::Read(ReadExtent::Partial) };
        if edits {
            context.add_effect(access, path, false);
        } else {
            context.add_read(path, lines);
        }
    }
    for script in scripts {
        report_script(context, &script);
    }
}

/// The suffix in `-i.bak`, `-ni.bak`.
fn in_place_suffix<'a>(context: &CommandContext<'_, 'a>) -> Option<Cow<'a, str>> {
    context.words.iter().skip(1).find_map(|word| {
        let text = &*word.text;
        let rest = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        let at = rest.find('i')?;
        let flags = rest.get(..at)?;
        let before = flags.bytes().all(|byte| b"nrsuzE".contains(&byte));
        (before && at + 1 < rest.len())
            .then(|| crate::command_context::word_tail(word, at + 2).text)
    })
}

/// The operands. `-i.bak` is one word, and `-E` has no value.
fn operands<'a>(context: &CommandContext<'_, 'a>) -> Vec<ShellWord<'a>> {
    let mut out = Vec::new();
    let mut skip = false;
    let mut only = false;
    for word in context.words.iter().skip(1) {
        let text = &*word.text;
        if skip {
            skip = false;
        } else if only || !text.starts_with('-') || text == "-" {
            out.push(word.clone());
        } else if text == "--" {
            only = true;
        } else {
            let cluster = !text.starts_with("--")
                && text.ends_with(['e', 'f', 'l'])
                && text.bytes().skip(1).all(|byte| b"nrsuzEefl".contains(&byte));
            skip = cluster || matches!(text, "--expression" | "--file" | "--line-length");
        }
    }
    out
}

/// The lines that `sed -n script` shows.
fn shown_extent(script: &str) -> ReadExtent {
    let Some(range) = script.trim().strip_suffix('p') else { return ReadExtent::Partial };
    if range.is_empty() {
        return ReadExtent::All;
    }
    let (from, to) = range.split_once(',').unwrap_or((range, range));
    let Ok(from @ 1..) = from.trim().parse::<u32>() else { return ReadExtent::Partial };
    match to.trim() {
        "$" => ReadExtent::From(from),
        to => match to.strip_prefix('+') {
            Some(more) => more.parse::<u32>().map_or(ReadExtent::Partial, |more| {
                ReadExtent::Range(from, from.saturating_add(more))
            }),
            // If the end is before the start, `sed` shows one line.
            None => {
                to.parse().map_or(ReadExtent::Partial, |to| ReadExtent::Range(from, from.max(to)))
            }
        },
    }
}

/// Whether a script changes no line, so that `sed` shows the whole file.
fn is_unchanging(script: &ShellWord<'_>) -> bool {
    script.exact_text().is_some_and(|text| matches!(text, "" | "="))
}

/// Reports what the commands of a script write and run.
fn report_script<'a>(context: &mut CommandContext<'_, 'a>, script: &ShellWord<'a>) {
    if script.exact_text().is_none() {
        context.add_opaque(OpaqueReason::InlineScript, script.text.clone());
        return;
    }
    let text = &*script.text;
    let mut acts = has_suspicious_letter(text);
    let mut delimiters: Vec<u8> = Vec::new();
    for part in text.split(['\n', ';', '}', '{']) {
        let part = part.trim();
        // An address, then a command letter.
        let command = skip_address(part).trim_start_matches(['!', ' ', '\t']);
        match command.as_bytes() {
            [b'w' | b'W', b' ' | b'\t', ..] => {
                acts = true;
                let path = command.get(1..).unwrap_or_default().trim();
                context.add_write(ShellWord::literal(alloc::string::String::from(path)));
            }
            [b'r' | b'R', b' ' | b'\t', ..] => {
                let path = command.get(1..).unwrap_or_default().trim();
                context.add_read(
                    ShellWord::literal(alloc::string::String::from(path)),
                    ReadExtent::Partial,
                );
            }
            [b'e', b' ' | b'\t', ..] => {
                acts = true;
                let text = command.get(1..).unwrap_or_default().trim();
                context
                    .run_child_text(&ShellWord::literal(alloc::string::String::from(text)), None);
            }
            [b'w' | b'W' | b'e', ..] => acts = true,
            [b's', delimiter, ..]
                if !delimiter.is_ascii_alphanumeric() && !delimiters.contains(delimiter) =>
            {
                delimiters.push(*delimiter);
                acts |= has_harmful_substitution(context, text, *delimiter);
            }
            _ => {}
        }
    }
    if acts {
        context.add_opaque(OpaqueReason::InlineScript, script.text.clone());
    }
}

/// Whether a script contains a single `e` or `w` where a command could be. An address
/// may contain any character, so this checks only the characters around the letter. When
/// in doubt, it returns true.
fn has_suspicious_letter(script: &str) -> bool {
    let bytes = script.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80;
        matches!(byte, b'e' | b'w' | b'W')
            && !before.is_some_and(letter)
            && matches!(bytes.get(at + 1), None | Some(b' ' | b'\t' | b'\n' | b';' | b'}'))
    })
}

fn skip_address(part: &str) -> &str {
    let mut rest = part;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',', '$', '~', '+']);
        rest = rest.trim_start_matches(|char: char| char.is_ascii_digit());
        let Some(inside) = rest.strip_prefix('/') else {
            if rest.starts_with([',', '$', '+', '~']) {
                continue;
            }
            return rest;
        };
        let mut escaped = false;
        let end = inside.bytes().position(|byte| {
            let ends = byte == b'/' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else { return "" };
        rest = inside.get(end + 1..).unwrap_or_default().trim_start_matches(['I', 'M']);
    }
}

/// Whether the flags of an `s` command write a file or run the result.
fn has_harmful_substitution(
    context: &mut CommandContext<'_, '_>,
    script: &str,
    delimiter: u8,
) -> bool {
    let mut acts = false;
    // The flags are behind a delimiter. Check every part that could be flags.
    for (at, _) in script.bytes().enumerate().filter(|(_, byte)| *byte == delimiter) {
        let flags = script.get(at + 1..).unwrap_or_default();
        let flags = flags.split(['\n', ';', '}']).next().unwrap_or_default();
        let letters = flags.len()
            - flags.trim_start_matches(|char: char| "gpiImM0123456789".contains(char)).len();
        match flags.get(letters..).unwrap_or_default().as_bytes() {
            [b'e', rest @ ..] if rest.iter().all(|byte| b"gpiIeM ".contains(byte)) => acts = true,
            [b'w', b' ' | b'\t', ..] => {
                acts = true;
                let path = flags.get(letters + 1..).unwrap_or_default().trim();
                if !path.is_empty() {
                    context.add_write(ShellWord::literal(alloc::string::String::from(path)));
                }
            }
            _ => {}
        }
    }
    acts
}
