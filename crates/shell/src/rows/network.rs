//! Programs that bring files from elsewhere, or run things there.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::wrappers::joined;
use crate::line::{Access, Lines, Reason, Word, base_name};
use crate::scene::{Arg, Scene, tail};
use crate::walk::Stdin;

/// The options of `curl` that take a value.
pub(super) const CURL: &str = "o X H d F T K A b c e u m x w C D E r y Y z output request header \
    data data-raw data-binary data-urlencode form upload-file config user-agent cookie cookie-jar \
    referer user max-time proxy write-out continue-at dump-header cert range url output-dir \
    head? connect-timeout retry retry-delay json cacert capath key stderr trace trace-ascii etag-save \
    etag-compare hsts alt-svc libcurl";

pub(super) fn curl(scene: &mut Scene<'_, '_>) {
    scene.unknown_options();
    let mut remote_name = false;
    let mut dir: Option<Word<'_>> = None;
    for arg in scene.args() {
        match arg {
            Arg::Option(
                "o" | "output" | "D" | "dump-header" | "c" | "cookie-jar" | "stderr" | "trace"
                | "trace-ascii" | "etag-save" | "hsts" | "alt-svc" | "libcurl",
                Some(path),
            ) => {
                if path.text.contains('#') {
                    scene.write(Word::unknown(path.text));
                } else {
                    scene.write(path);
                }
            }
            Arg::Option(
                "O" | "remote-name" | "remote-name-all" | "J" | "remote-header-name",
                _,
            ) => {
                remote_name = true;
            }
            Arg::Option("output-dir", value) => dir = value,
            Arg::Option("K" | "config", Some(path)) => {
                scene.opaque(Reason::ScriptFile, path.text.clone());
                scene.read(path, Lines::Some);
            }
            Arg::Option("T" | "upload-file", Some(path)) => scene.read(path, Lines::Some),
            Arg::Option(_, Some(value)) => {
                if let Some(at) = value.text.find('@').filter(|at| *at == 0) {
                    scene.read(tail(&value, at + 1), Lines::Some);
                } else if let Some(at) = value.text.find("=@") {
                    scene.read(tail(&value, at + 2), Lines::Some);
                }
            }
            _ => {}
        }
    }
    if remote_name {
        keep_downloads(scene, dir.as_ref());
    }
}

/// Every download is written under its own name.
fn keep_downloads<'a>(scene: &mut Scene<'_, 'a>, dir: Option<&Word<'a>>) {
    for url in scene.operands() {
        let name = download_name(&url);
        let path = match dir {
            Some(dir) => Scene::inside(dir, &name),
            None => name,
        };
        scene.write(path);
    }
}

/// The name a download is kept under.
fn download_name<'a>(url: &Word<'a>) -> Word<'a> {
    let path = url.text.split(['?', '#']).next().unwrap_or_default();
    let rest = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = match rest.split_once('/') {
        Some((_, path)) if !base_name(path).is_empty() => base_name(path),
        _ => "index.html",
    };
    Word { text: Cow::Owned(String::from(name)), known: url.known }
}

pub(super) fn wget(scene: &mut Scene<'_, '_>) {
    if let Some(command) = scene.value(&["e", "execute"]) {
        scene.opaque(Reason::InlineScript, command.text);
    }
    for option in [
        ["o", "output-file"],
        ["O", "output-document"],
        ["a", "append-output"],
        ["save-cookies", "rejected-log"],
        ["hsts-file", "warc-file"],
    ] {
        if let Some(path) = scene.value(&option) {
            scene.write(path);
        }
    }
    if let Some(path) = scene.value(&["i", "input-file"]) {
        scene.read(path, Lines::Some);
        scene.opaque(Reason::Contents, ".");
    }
    if let Some(path) = scene.value(&["post-file", "body-file"]) {
        scene.read(path, Lines::Some);
    }
    if scene.has(&["r", "m", "recursive", "mirror", "use-askpass"]) {
        scene.opaque(Reason::Contents, ".");
    }
    if scene.has(&["O", "output-document", "spider"]) {
        return;
    }
    let dir = scene.value(&["P", "directory-prefix"]);
    keep_downloads(scene, dir.as_ref());
}

/// `ssh host cmd` runs on another machine.
pub(super) fn remote(scene: &mut Scene<'_, '_>) {
    for arg in scene.args() {
        if let Arg::Option("o", Some(option)) = arg
            && option.text.to_ascii_lowercase().contains("command")
        {
            scene.opaque(Reason::InlineScript, option.text);
        }
    }
    scene.opaque(Reason::Elsewhere, joined(scene.words.get(1..).unwrap_or_default()));
}

/// Whether an operand of `scp` or `rsync` is on another machine.
fn is_remote(word: &Word<'_>) -> bool {
    let text = &*word.text;
    text.contains("://") || text.split_once(':').is_some_and(|(host, _)| !host.contains('/'))
}

pub(super) fn scp(scene: &mut Scene<'_, '_>) {
    transfer(scene);
    if scene.has(&["S", "o", "F"]) {
        scene.opaque(Reason::Runner, joined(scene.words));
    }
}

pub(super) fn rsync(scene: &mut Scene<'_, '_>) {
    transfer(scene);
    if scene.has(&["e", "rsh", "rsync-path"]) {
        scene.opaque(Reason::Runner, joined(scene.words));
    }
    if let Some(path) = scene.value(&["log-file"]) {
        scene.write(path);
    }
}

/// Sources, then a target, either of them maybe elsewhere.
fn transfer(scene: &mut Scene<'_, '_>) {
    let mut operands = scene.operands();
    let Some(target) = operands.pop() else { return };
    let recursive = scene.has(&["r", "a", "recursive", "archive"]);
    let removes = scene.has(&["remove-source-files"]);
    let far = is_remote(&target) || operands.iter().any(is_remote);
    for source in operands.iter().filter(|word| !is_remote(word)) {
        scene.effect(Access::Read(Lines::Some), source.clone(), recursive);
        if removes {
            scene.delete(source.clone(), recursive);
        }
    }
    if !is_remote(&target) {
        scene.effect(Access::Write, target.clone(), recursive);
        // `rsync dir/ target` copies what is in the directory.
        let whole = scene.exact(0).is_some_and(|name| base_name(name) == "rsync");
        for source in operands.iter().filter(|source| !(whole && source.text.ends_with('/'))) {
            let name = source.text.rsplit(':').next().unwrap_or_default();
            let name = Word { text: Cow::Owned(String::from(name)), known: source.known };
            scene.effect(Access::Write, Scene::inside(&target, &name), recursive);
        }
        if scene.args().any(|arg| matches!(arg, Arg::Option(name, _) if name.starts_with("delete")))
        {
            scene.delete(target, true);
        }
    }
    if far {
        scene.opaque(Reason::Elsewhere, joined(scene.words));
    }
}

/// `nc`, which may run a program for whoever connects.
pub(super) fn socket(scene: &mut Scene<'_, '_>) {
    scene.opaque(Reason::Elsewhere, joined(scene.words));
}

/// Containers and clusters: what runs there is not here, but may be mounted.
pub(super) fn container(scene: &mut Scene<'_, '_>) {
    // Behind an option that we do not know, the first operand may be its value.
    let own = scene.leading();
    let idle = own.all_have_values()
        && matches!(
            own.first.and_then(|at| scene.exact(at)),
            Some("ps" | "images" | "version" | "info" | "logs" | "inspect" | "get" | "describe")
        );
    if !idle {
        scene.opaque(Reason::Elsewhere, joined(scene.words.get(1..).unwrap_or_default()));
    }
}

/// `openssl enc -in a -out b`: options with one dash.
pub(super) fn openssl(scene: &mut Scene<'_, '_>) {
    for (at, word) in scene.words.iter().enumerate() {
        let value = scene.word(at + 1).cloned();
        if at == 1 && word.text == "engine" {
            scene.opaque(Reason::ScriptFile, joined(scene.words));
        }
        match (&*word.text, value) {
            ("-out" | "-keyout" | "-CAserial" | "-writerand", Some(path)) => scene.write(path),
            ("-in" | "-key" | "-config" | "-CAfile" | "-inkey", Some(path)) => {
                scene.read(path, Lines::Some);
            }
            ("-engine" | "-provider", Some(name)) => scene.opaque(Reason::Runner, name.text),
            _ => {}
        }
    }
}

/// Programs with `-o file`.
pub(super) fn output_option(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["o", "output"]) {
        scene.write(path);
    }
    for path in scene.operands() {
        scene.read(path, Lines::Some);
    }
}

/// `pg_dump -f file`, `mysqldump -r file`, `redis-cli --rdb file`.
pub(super) fn dumps(scene: &mut Scene<'_, '_>) {
    for option in ["f", "file", "r", "result-file", "o", "out", "archive", "rdb"] {
        if let Some(path) = scene.value(&[option]) {
            scene.write(path);
        }
    }
}

/// `aria2c -o file url`.
pub(super) fn aria2c(scene: &mut Scene<'_, '_>) {
    let dir = scene.value(&["d", "dir"]).unwrap_or_else(|| Word::literal("."));
    match scene.value(&["o", "out"]) {
        Some(path) => scene.write(Scene::inside(&dir, &path)),
        None => keep_downloads(scene, Some(&dir)),
    }
    if let Some(path) = scene.value(&["i", "input-file"]) {
        scene.read(path, Lines::Some);
        scene.opaque(Reason::Contents, dir.text);
    }
}

/// `ssh-keygen -f file`.
pub(super) fn keys(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["f"]) {
        let public = Word { text: Cow::Owned([&path.text, ".pub"].concat()), known: path.known };
        scene.write(path);
        scene.write(public);
    }
    if let Some(library) = scene.value(&["D"]) {
        scene.opaque(Reason::ScriptFile, library.text);
    }
}

/// `tcpdump -w file -z cmd`.
pub(super) fn tcpdump(scene: &mut Scene<'_, '_>) {
    if let Some(path) = scene.value(&["w"]) {
        scene.write(path);
    }
    if let Some(program) = scene.value(&["z"]) {
        scene.run_each(alloc::vec![program, Word::unknown("{}")]);
    }
}

/// `aws s3 cp s3://bucket/x file`, `gsutil cp gs://bucket/x file`.
pub(super) fn buckets(scene: &mut Scene<'_, '_>) {
    let mut operands = scene.operands();
    operands.retain(|word| word.text != "s3");
    let copies = matches!(operands.first().map(|word| &*word.text), Some("cp" | "mv" | "sync"));
    if copies
        && let [_, source, target, ..] = operands.as_slice()
        && !is_remote(target)
    {
        scene.effect(Access::Write, target.clone(), true);
        scene.effect(Access::Write, Scene::inside(target, source), true);
    }
    scene.opaque(Reason::Elsewhere, joined(scene.words));
}

/// `sqlite3 file 'sql'`, `psql -c 'sql'`: statements we do not read.
pub(super) fn database(scene: &mut Scene<'_, '_>) {
    let is_sqlite = scene.exact(0).is_some_and(|name| name.ends_with("sqlite3"));
    for arg in scene.args() {
        match arg {
            Arg::Option("c" | "command" | "cmd" | "e" | "execute", Some(text)) => {
                scene.opaque(Reason::InlineScript, text.text);
            }
            Arg::Option("f" | "file" | "init", Some(path)) => {
                scene.opaque(Reason::ScriptFile, path.text.clone());
                scene.read(path, Lines::Some);
            }
            Arg::Option("o" | "output" | "L" | "log-file", Some(path)) => scene.write(path),
            _ => {}
        }
    }
    if is_sqlite {
        let mut operands = sqlite_operands(scene).into_iter();
        if let Some(path) = operands.next() {
            scene.effect(Access::Edit, path, false);
        }
        for text in operands {
            scene.opaque(Reason::InlineScript, text.text);
        }
    }
    if let Stdin::Text(text) | Stdin::Partly(text) = scene.stdin_script() {
        scene.opaque(Reason::InlineScript, text);
    }
}

/// `sqlite3` writes its options with one dash.
fn sqlite_operands<'a>(scene: &Scene<'_, 'a>) -> Vec<Word<'a>> {
    let mut out = Vec::new();
    let mut at = 1;
    while let Some(word) = scene.word(at) {
        match &*word.text {
            "-separator" | "-init" | "-cmd" | "-newline" | "-nullvalue" => at += 1,
            text if text.starts_with('-') => {}
            _ => out.push(word.clone()),
        }
        at += 1;
    }
    out
}
