//! Programs that run the rest of their words as a command.
//!
//! Their own options end at the first operand. [`CommandContext::leading_options`]
//! reads only these: an option behind the operand belongs to the inner command.

use alloc::string::String;
use alloc::vec::Vec;

use crate::command_context::{CommandArg, CommandContext, word_tail};
use crate::limits::NESTED_TEXTS_MAX;
use crate::shell_line::{Access, OpaqueReason, ShellWord, WorkingDir, base_name};
use crate::shell_state::dir_after_cd;
use crate::word_scanner::is_name;

/// `nohup cmd`, `nice -n 5 cmd`.
pub(super) fn run_rest(context: &mut CommandContext<'_, '_>) {
    if let Some(at) = context.leading_options().first_operand {
        context.run_from(at, context.exit);
    }
}

/// `time -o log cmd`, `strace -o log cmd`: programs that write a log file.
pub(super) fn run_and_log(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.leading_options().option_value(&["o", "output", "log-file"]) {
        if path.text.starts_with(['|', '!']) {
            context.run_child_text(&word_tail(&path, 1), None);
        } else {
            context.add_write(path);
        }
    }
    run_rest(context);
}

/// `timeout 5 cmd`: one operand, then the command.
pub(super) fn run_after_operand(context: &mut CommandContext<'_, '_>) {
    if let Some(at) = context.leading_options().first_operand {
        context.run_from(at + 1, context.exit);
    }
}

/// `command cmd`; `command -v cmd` only looks up the program.
pub(super) fn run_command(context: &mut CommandContext<'_, '_>) {
    if !context.leading_options().has_option(&["v", "V"]) {
        run_rest(context);
    }
}

/// `exec cmd`. Without a command its redirections apply to the shell itself.
pub(super) fn run_exec(context: &mut CommandContext<'_, '_>) {
    if context.leading_options().first_operand.is_none() {
        context.walk.keep_stdin = true;
        return;
    }
    run_rest(context);
    // The program replaces the shell, so the line ends here.
    context.walk.shared.may_have_ended = true;
    context.walk.shared.may_have_succeeded = true;
}

/// `env -C dir A=b cmd`.
pub(super) fn run_env(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    if options.has_option(&["S", "split-string"]) {
        run_split_env(context);
        return;
    }
    let Some(mut at) = options.first_operand else { return };
    // A single dash means `-i`.
    at += usize::from(context.exact_text(at) == Some("-"));
    while context.word(at).is_some_and(|word| word.text.contains('=')) {
        record_assignment(context, at);
        at += 1;
    }
    let dir = options
        .option_value(&["C", "chdir"])
        .map(|dir| dir_after_cd(&context.walk.state.dir, &dir));
    run_words_in(context, dir, at);
}

/// `env -S 'A=b cmd x' y`: splits a text into words and adds the words behind it. The
/// words of the text may be options again.
fn run_split_env(context: &mut CommandContext<'_, '_>) {
    let mut words = alloc::vec![ShellWord::literal("env")];
    let mut args = context.args();
    let text = loop {
        match args.next() {
            Some(CommandArg::Option("C" | "chdir", Some(dir))) => {
                words.extend([ShellWord::literal("-C"), dir]);
            }
            Some(CommandArg::Option("S" | "split-string", text)) => break text,
            Some(CommandArg::Option(..)) => {}
            Some(CommandArg::Operand(_)) | None => return,
        }
    };
    let Some(text) = text else { return };
    let rest = context.words.get(args.position()..).unwrap_or_default();
    let Some(parts) =
        split_words(&text).filter(|_| context.walk.shared.text_depth < NESTED_TEXTS_MAX)
    else {
        let whole = [&*text.text, " ", &join_words(rest)].concat();
        context.run_child_text(&ShellWord::unknown(whole), None);
        return;
    };
    words.extend(parts);
    words.extend(rest.iter().cloned());
    context.walk.shared.text_depth += 1;
    run_env(&mut CommandContext {
        walk: context.walk,
        words: &words,
        index: context.index,
        exit: context.exit,
        options: context.options,
        span: context.span,
    });
    context.walk.shared.text_depth -= 1;
}

/// Splits a text for `env -S`. `None` where it contains escapes, `$` or `#`.
fn split_words<'a>(text: &ShellWord<'_>) -> Option<Vec<ShellWord<'a>>> {
    let text = text.exact_text()?.replace("\\_", " ");
    if text.contains(['\\', '$', '#']) {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in text.chars() {
        match (quote, char) {
            (Some(end), _) if char == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, _) if char.is_ascii_whitespace() => {
                words.extend(word.take().map(ShellWord::literal));
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word.map(ShellWord::literal));
    quote.is_none().then_some(words)
}

/// Records an assignment `A=b` before a command.
fn record_assignment(context: &mut CommandContext<'_, '_>, at: usize) {
    let Some(word) = context.word(at) else { return };
    let name = word.text.split('=').next().unwrap_or_default();
    if crate::simple_command::is_program_running_variable(name) {
        context.add_opaque(OpaqueReason::Environment, word.text.clone());
    }
    context.walk.state.home_changed |= name == "HOME";
}

/// Walks the words from `at` on as a command in another directory.
fn run_words_in(context: &mut CommandContext<'_, '_>, dir: Option<WorkingDir>, at: usize) {
    let words = context.words.get(at..).unwrap_or_default().to_vec();
    run_in(context, dir, words);
}

/// Walks words as a command in another directory.
pub(super) fn run_in<'a>(
    context: &mut CommandContext<'_, 'a>,
    dir: Option<WorkingDir>,
    words: Vec<ShellWord<'a>>,
) {
    let outer = context.walk.state.dir.clone();
    if let Some(dir) = dir {
        context.walk.state.dir = dir;
    }
    context.run_words(words, context.exit);
    context.walk.state.dir = outer;
}

/// `sudo -u root A=b cmd`. Its options may continue behind an assignment.
pub(super) fn run_sudo(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options_skipping(|word| {
        word.text.split_once('=').is_some_and(|(name, _)| is_name(name.as_bytes()))
    });
    for at in &options.skipped_operands {
        record_assignment(context, *at);
    }
    if options.has_option(&["e", "edit"]) {
        let paths =
            options.first_operand.and_then(|at| context.words.get(at..)).unwrap_or_default();
        for path in paths {
            context.add_effect(Access::Edit, path.clone(), false);
        }
        return;
    }
    if options.has_option(&["R", "chroot"]) {
        context.add_opaque(OpaqueReason::Elsewhere, join_words(context.words));
    }
    let Some(at) = options.first_operand else {
        if options.has_option(&["s", "i", "login", "shell"]) {
            super::interpreters::run_child_stdin(context);
        }
        return;
    };
    let dir = match options.option_value(&["D", "chdir"]) {
        Some(dir) => Some(dir_after_cd(&context.walk.state.dir, &dir)),
        None => options.has_option(&["i", "login"]).then_some(WorkingDir::Unknown),
    };
    run_words_in(context, dir, at);
}

/// `su user -c 'text'`, `su user -- args of the shell`, `runuser -u user cmd`.
pub(super) fn run_su(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    if options.has_option(&["u", "user"])
        && let Some(at) = options.first_operand
    {
        context.run_from(at, context.exit);
        return;
    }
    // All other options may also be behind the user.
    let outer = context.walk.state.dir.clone();
    let operands = context.operands();
    if operands.iter().any(|word| word.text == "-") || context.has_option(&["l", "login"]) {
        context.walk.state.dir = WorkingDir::Unknown;
    }
    let mut rest: Vec<_> = operands.into_iter().filter(|word| word.text != "-").collect();
    let is_command = context.has_option(&["u", "user"]);
    if !is_command && !rest.is_empty() {
        rest.remove(0);
    }
    let text = context.option_value(&["c", "command", "session-command"]);
    match (context.option_value(&["s", "shell"]), text) {
        _ if is_command => context.run_words(rest, context.exit),
        (None, Some(text)) => context.run_child_text(&text, rest.get(1..)),
        (None, None) if rest.is_empty() => super::interpreters::run_child_stdin(context),
        (shell, text) => {
            let mut words = alloc::vec![shell.unwrap_or_else(|| ShellWord::literal("sh"))];
            words.extend(text.into_iter().flat_map(|text| [ShellWord::literal("-c"), text]));
            words.extend(rest);
            context.run_words(words, context.exit);
        }
    }
    context.walk.state.dir = outer;
}

/// `script -c 'text' file`, `script file -c 'text'`, and on macOS `script file cmd`.
pub(super) fn run_script(context: &mut CommandContext<'_, '_>) {
    let first = context.leading_options().first_operand;
    let logs = ["I", "log-in", "O", "log-out", "B", "log-io", "T", "log-timing", "timing"];
    let mut logged = false;
    for name in logs {
        if let Some(path) = context.leading_options().option_value(&[name]) {
            context.add_write(path);
            logged = true;
        }
    }
    match first.and_then(|at| context.word(at)) {
        Some(path) => context.add_write(path.clone()),
        None if !logged => context.add_write(ShellWord::literal("typescript")),
        None => {}
    }
    let behind = first.map_or(context.words.len(), |at| at + 1);
    match context.exact_text(behind) {
        Some("--") => context.run_from(behind + 1, context.exit),
        None if context.word(behind).is_some() => context.run_from(behind, context.exit),
        Some(word) if !word.starts_with('-') => context.run_from(behind, context.exit),
        _ => match context.option_value(&["c", "command"]) {
            Some(text) => context.run_child_text(&text, None),
            None => super::interpreters::run_child_stdin(context),
        },
    }
}

/// `flock file cmd`, `flock file -c 'text'`.
pub(super) fn run_flock(context: &mut CommandContext<'_, '_>) {
    let Some(at) = context.leading_options().first_operand else { return };
    if let Some(path) = context.word(at) {
        context.add_effect(Access::Touch, path.clone(), false);
    }
    if matches!(context.exact_text(at + 1), Some("-c" | "--command")) {
        if let Some(text) = context.word(at + 2).cloned() {
            context.run_child_text(&text, None);
        }
    } else {
        context.run_from(at + 1, context.exit);
    }
}

/// `npx jest`, `npx -c 'text'`.
pub(super) fn run_npx(context: &mut CommandContext<'_, '_>) {
    if let Some(text) = context.leading_options().option_value(&["c", "call"]) {
        context.run_child_text(&text, None);
    }
    run_rest(context);
}

/// `setarch x86_64 -R cmd`: the machine is optional.
pub(super) fn run_setarch(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options_skipping(|word| {
        matches!(
            &*word.text,
            "linux32" | "linux64" | "uname26" | "i386" | "i486" | "i586" | "i686" | "x86_64"
        )
    });
    if let Some(at) = options.first_operand {
        context.run_from(at, context.exit);
    }
}

/// `unshare -w dir cmd`, `systemd-run --working-directory dir cmd`.
pub(super) fn run_in_namespace(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    let Some(at) = options.first_operand else { return };
    if options.has_option(&["R", "r", "root", "M", "machine", "H", "host"]) {
        context.add_opaque(OpaqueReason::Elsewhere, join_words(context.words));
    }
    let is_service = context.exact_text(0).is_some_and(|name| base_name(name) == "systemd-run");
    let here = !is_service || options.has_option(&["d", "same-dir", "scope"]);
    let dir =
        match options.option_value(&["w", "W", "wd", "wdns", "working-directory", "D", "chdir"]) {
            Some(dir) => Some(dir_after_cd(&context.walk.state.dir, &dir)),
            None => (!here).then_some(WorkingDir::Unknown),
        };
    run_words_in(context, dir, at);
}

/// `chroot dir cmd` runs in another file tree, unless the directory is `/`.
pub(super) fn run_chroot(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    match options.first_operand {
        Some(at)
            if context.exact_text(at).is_some_and(|root| root.trim_matches('/').is_empty()) =>
        {
            let dir = (!options.has_option(&["skip-chdir"])).then(|| WorkingDir::Path("/".into()));
            run_words_in(context, dir, at + 1);
        }
        _ => context.add_opaque(OpaqueReason::Elsewhere, join_words(context.words)),
    }
}

/// The words as one text that callers can search.
pub(super) fn join_words(words: &[ShellWord<'_>]) -> String {
    words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ")
}
