//! Programs that run others as their own files say: known, and opaque.

use crate::line::{Access, Lines, Reason};
use crate::scene::{Arg, Scene};
use crate::state::moved;

/// What it runs stands in files of the project.
pub(super) fn runs(scene: &mut Scene<'_, '_>) {
    let idle = scene.words.len() == 2
        && matches!(scene.exact(1), Some("--version" | "-V" | "--help" | "-h" | "version"));
    if !idle {
        scene.opaque(Reason::Runner, "");
    }
}

/// `make -C dir target`.
pub(super) fn make(scene: &mut Scene<'_, '_>) {
    if let Some(dir) = scene.value(&["C", "directory"]) {
        let dir = moved(&scene.walk.state.dir, &dir);
        scene.works_in(dir);
    }
    for word in scene.words.iter().skip(1) {
        // A variable given on the command line may be run as a shell text.
        if word.text.contains('=') && word.text.contains("$(shell") {
            scene.opaque(Reason::InlineScript, word.text.clone());
        }
        if word.text.starts_with("--eval") {
            scene.opaque(Reason::InlineScript, word.text.clone());
        }
    }
    runs(scene);
}

/// Formatters and linters that rewrite the files they are given.
pub(super) fn formats(scene: &mut Scene<'_, '_>) {
    let name = scene.exact(0).unwrap_or_default();
    let name = crate::line::base_name(name);
    let (writes, skip) = match name {
        "black" | "isort" => (!scene.has(&["check", "diff", "check-only", "c"]), 0),
        "ruff" => match scene.exact(1) {
            Some("format") => (!scene.has(&["check", "diff"]), 1),
            _ => (scene.has(&["fix"]), 1),
        },
        "gofmt" => (scene.has(&["w"]), 0),
        "prettier" => (scene.has(&["w", "write"]), 0),
        "rustfmt" => (!scene.has(&["check"]), 0),
        _ => (scene.has(&["fix"]), 0),
    };
    if let Some(path) = scene.value(&["o", "output-file"]) {
        scene.write(path);
    }
    for path in scene.operands().into_iter().skip(skip) {
        let access = if writes { Access::Edit } else { Access::Read(Lines::Some) };
        scene.effect(access, path, true);
    }
    scene.opaque(Reason::Runner, "");
}

/// Compilers: what they read, and the file they make.
pub(super) fn compiles(scene: &mut Scene<'_, '_>) {
    for arg in scene.args() {
        match arg {
            Arg::Option("o", Some(path)) => scene.write(path),
            Arg::Operand(index) => {
                if let Some(path) = scene.word(index) {
                    scene.read(path.clone(), Lines::Some);
                }
            }
            Arg::Option(..) => {}
        }
    }
    scene.opaque(Reason::Runner, "");
}
