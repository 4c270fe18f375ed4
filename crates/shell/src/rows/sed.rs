//! `sed`: a small language that can read, edit and write files, and run them.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::line::{Access, Lines, Reason, Word};
use crate::scene::{Arg, Scene};

pub(super) fn sed(scene: &mut Scene<'_, '_>) {
    scene.unknown_options();
    let mut scripts: Vec<Word<'_>> = Vec::new();
    let mut quiet = false;
    let mut in_place = None;
    let mut given = false;
    for arg in scene.args() {
        match arg {
            Arg::Option("e" | "expression", Some(script)) => {
                given = true;
                scripts.push(script);
            }
            Arg::Option("f" | "file", Some(file)) => {
                given = true;
                scene.opaque(Reason::ScriptFile, file.text.clone());
                scene.read(file, Lines::Some);
            }
            Arg::Option("n" | "quiet" | "silent", _) => quiet = true,
            // Everything behind `-i` in its word is a suffix.
            Arg::Option("i" | "in-place", suffix) => in_place = Some(suffix),
            _ => {}
        }
    }
    let suffix = in_place_suffix(scene).or(in_place.flatten().map(|word| word.text));
    let edits = suffix.is_some() || scene.has(&["i", "in-place"]);
    let mut operands = operands(scene);
    if edits && !given && operands.len() > 1 && operands.first().is_some_and(|w| w.text.is_empty())
    {
        // `sed -i '' …` as on a Mac.
        operands.remove(0);
    }
    if !given && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    let lines = match scripts.as_slice() {
        [only] if quiet && !edits => only.exact().map_or(Lines::Some, printed),
        [only] if !edits && harmless_whole(only) => Lines::All,
        _ => Lines::Some,
    };
    if operands.is_empty() {
        scene.shows_fed(lines);
    }
    for path in operands {
        if let Some(suffix) = suffix.as_deref().filter(|suffix| !suffix.is_empty() && edits) {
            let backup = if suffix.contains('*') {
                Word::glob(alloc::string::String::from(suffix))
            } else {
                Word { text: Cow::Owned([&path.text, suffix].concat()), known: path.known }
            };
            scene.write(backup);
        }
        let access = if edits { Access::Edit } else { Access::Read(Lines::Some) };
        if edits {
            scene.effect(access, path, false);
        } else {
            scene.read(path, lines);
        }
    }
    for script in scripts {
        commands(scene, &script);
    }
}

/// The suffix in `-i.bak`, `-ni.bak`.
fn in_place_suffix<'a>(scene: &Scene<'_, 'a>) -> Option<Cow<'a, str>> {
    scene.words.iter().skip(1).find_map(|word| {
        let text = &*word.text;
        let rest = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        let at = rest.find('i')?;
        let flags = rest.get(..at)?;
        let before = flags.bytes().all(|byte| b"nrsuzE".contains(&byte));
        (before && at + 1 < rest.len()).then(|| crate::scene::tail(word, at + 2).text)
    })
}

/// Operands, with `-i.bak` taken as one word and `-E` without a value.
fn operands<'a>(scene: &Scene<'_, 'a>) -> Vec<Word<'a>> {
    let mut out = Vec::new();
    let mut skip = false;
    let mut only = false;
    for word in scene.words.iter().skip(1) {
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

/// Which lines `sed -n script` shows.
fn printed(script: &str) -> Lines {
    let Some(range) = script.trim().strip_suffix('p') else { return Lines::Some };
    if range.is_empty() {
        return Lines::All;
    }
    let (from, to) = range.split_once(',').unwrap_or((range, range));
    let Ok(from @ 1..) = from.trim().parse::<u32>() else { return Lines::Some };
    match to.trim() {
        "$" => Lines::From(from),
        to => match to.strip_prefix('+') {
            Some(more) => more
                .parse::<u32>()
                .map_or(Lines::Some, |more| Lines::Range(from, from.saturating_add(more))),
            // Where the end comes first, `sed` shows the one line.
            None => to.parse().map_or(Lines::Some, |to| Lines::Range(from, from.max(to))),
        },
    }
}

/// A script that leaves every line as it is, so that all of it is shown.
fn harmless_whole(script: &Word<'_>) -> bool {
    script.exact().is_some_and(|text| matches!(text, "" | "="))
}

/// What the commands of a script write and run.
fn commands<'a>(scene: &mut Scene<'_, 'a>, script: &Word<'a>) {
    if script.exact().is_none() {
        scene.opaque(Reason::InlineScript, script.text.clone());
        return;
    }
    let text = &*script.text;
    let mut acts = suspicious(text);
    let mut delimiters: Vec<u8> = Vec::new();
    for part in text.split(['\n', ';', '}', '{']) {
        let part = part.trim();
        // An address, then a command letter.
        let command = skip_address(part).trim_start_matches(['!', ' ', '\t']);
        match command.as_bytes() {
            [b'w' | b'W', b' ' | b'\t', ..] => {
                acts = true;
                let path = command.get(1..).unwrap_or_default().trim();
                scene.write(Word::literal(alloc::string::String::from(path)));
            }
            [b'r' | b'R', b' ' | b'\t', ..] => {
                let path = command.get(1..).unwrap_or_default().trim();
                scene.read(Word::literal(alloc::string::String::from(path)), Lines::Some);
            }
            [b'e', b' ' | b'\t', ..] => {
                acts = true;
                let text = command.get(1..).unwrap_or_default().trim();
                scene.child_text(&Word::literal(alloc::string::String::from(text)), None);
            }
            [b'w' | b'W' | b'e', ..] => acts = true,
            [b's', delimiter, ..]
                if !delimiter.is_ascii_alphanumeric() && !delimiters.contains(delimiter) =>
            {
                delimiters.push(*delimiter);
                acts |= substitution_acts(scene, text, *delimiter);
            }
            _ => {}
        }
    }
    if acts {
        scene.opaque(Reason::InlineScript, script.text.clone());
    }
}

/// Whether a lone `e` or `w` stands where a command could. An address may hold
/// any sign, so this looks at the letters around and would rather be wrong.
fn suspicious(script: &str) -> bool {
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
fn substitution_acts(scene: &mut Scene<'_, '_>, script: &str, delimiter: u8) -> bool {
    let mut acts = false;
    // The flags stand after a delimiter; look at each tail that could be flags.
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
                    scene.write(Word::literal(alloc::string::String::from(path)));
                }
            }
            _ => {}
        }
    }
    acts
}
