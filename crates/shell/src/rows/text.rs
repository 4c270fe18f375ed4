//! Programs that read files and show or filter them.

use alloc::borrow::Cow;
use alloc::format;

use crate::command_context::{CommandArg, CommandContext};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord, WordKind, base_name};
use crate::shell_walk::StreamContent;

/// Programs that read all their operands.
pub(super) fn read_files(context: &mut CommandContext<'_, '_>) {
    for path in context.operands() {
        context.add_read(path, ReadExtent::Partial);
    }
}

/// `cat` and `nl` show whole files.
pub(super) fn show_files(context: &mut CommandContext<'_, '_>) {
    let operands = context.operands();
    let passes = operands.iter().all(|word| matches!(&*word.text, "-" | "/dev/stdin"));
    let single = operands.len() == 1 && !passes;
    if operands.is_empty() {
        context.set_piped_extent(ReadExtent::All);
    }
    for path in operands {
        context.add_read(path, ReadExtent::All);
    }
    if single {
        context.mark_lines_passed_on();
    }
    if passes
        && let input @ (StreamContent::Text(_) | StreamContent::PartialText(_)) =
            context.stdin_content()
    {
        context.walk.output = Some(input);
    }
}

/// Pagers. How much they show depends on the terminal. `less +'!cmd'` and
/// `bat --pager cmd` run a command.
pub(super) fn page_files(context: &mut CommandContext<'_, '_>) {
    if let Some(text) = context.option_value(&["pager"]) {
        context.run_child_text(&text, None);
    }
    if let Some(path) = context.option_value(&["o", "O", "log-file", "LOG-FILE"]) {
        context.add_write(path);
    }
    for path in context.operands() {
        if path.text.starts_with('+') && path.text.contains(['!', '|']) {
            context.add_opaque(OpaqueReason::InlineScript, path.text);
        } else {
            context.add_read(path, ReadExtent::Partial);
        }
    }
}

/// `man -P pager page`.
pub(super) fn show_manual(context: &mut CommandContext<'_, '_>) {
    if let Some(text) = context.option_value(&["P", "pager", "H", "html"]) {
        context.run_child_text(&text, None);
    }
}

/// `info -o file page`.
pub(super) fn show_info(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["o", "output"]) {
        context.add_write(path);
    }
}

/// `head -n 20 f`, `head -20 f`.
pub(super) fn head(context: &mut CommandContext<'_, '_>) {
    let lines = match line_count(context) {
        LineCount::Lines(text) => match text.parse() {
            Ok(last @ 1..) => ReadExtent::Range(1, last),
            Ok(0) | Err(_) => ReadExtent::Partial,
        },
        LineCount::Default => ReadExtent::Range(1, 10),
        LineCount::Other => ReadExtent::Partial,
    };
    read_extent(context, lines);
}

/// `tail -n 5 f`, `tail -n +5 f`.
pub(super) fn tail(context: &mut CommandContext<'_, '_>) {
    let lines = match line_count(context) {
        LineCount::Lines(text) => match text.strip_prefix('+') {
            Some(from) => {
                from.parse().map_or(ReadExtent::Partial, |from: u32| ReadExtent::From(from.max(1)))
            }
            None => {
                text.trim_start_matches('-').parse().map_or(ReadExtent::Partial, ReadExtent::Last)
            }
        },
        LineCount::Default => ReadExtent::Last(10),
        LineCount::Other => ReadExtent::Partial,
    };
    read_extent(context, lines);
}

enum LineCount<'a> {
    Lines(Cow<'a, str>),
    Default,
    Other,
}

/// How many lines `head` or `tail` has to show.
fn line_count<'a>(context: &CommandContext<'_, 'a>) -> LineCount<'a> {
    if let Some(word) = context.word(1)
        && let Some(digits) = word.text.strip_prefix(['-', '+'])
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        let plus = word.text.starts_with('+');
        let text =
            if plus { word.text.clone() } else { crate::command_context::word_tail(word, 1).text };
        return LineCount::Lines(text);
    }
    if context.has_option(&["c", "bytes"]) {
        return LineCount::Other;
    }
    match context.option_value(&["n", "lines"]) {
        Some(value) if value.exact_text().is_some() => LineCount::Lines(value.text),
        Some(_) => LineCount::Other,
        None => LineCount::Default,
    }
}

fn read_extent(context: &mut CommandContext<'_, '_>, lines: ReadExtent) {
    let several = context.operands().len() > 1;
    if context.operands().is_empty() {
        context.set_piped_extent(lines);
    }
    for path in context.operands() {
        let old_style = path.text.starts_with('+')
            && path.text.len() > 1
            && path.text.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        if !(old_style && several) {
            context.add_read(path, lines);
        }
    }
}

/// `grep`: a pattern, then files.
pub(super) fn grep(context: &mut CommandContext<'_, '_>) {
    let recursive = context.has_option(&["r", "R", "recursive", "dereference-recursive"]);
    search_files(context, recursive, recursive);
}

/// `rg` and `ag` search below their working directory.
pub(super) fn search_below(context: &mut CommandContext<'_, '_>) {
    if let Some(program) = context.option_value(&["pre", "pager"]) {
        context.add_opaque(OpaqueReason::Runner, program.text);
    }
    let piped = context.walk.stdin != StreamContent::Inherited;
    search_files(context, true, !piped);
}

fn search_files(context: &mut CommandContext<'_, '_>, recursive: bool, below: bool) {
    let given = context.has_option(&["e", "f", "regexp", "file", "files", "type-list"]);
    if let Some(file) = context.option_value(&["f", "file"]) {
        context.add_read(file, ReadExtent::Partial);
    }
    let operands = context.operands();
    let mut paths = operands.into_iter().skip(usize::from(!given)).peekable();
    if below && paths.peek().is_none() {
        context.add_effect(Access::Read(ReadExtent::Partial), ShellWord::literal("."), true);
    }
    for path in paths {
        context.add_effect(Access::Read(ReadExtent::Partial), path, recursive);
    }
}

/// `awk`: a program that may write files and run commands, then files.
pub(super) fn awk(context: &mut CommandContext<'_, '_>) {
    let options = context.leading_options();
    let mut program = options.option_value(&["e", "source"]);
    let file = options.option_value(&["f", "file", "E", "exec"]);
    let from_file = file.is_some();
    if let Some(file) = file {
        context.add_opaque(OpaqueReason::ScriptFile, file.text.clone());
        context.add_read(file, ReadExtent::Partial);
    }
    let in_place = options
        .option_value(&["i", "include"])
        .is_some_and(|library| library.text.starts_with("inplace"));
    let operands = options.first_operand.and_then(|at| context.words.get(at..)).unwrap_or_default();
    for path in operands.iter().cloned() {
        if !from_file && program.is_none() {
            program = Some(path);
            continue;
        }
        if path.text.contains('=') && !path.text.contains('/') {
            continue;
        }
        let access = if in_place { Access::Edit } else { Access::Read(ReadExtent::Partial) };
        context.add_effect(access, path, false);
    }
    if let Some(program) = program {
        let text = &program.text;
        let acts = ["system", "getline", "|", ">", "@"].iter().any(|word| text.contains(word));
        if acts || program.exact_text().is_none() {
            context.add_opaque(OpaqueReason::InlineScript, program.text);
        }
    }
}

/// `sort -o f`, `shuf -o f`.
pub(super) fn sort(context: &mut CommandContext<'_, '_>) {
    context.report_unknown_options();
    if let Some(path) = context.option_value(&["o", "output"]) {
        context.add_write(path);
    }
    if let Some(program) = context.args().find_map(|arg| match arg {
        CommandArg::Option("compress-program", value) => value,
        _ => None,
    }) {
        context.add_opaque(OpaqueReason::Runner, program.text);
    }
    read_files(context);
}

/// `uniq in out`.
pub(super) fn uniq(context: &mut CommandContext<'_, '_>) {
    read_and_write(context);
}

/// `xxd in out`.
pub(super) fn xxd(context: &mut CommandContext<'_, '_>) {
    read_and_write(context);
}

fn read_and_write(context: &mut CommandContext<'_, '_>) {
    let mut operands = context.operands().into_iter();
    if let Some(path) = operands.next() {
        context.add_read(path, ReadExtent::Partial);
    }
    if let Some(path) = operands.next() {
        context.add_write(path);
    }
}

/// `split f prefix`, `csplit`: files whose names start with a prefix.
pub(super) fn split_file(context: &mut CommandContext<'_, '_>) {
    let operands = context.operands();
    let is_csplit = context.exact_text(0).is_some_and(|name| name.ends_with("csplit"));
    if let Some(path) = operands.first() {
        context.add_read(path.clone(), ReadExtent::Partial);
    }
    if let Some(filter) = context.args().find_map(|arg| match arg {
        CommandArg::Option("filter", value) => value,
        _ => None,
    }) {
        context.run_child_text(&filter, None);
        return;
    }
    let prefix = if is_csplit {
        context.option_value(&["f", "prefix"]).unwrap_or_else(|| ShellWord::literal("xx"))
    } else {
        operands.get(1).cloned().unwrap_or_else(|| ShellWord::literal("x"))
    };
    let path = match prefix.exact_text() {
        Some(prefix) => ShellWord::glob(format!("{prefix}*")),
        None => prefix,
    };
    context.add_write(path);
}

/// `base64`, which on some systems has an output option.
pub(super) fn base64(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["o"]) {
        context.add_write(path);
    }
    if let Some(path) = context.option_value(&["i"]) {
        context.add_read(path, ReadExtent::Partial);
    }
    read_files(context);
}

pub(super) fn compare_files(context: &mut CommandContext<'_, '_>) {
    let recursive = context.has_option(&["r", "recursive"]);
    if let Some(path) = context.option_value(&["o", "output"]) {
        context.add_write(path);
    }
    for path in context.operands() {
        context.add_effect(Access::Read(ReadExtent::Partial), path, recursive);
    }
}

/// `jq`: a filter, then files.
pub(super) fn jq(context: &mut CommandContext<'_, '_>) {
    let mut filter_given = false;
    if let Some(path) = context.option_value(&["f", "from-file"]) {
        context.add_read(path, ReadExtent::Partial);
        filter_given = true;
    }
    let mut skip = usize::from(!filter_given);
    let mut at = 1;
    while let Some(word) = context.word(at) {
        match &*word.text {
            "--arg" | "--argjson" => at += 2,
            "--slurpfile" | "--rawfile" => {
                if let Some(path) = context.word(at + 2) {
                    context.add_read(path.clone(), ReadExtent::Partial);
                }
                at += 2;
            }
            "-f" | "--from-file" | "-L" | "--indent" => at += 1,
            "--args" | "--jsonargs" => break,
            text if text.starts_with('-') && text.len() > 1 => {}
            _ if skip > 0 => skip -= 1,
            _ => context.add_read(word.clone(), ReadExtent::Partial),
        }
        at += 1;
    }
}

/// `yq -i '.a = 1' f`.
pub(super) fn yq(context: &mut CommandContext<'_, '_>) {
    let in_place = context.has_option(&["i", "inplace"]);
    for path in context.operands().into_iter().skip(1) {
        let access = if in_place { Access::Edit } else { Access::Read(ReadExtent::Partial) };
        context.add_effect(access, path, false);
    }
}

/// `ls`, `stat`, `tree` print file names, not contents.
pub(super) fn list_files(context: &mut CommandContext<'_, '_>) {
    if context.exact_text(0).is_some_and(|name| name.ends_with("tree"))
        && let Some(path) = context.option_value(&["o"])
    {
        context.add_write(path);
    }
    if context.exact_text(0).is_some_and(|name| base_name(name) == "ls")
        && !context.has_option(&["l"])
    {
        // `ls dir` prints the names without the directory, so they are not paths.
        let mut names = context.operands();
        names.retain(|name| name.kind == WordKind::Glob);
        if names.is_empty() {
            names.push(ShellWord::glob("*"));
        }
        context.walk.output = Some(StreamContent::FileNames(names));
    }
}
