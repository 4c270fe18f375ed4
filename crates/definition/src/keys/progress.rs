//! The keys of what was tested, and of iterations that bring nothing.

use super::Keys;
use super::Takes::{Count, List, Path, Text};
use super::tables::{U32, key};

pub(crate) static CLEAN: Keys = Keys {
    id: "clean",
    of: "`clean`",
    doc: "It has nothing to set: `clean: {}`. A run counts as passing where the exit status of the line hangs on it \
          (`pytest | tail` and `pytest || true` do not), else where its summary says so; what nobody can tell is not passing.",
    known: &[],
    needs: &[],
};

pub(crate) static PROGRESS: Keys = Keys {
    id: "progress",
    of: "`progress`",
    doc: "An iteration fails when tests fail after a change, the build fails, its error is that of the iteration before, or \
          nothing was changed. Fewer failing tests than before are progress, and progress starts the count anew.",
    known: &[
        key(
            "max_consecutive_failures",
            Count(1, U32),
            "3",
            "So many failed iterations in a row pause the session.",
        ),
        key(
            "exempt_phases",
            List(0, &Text),
            "none",
            "Phases, as `iteration_ended` names them, in which nothing has to change.",
        ),
        key(
            "steps_per_iteration",
            Count(1, U32),
            "50",
            "How many steps are an iteration where no `iteration_ended` ever comes.",
        ),
    ],
    needs: &[],
};

pub(crate) static DIRTY_BITS: Keys = Keys {
    id: "dirty_bits",
    of: "`dirty_bits`",
    doc: "Commands are programs and subcommands, as in `commands` of a tool, or names of tools. They are added to those that \
          are known: `cargo test`, `pytest`, `go test`, `npm test`, `make test`, `mvn verify` and so on, through `bash -c`, `uv run`, `npx` and the like.",
    known: &[
        key("tests", List(0, &Text), "none", "Commands that test, such as `./test.sh`."),
        key("builds", List(0, &Text), "none", "Commands that build."),
        key(
            "docs",
            List(0, &Path),
            "none",
            "Files that are documentation and not code, besides `*.md` and `docs/**`.",
        ),
    ],
    needs: &[],
};
