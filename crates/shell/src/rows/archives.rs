//! Archives and patches: files whose names stand in other files.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::line::{Access, Lines, Reason, Word};
use crate::scene::{Scene, tail};
use crate::state::moved;
use crate::walk::Stdin;

/// `tar xf a.tgz -C dir`, `tar -czf a.tgz src`.
pub(super) fn tar(scene: &mut Scene<'_, '_>) {
    let mut mode = ' ';
    let mut file = None;
    let mut dir = None;
    let mut operands: Vec<Word<'_>> = Vec::new();
    let mut runs = false;
    let mut at = 1;
    while let Some(word) = scene.word(at) {
        let text = &*word.text;
        at += 1;
        let long = text.strip_prefix("--");
        match long {
            Some("extract" | "get") => mode = 'x',
            Some("create") => mode = 'c',
            Some("append" | "update" | "concatenate") => mode = 'r',
            Some("list") => mode = 't',
            Some("file") => {
                file = scene.word(at).cloned();
                at += 1;
            }
            Some("directory") => {
                dir = scene.word(at).cloned();
                at += 1;
            }
            Some(long) if long.starts_with("file=") => file = Some(tail(word, 7)),
            Some(long) if long.starts_with("directory=") => dir = Some(tail(word, 12)),
            Some(long)
                if long.starts_with("to-command")
                    || long.starts_with("checkpoint-action")
                    || long.starts_with("use-compress-program")
                    || long.starts_with("rsh-command")
                    || long.starts_with("new-volume-script") =>
            {
                runs = true;
            }
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
    }
    match (mode, file) {
        ('c' | 'r' | 'u' | 'A', file) => {
            if let Some(file) = file {
                let access = if mode == 'c' { Access::Write } else { Access::Edit };
                scene.effect(access, file, false);
            }
            let removes = scene.words.iter().any(|word| word.text == "--remove-files");
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
    if scene.words.iter().any(|word| word.text.starts_with("-TT") || word.text == "--unzip-command")
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
