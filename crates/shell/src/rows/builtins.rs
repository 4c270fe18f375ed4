//! Programs that do nothing to files, and those that change the shell itself.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::wrappers::join_words;
use crate::command_context::{CommandArg, CommandContext};
use crate::shell_line::{OpaqueReason, ShellWord, WorkingDir};
use crate::shell_walk::{ExitProof, StreamContent};
use crate::word_scanner::is_name;

/// A program that reads and writes no file and runs no command.
pub(super) fn no_effects(_: &mut CommandContext<'_, '_>) {}

/// `echo`: its output may be the input of another command.
pub(super) fn echo(context: &mut CommandContext<'_, '_>) {
    let mut from = 1;
    while matches!(context.exact_text(from), Some("-n" | "-e" | "-E" | "-ne" | "-en")) {
        from += 1;
    }
    let words = context.words.get(from..).unwrap_or_default();
    let plain = |word: &ShellWord<'_>| word.exact_text().is_some_and(|text| !text.contains('\\'));
    let text = match words {
        [only] => only.text.clone(),
        _ => Cow::Owned(join_words(words)),
    };
    let output = if words.iter().all(plain) {
        StreamContent::Text(text)
    } else {
        StreamContent::PartialText(text)
    };
    context.walk.output = Some(output);
}

/// `printf`, if its format is simple.
pub(super) fn printf(context: &mut CommandContext<'_, '_>) {
    if let Some(name) = context.option_value(&["v"]) {
        context.walk.check_evaluated_text(Some(&name.text));
        let plain = is_name(name.text.as_bytes());
        let value = printf_output(&context.operands()).filter(|_| plain).map(Arc::from);
        let name = name.text.split('[').next().unwrap_or_default();
        context.walk.state.assign(name, value);
        return;
    }
    let operands = context.operands();
    context.walk.output = Some(match printf_output(&operands) {
        Some(text) => StreamContent::Text(Cow::Owned(text)),
        None => StreamContent::PartialText(Cow::Owned(join_words(&operands))),
    });
}

/// The output of `printf`. `None` where we cannot compute it.
fn printf_output(operands: &[ShellWord<'_>]) -> Option<String> {
    if operands.iter().any(|word| word.exact_text().is_none()) {
        return None;
    }
    let (format, rest) = operands.split_first()?;
    let format = format.text.replace("\\n", "\n");
    let escapes = format.contains("%b") && rest.iter().any(|word| word.text.contains('\\'));
    let format = format.replace("%b", "%s");
    let pieces: Vec<_> = format.split("%s").collect();
    if escapes || pieces.iter().any(|piece| piece.contains(['%', '\\'])) {
        return None;
    }
    let (last, before) = pieces.split_last()?;
    let mut rest = rest.iter();
    let mut text = String::new();
    // `printf` repeats the format until no word is left.
    loop {
        for piece in before {
            text.push_str(piece);
            text.push_str(rest.next().map_or("", |word| &word.text));
        }
        text.push_str(last);
        if before.is_empty() || rest.len() == 0 {
            return Some(text);
        }
    }
}

/// `test`, `[` and `let`, which evaluate subscripts.
pub(super) fn test(context: &mut CommandContext<'_, '_>) {
    for word in context.words {
        context.walk.check_evaluated_text(Some(&word.text));
    }
}

/// `cd` and `pushd`.
pub(super) fn cd(context: &mut CommandContext<'_, '_>) {
    let target = context.args().find_map(|arg| match arg {
        CommandArg::Operand(index) => context.word(index),
        CommandArg::Option(..) => None,
    });
    if target.is_none() && context.exact_text(0) == Some("pushd") {
        context.walk.state.dir = WorkingDir::Unknown;
        return;
    }
    context.walk.state.change_dir(target);
}

/// `popd` returns to a directory that we do not store.
pub(super) fn popd(context: &mut CommandContext<'_, '_>) {
    context.walk.state.dir = WorkingDir::Unknown;
}

/// `export`, `declare`, `local`, `readonly`, `typeset`.
pub(super) fn declare(context: &mut CommandContext<'_, '_>) {
    let special = context.words.iter().skip(1).any(|word| {
        let text = &*word.text;
        text.starts_with('-') && text.contains(['n', 'i', 'a', 'A', 'u', 'l', 'f'])
    });
    for word in context.words.iter().skip(1) {
        context.walk.check_evaluated_text(Some(&word.text));
        let Some((name, _)) = word.text.split_once('=') else {
            if special && is_name(word.text.as_bytes()) {
                context.walk.state.assign(&word.text, None);
            }
            continue;
        };
        let (name, append) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        if super::super::simple_command::is_program_running_variable(name) {
            context.add_opaque(OpaqueReason::Environment, word.text.clone());
        }
        let plain = is_name(name.as_bytes());
        let bare = name.split('[').next().unwrap_or_default();
        let start = name.len() + usize::from(append) + 1;
        let value = crate::command_context::word_tail(word, start);
        let value = (plain && !special && !value.text.starts_with('(')).then_some(value);
        context.walk.assign(bare, value.as_ref(), append);
    }
}

/// Builtins that give variables values that we do not know.
pub(super) fn set_variables(context: &mut CommandContext<'_, '_>) {
    for word in context.words.iter().skip(1) {
        context.walk.check_evaluated_text(Some(&word.text));
        let name = word.text.trim_start_matches("-a");
        let name = name.split('[').next().unwrap_or_default();
        context.walk.state.assign(name, None);
        if context.exact_text(0) == Some("unset") {
            context.walk.state.functions.iter_mut().for_each(|function| {
                function.is_certain &= *function.name != *name;
            });
        }
    }
    if let Some((name, words)) = read_array(context) {
        context.walk.state.assign_array(&name, words);
    }
    if let Some((name, value)) = read_line(context) {
        context.walk.state.assign(&name, Some(value));
    }
    if matches!(context.exact_text(0), Some("mapfile" | "readarray"))
        && let Some(callback) = context.option_value(&["C"])
    {
        context.run_text(&callback, ExitProof::LOST);
    }
}

/// `mapfile -t a <<< text`, `read -a a <<< text`: the array, with its words.
fn read_array(context: &CommandContext<'_, '_>) -> Option<(String, Vec<ShellWord<'static>>)> {
    let StreamContent::Text(text) = context.stdin_content() else { return None };
    let options = context.leading_options();
    let literal = |text: &str| ShellWord::literal(String::from(text));
    if text.contains('\\') || context.walk.state.ifs_changed {
        return None;
    }
    if context.exact_text(0) == Some("read") {
        let name = options
            .option_value(&["a"])
            .filter(|_| options.first_operand.is_none() && options.has_only_options(&["r", "a"]))?;
        return Some((name.text.into(), text.split_whitespace().map(literal).collect()));
    }
    let at = options
        .first_operand
        .filter(|at| context.words.len() == at + 1 && options.has_only_options(&["t"]))?;
    let lines = matches!(context.exact_text(0), Some("mapfile" | "readarray"));
    lines.then(|| {
        Some((String::from(context.exact_text(at)?), text.lines().map(literal).collect()))
    })?
}

/// `read -r x <<< text`: the variable and its value, for one variable and one line.
fn read_line(context: &CommandContext<'_, '_>) -> Option<(String, Arc<str>)> {
    let options = context.leading_options();
    let at = options.first_operand.filter(|at| context.words.len() == at + 1)?;
    let name = context.exact_text(at).filter(|name| is_name(name.as_bytes()))?;
    let StreamContent::Text(text) = context.stdin_content() else { return None };
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let plain = context.exact_text(0) == Some("read") && options.has_only_options(&["r", "s"]);
    let known = plain && !line.contains(['\n', '\\']) && !context.walk.state.ifs_changed;
    known.then(|| (String::from(name), Arc::from(line.trim())))
}

/// `set`: changes the positional parameters, and options such as `errexit`.
pub(super) fn set(context: &mut CommandContext<'_, '_>) {
    let mut at = 1;
    while let Some(word) = context.word(at) {
        let text = &*word.text;
        let (on, letters) = match text.split_at_checked(1) {
            Some(("-", letters)) => (true, letters),
            Some(("+", letters)) => (false, letters),
            _ => break,
        };
        at += 1;
        if text == "--" || text == "-" {
            let words = context.words.get(at..).unwrap_or_default();
            context.walk.state.positional =
                Some(words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into());
            return;
        }
        if letters.contains('e') {
            context.walk.state.errexit = on;
        }
        if letters.contains('o') {
            match context.exact_text(at) {
                Some("pipefail") => context.walk.state.pipefail = on,
                Some("errexit") => context.walk.state.errexit = on,
                _ => {}
            }
            at += 1;
        }
    }
    if at < context.words.len() {
        let words = context.words.get(at..).unwrap_or_default();
        let sure = words.first().is_some_and(|word| word.exact_text().is_some());
        context.walk.state.positional = sure
            .then(|| words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into());
    }
}

/// `shift`: removes the first positional parameters.
pub(super) fn shift(context: &mut CommandContext<'_, '_>) {
    let count = match context.word(1) {
        None => Some(1),
        Some(word) => word.exact_text().and_then(|text| text.parse::<usize>().ok()),
    };
    let state = &mut context.walk.state;
    state.positional =
        state.positional.take().zip(count).map(|(words, count)| {
            Arc::from(words.get(count.min(words.len())..).unwrap_or_default())
        });
}

/// `exit`, `return`, `break`, `continue`: no command behind them runs.
pub(super) fn leave_block(context: &mut CommandContext<'_, '_>) {
    let code = context.exact_text(1).and_then(|code| code.parse::<u8>().ok());
    let walk = &mut *context.walk;
    let shared = &mut walk.shared;
    let leaves_line = match context.words.first().and_then(ShellWord::exact_text) {
        Some("exit") => true,
        Some("return") => !shared.call_stack.is_empty(),
        _ => shared.loop_depth > 0,
    };
    shared.may_have_ended |= leaves_line;
    shared.may_have_succeeded |= leaves_line && code.is_none_or(|code| code == 0);
    walk.state.merge_dir_outcomes();
    let joined_state = match context.words.first().and_then(ShellWord::exact_text) {
        Some("return") if !walk.shared.call_stack.is_empty() => &mut walk.shared.returned_state,
        Some("break" | "continue") if walk.shared.loop_depth > 0 => &mut walk.shared.break_state,
        // Outside a function or loop bash prints an error and continues.
        Some("return" | "break" | "continue") => return,
        _ => {
            walk.state.is_unreachable = true;
            return;
        }
    };
    let state = walk.state.clone();
    *joined_state = Some(match joined_state.take() {
        Some(other) => other.join(state),
        None => state,
    });
    walk.state.is_unreachable = true;
}

/// `trap 'text' EXIT`.
pub(super) fn trap(context: &mut CommandContext<'_, '_>) {
    let operands = context.operands();
    let [text, _, ..] = operands.as_slice() else { return };
    context.walk.shared.has_trap = true;
    if text.exact_text().is_some_and(|text| text == "-" || text.is_empty()) {
        return;
    }
    let before = context.walk.state.clone();
    // The shell state is not known at the time when the trap runs.
    context.walk.state.forget_variables();
    context.walk.state.dir = WorkingDir::Unknown;
    context.walk.shared.condition_depth += 1;
    context.run_text(text, ExitProof::LOST);
    context.walk.shared.condition_depth -= 1;
    context.walk.state = before;
}

/// `alias x=…`: from here on `x` may run any command.
pub(super) fn alias(context: &mut CommandContext<'_, '_>) {
    for word in context.words.iter().skip(1) {
        if word.exact_text().is_none() {
            context.add_opaque(OpaqueReason::Alias, word.text.clone());
        }
        if let Some((name, value)) = word.text.split_once('=') {
            add_alias(context, name);
            let start = word.text.len() - value.len();
            let value = crate::command_context::word_tail(word, start);
            context.add_opaque(OpaqueReason::Alias, value.text.clone());
            // A use of the alias runs this text.
            context.walk.shared.condition_depth += 1;
            context.run_child_text(&value, None);
            context.walk.shared.condition_depth -= 1;
        }
    }
}

fn add_alias(context: &mut CommandContext<'_, '_>, name: &str) {
    if context.walk.state.aliases.len() >= crate::limits::NAMES_MAX {
        context.walk.give_up();
    } else {
        context.walk.state.aliases.push(String::from(name));
    }
}

/// `enable -f lib name` loads code.
pub(super) fn enable(context: &mut CommandContext<'_, '_>) {
    if let Some(library) = context.option_value(&["f"]) {
        context.add_opaque(OpaqueReason::ScriptFile, library.text);
    }
}

/// `hash -p /bin/rm ls`: `ls` now runs another program.
pub(super) fn hash(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["p"]) {
        context.add_opaque(OpaqueReason::Alias, path.text.clone());
        context.run_repeatedly(alloc::vec![path]);
        for name in context.operands() {
            add_alias(context, &name.text);
        }
    }
}

/// `history -w file`: writes the typed commands to a file.
pub(super) fn history(context: &mut CommandContext<'_, '_>) {
    if context.has_option(&["s", "p"]) {
        context.add_opaque(
            OpaqueReason::UnknownScript,
            join_words(context.words.get(2..).unwrap_or_default()),
        );
    }
    if context.has_option(&["w", "a"])
        && let Some(path) = context.operands().into_iter().next()
    {
        context.add_write(path);
    }
}

/// `jobs -x cmd` runs a command.
pub(super) fn jobs(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    if let Some(at) = options.first_operand.filter(|_| options.has_option(&["x"])) {
        context.run_from(at, context.exit);
    }
}

/// `complete -C text`, `compgen -C text`: bash runs the text to find completions.
pub(super) fn run_completion(context: &mut CommandContext<'_, '_>) {
    if let Some(text) = context.option_value(&["C"]) {
        context.run_child_text(&text, None);
    }
}
