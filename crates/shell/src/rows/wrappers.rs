//! Programs that run the rest of their words as a command.

use alloc::vec::Vec;

use crate::line::{Lines, Reason, Word};
use crate::scan::is_name;
use crate::scene::{Arg, Scene};
use crate::state::moved;

/// Where the first operand from a number on stands.
fn operand(scene: &Scene<'_, '_>, skip: usize) -> Option<usize> {
    scene
        .args()
        .filter_map(|arg| match arg {
            Arg::Operand(index) => Some(index),
            Arg::Option(..) => None,
        })
        .nth(skip)
}

/// The first operand; options behind it belong to the command.
fn first(scene: &Scene<'_, '_>) -> Option<usize> {
    operand(scene, 0)
}

/// `nohup cmd`, `nice -n 5 cmd`.
pub(super) fn plain(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["o", "output"])
        && scene.exact(0).is_some_and(|name| matches!(name, "time" | "strace"))
    {
        scene.write(path);
    }
    if let Some(at) = first(scene) {
        scene.run_from(at, scene.exit);
    }
}

/// `timeout 5 cmd`: one operand, then the command.
pub(super) fn after_one(scene: &mut Scene<'_, '_>) {
    if let Some(at) = first(scene) {
        scene.run_from(at + 1, scene.exit);
    }
}

/// `command cmd`; `command -v cmd` only looks.
pub(super) fn command(scene: &mut Scene<'_, '_>) {
    if scene.exact(1).is_some_and(|text| matches!(text, "-v" | "-V")) {
        return;
    }
    plain(scene);
}

/// `exec cmd`; without a command its redirections are the shell's.
pub(super) fn exec(scene: &mut Scene<'_, '_>) {
    if first(scene).is_none() {
        scene.walk.keep_stdin = true;
        return;
    }
    plain(scene);
    // The shell itself is gone now.
    scene.walk.shared.ended = true;
    scene.walk.shared.ended_well = true;
}

/// `env -C dir A=b cmd`.
pub(super) fn env(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.value(&["S", "split-string"]) {
        scene.child_text(&text, None);
        return;
    }
    let dir = scene.value(&["C", "chdir"]);
    let Some(mut at) = first(scene) else { return };
    // A lone dash is `-i`.
    at += usize::from(scene.exact(at) == Some("-"));
    while let Some(word) = scene.word(at)
        && let Some((name, _)) = word.text.split_once('=')
    {
        if crate::simple::is_running_variable(name) {
            scene.opaque(Reason::Environment, word.text.clone());
        }
        scene.walk.state.home |= name == "HOME";
        at += 1;
    }
    in_dir(scene, dir, at);
}

/// Runs the words from `at` on in another directory.
fn in_dir<'a>(scene: &mut Scene<'_, 'a>, dir: Option<Word<'a>>, at: usize) {
    let outer = scene.walk.state.dir.clone();
    if let Some(dir) = dir {
        scene.walk.state.dir = moved(&outer, &dir);
    }
    scene.run_from(at, scene.exit);
    scene.walk.state.dir = outer;
}

/// `sudo -u root A=b cmd`.
pub(super) fn sudo(scene: &mut Scene<'_, '_>) {
    let dir = scene.value(&["D", "chdir"]);
    if scene.has(&["e", "edit"]) {
        if let Some(at) = first(scene) {
            let paths: Vec<_> = scene.words.get(at..).unwrap_or_default().to_vec();
            for path in paths {
                scene.effect(crate::line::Access::Edit, path, false);
            }
        }
        return;
    }
    let Some(mut at) = first(scene) else {
        if scene.has(&["s", "i", "login", "shell"]) {
            super::interpreters::from_stdin(scene);
        }
        return;
    };
    while let Some(word) = scene.word(at)
        && let Some((name, _)) = word.text.split_once('=')
        && is_name(name.as_bytes())
    {
        if crate::simple::is_running_variable(name) {
            scene.opaque(Reason::Environment, word.text.clone());
        }
        at += 1;
    }
    in_dir(scene, dir, at);
}

/// `su user -c 'text'`, `runuser -u user cmd`.
pub(super) fn su(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.value(&["c", "command"]) {
        scene.child_text(&text, None);
    } else if scene.has(&["u", "user"])
        && let Some(at) = first(scene)
    {
        scene.run_from(at, scene.exit);
    } else {
        super::interpreters::from_stdin(scene);
    }
}

/// `script -c 'text' file`.
pub(super) fn script(scene: &mut Scene<'_, '_>) {
    for path in scene.operands() {
        scene.write(path);
    }
    match scene.value(&["c", "command"]) {
        Some(text) => scene.child_text(&text, None),
        None => super::interpreters::from_stdin(scene),
    }
}

/// `flock file cmd`, `flock file -c 'text'`.
pub(super) fn flock(scene: &mut Scene<'_, '_>) {
    let Some(at) = first(scene) else { return };
    if let Some(path) = scene.word(at) {
        scene.effect(crate::line::Access::Touch, path.clone(), false);
    }
    if matches!(scene.exact(at + 1), Some("-c" | "--command")) {
        if let Some(text) = scene.word(at + 2).cloned() {
            scene.child_text(&text, None);
        }
    } else {
        scene.run_from(at + 1, scene.exit);
    }
}

/// `npx jest`, `npx -c 'text'`.
pub(super) fn npx(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.value(&["c", "call"]) {
        scene.child_text(&text, None);
    }
    plain(scene);
}

/// `bundle exec cmd`.
pub(super) fn exec_subcommand(scene: &mut Scene<'_, '_>) {
    subcommand(scene, "exec");
}

/// `poetry run cmd`, `uv run cmd`.
pub(super) fn run_subcommand(scene: &mut Scene<'_, '_>) {
    subcommand(scene, "run");
}

fn subcommand(scene: &mut Scene<'_, '_>, name: &str) {
    let Some(at) = first(scene) else { return };
    if scene.exact(at) != Some(name) {
        scene.opaque(Reason::Runner, "");
        return;
    }
    let mut at = at + 1;
    while let Some(word) = scene.word(at)
        && word.text.starts_with('-')
    {
        let takes = matches!(
            &*word.text,
            "--with"
                | "--python"
                | "-p"
                | "--extra"
                | "--group"
                | "--project"
                | "--directory"
                | "--env-file"
                | "--package"
                | "--index"
                | "-m"
                | "--module"
        );
        if matches!(&*word.text, "-m" | "--module") {
            at += 1;
            break;
        }
        at += 1 + usize::from(takes);
    }
    if scene.word(at).is_some_and(|word| has_suffix(word, ".py")) {
        let path = scene.word(at).cloned().unwrap_or_else(|| Word::literal(""));
        scene.opaque(Reason::ScriptFile, path.text.clone());
        scene.read(path, Lines::Some);
    } else {
        scene.run_from(at, scene.exit);
    }
}

fn has_suffix(word: &Word<'_>, suffix: &str) -> bool {
    word.exact().is_some_and(|text| text.ends_with(suffix))
}

/// `conda run -n env cmd`.
pub(super) fn conda(scene: &mut Scene<'_, '_>) {
    let Some(at) = first(scene) else { return };
    if scene.exact(at) != Some("run") {
        scene.opaque(Reason::Runner, "");
        return;
    }
    let Some(at) = operand(scene, 1) else { return };
    scene.run_from(at, scene.exit);
}

/// `direnv exec dir cmd`.
pub(super) fn direnv(scene: &mut Scene<'_, '_>) {
    match first(scene) {
        Some(at) if scene.exact(at) == Some("exec") => scene.run_from(at + 2, scene.exit),
        _ => scene.opaque(Reason::Runner, ""),
    }
}

/// `chroot dir cmd` runs in another tree.
pub(super) fn elsewhere(scene: &mut Scene<'_, '_>) {
    scene.opaque(Reason::Elsewhere, joined(scene.words));
}

/// Words as one text, for those who search it.
pub(super) fn joined(words: &[Word<'_>]) -> alloc::string::String {
    words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ")
}
