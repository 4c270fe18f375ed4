//! `find`, `fd` and `xargs`: programs that run another program once per file name.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::command_context::{CommandArg, CommandContext, word_tail};
use crate::limits::LOOP_ITEMS_MAX;
use crate::shell_line::{ReadExtent, ShellWord, WordKind, WorkingDir};
use crate::shell_walk::StreamContent;

/// The tests and actions of `find` that have one argument.
const WITH_ARGUMENT: &str = "-amin -anewer -atime -cmin -cnewer -context -ctime -files0-from -flags \
    -fls -fprint -fprint0 -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename \
    -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm -printf -regex \
    -regextype -samefile -size -type -uid -used -user -wholename -xattr -xtype";

/// Words of a `find` expression that filter out no file.
const NOT_FILTERING: &str = "-P -H -L -E -X -d -s -x -depth -xdev -mount -noleaf -daystart -follow \
    -ignore_readdir_race -noignore_readdir_race -warn -nowarn -regextype -true -print -print0 -ls \
    -printf -fprint -fprint0 -fls -fprintf -delete -exec -execdir -ok -okdir -files0-from";

/// The files that the expression of `find` selects, as far as it is read.
struct FindTests<'w, 'a> {
    name: Option<&'w ShellWord<'a>>,
    /// A test may filter out files.
    may_filter: bool,
    /// The expression contains `-o`, `!` or `,`, so we do not know which files pass.
    has_alternatives: bool,
}

impl<'a> FindTests<'_, 'a> {
    /// Adds one word of the expression.
    fn read_word(&mut self, text: &str, argument: Option<&ShellWord<'_>>) {
        match text {
            "-o" | "-or" | "!" | "-not" | "," => self.has_alternatives = true,
            "-maxdepth" | "-mindepth" if argument.is_some_and(|depth| depth.text == "0") => {}
            text if !text.starts_with('-') => {}
            text if NOT_FILTERING.split(' ').any(|word| word == text) => {}
            _ => self.may_filter = true,
        }
    }

    /// The words that replace `{}` in a command.
    fn selected_names(&self, roots: &[ShellWord<'a>]) -> Vec<ShellWord<'a>> {
        let name =
            self.name.filter(|name| !self.has_alternatives && name.kind != WordKind::Unknown);
        let mut found = Vec::new();
        for root in roots {
            if root.kind == WordKind::Unknown || !self.may_filter {
                found.push(root.clone());
            }
            let base = root.text.trim_end_matches('/');
            match name {
                _ if root.kind == WordKind::Unknown => {}
                Some(name) => found.push(ShellWord::glob(format!("{base}/**/{}", name.text))),
                None => found.push(ShellWord::glob(format!("{base}/**"))),
            }
        }
        found
    }
}

/// The paths from which `find` starts, and the index at which its expression starts.
fn roots<'a>(context: &CommandContext<'_, 'a>) -> (Vec<ShellWord<'a>>, usize) {
    let mut roots: Vec<ShellWord<'a>> = Vec::new();
    let mut at = 1;
    while let Some(text) = context.exact_text(at) {
        match text {
            "-H" | "-L" | "-P" | "-E" | "-X" | "-d" | "-s" | "-x" | "--" => {}
            "-D" => at += 1,
            "-f" => {
                at += 1;
                roots.extend(context.word(at).cloned());
            }
            text if text.starts_with("-O") => {}
            _ => break,
        }
        at += 1;
    }
    while let Some(word) = context.word(at)
        && !word.text.starts_with('-')
        && !matches!(&*word.text, "(" | "!" | ")" | ",")
    {
        roots.push(word.clone());
        at += 1;
    }
    if roots.len() > LOOP_ITEMS_MAX || context.words.iter().any(|word| word.text == "-files0-from")
    {
        roots = alloc::vec![ShellWord::unknown("{}")];
    }
    if roots.is_empty() {
        roots.push(ShellWord::literal("."));
    }
    (roots, at)
}

pub(super) fn find(context: &mut CommandContext<'_, '_>) {
    context.report_unknown_options();
    let (roots, mut at) = roots(context);
    // Only the tests in front of an action filter its files.
    let mut tests = FindTests { name: None, may_filter: false, has_alternatives: false };
    let mut prints = true;
    while let Some(word) = context.word(at) {
        let text = word.exact_text().unwrap_or_default();
        let argument = context.word(at + 1);
        tests.read_word(text, argument);
        at += 1;
        prints &= !text.contains("print") || matches!(text, "-print" | "-print0");
        prints &= !matches!(text, "-delete" | "-ls" | "-fls") && !text.starts_with("-exec");
        match text {
            "-name" => tests.name = argument,
            "-delete" => {
                if tests.may_filter || tests.has_alternatives {
                    for path in tests.selected_names(&roots) {
                        context.add_delete(path, false);
                    }
                } else {
                    for root in &roots {
                        context.add_delete(root.clone(), true);
                    }
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(path) = argument {
                    context.add_write(path.clone());
                }
                at += usize::from(text == "-fprintf") * 2;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let inner = exec_command(context, at);
                at += inner.len() + 1;
                let outer = context.walk.state.dir.clone();
                // `-execdir` works in the directory of each file. The paths for `{}` are
                // relative to our directory, so with `{}` the directory stays.
                if text.ends_with("dir") && !inner.iter().any(|word| word.text == "{}") {
                    context.walk.state.dir = WorkingDir::Unknown;
                }
                run_with_names(context, inner, &tests.selected_names(&roots));
                context.walk.state.dir = outer;
            }
            "-files0-from" => {
                if let Some(path) = argument {
                    context.add_read(path.clone(), ReadExtent::Partial);
                }
            }
            _ => {}
        }
        let has_argument =
            text.starts_with("-newer") || WITH_ARGUMENT.split(' ').any(|word| word == text);
        at += usize::from(has_argument);
    }
    if prints {
        context.walk.output = Some(StreamContent::FileNames(tests.selected_names(&roots)));
    }
}

/// The command behind `-exec`. A `+` ends it only directly behind `{}`.
fn exec_command<'w, 'a>(context: &CommandContext<'w, 'a>, from: usize) -> &'w [ShellWord<'a>] {
    let words = context.words.get(from..).unwrap_or_default();
    let end = words.iter().enumerate().position(|(at, word)| match &*word.text {
        ";" => true,
        "+" => at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|w| w.text == "{}"),
        _ => false,
    });
    words.get(..end.unwrap_or(words.len())).unwrap_or_default()
}

/// Walks a command in which `{}` is replaced by the file names.
fn run_with_names<'a>(
    context: &mut CommandContext<'_, 'a>,
    inner: &[ShellWord<'a>],
    found: &[ShellWord<'a>],
) {
    let mut words = Vec::with_capacity(inner.len());
    for word in inner {
        if word.text == "{}" {
            words.extend(found.iter().cloned());
        } else if word.text.contains("{}") {
            words.push(ShellWord::unknown(word.text.clone()));
        } else {
            words.push(word.clone());
        }
    }
    context.run_repeatedly(words);
}

/// The byte at which a program name starts that is in the same word as its option.
fn attached_program_start(word: &ShellWord<'_>) -> Option<usize> {
    let text = &*word.text;
    match text.split_once('=') {
        Some((option, _)) if text.starts_with("--") => Some(option.len() + 1),
        _ => (!text.starts_with("--") && text.len() > 2).then_some(2),
    }
}

/// `fd pattern dir -x cmd`.
pub(super) fn fd(context: &mut CommandContext<'_, '_>) {
    let at = context
        .words
        .iter()
        .position(|word| matches!(&*word.text, "-x" | "-X" | "--exec" | "--exec-batch"));
    let attached = context.words.iter().position(|word| {
        ["-x", "-X", "--exec=", "--exec-batch="].iter().any(|start| word.text.starts_with(start))
    });
    if let Some(at) = at.or(attached) {
        let mut words = context.words.get(at + 1..).unwrap_or_default().to_vec();
        if let Some((word, start)) =
            context.word(at).and_then(|word| Some((word, attached_program_start(word)?)))
        {
            words.insert(0, word_tail(word, start));
        }
        for word in &mut words {
            if word.text.contains('{') {
                word.kind = WordKind::Unknown;
            }
        }
        let behind = words.iter().any(|word| word.text.contains('{'));
        match fd_result(context, at).filter(|_| !behind) {
            Some(name) => words.push(name),
            None => words.push(ShellWord::unknown("{}")),
        }
        context.run_repeatedly(words);
    }
}

/// The files that `fd` finds, if the search is for a plain word or an extension.
fn fd_result<'a>(context: &CommandContext<'_, 'a>, end: usize) -> Option<ShellWord<'a>> {
    let arguments = context.words.get(1..end)?;
    let name = match arguments {
        [] => String::new(),
        [option, extension] if matches!(&*option.text, "-e" | "--extension") => {
            format!("*.{}", extension.exact_text()?)
        }
        [word] if !word.text.starts_with('-') => {
            format!("*{}*", word.exact_text()?.replace('.', "?"))
        }
        _ => return None,
    };
    let plain = !name.contains(['\\', '^', '$', '(', '|', '+', '/', '[']);
    let depth = if name.is_empty() { "" } else { "/" };
    plain.then(|| ShellWord::glob(format!("**{depth}{name}")))
}

/// `xargs cmd`: adds the words of the input to the command.
pub(super) fn xargs(context: &mut CommandContext<'_, '_>) {
    let mut replace = None;
    let mut first = None;
    for arg in context.args() {
        match arg {
            CommandArg::Operand(index) => {
                first = Some(index);
                break;
            }
            CommandArg::Option("I" | "i" | "replace", value) => {
                replace = Some(value.map_or_else(|| String::from("{}"), |word| word.text.into()));
            }
            CommandArg::Option("a" | "arg-file", Some(path)) => {
                context.add_read(path, ReadExtent::Partial);
            }
            CommandArg::Option(..) => {}
        }
    }
    let Some(first) = first else { return };
    let plain = |text: &str| !text.contains(['\'', '"', '\\']);
    let words = context.words.get(first..).unwrap_or_default();
    let runs: Vec<Vec<ShellWord<'_>>> = match (context.stdin_content(), &replace) {
        (StreamContent::Text(text), None) if plain(&text) => {
            let added = text.split_whitespace().map(|word| ShellWord::literal(String::from(word)));
            alloc::vec![words.iter().cloned().chain(added).collect()]
        }
        (StreamContent::Text(text), Some(mark))
            if plain(&text) && text.lines().count() <= LOOP_ITEMS_MAX =>
        {
            let items = text.lines().map(str::trim_start);
            items
                .map(|item| words.iter().map(|word| fill_placeholder(word, mark, item)).collect())
                .collect()
        }
        (StreamContent::FileNames(names), None) => {
            alloc::vec![words.iter().cloned().chain(names).collect()]
        }
        (StreamContent::FileNames(names), Some(mark)) => {
            let mut run = Vec::with_capacity(words.len());
            for word in words {
                if word.text == *mark {
                    run.extend(names.iter().cloned());
                } else {
                    run.push(mark_placeholder_unknown(word, mark));
                }
            }
            alloc::vec![run]
        }
        (_, None) => {
            alloc::vec![words.iter().cloned().chain([ShellWord::unknown("{}")]).collect()]
        }
        (_, Some(mark)) => {
            alloc::vec![words.iter().map(|word| mark_placeholder_unknown(word, mark)).collect()]
        }
    };
    // `xargs` has consumed the input, so the command does not get it.
    let outer = core::mem::replace(&mut context.walk.stdin, StreamContent::Unknown);
    for words in runs {
        context.run_repeatedly(words);
    }
    context.walk.stdin = outer;
}

/// A word in which the placeholder `mark` is replaced by a known text.
fn fill_placeholder<'a>(word: &ShellWord<'a>, mark: &str, item: &str) -> ShellWord<'a> {
    if mark.is_empty() || !word.text.contains(mark) {
        return word.clone();
    }
    ShellWord { text: Cow::Owned(word.text.replace(mark, item)), kind: word.kind }
}

/// A word, marked as unknown if it contains the placeholder `mark`.
fn mark_placeholder_unknown<'a>(word: &ShellWord<'a>, mark: &str) -> ShellWord<'a> {
    let known = if word.text.contains(mark) { WordKind::Unknown } else { word.kind };
    ShellWord { text: word.text.clone(), kind: known }
}
