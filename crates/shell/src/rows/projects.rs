//! Programs that run a command inside a project or environment they manage:
//! `uv run cmd`, `bundle exec cmd`, `conda run -n x cmd`.

use crate::command_context::{ArgReader, CommandArg, CommandContext};
use crate::shell_line::{OpaqueReason, ReadExtent, ShellWord};
use crate::shell_state::dir_after_cd;

use super::runners::run_project_files;
use super::wrappers::run_in;

/// The options behind `run` that take a value.
const RUN_OPTIONS: &str = "w with with-editable with-requirements python p extra no-extra group no-group \
    only-group project directory env-file package index default-index i index-url extra-index-url \
    f find-links P upgrade-package reinstall-package refresh-package resolution prerelease \
    index-strategy keyring-provider fork-strategy C config-setting exclude-newer link-mode \
    no-build-package no-binary-package cache-dir python-preference python-platform color \
    allow-insecure-host config-file m module n name prefix cwd spec pip-args venv gemfile e env \
    from preinstall";

/// `bundle exec cmd`, `rbenv exec cmd`, `npm exec -- cmd`.
pub(super) fn run_exec_subcommand(context: &mut CommandContext<'_, '_>) {
    run_subcommand(context, &["exec", "x", "dlx"]);
}

/// `poetry run cmd`, `uv run cmd`, `conda run -n env cmd`.
pub(super) fn run_run_subcommand(context: &mut CommandContext<'_, '_>) {
    run_subcommand(context, &["run"]);
}

fn run_subcommand(context: &mut CommandContext<'_, '_>, names: &[&str]) {
    let options = context.leading_options();
    // `uv tool run cmd`
    let at =
        options.first_operand.map(|at| at + usize::from(context.exact_text(at) == Some("tool")));
    let words = at.and_then(|at| context.words.get(at..)).unwrap_or_default();
    let named =
        words.first().and_then(ShellWord::exact_text).is_some_and(|name| names.contains(&name));
    if !named {
        run_project_files(context);
        return;
    }
    let mut dir = options.option_value(&["C", "directory", "cwd", "dir"]);
    let mut is_script = false;
    let mut args = ArgReader::new(words, RUN_OPTIONS);
    while let Some(arg) = args.next() {
        let rest = words.get(args.position()..).unwrap_or_default();
        match arg {
            CommandArg::Option("directory" | "cwd", value) => dir = value,
            CommandArg::Option("s" | "script", _) => is_script = true,
            CommandArg::Option("c" | "call", value) => {
                if let Some(text) = value.or_else(|| rest.first().cloned()) {
                    context.run_child_text(&text, None);
                }
                return;
            }
            // A module runs like a program with the same name.
            CommandArg::Option("m" | "module", Some(program)) => {
                run_program(context, dir.as_ref(), &program, rest);
                return;
            }
            CommandArg::Option(..) => {}
            CommandArg::Operand(index) => {
                let Some(program) = words.get(index) else { return };
                let ends_in_py = ends_in(program, ".py");
                if program.text == "-" {
                    // The input is the script.
                    run_program(context, None, &ShellWord::literal("python"), &[]);
                } else if is_script || ends_in_py {
                    context.add_opaque(OpaqueReason::ScriptFile, program.text.clone());
                    context.add_read(program.clone(), ReadExtent::Partial);
                } else {
                    run_program(context, dir.as_ref(), program, rest);
                }
                return;
            }
        }
    }
}

fn ends_in(word: &ShellWord<'_>, suffix: &str) -> bool {
    word.exact_text().is_some_and(|text| text.ends_with(suffix))
}

fn run_program<'a>(
    context: &mut CommandContext<'_, 'a>,
    dir: Option<&ShellWord<'a>>,
    program: &ShellWord<'a>,
    rest: &[ShellWord<'a>],
) {
    let mut words = alloc::vec![program.clone()];
    words.extend(rest.iter().cloned());
    let dir = dir.map(|dir| dir_after_cd(&context.walk.state.dir, dir));
    run_in(context, dir, words);
}

/// `direnv exec dir cmd`.
pub(super) fn direnv(context: &mut CommandContext<'_, '_>) {
    match context.leading_options().first_operand {
        Some(at) if context.exact_text(at) == Some("exec") => {
            context.run_from(at + 2, context.exit);
        }
        _ => run_project_files(context),
    }
}
