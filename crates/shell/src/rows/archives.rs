//! Archives and patches: programs that write files whose names are in other files.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::command_context::{CommandContext, word_tail};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord};
use crate::shell_state::dir_after_cd;
use crate::shell_walk::StreamContent;

/// The long options of `tar` that matter here. `checkpoint` is listed because it is
/// a prefix of `checkpoint-action`.
const TAR_LONG_OPTIONS: &str = "extract get create append update concatenate delete list file directory \
    index-file to-command checkpoint checkpoint-action use-compress-program rsh-command \
    new-volume-script info-script remove-files";

/// The full name of a long option, and where its value starts if it has one.
fn expand_long_option(text: &str) -> (&str, Option<usize>) {
    let (name, value) = match text.split_once('=') {
        Some((name, _)) => (name, Some(name.len() + 1)),
        None => (text, None),
    };
    let full =
        TAR_LONG_OPTIONS.split(' ').find(|option| name.len() > 2 && option.starts_with(name));
    (full.unwrap_or(name), value)
}

/// `tar xf a.tgz -C dir`, `tar -czf a.tgz src`.
pub(super) fn tar(context: &mut CommandContext<'_, '_>) {
    let mut mode = ' ';
    let mut file = None;
    let mut dir = None;
    let mut operands: Vec<ShellWord<'_>> = Vec::new();
    let mut runs = false;
    let mut index = None;
    let mut at = 1;
    while let Some(word) = context.word(at) {
        let text = &*word.text;
        at += 1;
        match text.strip_prefix("--").map(expand_long_option) {
            Some(("extract" | "get", _)) => mode = 'x',
            Some(("create", _)) => mode = 'c',
            Some(("append" | "update" | "concatenate" | "delete", _)) => mode = 'r',
            Some(("list", _)) => mode = 't',
            Some((name @ ("file" | "directory" | "index-file"), attached)) => {
                let value = match attached {
                    Some(from) => Some(word_tail(word, from + 2)),
                    None => {
                        at += 1;
                        context.word(at - 1).cloned()
                    }
                };
                match name {
                    "file" => file = value,
                    "directory" => dir = value,
                    _ => index = value,
                }
            }
            Some((
                "to-command"
                | "checkpoint-action"
                | "use-compress-program"
                | "rsh-command"
                | "new-volume-script"
                | "info-script",
                _,
            )) => runs = true,
            Some(_) => {}
            None if text.starts_with('-') || at == 2 => {
                let letters = text.strip_prefix('-').unwrap_or(text);
                for (position, letter) in letters.char_indices() {
                    let attached = position + 1 < letters.len() && text.starts_with('-');
                    match letter {
                        'x' | 'c' | 't' | 'r' | 'u' | 'A' => mode = letter,
                        'I' | 'F' => {
                            runs = true;
                            at += usize::from(!attached);
                            break;
                        }
                        'f' | 'C' => {
                            let value = if attached {
                                Some(word_tail(word, text.len() - letters.len() + position + 1))
                            } else {
                                at += 1;
                                context.word(at - 1).cloned()
                            };
                            *(if letter == 'f' { &mut file } else { &mut dir }) = value;
                            if attached {
                                break;
                            }
                        }
                        'T' | 'X' => {
                            at += usize::from(!attached);
                            break;
                        }
                        _ => {}
                    }
                }
            }
            None => operands.push(word.clone()),
        }
    }
    if runs {
        context.add_opaque(OpaqueReason::Runner, super::wrappers::join_words(context.words));
        for word in context.words {
            let text = word.exact_text().and_then(|text| text.split_once("exec="));
            if let Some((_, text)) = text {
                context.run_child_text(&ShellWord::literal(String::from(text)), None);
            }
        }
    }
    if let Some(path) = index {
        context.add_write(path);
    }
    report_tar_effects(context, mode, file, dir, operands);
}

/// Reports what `tar` does to its archive and to the files of its operands.
fn report_tar_effects<'a>(
    context: &mut CommandContext<'_, 'a>,
    mode: char,
    file: Option<ShellWord<'a>>,
    dir: Option<ShellWord<'a>>,
    operands: Vec<ShellWord<'a>>,
) {
    match (mode, file) {
        ('c' | 'r' | 'u' | 'A', file) => {
            if let Some(file) = file {
                let access = if mode == 'c' { Access::Write } else { Access::Edit };
                context.add_effect(access, file, false);
            }
            let removes = context.words.iter().any(|word| word.text.starts_with("--rem"));
            for path in operands {
                if removes {
                    context.add_delete(path.clone(), true);
                }
                context.add_effect(Access::Read(ReadExtent::Partial), path, true);
            }
        }
        ('x', file) => {
            if let Some(file) = file {
                context.add_read(file, ReadExtent::Partial);
            }
            let below = dir.map_or(Cow::Borrowed("."), |dir| dir.text);
            context.add_opaque(OpaqueReason::Contents, below);
            for path in operands {
                context.add_effect(Access::Write, path, true);
            }
        }
        (_, Some(file)) => context.add_read(file, ReadExtent::Partial),
        _ => {}
    }
}

/// `gzip f`, `gunzip f.gz`, `xz -d f.xz`: replaces one file by another.
pub(super) fn compress(context: &mut CommandContext<'_, '_>) {
    let name = context.exact_text(0).map_or("", crate::shell_line::base_name);
    let ending = match name {
        "gzip" | "gunzip" => ".gz",
        "bzip2" | "bunzip2" => ".bz2",
        "zstd" | "unzstd" => ".zst",
        _ => ".xz",
    };
    let unpacks = name.contains("un") || context.has_option(&["d", "decompress", "uncompress"]);
    let passes = context.has_option(&["c", "stdout", "to-stdout", "l", "list", "t", "test"]);
    let keeps = context.has_option(&["k", "keep"]) || name.ends_with("zstd");
    for path in context.operands() {
        if passes {
            context.add_read(path, ReadExtent::Partial);
            continue;
        }
        let text = if unpacks {
            Cow::Owned(String::from(path.text.strip_suffix(ending).unwrap_or(&path.text)))
        } else {
            Cow::Owned([&*path.text, ending].concat())
        };
        let output = ShellWord { text, kind: path.kind };
        context.add_read(path.clone(), ReadExtent::Partial);
        context.add_write(output);
        if !keeps {
            context.add_delete(path, false);
        }
    }
}

/// `zip a.zip files`.
pub(super) fn zip(context: &mut CommandContext<'_, '_>) {
    let recursive = context.has_option(&["r", "recurse-paths"]);
    let moves = context.has_option(&["m", "move"]);
    if context
        .words
        .iter()
        .any(|word| word.text.starts_with("-TT") || word.text.starts_with("--unzip-c"))
    {
        context.add_opaque(OpaqueReason::Runner, super::wrappers::join_words(context.words));
    }
    let mut operands = context.operands().into_iter();
    if let Some(archive) = operands.next() {
        context.add_write(archive);
    }
    for path in operands {
        if moves {
            context.add_delete(path.clone(), recursive);
        }
        context.add_effect(Access::Read(ReadExtent::Partial), path, recursive);
    }
}

/// `unzip a.zip -d dir`.
pub(super) fn unzip(context: &mut CommandContext<'_, '_>) {
    let mut operands = context.operands().into_iter();
    if let Some(archive) = operands.next() {
        context.add_read(archive, ReadExtent::Partial);
    }
    if context.has_option(&["l", "p", "t", "v", "Z"]) {
        return;
    }
    let dir = context.option_value(&["d"]).map_or(Cow::Borrowed("."), |dir| dir.text);
    context.add_opaque(OpaqueReason::Contents, dir);
}

/// `cpio -i` unpacks, `cpio -o` packs, `cpio -p` copies.
pub(super) fn cpio(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["O"]) {
        context.add_write(path);
    }
    if let Some(path) = context.option_value(&["I"]) {
        context.add_read(path, ReadExtent::Partial);
    }
    if context.has_option(&["i", "p", "extract", "pass-through"]) {
        context.add_opaque(OpaqueReason::Contents, ".");
    }
}

/// `patch -p1 < x`, `patch file x`.
pub(super) fn patch(context: &mut CommandContext<'_, '_>) {
    if context.has_option(&["dry-run", "C", "check"]) {
        return;
    }
    if let Some(dir) = context.option_value(&["d", "directory"]) {
        let dir = dir_after_cd(&context.walk.state.dir, &dir);
        context.set_working_dir(dir);
    }
    if let Some(path) = context.option_value(&["r", "reject-file"]) {
        context.add_write(path);
    }
    let strip = context.option_value(&["p", "strip"]).and_then(|word| word.text.parse().ok());
    if let Some(path) = context.option_value(&["o", "output"]) {
        context.add_write(path);
    }
    let mut input = context.option_value(&["i", "input"]);
    let operands = context.operands();
    if input.is_none() {
        input = operands.get(1).cloned();
    }
    if let Some(input) = &input {
        context.add_read(input.clone(), ReadExtent::Partial);
    }
    match operands.into_iter().next() {
        Some(path) => context.add_effect(Access::Edit, path, false),
        None if input.is_none() => report_patched_files(context, strip),
        None => context.add_opaque(OpaqueReason::Contents, "."),
    }
}

/// Reports the files that a patch changes, if its text is known as the input.
pub(super) fn report_patched_files(context: &mut CommandContext<'_, '_>, strip: Option<usize>) {
    let (StreamContent::Text(text) | StreamContent::PartialText(text)) = context.stdin_content()
    else {
        context.add_opaque(OpaqueReason::Contents, ".");
        return;
    };
    for line in text.lines() {
        let target = ["+++ ", "--- ", "rename to ", "rename from "]
            .iter()
            .find_map(|start| line.strip_prefix(start));
        let Some(target) = target else { continue };
        let target = target.split('\t').next().unwrap_or_default().trim();
        if target == "/dev/null" || target.is_empty() {
            continue;
        }
        let path = match strip {
            Some(strip) => target.splitn(strip + 1, '/').nth(strip).unwrap_or(target),
            None => crate::shell_line::base_name(target),
        };
        context.add_effect(Access::Edit, ShellWord::literal(String::from(path)), false);
    }
    context.add_opaque(OpaqueReason::Contents, text);
}

/// `7z x a.7z`, `7z a a.7z files`.
pub(super) fn seven_zip(context: &mut CommandContext<'_, '_>) {
    let operands = context.operands();
    let archive = operands.get(1).cloned().unwrap_or_else(|| ShellWord::literal(""));
    match operands.first().map(|word| &*word.text) {
        Some("l" | "t" | "i" | "h" | "b") | None => {}
        Some("x" | "e") => {
            let dir = context.words.iter().find(|word| word.text.starts_with("-o"));
            let dir = dir.map_or(ShellWord::literal("."), |word| word_tail(word, 2));
            context.add_read(archive, ReadExtent::Partial);
            context.add_opaque(OpaqueReason::Contents, dir.text);
        }
        _ => context.add_effect(Access::Edit, archive, false),
    }
}

/// `ar x lib.a`, `ar rcs lib.a files`.
pub(super) fn ar(context: &mut CommandContext<'_, '_>) {
    let letters = context.word(1).map_or("", |word| word.text.trim_start_matches('-'));
    match context.word(2) {
        Some(archive) if letters.contains(['r', 'q', 'd', 'm']) => {
            context.add_effect(Access::Edit, archive.clone(), false);
        }
        _ if letters.contains('x') => context.add_opaque(OpaqueReason::Contents, "."),
        _ => {}
    }
}

/// `python -m zipfile -e a.zip dir`, `python -m tarfile -c a.tar files`.
pub(super) fn python_archive(context: &mut CommandContext<'_, '_>) {
    let mut operands = context.operands().into_iter();
    if context.has_option(&["c", "create"]) {
        operands.next().into_iter().for_each(|archive| context.add_write(archive));
    } else if context.has_option(&["e", "extract"]) {
        let dir = operands.nth(1).unwrap_or_else(|| ShellWord::literal("."));
        context.add_opaque(OpaqueReason::Contents, dir.text);
    }
}
