//! The keys of what tools may answer.

use super::Keys;
use super::Takes::{Count, Flag, Map};
use super::tables::key;

/// Above this an answer is no page any more.
const BYTES_MAX: u64 = 64 << 20;

pub(crate) static IO: Keys = Keys {
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

pub(crate) static IO_READ_FILE: Keys = Keys {
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

pub(crate) static IO_OUTPUT: Keys = Keys {
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

pub(crate) static IO_SHELL: Keys = Keys {
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
