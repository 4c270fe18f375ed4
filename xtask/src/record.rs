//! A picture of the quickstart, made by running it: `docs/quickstart.svg`.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::shell::{cargo, output, root};

/// The picture.
const FILE: &str = "docs/quickstart.svg";

/// What is run.
const COMMAND: &str = "cargo run --release -- run examples/quickstart";

/// How wide a line may be before it is cut.
const COLUMNS: usize = 112;

/// A letter is a tenth of this wide.
const LETTER: usize = 72;

/// How high a line is.
const LINE: usize = 17;

/// Runs the quickstart and draws what it prints; by a program that is built, where one is named.
pub(crate) fn quickstart(built: Option<&String>) -> Result<(), String> {
    let home = std::env::temp_dir().join(format!("jackline-record-{}", std::process::id()));
    let mut command = match built {
        Some(program) => {
            let mut command = Command::new(program);
            command.current_dir(root());
            command
        }
        None => cargo(&["run", "--quiet", "--release", "--locked", "--"]),
    };
    command.args(["run", "examples/quickstart", "--scripted"]);
    command.env("JACKLINE_HOME", &home).env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    let printed = output(&mut command);
    let _ = fs::remove_dir_all(&home);
    let text = format!("\u{1b}[1m$ {COMMAND}\u{1b}[0m\n{}", somewhere(&printed?));
    fs::write(root().join(FILE), draw(&text))
        .map_err(|error| format!("can't write {FILE}: {error}"))?;
    println!("{FILE}");
    Ok(())
}

/// What is printed without what differs from machine to machine.
fn somewhere(text: &str) -> String {
    let temporary = std::env::temp_dir().display().to_string();
    let text = text.replace(&format!("{temporary}/"), "/tmp/");
    let mut words = String::new();
    for line in text.lines() {
        let line: Vec<String> = line.split(' ').map(name).collect();
        words.push_str(&line.join(" "));
        words.push('\n');
    }
    words
}

/// A name with a time and a process in it, with others.
fn name(word: &str) -> String {
    for (start, plain) in
        [("run-", "run-1"), ("/tmp/jackline-quickstart-", "/tmp/jackline-quickstart-1")]
    {
        if let Some(at) = word.find(start)
            && word[at + start.len()..].starts_with(|c: char| c.is_ascii_digit())
        {
            let rest = word[at + start.len()..]
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
            return format!("{}{plain}{rest}", &word[..at]);
        }
    }
    word.to_owned()
}

/// A style that is in force.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    colour: &'static str,
    bold: bool,
}

const PLAIN: Look = Look { colour: "#d8dee9", bold: false };

fn draw(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (width, height) = (COLUMNS * LETTER / 10 + 32, lines.len() * LINE + 32);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\">\n<title>jackline run examples/quickstart</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d2129\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"12\" xml:space=\"preserve\">\n"
    );
    let mut look = PLAIN;
    for (at, line) in lines.iter().enumerate() {
        let y = 16 + LINE * (at + 1) - 4;
        let _ = write!(svg, "<text x=\"16\" y=\"{y}\">");
        spans(line, &mut look, &mut svg);
        svg.push_str("</text>\n");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// The parts of a line, each in its style.
fn spans(line: &str, look: &mut Look, svg: &mut String) {
    let mut column = 0;
    for (at, part) in line.split('\u{1b}').enumerate() {
        let shown =
            match part.strip_prefix('[').filter(|_| at > 0).and_then(|part| part.split_once('m')) {
                Some((codes, rest)) => {
                    codes.split(';').for_each(|code| *look = after(*look, code));
                    rest
                }
                None => part,
            };
        let room = COLUMNS.saturating_sub(column);
        let mut kept: String = shown.chars().take(room).collect();
        column += shown.chars().count();
        if column > COLUMNS && kept.pop().is_some() {
            kept.push('…');
        }
        if kept.is_empty() {
            continue;
        }
        let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
        let text = kept.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = write!(svg, "<tspan fill=\"{}\"{weight}>{text}</tspan>", look.colour);
    }
}

fn after(look: Look, code: &str) -> Look {
    match code {
        "" | "0" => PLAIN,
        "1" => Look { bold: true, ..look },
        "2" => Look { colour: "#7b8496", ..look },
        "31" => Look { colour: "#e06c75", ..look },
        "32" => Look { colour: "#98c379", ..look },
        "33" => Look { colour: "#e5c07b", ..look },
        _ => look,
    }
}
