//! Programs that run others as their own files say: known, and opaque.

use super::wrappers::joined;
use crate::line::{Access, Known, Lines, Reason};
use crate::scene::{Arg, Scene, is_device, tail};
use crate::state::moved;
use crate::walk::Stdin;

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
    let from_input = scene
        .value(&["f", "file", "makefile"])
        .is_some_and(|path| is_device(&path) || path.known == Known::Unknown);
    match scene.stdin_script() {
        Stdin::Text(text) | Stdin::Partly(text) if from_input => {
            scene.opaque(Reason::InlineScript, text);
        }
        _ if from_input => scene.opaque(Reason::UnknownScript, ""),
        _ => {}
    }
    for word in scene.words.iter().skip(1) {
        // A variable given on the command line may be run as a shell text.
        if word.text.contains('=') && word.text.contains("$(shell") {
            scene.opaque(Reason::InlineScript, word.text.clone());
        }
        if word.text.starts_with("--eval") || word.text.starts_with("SHELL=") {
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
        "prettier" | "shfmt" => (scene.has(&["w", "write"]), 0),
        "rustfmt" => (!scene.has(&["check"]), 0),
        "clang-format" => (scene.has(&["i"]), 0),
        "tidy" => (scene.has(&["m", "modify"]), 0),
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

/// `go build -o file`.
pub(super) fn go(scene: &mut Scene<'_, '_>) {
    for (at, word) in scene.words.iter().enumerate() {
        match (&*word.text, scene.word(at + 1)) {
            ("-o", Some(path)) => scene.write(path.clone()),
            (text, _) if text.starts_with("-o=") => scene.write(tail(word, 3)),
            _ => {}
        }
    }
    runs(scene);
}

/// `deno eval text`.
pub(super) fn deno(scene: &mut Scene<'_, '_>) {
    if let Some(at) = scene.leading().first.filter(|at| scene.exact(*at) == Some("eval")) {
        let text = joined(scene.words.get(at + 1..).unwrap_or_default());
        scene.opaque(Reason::InlineScript, text);
    }
    runs(scene);
}

/// Compilers: what they read, and the file they make.
pub(super) fn compiles(scene: &mut Scene<'_, '_>) {
    for arg in scene.args() {
        match arg {
            Arg::Option("o" | "output", Some(path)) => scene.write(path),
            Arg::Option("out-dir", Some(path)) => scene.effect(Access::Write, path, true),
            Arg::Operand(index) => {
                if let Some(path) = scene.word(index) {
                    scene.read(path.clone(), Lines::Some);
                }
            }
            Arg::Option(..) => {}
        }
    }
    for (at, word) in scene.words.iter().enumerate() {
        // Where the dependencies are listed.
        if word.text == "-MF"
            && let Some(path) = scene.word(at + 1)
        {
            scene.write(path.clone());
        }
    }
    scene.opaque(Reason::Runner, "");
}
