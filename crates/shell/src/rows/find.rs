//! `find`, `fd` and `xargs`: programs that run another once per name.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::ITEMS_MAX;
use crate::line::{Dir, Known, Lines, Word};
use crate::scene::{Arg, Scene, tail};
use crate::walk::Stdin;

/// The tests and actions of `find` that have one argument.
const WITH_ARGUMENT: &str = "-amin -anewer -atime -cmin -cnewer -context -ctime -files0-from -flags \
    -fls -fprint -fprint0 -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename \
    -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm -printf -regex \
    -regextype -samefile -size -type -uid -used -user -wholename -xattr -xtype";

/// Words that let everything pass that is there.
const LETS_PASS: &str = "-P -H -L -E -X -d -s -x -depth -xdev -mount -noleaf -daystart -follow \
    -ignore_readdir_race -noignore_readdir_race -warn -nowarn -regextype -true -print -print0 -ls \
    -printf -fprint -fprint0 -fls -fprintf -delete -exec -execdir -ok -okdir -files0-from";

/// What the expression of `find` lets pass, as far as it was read.
struct Tests<'w, 'a> {
    name: Option<&'w Word<'a>>,
    /// Something may be kept out.
    any: bool,
    /// One test or another, or none: what passes is not known.
    either: bool,
}

impl<'a> Tests<'_, 'a> {
    /// Takes one word of the expression into account.
    fn read(&mut self, text: &str, argument: Option<&Word<'_>>) {
        match text {
            "-o" | "-or" | "!" | "-not" | "," => self.either = true,
            "-maxdepth" | "-mindepth" if argument.is_some_and(|depth| depth.text == "0") => {}
            text if !text.starts_with('-') => {}
            text if LETS_PASS.split(' ').any(|word| word == text) => {}
            _ => self.any = true,
        }
    }

    /// What a command is given for `{}`.
    fn names(&self, roots: &[Word<'a>]) -> Vec<Word<'a>> {
        let name = self.name.filter(|name| !self.either && name.known != Known::Unknown);
        let mut found = Vec::new();
        for root in roots {
            if root.known == Known::Unknown || !self.any {
                found.push(root.clone());
            }
            let base = root.text.trim_end_matches('/');
            match name {
                _ if root.known == Known::Unknown => {}
                Some(name) => found.push(Word::glob(format!("{base}/**/{}", name.text))),
                None => found.push(Word::glob(format!("{base}/**"))),
            }
        }
        found
    }
}

/// The places `find` starts from, and where its expression starts.
fn roots<'a>(scene: &Scene<'_, 'a>) -> (Vec<Word<'a>>, usize) {
    let mut roots: Vec<Word<'a>> = Vec::new();
    let mut at = 1;
    while let Some(text) = scene.exact(at) {
        match text {
            "-H" | "-L" | "-P" | "-E" | "-X" | "-d" | "-s" | "-x" | "--" => {}
            "-D" => at += 1,
            "-f" => {
                at += 1;
                roots.extend(scene.word(at).cloned());
            }
            text if text.starts_with("-O") => {}
            _ => break,
        }
        at += 1;
    }
    while let Some(word) = scene.word(at)
        && !word.text.starts_with('-')
        && !matches!(&*word.text, "(" | "!" | ")" | ",")
    {
        roots.push(word.clone());
        at += 1;
    }
    if roots.len() > ITEMS_MAX || scene.words.iter().any(|word| word.text == "-files0-from") {
        roots = alloc::vec![Word::unknown("{}")];
    }
    if roots.is_empty() {
        roots.push(Word::literal("."));
    }
    (roots, at)
}

pub(super) fn find(scene: &mut Scene<'_, '_>) {
    scene.unknown_options();
    let (roots, mut at) = roots(scene);
    // Only what stands before an action keeps something from it.
    let mut tests = Tests { name: None, any: false, either: false };
    let mut prints = true;
    while let Some(word) = scene.word(at) {
        let text = word.exact().unwrap_or_default();
        let argument = scene.word(at + 1);
        tests.read(text, argument);
        at += 1;
        prints &= !text.contains("print") || matches!(text, "-print" | "-print0");
        prints &= !matches!(text, "-delete" | "-ls" | "-fls") && !text.starts_with("-exec");
        match text {
            "-name" => tests.name = argument,
            "-delete" => {
                if tests.any || tests.either {
                    for path in tests.names(&roots) {
                        scene.delete(path, false);
                    }
                } else {
                    for root in &roots {
                        scene.delete(root.clone(), true);
                    }
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(path) = argument {
                    scene.write(path.clone());
                }
                at += usize::from(text == "-fprintf") * 2;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let inner = command(scene, at);
                at += inner.len() + 1;
                let outer = scene.walk.state.dir.clone();
                // What stands for the names is the same from here.
                if text.ends_with("dir") && !inner.iter().any(|word| word.text == "{}") {
                    scene.walk.state.dir = Dir::Unknown;
                }
                run_with_names(scene, inner, &tests.names(&roots));
                scene.walk.state.dir = outer;
            }
            "-files0-from" => {
                if let Some(path) = argument {
                    scene.read(path.clone(), Lines::Some);
                }
            }
            _ => {}
        }
        let has_argument =
            text.starts_with("-newer") || WITH_ARGUMENT.split(' ').any(|word| word == text);
        at += usize::from(has_argument);
    }
    if prints {
        scene.walk.output = Some(Stdin::Names(tests.names(&roots)));
    }
}

/// The command behind `-exec`: a `+` ends it only right behind `{}`.
fn command<'w, 'a>(scene: &Scene<'w, 'a>, from: usize) -> &'w [Word<'a>] {
    let words = scene.words.get(from..).unwrap_or_default();
    let end = words.iter().enumerate().position(|(at, word)| match &*word.text {
        ";" => true,
        "+" => at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|w| w.text == "{}"),
        _ => false,
    });
    words.get(..end.unwrap_or(words.len())).unwrap_or_default()
}

/// Runs a command with `{}` in place of the names.
fn run_with_names<'a>(scene: &mut Scene<'_, 'a>, inner: &[Word<'a>], found: &[Word<'a>]) {
    let mut words = Vec::with_capacity(inner.len());
    for word in inner {
        if word.text == "{}" {
            words.extend(found.iter().cloned());
        } else if word.text.contains("{}") {
            words.push(Word::unknown(word.text.clone()));
        } else {
            words.push(word.clone());
        }
    }
    scene.run_each(words);
}

/// Where a program starts that is written into the word of its option.
fn program_from(word: &Word<'_>) -> Option<usize> {
    let text = &*word.text;
    match text.split_once('=') {
        Some((option, _)) if text.starts_with("--") => Some(option.len() + 1),
        _ => (!text.starts_with("--") && text.len() > 2).then_some(2),
    }
}

/// `fd pattern dir -x cmd`.
pub(super) fn fd(scene: &mut Scene<'_, '_>) {
    let at = scene
        .words
        .iter()
        .position(|word| matches!(&*word.text, "-x" | "-X" | "--exec" | "--exec-batch"));
    let attached = scene.words.iter().position(|word| {
        ["-x", "-X", "--exec=", "--exec-batch="].iter().any(|start| word.text.starts_with(start))
    });
    if let Some(at) = at.or(attached) {
        let mut words = scene.words.get(at + 1..).unwrap_or_default().to_vec();
        if let Some((word, start)) =
            scene.word(at).and_then(|word| Some((word, program_from(word)?)))
        {
            words.insert(0, tail(word, start));
        }
        for word in &mut words {
            if word.text.contains('{') {
                word.known = Known::Unknown;
            }
        }
        let behind = words.iter().any(|word| word.text.contains('{'));
        match fd_names(scene, at).filter(|_| !behind) {
            Some(name) => words.push(name),
            None => words.push(Word::unknown("{}")),
        }
        scene.run_each(words);
    }
}

/// What `fd` finds, where that is a plain word or an extension.
fn fd_names<'a>(scene: &Scene<'_, 'a>, end: usize) -> Option<Word<'a>> {
    let own = scene.words.get(1..end)?;
    let name = match own {
        [] => String::new(),
        [option, extension] if matches!(&*option.text, "-e" | "--extension") => {
            format!("*.{}", extension.exact()?)
        }
        [word] if !word.text.starts_with('-') => format!("*{}*", word.exact()?.replace('.', "?")),
        _ => return None,
    };
    let plain = !name.contains(['\\', '^', '$', '(', '|', '+', '/', '[']);
    let depth = if name.is_empty() { "" } else { "/" };
    plain.then(|| Word::glob(format!("**{depth}{name}")))
}

/// `xargs cmd`: the command with what is read added to it.
pub(super) fn xargs(scene: &mut Scene<'_, '_>) {
    let mut replace = None;
    let mut first = None;
    for arg in scene.args() {
        match arg {
            Arg::Operand(index) => {
                first = Some(index);
                break;
            }
            Arg::Option("I" | "i" | "replace", value) => {
                replace = Some(value.map_or_else(|| String::from("{}"), |word| word.text.into()));
            }
            Arg::Option("a" | "arg-file", Some(path)) => scene.read(path, Lines::Some),
            Arg::Option(..) => {}
        }
    }
    let Some(first) = first else { return };
    let plain = |text: &str| !text.contains(['\'', '"', '\\']);
    let words = scene.words.get(first..).unwrap_or_default();
    let runs: Vec<Vec<Word<'_>>> = match (scene.stdin_script(), &replace) {
        (Stdin::Text(text), None) if plain(&text) => {
            let added = text.split_whitespace().map(|word| Word::literal(String::from(word)));
            alloc::vec![words.iter().cloned().chain(added).collect()]
        }
        (Stdin::Text(text), Some(mark)) if plain(&text) && text.lines().count() <= ITEMS_MAX => {
            let items = text.lines().map(str::trim_start);
            items.map(|item| words.iter().map(|word| filled(word, mark, item)).collect()).collect()
        }
        (Stdin::Names(names), None) => alloc::vec![words.iter().cloned().chain(names).collect()],
        (Stdin::Names(names), Some(mark)) => {
            let mut run = Vec::with_capacity(words.len());
            for word in words {
                if word.text == *mark {
                    run.extend(names.iter().cloned());
                } else {
                    run.push(blank(word, mark));
                }
            }
            alloc::vec![run]
        }
        (_, None) => {
            alloc::vec![words.iter().cloned().chain([Word::unknown("{}")]).collect()]
        }
        (_, Some(mark)) => alloc::vec![words.iter().map(|word| blank(word, mark)).collect()],
    };
    // What is fed to `xargs` is used up.
    let outer = core::mem::replace(&mut scene.walk.stdin, Stdin::Unknown);
    for words in runs {
        scene.run_each(words);
    }
    scene.walk.stdin = outer;
}

/// A word in which a mark stands for something known.
fn filled<'a>(word: &Word<'a>, mark: &str, item: &str) -> Word<'a> {
    if mark.is_empty() || !word.text.contains(mark) {
        return word.clone();
    }
    Word { text: Cow::Owned(word.text.replace(mark, item)), known: word.known }
}

/// A word in which a mark stands for something that is not known.
fn blank<'a>(word: &Word<'a>, mark: &str) -> Word<'a> {
    let known = if word.text.contains(mark) { Known::Unknown } else { word.known };
    Word { text: word.text.clone(), known }
}
