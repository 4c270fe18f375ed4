//! Programs that run a command inside a project or environment they manage:
//! `uv run cmd`, `bundle exec cmd`, `conda run -n x cmd`.

use crate::line::{Lines, Reason, Word};
use crate::scene::{Arg, Args, Scene};
use crate::state::moved;

use super::runners::runs;
use super::wrappers::run_in;

/// The options behind `run` that take a value.
const RUN: &str = "w with with-editable with-requirements python p extra no-extra group no-group \
    only-group project directory env-file package index default-index i index-url extra-index-url \
    f find-links P upgrade-package reinstall-package refresh-package resolution prerelease \
    index-strategy keyring-provider fork-strategy C config-setting exclude-newer link-mode \
    no-build-package no-binary-package cache-dir python-preference python-platform color \
    allow-insecure-host config-file m module n name prefix cwd spec pip-args venv gemfile e env \
    from preinstall";

/// `bundle exec cmd`, `rbenv exec cmd`, `npm exec -- cmd`.
pub(super) fn executes(scene: &mut Scene<'_, '_>) {
    subcommand(scene, &["exec", "x", "dlx"]);
}

/// `poetry run cmd`, `uv run cmd`, `conda run -n env cmd`.
pub(super) fn runs_in(scene: &mut Scene<'_, '_>) {
    subcommand(scene, &["run"]);
}

fn subcommand(scene: &mut Scene<'_, '_>, names: &[&str]) {
    let own = scene.leading();
    // `uv tool run cmd`
    let at = own.first.map(|at| at + usize::from(scene.exact(at) == Some("tool")));
    let words = at.and_then(|at| scene.words.get(at..)).unwrap_or_default();
    let named = words.first().and_then(Word::exact).is_some_and(|name| names.contains(&name));
    if !named {
        runs(scene);
        return;
    }
    let mut dir = own.value(&["C", "directory", "cwd", "dir"]);
    let mut is_script = false;
    let mut args = Args::new(words, RUN);
    while let Some(arg) = args.next() {
        let rest = words.get(args.position()..).unwrap_or_default();
        match arg {
            Arg::Option("directory" | "cwd", value) => dir = value,
            Arg::Option("s" | "script", _) => is_script = true,
            Arg::Option("c" | "call", value) => {
                if let Some(text) = value.or_else(|| rest.first().cloned()) {
                    scene.child_text(&text, None);
                }
                return;
            }
            // A module is run like a program of its name.
            Arg::Option("m" | "module", Some(program)) => {
                run(scene, dir.as_ref(), &program, rest);
                return;
            }
            Arg::Option(..) => {}
            Arg::Operand(index) => {
                let Some(program) = words.get(index) else { return };
                let ends_in_py = ends_in(program, ".py");
                if program.text == "-" {
                    // The script is on its input.
                    run(scene, None, &Word::literal("python"), &[]);
                } else if is_script || ends_in_py {
                    scene.opaque(Reason::ScriptFile, program.text.clone());
                    scene.read(program.clone(), Lines::Some);
                } else {
                    run(scene, dir.as_ref(), program, rest);
                }
                return;
            }
        }
    }
}

fn ends_in(word: &Word<'_>, suffix: &str) -> bool {
    word.exact().is_some_and(|text| text.ends_with(suffix))
}

fn run<'a>(
    scene: &mut Scene<'_, 'a>,
    dir: Option<&Word<'a>>,
    program: &Word<'a>,
    rest: &[Word<'a>],
) {
    let mut words = alloc::vec![program.clone()];
    words.extend(rest.iter().cloned());
    let dir = dir.map(|dir| moved(&scene.walk.state.dir, dir));
    run_in(scene, dir, words);
}

/// `direnv exec dir cmd`.
pub(super) fn direnv(scene: &mut Scene<'_, '_>) {
    match scene.leading().first {
        Some(at) if scene.exact(at) == Some("exec") => scene.run_from(at + 2, scene.exit),
        _ => runs(scene),
    }
}
