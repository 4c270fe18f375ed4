//! `io`: how much of the output of tools is shown.

use jackline_engine::definition::Io;

use super::prelude::*;
use crate::values::{Numbers, changed_numbers, number_of};

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
        for (part, node) in reader.fields(node, &IO) {
            let keys = match part {
                "read_file" => &IO_READ_FILE,
                "output" => &IO_OUTPUT,
                _ => &IO_SHELL,
            };
            for (key, node) in reader.fields(node, keys) {
                match number_of(&format!("{part}.{key}"), numbers(&mut io)) {
                    Some(slot) => reader.bounded(key, node, keys, slot),
                    None => {
                        let slot = &mut io.output.relative_paths;
                        *slot = reader.flag(node, "`io.output.relative_paths`").unwrap_or(*slot);
                    }
                }
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
        let (mut both, mut below, mut default) = (high.value, low.value, Io::default());
        let of_both = numbers(&mut both);
        join_smaller(join.rule, of_both, numbers(&mut below), numbers(&mut default));
        both.output.relative_paths &= below.output.relative_paths || !join.overrides();
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

/// The numbers, of which the smaller one is stricter.
fn numbers(io: &mut Io) -> Numbers<'_, 6> {
    let Io { read_file, output, shell } = io;
    [
        ("read_file.max_lines", &mut read_file.max_lines),
        ("read_file.max_bytes", &mut read_file.max_bytes),
        ("read_file.max_line_bytes", &mut read_file.max_line_bytes),
        ("output.max_bytes", &mut output.max_bytes),
        ("shell.seconds", &mut shell.seconds),
        ("shell.output_bytes", &mut shell.output_bytes),
    ]
}

/// How much of the output of tools is shown, where it differs from the default.
pub fn text(io: &Io) -> Option<String> {
    let (mut own, mut default) = (*io, Io::default());
    let mut changed = changed_numbers(numbers(&mut own), numbers(&mut default));
    if !io.output.relative_paths {
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
