//! Programs that run the rest of their words as a command.
//!
//! Their own options end at the first operand, so they are read with
//! [`Scene::leading`]: an option behind it is the command's.

use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::TEXTS_MAX;
use crate::line::{Access, Dir, Reason, Word, base_name};
use crate::scan::is_name;
use crate::scene::{Arg, Scene, tail};
use crate::state::moved;

/// `nohup cmd`, `nice -n 5 cmd`.
pub(super) fn plain(scene: &mut Scene<'_, '_>) {
    if let Some(at) = scene.leading().first {
        scene.run_from(at, scene.exit);
    }
}

/// `time -o log cmd`, `strace -o log cmd`: what they note down goes to a file.
pub(super) fn logs(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.leading().value(&["o", "output", "log-file"]) {
        if path.text.starts_with(['|', '!']) {
            scene.child_text(&tail(&path, 1), None);
        } else {
            scene.write(path);
        }
    }
    plain(scene);
}

/// `timeout 5 cmd`: one operand, then the command.
pub(super) fn after_one(scene: &mut Scene<'_, '_>) {
    if let Some(at) = scene.leading().first {
        scene.run_from(at + 1, scene.exit);
    }
}

/// `command cmd`; `command -v cmd` only looks.
pub(super) fn command(scene: &mut Scene<'_, '_>) {
    if !scene.leading().has(&["v", "V"]) {
        plain(scene);
    }
}

/// `exec cmd`; without a command its redirections are the shell's.
pub(super) fn exec(scene: &mut Scene<'_, '_>) {
    if scene.leading().first.is_none() {
        scene.walk.keep_stdin = true;
        return;
    }
    plain(scene);
    // The shell itself is gone now.
    scene.walk.shared.ended = true;
    scene.walk.shared.ended_well = true;
}

/// `env -C dir A=b cmd`.
pub(super) fn env(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    if own.has(&["S", "split-string"]) {
        split_env(scene);
        return;
    }
    let Some(mut at) = own.first else { return };
    // A lone dash is `-i`.
    at += usize::from(scene.exact(at) == Some("-"));
    while scene.word(at).is_some_and(|word| word.text.contains('=')) {
        assigns(scene, at);
        at += 1;
    }
    let dir = own.value(&["C", "chdir"]).map(|dir| moved(&scene.walk.state.dir, &dir));
    in_dir(scene, dir, at);
}

/// `env -S 'A=b cmd x' y`: a text is split into words, and those behind it are
/// added. What it is split into may be options again.
fn split_env(scene: &mut Scene<'_, '_>) {
    let mut words = alloc::vec![Word::literal("env")];
    let mut args = scene.args();
    let text = loop {
        match args.next() {
            Some(Arg::Option("C" | "chdir", Some(dir))) => words.extend([Word::literal("-C"), dir]),
            Some(Arg::Option("S" | "split-string", text)) => break text,
            Some(Arg::Option(..)) => {}
            Some(Arg::Operand(_)) | None => return,
        }
    };
    let Some(text) = text else { return };
    let rest = scene.words.get(args.position()..).unwrap_or_default();
    let Some(parts) = split(&text).filter(|_| scene.walk.shared.texts < TEXTS_MAX) else {
        let whole = [&*text.text, " ", &joined(rest)].concat();
        scene.child_text(&Word::unknown(whole), None);
        return;
    };
    words.extend(parts);
    words.extend(rest.iter().cloned());
    scene.walk.shared.texts += 1;
    env(&mut Scene {
        walk: scene.walk,
        words: &words,
        index: scene.index,
        exit: scene.exit,
        options: scene.options,
        span: scene.span,
    });
    scene.walk.shared.texts -= 1;
}

/// The words of a text for `env -S`; none where it holds more than quotes.
fn split<'a>(text: &Word<'_>) -> Option<Vec<Word<'a>>> {
    let text = text.exact()?.replace("\\_", " ");
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
            (None, _) if char.is_ascii_whitespace() => words.extend(word.take().map(Word::literal)),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word.map(Word::literal));
    quote.is_none().then_some(words)
}

/// Notes `A=b` before a command.
fn assigns(scene: &mut Scene<'_, '_>, at: usize) {
    let Some(word) = scene.word(at) else { return };
    let name = word.text.split('=').next().unwrap_or_default();
    if crate::simple::is_running_variable(name) {
        scene.opaque(Reason::Environment, word.text.clone());
    }
    scene.walk.state.home |= name == "HOME";
}

/// Runs the words from `at` on in another directory.
fn in_dir(scene: &mut Scene<'_, '_>, dir: Option<Dir>, at: usize) {
    let words = scene.words.get(at..).unwrap_or_default().to_vec();
    run_in(scene, dir, words);
}

/// Runs words in another directory.
pub(super) fn run_in<'a>(scene: &mut Scene<'_, 'a>, dir: Option<Dir>, words: Vec<Word<'a>>) {
    let outer = scene.walk.state.dir.clone();
    if let Some(dir) = dir {
        scene.walk.state.dir = dir;
    }
    scene.run(words, scene.exit);
    scene.walk.state.dir = outer;
}

/// `sudo -u root A=b cmd`; its options go on behind an assignment.
pub(super) fn sudo(scene: &mut Scene<'_, '_>) {
    let own = scene.leading_past(|word| {
        word.text.split_once('=').is_some_and(|(name, _)| is_name(name.as_bytes()))
    });
    for at in &own.passed {
        assigns(scene, *at);
    }
    if own.has(&["e", "edit"]) {
        let paths = own.first.and_then(|at| scene.words.get(at..)).unwrap_or_default();
        for path in paths {
            scene.effect(Access::Edit, path.clone(), false);
        }
        return;
    }
    if own.has(&["R", "chroot"]) {
        scene.opaque(Reason::Elsewhere, joined(scene.words));
    }
    let Some(at) = own.first else {
        if own.has(&["s", "i", "login", "shell"]) {
            super::interpreters::from_stdin(scene);
        }
        return;
    };
    let dir = match own.value(&["D", "chdir"]) {
        Some(dir) => Some(moved(&scene.walk.state.dir, &dir)),
        None => own.has(&["i", "login"]).then_some(Dir::Unknown),
    };
    in_dir(scene, dir, at);
}

/// `su user -c 'text'`, `su user -- args of the shell`, `runuser -u user cmd`.
pub(super) fn su(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    if own.has(&["u", "user"])
        && let Some(at) = own.first
    {
        scene.run_from(at, scene.exit);
        return;
    }
    // All other options may also stand behind the user.
    let outer = scene.walk.state.dir.clone();
    let operands = scene.operands();
    if operands.iter().any(|word| word.text == "-") || scene.has(&["l", "login"]) {
        scene.walk.state.dir = Dir::Unknown;
    }
    let mut rest: Vec<_> = operands.into_iter().filter(|word| word.text != "-").collect();
    let is_command = scene.has(&["u", "user"]);
    if !is_command && !rest.is_empty() {
        rest.remove(0);
    }
    let text = scene.value(&["c", "command", "session-command"]);
    match (scene.value(&["s", "shell"]), text) {
        _ if is_command => scene.run(rest, scene.exit),
        (None, Some(text)) => scene.child_text(&text, rest.get(1..)),
        (None, None) if rest.is_empty() => super::interpreters::from_stdin(scene),
        (shell, text) => {
            let mut words = alloc::vec![shell.unwrap_or_else(|| Word::literal("sh"))];
            words.extend(text.into_iter().flat_map(|text| [Word::literal("-c"), text]));
            words.extend(rest);
            scene.run(words, scene.exit);
        }
    }
    scene.walk.state.dir = outer;
}

/// `script -c 'text' file`, `script file -c 'text'`, and `script file cmd` as on
/// a Mac.
pub(super) fn script(scene: &mut Scene<'_, '_>) {
    let first = scene.leading().first;
    let logs = ["I", "log-in", "O", "log-out", "B", "log-io", "T", "log-timing", "timing"];
    let mut logged = false;
    for name in logs {
        if let Some(path) = scene.leading().value(&[name]) {
            scene.write(path);
            logged = true;
        }
    }
    match first.and_then(|at| scene.word(at)) {
        Some(path) => scene.write(path.clone()),
        None if !logged => scene.write(Word::literal("typescript")),
        None => {}
    }
    let behind = first.map_or(scene.words.len(), |at| at + 1);
    match scene.exact(behind) {
        Some("--") => scene.run_from(behind + 1, scene.exit),
        None if scene.word(behind).is_some() => scene.run_from(behind, scene.exit),
        Some(word) if !word.starts_with('-') => scene.run_from(behind, scene.exit),
        _ => match scene.value(&["c", "command"]) {
            Some(text) => scene.child_text(&text, None),
            None => super::interpreters::from_stdin(scene),
        },
    }
}

/// `flock file cmd`, `flock file -c 'text'`.
pub(super) fn flock(scene: &mut Scene<'_, '_>) {
    let Some(at) = scene.leading().first else { return };
    if let Some(path) = scene.word(at) {
        scene.effect(Access::Touch, path.clone(), false);
    }
    if matches!(scene.exact(at + 1), Some("-c" | "--command")) {
        if let Some(text) = scene.word(at + 2).cloned() {
            scene.child_text(&text, None);
        }
    } else {
        scene.run_from(at + 1, scene.exit);
    }
}

/// `npx jest`, `npx -c 'text'`.
pub(super) fn npx(scene: &mut Scene<'_, '_>) {
    if let Some(text) = scene.leading().value(&["c", "call"]) {
        scene.child_text(&text, None);
    }
    plain(scene);
}

/// `setarch x86_64 -R cmd`: the machine may be left out.
pub(super) fn setarch(scene: &mut Scene<'_, '_>) {
    let own = scene.leading_past(|word| {
        matches!(
            &*word.text,
            "linux32" | "linux64" | "uname26" | "i386" | "i486" | "i586" | "i686" | "x86_64"
        )
    });
    if let Some(at) = own.first {
        scene.run_from(at, scene.exit);
    }
}

/// `unshare -w dir cmd`, `systemd-run --working-directory dir cmd`.
pub(super) fn goes_to(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    let Some(at) = own.first else { return };
    if own.has(&["R", "r", "root", "M", "machine", "H", "host"]) {
        scene.opaque(Reason::Elsewhere, joined(scene.words));
    }
    let is_service = scene.exact(0).is_some_and(|name| base_name(name) == "systemd-run");
    let here = !is_service || own.has(&["d", "same-dir", "scope"]);
    let dir = match own.value(&["w", "W", "wd", "wdns", "working-directory", "D", "chdir"]) {
        Some(dir) => Some(moved(&scene.walk.state.dir, &dir)),
        None => (!here).then_some(Dir::Unknown),
    };
    in_dir(scene, dir, at);
}

/// `chroot dir cmd` runs in another tree, unless that is the whole tree.
pub(super) fn chroot(scene: &mut Scene<'_, '_>) {
    let own = scene.leading();
    match own.first {
        Some(at) if scene.exact(at).is_some_and(|root| root.trim_matches('/').is_empty()) => {
            let dir = (!own.has(&["skip-chdir"])).then(|| Dir::In("/".into()));
            in_dir(scene, dir, at + 1);
        }
        _ => scene.opaque(Reason::Elsewhere, joined(scene.words)),
    }
}

/// Words as one text, for those who search it.
pub(super) fn joined(words: &[Word<'_>]) -> String {
    words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ")
}
