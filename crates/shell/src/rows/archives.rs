//! Archives and patches: files whose names stand in other files.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::line::{Access, Lines, Reason, Word};
use crate::scene::{Scene, tail};
use crate::state::moved;
use crate::walk::Stdin;

/// The long options of `tar` that matter here. `checkpoint` is listed because it
/// is the start of another one.
const TAR: &str = "extract get create append update concatenate delete list file directory \
    index-file to-command checkpoint checkpoint-action use-compress-program rsh-command \
    new-volume-script info-script remove-files";

/// A long option written out, and where its value starts if one is attached.
fn long_option(text: &str) -> (&str, Option<usize>) {
    let (name, value) = match text.split_once('=') {
        Some((name, _)) => (name, Some(name.len() + 1)),
        None => (text, None),
    };
    let meant = TAR.split(' ').find(|option| name.len() > 2 && option.starts_with(name));
    (meant.unwrap_or(name), value)
}

/// `tar xf a.tgz -C dir`, `tar -czf a.tgz src`.
pub(super) fn tar(scene: &mut Scene<'_, '_>) {
    let mut mode = ' ';
    let mut file = None;
    let mut dir = None;
    let mut operands: Vec<Word<'_>> = Vec::new();
    let mut runs = false;
    let mut index = None;
    let mut at = 1;
    while let Some(word) = scene.word(at) {
        let text = &*word.text;
        at += 1;
        match text.strip_prefix("--").map(long_option) {
            Some(("extract" | "get", _)) => mode = 'x',
            Some(("create", _)) => mode = 'c',
            Some(("append" | "update" | "concatenate" | "delete", _)) => mode = 'r',
            Some(("list", _)) => mode = 't',
            Some((name @ ("file" | "directory" | "index-file"), attached)) => {
                let value = match attached {
                    Some(from) => Some(tail(word, from + 2)),
                    None => {
                        at += 1;
                        scene.word(at - 1).cloned()
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
                for (place, letter) in letters.char_indices() {
                    let attached = place + 1 < letters.len() && text.starts_with('-');
                    match letter {
                        'x' | 'c' | 't' | 'r' | 'u' | 'A' => mode = letter,
                        'I' | 'F' => {
                            runs = true;
                            at += usize::from(!attached);
                            break;
                        }
                        'f' | 'C' => {
                            let value = if attached {
                                Some(tail(word, text.len() - letters.len() + place + 1))
                            } else {
                                at += 1;
                                scene.word(at - 1).cloned()
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
        scene.opaque(Reason::Runner, super::wrappers::joined(scene.words));
        for word in scene.words {
            let text = word.exact().and_then(|text| text.split_once("exec="));
            if let Some((_, text)) = text {
                scene.child_text(&Word::literal(String::from(text)), None);
            }
        }
    }
    if let Some(path) = index {
        scene.write(path);
    }
    packed(scene, mode, file, dir, operands);
}

/// What `tar` does to its archive and the files of its operands.
fn packed<'a>(
    scene: &mut Scene<'_, 'a>,
    mode: char,
    file: Option<Word<'a>>,
    dir: Option<Word<'a>>,
    operands: Vec<Word<'a>>,
) {
    match (mode, file) {
        ('c' | 'r' | 'u' | 'A', file) => {
            if let Some(file) = file {
                let access = if mode == 'c' { Access::Write } else { Access::Edit };
                scene.effect(access, file, false);
            }
            let removes = scene.words.iter().any(|word| word.text.starts_with("--rem"));
            for path in operands {
                if removes {
                    scene.delete(path.clone(), true);
                }
                scene.effect(Access::Read(Lines::Some), path, true);
            }
        }
        ('x', file) => {
            if let Some(file) = file {
                scene.read(file, Lines::Some);
            }
            let below = dir.map_or(Cow::Borrowed("."), |dir| dir.text);
            scene.opaque(Reason::Contents, below);
            for path in operands {
                scene.effect(Access::Write, path, true);
            }
        }
        (_, Some(file)) => scene.read(file, Lines::Some),
        _ => {}
    }
}

/// `gzip f`, `gunzip f.gz`, `xz -d f.xz`: one file becomes another.
pub(super) fn compress(scene: &mut Scene<'_, '_>) {
    let name = scene.exact(0).map_or("", crate::line::base_name);
    let ending = match name {
        "gzip" | "gunzip" => ".gz",
        "bzip2" | "bunzip2" => ".bz2",
        "zstd" | "unzstd" => ".zst",
        _ => ".xz",
    };
    let unpacks = name.contains("un") || scene.has(&["d", "decompress", "uncompress"]);
    let passes = scene.has(&["c", "stdout", "to-stdout", "l", "list", "t", "test"]);
    let keeps = scene.has(&["k", "keep"]) || name.ends_with("zstd");
    for path in scene.operands() {
        if passes {
            scene.read(path, Lines::Some);
            continue;
        }
        let text = if unpacks {
            Cow::Owned(String::from(path.text.strip_suffix(ending).unwrap_or(&path.text)))
        } else {
            Cow::Owned([&*path.text, ending].concat())
        };
        let made = Word { text, known: path.known };
        scene.read(path.clone(), Lines::Some);
        scene.write(made);
        if !keeps {
            scene.delete(path, false);
        }
    }
}

/// `zip a.zip files`.
pub(super) fn zip(scene: &mut Scene<'_, '_>) {
    let recursive = scene.has(&["r", "recurse-paths"]);
    let moves = scene.has(&["m", "move"]);
    if scene
        .words
        .iter()
        .any(|word| word.text.starts_with("-TT") || word.text.starts_with("--unzip-c"))
    {
        scene.opaque(Reason::Runner, super::wrappers::joined(scene.words));
    }
    let mut operands = scene.operands().into_iter();
    if let Some(archive) = operands.next() {
        scene.write(archive);
    }
    for path in operands {
        if moves {
            scene.delete(path.clone(), recursive);
        }
        scene.effect(Access::Read(Lines::Some), path, recursive);
    }
}

/// `unzip a.zip -d dir`.
pub(super) fn unzip(scene: &mut Scene<'_, '_>) {
    let mut operands = scene.operands().into_iter();
    if let Some(archive) = operands.next() {
        scene.read(archive, Lines::Some);
    }
    if scene.has(&["l", "p", "t", "v", "Z"]) {
        return;
    }
    let dir = scene.value(&["d"]).map_or(Cow::Borrowed("."), |dir| dir.text);
    scene.opaque(Reason::Contents, dir);
}

/// `cpio -i` unpacks, `cpio -o` packs, `cpio -p` copies.
pub(super) fn cpio(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["O"]) {
        scene.write(path);
    }
    if let Some(path) = scene.value(&["I"]) {
        scene.read(path, Lines::Some);
    }
    if scene.has(&["i", "p", "extract", "pass-through"]) {
        scene.opaque(Reason::Contents, ".");
    }
}

/// `patch -p1 < x`, `patch file x`.
pub(super) fn patch(scene: &mut Scene<'_, '_>) {
    if scene.has(&["dry-run", "C", "check"]) {
        return;
    }
    if let Some(dir) = scene.value(&["d", "directory"]) {
        let dir = moved(&scene.walk.state.dir, &dir);
        scene.works_in(dir);
    }
    if let Some(path) = scene.value(&["r", "reject-file"]) {
        scene.write(path);
    }
    let strip = scene.value(&["p", "strip"]).and_then(|word| word.text.parse().ok());
    if let Some(path) = scene.value(&["o", "output"]) {
        scene.write(path);
    }
    let mut input = scene.value(&["i", "input"]);
    let operands = scene.operands();
    if input.is_none() {
        input = operands.get(1).cloned();
    }
    if let Some(input) = &input {
        scene.read(input.clone(), Lines::Some);
    }
    match operands.into_iter().next() {
        Some(path) => scene.effect(Access::Edit, path, false),
        None if input.is_none() => patched(scene, strip),
        None => scene.opaque(Reason::Contents, "."),
    }
}

/// The files a patch on the input names, where the patch stands in the line.
pub(super) fn patched(scene: &mut Scene<'_, '_>, strip: Option<usize>) {
    let (Stdin::Text(text) | Stdin::Partly(text)) = scene.stdin_script() else {
        scene.opaque(Reason::Contents, ".");
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
        let kept = match strip {
            Some(strip) => target.splitn(strip + 1, '/').nth(strip).unwrap_or(target),
            None => crate::line::base_name(target),
        };
        scene.effect(Access::Edit, Word::literal(String::from(kept)), false);
    }
    scene.opaque(Reason::Contents, text);
}

/// `7z x a.7z`, `7z a a.7z files`.
pub(super) fn seven(scene: &mut Scene<'_, '_>) {
    let operands = scene.operands();
    let archive = operands.get(1).cloned().unwrap_or_else(|| Word::literal(""));
    match operands.first().map(|word| &*word.text) {
        Some("l" | "t" | "i" | "h" | "b") | None => {}
        Some("x" | "e") => {
            let dir = scene.words.iter().find(|word| word.text.starts_with("-o"));
            let dir = dir.map_or(Word::literal("."), |word| tail(word, 2));
            scene.read(archive, Lines::Some);
            scene.opaque(Reason::Contents, dir.text);
        }
        _ => scene.effect(Access::Edit, archive, false),
    }
}

/// `ar x lib.a`, `ar rcs lib.a files`.
pub(super) fn ar(scene: &mut Scene<'_, '_>) {
    let letters = scene.word(1).map_or("", |word| word.text.trim_start_matches('-'));
    match scene.word(2) {
        Some(archive) if letters.contains(['r', 'q', 'd', 'm']) => {
            scene.effect(Access::Edit, archive.clone(), false);
        }
        _ if letters.contains('x') => scene.opaque(Reason::Contents, "."),
        _ => {}
    }
}

/// `python -m zipfile -e a.zip dir`, `python -m tarfile -c a.tar files`.
pub(super) fn python_archive(scene: &mut Scene<'_, '_>) {
    let mut operands = scene.operands().into_iter();
    if scene.has(&["c", "create"]) {
        operands.next().into_iter().for_each(|archive| scene.write(archive));
    } else if scene.has(&["e", "extract"]) {
        let dir = operands.nth(1).unwrap_or_else(|| Word::literal("."));
        scene.opaque(Reason::Contents, dir.text);
    }
}
