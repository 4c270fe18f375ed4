//! Programs that run commands from project files. They are in the table, but opaque.

use super::wrappers::join_words;
use crate::command_context::{CommandArg, CommandContext, is_device, word_tail};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, WordKind};
use crate::shell_state::dir_after_cd;
use crate::shell_walk::StreamContent;

/// A program that runs commands from files of the project.
pub(super) fn run_project_files(context: &mut CommandContext<'_, '_>) {
    let idle = context.words.len() == 2
        && matches!(context.exact_text(1), Some("--version" | "-V" | "--help" | "-h" | "version"));
    if !idle {
        context.add_opaque(OpaqueReason::Runner, "");
    }
}

/// `make -C dir target`.
pub(super) fn run_make(context: &mut CommandContext<'_, '_>) {
    if let Some(dir) = context.option_value(&["C", "directory"]) {
        let dir = dir_after_cd(&context.walk.state.dir, &dir);
        context.set_working_dir(dir);
    }
    let from_input = context
        .option_value(&["f", "file", "makefile"])
        .is_some_and(|path| is_device(&path) || path.kind == WordKind::Unknown);
    match context.stdin_content() {
        StreamContent::Text(text) | StreamContent::PartialText(text) if from_input => {
            context.add_opaque(OpaqueReason::InlineScript, text);
        }
        _ if from_input => context.add_opaque(OpaqueReason::UnknownScript, ""),
        _ => {}
    }
    for word in context.words.iter().skip(1) {
        // `make` may run a variable of its command line as shell text.
        if word.text.contains('=') && word.text.contains("$(shell") {
            context.add_opaque(OpaqueReason::InlineScript, word.text.clone());
        }
        if word.text.starts_with("--eval") || word.text.starts_with("SHELL=") {
            context.add_opaque(OpaqueReason::InlineScript, word.text.clone());
        }
    }
    run_project_files(context);
}

/// Formatters and linters that rewrite their operands.
pub(super) fn format_files(context: &mut CommandContext<'_, '_>) {
    let name = context.exact_text(0).unwrap_or_default();
    let name = crate::shell_line::base_name(name);
    let (writes, skip) = match name {
        "black" | "isort" => (!context.has_option(&["check", "diff", "check-only", "c"]), 0),
        "ruff" => match context.exact_text(1) {
            Some("format") => (!context.has_option(&["check", "diff"]), 1),
            _ => (context.has_option(&["fix"]), 1),
        },
        "gofmt" => (context.has_option(&["w"]), 0),
        "prettier" | "shfmt" => (context.has_option(&["w", "write"]), 0),
        "rustfmt" => (!context.has_option(&["check"]), 0),
        "clang-format" => (context.has_option(&["i"]), 0),
        "tidy" => (context.has_option(&["m", "modify"]), 0),
        _ => (context.has_option(&["fix"]), 0),
    };
    if let Some(path) = context.option_value(&["o", "output-file"]) {
        context.add_write(path);
    }
    for path in context.operands().into_iter().skip(skip) {
        let access = if writes { Access::Edit } else { Access::Read(ReadExtent::Partial) };
        context.add_effect(access, path, true);
    }
    context.add_opaque(OpaqueReason::Runner, "");
}

/// `go build -o file`.
pub(super) fn run_go(context: &mut CommandContext<'_, '_>) {
    for (at, word) in context.words.iter().enumerate() {
        match (&*word.text, context.word(at + 1)) {
            ("-o", Some(path)) => context.add_write(path.clone()),
            (text, _) if text.starts_with("-o=") => context.add_write(word_tail(word, 3)),
            _ => {}
        }
    }
    run_project_files(context);
}

/// `deno eval text`.
pub(super) fn run_deno(context: &mut CommandContext<'_, '_>) {
    if let Some(at) =
        context.leading_options().first_operand.filter(|at| context.exact_text(*at) == Some("eval"))
    {
        let text = join_words(context.words.get(at + 1..).unwrap_or_default());
        context.add_opaque(OpaqueReason::InlineScript, text);
    }
    run_project_files(context);
}

/// Compilers: the files they read and the file they write.
pub(super) fn compile_files(context: &mut CommandContext<'_, '_>) {
    for arg in context.args() {
        match arg {
            CommandArg::Option("o" | "output", Some(path)) => context.add_write(path),
            CommandArg::Option("out-dir", Some(path)) => {
                context.add_effect(Access::Write, path, true);
            }
            CommandArg::Operand(index) => {
                if let Some(path) = context.word(index) {
                    context.add_read(path.clone(), ReadExtent::Partial);
                }
            }
            CommandArg::Option(..) => {}
        }
    }
    for (at, word) in context.words.iter().enumerate() {
        // `-MF` names the file for the list of dependencies.
        if word.text == "-MF"
            && let Some(path) = context.word(at + 1)
        {
            context.add_write(path.clone());
        }
    }
    context.add_opaque(OpaqueReason::Runner, "");
}
