//! Draws the output of the quickstart: `docs/quickstart.svg`.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::shell::{cargo, output, root};

/// The picture file.
const FILE: &str = "docs/quickstart.svg";

/// The command line that the picture shows.
const COMMAND: &str = "cargo run --release -- run examples/quickstart";

/// The maximum width of a line; longer lines are cut.
const COLUMNS: usize = 112;

/// The width of a character, in tenths of a pixel.
const LETTER: usize = 72;

/// The height of a line, in pixels.
const LINE: usize = 17;

/// The margin around the text, in pixels.
const MARGIN: usize = 16;

/// Runs the quickstart and draws its output. `built` is the path of a built program, to use instead
/// of cargo.
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
    let text = format!("\u{1b}[1m$ {COMMAND}\u{1b}[0m\n{}", remove_local_parts(&printed?));
    fs::write(root().join(FILE), draw(&text))
        .map_err(|error| format!("can't write {FILE}: {error}"))?;
    println!("{FILE}");
    Ok(())
}

/// Replaces the parts of the output that differ between machines.
fn remove_local_parts(text: &str) -> String {
    let temporary = std::env::temp_dir().display().to_string();
    let text = text.replace(&format!("{temporary}/"), "/tmp/");
    let mut words = String::new();
    for line in text.lines() {
        let line: Vec<String> = line.split(' ').map(neutral_name).collect();
        words.push_str(&line.join(" "));
        words.push('\n');
    }
    words
}

/// Replaces a time and a process id in a name.
fn neutral_name(word: &str) -> String {
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

/// The current text style.
#[derive(Clone, Copy, PartialEq)]
struct TextStyle {
    colour: &'static str,
    bold: bool,
}

const PLAIN: TextStyle = TextStyle { colour: "#d8dee9", bold: false };

fn draw(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (width, height) = (COLUMNS * LETTER / 10 + 2 * MARGIN, lines.len() * LINE + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\">\n<title>jackline run examples/quickstart</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d2129\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"12\">\n"
    );
    let mut look = PLAIN;
    for (at, line) in lines.iter().enumerate() {
        let y = MARGIN + LINE * (at + 1) - 4;
        let _ = write!(svg, "<text y=\"{y}\">");
        spans(line, &mut look, &mut svg);
        svg.push_str("</text>\n");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Draws the parts of a line, each in its style.
///
/// Viewers of SVG files remove leading spaces and join several spaces. So each part has its own
/// position, computed from its column, and its other spaces are non-breaking.
fn spans(line: &str, look: &mut TextStyle, svg: &mut String) {
    let mut column = 0;
    for (at, part) in line.split('\u{1b}').enumerate() {
        let shown =
            match part.strip_prefix('[').filter(|_| at > 0).and_then(|part| part.split_once('m')) {
                Some((codes, rest)) => {
                    codes.split(';').for_each(|code| *look = apply_code(*look, code));
                    rest
                }
                None => part,
            };
        let start = column;
        let room = COLUMNS.saturating_sub(start);
        let mut visible: String = shown.chars().take(room).collect();
        column += shown.chars().count();
        if column > COLUMNS && visible.pop().is_some() {
            visible.push('…');
        }
        let text = visible.trim_start_matches(' ');
        if text.is_empty() {
            continue;
        }
        let indent = visible.len() - text.len();
        let x = MARGIN * 10 + (start + indent) * LETTER;
        let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let text = text.replace(' ', "\u{a0}");
        let (pixels, tenths) = (x / 10, x % 10);
        let _ = write!(
            svg,
            "<tspan x=\"{pixels}.{tenths}\" fill=\"{}\"{weight}>{text}</tspan>",
            look.colour
        );
    }
}

fn apply_code(look: TextStyle, code: &str) -> TextStyle {
    match code {
        "" | "0" => PLAIN,
        "1" => TextStyle { bold: true, ..look },
        "2" => TextStyle { colour: "#7b8496", ..look },
        "31" => TextStyle { colour: "#e06c75", ..look },
        "32" => TextStyle { colour: "#98c379", ..look },
        "33" => TextStyle { colour: "#e5c07b", ..look },
        "36" => TextStyle { colour: "#56b6c2", ..look },
        _ => look,
    }
}
