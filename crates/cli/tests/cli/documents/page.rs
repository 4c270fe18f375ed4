//! The blocks of a page that a test has to look at.

/// A document, as its lines and its blocks.
pub(crate) struct DocumentPage {
    lines: Vec<String>,
    pub(crate) blocks: Vec<PageBlock>,
}

/// One fenced block, or a comment that prepares the next ones.
pub(crate) enum PageBlock {
    /// Commands and their output.
    Console { commands: Vec<ShownCommand>, treatment: CommandCheck },
    /// The content of a file that the commands below need.
    File { path: String, text: String },
    /// Shell lines that readers don't see.
    Preparation { script: String, line: usize },
    /// Anything else.
    Other { language: String, text: String, line: usize },
}

/// A command with the output that the page shows for it.
#[derive(Clone)]
pub(crate) struct ShownCommand {
    pub(crate) command: String,
    pub(crate) output: String,
    /// The line of the command, counted from one.
    pub(crate) line: usize,
    /// The lines of its output, counted from zero, the last one excluded.
    pub(crate) output_lines: (usize, usize),
}

/// How the commands of a block are checked.
pub(crate) enum CommandCheck {
    /// Run them, and expect this exit status.
    Run { exit: i32 },
    /// `.ci/run` runs them.
    Gate,
    /// They can't run here, for this reason.
    Skip(String),
}

impl DocumentPage {
    pub(crate) fn parse(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        let mut blocks = Vec::new();
        let mut directive = String::new();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at].trim();
            if line == "<!-- test: run" {
                let end = find(&lines, at + 1, |line| line.trim() == "-->");
                blocks.push(PageBlock::Preparation {
                    script: lines[at + 1..end].join("\n"),
                    line: at + 1,
                });
                at = end + 1;
            } else if let Some(rest) = line.strip_prefix("<!-- test: ") {
                rest.trim_end_matches("-->").trim().clone_into(&mut directive);
                at += 1;
            } else if let Some(language) = line.strip_prefix("```") {
                let end = find(&lines, at + 1, |line| line.trim() == "```");
                blocks.push(block(&lines, (at + 1, end), language, &directive));
                directive.clear();
                at = end + 1;
            } else {
                if !line.is_empty() {
                    directive.clear();
                }
                at += 1;
            }
        }
        Self { lines, blocks }
    }

    /// The text of the page with other outputs, one for each command in its order.
    pub(crate) fn with_outputs(&self, outputs: &[ShownCommand]) -> String {
        let mut lines = self.lines.clone();
        for shown in outputs.iter().rev() {
            let (start, end) = shown.output_lines;
            lines.splice(start..end, shown.output.lines().map(ToOwned::to_owned));
        }
        lines.join("\n") + "\n"
    }
}

fn find(lines: &[String], from: usize, is_end: impl Fn(&str) -> bool) -> usize {
    (from..lines.len()).find(|at| is_end(&lines[*at])).unwrap_or(lines.len())
}

fn block(
    lines: &[String],
    (start, end): (usize, usize),
    language: &str,
    directive: &str,
) -> PageBlock {
    let body = &lines[start..end];
    let text = || joined(body);
    if let Some(path) = directive.strip_prefix("file=") {
        return PageBlock::File { path: path.to_owned(), text: text() };
    }
    if language != "console" {
        return PageBlock::Other { language: language.to_owned(), text: text(), line: start };
    }
    let treatment = match directive.split_once('=') {
        _ if directive == "gate" => CommandCheck::Gate,
        Some(("skip", reason)) => CommandCheck::Skip(reason.to_owned()),
        Some(("exit", status)) => CommandCheck::Run { exit: status.parse().unwrap() },
        _ => CommandCheck::Run { exit: 0 },
    };
    PageBlock::Console { commands: commands(lines, start, end), treatment }
}

/// The lines as one text, each with a newline.
fn joined(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

fn commands(lines: &[String], start: usize, end: usize) -> Vec<ShownCommand> {
    let mut commands = Vec::new();
    let mut at = start;
    while at < end {
        let Some(first) = lines[at].strip_prefix("$ ") else {
            panic!("line {}: output without a command", at + 1)
        };
        let (line, mut command) = (at + 1, first.to_owned());
        while command.ends_with('\\') && at + 1 < end {
            at += 1;
            command = format!("{command}\n{}", lines[at]);
        }
        let next = find(&lines[..end], at + 1, |line| line.starts_with("$ ")).min(end);
        let output = joined(&lines[at + 1..next]);
        commands.push(ShownCommand { command, output, line, output_lines: (at + 1, next) });
        at = next;
    }
    commands
}
