//! Programs that do nothing to files, and those that change the shell itself.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::wrappers::joined;
use crate::line::{Dir, Reason, Word};
use crate::scan::is_name;
use crate::scene::{Arg, Scene};
use crate::walk::{Status, Stdin};

/// Reads and writes no file, runs nothing.
pub(super) fn nothing(_: &mut Scene<'_, '_>) {}

/// `echo`, whose words another command may be fed with.
pub(super) fn echo(scene: &mut Scene<'_, '_>) {
    let mut from = 1;
    while matches!(scene.exact(from), Some("-n" | "-e" | "-E" | "-ne" | "-en")) {
        from += 1;
    }
    let words = scene.words.get(from..).unwrap_or_default();
    let plain = |word: &Word<'_>| word.exact().is_some_and(|text| !text.contains('\\'));
    let text = match words {
        [only] => only.text.clone(),
        _ => Cow::Owned(joined(words)),
    };
    let output = if words.iter().all(plain) { Stdin::Text(text) } else { Stdin::Partly(text) };
    scene.walk.output = Some(output);
}

/// `printf`, as far as its format is simple.
pub(super) fn printf(scene: &mut Scene<'_, '_>) {
    if let Some(name) = scene.value(&["v"]) {
        scene.walk.evaluated(Some(&name.text));
        let plain = is_name(name.text.as_bytes());
        let value = formatted(&scene.operands()).filter(|_| plain).map(Arc::from);
        let name = name.text.split('[').next().unwrap_or_default();
        scene.walk.state.assign(name, value);
        return;
    }
    let operands = scene.operands();
    scene.walk.output = Some(match formatted(&operands) {
        Some(text) => Stdin::Text(Cow::Owned(text)),
        None => Stdin::Partly(Cow::Owned(joined(&operands))),
    });
}

/// What `printf` prints; none where that takes more than we know.
fn formatted(operands: &[Word<'_>]) -> Option<String> {
    if operands.iter().any(|word| word.exact().is_none()) {
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
    // The format is used again until no word is left.
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
pub(super) fn test(scene: &mut Scene<'_, '_>) {
    for word in scene.words {
        scene.walk.evaluated(Some(&word.text));
    }
}

/// `cd` and `pushd`.
pub(super) fn cd(scene: &mut Scene<'_, '_>) {
    let target = scene.args().find_map(|arg| match arg {
        Arg::Operand(index) => scene.word(index),
        Arg::Option(..) => None,
    });
    if target.is_none() && scene.exact(0) == Some("pushd") {
        scene.walk.state.dir = Dir::Unknown;
        return;
    }
    scene.walk.state.change_dir(target);
}

/// `popd` leads back to a directory we did not keep.
pub(super) fn popd(scene: &mut Scene<'_, '_>) {
    scene.walk.state.dir = Dir::Unknown;
}

/// `export`, `declare`, `local`, `readonly`, `typeset`.
pub(super) fn declare(scene: &mut Scene<'_, '_>) {
    let special = scene.words.iter().skip(1).any(|word| {
        let text = &*word.text;
        text.starts_with('-') && text.contains(['n', 'i', 'a', 'A', 'u', 'l', 'f'])
    });
    for word in scene.words.iter().skip(1) {
        scene.walk.evaluated(Some(&word.text));
        let Some((name, _)) = word.text.split_once('=') else {
            if special && is_name(word.text.as_bytes()) {
                scene.walk.state.assign(&word.text, None);
            }
            continue;
        };
        let (name, append) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        if super::super::simple::is_running_variable(name) {
            scene.opaque(Reason::Environment, word.text.clone());
        }
        let plain = is_name(name.as_bytes());
        let bare = name.split('[').next().unwrap_or_default();
        let start = name.len() + usize::from(append) + 1;
        let value = crate::scene::tail(word, start);
        let value = (plain && !special && !value.text.starts_with('(')).then_some(value);
        scene.walk.assign(bare, value.as_ref(), append);
    }
}

/// Builtins that give variables values we do not know.
pub(super) fn sets(scene: &mut Scene<'_, '_>) {
    for word in scene.words.iter().skip(1) {
        scene.walk.evaluated(Some(&word.text));
        let name = word.text.trim_start_matches("-a");
        let name = name.split('[').next().unwrap_or_default();
        scene.walk.state.assign(name, None);
        if scene.exact(0) == Some("unset") {
            scene.walk.state.functions.iter_mut().for_each(|function| {
                function.sure &= *function.name != *name;
            });
        }
    }
    if let Some((name, words)) = read_array(scene) {
        scene.walk.state.assign_array(&name, words);
    }
    if let Some((name, value)) = read_line(scene) {
        scene.walk.state.assign(&name, Some(value));
    }
    if matches!(scene.exact(0), Some("mapfile" | "readarray"))
        && let Some(callback) = scene.value(&["C"])
    {
        scene.text(&callback, Status::LOST);
    }
}

/// `mapfile -t a <<< text`, `read -a a <<< text`: the array that takes it all.
fn read_array(scene: &Scene<'_, '_>) -> Option<(String, Vec<Word<'static>>)> {
    let Stdin::Text(text) = scene.stdin_script() else { return None };
    let own = scene.leading();
    let literal = |text: &str| Word::literal(String::from(text));
    if text.contains('\\') || scene.walk.state.ifs {
        return None;
    }
    if scene.exact(0) == Some("read") {
        let name =
            own.value(&["a"]).filter(|_| own.first.is_none() && own.is_plain(&["r", "a"]))?;
        return Some((name.text.into(), text.split_whitespace().map(literal).collect()));
    }
    let at = own.first.filter(|at| scene.words.len() == at + 1 && own.is_plain(&["t"]))?;
    let lines = matches!(scene.exact(0), Some("mapfile" | "readarray"));
    lines.then(|| Some((String::from(scene.exact(at)?), text.lines().map(literal).collect())))?
}

/// `read -r x <<< text`: the one variable that takes the one line there is.
fn read_line(scene: &Scene<'_, '_>) -> Option<(String, Arc<str>)> {
    let own = scene.leading();
    let at = own.first.filter(|at| scene.words.len() == at + 1)?;
    let name = scene.exact(at).filter(|name| is_name(name.as_bytes()))?;
    let Stdin::Text(text) = scene.stdin_script() else { return None };
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let plain = scene.exact(0) == Some("read") && own.is_plain(&["r", "s"]);
    let known = plain && !line.contains(['\n', '\\']) && !scene.walk.state.ifs;
    known.then(|| (String::from(name), Arc::from(line.trim())))
}

/// `set`: options that change what an exit status means, and parameters.
pub(super) fn set(scene: &mut Scene<'_, '_>) {
    let mut at = 1;
    while let Some(word) = scene.word(at) {
        let text = &*word.text;
        let (on, letters) = match text.split_at_checked(1) {
            Some(("-", letters)) => (true, letters),
            Some(("+", letters)) => (false, letters),
            _ => break,
        };
        at += 1;
        if text == "--" || text == "-" {
            let words = scene.words.get(at..).unwrap_or_default();
            scene.walk.state.positional =
                Some(words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into());
            return;
        }
        if letters.contains('e') {
            scene.walk.state.errexit = on;
        }
        if letters.contains('o') {
            match scene.exact(at) {
                Some("pipefail") => scene.walk.state.pipefail = on,
                Some("errexit") => scene.walk.state.errexit = on,
                _ => {}
            }
            at += 1;
        }
    }
    if at < scene.words.len() {
        let words = scene.words.get(at..).unwrap_or_default();
        let sure = words.first().is_some_and(|word| word.exact().is_some());
        scene.walk.state.positional = sure
            .then(|| words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into());
    }
}

/// `shift` moves the parameters.
pub(super) fn shift(scene: &mut Scene<'_, '_>) {
    let count = match scene.word(1) {
        None => Some(1),
        Some(word) => word.exact().and_then(|text| text.parse::<usize>().ok()),
    };
    let state = &mut scene.walk.state;
    state.positional =
        state.positional.take().zip(count).map(|(words, count)| {
            Arc::from(words.get(count.min(words.len())..).unwrap_or_default())
        });
}

/// `exit`, `return`, `break`, `continue`: nothing after it runs.
pub(super) fn leaves(scene: &mut Scene<'_, '_>) {
    let code = scene.exact(1).and_then(|code| code.parse::<u8>().ok());
    let walk = &mut *scene.walk;
    let shared = &mut walk.shared;
    let leaves_line = match scene.words.first().and_then(Word::exact) {
        Some("exit") => true,
        Some("return") => !shared.calling.is_empty(),
        _ => shared.loops > 0,
    };
    shared.ended |= leaves_line;
    shared.ended_well |= leaves_line && code.is_none_or(|code| code == 0);
    walk.state.settle();
    let left = match scene.words.first().and_then(Word::exact) {
        Some("return") if !walk.shared.calling.is_empty() => &mut walk.shared.returned,
        Some("break" | "continue") if walk.shared.loops > 0 => &mut walk.shared.broken,
        // Outside of a function or loop bash complains and goes on.
        Some("return" | "break" | "continue") => return,
        _ => {
            walk.state.dead = true;
            return;
        }
    };
    let state = walk.state.clone();
    *left = Some(match left.take() {
        Some(other) => other.join(state),
        None => state,
    });
    walk.state.dead = true;
}

/// `trap 'text' EXIT`.
pub(super) fn trap(scene: &mut Scene<'_, '_>) {
    let operands = scene.operands();
    let [text, _, ..] = operands.as_slice() else { return };
    scene.walk.shared.trapped = true;
    if text.exact().is_some_and(|text| text == "-" || text.is_empty()) {
        return;
    }
    let before = scene.walk.state.clone();
    // By the time it runs anything may have happened.
    scene.walk.state.forget_variables();
    scene.walk.state.dir = Dir::Unknown;
    scene.walk.shared.perhaps += 1;
    scene.text(text, Status::LOST);
    scene.walk.shared.perhaps -= 1;
    scene.walk.state = before;
}

/// `alias x=…`: from here on `x` may be anything.
pub(super) fn alias(scene: &mut Scene<'_, '_>) {
    for word in scene.words.iter().skip(1) {
        if word.exact().is_none() {
            scene.opaque(Reason::Alias, word.text.clone());
        }
        if let Some((name, value)) = word.text.split_once('=') {
            add_alias(scene, name);
            let start = word.text.len() - value.len();
            let value = crate::scene::tail(word, start);
            scene.opaque(Reason::Alias, value.text.clone());
            // Whoever uses it runs this.
            scene.walk.shared.perhaps += 1;
            scene.child_text(&value, None);
            scene.walk.shared.perhaps -= 1;
        }
    }
}

fn add_alias(scene: &mut Scene<'_, '_>, name: &str) {
    if scene.walk.state.aliases.len() >= crate::limits::NAMES_MAX {
        scene.walk.give_up();
    } else {
        scene.walk.state.aliases.push(String::from(name));
    }
}

/// `enable -f lib name` loads code.
pub(super) fn enable(scene: &mut Scene<'_, '_>) {
    if let Some(library) = scene.value(&["f"]) {
        scene.opaque(Reason::ScriptFile, library.text);
    }
}

/// `hash -p /bin/rm ls` makes `ls` another program.
pub(super) fn hash(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["p"]) {
        scene.opaque(Reason::Alias, path.text.clone());
        scene.run_each(alloc::vec![path]);
        for name in scene.operands() {
            add_alias(scene, &name.text);
        }
    }
}

/// `history -w file` writes what was typed.
pub(super) fn history(scene: &mut Scene<'_, '_>) {
    if scene.has(&["s", "p"]) {
        scene.opaque(Reason::UnknownScript, joined(scene.words.get(2..).unwrap_or_default()));
    }
    if scene.has(&["w", "a"])
        && let Some(path) = scene.operands().into_iter().next()
    {
        scene.write(path);
    }
}

/// `jobs -x cmd` runs a command.
pub(super) fn jobs(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    if let Some(at) = own.first.filter(|_| own.has(&["x"])) {
        scene.run_from(at, scene.exit);
    }
}

/// `complete -C text`, `compgen -C text`: run to find words.
pub(super) fn completes(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.value(&["C"]) {
        scene.child_text(&text, None);
    }
}
