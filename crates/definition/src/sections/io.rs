//! `io`: how much of the output of tools the agent sees.

use jackline_engine::definition::IoLimits;

use super::prelude::*;
use crate::values::{NumberFields, changed_numbers, find_number};

static KEYS: [KeySpec; 1] =
    [key("io", Map(&IO), "", "How much of the output of tools the agent sees.")];

/// The maximum size of one page of output in bytes.
const BYTES_MAX: u64 = 64 << 20;

static IO: MappingSpec = MappingSpec {
    id: "io",
    label: "`io`",
    doc: "These limits apply to the tools of `jackline mcp serve`, to the results that `jackline mcp wrap` forwards, and to the \
          output of a client's own tools if the client lets a hook replace it. Servers read these keys when they start.",
    entries: &[
        key("read_file", Map(&IO_READ_FILE), "", "How much of a file one call returns."),
        key("output", Map(&IO_OUTPUT), "", "How much of any other result one call returns."),
        key("shell", Map(&IO_SHELL), "", "Limits for the commands of `jackline mcp serve`."),
    ],
    required: &[],
};

static IO_READ_FILE: MappingSpec = MappingSpec {
    id: "io_read_file",
    label: "`io.read_file`",
    doc: "",
    entries: &[
        key("max_lines", Count(1, 1_000_000), "500", "The maximum number of lines of a page."),
        key(
            "max_bytes",
            Count(1024, BYTES_MAX),
            "262144",
            "The maximum number of bytes of a page.",
        ),
        key(
            "max_line_bytes",
            Count(16, 1 << 20),
            "2000",
            "The maximum number of bytes of a line; longer lines are cut.",
        ),
    ],
    required: &[],
};

static IO_OUTPUT: MappingSpec = MappingSpec {
    id: "io_output",
    label: "`io.output`",
    doc: "",
    entries: &[
        key(
            "max_bytes",
            Count(4096, BYTES_MAX),
            "65536",
            "The maximum number of bytes of a result. The agent sees one page of a longer result, and Jackline stores the whole result in a file. In mode `observe` the output of a client's own tools is not changed.",
        ),
        key(
            "relative_paths",
            Flag,
            "`true`",
            "Whether paths in the output of a client's own shell are shortened to paths relative to the workspace. Not in mode `observe`.",
        ),
    ],
    required: &[],
};

static IO_SHELL: MappingSpec = MappingSpec {
    id: "io_shell",
    label: "`io.shell`",
    doc: "",
    entries: &[
        key("seconds", Count(1, 86_400), "120", "The timeout of a command in seconds."),
        key(
            "output_bytes",
            Count(1024, BYTES_MAX),
            "32768",
            "How much output of a command is stored: half from the start, half from the end.",
        ),
    ],
    required: &[],
};

pub(crate) struct IoSection;

impl Section for IoSection {
    type Part = Demand<IoLimits>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&IO, &IO_READ_FILE, &IO_OUTPUT, &IO_SHELL];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut io = IoLimits::default();
        for (part, node) in reader.fields(node, &IO) {
            let keys = match part {
                "read_file" => &IO_READ_FILE,
                "output" => &IO_OUTPUT,
                _ => &IO_SHELL,
            };
            for (key, node) in reader.fields(node, keys) {
                match find_number(&format!("{part}.{key}"), numbers(&mut io)) {
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

    /// Takes the smaller value of each number.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.io, &low.io);
        let (mut both, mut below, mut default) = (high.value, low.value, IoLimits::default());
        let of_both = numbers(&mut both);
        join_smaller_numbers(join.rule, of_both, numbers(&mut below), numbers(&mut default));
        both.output.relative_paths &= below.output.relative_paths || !join.overrides();
        let text = |io: &IoLimits| text(io).unwrap_or_else(|| "`io`".to_owned());
        join.report_joined_numbers(high, low, both, text, "has smaller numbers")
    }

    fn describe(io: &Self::Part, lines: &mut DemandLines<'_>) {
        if let Some(text) = text(&io.value) {
            lines.add(DemandSubject::Setting, text, io.layer);
        }
    }

    fn put(io: Self::Part, definition: &mut Definition) {
        definition.io = io.value;
    }
}

/// The number fields. A smaller number is stricter.
fn numbers(io: &mut IoLimits) -> NumberFields<'_, 6> {
    let IoLimits { read_file, output, shell } = io;
    [
        ("read_file.max_lines", &mut read_file.max_lines),
        ("read_file.max_bytes", &mut read_file.max_bytes),
        ("read_file.max_line_bytes", &mut read_file.max_line_bytes),
        ("output.max_bytes", &mut output.max_bytes),
        ("shell.seconds", &mut shell.seconds),
        ("shell.output_bytes", &mut shell.output_bytes),
    ]
}

/// Describes the limits that differ from the default.
pub fn text(io: &IoLimits) -> Option<String> {
    let (mut own, mut default) = (*io, IoLimits::default());
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
