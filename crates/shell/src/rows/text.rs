//! Programs that read files and show or filter them.

use alloc::borrow::Cow;
use alloc::format;

use crate::line::{Access, Known, Lines, Reason, Word, base_name};
use crate::scene::{Arg, Scene};
use crate::walk::Stdin;

/// Every operand is read.
pub(super) fn reads(scene: &mut Scene<'_, '_>) {
    for path in scene.operands() {
        scene.read(path, Lines::Some);
    }
}

/// `cat` and `nl` show everything.
pub(super) fn cat(scene: &mut Scene<'_, '_>) {
    let operands = scene.operands();
    let passes = operands.iter().all(|word| matches!(&*word.text, "-" | "/dev/stdin"));
    let single = operands.len() == 1 && !passes;
    if operands.is_empty() {
        scene.shows_fed(Lines::All);
    }
    for path in operands {
        scene.read(path, Lines::All);
    }
    if single {
        scene.passes_lines();
    }
    if passes && let input @ (Stdin::Text(_) | Stdin::Partly(_)) = scene.stdin_script() {
        scene.walk.output = Some(input);
    }
}

/// Pagers show something, how much depends on the terminal; `less +'!cmd'`,
/// `bat --pager cmd` run something.
pub(super) fn pages(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.value(&["pager"]) {
        scene.child_text(&text, None);
    }
    if let Some(path) = scene.value(&["o", "O", "log-file", "LOG-FILE"]) {
        scene.write(path);
    }
    for path in scene.operands() {
        if path.text.starts_with('+') && path.text.contains(['!', '|']) {
            scene.opaque(Reason::InlineScript, path.text);
        } else {
            scene.read(path, Lines::Some);
        }
    }
}

/// `man -P pager page`.
pub(super) fn manual(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.value(&["P", "pager", "H", "html"]) {
        scene.child_text(&text, None);
    }
}

/// `info -o file page`.
pub(super) fn info(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["o", "output"]) {
        scene.write(path);
    }
}

/// `head -n 20 f`, `head -20 f`.
pub(super) fn head(scene: &mut Scene<'_, '_>) {
    let lines = match count(scene) {
        Count::Lines(text) => match text.parse() {
            Ok(last @ 1..) => Lines::Range(1, last),
            Ok(0) | Err(_) => Lines::Some,
        },
        Count::Default => Lines::Range(1, 10),
        Count::Other => Lines::Some,
    };
    counted(scene, lines);
}

/// `tail -n 5 f`, `tail -n +5 f`.
pub(super) fn tail(scene: &mut Scene<'_, '_>) {
    let lines = match count(scene) {
        Count::Lines(text) => match text.strip_prefix('+') {
            Some(from) => from.parse().map_or(Lines::Some, |from: u32| Lines::From(from.max(1))),
            None => text.trim_start_matches('-').parse().map_or(Lines::Some, Lines::Last),
        },
        Count::Default => Lines::Last(10),
        Count::Other => Lines::Some,
    };
    counted(scene, lines);
}

enum Count<'a> {
    Lines(Cow<'a, str>),
    Default,
    Other,
}

/// How many lines `head` or `tail` is asked for.
fn count<'a>(scene: &Scene<'_, 'a>) -> Count<'a> {
    if let Some(word) = scene.word(1)
        && let Some(digits) = word.text.strip_prefix(['-', '+'])
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        let plus = word.text.starts_with('+');
        let text = if plus { word.text.clone() } else { crate::scene::tail(word, 1).text };
        return Count::Lines(text);
    }
    if scene.has(&["c", "bytes"]) {
        return Count::Other;
    }
    match scene.value(&["n", "lines"]) {
        Some(value) if value.exact().is_some() => Count::Lines(value.text),
        Some(_) => Count::Other,
        None => Count::Default,
    }
}

fn counted(scene: &mut Scene<'_, '_>, lines: Lines) {
    let several = scene.operands().len() > 1;
    if scene.operands().is_empty() {
        scene.shows_fed(lines);
    }
    for path in scene.operands() {
        let old_style = path.text.starts_with('+')
            && path.text.len() > 1
            && path.text.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        if !(old_style && several) {
            scene.read(path, lines);
        }
    }
}

/// `grep`: a pattern, then files.
pub(super) fn grep(scene: &mut Scene<'_, '_>) {
    let recursive = scene.has(&["r", "R", "recursive", "dereference-recursive"]);
    search_in(scene, recursive, recursive);
}

/// `rg` and `ag` look below the directory they are in.
pub(super) fn search(scene: &mut Scene<'_, '_>) {
    if let Some(program) = scene.value(&["pre", "pager"]) {
        scene.opaque(Reason::Runner, program.text);
    }
    let piped = scene.walk.stdin != Stdin::Inherited;
    search_in(scene, true, !piped);
}

fn search_in(scene: &mut Scene<'_, '_>, recursive: bool, below: bool) {
    let given = scene.has(&["e", "f", "regexp", "file", "files", "type-list"]);
    if let Some(file) = scene.value(&["f", "file"]) {
        scene.read(file, Lines::Some);
    }
    let operands = scene.operands();
    let mut paths = operands.into_iter().skip(usize::from(!given)).peekable();
    if below && paths.peek().is_none() {
        scene.effect(Access::Read(Lines::Some), Word::literal("."), true);
    }
    for path in paths {
        scene.effect(Access::Read(Lines::Some), path, recursive);
    }
}

/// `awk`: a program that may write files and run commands, then files.
pub(super) fn awk(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    let mut program = own.value(&["e", "source"]);
    let file = own.value(&["f", "file", "E", "exec"]);
    let from_file = file.is_some();
    if let Some(file) = file {
        scene.opaque(Reason::ScriptFile, file.text.clone());
        scene.read(file, Lines::Some);
    }
    let in_place =
        own.value(&["i", "include"]).is_some_and(|library| library.text.starts_with("inplace"));
    let operands = own.first.and_then(|at| scene.words.get(at..)).unwrap_or_default();
    for path in operands.iter().cloned() {
        if !from_file && program.is_none() {
            program = Some(path);
            continue;
        }
        if path.text.contains('=') && !path.text.contains('/') {
            continue;
        }
        let access = if in_place { Access::Edit } else { Access::Read(Lines::Some) };
        scene.effect(access, path, false);
    }
    if let Some(program) = program {
        let text = &program.text;
        let acts = ["system", "getline", "|", ">", "@"].iter().any(|word| text.contains(word));
        if acts || program.exact().is_none() {
            scene.opaque(Reason::InlineScript, program.text);
        }
    }
}

/// `sort -o f`, `shuf -o f`.
pub(super) fn sort(scene: &mut Scene<'_, '_>) {
    scene.unknown_options();
    if let Some(path) = scene.value(&["o", "output"]) {
        scene.write(path);
    }
    if let Some(program) = scene.args().find_map(|arg| match arg {
        Arg::Option("compress-program", value) => value,
        _ => None,
    }) {
        scene.opaque(Reason::Runner, program.text);
    }
    reads(scene);
}

/// `uniq in out`.
pub(super) fn uniq(scene: &mut Scene<'_, '_>) {
    in_and_out(scene);
}

/// `xxd in out`.
pub(super) fn xxd(scene: &mut Scene<'_, '_>) {
    in_and_out(scene);
}

fn in_and_out(scene: &mut Scene<'_, '_>) {
    let mut operands = scene.operands().into_iter();
    if let Some(path) = operands.next() {
        scene.read(path, Lines::Some);
    }
    if let Some(path) = operands.next() {
        scene.write(path);
    }
}

/// `split f prefix`, `csplit`: files whose names start with a prefix.
pub(super) fn split(scene: &mut Scene<'_, '_>) {
    let operands = scene.operands();
    let is_csplit = scene.exact(0).is_some_and(|name| name.ends_with("csplit"));
    if let Some(path) = operands.first() {
        scene.read(path.clone(), Lines::Some);
    }
    if let Some(filter) = scene.args().find_map(|arg| match arg {
        Arg::Option("filter", value) => value,
        _ => None,
    }) {
        scene.child_text(&filter, None);
        return;
    }
    let prefix = if is_csplit {
        scene.value(&["f", "prefix"]).unwrap_or_else(|| Word::literal("xx"))
    } else {
        operands.get(1).cloned().unwrap_or_else(|| Word::literal("x"))
    };
    let path = match prefix.exact() {
        Some(prefix) => Word::glob(format!("{prefix}*")),
        None => prefix,
    };
    scene.write(path);
}

/// `base64`, which on some systems has an output option.
pub(super) fn base64(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["o"]) {
        scene.write(path);
    }
    if let Some(path) = scene.value(&["i"]) {
        scene.read(path, Lines::Some);
    }
    reads(scene);
}

pub(super) fn compares(scene: &mut Scene<'_, '_>) {
    let recursive = scene.has(&["r", "recursive"]);
    if let Some(path) = scene.value(&["o", "output"]) {
        scene.write(path);
    }
    for path in scene.operands() {
        scene.effect(Access::Read(Lines::Some), path, recursive);
    }
}

/// `jq`: a filter, then files.
pub(super) fn jq(scene: &mut Scene<'_, '_>) {
    let mut filter_given = false;
    if let Some(path) = scene.value(&["f", "from-file"]) {
        scene.read(path, Lines::Some);
        filter_given = true;
    }
    let mut skip = usize::from(!filter_given);
    let mut at = 1;
    while let Some(word) = scene.word(at) {
        match &*word.text {
            "--arg" | "--argjson" => at += 2,
            "--slurpfile" | "--rawfile" => {
                if let Some(path) = scene.word(at + 2) {
                    scene.read(path.clone(), Lines::Some);
                }
                at += 2;
            }
            "-f" | "--from-file" | "-L" | "--indent" => at += 1,
            "--args" | "--jsonargs" => break,
            text if text.starts_with('-') && text.len() > 1 => {}
            _ if skip > 0 => skip -= 1,
            _ => scene.read(word.clone(), Lines::Some),
        }
        at += 1;
    }
}

/// `yq -i '.a = 1' f`.
pub(super) fn yq(scene: &mut Scene<'_, '_>) {
    let in_place = scene.has(&["i", "inplace"]);
    for path in scene.operands().into_iter().skip(1) {
        let access = if in_place { Access::Edit } else { Access::Read(Lines::Some) };
        scene.effect(access, path, false);
    }
}

/// `ls`, `stat`, `tree`: names, not contents.
pub(super) fn lists(scene: &mut Scene<'_, '_>) {
    if scene.exact(0).is_some_and(|name| name.ends_with("tree"))
        && let Some(path) = scene.value(&["o"])
    {
        scene.write(path);
    }
    if scene.exact(0).is_some_and(|name| base_name(name) == "ls") && !scene.has(&["l"]) {
        // The names in a directory are printed without it.
        let mut names = scene.operands();
        names.retain(|name| name.known == Known::Glob);
        if names.is_empty() {
            names.push(Word::glob("*"));
        }
        scene.walk.output = Some(Stdin::Names(names));
    }
}
