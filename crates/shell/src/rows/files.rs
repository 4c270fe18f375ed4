//! Programs that make, move, change and remove files.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::line::{Access, Lines, Reason, Word, base_name};
use crate::scene::{Arg, Scene, tail};
use crate::walk::Stdin;

/// Where a copy may end up: the target itself, or below it if it is a directory.
fn targets<'a>(
    scene: &mut Scene<'_, 'a>,
    sources: &[Word<'a>],
    target: &Word<'a>,
    into: bool,
    recursive: bool,
) {
    let dir = into || sources.len() > 1 || target.text.ends_with('/');
    let named = matches!(&*target.text, "." | "..") || target.text.ends_with("/.");
    let as_is = scene.has(&["T", "no-target-directory"]);
    if as_is || (!dir && !named) {
        scene.effect(Access::Write, target.clone(), recursive);
    }
    if as_is {
        return;
    }
    for source in sources {
        let path = Scene::inside(target, source);
        scene.effect(Access::Write, path, recursive);
    }
}

/// The operands of `cp`-like programs: sources, target, and whether the target
/// is surely a directory.
fn sources_and_target<'a>(scene: &Scene<'_, 'a>) -> Option<(Vec<Word<'a>>, Word<'a>, bool)> {
    let mut operands = scene.operands();
    if let Some(dir) = scene.value(&["t", "target-directory"]) {
        return Some((operands, dir, true));
    }
    if operands.len() < 2 {
        return None;
    }
    let target = operands.pop()?;
    Some((operands, target, false))
}

pub(super) fn copy(scene: &mut Scene<'_, '_>) {
    let recursive = scene.has(&["r", "R", "a", "recursive", "archive"]);
    let Some((sources, target, into)) = sources_and_target(scene) else { return };
    for source in &sources {
        scene.effect(Access::Read(Lines::Some), source.clone(), recursive);
    }
    if scene.has(&["s", "l", "symbolic-link", "link"]) {
        for source in &sources {
            let below = Scene::inside(&target, source);
            scene.walk.shared_link(scene.index, &target, source);
            scene.walk.shared_link(scene.index, &below, source);
            if scene.has(&["l", "link"]) {
                scene.effect(Access::Touch, source.clone(), recursive);
            }
        }
    }
    targets(scene, &sources, &target, into, recursive);
}

pub(super) fn moves(scene: &mut Scene<'_, '_>) {
    let Some((sources, target, into)) = sources_and_target(scene) else { return };
    for source in &sources {
        scene.delete(source.clone(), true);
    }
    targets(scene, &sources, &target, into, true);
}

pub(super) fn install(scene: &mut Scene<'_, '_>) {
    if scene.has(&["d", "directory"]) {
        makes(scene);
        return;
    }
    let Some((sources, target, into)) = sources_and_target(scene) else { return };
    for source in &sources {
        scene.read(source.clone(), Lines::Some);
    }
    targets(scene, &sources, &target, into, false);
}

/// `ln` makes a second name, through which the first can be written.
pub(super) fn link(scene: &mut Scene<'_, '_>) {
    let operands = scene.operands();
    let symbolic = scene.has(&["s", "symbolic"]);
    if let [only] = operands.as_slice() {
        let name = Word { text: Cow::Owned(base_name(&only.text).into()), known: only.known };
        scene.walk.shared_link(scene.index, &name, only);
        scene.write(name);
        if !symbolic {
            scene.effect(Access::Touch, only.clone(), false);
        }
        return;
    }
    let Some((sources, target, into)) = sources_and_target(scene) else { return };
    for source in &sources {
        // A second name is noted in the file itself.
        if !symbolic {
            scene.effect(Access::Touch, source.clone(), false);
        }
        scene.walk.shared_link(scene.index, &target, source);
        let below = Scene::inside(&target, source);
        scene.walk.shared_link(scene.index, &below, source);
    }
    targets(scene, &sources, &target, into, false);
}

pub(super) fn remove(scene: &mut Scene<'_, '_>) {
    let recursive = scene.has(&["r", "R", "recursive"]);
    for path in scene.operands() {
        scene.delete(path, recursive);
    }
}

pub(super) fn remove_dir(scene: &mut Scene<'_, '_>) {
    for path in scene.operands() {
        scene.delete(path, false);
    }
}

pub(super) fn shred(scene: &mut Scene<'_, '_>) {
    let removes = scene.words.iter().skip(1).any(|word| {
        let text = &*word.text;
        text.starts_with("--remove")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains('u'))
    });
    let paths: Vec<_> =
        scene.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect();
    for path in paths {
        scene.write(path.clone());
        if removes {
            scene.delete(path.clone(), false);
        }
    }
}

pub(super) fn truncates(scene: &mut Scene<'_, '_>) {
    for path in scene.operands() {
        scene.write(path);
    }
}

pub(super) fn touches(scene: &mut Scene<'_, '_>) {
    for path in scene.operands() {
        scene.effect(Access::Touch, path, false);
    }
}

/// `mkdir`, `mknod`.
pub(super) fn makes(scene: &mut Scene<'_, '_>) {
    touches(scene);
}

/// `chmod`, `chown` and the like: a mode, then files.
pub(super) fn touches_rest(scene: &mut Scene<'_, '_>) {
    let recursive = scene.has(&["R", "recursive"]);
    // A mode such as `-x` or `-w` looks like an option.
    let mode_given = scene.has(&["reference", "m", "x", "w"])
        || (scene.exact(0).is_some_and(|name| name.ends_with("chmod"))
            && scene.words.iter().skip(1).any(|word| {
                word.text.len() > 1
                    && word.text.starts_with('-')
                    && word.text.bytes().skip(1).all(|byte| b"rwxXst".contains(&byte))
            }));
    for path in scene.operands().into_iter().skip(usize::from(!mode_given)) {
        scene.effect(Access::Touch, path, recursive);
    }
}

/// Programs that change their operands in place.
pub(super) fn edits(scene: &mut Scene<'_, '_>) {
    for path in scene.operands() {
        scene.effect(Access::Edit, path, false);
    }
}

/// `sd find replace file`: what is changed stands behind what is looked for.
pub(super) fn edits_rest(scene: &mut Scene<'_, '_>) {
    for path in scene.operands().into_iter().skip(2) {
        scene.effect(Access::Edit, path, false);
    }
}

pub(super) fn dd(scene: &mut Scene<'_, '_>) {
    for word in scene.words.iter().skip(1) {
        if word.text.starts_with("of=") {
            scene.write(tail(word, 3));
        } else if word.text.starts_with("if=") {
            scene.read(tail(word, 3), Lines::Some);
        }
    }
}

pub(super) fn tee(scene: &mut Scene<'_, '_>) {
    let access = if scene.has(&["a", "append"]) { Access::Append } else { Access::Write };
    for path in scene.operands() {
        scene.effect(access, path, false);
    }
    if let input @ (Stdin::Text(_) | Stdin::Partly(_)) = scene.stdin_script() {
        scene.walk.output = Some(input);
    }
}

pub(super) fn sponge(scene: &mut Scene<'_, '_>) {
    tee(scene);
    scene.walk.output = None;
}

/// `rename` runs an expression over names.
pub(super) fn renames(scene: &mut Scene<'_, '_>) {
    let mut operands = scene.operands().into_iter();
    if let Some(expression) = operands.next() {
        scene.opaque(Reason::InlineScript, expression.text);
    }
    for path in operands {
        scene.delete(path, false);
    }
}

/// `crontab` runs things later.
pub(super) fn crontab(scene: &mut Scene<'_, '_>) {
    if scene.has(&["l"]) {
        return;
    }
    for arg in scene.args() {
        if let Arg::Operand(index) = arg
            && let Some(path) = scene.word(index)
        {
            scene.read(path.clone(), Lines::Some);
        }
    }
    scene.opaque(Reason::UnknownScript, "");
}

/// `ffmpeg -i in out`, `objcopy in out`: the last word is written, whatever the
/// options before it mean.
pub(super) fn converts(scene: &mut Scene<'_, '_>) {
    let output = scene.value(&["o", "output"]);
    let last = scene.words.get(1..).unwrap_or_default().last().cloned();
    if let Some(path) = output.or(last) {
        scene.write(path);
    }
}

/// `mount --bind dir target` puts another file in a place.
pub(super) fn mount(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.operands().pop() {
        scene.effect(Access::Write, path, true);
    }
}
