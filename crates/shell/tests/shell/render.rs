//! A line as the tables write it: one row a command, one a part that is opaque.
//!
//! `grep x a.txt -- lost, in src, reads a.txt` is a command with what differs from
//! the plain case: a status that decides, the directory the line started in.
//! `? ScriptFile x.py` is an opaque part and its text. `*{…}` is a pattern,
//! `?{…}` is not known, `/**` stands for everything below.

use std::fmt::Write as _;

use jackline_shell::{Access, Dir, Exit, Known, Line, Lines, Word};

pub(crate) fn render(line: &Line<'_>) -> String {
    let mut out = String::new();
    for command in &line.commands {
        let words: Vec<_> = command.words.iter().map(word).collect();
        let mut says = Vec::new();
        match command.exit {
            Exit::Decides => {}
            Exit::Needed => says.push("needed".to_owned()),
            Exit::Enough => says.push("enough".to_owned()),
            Exit::Lost => says.push("lost".to_owned()),
        }
        match &command.dir {
            Dir::Start => {}
            Dir::In(path) => says.push(format!("in {path}")),
            Dir::Either(path) => says.push(format!("in {path} or not")),
            Dir::Unknown => says.push("in ?".to_owned()),
        }
        for effect in &command.effects {
            let below = if effect.recursive { "/**" } else { "" };
            let path = format!("{}{below}", word(&effect.path));
            says.push(match effect.access {
                Access::Read(Lines::All) => format!("reads all {path}"),
                Access::Read(Lines::Range(from, to)) => format!("reads {from}-{to} {path}"),
                Access::Read(Lines::From(from)) => format!("reads {from}- {path}"),
                Access::Read(Lines::Last(last)) => format!("reads -{last} {path}"),
                Access::Read(Lines::Some) => format!("reads {path}"),
                Access::Write => format!("writes {path}"),
                Access::Append => format!("appends {path}"),
                Access::Edit => format!("edits {path}"),
                Access::Touch => format!("touches {path}"),
                Access::Delete => format!("deletes {path}"),
            });
        }
        let words = if words.is_empty() { "-".to_owned() } else { words.join(" ") };
        if says.is_empty() {
            let _ = writeln!(out, "{words}");
        } else {
            let _ = writeln!(out, "{words} -- {}", says.join(", "));
        }
    }
    for opaque in &line.opaque {
        let text = opaque.text.replace('\n', "\\n");
        let _ = writeln!(out, "{}", format!("? {:?} {text}", opaque.reason).trim_end());
    }
    out
}

fn word(word: &Word<'_>) -> String {
    let text = word.text.replace('\n', "\\n");
    match word.known {
        Known::Literal if text.is_empty() || text.contains([' ', '\t']) => format!("'{text}'"),
        Known::Literal | Known::Home => text,
        Known::Glob => format!("*{{{text}}}"),
        Known::Repository => "<repository>".to_owned(),
        Known::Unknown => format!("?{{{text}}}"),
    }
}
