//! Programs that create, move, change and remove files.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::command_context::{CommandArg, CommandContext, word_tail};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord, base_name};
use crate::shell_walk::StreamContent;

/// Reports where a copy may go: to the target itself, or below it if it is a directory.
fn report_copy_targets<'a>(
    context: &mut CommandContext<'_, 'a>,
    sources: &[ShellWord<'a>],
    target: &ShellWord<'a>,
    into: bool,
    recursive: bool,
) {
    let dir = into || sources.len() > 1 || target.text.ends_with('/');
    let named = matches!(&*target.text, "." | "..") || target.text.ends_with("/.");
    let as_is = context.has_option(&["T", "no-target-directory"]);
    if as_is || (!dir && !named) {
        context.add_effect(Access::Write, target.clone(), recursive);
    }
    if as_is {
        return;
    }
    for source in sources {
        let path = CommandContext::path_inside(target, source);
        context.add_effect(Access::Write, path, recursive);
    }
}

/// The operands of programs like `cp`: sources, target, and whether the target is
/// certainly a directory.
fn sources_and_target<'a>(
    context: &CommandContext<'_, 'a>,
) -> Option<(Vec<ShellWord<'a>>, ShellWord<'a>, bool)> {
    let mut operands = context.operands();
    if let Some(dir) = context.option_value(&["t", "target-directory"]) {
        return Some((operands, dir, true));
    }
    if operands.len() < 2 {
        return None;
    }
    let target = operands.pop()?;
    Some((operands, target, false))
}

pub(super) fn copy(context: &mut CommandContext<'_, '_>) {
    let recursive = context.has_option(&["r", "R", "a", "recursive", "archive"]);
    let Some((sources, target, into)) = sources_and_target(context) else { return };
    for source in &sources {
        context.add_effect(Access::Read(ReadExtent::Partial), source.clone(), recursive);
    }
    if context.has_option(&["s", "l", "symbolic-link", "link"]) {
        for source in &sources {
            let below = CommandContext::path_inside(&target, source);
            context.walk.record_link(context.index, &target, source);
            context.walk.record_link(context.index, &below, source);
            if context.has_option(&["l", "link"]) {
                context.add_effect(Access::Touch, source.clone(), recursive);
            }
        }
    }
    report_copy_targets(context, &sources, &target, into, recursive);
}

pub(super) fn move_files(context: &mut CommandContext<'_, '_>) {
    let Some((sources, target, into)) = sources_and_target(context) else { return };
    for source in &sources {
        context.add_delete(source.clone(), true);
    }
    report_copy_targets(context, &sources, &target, into, true);
}

pub(super) fn install_files(context: &mut CommandContext<'_, '_>) {
    if context.has_option(&["d", "directory"]) {
        make_files(context);
        return;
    }
    let Some((sources, target, into)) = sources_and_target(context) else { return };
    for source in &sources {
        context.add_read(source.clone(), ReadExtent::Partial);
    }
    report_copy_targets(context, &sources, &target, into, false);
}

/// `ln` creates a second name for a file. A write to that name changes the file.
pub(super) fn create_link(context: &mut CommandContext<'_, '_>) {
    let operands = context.operands();
    let symbolic = context.has_option(&["s", "symbolic"]);
    if let [only] = operands.as_slice() {
        let name = ShellWord { text: Cow::Owned(base_name(&only.text).into()), kind: only.kind };
        context.walk.record_link(context.index, &name, only);
        context.add_write(name);
        if !symbolic {
            context.add_effect(Access::Touch, only.clone(), false);
        }
        return;
    }
    let Some((sources, target, into)) = sources_and_target(context) else { return };
    for source in &sources {
        // A hard link changes the link count of the file itself.
        if !symbolic {
            context.add_effect(Access::Touch, source.clone(), false);
        }
        context.walk.record_link(context.index, &target, source);
        let below = CommandContext::path_inside(&target, source);
        context.walk.record_link(context.index, &below, source);
    }
    report_copy_targets(context, &sources, &target, into, false);
}

pub(super) fn remove_files(context: &mut CommandContext<'_, '_>) {
    let recursive = context.has_option(&["r", "R", "recursive"]);
    for path in context.operands() {
        context.add_delete(path, recursive);
    }
}

pub(super) fn remove_dir(context: &mut CommandContext<'_, '_>) {
    for path in context.operands() {
        context.add_delete(path, false);
    }
}

pub(super) fn shred(context: &mut CommandContext<'_, '_>) {
    let removes = context.words.iter().skip(1).any(|word| {
        let text = &*word.text;
        text.starts_with("--remove")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains('u'))
    });
    let paths: Vec<_> =
        context.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect();
    for path in paths {
        context.add_write(path.clone());
        if removes {
            context.add_delete(path.clone(), false);
        }
    }
}

pub(super) fn truncate_files(context: &mut CommandContext<'_, '_>) {
    for path in context.operands() {
        context.add_write(path);
    }
}

pub(super) fn touch_files(context: &mut CommandContext<'_, '_>) {
    for path in context.operands() {
        context.add_effect(Access::Touch, path, false);
    }
}

/// `mkdir`, `mknod`.
pub(super) fn make_files(context: &mut CommandContext<'_, '_>) {
    touch_files(context);
}

/// `chmod`, `chown` and the like: a mode, then files.
pub(super) fn touch_after_mode(context: &mut CommandContext<'_, '_>) {
    let recursive = context.has_option(&["R", "recursive"]);
    // A mode such as `-x` or `-w` looks like an option.
    let mode_given = context.has_option(&["reference", "m", "x", "w"])
        || (context.exact_text(0).is_some_and(|name| name.ends_with("chmod"))
            && context.words.iter().skip(1).any(|word| {
                word.text.len() > 1
                    && word.text.starts_with('-')
                    && word.text.bytes().skip(1).all(|byte| b"rwxXst".contains(&byte))
            }));
    for path in context.operands().into_iter().skip(usize::from(!mode_given)) {
        context.add_effect(Access::Touch, path, recursive);
    }
}

/// Programs that change their operands in place.
pub(super) fn edit_files(context: &mut CommandContext<'_, '_>) {
    for path in context.operands() {
        context.add_effect(Access::Edit, path, false);
    }
}

/// `sd find replace file`: the files to change are behind the first two operands.
pub(super) fn edit_after_pattern(context: &mut CommandContext<'_, '_>) {
    for path in context.operands().into_iter().skip(2) {
        context.add_effect(Access::Edit, path, false);
    }
}

pub(super) fn dd(context: &mut CommandContext<'_, '_>) {
    for word in context.words.iter().skip(1) {
        if word.text.starts_with("of=") {
            context.add_write(word_tail(word, 3));
        } else if word.text.starts_with("if=") {
            context.add_read(word_tail(word, 3), ReadExtent::Partial);
        }
    }
}

pub(super) fn tee(context: &mut CommandContext<'_, '_>) {
    let access = if context.has_option(&["a", "append"]) { Access::Append } else { Access::Write };
    for path in context.operands() {
        context.add_effect(access, path, false);
    }
    if let input @ (StreamContent::Text(_) | StreamContent::PartialText(_)) =
        context.stdin_content()
    {
        context.walk.output = Some(input);
    }
}

pub(super) fn sponge(context: &mut CommandContext<'_, '_>) {
    tee(context);
    context.walk.output = None;
}

/// `rename` applies a script to file names.
pub(super) fn rename_files(context: &mut CommandContext<'_, '_>) {
    let mut operands = context.operands().into_iter();
    if let Some(expression) = operands.next() {
        context.add_opaque(OpaqueReason::InlineScript, expression.text);
    }
    for path in operands {
        context.add_delete(path, false);
    }
}

/// `crontab` runs commands later.
pub(super) fn crontab(context: &mut CommandContext<'_, '_>) {
    if context.has_option(&["l"]) {
        return;
    }
    for arg in context.args() {
        if let CommandArg::Operand(index) = arg
            && let Some(path) = context.word(index)
        {
            context.add_read(path.clone(), ReadExtent::Partial);
        }
    }
    context.add_opaque(OpaqueReason::UnknownScript, "");
}

/// `ffmpeg -i in out`, `objcopy in out`: we report a write to the last word and do not
/// read the options before it.
pub(super) fn convert_file(context: &mut CommandContext<'_, '_>) {
    let output = context.option_value(&["o", "output"]);
    let last = context.words.get(1..).unwrap_or_default().last().cloned();
    if let Some(path) = output.or(last) {
        context.add_write(path);
    }
}

/// `mount --bind dir target` puts other files at a path.
pub(super) fn mount(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.operands().pop() {
        context.add_effect(Access::Write, path, true);
    }
}
