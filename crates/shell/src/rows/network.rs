//! Programs that transfer files between machines, or run commands on another machine.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::wrappers::join_words;
use crate::command_context::{CommandArg, CommandContext, word_tail};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord, base_name};
use crate::shell_walk::StreamContent;

/// The options of `curl` that take a value.
pub(super) const CURL_OPTIONS: &str = "o X H d F T K A b c e u m x w C D E r y Y z output request header \
    data data-raw data-binary data-urlencode form upload-file config user-agent cookie cookie-jar \
    referer user max-time proxy write-out continue-at dump-header cert range url output-dir \
    head? connect-timeout retry retry-delay json cacert capath key stderr trace trace-ascii etag-save \
    etag-compare hsts alt-svc libcurl";

pub(super) fn curl(context: &mut CommandContext<'_, '_>) {
    context.report_unknown_options();
    let mut remote_name = false;
    let mut dir: Option<ShellWord<'_>> = None;
    for arg in context.args() {
        match arg {
            CommandArg::Option(
                "o" | "output" | "D" | "dump-header" | "c" | "cookie-jar" | "stderr" | "trace"
                | "trace-ascii" | "etag-save" | "hsts" | "alt-svc" | "libcurl",
                Some(path),
            ) => {
                if path.text.contains('#') {
                    context.add_write(ShellWord::unknown(path.text));
                } else {
                    context.add_write(path);
                }
            }
            CommandArg::Option(
                "O" | "remote-name" | "remote-name-all" | "J" | "remote-header-name",
                _,
            ) => {
                remote_name = true;
            }
            CommandArg::Option("output-dir", value) => dir = value,
            CommandArg::Option("K" | "config", Some(path)) => {
                context.add_opaque(OpaqueReason::ScriptFile, path.text.clone());
                context.add_read(path, ReadExtent::Partial);
            }
            CommandArg::Option("T" | "upload-file", Some(path)) => {
                context.add_read(path, ReadExtent::Partial);
            }
            CommandArg::Option(_, Some(value)) => {
                if let Some(at) = value.text.find('@').filter(|at| *at == 0) {
                    context.add_read(word_tail(&value, at + 1), ReadExtent::Partial);
                } else if let Some(at) = value.text.find("=@") {
                    context.add_read(word_tail(&value, at + 2), ReadExtent::Partial);
                }
            }
            _ => {}
        }
    }
    if remote_name {
        report_downloads(context, dir.as_ref());
    }
}

/// Reports a write for every download, to the name from its URL.
fn report_downloads<'a>(context: &mut CommandContext<'_, 'a>, dir: Option<&ShellWord<'a>>) {
    for url in context.operands() {
        let name = download_name(&url);
        let path = match dir {
            Some(dir) => CommandContext::path_inside(dir, &name),
            None => name,
        };
        context.add_write(path);
    }
}

/// The file name of a download.
fn download_name<'a>(url: &ShellWord<'a>) -> ShellWord<'a> {
    let path = url.text.split(['?', '#']).next().unwrap_or_default();
    let rest = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = match rest.split_once('/') {
        Some((_, path)) if !base_name(path).is_empty() => base_name(path),
        _ => "index.html",
    };
    ShellWord { text: Cow::Owned(String::from(name)), kind: url.kind }
}

pub(super) fn wget(context: &mut CommandContext<'_, '_>) {
    if let Some(command) = context.option_value(&["e", "execute"]) {
        context.add_opaque(OpaqueReason::InlineScript, command.text);
    }
    for option in [
        ["o", "output-file"],
        ["O", "output-document"],
        ["a", "append-output"],
        ["save-cookies", "rejected-log"],
        ["hsts-file", "warc-file"],
    ] {
        if let Some(path) = context.option_value(&option) {
            context.add_write(path);
        }
    }
    if let Some(path) = context.option_value(&["i", "input-file"]) {
        context.add_read(path, ReadExtent::Partial);
        context.add_opaque(OpaqueReason::Contents, ".");
    }
    if let Some(path) = context.option_value(&["post-file", "body-file"]) {
        context.add_read(path, ReadExtent::Partial);
    }
    if context.has_option(&["r", "m", "recursive", "mirror", "use-askpass"]) {
        context.add_opaque(OpaqueReason::Contents, ".");
    }
    if context.has_option(&["O", "output-document", "spider"]) {
        return;
    }
    let dir = context.option_value(&["P", "directory-prefix"]);
    report_downloads(context, dir.as_ref());
}

/// `ssh host cmd` runs on another machine.
pub(super) fn run_remote(context: &mut CommandContext<'_, '_>) {
    for arg in context.args() {
        if let CommandArg::Option("o", Some(option)) = arg
            && option.text.to_ascii_lowercase().contains("command")
        {
            context.add_opaque(OpaqueReason::InlineScript, option.text);
        }
    }
    context.add_opaque(
        OpaqueReason::Elsewhere,
        join_words(context.words.get(1..).unwrap_or_default()),
    );
}

/// Whether an operand of `scp` or `rsync` is on another machine.
fn is_remote(word: &ShellWord<'_>) -> bool {
    let text = &*word.text;
    text.contains("://") || text.split_once(':').is_some_and(|(host, _)| !host.contains('/'))
}

pub(super) fn scp(context: &mut CommandContext<'_, '_>) {
    report_transfer(context);
    if context.has_option(&["S", "o", "F"]) {
        context.add_opaque(OpaqueReason::Runner, join_words(context.words));
    }
}

pub(super) fn rsync(context: &mut CommandContext<'_, '_>) {
    report_transfer(context);
    if context.has_option(&["e", "rsh", "rsync-path"]) {
        context.add_opaque(OpaqueReason::Runner, join_words(context.words));
    }
    if let Some(path) = context.option_value(&["log-file"]) {
        context.add_write(path);
    }
}

/// Reports a copy from sources to a target, any of which may be on another machine.
fn report_transfer(context: &mut CommandContext<'_, '_>) {
    let mut operands = context.operands();
    let Some(target) = operands.pop() else { return };
    let recursive = context.has_option(&["r", "a", "recursive", "archive"]);
    let removes = context.has_option(&["remove-source-files"]);
    let far = is_remote(&target) || operands.iter().any(is_remote);
    for source in operands.iter().filter(|word| !is_remote(word)) {
        context.add_effect(Access::Read(ReadExtent::Partial), source.clone(), recursive);
        if removes {
            context.add_delete(source.clone(), recursive);
        }
    }
    if !is_remote(&target) {
        context.add_effect(Access::Write, target.clone(), recursive);
        // `rsync dir/ target` copies the contents of the directory.
        let whole = context.exact_text(0).is_some_and(|name| base_name(name) == "rsync");
        for source in operands.iter().filter(|source| !(whole && source.text.ends_with('/'))) {
            let name = source.text.rsplit(':').next().unwrap_or_default();
            let name = ShellWord { text: Cow::Owned(String::from(name)), kind: source.kind };
            context.add_effect(
                Access::Write,
                CommandContext::path_inside(&target, &name),
                recursive,
            );
        }
        if context
            .args()
            .any(|arg| matches!(arg, CommandArg::Option(name, _) if name.starts_with("delete")))
        {
            context.add_delete(target, true);
        }
    }
    if far {
        context.add_opaque(OpaqueReason::Elsewhere, join_words(context.words));
    }
}

/// `nc`, which may run a program for a client that connects.
pub(super) fn open_socket(context: &mut CommandContext<'_, '_>) {
    context.add_opaque(OpaqueReason::Elsewhere, join_words(context.words));
}

/// Containers and clusters: a command there may change our files through a mount.
pub(super) fn run_in_container(context: &mut CommandContext<'_, '_>) {
    // The first operand may be the value of an option that is not in our list.
    let options = context.leading_options();
    let idle = options.all_have_values()
        && matches!(
            options.first_operand.and_then(|at| context.exact_text(at)),
            Some("ps" | "images" | "version" | "info" | "logs" | "inspect" | "get" | "describe")
        );
    if !idle {
        context.add_opaque(
            OpaqueReason::Elsewhere,
            join_words(context.words.get(1..).unwrap_or_default()),
        );
    }
}

/// `openssl enc -in a -out b`: long options with one dash.
pub(super) fn openssl(context: &mut CommandContext<'_, '_>) {
    for (at, word) in context.words.iter().enumerate() {
        let value = context.word(at + 1).cloned();
        if at == 1 && word.text == "engine" {
            context.add_opaque(OpaqueReason::ScriptFile, join_words(context.words));
        }
        match (&*word.text, value) {
            ("-out" | "-keyout" | "-CAserial" | "-writerand", Some(path)) => {
                context.add_write(path);
            }
            ("-in" | "-key" | "-config" | "-CAfile" | "-inkey", Some(path)) => {
                context.add_read(path, ReadExtent::Partial);
            }
            ("-engine" | "-provider", Some(name)) => {
                context.add_opaque(OpaqueReason::Runner, name.text);
            }
            _ => {}
        }
    }
}

/// Programs that write to the file of `-o` and read their operands.
pub(super) fn write_output_option(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["o", "output"]) {
        context.add_write(path);
    }
    for path in context.operands() {
        context.add_read(path, ReadExtent::Partial);
    }
}

/// `pg_dump -f file`, `mysqldump -r file`, `redis-cli --rdb file`.
pub(super) fn write_dump(context: &mut CommandContext<'_, '_>) {
    for option in ["f", "file", "r", "result-file", "o", "out", "archive", "rdb"] {
        if let Some(path) = context.option_value(&[option]) {
            context.add_write(path);
        }
    }
}

/// `aria2c -o file url`.
pub(super) fn aria2c(context: &mut CommandContext<'_, '_>) {
    let dir = context.option_value(&["d", "dir"]).unwrap_or_else(|| ShellWord::literal("."));
    match context.option_value(&["o", "out"]) {
        Some(path) => context.add_write(CommandContext::path_inside(&dir, &path)),
        None => report_downloads(context, Some(&dir)),
    }
    if let Some(path) = context.option_value(&["i", "input-file"]) {
        context.add_read(path, ReadExtent::Partial);
        context.add_opaque(OpaqueReason::Contents, dir.text);
    }
}

/// `ssh-keygen -f file`.
pub(super) fn write_keys(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["f"]) {
        let public = ShellWord { text: Cow::Owned([&path.text, ".pub"].concat()), kind: path.kind };
        context.add_write(path);
        context.add_write(public);
    }
    if let Some(library) = context.option_value(&["D"]) {
        context.add_opaque(OpaqueReason::ScriptFile, library.text);
    }
}

/// `tcpdump -w file -z cmd`.
pub(super) fn tcpdump(context: &mut CommandContext<'_, '_>) {
    if let Some(path) = context.option_value(&["w"]) {
        context.add_write(path);
    }
    if let Some(program) = context.option_value(&["z"]) {
        context.run_repeatedly(alloc::vec![program, ShellWord::unknown("{}")]);
    }
}

/// `aws s3 cp s3://bucket/x file`, `gsutil cp gs://bucket/x file`.
pub(super) fn copy_buckets(context: &mut CommandContext<'_, '_>) {
    let mut operands = context.operands();
    operands.retain(|word| word.text != "s3");
    let copies = matches!(operands.first().map(|word| &*word.text), Some("cp" | "mv" | "sync"));
    if copies
        && let [_, source, target, ..] = operands.as_slice()
        && !is_remote(target)
    {
        context.add_effect(Access::Write, target.clone(), true);
        context.add_effect(Access::Write, CommandContext::path_inside(target, source), true);
    }
    context.add_opaque(OpaqueReason::Elsewhere, join_words(context.words));
}

/// `sqlite3 file 'sql'`, `psql -c 'sql'`: we do not read the statements.
pub(super) fn run_statements(context: &mut CommandContext<'_, '_>) {
    let is_sqlite = context.exact_text(0).is_some_and(|name| name.ends_with("sqlite3"));
    for arg in context.args() {
        match arg {
            CommandArg::Option("c" | "command" | "cmd" | "e" | "execute", Some(text)) => {
                context.add_opaque(OpaqueReason::InlineScript, text.text);
            }
            CommandArg::Option("f" | "file" | "init", Some(path)) => {
                context.add_opaque(OpaqueReason::ScriptFile, path.text.clone());
                context.add_read(path, ReadExtent::Partial);
            }
            CommandArg::Option("o" | "output" | "L" | "log-file", Some(path)) => {
                context.add_write(path);
            }
            _ => {}
        }
    }
    if is_sqlite {
        let mut operands = sqlite_operands(context).into_iter();
        if let Some(path) = operands.next() {
            context.add_effect(Access::Edit, path, false);
        }
        for text in operands {
            context.add_opaque(OpaqueReason::InlineScript, text.text);
        }
    }
    if let StreamContent::Text(text) | StreamContent::PartialText(text) = context.stdin_content() {
        context.add_opaque(OpaqueReason::InlineScript, text);
    }
}

/// The operands of `sqlite3`, whose long options have one dash.
fn sqlite_operands<'a>(context: &CommandContext<'_, 'a>) -> Vec<ShellWord<'a>> {
    let mut out = Vec::new();
    let mut at = 1;
    while let Some(word) = context.word(at) {
        match &*word.text {
            "-separator" | "-init" | "-cmd" | "-newline" | "-nullvalue" => at += 1,
            text if text.starts_with('-') => {}
            _ => out.push(word.clone()),
        }
        at += 1;
    }
    out
}
