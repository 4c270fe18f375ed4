//! Programs that run a script: shells, whose language we read, and other interpreters.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::wrappers::join_words;
use crate::command_context::{ArgReader, CommandArg, CommandContext, is_device};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord, WordKind};
use crate::shell_walk::{ExitProof, StreamContent};

/// The options of a shell program.
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent fact")]
struct ShellOptions<'a> {
    /// `-c` is given: the first operand is the script.
    is_command_text: bool,
    pipefail: bool,
    errexit: bool,
    /// The shell only prints its version or help.
    only_prints_help: bool,
    /// `-s`: the shell reads the script from its input and not from an operand.
    reads_input: bool,
    /// The file that an interactive shell reads first.
    startup_file: Option<ShellWord<'a>>,
    /// The index of the first operand.
    first_operand: usize,
}

fn shell_options<'a>(context: &CommandContext<'_, 'a>) -> ShellOptions<'a> {
    let mut shell = ShellOptions {
        is_command_text: false,
        pipefail: false,
        errexit: false,
        only_prints_help: false,
        reads_input: false,
        startup_file: None,
        first_operand: 1,
    };
    while let Some(word) = context.word(shell.first_operand) {
        let text = &*word.text;
        if !text.starts_with(['-', '+']) || text.len() < 2 || word.kind != WordKind::Literal {
            break;
        }
        shell.first_operand += 1;
        match text {
            "--" => break,
            "--rcfile" | "--init-file" => {
                shell.startup_file = context.word(shell.first_operand).cloned();
                shell.first_operand += 1;
            }
            "--version" | "--help" => shell.only_prints_help = true,
            _ if text.starts_with("--") => {}
            _ => {
                shell.is_command_text |= text.contains('c');
                shell.reads_input |= text.contains('s');
                shell.errexit |= text.contains('e');
                if text.contains(['o', 'O']) {
                    shell.pipefail |= context.exact_text(shell.first_operand) == Some("pipefail");
                    shell.errexit |= context.exact_text(shell.first_operand) == Some("errexit");
                    shell.first_operand += 1;
                }
            }
        }
    }
    shell
}

/// `bash -c text`, `bash file`, `bash < file`.
pub(super) fn run_shell(context: &mut CommandContext<'_, '_>) {
    let shell = shell_options(context);
    if shell.only_prints_help {
        return;
    }
    match shell.startup_file {
        Some(file) if file.text.starts_with("/dev/fd/") => run_substitution_output(context),
        Some(file) => {
            context.add_read(file.clone(), ReadExtent::Partial);
            context.add_opaque(OpaqueReason::ScriptFile, file.text);
        }
        None => {}
    }
    let outer = context.walk.state.clone();
    context.walk.state = outer.child_state();
    // The options of the inner shell decide how it treats failures.
    context.walk.state.pipefail = shell.pipefail;
    context.walk.state.errexit = shell.errexit;
    match context.word(shell.first_operand).cloned() {
        Some(text) if shell.is_command_text => {
            let parameters = context.words.get(shell.first_operand + 2..).unwrap_or_default();
            context.walk.state.positional = Some(own_words(parameters));
            context.walk.state.script_name =
                context.exact_text(shell.first_operand + 1).map(Into::into);
            context.run_text(&text, context.exit);
        }
        Some(file) if !shell.reads_input && !is_device(&file) => {
            context.add_read(file.clone(), ReadExtent::Partial);
            context.add_opaque(OpaqueReason::ScriptFile, file.text.clone());
            if let Some(script) = context.walk.text_written_to(&file.text) {
                let parameters = context.words.get(shell.first_operand + 1..).unwrap_or_default();
                context.walk.state.positional = Some(own_words(parameters));
                context.run_text(&ShellWord::literal(script), context.exit);
            }
        }
        Some(file) if file.text.starts_with("/dev/fd/") => run_substitution_output(context),
        _ => {
            let parameters = context.words.get(shell.first_operand..).unwrap_or_default();
            context.walk.state.positional = shell.reads_input.then(|| own_words(parameters));
            run_stdin(context);
        }
    }
    context.walk.state = outer;
}

fn own_words(words: &[ShellWord<'_>]) -> Arc<[ShellWord<'static>]> {
    words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into()
}

/// Walks the output of `<(…)` as shell text: `bash <(echo text)`.
fn run_substitution_output(context: &mut CommandContext<'_, '_>) {
    match context.walk.substitution_output.take() {
        Some(StreamContent::Text(text)) => {
            context.run_text(&ShellWord::literal(text), context.exit);
        }
        Some(StreamContent::PartialText(text)) => {
            context.run_text(&ShellWord::unknown(text), context.exit);
        }
        _ => {
            let handed = context.walk.shared.descriptor_texts.join("\n");
            context.add_opaque(OpaqueReason::UnknownScript, handed);
        }
    }
}

/// A shell that reads its commands from its input.
pub(super) fn run_child_stdin(context: &mut CommandContext<'_, '_>) {
    let outer = context.walk.state.clone();
    context.walk.state = outer.child_state();
    run_stdin(context);
    context.walk.state = outer;
}

fn run_stdin(context: &mut CommandContext<'_, '_>) {
    match core::mem::take(&mut context.walk.stdin) {
        StreamContent::Text(text) => {
            context
                .run_text(&ShellWord { text: text.clone(), kind: WordKind::Literal }, context.exit);
            context.walk.stdin = StreamContent::Text(text);
        }
        StreamContent::PartialText(text) => {
            context
                .run_text(&ShellWord { text: text.clone(), kind: WordKind::Unknown }, context.exit);
            context.walk.stdin = StreamContent::PartialText(text);
        }
        StreamContent::File(file) => {
            context.add_opaque(OpaqueReason::ScriptFile, file.text.clone());
            context.walk.stdin = StreamContent::File(file);
        }
        other => {
            // The script may be a text that a redirection put on another descriptor.
            let handed = context.walk.shared.descriptor_texts.join("\n");
            context.add_opaque(OpaqueReason::UnknownScript, handed);
            context.walk.stdin = other;
        }
    }
}

/// Shells with another language. We read the text as bash and also report it as opaque.
pub(super) fn foreign_shell(context: &mut CommandContext<'_, '_>) {
    match context.leading_options().option_value(&["c", "command", "commands", "C", "init-command"])
    {
        Some(text) => {
            context.add_opaque(OpaqueReason::InlineScript, text.text.clone());
            context.run_child_text(&text, None);
        }
        None => report_script_or_stdin(context),
    }
}

/// `eval a b`: this shell runs the joined words.
pub(super) fn run_eval(context: &mut CommandContext<'_, '_>) {
    let words = context.words.get(1..).unwrap_or_default();
    let words = words.strip_prefix(&[ShellWord::literal("--")]).unwrap_or(words);
    let literal = words.iter().all(|word| word.kind == WordKind::Literal);
    let known = if literal { WordKind::Literal } else { WordKind::Unknown };
    let text = match words {
        [] => return,
        [only] => only.text.clone(),
        _ => Cow::Owned(join_words(words)),
    };
    context.run_text(&ShellWord { text, kind: known }, context.exit);
    if known == WordKind::Unknown {
        context.walk.state.forget_variables();
        context.walk.state.dir = crate::shell_line::WorkingDir::Unknown;
    }
}

/// `. file`.
pub(super) fn source_file(context: &mut CommandContext<'_, '_>) {
    let Some(file) = context.word(1).cloned() else { return };
    match (&*file.text, context.walk.stdin.clone()) {
        ("/dev/stdin" | "-", StreamContent::Text(text)) => {
            context.run_text(&ShellWord { text, kind: WordKind::Literal }, context.exit);
            return;
        }
        (path, _) if path.starts_with("/dev/fd/") => run_substitution_output(context),
        (path, _) if path.starts_with("/dev/") => {
            context.add_opaque(OpaqueReason::UnknownScript, "");
        }
        _ => {
            context.add_read(file.clone(), ReadExtent::Partial);
            context.add_opaque(OpaqueReason::ScriptFile, file.text.clone());
            if let Some(script) = context.walk.text_written_to(&file.text) {
                context.run_text(&ShellWord::literal(script), context.exit);
            }
        }
    }
    context.walk.state.forget_variables();
    context.walk.state.functions.iter_mut().for_each(|function| function.is_certain = false);
    // A sourced script may change the directory. `activate` scripts do not.
    if context.exact_text(1).is_none_or(|path| !path.ends_with("activate")) {
        context.walk.state.dir = crate::shell_line::WorkingDir::Unknown;
    }
}

/// `python -c text`, `python -m module`, `python file`.
pub(super) fn run_python(context: &mut CommandContext<'_, '_>) {
    let mut args = context.args();
    while let Some(arg) = args.next() {
        match arg {
            CommandArg::Option("c", text) => {
                let text = text.map_or(Cow::Borrowed(""), |word| word.text);
                context.add_opaque(OpaqueReason::InlineScript, text);
                return;
            }
            CommandArg::Option("m", module) => {
                let mut words: Vec<_> = module.into_iter().collect();
                words.extend(remaining_words(context, &args).iter().cloned());
                context.run_words(words, context.exit);
                return;
            }
            CommandArg::Option("V" | "version" | "h" | "help", _) => return,
            CommandArg::Operand(_) => break,
            CommandArg::Option(..) => {}
        }
    }
    report_script_or_stdin(context);
}

/// The words that the argument reader has not read yet.
fn remaining_words<'w, 'a>(
    context: &CommandContext<'w, 'a>,
    args: &ArgReader<'w, 'a>,
) -> &'w [ShellWord<'a>] {
    context.words.get(args.position()..).unwrap_or_default()
}

/// `perl -i -pe text file`.
pub(super) fn run_perl(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    let in_place = options.has_option(&["i"]);
    let mut inline = false;
    for arg in context.args() {
        match arg {
            CommandArg::Option("e" | "E", Some(text)) => {
                inline = true;
                context.add_opaque(OpaqueReason::InlineScript, text.text);
            }
            CommandArg::Option(..) => {}
            CommandArg::Operand(_) => break,
        }
    }
    if !inline {
        report_script_or_stdin(context);
        return;
    }
    // Without `-n` or `-p` the script itself decides what to do with the operands.
    let paths = options
        .first_operand
        .filter(|_| options.has_option(&["n", "p"]))
        .and_then(|at| context.words.get(at..));
    for path in paths.unwrap_or_default().iter().cloned() {
        let access = if in_place { Access::Edit } else { Access::Read(ReadExtent::Partial) };
        context.add_effect(access, path, false);
    }
}

/// `node -e text`, `ruby file`, `php -r text`.
pub(super) fn run_interpreter(context: &mut CommandContext<'_, '_>) {
    let php = context.exact_text(0).is_some_and(|name| name.ends_with("php"));
    let node = context.exact_text(0).is_some_and(|name| name.contains("node"));
    let mut inline = false;
    let mut args = context.args();
    while let Some(arg) = args.next() {
        match arg {
            CommandArg::Option("e" | "eval" | "print", Some(text)) => {
                inline = true;
                context.add_opaque(OpaqueReason::InlineScript, text.text);
            }
            CommandArg::Option("p", Some(text)) if node => {
                inline = true;
                // `-pe text` is `-p text`.
                let text = match &*text.text {
                    "e" => remaining_words(context, &args).first().cloned().unwrap_or(text),
                    _ => text,
                };
                context.add_opaque(OpaqueReason::InlineScript, text.text);
            }
            CommandArg::Option("r" | "B" | "R" | "E", Some(text)) if php => {
                inline = true;
                context.add_opaque(OpaqueReason::InlineScript, text.text);
            }
            CommandArg::Option("v" | "version" | "h" | "help", _) => return,
            CommandArg::Operand(_) => break,
            CommandArg::Option(..) => {}
        }
    }
    if !inline {
        report_script_or_stdin(context);
    }
}

/// Reports the script file, or the input if that is the script.
fn report_script_or_stdin(context: &mut CommandContext<'_, '_>) {
    let operand = context.args().find_map(|arg| match arg {
        CommandArg::Operand(index) => context.word(index).cloned(),
        CommandArg::Option(..) => None,
    });
    match operand {
        Some(file) if !is_device(&file) => {
            context.add_read(file.clone(), ReadExtent::Partial);
            context.add_opaque(OpaqueReason::ScriptFile, file.text.clone());
            if let Some(script) = context.walk.text_written_to(&file.text) {
                context.add_opaque(OpaqueReason::InlineScript, script);
            }
        }
        Some(file) if file.text.starts_with("/dev/fd/") => {
            context.add_opaque(OpaqueReason::UnknownScript, "");
        }
        _ => match context.stdin_content() {
            StreamContent::Text(text) | StreamContent::PartialText(text) => {
                context.add_opaque(OpaqueReason::InlineScript, text);
            }
            StreamContent::File(file) => context.add_opaque(OpaqueReason::ScriptFile, file.text),
            StreamContent::Inherited | StreamContent::FileNames(_) | StreamContent::Unknown => {
                context.add_opaque(OpaqueReason::UnknownScript, "");
            }
        },
    }
}

/// `ed`, `vim -c`: editors whose commands we do not read.
pub(super) fn run_editor(context: &mut CommandContext<'_, '_>) {
    let mut text = String::new();
    for arg in context.args() {
        match arg {
            CommandArg::Option("c" | "cmd" | "eval", Some(command)) => {
                text.push_str(&command.text);
                text.push('\n');
            }
            CommandArg::Operand(index) => {
                if let Some(word) = context.word(index) {
                    if word.text.starts_with('+') {
                        text.push_str(&word.text);
                        text.push('\n');
                    } else {
                        context.add_effect(Access::Edit, word.clone(), false);
                    }
                }
            }
            CommandArg::Option(..) => {}
        }
    }
    if let StreamContent::Text(input) | StreamContent::PartialText(input) = context.stdin_content()
    {
        text.push_str(&input);
    }
    context.add_opaque(OpaqueReason::InlineScript, text);
}

/// `watch cmd` runs its words repeatedly as shell text; `watch -x` runs them directly.
pub(super) fn run_watch(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    let Some(at) = options.first_operand else { return };
    let words = context.words.get(at..).unwrap_or_default();
    if options.has_option(&["x", "exec"]) {
        context.run_repeatedly(words.to_vec());
        return;
    }
    run_text_repeatedly(context, words);
}

/// Walks words as shell text that runs any number of times.
fn run_text_repeatedly<'a>(context: &mut CommandContext<'_, 'a>, words: &[ShellWord<'a>]) {
    let literal = words.iter().all(|word| word.kind == WordKind::Literal);
    let known = if literal { WordKind::Literal } else { WordKind::Unknown };
    let exit = core::mem::replace(&mut context.exit, ExitProof::LOST);
    context.run_child_text(&ShellWord { text: Cow::Owned(join_words(words)), kind: known }, None);
    context.exit = exit;
}

/// `parallel` builds commands from its input and runs them in a shell.
pub(super) fn run_parallel(context: &mut CommandContext<'_, '_>) {
    let text = join_words(context.words.get(1..).unwrap_or_default());
    context.add_opaque(OpaqueReason::UnknownScript, text);
    let options = context.leading_options();
    if let Some(path) = options.option_value(&["joblog"]) {
        context.add_write(path);
    }
    let words = options.first_operand.and_then(|at| context.words.get(at..)).unwrap_or_default();
    let given = words.iter().position(|word| word.text.starts_with(":::"));
    let mut words = words.get(..given.unwrap_or(words.len())).unwrap_or_default().to_vec();
    if words.is_empty() {
        return;
    }
    for word in words.iter_mut().filter(|word| word.text.contains('{')) {
        word.kind = WordKind::Unknown;
    }
    let is_text =
        |word: &ShellWord<'_>| word.text.contains([' ', ';', '|', '&', '<', '>', '$', '`']);
    if words.iter().any(is_text) {
        run_text_repeatedly(context, &words);
    } else {
        words.push(ShellWord::unknown("{}"));
        context.run_repeatedly(words);
    }
}

/// Programs that run something the line does not show.
pub(super) fn unknown_script(context: &mut CommandContext<'_, '_>) {
    let mut text = join_words(context.words.get(1..).unwrap_or_default());
    if let StreamContent::Text(input) | StreamContent::PartialText(input) = context.stdin_content()
    {
        text.push('\n');
        text.push_str(&input);
    }
    context.add_opaque(OpaqueReason::UnknownScript, text);
}
