//! `find`, `fd` and `xargs`: programs that run another once per name.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::ITEMS_MAX;
use crate::line::{Known, Lines, Word};
use crate::scene::{Arg, Scene};
use crate::walk::Stdin;

/// What `find` may come across: a pattern below each place it starts from.
fn matches_below<'a>(scene: &Scene<'_, 'a>) -> (Vec<Word<'a>>, bool) {
    let mut roots: Vec<Word<'a>> = Vec::new();
    let mut at = 1;
    while matches!(scene.exact(at), Some("-H" | "-L" | "-P")) {
        at += 1;
    }
    while let Some(word) = scene.word(at)
        && !word.text.starts_with('-')
        && !matches!(&*word.text, "(" | "!" | ")")
    {
        roots.push(word.clone());
        at += 1;
    }
    if roots.is_empty() {
        roots.push(Word::literal("."));
    }
    if roots.len() > ITEMS_MAX {
        roots = alloc::vec![Word::unknown("{}")];
    }
    let mut name = None;
    let mut tests = false;
    let mut either = false;
    for (index, word) in scene.words.iter().enumerate().skip(at) {
        match &*word.text {
            "-name" => {
                tests = true;
                name = scene.word(index + 1);
            }
            "-o" | "-or" | "!" | "-not" => either = true,
            "-delete" | "-exec" | "-execdir" | "-ok" | "-okdir" | "-print" | "-depth" | ";" => {}
            text if text.starts_with('-') => tests = true,
            _ => {}
        }
    }
    let name = name.filter(|name| !either && name.known != Known::Unknown);
    let found = roots
        .into_iter()
        .map(|root| {
            if root.known == Known::Unknown {
                return root;
            }
            let base = root.text.trim_end_matches('/');
            Word::glob(match name {
                Some(name) => format!("{base}/**/{}", name.text),
                None => format!("{base}/**"),
            })
        })
        .collect();
    (found, tests)
}

pub(super) fn find(scene: &mut Scene<'_, '_>) {
    scene.unknown_options();
    let (found, tests) = matches_below(scene);
    let mut at = 1;
    while let Some(word) = scene.word(at) {
        let text = word.exact().unwrap_or_default();
        match text {
            "-delete" => {
                for path in &found {
                    if tests || path.known == Known::Unknown {
                        scene.delete(path.clone(), false);
                    } else {
                        let root = String::from(path.text.trim_end_matches("/**"));
                        scene.delete(Word::literal(root), true);
                    }
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(path) = scene.word(at + 1) {
                    scene.write(path.clone());
                }
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let inner: Vec<_> = scene
                    .words
                    .get(at + 1..)
                    .unwrap_or_default()
                    .iter()
                    .take_while(|word| !matches!(&*word.text, ";" | "+"))
                    .cloned()
                    .collect();
                at += inner.len() + 1;
                run_with_names(scene, &inner, &found);
            }
            "-files0-from" => {
                if let Some(path) = scene.word(at + 1) {
                    scene.read(path.clone(), Lines::Some);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Runs a command with `{}` in place of the names.
fn run_with_names<'a>(scene: &mut Scene<'_, 'a>, inner: &[Word<'a>], found: &[Word<'a>]) {
    let mut words = Vec::with_capacity(inner.len());
    for word in inner {
        if word.text == "{}" {
            words.extend(found.iter().cloned());
        } else if word.text.contains("{}") {
            words.push(Word::unknown(word.text.clone()));
        } else {
            words.push(word.clone());
        }
    }
    scene.run_each(words);
}

/// `fd pattern dir -x cmd`.
pub(super) fn fd(scene: &mut Scene<'_, '_>) {
    let at = scene
        .words
        .iter()
        .position(|word| matches!(&*word.text, "-x" | "-X" | "--exec" | "--exec-batch"));
    if let Some(at) = at {
        let mut words = scene.words.get(at + 1..).unwrap_or_default().to_vec();
        for word in &mut words {
            if word.text.contains('{') {
                word.known = Known::Unknown;
            }
        }
        words.push(Word::unknown("{}"));
        scene.run_each(words);
    }
}

/// `xargs cmd`: the command with what is read added to it.
pub(super) fn xargs(scene: &mut Scene<'_, '_>) {
    let mut replace = None;
    let mut first = None;
    for arg in scene.args() {
        match arg {
            Arg::Operand(index) => {
                first = Some(index);
                break;
            }
            Arg::Option("I" | "replace", value) => {
                replace = Some(value.map_or_else(|| String::from("{}"), |word| word.text.into()));
            }
            Arg::Option("i", _) => replace = Some(String::from("{}")),
            Arg::Option("a" | "arg-file", Some(path)) => scene.read(path, Lines::Some),
            Arg::Option(..) => {}
        }
    }
    let Some(first) = first else { return };
    let added: Vec<Word<'_>> = match scene.stdin_script() {
        Stdin::Text(text) if replace.is_none() && !text.contains(['\'', '"', '\\']) => {
            text.split_whitespace().map(|word| Word::literal(String::from(word))).collect()
        }
        _ => alloc::vec![Word::unknown("{}")],
    };
    let mut words = scene.words.get(first..).unwrap_or_default().to_vec();
    match replace {
        Some(mark) => {
            for word in &mut words {
                if word.text.contains(mark.as_str()) {
                    word.known = Known::Unknown;
                }
            }
        }
        None => words.extend(added),
    }
    // What is fed to `xargs` is used up.
    let outer = core::mem::replace(&mut scene.walk.stdin, Stdin::Unknown);
    scene.run_each(words);
    scene.walk.stdin = outer;
}
