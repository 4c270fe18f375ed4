//! Writes a result in the format of the tables: one row per command or opaque part.
//!
//! `grep x a.txt -- lost, in src, reads a.txt` is a command and its properties. Default
//! properties are omitted: an exit status that decides, the directory of the line.
//! `? ScriptFile x.py` is an opaque part and its text. `*{…}` is a pattern, `?{…}` has
//! an unknown value, `/**` means everything below.

use std::fmt::Write as _;

use jackline_shell::{
    Access, ExitEvidence, ReadExtent, ShellLine, ShellWord, WordKind, WorkingDir,
};

pub(crate) fn render(line: &ShellLine<'_>) -> String {
    let mut out = String::new();
    for command in &line.commands {
        let words: Vec<_> = command.words.iter().map(word).collect();
        let mut properties = Vec::new();
        match command.exit_evidence {
            ExitEvidence::Decides => {}
            ExitEvidence::Needed => properties.push("needed".to_owned()),
            ExitEvidence::Enough => properties.push("enough".to_owned()),
            ExitEvidence::Lost => properties.push("lost".to_owned()),
        }
        match &command.dir {
            WorkingDir::Start => {}
            WorkingDir::Path(path) => properties.push(format!("in {path}")),
            WorkingDir::PathOrStart(path) => properties.push(format!("in {path} or not")),
            WorkingDir::Unknown => properties.push("in ?".to_owned()),
        }
        for effect in &command.effects {
            let below = if effect.recursive { "/**" } else { "" };
            let path = format!("{}{below}", word(&effect.path));
            properties.push(match effect.access {
                Access::Read(ReadExtent::All) => format!("reads all {path}"),
                Access::Read(ReadExtent::Range(from, to)) => format!("reads {from}-{to} {path}"),
                Access::Read(ReadExtent::From(from)) => format!("reads {from}- {path}"),
                Access::Read(ReadExtent::Last(last)) => format!("reads -{last} {path}"),
                Access::Read(ReadExtent::Partial) => format!("reads {path}"),
                Access::Write => format!("writes {path}"),
                Access::Append => format!("appends {path}"),
                Access::Edit => format!("edits {path}"),
                Access::Touch => format!("touches {path}"),
                Access::Delete => format!("deletes {path}"),
            });
        }
        let words = if words.is_empty() { "-".to_owned() } else { words.join(" ") };
        if properties.is_empty() {
            let _ = writeln!(out, "{words}");
        } else {
            let _ = writeln!(out, "{words} -- {}", properties.join(", "));
        }
    }
    for opaque in &line.opaque_parts {
        let text = opaque.text.replace('\n', "\\n");
        let _ = writeln!(out, "{}", format!("? {:?} {text}", opaque.reason).trim_end());
    }
    out
}

fn word(word: &ShellWord<'_>) -> String {
    let text = word.text.replace('\n', "\\n");
    match word.kind {
        WordKind::Literal if text.is_empty() || text.contains([' ', '\t']) => format!("'{text}'"),
        WordKind::Literal | WordKind::Home => text,
        WordKind::Glob => format!("*{{{text}}}"),
        WordKind::Repository => "<repository>".to_owned(),
        WordKind::Unknown => format!("?{{{text}}}"),
    }
}
