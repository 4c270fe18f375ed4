//! `io`: how much of the output of tools is shown.

use jackline_engine::definition::{Io, OutputIo, ReadFileIo, ShellIo};

use super::prelude::*;
use crate::values::changed_numbers;

static KEYS: [Key; 1] = [key("io", Map(&IO), "", "How much of what tools answer is shown.")];

/// A longer answer is not a page.
const BYTES_MAX: u64 = 64 << 20;

static IO: Keys = Keys {
    id: "io",
    of: "`io`",
    doc: "The tools of `jackline mcp serve`, the results that `jackline mcp wrap` passes on, and what a client's own tools \
          print where the client takes another output. Servers take it when they start.",
    known: &[
        key("read_file", Map(&IO_READ_FILE), "", "How much of a file is read at once."),
        key("output", Map(&IO_OUTPUT), "", "How much of any other answer is shown at once."),
        key("shell", Map(&IO_SHELL), "", "What a command of `jackline mcp serve` may do."),
    ],
    needs: &[],
};

static IO_READ_FILE: Keys = Keys {
    id: "io_read_file",
    of: "`io.read_file`",
    doc: "",
    known: &[
        key("max_lines", Count(1, 1_000_000), "500", "How many lines a page has at most."),
        key("max_bytes", Count(1024, BYTES_MAX), "262144", "How many bytes a page has at most."),
        key("max_line_bytes", Count(16, 1 << 20), "2000", "Where a line is cut."),
    ],
    needs: &[],
};

static IO_OUTPUT: Keys = Keys {
    id: "io_output",
    of: "`io.output`",
    doc: "",
    known: &[
        key(
            "max_bytes",
            Count(4096, BYTES_MAX),
            "65536",
            "How many bytes an answer has at most; of a longer one a page is shown, and all of it is kept in a file. In mode `observe` a client's own tools are left alone.",
        ),
        key(
            "relative_paths",
            Flag,
            "`true`",
            "Whether what a client's own shell prints in the workspace names paths there relative to it. Not in mode `observe`.",
        ),
    ],
    needs: &[],
};

static IO_SHELL: Keys = Keys {
    id: "io_shell",
    of: "`io.shell`",
    doc: "",
    known: &[
        key("seconds", Count(1, 86_400), "120", "When a command is ended."),
        key(
            "output_bytes",
            Count(1024, BYTES_MAX),
            "32768",
            "How much of what it prints is kept: half from the beginning, half from the end.",
        ),
    ],
    needs: &[],
};

pub(crate) struct IoSection;

impl Section for IoSection {
    type Part = Demand<Io>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&IO, &IO_READ_FILE, &IO_OUTPUT, &IO_SHELL];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mut io = Io::default();
        for (key, node) in reader.fields(node, &IO) {
            match key {
                "read_file" => read_file(node, &mut io.read_file, reader),
                "output" => output(node, &mut io.output, reader),
                _ => shell(node, &mut io.shell, reader),
            }
        }
        lowering.definition.io = io;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.io)
    }

    /// The smaller number of each.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.io, &low.io);
        let (above, below, default) = (high.value, low.value, Io::default());
        let number = |of: fn(&Io) -> u32| smaller(join.rule, of(&above), of(&below), of(&default));
        let (own, lower) = (above.output.relative_paths, below.output.relative_paths);
        let both = Io {
            read_file: ReadFileIo {
                max_lines: number(|io| io.read_file.max_lines),
                max_bytes: number(|io| io.read_file.max_bytes),
                max_line_bytes: number(|io| io.read_file.max_line_bytes),
            },
            output: OutputIo {
                max_bytes: number(|io| io.output.max_bytes),
                relative_paths: own && (lower || !join.overrides()),
            },
            shell: ShellIo {
                seconds: number(|io| io.shell.seconds),
                output_bytes: number(|io| io.shell.output_bytes),
            },
        };
        let text = |io: &Io| text(io).unwrap_or_else(|| "`io`".to_owned());
        join.numbers(high, low, both, text, "has smaller ones")
    }

    fn describe(io: &Self::Part, lines: &mut EffectiveLines<'_>) {
        if let Some(text) = text(&io.value) {
            lines.add(Subject::Setting, text, io.layer);
        }
    }

    fn put(io: Self::Part, definition: &mut Definition) {
        definition.io = io.value;
    }
}

fn read_file(node: &Node, io: &mut ReadFileIo, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &IO_READ_FILE) {
        let slot = match key {
            "max_lines" => &mut io.max_lines,
            "max_bytes" => &mut io.max_bytes,
            _ => &mut io.max_line_bytes,
        };
        reader.bounded(key, node, &IO_READ_FILE, slot);
    }
}

fn output(node: &Node, io: &mut OutputIo, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &IO_OUTPUT) {
        if key == "relative_paths" {
            let flag = reader.flag(node, "`io.output.relative_paths`");
            io.relative_paths = flag.unwrap_or(io.relative_paths);
        } else {
            reader.bounded(key, node, &IO_OUTPUT, &mut io.max_bytes);
        }
    }
}

fn shell(node: &Node, io: &mut ShellIo, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &IO_SHELL) {
        let slot = if key == "seconds" { &mut io.seconds } else { &mut io.output_bytes };
        reader.bounded(key, node, &IO_SHELL, slot);
    }
}

/// How much of the output of tools is shown, where it differs from the default.
pub fn text(io: &Io) -> Option<String> {
    let Io { read_file: read, output, shell } = io;
    let default = Io::default();
    let numbers = [
        ("read_file.max_lines", read.max_lines, default.read_file.max_lines),
        ("read_file.max_bytes", read.max_bytes, default.read_file.max_bytes),
        ("read_file.max_line_bytes", read.max_line_bytes, default.read_file.max_line_bytes),
        ("output.max_bytes", output.max_bytes, default.output.max_bytes),
        ("shell.seconds", shell.seconds, default.shell.seconds),
        ("shell.output_bytes", shell.output_bytes, default.shell.output_bytes),
    ];
    let mut changed = changed_numbers(&numbers);
    if !output.relative_paths {
        changed.push("output.relative_paths false".to_owned());
    }
    (!changed.is_empty()).then(|| format!("io: {}", changed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser(
            "io_read_file.max_lines",
            "io: { read_file: { max_lines: 5 } }",
            "io: { read_file: { max_lines: 6 } }",
        ),
        looser("io_read_file.max_bytes", "", "io: { read_file: { max_bytes: 262145 } }"),
        looser(
            "io_read_file.max_line_bytes",
            "io: { read_file: { max_line_bytes: 16 } }",
            "io: { read_file: { max_line_bytes: 17 } }",
        ),
        looser(
            "io_output.max_bytes",
            "io: { output: { max_bytes: 5000 } }",
            "io: { output: { max_bytes: 5001 } }",
        ),
        looser("io_output.relative_paths", "", "io: { output: { relative_paths: false } }"),
        looser(
            "io_shell.seconds",
            "io: { shell: { seconds: 5 } }",
            "io: { shell: { seconds: 6 } }",
        ),
        looser("io_shell.seconds", "", "io: { shell: { seconds: 121 } }"),
        looser(
            "io_shell.output_bytes",
            "io: { shell: { output_bytes: 2000 } }",
            "io: { shell: { output_bytes: 2001 } }",
        ),
    ];
}
