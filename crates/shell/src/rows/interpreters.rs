//! Programs that run a script: shells, whose language we know, and others.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::wrappers::joined;
use crate::line::{Access, Known, Lines, Reason, Word};
use crate::scene::{Arg, Args, Scene, is_device};
use crate::walk::{Status, Stdin};

/// What a shell's own options say.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate thing to know")]
struct Shell<'a> {
    /// `-c` is given: the first operand is the script.
    text: bool,
    pipefail: bool,
    errexit: bool,
    /// It only prints something about itself.
    idle: bool,
    /// `-s`: the script is on its input, whatever the operands.
    input: bool,
    /// A file that an interactive shell reads first.
    startup: Option<Word<'a>>,
    /// The first operand.
    operand: usize,
}

fn shell_options<'a>(scene: &Scene<'_, 'a>) -> Shell<'a> {
    let mut shell = Shell {
        text: false,
        pipefail: false,
        errexit: false,
        idle: false,
        input: false,
        startup: None,
        operand: 1,
    };
    while let Some(word) = scene.word(shell.operand) {
        let text = &*word.text;
        if !text.starts_with(['-', '+']) || text.len() < 2 || word.known != Known::Literal {
            break;
        }
        shell.operand += 1;
        match text {
            "--" => break,
            "--rcfile" | "--init-file" => {
                shell.startup = scene.word(shell.operand).cloned();
                shell.operand += 1;
            }
            "--version" | "--help" => shell.idle = true,
            _ if text.starts_with("--") => {}
            _ => {
                shell.text |= text.contains('c');
                shell.input |= text.contains('s');
                shell.errexit |= text.contains('e');
                if text.contains(['o', 'O']) {
                    shell.pipefail |= scene.exact(shell.operand) == Some("pipefail");
                    shell.errexit |= scene.exact(shell.operand) == Some("errexit");
                    shell.operand += 1;
                }
            }
        }
    }
    shell
}

/// `bash -c text`, `bash file`, `bash < file`.
pub(super) fn shell(scene: &mut Scene<'_, '_>) {
    let shell = shell_options(scene);
    if shell.idle {
        return;
    }
    match shell.startup {
        Some(file) if file.text.starts_with("/dev/fd/") => run_substituted(scene),
        Some(file) => {
            scene.read(file.clone(), Lines::Some);
            scene.opaque(Reason::ScriptFile, file.text);
        }
        None => {}
    }
    let outer = scene.walk.state.clone();
    scene.walk.state = outer.child();
    // What the environment hands on is not lost on the inner shell.
    scene.walk.state.pipefail = shell.pipefail;
    scene.walk.state.errexit = shell.errexit;
    match scene.word(shell.operand).cloned() {
        Some(text) if shell.text => {
            let parameters = scene.words.get(shell.operand + 2..).unwrap_or_default();
            scene.walk.state.positional = Some(owned(parameters));
            scene.walk.state.zero = scene.exact(shell.operand + 1).map(Into::into);
            scene.text(&text, scene.exit);
        }
        Some(file) if !shell.input && !is_device(&file) => {
            scene.read(file.clone(), Lines::Some);
            scene.opaque(Reason::ScriptFile, file.text.clone());
            if let Some(script) = scene.walk.written_into(&file.text) {
                let parameters = scene.words.get(shell.operand + 1..).unwrap_or_default();
                scene.walk.state.positional = Some(owned(parameters));
                scene.text(&Word::literal(script), scene.exit);
            }
        }
        Some(file) if file.text.starts_with("/dev/fd/") => run_substituted(scene),
        _ => {
            let parameters = scene.words.get(shell.operand..).unwrap_or_default();
            scene.walk.state.positional = shell.input.then(|| owned(parameters));
            run_stdin(scene);
        }
    }
    scene.walk.state = outer;
}

fn owned(words: &[Word<'_>]) -> Arc<[Word<'static>]> {
    words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into()
}

/// Runs what `<(…)` prints: `bash <(echo text)`.
fn run_substituted(scene: &mut Scene<'_, '_>) {
    match scene.walk.substituted.take() {
        Some(Stdin::Text(text)) => scene.text(&Word::literal(text), scene.exit),
        Some(Stdin::Partly(text)) => scene.text(&Word::unknown(text), scene.exit),
        _ => {
            let handed = scene.walk.shared.handed.join("\n");
            scene.opaque(Reason::UnknownScript, handed);
        }
    }
}

/// A shell that reads its commands from its input.
pub(super) fn from_stdin(scene: &mut Scene<'_, '_>) {
    let outer = scene.walk.state.clone();
    scene.walk.state = outer.child();
    run_stdin(scene);
    scene.walk.state = outer;
}

fn run_stdin(scene: &mut Scene<'_, '_>) {
    match core::mem::take(&mut scene.walk.stdin) {
        Stdin::Text(text) => {
            scene.text(&Word { text: text.clone(), known: Known::Literal }, scene.exit);
            scene.walk.stdin = Stdin::Text(text);
        }
        Stdin::Partly(text) => {
            scene.text(&Word { text: text.clone(), known: Known::Unknown }, scene.exit);
            scene.walk.stdin = Stdin::Partly(text);
        }
        Stdin::File(file) => {
            scene.opaque(Reason::ScriptFile, file.text.clone());
            scene.walk.stdin = Stdin::File(file);
        }
        other => {
            // It may be a text that was put on another descriptor.
            let handed = scene.walk.shared.handed.join("\n");
            scene.opaque(Reason::UnknownScript, handed);
            scene.walk.stdin = other;
        }
    }
}

/// Shells whose language is another one: what we can read of it, and opaque.
pub(super) fn foreign_shell(scene: &mut Scene<'_, '_>) {
    match scene.leading().value(&["c", "command", "commands", "C", "init-command"]) {
        Some(text) => {
            scene.opaque(Reason::InlineScript, text.text.clone());
            scene.child_text(&text, None);
        }
        None => script_or_stdin(scene),
    }
}

/// `eval a b`: the words joined are run here.
pub(super) fn eval(scene: &mut Scene<'_, '_>) {
    let words = scene.words.get(1..).unwrap_or_default();
    let words = words.strip_prefix(&[Word::literal("--")]).unwrap_or(words);
    let literal = words.iter().all(|word| word.known == Known::Literal);
    let known = if literal { Known::Literal } else { Known::Unknown };
    let text = match words {
        [] => return,
        [only] => only.text.clone(),
        _ => Cow::Owned(joined(words)),
    };
    scene.text(&Word { text, known }, scene.exit);
    if known == Known::Unknown {
        scene.walk.state.forget_variables();
        scene.walk.state.dir = crate::line::Dir::Unknown;
    }
}

/// `. file`.
pub(super) fn source(scene: &mut Scene<'_, '_>) {
    let Some(file) = scene.word(1).cloned() else { return };
    match (&*file.text, scene.walk.stdin.clone()) {
        ("/dev/stdin" | "-", Stdin::Text(text)) => {
            scene.text(&Word { text, known: Known::Literal }, scene.exit);
            return;
        }
        (path, _) if path.starts_with("/dev/fd/") => run_substituted(scene),
        (path, _) if path.starts_with("/dev/") => scene.opaque(Reason::UnknownScript, ""),
        _ => {
            scene.read(file.clone(), Lines::Some);
            scene.opaque(Reason::ScriptFile, file.text.clone());
            if let Some(script) = scene.walk.written_into(&file.text) {
                scene.text(&Word::literal(script), scene.exit);
            }
        }
    }
    scene.walk.state.forget_variables();
    scene.walk.state.functions.iter_mut().for_each(|function| function.sure = false);
    // A script that prepares an environment rarely moves, but it may.
    if scene.exact(1).is_none_or(|path| !path.ends_with("activate")) {
        scene.walk.state.dir = crate::line::Dir::Unknown;
    }
}

/// `python -c text`, `python -m module`, `python file`.
pub(super) fn python(scene: &mut Scene<'_, '_>) {
    let mut args = scene.args();
    while let Some(arg) = args.next() {
        match arg {
            Arg::Option("c", text) => {
                let text = text.map_or(Cow::Borrowed(""), |word| word.text);
                scene.opaque(Reason::InlineScript, text);
                return;
            }
            Arg::Option("m", module) => {
                let mut words: Vec<_> = module.into_iter().collect();
                words.extend(rest(scene, &args).iter().cloned());
                scene.run(words, scene.exit);
                return;
            }
            Arg::Option("V" | "version" | "h" | "help", _) => return,
            Arg::Operand(_) => break,
            Arg::Option(..) => {}
        }
    }
    script_or_stdin(scene);
}

/// The words an iterator has not looked at yet.
fn rest<'w, 'a>(scene: &Scene<'w, 'a>, args: &Args<'w, 'a>) -> &'w [Word<'a>] {
    scene.words.get(args.position()..).unwrap_or_default()
}

/// `perl -i -pe text file`.
pub(super) fn perl(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    let in_place = own.has(&["i"]);
    let mut inline = false;
    for arg in scene.args() {
        match arg {
            Arg::Option("e" | "E", Some(text)) => {
                inline = true;
                scene.opaque(Reason::InlineScript, text.text);
            }
            Arg::Option(..) => {}
            Arg::Operand(_) => break,
        }
    }
    if !inline {
        script_or_stdin(scene);
        return;
    }
    // Without `-n` or `-p` the script does with them what it likes.
    let paths = own.first.filter(|_| own.has(&["n", "p"])).and_then(|at| scene.words.get(at..));
    for path in paths.unwrap_or_default().iter().cloned() {
        let access = if in_place { Access::Edit } else { Access::Read(Lines::Some) };
        scene.effect(access, path, false);
    }
}

/// `node -e text`, `ruby file`, `php -r text`.
pub(super) fn other(scene: &mut Scene<'_, '_>) {
    let php = scene.exact(0).is_some_and(|name| name.ends_with("php"));
    let node = scene.exact(0).is_some_and(|name| name.contains("node"));
    let mut inline = false;
    let mut args = scene.args();
    while let Some(arg) = args.next() {
        match arg {
            Arg::Option("e" | "eval" | "print", Some(text)) => {
                inline = true;
                scene.opaque(Reason::InlineScript, text.text);
            }
            Arg::Option("p", Some(text)) if node => {
                inline = true;
                // `-pe text` is `-p text`.
                let text = match &*text.text {
                    "e" => rest(scene, &args).first().cloned().unwrap_or(text),
                    _ => text,
                };
                scene.opaque(Reason::InlineScript, text.text);
            }
            Arg::Option("r" | "B" | "R" | "E", Some(text)) if php => {
                inline = true;
                scene.opaque(Reason::InlineScript, text.text);
            }
            Arg::Option("v" | "version" | "h" | "help", _) => return,
            Arg::Operand(_) => break,
            Arg::Option(..) => {}
        }
    }
    if !inline {
        script_or_stdin(scene);
    }
}

/// A script file, or the input as a script.
fn script_or_stdin(scene: &mut Scene<'_, '_>) {
    let operand = scene.args().find_map(|arg| match arg {
        Arg::Operand(index) => scene.word(index).cloned(),
        Arg::Option(..) => None,
    });
    match operand {
        Some(file) if !is_device(&file) => {
            scene.read(file.clone(), Lines::Some);
            scene.opaque(Reason::ScriptFile, file.text.clone());
            if let Some(script) = scene.walk.written_into(&file.text) {
                scene.opaque(Reason::InlineScript, script);
            }
        }
        Some(file) if file.text.starts_with("/dev/fd/") => {
            scene.opaque(Reason::UnknownScript, "");
        }
        _ => match scene.stdin_script() {
            Stdin::Text(text) | Stdin::Partly(text) => scene.opaque(Reason::InlineScript, text),
            Stdin::File(file) => scene.opaque(Reason::ScriptFile, file.text),
            Stdin::Inherited | Stdin::Names(_) | Stdin::Unknown => {
                scene.opaque(Reason::UnknownScript, "");
            }
        },
    }
}

/// `ed`, `vim -c`: files changed by commands we do not read.
pub(super) fn editor(scene: &mut Scene<'_, '_>) {
    let mut text = String::new();
    for arg in scene.args() {
        match arg {
            Arg::Option("c" | "cmd" | "eval", Some(command)) => {
                text.push_str(&command.text);
                text.push('\n');
            }
            Arg::Operand(index) => {
                if let Some(word) = scene.word(index) {
                    if word.text.starts_with('+') {
                        text.push_str(&word.text);
                        text.push('\n');
                    } else {
                        scene.effect(Access::Edit, word.clone(), false);
                    }
                }
            }
            Arg::Option(..) => {}
        }
    }
    if let Stdin::Text(input) | Stdin::Partly(input) = scene.stdin_script() {
        text.push_str(&input);
    }
    scene.opaque(Reason::InlineScript, text);
}

/// `watch cmd` runs its words as shell text, over and over; `watch -x` as they are.
pub(super) fn watch(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    let Some(at) = own.first else { return };
    let words = scene.words.get(at..).unwrap_or_default();
    if own.has(&["x", "exec"]) {
        scene.run_each(words.to_vec());
        return;
    }
    again_and_again(scene, words);
}

/// Runs words as shell text, any number of times.
fn again_and_again<'a>(scene: &mut Scene<'_, 'a>, words: &[Word<'a>]) {
    let literal = words.iter().all(|word| word.known == Known::Literal);
    let known = if literal { Known::Literal } else { Known::Unknown };
    let exit = core::mem::replace(&mut scene.exit, Status::LOST);
    scene.child_text(&Word { text: Cow::Owned(joined(words)), known }, None);
    scene.exit = exit;
}

/// `parallel` builds commands from its input, and has a shell run them.
pub(super) fn parallel(scene: &mut Scene<'_, '_>) {
    let text = joined(scene.words.get(1..).unwrap_or_default());
    scene.opaque(Reason::UnknownScript, text);
    let own = scene.leading();
    if let Some(path) = own.value(&["joblog"]) {
        scene.write(path);
    }
    let words = own.first.and_then(|at| scene.words.get(at..)).unwrap_or_default();
    let given = words.iter().position(|word| word.text.starts_with(":::"));
    let mut words = words.get(..given.unwrap_or(words.len())).unwrap_or_default().to_vec();
    if words.is_empty() {
        return;
    }
    for word in words.iter_mut().filter(|word| word.text.contains('{')) {
        word.known = Known::Unknown;
    }
    let is_text = |word: &Word<'_>| word.text.contains([' ', ';', '|', '&', '<', '>', '$', '`']);
    if words.iter().any(is_text) {
        again_and_again(scene, &words);
    } else {
        words.push(Word::unknown("{}"));
        scene.run_each(words);
    }
}

/// Programs that run something we are not shown.
pub(super) fn unknown_script(scene: &mut Scene<'_, '_>) {
    let mut text = joined(scene.words.get(1..).unwrap_or_default());
    if let Stdin::Text(input) | Stdin::Partly(input) = scene.stdin_script() {
        text.push('\n');
        text.push_str(&input);
    }
    scene.opaque(Reason::UnknownScript, text);
}
